#include "stages/state/digest.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace leat::stages {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(digest, is_written_as_32_lower_case_hex_digits) {
  digest value;
  value.bytes[0] = 0xAB;
  value.bytes[15] = 0x01;
  EXPECT_EQ(value.hex(), "ab000000000000000000000000000001");
}

// These are for ever: a digest noted today must mean the same batch in ten years.
TEST(digest, never_changes) {
  const std::vector<std::byte> pixels = bytes_of("abcdef");
  const row_output outputs[] = {{"jpg", dtype::u8, {3, 1, 2}, pixels}};
  const digest row = row_digest(7, outputs);
  const digest batch = batch_digest(1, 2, {{row, row}});
  EXPECT_EQ(row.hex(), "5f48f23f2e81ff62593e5176968477a4");
  EXPECT_EQ(batch.hex(), "f2e7c33fa54de95df93ef06c087a81e1");
  EXPECT_EQ(chain_digest({}, batch).hex(), "6e4407f10846a5ed06620908131073ef");
}

TEST(digest, changes_with_everything_a_trainer_could_see) {
  const std::vector<std::byte> a = bytes_of("abcdef");
  const std::vector<std::byte> b = bytes_of("abcdeg");
  std::set<std::string> seen;
  std::size_t made = 0;
  const auto add = [&](const digest& value) {
    seen.insert(value.hex());
    ++made;
  };
  const auto row = [](std::uint64_t sample, std::vector<row_output> outputs) { return row_digest(sample, outputs); };

  add(row(7, {{"jpg", dtype::u8, {6}, a}}));
  add(row(8, {{"jpg", dtype::u8, {6}, a}}));
  add(row(7, {{"png", dtype::u8, {6}, a}}));
  add(row(7, {{"jpg", dtype::i8, {6}, a}}));
  add(row(7, {{"jpg", dtype::u8, {2, 3}, a}}));
  add(row(7, {{"jpg", dtype::u8, {3, 2}, a}}));
  add(row(7, {{"jpg", dtype::u8, {6}, b}}));
  add(row(7, {{"jpg", dtype::u8, {6}, a}, {"cls", dtype::u8, {}, {}}}));
  // The same bytes cut elsewhere are another sample.
  add(row(7, {{"a", dtype::u8, {2}, std::span(a).first(2)}, {"b", dtype::u8, {4}, std::span(a).subspan(2)}}));
  add(row(7, {{"a", dtype::u8, {4}, std::span(a).first(4)}, {"b", dtype::u8, {2}, std::span(a).subspan(4)}}));

  const digest one = row(1, {});
  const digest two = row(2, {});
  add(batch_digest(0, 0, {}));
  add(batch_digest(0, 1, {}));
  add(batch_digest(1, 0, {}));
  add(batch_digest(0, 0, {{one, two}}));
  add(batch_digest(0, 0, {{two, one}}));
  add(batch_digest(0, 0, {{one}}));
  add(chain_digest(one, two));
  add(chain_digest(two, one));
  EXPECT_EQ(seen.size(), made);
}

}  // namespace
}  // namespace leat::stages
