#include "stages/plan/array_crop.hpp"

#include "base/random.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <cassert>
#include <cstring>

namespace leat::stages {
namespace {

std::string text_of(std::span<const std::int64_t> sizes) {
  std::string text;
  for (const std::int64_t size : sizes) str_append(text, text.empty() ? "[" : ", ", size);
  return text.empty() ? "[]" : text + "]";
}

void check_size(const array_cut& cut, const dimensions& room, const std::string& where) {
  if (cut.size.size() > room.size()) {
    throw error(errc::usage, str_cat(where, ": a crop of ", text_of(cut.size), " of rows of ", to_string(room),
                                     ", which have fewer axes"));
  }
  const std::size_t before = room.size() - cut.size.size();
  for (std::size_t axis = 0; axis < cut.size.size(); ++axis) {
    if (cut.size[axis] >= 1 && cut.size[axis] <= room[before + axis]) continue;
    throw error(errc::usage,
                str_cat(where, ": a crop of ", text_of(cut.size), " does not fit into rows of ", to_string(room),
                        "; give 1 to ", room[before + axis], " elements along axis ", before + axis));
  }
}

}  // namespace

void array_cut::describe(description& out) const {
  for (const slice& each : slices) out.add("slice", str_cat(each.axis, " ", each.first, " ", each.count));
  if (!size.empty()) out.add(random ? "random_crop" : "center_crop", text_of(size));
}

array_crop::array_crop(const array_cut& cut, dtype type, const dimensions& row, const std::string& where)
    : element_bytes_(size_bytes(type)), row_(row), first_(row), room_(row), shape_(row), random_(cut.random) {
  for (std::size_t axis = 0; axis < row.size(); ++axis) first_[axis] = 0;
  const auto axes = static_cast<std::int64_t>(row.size());
  for (const array_cut::slice& each : cut.slices) {
    if (each.axis < -axes || each.axis >= axes) {
      throw error(errc::usage, str_cat(where, ": a slice of axis ", each.axis, " of rows of ", to_string(row)));
    }
    const auto axis = static_cast<std::size_t>(each.axis < 0 ? each.axis + axes : each.axis);
    if (each.first < 0 || each.count < 1 || each.first > room_[axis] || each.count > room_[axis] - each.first) {
      throw error(errc::usage, str_cat(where, ": a slice of ", each.count, " elements from ", each.first,
                                       " on does not fit into axis ", axis, " of rows of ", to_string(room_)));
    }
    first_[axis] += each.first;
    room_[axis] = each.count;
  }
  shape_ = room_;
  check_size(cut, room_, where);
  for (std::size_t axis = 0; axis < cut.size.size(); ++axis) {
    shape_[row.size() - cut.size.size() + axis] = cut.size[axis];
  }
}

std::size_t array_crop::row_bytes() const noexcept {
  return static_cast<std::size_t>(row_.elements()) * element_bytes_;
}

void array_crop::set_view(std::uint32_t number) {
  operation_ = number == 1 ? "array_crop" : str_cat("array_crop ", number);
}

// Axes are drawn from the last one on, so that a volume with channels and its mask without draw alike.
datasets::box array_crop::box_of(std::uint64_t seed, std::uint32_t epoch, std::uint64_t draw) const {
  datasets::box box{first_, shape_};
  random_draws draws(seed, epoch, draw, operation_);
  for (std::size_t axis = row_.size(); axis-- > 0;) {
    const std::int64_t places = room_[axis] - shape_[axis] + 1;
    if (!random_) {
      box.first[axis] += (places - 1) / 2;
    } else {
      box.first[axis] += static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(places)));
    }
  }
  return box;
}

array_crop::byte_range array_crop::slab_of(const datasets::box& box) const {
  assert(!row_.empty());
  const std::size_t plane = row_bytes() / static_cast<std::size_t>(row_[0]);
  return {static_cast<std::size_t>(box.first[0]) * plane, static_cast<std::size_t>(box.count[0]) * plane};
}

bool array_crop::copy(const datasets::box& box, std::span<const std::byte> from, std::span<std::byte> to) const {
  const byte_range slab = slab_of(box);
  if (from.size() == row_bytes()) {
    from = from.subspan(slab.first);
  } else if (from.size() != slab.bytes) {
    return false;
  }
  // Runs of bytes that lie side by side at both ends: the last axes that are taken whole, and the one before.
  std::size_t outer = row_.size();
  std::size_t run = element_bytes_;
  while (outer > 0) {
    --outer;
    run *= static_cast<std::size_t>(box.count[outer]);
    if (box.count[outer] != row_[outer]) break;
  }
  const dimensions strides = dense_strides(row_);
  const auto step = [&](std::size_t axis) {
    return static_cast<std::ptrdiff_t>(strides[axis]) * static_cast<std::ptrdiff_t>(element_bytes_);
  };
  const std::byte* at = from.data();
  for (std::size_t axis = 1; axis < row_.size(); ++axis) at += box.first[axis] * step(axis);
  dimensions done = box.first;
  for (std::size_t axis = 0; axis < done.size(); ++axis) done[axis] = 0;
  for (std::byte* out = to.data();; out += run) {
    std::memcpy(out, at, run);
    std::size_t axis = outer;
    for (; axis > 0; --axis) {
      at += step(axis - 1);
      if (++done[axis - 1] < box.count[axis - 1]) break;
      at -= box.count[axis - 1] * step(axis - 1);
      done[axis - 1] = 0;
    }
    if (axis == 0) return true;
  }
}

}  // namespace leat::stages
