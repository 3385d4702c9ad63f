#include "base/option_words.hpp"

#include <leat/error.hpp>
#include <leat/open_arrays.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace leat {
namespace {

constexpr auto last = option_id::skip_damaged;

/// The words of somebody else while it lives.
class spoken {
 public:
  explicit spoken(const option_spelling& by) { spell_options(by); }
  ~spoken() { spell_options(in_cpp); }
  spoken(const spoken&) = delete;
  spoken& operator=(const spoken&) = delete;

 private:
  static constexpr option_spelling in_cpp{{}, " = "};
};

TEST(option_words, each_option_has_a_name_of_its_own_in_cpp) {
  std::set<std::string_view> names;
  for (int number = 1; number <= static_cast<int>(last); ++number) {
    const auto option = static_cast<option_id>(number);
    EXPECT_NE(name(option), "") << number;
    EXPECT_TRUE(names.insert(name(option)).second) << name(option);
    EXPECT_EQ(spelled(option), name(option));
  }
  EXPECT_EQ(spelled(option_id::batch_size), "loader_options::batch_size");
  EXPECT_EQ(spelled(option_id::on_corrupt, "skip"), "loader_options::on_corrupt = skip");
  EXPECT_EQ(spelled(option_id::jpeg_decoder, "turbo"), "jpeg_decoder::turbo");
}

TEST(option_words, are_those_of_who_reads_the_message) {
  static constexpr option_words words[] = {{option_id::batch_size, "", "batch_size="},
                                           {option_id::digests, "", "digests="},
                                           {option_id::digests, "false", "digests=False"}};
  static constexpr option_spelling in_python{words, ""};
  const spoken here(in_python);
  EXPECT_EQ(spelled(option_id::batch_size), "batch_size=");
  EXPECT_EQ(spelled(option_id::batch_size, "8"), "batch_size=8");
  EXPECT_EQ(spelled(option_id::digests, "false"), "digests=False");
  EXPECT_EQ(spelled(option_id::world), "loader_options::world") << "it has no word for it";
  EXPECT_EQ(spelled(option_id::array_samples, "row"), "array_options::sample::row");
  EXPECT_EQ(name(option_id::batch_size), "loader_options::batch_size");
}

TEST(option_words, an_error_carries_the_option_that_it_is_about) {
  EXPECT_EQ(error(errc::usage, "wrong").option(), option_id::none);
  EXPECT_EQ(error(errc::usage, "wrong", option_id::split).option(), option_id::split);
}

}  // namespace
}  // namespace leat
