// Photo packs on the device: the kernels' own code, its threads in three orders, beside the host's decoder, bit by bit.
#include "stages/device/decode_photos.hpp"

#include "base/crc32c.hpp"
#include "stages/device/photo_plan.hpp"
#include "stages/pixels/decimation.hpp"
#include "stages/pixels/jpeg_reader.hpp"
#include "stages/pixels/photo_rows.hpp"
#include "tests/device/emulated_photos.hpp"
#include "tests/pixels/random_jpeg.hpp"
#include "tests/support/seeds.hpp"

#include <leat/photo_pack.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

using testing::between;
using testing::thread_order;
using bytes = std::vector<std::byte>;

struct wanted_row {
  bytes pack;
  pixels::geometry drawn;
  pixels::decode_options options;
};

/// A batch as the device gets it, and as the host makes it.
class both_ways {
 public:
  both_ways(int height, int width) : height_(height), width_(width) {}

  [[nodiscard]] std::size_t row_bytes() const {
    return static_cast<std::size_t>(height_) * static_cast<std::size_t>(width_) * 3;
  }

  /// The row on the host; and its slot.
  void add(const wanted_row& row) {
    const std::size_t at = by_host.size();
    by_host.resize(at + row_bytes());
    const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
    const auto decoded = decoder_.decode(row.pack, row.drawn, how, row.options,
                                         reinterpret_cast<std::byte*>(by_host.data() + at), nullptr);
    ASSERT_TRUE(decoded) << decoded.reason();
    const auto what = row.options.exif_orientation ? pixels::look_for::orientation : pixels::look_for::size;
    const auto info = pixels::peek(row.pack, what);
    ASSERT_TRUE(info);
    const std::optional<pixels::photo_layout> made = layout_of(row.pack, *info, decoded->decimation);
    ASSERT_TRUE(made.has_value());
    const std::optional<photo_plan> plan = plan_photo(*made, *info, row.drawn, decoded->decimation);
    ASSERT_TRUE(plan.has_value());
    slots.resize(slots.size() + slot_bytes);
    ASSERT_TRUE(write_photo_slot(*plan, made->pack, std::span(slots).last(slot_bytes)));
    plans.push_back(*plan);
    decimations[decoded->decimation] += 1;
  }

  pixels::picture_decoder& decoder() { return decoder_; }

  std::optional<pixels::photo_layout> layout_of(const bytes& pack, const pixels::picture_info& info, int decimation) {
    arena_.begin();
    std::optional<pixels::photo_layout> made;
    if (reader_.open(pack, info, {})) made = reader_.layout(decimation);
    arena_.end();
    return made;
  }

  /// The batch with scratch of exactly its size, so that AddressSanitizer sees who goes beyond.
  photo_batch batch() {
    std::uint64_t scratch_bytes = 16;
    for (const photo_plan& plan : plans) scratch_bytes = std::max(scratch_bytes, plan.scratch_bytes);
    scratch_ = std::make_unique<std::uint8_t[]>(scratch_bytes * plans.size());
    std::fill_n(scratch_.get(), scratch_bytes * plans.size(), std::uint8_t{0xA5});
    by_device.assign(plans.size() * row_bytes(), 0xA5);
    damaged.assign(plans.size(), 0);
    return {.slots = reinterpret_cast<const std::uint8_t*>(slots.data()),
            .slot_bytes = slot_bytes,
            .scratch = scratch_.get(),
            .scratch_bytes = scratch_bytes,
            .to = by_device.data(),
            .damaged = damaged.data(),
            .photo_count = static_cast<std::uint32_t>(plans.size()),
            .out_height = static_cast<std::uint32_t>(height_),
            .out_width = static_cast<std::uint32_t>(width_)};
  }

  void expect_the_same() {
    for (const thread_order order : {thread_order::ascending, thread_order::descending, thread_order::shuffled}) {
      testing::emulate_photos(batch(), order);
      ASSERT_TRUE(by_device == by_host) << "order " << static_cast<int>(order) << ", first in row " << first_wrong();
      ASSERT_EQ(std::count(damaged.begin(), damaged.end(), 0U), static_cast<std::ptrdiff_t>(damaged.size()));
    }
    photo_batch twin = batch();
    decode_photos_kernel.run_on_host(&twin);
    ASSERT_TRUE(by_device == by_host) << "the twin, first in row " << first_wrong();
    twin = batch();
    twin.is_planar = true;
    decode_photos(twin);
    ASSERT_TRUE(interleaved() == by_host);
  }

