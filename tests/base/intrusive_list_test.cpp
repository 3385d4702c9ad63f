#include "base/intrusive_list.hpp"

#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>

namespace leat::async {
namespace {

struct element : list_hook {
  int number = 0;
};

TEST(intrusive_list, is_a_queue_that_can_be_left_from_anywhere) {
  leat::testing::for_each_seed(20, [](std::uint64_t seed) {
    std::minstd_rand random(static_cast<unsigned>(seed));
    std::array<element, 16> elements;
    for (int i = 0; i < 16; ++i) elements[static_cast<std::size_t>(i)].number = i;
    intrusive_list<element> list;
    std::deque<int> model;
    for (int step = 0; step < 500; ++step) {
      element& one = elements[random() % elements.size()];
      if (random() % 4 == 0 && !model.empty()) {
        ASSERT_EQ(list.front().number, model.front());
        ASSERT_EQ(list.pop_front().number, model.front());
        model.pop_front();
      } else if (one.linked()) {
        list.remove(one);
        model.erase(std::find(model.begin(), model.end(), one.number));
      } else {
        list.push_back(one);
        model.push_back(one.number);
      }
      ASSERT_EQ(list.size(), model.size());
      ASSERT_EQ(list.empty(), model.empty());
    }
    for (const int number : model) ASSERT_EQ(list.pop_front().number, number);
  });
}

}  // namespace
}  // namespace leat::async
