// Objects of a registered store are a source as the ring's files are, and are opened by their addresses.
#include "io/store/store_source.hpp"

#include "io/ring/make_ring_loop.hpp"
#include "io/ring/preadv_loop.hpp"
#include "io/store/registered_stores.hpp"
#include "tests/io/loop_subject.hpp"
#include "tests/io/source_contract.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/memory_store.hpp"

#include <leat/error.hpp>
#include <leat/object_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A scheme may be registered once in a process.
std::string register_as_another(std::shared_ptr<const object_store> store) {
  static std::atomic<int> number = 0;
  const std::string scheme = "mem-" + std::to_string(++number);
  register_store(scheme, std::move(store));
  return scheme + "://";
}

std::vector<std::string> names_of(const std::vector<listed_object>& listed) {
  std::vector<std::string> names;
  for (const listed_object& each : listed) names.push_back(each.name);
  return names;
}

class store_subject final : public source_subject {
 public:
  store_subject(std::shared_ptr<io::arena> memory, const running_loop::maker& make)
      : running_({}, std::move(memory), make) {}
  ~store_subject() override {
    running_.call([this] { source_.reset(); });
  }

  std::uint32_t add_file(const std::vector<std::byte>& contents) override {
    names_.push_back(scheme_ + std::to_string(names_.size()));
    sizes_.push_back(contents.size());
    store_->put(names_.back().substr(scheme_.size()), contents);
    return static_cast<std::uint32_t>(names_.size() - 1);
  }
  std::uint32_t add_missing_file() override {
    names_.push_back(scheme_ + "missing");
    sizes_.push_back(io::store_description::unknown);
    return static_cast<std::uint32_t>(names_.size() - 1);
  }
  void replace_file(std::uint32_t file, const std::vector<std::byte>& contents) override {
    store_->put(names_[file].substr(scheme_.size()), contents);
  }
  // As a dataset that was opened by them.
  void connect() override {
    described_ = std::make_unique<io::store_description>(names_);
    for (std::uint32_t file = 0; file < sizes_.size(); ++file) described_->saw_size(file, sizes_[file]);
    running_.call([this] { source_ = described_->connect(running_.loop()); });
  }
  [[nodiscard]] io::source& source() override { return *source_; }
  void call(const std::function<void()>& function) override { running_.call(function); }
  void run_until_zero(std::atomic<std::size_t>& left) override {
    for (std::size_t now = left.load(); now != 0; now = left.load()) left.wait(now);
  }

 private:
  std::shared_ptr<memory_store> store_ = std::make_shared<memory_store>();
  std::string scheme_ = register_as_another(store_);
  std::vector<std::string> names_;
  std::vector<std::uint64_t> sizes_;
  std::unique_ptr<io::store_description> described_;
  running_loop running_;
  std::unique_ptr<io::source> source_;
};

source_maker store_on(std::string name, const running_loop::maker& make) {
  return {std::move(name), [make](std::shared_ptr<io::arena> memory) {
            return std::make_unique<store_subject>(std::move(memory), make);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    store, source_contract,
    ::testing::Values(store_on("on_the_ring", [](io::io_context& context) { return io::make_ring_loop(context, {}); }),
                      store_on("on_preadv",
                               [](io::io_context& context) { return io::make_preadv_loop(context, "asked for"); })),
    name_of_maker);

TEST(registered_stores, take_names_that_are_free_and_are_schemes) {
  const auto store = std::make_shared<memory_store>();
  const std::string known = register_as_another(store);
  for (const std::string_view name : {"s3", "http", "https", "file", "", "Mem", "a b", "a:"}) {
    EXPECT_THAT(message_of(errc::usage, [&] { register_store(name, store); }), HasSubstr("is no name for a store"));
  }
  const std::string again = known.substr(0, known.size() - 3);
  EXPECT_THAT(message_of(errc::usage, [&] { register_store(again, store); }), HasSubstr("'" + again + "' has a store"));
  EXPECT_THAT(message_of(errc::usage, [&] { register_store("free", nullptr); }), HasSubstr("is null"));
  EXPECT_TRUE(io::is_registered(known + "a"));
  EXPECT_FALSE(io::is_registered("unknown://a"));
  EXPECT_FALSE(io::is_registered("a"));
}

TEST(registered_stores, list_what_lies_below_a_folder_and_nothing_beside_it) {
  const auto store = std::make_shared<memory_store>();
  for (const std::string_view name : {"set/b.tar", "set/a.tar", "set/deep/c.tar", "settee/d.tar"}) store->put(name, {});
  const std::string scheme = register_as_another(store);
  EXPECT_THAT(names_of(io::list_store(scheme + "set")),
              ElementsAre(scheme + "set/a.tar", scheme + "set/b.tar", scheme + "set/deep/c.tar"));
  EXPECT_THAT(names_of(io::list_store(scheme + "none/")), IsEmpty());
  EXPECT_THAT(names_of(io::match_in_store(scheme + "set/*.tar")),
              ElementsAre(scheme + "set/a.tar", scheme + "set/b.tar"));
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(io::match_in_store(scheme + "set/*.jpg")); }),
              HasSubstr("no object matches"));
}

TEST(registered_stores, believe_no_listing_that_says_more_than_it_was_asked) {
  struct careless final : memory_store {
    std::optional<std::vector<listed_object>> list(const std::string&) const override {
      return std::vector<listed_object>{{"x", {}}, {"set/b", {}}, {"set/a", {}}, {"set/a", {}}};
    }
  };
  const std::string scheme = register_as_another(std::make_shared<careless>());
  EXPECT_THAT(names_of(io::list_store(scheme + "set/")), ElementsAre(scheme + "set/a", scheme + "set/b"));
}

TEST(registered_stores, say_how_to_name_objects_where_a_store_lists_none) {
  struct mute final : memory_store {
    std::optional<std::vector<listed_object>> list(const std::string& prefix) const override {
      return object_store::list(prefix);
    }
  };
  const std::string scheme = register_as_another(std::make_shared<mute>());
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(io::list_store(scheme + "set/")); }),
              HasSubstr("lists no objects; name them by braces"));
}

}  // namespace
}  // namespace leat::testing
