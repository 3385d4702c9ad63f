#include "base/crc32c.hpp"
#include "stages/pixels/jpeg_scan.hpp"
#include "stages/pixels/photo_pack_layout.hpp"
#include "stages/pixels/photo_rows.hpp"
#include "tests/pixels/random_jpeg.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/photo_pack.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::between;
using bytes = std::vector<std::byte>;

// Of every kind that is packed: samplings, sides of one pixel, grey, restarts, tables, qualities.
bytes random_photo(std::mt19937_64& random, int side_max = 70) {
  const int width = between(random, 1, side_max);
  const int height = between(random, 1, side_max);
  const testing::rgb_picture picture = between(random, 0, 2) == 0 ? testing::make_noise(random, width, height)
                                                                  : testing::make_texture(random(), width, height);
  const testing::jpeg_colours colours[] = {testing::jpeg_colours::ycbcr, testing::jpeg_colours::ycbcr,
                                           testing::jpeg_colours::rgb, testing::jpeg_colours::grey};
  const unsigned interval = between(random, 0, 2) == 0 ? static_cast<unsigned>(between(random, 1, 9)) : 0;
  return testing::make_jpeg(picture, {.colours = colours[between(random, 0, 3)],
                                      .h = between(random, 1, 2),
                                      .v = between(random, 1, 2),
                                      .quality = between(random, 1, 100),
                                      .restart_interval = interval,
                                      .orientation = between(random, 0, 8),
                                      .optimise = between(random, 0, 1) == 1});
}

std::string why_not(const bytes& jpeg) {
  try {
    static_cast<void>(pack_photo(jpeg));
    return {};
  } catch (const error& failure) {
    return failure.what();
  }
}

TEST(photo_pack, gives_the_file_back_byte_for_byte) {
  testing::for_each_seed(300, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    bytes jpeg = random_photo(random);
    if (seed % 4 == 0) jpeg.resize(jpeg.size() - 2);  // without its end marker
    if (seed % 4 == 1) {                              // something behind it
      for (int i = between(random, 1, 50); i > 0; --i) jpeg.push_back(static_cast<std::byte>(random()));
    }
    const bytes pack = pack_photo(jpeg);
    ASSERT_TRUE(is_photo_pack(pack));
    ASSERT_EQ(unpack_photo(pack), jpeg);
  });
}

pixels::geometry random_crop(std::mt19937_64& random, const pixels::picture_info& info) {
  const auto [width, height] =
      info.orientation >= 5 ? std::pair(info.height, info.width) : std::pair(info.width, info.height);
  const int w = between(random, 1, width);
  const int h = between(random, 1, height);
  const pixels::rectangle box{between(random, 0, width - w), between(random, 0, height - h), w, h};
  if (between(random, 0, 1) == 0) return testing::plain_box(box.x, box.y, w, h);
  return testing::scaled_box(box, between(random, 1, 12), between(random, 1, 12), filter::bilinear);
}

// Whole pictures and crops, decimated and not, turned upright and not: in vectors, plainly, and coded again for libjpeg.
TEST(photo_pack, makes_the_pixels_of_its_jpeg) {
  testing::one_decoder one;
  testing::for_each_seed(400, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const bytes jpeg = random_photo(random, 120);
    const bytes pack = pack_photo(jpeg);
    pixels::decode_options options{.exif_orientation = between(random, 0, 1) == 1,
                                   .decimate = between(random, 0, 1) == 1};
    const auto look = options.exif_orientation ? pixels::look_for::orientation : pixels::look_for::size;
    const auto info = pixels::peek(jpeg, look);
    const auto of_pack = pixels::peek(pack, look);
    ASSERT_TRUE(info && of_pack);
    ASSERT_EQ(of_pack->what, pixels::format::photo_pack);
    ASSERT_EQ(std::tuple(of_pack->width, of_pack->height, of_pack->channels, of_pack->orientation),
              std::tuple(info->width, info->height, info->channels, info->orientation));
    const auto drawn = random_crop(random, *info);
    const auto theirs = testing::ask_huffman(one.decoder, jpeg, drawn, options, testing::huffman_stage::libjpeg);
    ASSERT_EQ(theirs.kind, stages::outcome_kind::ok) << theirs.reason;
    for (const auto by :
         {testing::huffman_stage::own, testing::huffman_stage::own_plain, testing::huffman_stage::libjpeg}) {
      const auto ours = testing::ask_huffman(one.decoder, pack, drawn, options, by);
      ASSERT_EQ(ours.kind, stages::outcome_kind::ok) << ours.reason;
      ASSERT_EQ(ours.row, theirs.row);
    }
    const auto whole = one.decoder.decode_whole(jpeg, options);
    const auto of_whole = one.decoder.decode_whole(pack, options);
    ASSERT_TRUE(whole && of_whole);
    ASSERT_EQ(of_whole->rgb, whole->rgb);
  });
}

