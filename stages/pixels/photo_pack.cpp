// Packing and unpacking photos, and the layout of a pack.
#include "base/crc32c.hpp"
#include "stages/pixels/jpeg_scan.hpp"
#include "stages/pixels/photo_pack_layout.hpp"
#include "stages/pixels/photo_rows.hpp"

#include <leat/error.hpp>
#include <leat/photo_pack.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace leat {
namespace pixels {
namespace {

constexpr std::size_t index_entry_bytes = 8;
constexpr std::size_t sum_at = 44;
// A JPEG has 65,535 pixels a side at most: so many rows and columns of MCUs.
constexpr std::uint32_t mcus_max = 8192;

void put32(std::byte* to, std::uint32_t value) noexcept {
  for (unsigned i = 0; i < 4; ++i) to[i] = static_cast<std::byte>(value >> 8 * i);
}

std::size_t bytes_before_rows(const photo_pack_head& head) noexcept {
  return photo_pack_head::bytes + head.head_bytes + head.tail_bytes + index_entry_bytes * std::size_t{head.mcu_rows};
}

// A fuzzer cannot guess checksums, and is to reach what lies behind them.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
constexpr bool sums_count = false;
#else
constexpr bool sums_count = true;
#endif

// The checksum of all bytes before the rows, except itself.
std::uint32_t sum_of_head(byte_span before_rows) {
  return crc32c(before_rows.first(sum_at)) ^ crc32c(before_rows.subspan(photo_pack_head::bytes));
}

stages::failure damaged(const std::string& how) { return stages::corrupt("photo pack: " + how); }

// Codes the rows again, behind what is in `to`.
void unpack_rows(const photo_pack_view& view, const jpeg_head& head, std::vector<std::byte>& to) {
  const std::uint32_t blocks = head.row_blocks();
  const auto scratch = std::make_unique_for_overwrite<std::uint8_t[]>(photo_row::scratch_bytes(blocks));
  const auto values = std::make_unique_for_overwrite<std::int16_t[]>(64 * std::size_t{blocks});
  photo_row row{};
  row.set_scratch(scratch.get(), blocks);
  const photo_row_reading& reading = photo_row_readings().front();
  jpeg_scan_encoder encoder(head, view.head.padded_by_ones, to);
  std::array<std::int16_t*, 10> places{};
  for (std::uint32_t y = 0; y < head.mcu_rows; ++y) {
    const byte_span bytes = view.row(y);
    if (bytes.empty() || !reading.begin(row, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()})) {
      throw error(errc::format, std::string("photo pack: row ") + std::to_string(y) + " of " +
                                    std::to_string(head.mcu_rows) + " is damaged");
    }
    std::int16_t* at = values.get();
    for (std::uint32_t x = 0; x < head.mcu_columns; ++x) {
      for (int i = 0; i < head.blocks; ++i, at += 64) places[static_cast<std::size_t>(i)] = at;
      reading.decode(row, head.blocks_component, head.blocks, places.data());
    }
    if (!encoder.encode_row(values.get())) {
      throw error(errc::format,
                  std::string("photo pack: row ") + std::to_string(y) + " has values that its JPEG has no codes for");
    }
    // Memory is taken for what the head says, and for no more than a row beyond it.
    if (to.size() > view.head.jpeg_bytes) {
      throw error(errc::format, "photo pack: what comes out is not the JPEG that went in");
    }
  }
  encoder.finish();
}

std::vector<std::byte> unpack(const photo_pack_view& view) {
  const jpeg_head head = parse_jpeg_head(view.jpeg_head);
  if (head.bytes != view.jpeg_head.size() || head.components != view.head.components ||
      head.blocks != view.head.mcu_blocks || head.mcu_columns != view.head.mcu_columns ||
      head.mcu_rows != view.head.mcu_rows) {
    throw error(errc::format, "photo pack: its head and its JPEG's head tell of two pictures");
  }
  std::vector<std::byte> jpeg;
  jpeg.reserve(view.head.jpeg_bytes + 64);
  jpeg.assign(view.jpeg_head.begin(), view.jpeg_head.end());
  unpack_rows(view, head, jpeg);
  jpeg.insert(jpeg.end(), view.jpeg_tail.begin(), view.jpeg_tail.end());
  if (jpeg.size() != view.head.jpeg_bytes || (sums_count && crc32c(jpeg) != view.head.jpeg_sum)) {
    throw error(errc::format, "photo pack: what comes out is not the JPEG that went in");
  }
  return jpeg;
}

std::vector<std::byte> pack(byte_span jpeg) {
  const jpeg_head from = parse_jpeg_head(jpeg);
  photo_pack_head head{.head_bytes = static_cast<std::uint32_t>(from.bytes),
                       .components = static_cast<std::uint8_t>(from.components),
                       .mcu_blocks = static_cast<std::uint8_t>(from.blocks),
                       .mcu_columns = from.mcu_columns,
                       .mcu_rows = from.mcu_rows,
                       .jpeg_bytes = static_cast<std::uint32_t>(jpeg.size()),
                       .jpeg_sum = crc32c(jpeg)};
  // A block has at least two codes. Checked before memory is taken for a size that may be false.
  const std::uint64_t blocks = std::uint64_t{from.row_blocks()} * from.mcu_rows;
  if (blocks > 4 * std::uint64_t{jpeg.size()}) throw error(errc::format, "JPEG: too short for its picture");
  jpeg_scan_decoder decoder(from, jpeg.subspan(from.bytes));
  const auto values = std::make_unique_for_overwrite<std::int16_t[]>(64 * std::size_t{from.row_blocks()});
  std::vector<std::byte> rows;
  rows.reserve(jpeg.size() + jpeg.size() / 2);
  std::vector<std::byte> index(index_entry_bytes * from.mcu_rows);
  for (std::uint32_t y = 0; y < from.mcu_rows; ++y) {
    const std::size_t before = rows.size();
    decoder.decode_row(values.get());
    write_photo_row(values.get(), from.row_blocks(), from.blocks_component, from.blocks, rows);
    put32(index.data() + index_entry_bytes * y, static_cast<std::uint32_t>(rows.size()));
    put32(index.data() + index_entry_bytes * y + 4, crc32c(std::span(rows).subspan(before)));
  }
  const byte_span tail = jpeg.subspan(from.bytes + decoder.finish());
  head.tail_bytes = static_cast<std::uint32_t>(tail.size());
  head.padded_by_ones = decoder.padded_by_ones();
  const std::size_t all = bytes_before_rows(head) + rows.size() + photo_row_slack_bytes;
  head.pack_bytes = static_cast<std::uint32_t>(all);

  std::vector<std::byte> made;
  made.reserve(all);
  const auto add = [&made](byte_span bytes) { made.insert(made.end(), bytes.begin(), bytes.end()); };
  add(as_bytes(head));
  add(jpeg.first(from.bytes));
  add(tail);
  add(index);
  put32(made.data() + sum_at, sum_of_head(made));
  add(rows);
  made.resize(all);
  return made;
}

}  // namespace

