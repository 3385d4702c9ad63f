#include "stages/device/photo_plan.hpp"

#include "stages/device/alignment.hpp"
#include "stages/pixels/decimation.hpp"
#include "stages/pixels/orientation.hpp"
#include "stages/pixels/photo_rows.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <type_traits>

namespace leat::stages {
namespace {

static_assert(std::is_trivially_copyable_v<photo_slot> && std::is_standard_layout_v<photo_slot>,
              "it is copied to a device by bytes");

upsampling as_on_device(pixels::upsampling_kind how) noexcept {
  switch (how) {
    case pixels::upsampling_kind::h2v1_fancy:
      return upsampling::h2v1;
    case pixels::upsampling_kind::h2v2_fancy:
      return upsampling::h2v2;
    case pixels::upsampling_kind::h1v2_fancy:
      return upsampling::h1v2;
    default:
      return upsampling::replicated;
  }
}

struct mcu_range {
  std::uint32_t first;
  std::uint32_t end;
};

// MCUs that have a part in pixels [from, to), and in one pixel more on either side, at which fancy upsampling may look.
mcu_range columns_of(const pixels::photo_layout& how, const pixels::rectangle& stored) noexcept {
  const int end = std::min(stored.x + stored.width + 1, how.width);
  return {static_cast<std::uint32_t>(std::max(stored.x - 1, 0) / how.mcu_width),
          static_cast<std::uint32_t>((end - 1) / how.mcu_width + 1)};
}

// The same, and all rows that the host's decoder reads: damage in one of them makes the sample corrupt there.
mcu_range rows_of(const pixels::photo_layout& how, const pixels::rectangle& stored) noexcept {
  const int lines = how.mcu_height * how.rows_together;
  const int first = std::max(stored.y - 1, 0) / lines;
  const int last = (stored.y + stored.height - 1 + how.group_lines) / lines;
  const auto together = static_cast<std::uint32_t>(how.rows_together);
  return {static_cast<std::uint32_t>(first) * together,
          std::min((static_cast<std::uint32_t>(last) + 1) * together, how.pack.head.mcu_rows)};
}

// Samples of the MCUs that are transformed. Returns where they end.
std::uint64_t place_planes(const pixels::photo_layout& how, const mcu_range& columns, const mcu_range& rows,
                           photo_on_device& to) {
  std::uint64_t bytes = 0;
  to.plane_count = static_cast<std::uint8_t>(how.component_count);
  to.is_ycbcr = how.is_ycbcr;
  to.mcu_blocks = 0;
  for (std::uint8_t i = 0; i < to.plane_count; ++i) {
    const pixels::photo_layout::component& from = how.components[i];
    photo_plane& plane = to.plane[i];
    const int across = from.across * from.side;
    const int down = from.down * from.side;
    plane.at = bytes;
    plane.stride = (columns.end - columns.first) * static_cast<std::uint32_t>(across);
    plane.left = static_cast<std::int32_t>(columns.first) * across;
    plane.top = static_cast<std::int32_t>(rows.first) * down;
    plane.width = from.width;
    plane.height = from.height;
    plane.across = static_cast<std::uint8_t>(from.across);
    plane.down = static_cast<std::uint8_t>(from.down);
    plane.side = static_cast<std::uint8_t>(from.side);
    plane.how = as_on_device(from.how);
    plane.expand_x = static_cast<std::uint8_t>(from.expand_x);
    plane.expand_y = static_cast<std::uint8_t>(from.expand_y);
    std::copy(from.quantisation.begin(), from.quantisation.end(), plane.quantisation);
    bytes += device_aligned(std::uint64_t{plane.stride} * (rows.end - rows.first) * static_cast<std::uint32_t>(down));
    for (int y = 0; y < from.down; ++y) {
      for (int x = 0; x < from.across; ++x, ++to.mcu_blocks) {
        to.block_plane[to.mcu_blocks] = i;
        to.block_x[to.mcu_blocks] = static_cast<std::uint8_t>(x);
        to.block_y[to.mcu_blocks] = static_cast<std::uint8_t>(y);
      }
    }
  }
  return bytes;
}

// What is put into a slot, one piece after the other.
class slot_writer {
 public:
  explicit slot_writer(std::span<std::byte> slot) noexcept : slot_(slot) {}

  // Null where there is no room. T's alignment is that of the piece.
  template <class T>
  T* take(std::size_t count) noexcept {
    const std::size_t begin = (at_ + alignof(T) - 1) / alignof(T) * alignof(T);
    if (begin > slot_.size() || count > (slot_.size() - begin) / sizeof(T)) return nullptr;
    at_ = begin + count * sizeof(T);
    return reinterpret_cast<T*>(slot_.data() + begin);
  }
  [[nodiscard]] std::uint32_t at() const noexcept { return static_cast<std::uint32_t>(at_); }
  void go_back_to(std::size_t at) noexcept { at_ = at; }