// Whatever is done to a pack: the JPEG's pixels, as long as the damage is in rows that nobody wants, or a corrupt sample.
TEST(photo_pack, is_corrupt_where_rows_that_are_wanted_are_damaged) {
  testing::one_decoder one;
  int good = 0;
  int bad = 0;
  testing::for_each_seed(1500, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const bytes jpeg = random_photo(random, 90);
    bytes pack = pack_photo(jpeg);
    const auto info = pixels::peek(jpeg);
    ASSERT_TRUE(info);
    const auto drawn = random_crop(random, *info);
    const auto theirs = testing::ask_huffman(one.decoder, jpeg, drawn, {}, testing::huffman_stage::own);
    for (int i = between(random, 1, 3); i > 0; --i)
      pack[random() % pack.size()] ^= static_cast<std::byte>(1U << random() % 8);
    if (between(random, 0, 9) == 0) pack.resize(random() % pack.size() + 1);
    const auto by = seed % 2 == 0 ? testing::huffman_stage::own : testing::huffman_stage::own_plain;
    const auto ours = testing::ask_huffman(one.decoder, pack, drawn, {}, by);
    // Coded again for libjpeg, the same rows are looked at, and no others.
    const auto recoded = testing::ask_huffman(one.decoder, pack, drawn, {}, testing::huffman_stage::libjpeg);
    ASSERT_EQ(recoded.kind, ours.kind) << recoded.reason;
    ASSERT_EQ(recoded.reason, ours.reason);
    ASSERT_EQ(recoded.row, ours.row);
    if (ours.kind == stages::outcome_kind::ok) {
      ++good;
      ASSERT_EQ(ours.row, theirs.row);
    } else {
      ++bad;
    }
  });
  if (testing::seed_count(1500) < 200) return;
  EXPECT_GT(good, 0);
  EXPECT_GT(bad, 0);
}

// Where libjpeg reads rows that are coded again, they are coded with tables of ours, which have codes for all that a baseline file can hold.
TEST(photo_pack, is_coded_again_whatever_values_it_holds) {
  testing::one_decoder one;
  testing::for_each_seed(60, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    // Steps of 1 make the largest values there are.
    testing::rgb_picture picture = testing::make_texture(seed, between(random, 1, 70), between(random, 1, 70));
    for (std::uint8_t& each : picture.pixels) each = random() % 2 == 0 ? 0 : 255;
    testing::jpeg_options how;
    how.quality = 100;
    how.optimise = seed % 2 == 0;
    const bytes jpeg = testing::make_jpeg(picture, how);
    const auto drawn = testing::plain_box(0, 0, picture.width, picture.height);
    const auto theirs = testing::ask_huffman(one.decoder, jpeg, drawn, {}, testing::huffman_stage::libjpeg);
    const auto ours = testing::ask_huffman(one.decoder, pack_photo(jpeg), drawn, {}, testing::huffman_stage::libjpeg);
    ASSERT_EQ(ours.kind, stages::outcome_kind::ok) << ours.reason;
    ASSERT_EQ(ours.row, theirs.row);
  });
}

