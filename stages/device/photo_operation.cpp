#include "stages/device/photo_operation.hpp"

#include "stages/device/alignment.hpp"
#include "stages/device/decode_photos.hpp"
#include "stages/device/device.hpp"
#include "stages/device/photo_plan.hpp"
#include "stages/pixels/photo_rows.hpp"

#include <absl/container/inlined_vector.h>

#include <algorithm>

namespace leat::stages {
namespace {

// Photos that are decoded at a time: their scratch is taken once for all of a batch. Of fewer a GPU is not full: 256 rows take an H200 3.4 ms by
// 32, 2.3 by 64, 1.4 by 128, and 1.3 all at once.
constexpr std::uint32_t photos_at_once = 128;

std::size_t pixels_of(std::uint32_t height, std::uint32_t width) noexcept { return std::size_t{height} * width * 3; }

// Of a slot that is a pack.
const carried_pack& carried_by(const std::byte* slot) noexcept {
  return *reinterpret_cast<const carried_pack*>(slot + photo_slot_bytes);
}

std::size_t slot_for(std::size_t pixel_bytes) noexcept {
  return device_aligned(photo_slot_bytes + 2 * pixel_bytes + 4096);
}

// A region that is just not decimated has 4 times the pixels: without subsampling 4 times the bytes in samples, 4 times in pixels and
// twice in lines. The rest is for MCUs that are partly outside of it.
std::uint64_t scratch_for(std::size_t pixel_bytes) noexcept { return device_aligned(12 * pixel_bytes + 65536); }

// Of a JPEG file there is the whole picture, the region, and its lines: of rows of 224 x 224 up to 500,000 pixels.
std::uint64_t scratch_for_jpegs(std::size_t pixel_bytes) noexcept { return device_aligned(24 * pixel_bytes + 65536); }

}  // namespace

photo_operation::photo_operation(std::uint32_t height, std::uint32_t width, layout order, bool jpegs)
    : jpegs_(jpegs),
      height_(height),
      width_(width),
      order_(order),
      pixel_bytes_(pixels_of(height, width)),
      slot_bytes_(slot_for(pixel_bytes_)),
      photo_scratch_bytes_(jpegs ? scratch_for_jpegs(pixel_bytes_) : scratch_for(pixel_bytes_)) {}

photo_operation::photo_operation(const picture_batch& how, const std::optional<program_layout>& programs, bool jpegs)
    : jpegs_(jpegs),
      height_(how.height),
      width_(how.width),
      order_(layout::nhwc),
      finish_(std::in_place, how, programs),
      pixel_bytes_(pixels_of(how.height, how.width)),
      slot_bytes_(slot_for(pixel_bytes_)),
      photo_scratch_bytes_(jpegs ? scratch_for_jpegs(pixel_bytes_) : scratch_for(pixel_bytes_)) {}

std::size_t photo_operation::used_row_bytes(const std::byte* row) const noexcept {
  const auto& slot = *reinterpret_cast<const photo_slot*>(row);
  if (slot.is_pack == 0) return std::min(photo_slot_bytes + pixel_bytes_, slot_bytes_);
  std::size_t end = slot.rows;
  if (const carried_pack& pack = carried_by(row); pack.carried_bytes != 0) {
    end = slot.rows - pack.first_row_at + pack.carried_bytes;
  } else if (slot.row_count != 0) {
    end += reinterpret_cast<const std::uint32_t*>(row + slot.row_ends)[slot.row_count - 1];
  }
  return std::min<std::size_t>(device_aligned(end), slot_bytes_);
}

keeping_operation::kept photo_operation::kept_of(const std::byte* row) const noexcept {
  const auto& slot = *reinterpret_cast<const photo_slot*>(row);
  if (slot.is_pack == 0) return {};
  const carried_pack& pack = carried_by(row);
  if (pack.carried_bytes == 0) return {};
  const std::size_t rows = slot.rows - pack.first_row_at;
  return {.on_device = {rows, pack.carried_bytes},
          .on_host = {rows - pack.head_bytes, pack.head_bytes},
          .value_bytes = std::size_t{pack.head_bytes} + pack.carried_bytes + pixels::photo_row_slack_bytes};
}

keeping_operation::lacking photo_operation::lacking_of(const std::byte* row) const noexcept {
  const auto& slot = *reinterpret_cast<const photo_slot*>(row);
  const auto* const ends = reinterpret_cast<const std::uint32_t*>(row + slot.row_ends);
  return {.in_row = {slot.rows, slot.row_count == 0 ? 0 : ends[slot.row_count - 1]},
          .in_kept = carried_by(row).first_row_at};
}

// Without an engine for JPEG files nvJPEG decodes Huffman codes on the GPU only of more than 50 files at a time (nvjpeg.h).
std::uint32_t photo_operation::at_once() const noexcept { return jpegs_ ? jpegs_at_once : photos_at_once; }

std::size_t photo_operation::scratch_bytes(std::uint32_t rows) const noexcept {
  // What a photo's decoding takes is free again when pictures are finished.
  const std::size_t decoding = std::min(rows, at_once()) * photo_scratch_bytes_;
  return finish_ ? pixels_behind(rows) + std::max(decoding, finish_->scratch_bytes(rows)) : decoding;
}

// In the scratch: where that of the kernels begins.
std::size_t photo_operation::pixels_behind(std::uint32_t rows) const noexcept {
  return device_aligned(rows * pixel_bytes_);
}

failed_call photo_operation::launch(device_calls& calls, const operands& of, stream in) const noexcept {
  std::byte* const pixels = finish_ ? of.scratch : of.to;
  std::byte* const scratch = of.scratch + (finish_ ? pixels_behind(of.rows) : 0);
  for (std::uint32_t first = 0; first < of.rows; first += at_once()) {
    const std::uint32_t count = std::min(of.rows - first, at_once());
    if (jpegs_) {
      const failed_call decoded = decode_jpegs(calls, of.on_host, scratch, first, count, in);
      if (decoded.status != device_ok) return decoded;
    }
    const photo_batch photos{.slots = reinterpret_cast<const std::uint8_t*>(of.from[0]) + first * slot_bytes_,
                             .slot_bytes = slot_bytes_,
                             .scratch = reinterpret_cast<std::uint8_t*>(scratch),
                             .scratch_bytes = photo_scratch_bytes_,
                             .to = reinterpret_cast<std::uint8_t*>(pixels) + first * pixel_bytes_,
                             .photo_count = count,
                             .out_height = height_,
                             .out_width = width_,
                             .is_planar = order_ == layout::nchw};
    const failed_call launched{calls.launch(decode_photos_kernel, &photos, in), decode_photos_kernel.name, {}};
    if (launched.status != device_ok) return launched;
  }
  if (!finish_) return {device_ok, decode_photos_kernel.name, {}};
  absl::InlinedVector<const std::byte*, 4> from(of.from.begin(), of.from.end());
  from[0] = pixels;
  return finish_->launch(calls, {.from = from, .rows = of.rows, .to = of.to, .scratch = scratch}, in);
}

// What the device has of the slots is not looked at: the host has them, too.
failed_call photo_operation::decode_jpegs(device_calls& calls, const std::byte* slots, std::byte* scratch,
                                          std::uint32_t first, std::uint32_t count, stream in) const noexcept {
  jpeg_on_device files[jpegs_at_once];
  std::uint32_t rows[jpegs_at_once];
  std::uint32_t file_count = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::byte* const bytes = slots + (first + i) * slot_bytes_;
    const auto& slot = *reinterpret_cast<const photo_slot*>(bytes);
    if (slot.is_pack == 0 || slot.jpeg_bytes == 0) continue;
    jpeg_on_device& file = files[file_count];
    file.encoded = {bytes + slot.rows, slot.jpeg_bytes};
    file.stride = slot.photo.plane[0].stride;
    for (std::size_t plane = 0; plane < 3; ++plane) {
      file.planes[plane] = reinterpret_cast<std::uint8_t*>(scratch) + i * photo_scratch_bytes_ + slot.photo.planes +
                           slot.photo.plane[plane].at;
    }
    rows[file_count++] = first + i;
  }
  if (file_count == 0) return {};
  failed_call decoded = calls.decode_jpegs({files, file_count}, in);
  if (decoded.picture) decoded.picture = rows[*decoded.picture];
  return decoded;
}

