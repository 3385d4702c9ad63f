#include "stages/pixels/plain_jpeg.hpp"

#include "tests/support/make_picture.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using pixels::is_plain_jpeg;
using testing::jpeg_colours;
using testing::jpeg_options;
using testing::make_jpeg;

std::vector<std::byte> encoded(const jpeg_options& how) { return make_jpeg(testing::make_texture(3, 61, 47), how); }

TEST(plain_jpeg, is_baseline_of_one_scan_grey_or_in_a_common_sampling) {
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {2, 2}, {1, 2}}) {
    EXPECT_TRUE(is_plain_jpeg(encoded({.h = h, .v = v}))) << h << " x " << v;
    EXPECT_TRUE(is_plain_jpeg(encoded({.h = h, .v = v, .restart_interval = 3, .orientation = 6, .optimise = true})));
  }
  EXPECT_TRUE(is_plain_jpeg(encoded({.colours = jpeg_colours::grey, .h = 1, .v = 1})));
}

TEST(plain_jpeg, is_nothing_that_another_decoder_may_read_differently) {
  EXPECT_FALSE(is_plain_jpeg(encoded({.progressive = true})));
  EXPECT_FALSE(is_plain_jpeg(encoded({.separate_scans = true})));
  EXPECT_FALSE(is_plain_jpeg(encoded({.arithmetic = true})));
  EXPECT_FALSE(is_plain_jpeg(encoded({.h = 4, .v = 1})));
  for (const jpeg_colours colours : {jpeg_colours::rgb, jpeg_colours::cmyk, jpeg_colours::ycck}) {
    EXPECT_FALSE(is_plain_jpeg(encoded({.colours = colours, .h = 1, .v = 1}))) << static_cast<int>(colours);
  }
}

TEST(plain_jpeg, ends_with_its_end_marker_and_is_cut_off_nowhere) {
  const std::vector<std::byte> whole = encoded({});
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(is_plain_jpeg(pixels::byte_span(whole).first(bytes))) << bytes << " of " << whole.size();
  }
  std::vector<std::byte> with_more = whole;
  with_more.push_back(std::byte{0});
  EXPECT_FALSE(is_plain_jpeg(with_more));
}

// Any byte changed: it may be one or the other, and reads nothing outside.
TEST(plain_jpeg, reads_any_bytes) {
  const std::vector<std::byte> whole = encoded({.h = 2, .v = 2, .orientation = 3});
  std::size_t taken = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const unsigned value : {0x00U, 0xFFU, 0xDAU, 0x11U}) {
      std::vector<std::byte> changed(whole);
      changed[i] = static_cast<std::byte>(value);
      taken += is_plain_jpeg(changed) ? 1 : 0;
    }
  }
  EXPECT_GT(taken, 0U);
  EXPECT_LT(taken, 4 * whole.size());
}

}  // namespace
}  // namespace leat