std::array<std::byte, photo_pack_head::bytes> as_bytes(const photo_pack_head& head) noexcept {
  std::array<std::byte, photo_pack_head::bytes> to{};
  std::memcpy(to.data(), photo_pack_head::magic.data(), photo_pack_head::magic.size());
  put32(to.data() + 8, head.version);
  put32(to.data() + 12, head.head_bytes);
  put32(to.data() + 16, head.tail_bytes);
  to[20] = std::byte{head.components};
  to[21] = std::byte{head.mcu_blocks};
  to[22] = std::byte{head.padded_by_ones};
  put32(to.data() + 24, head.mcu_columns);
  put32(to.data() + 28, head.mcu_rows);
  put32(to.data() + 32, head.jpeg_bytes);
  put32(to.data() + 36, head.jpeg_sum);
  put32(to.data() + 40, head.pack_bytes);
  return to;
}

stages::outcome<photo_pack_view> view_photo_pack(byte_span pack) {
  if (!begins_as_photo_pack(pack)) return damaged("it does not begin as one");
  if (pack.size() < photo_pack_head::bytes) return damaged("it ends inside its head");
  photo_pack_view view{.head = {.version = little32(pack, 8),
                                .head_bytes = little32(pack, 12),
                                .tail_bytes = little32(pack, 16),
                                .components = static_cast<std::uint8_t>(byte_at(pack, 20)),
                                .mcu_blocks = static_cast<std::uint8_t>(byte_at(pack, 21)),
                                .padded_by_ones = byte_at(pack, 22) == 1,
                                .mcu_columns = little32(pack, 24),
                                .mcu_rows = little32(pack, 28),
                                .jpeg_bytes = little32(pack, 32),
                                .jpeg_sum = little32(pack, 36),
                                .pack_bytes = little32(pack, 40)},
                       .jpeg_head = {},
                       .jpeg_tail = {},
                       .index = {},
                       .rows = {}};
  const photo_pack_head& head = view.head;
  if (head.version != photo_pack_head::version_known) {
    return stages::unsupported("photo pack of version " + std::to_string(head.version) + "; this leat reads version 1");
  }
  const std::uint64_t before = std::uint64_t{photo_pack_head::bytes} + head.head_bytes + head.tail_bytes +
                               index_entry_bytes * std::uint64_t{head.mcu_rows};
  if (head.pack_bytes != pack.size() || before + photo_row_slack_bytes > pack.size()) return damaged("it is cut off");
  if (sums_count && sum_of_head(pack.first(before)) != little32(pack, sum_at)) return damaged("its head is damaged");
  if ((head.components != 1 && head.components != 3) || head.mcu_blocks < head.components || head.mcu_blocks > 10 ||
      byte_at(pack, 22) > 1 || byte_at(pack, 23) != 0 || head.mcu_columns < 1 || head.mcu_columns > mcus_max ||
      head.mcu_rows < 1 || head.mcu_rows > mcus_max || head.jpeg_bytes > photo_pack_jpeg_bytes_max) {
    return damaged("a head that cannot be");
  }
  view.jpeg_head = pack.subspan(photo_pack_head::bytes, head.head_bytes);
  view.jpeg_tail = pack.subspan(photo_pack_head::bytes + head.head_bytes, head.tail_bytes);
  view.index = pack.subspan(before - index_entry_bytes * head.mcu_rows, index_entry_bytes * head.mcu_rows);
  view.rows = pack.subspan(before);
  // The least bytes of the rows are checked: readers take memory for a row's blocks by the head.
  std::uint32_t end = 0;
  for (std::uint32_t y = 0; y < head.mcu_rows; ++y) {
    const std::uint32_t next = little32(view.index, index_entry_bytes * y);
    if (next < end || next - end < view.row_blocks()) return damaged("rows that are too short for their blocks");
    end = next;
  }
  if (end != view.rows.size() - photo_row_slack_bytes) return damaged("rows that do not end where the pack does");
  return view;
}