  [[nodiscard]] std::size_t first_wrong() const {
    const auto at = std::mismatch(by_device.begin(), by_device.end(), by_host.begin()).first;
    return static_cast<std::size_t>(at - by_device.begin()) / row_bytes();
  }

  static constexpr std::size_t slot_bytes = 65536;
  std::vector<std::byte> slots;
  std::vector<photo_plan> plans;
  std::vector<std::uint8_t> by_host;
  std::vector<std::uint8_t> by_device;
  std::vector<std::uint32_t> damaged;
  int decimations[9] = {};

 private:
  // What the device has made as planes.
  [[nodiscard]] std::vector<std::uint8_t> interleaved() const {
    std::vector<std::uint8_t> made;
    const std::size_t pixels = row_bytes() / 3;
    for (std::size_t row = 0; row < plans.size(); ++row) {
      for (std::size_t i = 0; i < 3 * pixels; ++i) {
        made.push_back(by_device[row * 3 * pixels + i % 3 * pixels + i / 3]);
      }
    }
    return made;
  }

  int height_;
  int width_;
  pixels::scratch_budget budget_{std::size_t{64} << 20};
  pixels::picture_decoder decoder_{budget_};
  pixels::scratch_arena arena_{budget_};
  pixels::jpeg_reader reader_{arena_};
  std::unique_ptr<std::uint8_t[]> scratch_;
};

struct sampling {
  testing::jpeg_colours colours;
  int h;
  int v;
};
constexpr testing::jpeg_colours ycbcr = testing::jpeg_colours::ycbcr;
constexpr sampling samplings[] = {{ycbcr, 1, 1},
                                  {ycbcr, 2, 1},
                                  {ycbcr, 2, 2},
                                  {ycbcr, 1, 2},
                                  {ycbcr, 4, 1},
                                  {ycbcr, 1, 4},
                                  {ycbcr, 4, 2},
                                  {ycbcr, 2, 4},
                                  {ycbcr, 3, 1},
                                  {testing::jpeg_colours::rgb, 1, 1},
                                  {testing::jpeg_colours::rgb, 2, 2},
                                  {testing::jpeg_colours::grey, 1, 1},
                                  {testing::jpeg_colours::grey, 2, 2}};

pixels::geometry some_geometry(std::mt19937_64& random, int width, int height, int out_width, int out_height) {
  const int w = between(random, 1, width);
  const int h = between(random, 1, height);
  const filter filters[] = {filter::bilinear, filter::bilinear, filter::bicubic, filter::nearest};
  pixels::geometry drawn = testing::scaled_box({between(random, 0, width - w), between(random, 0, height - h), w, h},
                                               out_width, out_height, filters[between(random, 0, 3)]);
  if (between(random, 0, 3) == 0) drawn.box = {0, 0, width, height};
  if (between(random, 0, 2) == 0) {  // A window of what is scaled, which may lie outside.
    drawn.scaled_width = between(random, 1, 2 * out_width);
    drawn.scaled_height = between(random, 1, 2 * out_height);
    drawn.crop_x = between(random, -out_width, out_width);
    drawn.crop_y = between(random, -out_height, out_height);
  }
  drawn.flip = between(random, 0, 1) == 1;
  return drawn;
}

std::pair<int, int> upright_size(const bytes& pack, bool exif_orientation) {
  const auto info = pixels::peek(pack, exif_orientation ? pixels::look_for::orientation : pixels::look_for::size);
  EXPECT_TRUE(info);
  return info->orientation >= 5 ? std::pair(info->height, info->width) : std::pair(info->width, info->height);
}

// Whole pictures, to a size such that each decimation is chosen.
TEST(decode_photos, gives_the_hosts_bits_for_every_sampling_orientation_and_decimation) {
  std::mt19937_64 random(1);
  for (const sampling& each : samplings) {
    both_ways both(3, 4);
    for (int decimation = 1; decimation <= 8; decimation *= 2) {
      for (int exif = 1; exif <= 8; ++exif) {
        const int width = between(random, 8 * decimation, 16 * decimation - 1);
        const int height = between(random, 8 * decimation, 16 * decimation - 1);
        const bytes jpeg =
            testing::make_jpeg(testing::make_texture(random(), width, height),
                               {.colours = each.colours, .h = each.h, .v = each.v, .quality = 90, .orientation = exif});
        wanted_row row{pack_photo(jpeg), {}, {.exif_orientation = true, .decimate = true}};
        const auto [w, h] = upright_size(row.pack, true);
        row.drawn = testing::scaled_box({0, 0, w, h}, w / decimation, h / decimation, filter::bilinear);
        row.drawn.out_width = 4;
        row.drawn.out_height = 3;
        row.drawn.crop_x = between(random, 0, w / decimation - 4);
        row.drawn.crop_y = between(random, 0, h / decimation - 3);
        ASSERT_NO_FATAL_FAILURE(both.add(row));
      }
    }
    for (int decimation = 1; decimation <= 8; decimation *= 2) EXPECT_EQ(both.decimations[decimation], 8);
    ASSERT_NO_FATAL_FAILURE(both.expect_the_same()) << each.h << " x " << each.v;
  }
}

