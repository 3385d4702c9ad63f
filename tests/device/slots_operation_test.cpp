// Rows of several slots: what the operation of one is asked for.
#include "stages/device/slots_operation.hpp"

#include "tests/support/simulated_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace leat::stages {
namespace {

constexpr std::size_t slot_decoded_bytes = 5;
constexpr std::size_t slot_said_bytes = 2;
constexpr std::size_t slot_made_bytes = 7;

/// Looks at nothing, and writes down what it is asked for.
class asked_operation final : public device_operation {
 public:
  struct launched {
    std::size_t from;
    std::size_t said;
    std::size_t to;
    std::uint32_t rows;

    friend bool operator==(const launched&, const launched&) = default;
  };

  std::size_t decoded_row_bytes() const noexcept override { return slot_decoded_bytes; }
  std::size_t scratch_bytes(std::uint32_t rows) const noexcept override { return std::size_t{rows} * 3; }
  failed_call launch(device_calls& /*calls*/, const operands& of, stream /*in*/) const noexcept override {
    seen.push_back({address(of.from[0]), of.from.size() > 1 ? address(of.from[1]) : 0, address(of.to), of.rows});
    if (seen.size() == failing) return {.status = 9, .name = "a launch"};
    return {};
  }
  std::size_t make_row_bytes() const noexcept override { return 11; }
  void make_row(std::span<const std::byte* const> from, std::uint32_t row, std::byte* to,
                std::byte* /*scratch*/) const noexcept override {
    const std::byte both[] = {from[0][row * slot_decoded_bytes], from[1][row * slot_said_bytes]};
    std::fill_n(to, slot_made_bytes, both[0] ^ both[1]);
  }

  static std::size_t address(const std::byte* of) { return reinterpret_cast<std::size_t>(of); }
  mutable std::vector<launched> seen;
  std::size_t failing = 0;
};

std::shared_ptr<asked_operation> asked() { return std::make_shared<asked_operation>(); }

failed_call launch_rows(const slots_operation& what, std::uint32_t rows) {
  testing::simulated_device device;
  // Addresses that nobody looks at.
  const auto at = [](std::size_t address) { return reinterpret_cast<std::byte*>(address); };
  const std::byte* const from[] = {at(std::size_t{1} << 40), at(std::size_t{2} << 40)};
  return what.launch(device, {.from = from, .rows = rows, .to = at(std::size_t{3} << 40)}, {});
}

TEST(slots_operation, is_one_launch_for_all_slots) {
  const auto of = asked();
  const slots_operation three({of, slot_said_bytes, slot_made_bytes}, 3);
  EXPECT_EQ(three.decoded_row_bytes(), 3 * slot_decoded_bytes);
  EXPECT_EQ(three.scratch_bytes(4), 3 * 3 * 4U);
  EXPECT_EQ(launch_rows(three, 4).status, device_ok);
  using launched = asked_operation::launched;
  EXPECT_EQ(
      of->seen,
      (std::vector<launched>{{std::size_t{1} << 40, std::size_t{2} << 40, std::size_t{3} << 40, std::uint32_t{12}}}));
}

// Kernels count in 32 bits.
TEST(slots_operation, is_several_launches_of_more_slots_than_can_be_counted) {
  const auto of = asked();
  constexpr std::uint32_t slots = 1024;
  constexpr std::uint32_t at_once = std::numeric_limits<std::uint32_t>::max() / slots;
  constexpr std::uint32_t rows = 5'000'000;
  const slots_operation many({of, slot_said_bytes, slot_made_bytes}, slots);
  EXPECT_EQ(launch_rows(many, rows).status, device_ok);
  ASSERT_EQ(of->seen.size(), 2U);
  EXPECT_EQ(of->seen[0].rows, at_once * slots);
  EXPECT_EQ(of->seen[1].rows, (rows - at_once) * slots);
  EXPECT_EQ(of->seen[1].from - of->seen[0].from, std::size_t{at_once} * slots * slot_decoded_bytes);
  EXPECT_EQ(of->seen[1].said - of->seen[0].said, std::size_t{at_once} * slots * slot_said_bytes);
  EXPECT_EQ(of->seen[1].to - of->seen[0].to, std::size_t{at_once} * slots * slot_made_bytes);
  EXPECT_EQ(many.scratch_bytes(rows), std::size_t{at_once} * slots * 3);
  of->failing = 3;
  EXPECT_EQ(launch_rows(many, rows).status, 9);
  EXPECT_EQ(of->seen.size(), 3U) << "it goes on behind a launch that failed";
}

TEST(slots_operation, may_have_one_operand) {
  const auto of = asked();
  const slots_operation three({of, 0, slot_made_bytes}, 3);
  testing::simulated_device device;
  const std::byte* const from[] = {reinterpret_cast<std::byte*>(std::size_t{1} << 40)};
  EXPECT_EQ(three.launch(device, {.from = from, .rows = 4}, {}).status, device_ok);
  ASSERT_EQ(of->seen.size(), 1U);
  EXPECT_EQ(of->seen.front().said, 0U);
  EXPECT_EQ(of->seen.front().rows, 12U);
}

TEST(slots_operation, makes_each_slot_of_a_row_by_itself) {
  const slots_operation three({asked(), slot_said_bytes, slot_made_bytes}, 3);
  std::vector<std::byte> decoded(2 * 3 * slot_decoded_bytes);
  std::vector<std::byte> said(2 * 3 * slot_said_bytes);
  for (std::size_t i = 0; i < decoded.size(); ++i) decoded[i] = static_cast<std::byte>(i);
  for (std::size_t i = 0; i < said.size(); ++i) said[i] = static_cast<std::byte>(100 + i);
  const std::byte* const from[] = {decoded.data(), said.data()};
  std::vector<std::byte> made(3 * slot_made_bytes);
  std::vector<std::byte> scratch(three.make_row_bytes());
  three.make_row(from, 1, made.data(), scratch.data());
  for (std::size_t k = 0; k < 3; ++k) {
    const std::byte wanted = decoded[(3 + k) * slot_decoded_bytes] ^ said[(3 + k) * slot_said_bytes];
    EXPECT_EQ(std::vector<std::byte>(slot_made_bytes, wanted),
              std::vector<std::byte>(made.begin() + static_cast<std::ptrdiff_t>(k * slot_made_bytes),
                                     made.begin() + static_cast<std::ptrdiff_t>((k + 1) * slot_made_bytes)));
  }
}

}  // namespace
}  // namespace leat::stages