std::uint32_t photo_pack_view::row_end(std::uint32_t number) const noexcept {
  return little32(index, index_entry_bytes * number);
}

byte_span photo_pack_view::row(std::uint32_t number) const noexcept {
  const std::uint32_t begin = number == 0 ? 0 : row_end(number - 1);
  const byte_span bytes = rows.subspan(begin, row_end(number) - begin);
  return !sums_count || crc32c(bytes) == little32(index, index_entry_bytes * number + 4) ? bytes : byte_span();
}

}  // namespace pixels

std::vector<std::byte> pack_photo(std::span<const std::byte> jpeg, bool verify) {
  if (jpeg.size() > photo_pack_jpeg_bytes_max) {
    throw error(errc::unsupported, std::string("JPEG: of ") + std::to_string(jpeg.size()) + " bytes; up to " +
                                       std::to_string(photo_pack_jpeg_bytes_max) + " are packed");
  }
  std::vector<std::byte> made = pixels::pack(jpeg);
  if (!verify) return made;
  bool same = false;
  try {
    same = std::ranges::equal(unpack_photo(made), jpeg);
  } catch (const error&) {
    // Reported below: what the coder wrote cannot be unpacked.
  }
  if (!same)
    throw error(errc::unsupported, "JPEG: coded in a way that coding it again would not repeat, which is not packed");
  return made;
}

std::vector<std::byte> unpack_photo(std::span<const std::byte> pack) {
  const auto view = pixels::view_photo_pack(pack);
  if (!view) {
    throw error(view.kind() == stages::outcome_kind::unsupported ? errc::unsupported : errc::format, view.reason());
  }
  return pixels::unpack(*view);
}

bool is_photo_pack(std::span<const std::byte> bytes) noexcept { return pixels::begins_as_photo_pack(bytes); }

}  // namespace leat