// A few pixels, where edges meet; qualities from 1 to 100; crops, windows outside the picture, filters, mirrored rows.
TEST(decode_photos, gives_the_hosts_bits_for_any_size_quality_and_crop) {
  testing::for_each_seed(60, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const int out_width = between(random, 1, 20);
    const int out_height = between(random, 1, 20);
    both_ways both(out_height, out_width);
    for (int i = 0; i < 6; ++i) {
      const int side_max = i % 2 == 0 ? 20 : 130;
      const int width = between(random, 1, side_max);
      const int height = between(random, 1, side_max);
      const sampling& each = samplings[random() % std::size(samplings)];
      const bytes jpeg = testing::make_jpeg(
          between(random, 0, 2) == 0 ? testing::make_noise(random, width, height)
                                     : testing::make_texture(random(), width, height),
          {.colours = each.colours,
           .h = each.h,
           .v = each.v,
           .quality = between(random, 1, 100),
           .restart_interval = between(random, 0, 2) == 0 ? static_cast<unsigned>(between(random, 1, 9)) : 0,
           .orientation = between(random, 0, 8)});
      wanted_row row{pack_photo(jpeg),
                     {},
                     {.exif_orientation = between(random, 0, 1) == 1, .decimate = between(random, 0, 3) != 0}};
      const auto [w, h] = upright_size(row.pack, row.options.exif_orientation);
      row.drawn = some_geometry(random, w, h, out_width, out_height);
      ASSERT_NO_FATAL_FAILURE(both.add(row));
    }
    ASSERT_NO_FATAL_FAILURE(both.expect_the_same());
  });
}

TEST(decode_photos, takes_the_rows_and_columns_of_the_crop_alone) {
  both_ways whole(16, 16);
  both_ways part(16, 16);
  const bytes pack = pack_photo(testing::make_jpeg(testing::make_texture(3, 320, 320), {.h = 2, .v = 2}));
  ASSERT_NO_FATAL_FAILURE(part.add({pack, testing::plain_box(100, 150, 16, 16), {}}));
  ASSERT_NO_FATAL_FAILURE(whole.add({pack, testing::scaled_box({0, 0, 320, 320}, 16, 16, filter::nearest), {}}));
  EXPECT_EQ(whole.plans[0].end_row - whole.plans[0].first_row, 20U);
  EXPECT_EQ(part.plans[0].end_row - part.plans[0].first_row, 2U);  // lines 149 to 166, of 16 each
  EXPECT_EQ(part.plans[0].on_device.end_column - part.plans[0].on_device.first_column, 2U);
  EXPECT_LT(part.plans[0].scratch_bytes * 50, whole.plans[0].scratch_bytes);
  ASSERT_NO_FATAL_FAILURE(whole.expect_the_same());
  ASSERT_NO_FATAL_FAILURE(part.expect_the_same());
}

TEST(decode_photos, leaves_pixels_as_they_are) {
  both_ways both(5, 7);
  const bytes pack = pack_photo(testing::make_jpeg(testing::make_texture(3, 50, 40), {.h = 2, .v = 2}));
  const wanted_row row{pack, testing::scaled_box({0, 0, 50, 40}, 7, 5, filter::bilinear), {}};
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(both.add(row));
  const std::span<std::byte> slot = std::span(both.slots).subspan(both_ways::slot_bytes, both_ways::slot_bytes);
  std::fill(slot.begin(), slot.end(), std::byte{0xFF});
  write_pixels_slot(slot);
  for (std::size_t i = 0; i < both.row_bytes(); ++i) {
    both.by_host[both.row_bytes() + i] = static_cast<std::uint8_t>(i);
    slot[photo_slot_bytes + i] = static_cast<std::byte>(i);
  }
  ASSERT_NO_FATAL_FAILURE(both.expect_the_same());
}

