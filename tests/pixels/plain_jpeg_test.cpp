#include "stages/pixels/plain_jpeg.hpp"

#include "tests/support/make_picture.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using pixels::plain_jpeg;
using testing::jpeg_colours;
using testing::jpeg_options;
using testing::make_jpeg;

bool is_plain_jpeg(const std::vector<std::byte>& file) { return !plain_jpeg(file).empty(); }

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
    EXPECT_TRUE(plain_jpeg(pixels::byte_span(whole).first(bytes)).empty()) << bytes << " of " << whole.size();
  }
  EXPECT_EQ(plain_jpeg(whole).size(), whole.size());
  // What a camera puts behind it, as a smaller picture.
  std::vector<std::byte> with_more = whole;
  with_more.insert(with_more.end(), whole.begin(), whole.end());
  EXPECT_EQ(plain_jpeg(with_more).size(), whole.size());
}

// Another decoder may take the size of another frame than ours.
TEST(plain_jpeg, has_no_second_picture_in_its_scan) {
  const std::vector<std::byte> whole = encoded({});
  const std::vector<std::byte> other = make_jpeg(testing::make_texture(3, 640, 480), {});
  std::vector<std::byte> forged = whole;
  forged.insert(forged.end() - 2, other.begin(), other.end());
  EXPECT_FALSE(is_plain_jpeg(forged));
  for (const unsigned marker : {0xC0U, 0xC4U, 0xDAU, 0xDCU, 0xE1U, 0x01U}) {
    forged = whole;
    const std::byte more[] = {std::byte{0xFF}, static_cast<std::byte>(marker), std::byte{0}, std::byte{2}};
    forged.insert(forged.end() - 2, std::begin(more), std::end(more));
    EXPECT_FALSE(is_plain_jpeg(forged)) << marker;
  }
}

// Where `marker` stands.
std::size_t place_of(unsigned marker, const std::vector<std::byte>& in) {
  for (std::size_t i = 2; i + 4 < in.size();) {
    if (in[i + 1] == static_cast<std::byte>(marker)) return i;
    i += 2 + (std::to_integer<std::size_t>(in[i + 2]) << 8 | std::to_integer<std::size_t>(in[i + 3]));
  }
  ADD_FAILURE() << "no marker " << marker;
  return 0;
}

// Without them nvJPEG refuses a file, of which libjpeg-turbo may know what to do.
TEST(plain_jpeg, has_all_tables_that_it_names) {
  const std::vector<std::byte> whole = encoded({});
  for (const unsigned marker : {0xDBU, 0xC4U}) {
    std::vector<std::byte> without = whole;
    without[place_of(marker, whole) + 1] = std::byte{0xFE};  // a comment
    EXPECT_FALSE(is_plain_jpeg(without)) << marker;
  }
  std::vector<std::byte> changed = whole;
  changed[place_of(0xDB, whole) + 4] |= std::byte{0x10};  // of 16 bits
  EXPECT_FALSE(is_plain_jpeg(changed));
  changed = whole;
  changed[place_of(0xDA, whole) + 5] = std::byte{7};  // a component that is not there
  EXPECT_FALSE(is_plain_jpeg(changed));
  changed = whole;
  changed[place_of(0xDA, whole) + 6] = std::byte{0x33};  // tables that are not
  EXPECT_FALSE(is_plain_jpeg(changed));
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
