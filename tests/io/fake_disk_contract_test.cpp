// The source contract on the fake disk: a test that passes on it has met what the contract allows, and no more.
#include "tests/io/source_contract.hpp"
#include "tests/support/fake_disk.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/test_loop.hpp"

#include <memory>
#include <string>
#include <utility>

namespace leat::testing {
namespace {

class fake_disk_subject final : public source_subject {
 public:
  explicit fake_disk_subject(const fake_disk_options& options) : disk_(options), random_(options.seed) {}
  ~fake_disk_subject() override { source_.reset(); }

  std::uint32_t add_file(const std::vector<std::byte>& contents) override { return disk_.add_file(name(), contents); }
  std::uint32_t add_missing_file() override { return disk_.add_missing_file(name()); }
  void connect() override { source_ = disk_.connect(loop_); }
  void replace_file(std::uint32_t file, const std::vector<std::byte>& contents) override {
    disk_.replace_file(file, contents);
  }

  [[nodiscard]] io::source& source() override { return *source_; }
  void call(const std::function<void()>& function) override {
    function();
    // The loop of a real source goes on by itself: some time passes between one call and the next.
    for (std::uint64_t turns = random_.below(4); turns > 0; --turns) loop_.run_turn();
  }
  void run_until_zero(std::atomic<std::size_t>& left) override {
    loop_.run();
    ASSERT_EQ(left.load(), 0U) << "the disk has nothing more to deliver";
  }

 private:
  [[nodiscard]] std::string name() const { return "fake/" + std::to_string(disk_.files()); }

  fake_disk disk_;
  test_loop loop_;
  seeded_random random_;
  std::unique_ptr<io::source> source_;
};

source_maker disk(std::string name, const fake_disk_options& options) {
  return {std::move(name),
          [options](const std::shared_ptr<io::arena>&) { return std::make_unique<fake_disk_subject>(options); }};
}

fault_plan often(double short_read, double again, double held_back) {
  fault_plan plan;
  plan.short_read = short_read;
  plan.again = again;
  plan.held_back = held_back;
  return plan;
}

INSTANTIATE_TEST_SUITE_P(
    fake_disk, source_contract,
    ::testing::Values(disk("seed_1", {.seed = 1}), disk("seed_2", {.seed = 2}), disk("seed_3", {.seed = 3}),
                      disk("in_order", {.order = delivery::in_order}),
                      disk("in_order_and_nothing_wrong", {.faults = often(0, 0, 0), .order = delivery::in_order}),
                      disk("mostly_short_reads", {.faults = often(0.9, 0, 0)}),
                      disk("mostly_tried_again", {.faults = often(0, 0.9, 0)}),
                      disk("mostly_held_back", {.faults = often(0, 0, 0.9)}),
                      disk("aligned_to_1", {.alignment_bytes = 1}), disk("aligned_to_512", {.alignment_bytes = 512}),
                      disk("aligned_to_4096", {.alignment_bytes = 4096})),
    name_of_maker);

}  // namespace
}  // namespace leat::testing