std::size_t photo_operation::make_row_bytes() const noexcept {
  const std::size_t finishing = finish_ ? finish_->make_row_bytes() : 0;
  return pixels_behind(1) + std::max<std::size_t>(photo_scratch_bytes_, finishing);
}

void photo_operation::make_row(std::span<const std::byte* const> from, std::uint32_t row, std::byte* to,
                               std::byte* scratch) const noexcept {
  auto* const pixels = reinterpret_cast<std::uint8_t*>(finish_ ? scratch : to);
  std::byte* const behind = scratch + pixels_behind(1);
  decode_photos({.slots = reinterpret_cast<const std::uint8_t*>(from[0]) + row * slot_bytes_,
                 .slot_bytes = slot_bytes_,
                 .scratch = reinterpret_cast<std::uint8_t*>(behind),
                 .scratch_bytes = photo_scratch_bytes_,
                 .to = pixels,
                 .photo_count = 1,
                 .out_height = height_,
                 .out_width = width_,
                 .is_planar = order_ == layout::nchw});
  if (!finish_) return;
  const std::byte* const made[] = {reinterpret_cast<const std::byte*>(pixels),
                                   from[1] + row * finish_->operand_row_bytes()};
  finish_->make_row(made, 0, to, behind);
}

bool photo_operation::is_like(const device_operation& other) const noexcept {
  const auto* const by = dynamic_cast<const photo_operation*>(&other);
  if (by == nullptr || finish_.has_value() != by->finish_.has_value()) return false;
  return jpegs_ == by->jpegs_ && height_ == by->height_ && width_ == by->width_ && order_ == by->order_ &&
         (!finish_ || finish_->is_like(*by->finish_));
}

}  // namespace leat::stages