// Each is there for something that half of a warp would otherwise see too early.
TEST(decode_photos, differs_without_any_of_its_barriers) {
  both_ways both(8, 8);
  std::mt19937_64 random(5);
  for (int i = 0; i < 2; ++i) {
    wanted_row row{pack_photo(testing::make_jpeg(testing::make_texture(random(), 90, 40), {.h = 2, .v = 2})),
                   testing::scaled_box({0, 0, 90, 40}, 8, 8, filter::bilinear),
                   {.decimate = i == 1}};
    ASSERT_NO_FATAL_FAILURE(both.add(row));
  }
  ASSERT_NO_FATAL_FAILURE(both.expect_the_same());
  const std::set<int> lines = testing::barriers_passed();
  EXPECT_EQ(lines.size(), 3U);
  for (const int line : lines) {
    for (const thread_order order : {thread_order::ascending, thread_order::descending, thread_order::shuffled}) {
      testing::emulate_photos(both.batch(), order, line);
      EXPECT_FALSE(both.by_device == both.by_host) << "without the barrier of line " << line;
    }
  }
}

// Its sum is wrong, or its streams contradict one another: the host's decoder has its say then.
TEST(decode_photos, takes_no_pack_with_a_damaged_row_that_it_needs_and_none_without_room) {
  both_ways both(64, 64);
  bytes pack = pack_photo(testing::make_jpeg(testing::make_texture(7, 64, 64), {.h = 1, .v = 1}));
  const auto info = pixels::peek(pack);
  const auto write = [&](int y, int height, std::size_t room) {
    const auto how = both.layout_of(pack, *info, 1);
    const auto plan = plan_photo(*how, *info, testing::plain_box(0, y, 64, height), 1);
    std::vector<std::byte> slot(room);
    return write_photo_slot(*plan, how->pack, slot);
  };
  EXPECT_TRUE(write(0, 64, 65536));
  std::size_t least = 0;
  while (!write(0, 64, least)) ++least;
  EXPECT_GT(least, photo_slot_bytes + 64 * 4 * 2 * 3);
  EXPECT_TRUE(write(0, 64, least + 100));

  const auto seen = pixels::view_photo_pack(pack);
  ASSERT_TRUE(seen);
  const std::size_t rows_at = pack.size() - seen->rows.size();
  const std::size_t begin = rows_at + seen->row_end(4);
  const std::size_t end = rows_at + seen->row_end(5);
  pack[begin + 5] ^= std::byte{16};
  EXPECT_FALSE(write(0, 64, 65536));
  EXPECT_TRUE(write(0, 39, 65536));
  EXPECT_TRUE(write(49, 15, 65536));

  // With the sums that belong to it, which only a forger makes.
  const std::size_t index = rows_at - 8 * seen->head.mcu_rows;
  const auto put32 = [&](std::size_t at, std::uint32_t value) { std::memcpy(pack.data() + at, &value, 4); };
  put32(index + 8 * 5 + 4, crc32c(std::span(pack).subspan(begin, end - begin)));
  put32(44, crc32c(std::span(pack).first(44)) ^ crc32c(std::span(pack).subspan(48, rows_at - 48)));
  ASSERT_TRUE(pixels::view_photo_pack(pack));
  EXPECT_FALSE(write(0, 64, 65536));
  EXPECT_TRUE(write(0, 39, 65536));
}

// A row that the host would read is looked at, though the device may have no use for it.
TEST(decode_photos, takes_no_pack_that_is_corrupt_on_the_host) {
  int good = 0;
  int bad = 0;
  testing::for_each_seed(300, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    both_ways both(6, 6);
    const int width = between(random, 1, 100);
    const int height = between(random, 1, 100);
    const sampling& each = samplings[random() % std::size(samplings)];
    bytes pack = pack_photo(testing::make_jpeg(testing::make_texture(random(), width, height),
                                               {.colours = each.colours, .h = each.h, .v = each.v}));
    const auto seen = pixels::view_photo_pack(pack);
    const auto info = pixels::peek(pack, pixels::look_for::size);
    ASSERT_TRUE(seen && info);
    const std::uint32_t row = static_cast<std::uint32_t>(random() % seen->head.mcu_rows);
    pack[pack.size() - seen->rows.size() + seen->row_end(row) - 1] ^= std::byte{1};
    const pixels::geometry drawn = some_geometry(random, width, height, 6, 6);
    const pixels::decode_options options{.decimate = seed % 2 == 0};
    const int by = options.decimate ? pixels::decimation_of(drawn) : 1;
    const auto how = both.layout_of(pack, *info, by);
    ASSERT_TRUE(how.has_value());
    const auto plan = plan_photo(*how, *info, drawn, by);
    ASSERT_TRUE(plan.has_value());
    std::vector<std::byte> slot(both_ways::slot_bytes);
    const bool is_left = write_photo_slot(*plan, how->pack, slot);
    const auto u8 = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
    std::vector<std::byte> made(both.row_bytes());
    const auto decoded = both.decoder().decode(pack, drawn, u8, options, made.data(), nullptr);
    if (is_left) ASSERT_TRUE(decoded) << decoded.reason();
    (decoded ? good : bad) += 1;
  });
  EXPECT_GT(good, 0);
  EXPECT_GT(bad, 0);
}