 private:
  std::span<std::byte> slot_;
  std::size_t at_ = 0;
};

//   tables   where the slot's begin
bool write_table(const pixels::axis& from, photo_axis& axis, std::uint32_t tables, slot_writer& to) noexcept {
  const int taps_max = pixels::needs_of(from).taps_max;
  const auto count = static_cast<std::size_t>(from.count);
  pixels::axis_table table;
  table.count = from.count;
  table.taps_max = taps_max;
  table.first = to.take<std::int32_t>(count);
  table.taps = to.take<std::int32_t>(count);
  table.weights = to.take<std::int32_t>(count * static_cast<std::size_t>(taps_max));
  const std::size_t end = to.at();
  auto* const exact = to.take<double>(static_cast<std::size_t>(taps_max));
  if (table.first == nullptr || table.taps == nullptr || table.weights == nullptr || exact == nullptr) return false;
  table.fill(from, exact);
  to.go_back_to(end);
  axis.table = (static_cast<std::uint32_t>(end) - tables) / 4 -
               static_cast<std::uint32_t>(count * (2 + static_cast<std::size_t>(taps_max)));
  axis.taps_max = taps_max;
  return true;
}

// All but the planes.
//   width, height   of the stored picture, decimated
//   stored          set to the region as it is stored; of no width where the row is padding alone
photo_plan plan_region(int width, int height, const pixels::picture_info& info, const pixels::geometry& drawn,
                       int decimation, pixels::rectangle& stored) {
  photo_plan plan;
  photo_on_device& to = plan.on_device;
  const pixels::resampler resampled(drawn, pixels::decimated_by(decimation, info));
  const pixels::rectangle& upright = resampled.region();
  to.flip = drawn.flip;
  to.down_first = pixels::goes_down_first(drawn);
  stored = {};
  if (upright.width == 0) return plan;
  const pixels::orientation turn(info.orientation);
  stored = turn.stored(upright, width, height);
  to.mirrored = turn.mirrored;
  to.upended = turn.upended;
  to.transposed = turn.transposed;
  to.left = stored.x;
  to.top = stored.y;
  to.stored_width = stored.width;
  to.stored_height = stored.height;
  to.width = upright.width;
  to.height = upright.height;
  plan.across = resampled.horizontal();
  plan.down = resampled.vertical();
  to.across = {.table = 0, .taps_max = 0, .count = plan.across.count, .at = resampled.at_x()};
  to.down = {.table = 0, .taps_max = 0, .count = plan.down.count, .at = resampled.at_y()};
  return plan;
}

// What comes behind the planes. False where it is too much.
bool place_pixels(std::uint64_t planes_bytes, photo_plan& plan) noexcept {
  photo_on_device& to = plan.on_device;
  const auto height = static_cast<std::uint64_t>(to.height);
  const auto width = static_cast<std::uint64_t>(to.width);
  to.pixels = planes_bytes;
  to.lines = to.pixels + device_aligned(3 * height * width);
  const std::uint64_t after_first_pass = to.down_first ? static_cast<std::uint64_t>(plan.down.count) * width
                                                       : height * static_cast<std::uint64_t>(plan.across.count);
  plan.scratch_bytes = to.lines + device_aligned(3 * after_first_pass);
  return plan.scratch_bytes <= photo_scratch_bytes_max;
}

// A slot of which the tables are written, and not its beginning yet.
struct slot_begun {
  photo_slot* head;
  carried_pack* carried;
  photo_slot made;
};

// Nothing where the slot is too small.
std::optional<slot_begun> begin_slot(const photo_plan& plan, bool has_tables, slot_writer& to) noexcept {
  auto* const head = to.take<photo_slot>(1);
  if (head == nullptr) return std::nullopt;
  to.go_back_to(photo_slot_bytes);
  auto* const carried = to.take<carried_pack>(1);
  if (carried == nullptr) return std::nullopt;
  *carried = {};
  slot_begun slot{head, carried, {}};
  slot.made.is_pack = 1;
  slot.made.tables = to.at();
  slot.made.photo = plan.on_device;
  if (has_tables && !(write_table(plan.across, slot.made.photo.across, slot.made.tables, to) &&
                      write_table(plan.down, slot.made.photo.down, slot.made.tables, to))) {
    return std::nullopt;
  }
  slot.made.row_ends = to.at();
  return slot;
}

void finish(const slot_begun& slot) noexcept { std::memcpy(slot.head, &slot.made, sizeof slot.made); }

}  // namespace

std::optional<photo_plan> plan_photo(const pixels::photo_layout& how, const pixels::picture_info& info,
                                     const pixels::geometry& drawn, int decimation) {
  pixels::rectangle stored;
  photo_plan plan = plan_region(how.width, how.height, info, drawn, decimation, stored);
  photo_on_device& to = plan.on_device;
  to.row_blocks = how.pack.row_blocks();
  if (stored.width == 0) return plan;
  const mcu_range columns = columns_of(how, stored);
  const mcu_range rows = rows_of(how, stored);
  to.first_column = columns.first;
  to.end_column = columns.end;
  plan.first_row = rows.first;
  plan.end_row = rows.end;
  if (!place_pixels(place_planes(how, columns, rows, to), plan)) return std::nullopt;
  return plan;
}

std::optional<photo_plan> plan_jpeg(const pixels::picture_info& info, const pixels::geometry& drawn) {
  pixels::rectangle stored;
  photo_plan plan = plan_region(info.width, info.height, info, drawn, 1, stored);
  if (stored.width == 0) return std::nullopt;
  photo_on_device& to = plan.on_device;
  const std::uint64_t stride = device_aligned(static_cast<std::uint64_t>(info.width));
  const std::uint64_t plane_bytes = stride * static_cast<std::uint64_t>(info.height);
  to.plane_count = 3;
  to.is_ycbcr = false;
  for (std::uint64_t i = 0; i < 3; ++i) {
    to.plane[i] = {.at = i * plane_bytes,
                   .stride = static_cast<std::uint32_t>(stride),
                   .left = 0,
                   .top = 0,
                   .width = info.width,
                   .height = info.height,
                   .across = 1,
                   .down = 1,
                   .side = 8,
                   .how = upsampling::replicated,
                   .expand_x = 1,
                   .expand_y = 1,
                   .quantisation = {}};
  }
  if (!place_pixels(3 * plane_bytes, plan)) return std::nullopt;
  return plan;
}

bool write_jpeg_slot(const photo_plan& plan, std::span<const std::byte> file, std::span<std::byte> slot) noexcept {
  if (file.empty() || file.size() > slot.size()) return false;
  slot_writer to(slot);
  std::optional<slot_begun> begun = begin_slot(plan, true, to);
  if (!begun) return false;
  begun->made.jpeg_bytes = static_cast<std::uint32_t>(file.size());
  begun->made.rows = to.at();
  auto* const bytes = to.take<std::byte>(file.size());
  if (bytes == nullptr) return false;
  std::memcpy(bytes, file.data(), file.size());
  finish(*begun);
  return true;
}

bool write_photo_slot(const photo_plan& plan, const pixels::photo_pack_view& pack, std::span<std::byte> slot,
                      slot_rows what) noexcept {
  slot_writer to(slot);
  const std::uint32_t row_count = plan.end_row - plan.first_row;
  std::optional<slot_begun> begun = begin_slot(plan, row_count != 0, to);
  if (!begun) return false;
  begun->made.row_count = row_count;
  auto* const ends = to.take<std::uint32_t>(row_count);
  if (ends == nullptr) return false;
  const auto begin_of = [&](std::uint32_t number) { return number == 0 ? 0 : pack.row_end(number - 1); };
  const std::uint32_t first_at = begin_of(plan.first_row);
  for (std::uint32_t row = 0; row < row_count; ++row) ends[row] = pack.row_end(plan.first_row + row) - first_at;
  begun->carried->first_row_at = first_at;
  std::uint32_t next = plan.first_row;
  std::uint32_t end = plan.end_row;
  if (what == slot_rows::all) {
    const std::byte* const begin = pack.jpeg_head.data() - pixels::photo_pack_head::bytes;
    const std::size_t bytes =
        pixels::photo_pack_head::bytes + pack.jpeg_head.size() + pack.jpeg_tail.size() + pack.index.size();
    auto* const head = to.take<std::byte>(bytes);
    if (head == nullptr) return false;
    std::memcpy(head, begin, bytes);
    next = 0;
    end = pack.head.mcu_rows;
    begun->carried->head_bytes = static_cast<std::uint32_t>(bytes);
    begun->carried->carried_bytes = pack.row_end(end - 1);
  }
  begun->made.rows = to.at() + first_at - begin_of(next);
  if (what == slot_rows::none) {
    if (row_count != 0 && to.take<std::uint8_t>(ends[row_count - 1]) == nullptr) return false;
    finish(*begun);
    return true;
  }
  for (; next != end; ++next) {
    auto* const bytes = to.take<std::uint8_t>(pack.row_end(next) - begin_of(next));
    if (bytes == nullptr) return false;
    const pixels::byte_span checked = pack.row(next);
    const std::span from(reinterpret_cast<const std::uint8_t*>(checked.data()), checked.size());
    if (from.empty() || !pixels::photo_row_is_sound(from, pack.row_blocks())) return false;
    std::copy(from.begin(), from.end(), bytes);
  }
  finish(*begun);
  return true;
}

void write_pixels_slot(std::span<std::byte> slot) noexcept {
  assert(slot.size() >= photo_slot_bytes);
  photo_slot made{};
  std::memcpy(slot.data(), &made, sizeof made);
}

}  // namespace leat::stages