TEST(photo_pack, says_why_a_file_has_to_stay_a_jpeg) {
  const testing::rgb_picture picture = testing::make_texture(1, 40, 30);
  const bytes baseline = testing::make_jpeg(picture, {});
  EXPECT_EQ(why_not(baseline), "");
  EXPECT_EQ(why_not(testing::make_jpeg(picture, {.progressive = true})), "JPEG: progressive, which is not packed");
  EXPECT_EQ(why_not(testing::make_jpeg(picture, {.separate_scans = true})),
            "JPEG: more than one scan, which is not packed");
  EXPECT_EQ(why_not(testing::make_jpeg(picture, {.colours = testing::jpeg_colours::cmyk})),
            "JPEG: 4 components, which is not packed");
  EXPECT_EQ(why_not(bytes(100, std::byte{0x89})), "JPEG: no JPEG, which is not packed");
  EXPECT_EQ(why_not({}), "JPEG: no JPEG, which is not packed");
  EXPECT_EQ(why_not(bytes(photo_pack_jpeg_bytes_max + 1)), "JPEG: of 16777217 bytes; up to 16777216 are packed");
  const bytes cut(baseline.begin(), baseline.begin() + static_cast<std::ptrdiff_t>(baseline.size()) * 3 / 4);
  EXPECT_EQ(why_not(cut), "JPEG: its data ends too early");
  // A bit that no coder writes: the padding of the last byte, zeros and ones.
  bytes padded = baseline;
  std::string said;
  for (unsigned bit = 0; bit < 8 && said.find("padding") == std::string::npos; ++bit) {
    padded = baseline;
    padded[padded.size() - 3] ^= static_cast<std::byte>(1U << bit);
    said = why_not(padded);
    if (said.empty()) EXPECT_EQ(unpack_photo(pack_photo(padded)), padded);
  }
}

// Damage to a file is either packed as it is or refused, and never anything else.
TEST(photo_pack, packs_damaged_files_exactly_or_not_at_all) {
  int packed = 0;
  int refused = 0;
  testing::for_each_seed(2000, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    bytes jpeg = random_photo(random, 40);
    for (int i = between(random, 1, 3); i > 0; --i)
      jpeg[random() % jpeg.size()] ^= static_cast<std::byte>(1U << random() % 8);
    try {
      ASSERT_EQ(unpack_photo(pack_photo(jpeg)), jpeg);
      ++packed;
    } catch (const error& failure) {
      ASSERT_TRUE(failure.code() == errc::format || failure.code() == errc::unsupported) << failure.what();
      ++refused;
    }
  });
  if (testing::seed_count(2000) < 200) return;
  EXPECT_GT(packed, 0);
  EXPECT_GT(refused, 0);
}

TEST(photo_pack, finds_every_byte_that_has_changed) {
  std::mt19937_64 random(5);
  const bytes pack = pack_photo(random_photo(random, 24));
  const auto view = pixels::view_photo_pack(pack);
  ASSERT_TRUE(view);
  for (std::size_t at = 0; at < pack.size() - pixels::photo_row_slack_bytes; ++at) {
    bytes changed = pack;
    changed[at] ^= static_cast<std::byte>(1U << at % 8);
    EXPECT_THROW(static_cast<void>(unpack_photo(changed)), error) << at;
    changed.resize(at);
    EXPECT_THROW(static_cast<void>(unpack_photo(changed)), error) << at;
  }
}

// Rows with right sums and wrong streams can only be forged: all ways of reading refuse them alike, and stay in bounds.
TEST(photo_pack, reads_rows_alike_in_every_way_and_refuses_forged_ones_alike) {
  int refused = 0;
  testing::for_each_seed(400, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const int mcu_blocks = between(random, 1, 10);
    const auto mcus = static_cast<std::uint32_t>(between(random, 1, 20));
    const std::uint32_t blocks = mcus * static_cast<unsigned>(mcu_blocks);
    std::array<std::uint8_t, 10> component_of{};
    for (auto& each : component_of) each = static_cast<std::uint8_t>(random() % 3);
    std::vector<std::int16_t> values(64 * std::size_t{blocks});
    const int size = between(random, 0, 15);
    const auto one_of = static_cast<std::uint64_t>(between(random, 1, 20));
    for (auto& each : values) {
      if (random() % one_of == 0) each = static_cast<std::int16_t>(between(random, -(1 << size) + 1, (1 << size) - 1));
    }
    bytes written;
    pixels::write_photo_row(values.data(), blocks, component_of.data(), mcu_blocks, written);
    if (seed % 2 == 1) {
      for (int i = between(random, 1, 3); i > 0; --i)
        written[random() % written.size()] ^= static_cast<std::byte>(1U << random() % 8);
    }
    const std::size_t row_bytes = written.size();
    written.resize(row_bytes + pixels::photo_row_slack_bytes);

    std::vector<std::vector<std::int16_t>> seen;
    for (const pixels::photo_row_reading& reading : pixels::photo_row_readings()) {
      std::vector<std::uint8_t> scratch(pixels::photo_row::scratch_bytes(blocks));
      pixels::photo_row row{};
      row.set_scratch(scratch.data(), blocks);
      std::vector<std::int16_t> read(values.size());
      if (reading.begin(row, {reinterpret_cast<const std::uint8_t*>(written.data()), row_bytes})) {
        const std::uint32_t skipped = seed % 3 == 0 ? mcus / 2 : 0;
        row.skip(component_of.data(), mcu_blocks, skipped);
        std::int16_t* at = read.data() + 64 * std::size_t{skipped} * static_cast<unsigned>(mcu_blocks);
        for (std::uint32_t mcu = skipped; mcu < mcus; ++mcu) {
          std::array<std::int16_t*, 10> to{};
          for (int i = 0; i < mcu_blocks; ++i, at += 64) to[static_cast<std::size_t>(i)] = at;
          reading.decode(row, component_of.data(), mcu_blocks, to.data());
        }
        if (seed % 2 == 0) {
          const auto from = static_cast<std::ptrdiff_t>(64 * std::size_t{skipped} * static_cast<unsigned>(mcu_blocks));
          ASSERT_TRUE(std::equal(read.begin() + from, read.end(), values.begin() + from)) << reading.name;
        }
      } else {
        ASSERT_EQ(seed % 2, 1) << reading.name;
        ++refused;
        read.clear();
      }
      seen.push_back(std::move(read));
      ASSERT_EQ(seen.back(), seen.front()) << reading.name;
    }
  });
  if (testing::seed_count(400) >= 100) EXPECT_GT(refused, 0);
}