// Should such rows come to the device all the same: it says of each what the host says, and looks at nothing but what it was given
// (AddressSanitizer).
TEST(decode_photos, flags_the_rows_that_the_host_calls_damaged_and_stays_in_bounds) {
  int good = 0;
  int bad = 0;
  testing::for_each_seed(40, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    both_ways both(4, 4);
    const int width = between(random, 1, 100);
    const int height = between(random, 1, 40);
    const sampling& each = samplings[random() % std::size(samplings)];
    const bytes jpeg = testing::make_jpeg(between(random, 0, 1) == 0 ? testing::make_noise(random, width, height)
                                                                     : testing::make_texture(random(), width, height),
                                          {.colours = each.colours, .h = each.h, .v = each.v, .quality = 95});
    ASSERT_NO_FATAL_FAILURE(both.add({pack_photo(jpeg),
                                      testing::scaled_box({0, 0, width, height}, 4, 4, filter::bilinear),
                                      {.decimate = between(random, 0, 1) == 1}}));
    photo_slot head;
    std::memcpy(&head, both.slots.data(), sizeof head);
    std::vector<std::uint32_t> ends(head.row_count);
    std::memcpy(ends.data(), both.slots.data() + head.row_ends, 4 * ends.size());
    for (int i = 0; i < 20; ++i) {
      const std::size_t number = random() % ends.size();
      const std::size_t begin = number == 0 ? 0 : ends[number - 1];
      const std::byte* const rows = both.slots.data() + head.rows;
      std::vector<std::byte> forged(rows + begin, rows + ends[number]);
      for (int changes = between(random, 1, 3); changes > 0; --changes) {
        const std::size_t reach = between(random, 0, 1) == 0 ? std::min<std::size_t>(forged.size(), 12) : forged.size();
        forged[random() % reach] ^= static_cast<std::byte>(1U << random() % 8);
      }
      if (between(random, 0, 5) == 0) forged.resize(random() % forged.size() + 1);
      // A slot that ends with this row, and has no other.
      photo_slot alone = head;
      alone.rows = head.row_ends + 4;
      alone.row_count = 1;
      const std::size_t slot_bytes = alone.rows + forged.size();
      const auto slot = std::make_unique<std::byte[]>(slot_bytes);
      std::memcpy(slot.get(), both.slots.data(), head.row_ends);
      std::memcpy(slot.get(), &alone, sizeof alone);
      const auto end = static_cast<std::uint32_t>(forged.size());
      std::memcpy(slot.get() + alone.row_ends, &end, 4);
      std::memcpy(slot.get() + alone.rows, forged.data(), forged.size());
      photo_batch batch = both.batch();
      batch.slots = reinterpret_cast<const std::uint8_t*>(slot.get());
      testing::emulate_photos(batch, static_cast<thread_order>(i % 3));

      forged.resize(forged.size() + pixels::photo_row_slack_bytes);
      const std::span row(reinterpret_cast<const std::uint8_t*>(forged.data()), end);
      const std::uint32_t blocks = head.photo.row_blocks;
      std::vector<std::uint8_t> memory(pixels::photo_row::scratch_bytes(blocks));
      pixels::photo_row by_host{};
      by_host.set_scratch(memory.data(), blocks);
      const bool is_good = pixels::photo_row_readings().back().begin(by_host, row);
      ASSERT_EQ(both.damaged[0], is_good ? 0U : 1U);
      ASSERT_EQ(pixels::photo_row_is_sound(row, blocks), is_good);
      (is_good ? good : bad) += 1;
    }
  });
  EXPECT_GT(good, 0);
  EXPECT_GT(bad, 0);
}

}  // namespace
}  // namespace leat::stages