// The decoder in Python, which was written from docs/internals/photo-pack.md, reads what ours reads.
TEST(photo_pack, is_read_by_a_decoder_that_was_written_from_its_page) {
  const char* const sources = std::getenv("LEAT_SOURCES");
  if (sources == nullptr) GTEST_SKIP() << "LEAT_SOURCES is not set: ctest sets it to the sources";
  if (std::system("python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "no python3 with NumPy here";
  const testing::temporary_directory directory;
  const std::string in = (directory.path() / "a.fjpg").string();
  const std::string out = (directory.path() / "a.i16").string();
  testing::for_each_seed(12, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const bytes pack = pack_photo(random_photo(random));
    std::ofstream(in, std::ios::binary)
        .write(reinterpret_cast<const char*>(pack.data()), static_cast<std::streamsize>(pack.size()));
    const std::string command =
        std::string("python3 ") + sources + "/tests/pixels/photo_pack_reference.py " + in + " " + out;
    ASSERT_EQ(std::system(command.c_str()), 0);
    std::ifstream file(out, std::ios::binary);
    const std::string theirs{std::istreambuf_iterator<char>(file), {}};

    const auto view = pixels::view_photo_pack(pack);
    ASSERT_TRUE(view);
    const pixels::jpeg_head head = pixels::parse_jpeg_head(view->jpeg_head);
    std::vector<std::uint8_t> scratch(pixels::photo_row::scratch_bytes(head.row_blocks()));
    std::vector<std::int16_t> ours(64 * std::size_t{head.row_blocks()} * head.mcu_rows);
    std::int16_t* at = ours.data();
    for (std::uint32_t y = 0; y < head.mcu_rows; ++y) {
      pixels::photo_row row{};
      row.set_scratch(scratch.data(), head.row_blocks());
      const auto encoded = view->row(y);
      ASSERT_TRUE(pixels::photo_row_readings().front().begin(
          row, {reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size()}));
      for (std::uint32_t x = 0; x < head.mcu_columns; ++x) {
        std::array<std::int16_t*, 10> to{};
        for (int i = 0; i < head.blocks; ++i, at += 64) to[static_cast<std::size_t>(i)] = at;
        pixels::photo_row_readings().front().decode(row, head.blocks_component, head.blocks, to.data());
      }
    }
    ASSERT_EQ(theirs.size(), 2 * ours.size());
    ASSERT_EQ(std::memcmp(theirs.data(), ours.data(), theirs.size()), 0);
  });
}

TEST(photo_pack, crc32c_is_castagnoli_s) {
  // RFC 3720, B.4: 32 bytes of zeros, and of 0 to 31.
  bytes zeros(32);
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAU);
  for (std::size_t i = 0; i < zeros.size(); ++i) zeros[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(zeros), 0x46DD794EU);
}

}  // namespace
}  // namespace leat
