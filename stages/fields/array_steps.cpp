#include "stages/fields/array_steps.hpp"

#include "base/half.hpp"
#include "base/text.hpp"
#include "stages/fields/number_list.hpp"

#include <leat/error.hpp>

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

namespace leat::stages {
namespace {

// Numbers that are made at a time: they stay in the first cache.
constexpr std::size_t block_elements = 256;

// Runs between two checks of `stop`.
constexpr std::size_t runs_per_look = 4096;

bool is_float(dtype type) noexcept {
  return type == dtype::f16 || type == dtype::bf16 || type == dtype::f32 || type == dtype::f64;
}

std::size_t axis_of(std::int64_t axis, const dimensions& row, std::string_view step, const std::string& where) {
  const auto axes = static_cast<std::int64_t>(row.size());
  if (axis < -axes || axis >= axes) {
    throw error(errc::usage, str_cat(where, ": ", step, " of axis ", axis, " of rows of ", to_string(row)));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + axes : axis);
}

std::vector<std::size_t> order_of(const std::vector<std::int64_t>& order, const dimensions& row,
                                  const std::string& where) {
  std::vector<std::size_t> axes;
  if (order.empty()) {
    for (std::size_t axis = 0; axis < row.size(); ++axis) axes.push_back(axis);
    return axes;
  }
  for (const std::int64_t each : order) {
    const std::size_t axis = axis_of(each, row, "transpose", where);
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) break;
    axes.push_back(axis);
  }
  if (axes.size() == row.size() && order.size() == row.size()) return axes;
  throw error(errc::usage, str_cat(where, ": transpose needs each axis of rows of ", to_string(row), " once"));
}

struct f16_number {
  std::uint16_t bits = 0;
};
struct bf16_number {
  std::uint16_t bits = 0;
};

// Calls visit(element{}) with what an element of the dtype is in memory.
template <class Visit>
void with_element(dtype type, const Visit& visit) {
  if (type == dtype::f16) return visit(f16_number{});
  if (type == dtype::bf16) return visit(bf16_number{});
  if (type == dtype::boolean) return visit(std::uint8_t{});
  with_type(type, visit);
}

template <class Element>
Element element_at(const std::byte* at) noexcept {
  Element element;
  std::memcpy(&element, at, sizeof element);
  return element;
}

template <class Number, class Element>
Number number_of(Element element) noexcept {
  if constexpr (std::is_same_v<Element, f16_number>) {
    return static_cast<Number>(f16_value(element.bits));
  } else if constexpr (std::is_same_v<Element, bf16_number>) {
    return static_cast<Number>(bf16_value(element.bits));
  } else {
    return static_cast<Number>(element);
  }
}

template <class Element, class Number>
std::optional<Element> element_of(Number number) noexcept {
  if constexpr (std::is_same_v<Element, f16_number> || std::is_same_v<Element, bf16_number>) {
    const std::optional<float> real = converted<float>(number);
    if (!real) return std::nullopt;
    Element element;
    if constexpr (std::is_same_v<Element, f16_number>) {
      element.bits = f16_bits(*real);
    } else {
      element.bits = bf16_bits(*real);
    }
    if (std::isfinite(*real) && !std::isfinite(number_of<float>(element))) return std::nullopt;
    return element;
  } else {
    return converted<Element>(number);
  }
}

template <std::size_t Bytes>
void move(const std::byte* at, std::ptrdiff_t stride, std::size_t count, std::byte* to) noexcept {
  if (stride == static_cast<std::ptrdiff_t>(Bytes)) {
    std::memcpy(to, at, count * Bytes);
    return;
  }
  for (std::size_t i = 0; i < count; ++i, at += stride, to += Bytes) std::memcpy(to, at, Bytes);
}

void move_elements(std::size_t bytes, const std::byte* at, std::ptrdiff_t stride, std::size_t count,
                   std::byte* to) noexcept {
  switch (bytes) {
    case 1:
      return move<1>(at, stride, count, to);
    case 2:
      return move<2>(at, stride, count, to);
    case 4:
      return move<4>(at, stride, count, to);
    default:
      return move<8>(at, stride, count, to);
  }
}

template <class Number>
std::optional<std::string> store_all(dtype to, const Number* from, std::size_t count, std::byte* bytes) {
  std::optional<std::string> wrong;
  with_element(to, [&]<class Element>(Element) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::optional<Element> element = element_of<Element>(from[i]);
      if (!element) {
        wrong = str_cat("has the number ", from[i], ", which is none of ", name(to));
        return;
      }
      std::memcpy(bytes + i * sizeof(Element), &*element, sizeof(Element));
    }
  });
  return wrong;
}

template <class Number>
void load_all(dtype from, const std::byte* at, std::ptrdiff_t stride, std::size_t count, Number* to) {
  with_element(from, [&]<class Element>(Element) {
    for (std::size_t i = 0; i < count; ++i, at += stride) to[i] = number_of<Number>(element_at<Element>(at));
  });
}

}  // namespace

void array_steps::describe(description& out) const {
  for (const flip& each : flips) {
    out.add(each.random ? "random_flip" : "flip", str_cat(each.axis, " ", each.probability));
  }
  if (statistics) {
    out.add("axis", statistics->axis);
    for (const double mean : statistics->mean) out.add("mean", mean);
    for (const double deviation : statistics->deviation) out.add("deviation", deviation);
  }
  if (type) out.add("type", name(*type));
  for (const std::int64_t axis : order) out.add("transpose", axis);
}

array_walk::array_walk(const array_steps& steps, dtype type, const dimensions& row, const std::string& where)
    : from_(type), to_(type), row_(row), shape_(row), order_(order_of(steps.order, row, where)), flips_(steps.flips) {
  for (array_steps::flip& each : flips_) {
    each.axis = static_cast<std::int64_t>(axis_of(each.axis, row, each.random ? "random_flip" : "flip", where));
    if (each.probability >= 0 && each.probability <= 1) continue;
    throw error(errc::usage, str_cat(where, ": random_flip with probability ", each.probability, "; give 0 to 1"));
  }
  if (steps.statistics) {
    const array_steps::normalization& how = *steps.statistics;
    mean_ = how.mean;
    deviation_ = how.deviation;
    if (mean_.empty() || mean_.size() != deviation_.size()) {
      throw error(errc::usage, str_cat(where, ": normalize with ", mean_.size(), " means and ", deviation_.size(),
                                       " deviations; give one of each for each place along the axis"));
    }
    for (const double each : mean_) {
      if (!std::isfinite(each)) throw error(errc::usage, str_cat(where, ": normalize with a mean of ", each));
    }
    for (const double each : deviation_) {
      if (each != 0 && std::isfinite(each)) continue;
      throw error(errc::usage, str_cat(where, ": normalize with a deviation of ", each));
    }
    if (mean_.size() != 1) {
      axis_ = axis_of(how.axis, row, "normalize", where);
      if (static_cast<std::int64_t>(mean_.size()) != row[*axis_]) {
        throw error(errc::usage, str_cat(where, ": normalize with ", mean_.size(), " means along axis ", *axis_,
                                         " of rows of ", to_string(row), ", which has ", row[*axis_], " places"));
      }
    }
    if (!is_float(type)) to_ = dtype::f32;
  }
  if (steps.type) to_ = *steps.type;
  if (!mean_.empty() && !is_float(to_)) {
    throw error(errc::usage, str_cat(where, ": normalized numbers as ", name(to_), "; they are f16, bf16, f32 or f64"));
  }
  if (to_ == dtype::boolean && from_ != dtype::boolean) {
    throw error(errc::usage, str_cat(where, ": numbers of ", name(from_), " as bool; say another dtype"));
  }
  for (std::size_t axis = 0; axis < order_.size(); ++axis) shape_[axis] = row_[order_[axis]];
}

bool array_walk::random() const noexcept {
  return std::any_of(flips_.begin(), flips_.end(), [](const array_steps::flip& each) { return each.random; });
}

bool array_walk::varies() const noexcept {
  return std::any_of(flips_.begin(), flips_.end(), [](const array_steps::flip& each) {
    return each.random && each.probability > 0 && each.probability < 1;
  });
}

// Axes are named from the last, so that a volume with channels and its mask without draw alike.
bool array_walk::is_mirrored(std::size_t stored_axis, std::uint64_t seed, std::uint32_t epoch,
                             std::uint64_t draw) const {
  bool mirrored = false;
  std::size_t number = 0;
  for (const array_steps::flip& each : flips_) {
    if (static_cast<std::size_t>(each.axis) != stored_axis) continue;
    if (!each.random) {
      mirrored = !mirrored;
      continue;
    }
    std::string operation = str_cat("array_flip -", row_.size() - stored_axis);
    if (++number > 1) str_append(operation, "/", number);
    if (view_ > 1) str_append(operation, " ", view_);
    random_draws draws(seed, epoch, draw, operation);
    if (draws.uniform() < each.probability) mirrored = !mirrored;
  }
  return mirrored;
}

// One line along the last axis that is made.
//   place   along the axis of the statistics, where that is another one
std::optional<std::string> array_walk::run(const std::byte* at, const axis& along, std::int64_t place, bool is_mirrored,
                                           std::byte* to) const {
  const std::size_t bytes = size_bytes(to_);
  const auto count = static_cast<std::size_t>(along.extent);
  if (only_moves()) {
    move_elements(bytes, at, along.stride_bytes, count, to);
    return std::nullopt;
  }
  const bool is_whole = mean_.empty() && !is_float(from_) && !is_float(to_);
  for (std::size_t first = 0; first < count; first += block_elements) {
    const std::size_t some = std::min(block_elements, count - first);
    const std::byte* const begin = at + static_cast<std::ptrdiff_t>(first) * along.stride_bytes;
    std::byte* const end = to + first * bytes;
    std::optional<std::string> wrong;
    if (is_whole && from_ == dtype::u64) {
      std::array<std::uint64_t, block_elements> numbers;  // NOLINT: load_all() writes what is read
      load_all(from_, begin, along.stride_bytes, some, numbers.data());
      wrong = store_all(to_, numbers.data(), some, end);
    } else if (is_whole) {
      std::array<std::int64_t, block_elements> numbers;  // NOLINT: likewise
      load_all(from_, begin, along.stride_bytes, some, numbers.data());
      wrong = store_all(to_, numbers.data(), some, end);
    } else {
      std::array<double, block_elements> numbers;  // NOLINT: likewise
      load_all(from_, begin, along.stride_bytes, some, numbers.data());
      for (std::size_t i = 0; i < some && !mean_.empty(); ++i) {
        std::size_t at_place = mean_.size() == 1 ? 0 : static_cast<std::size_t>(place);
        if (along.has_statistics) at_place = is_mirrored ? count - 1 - (first + i) : first + i;
        numbers[i] = (numbers[i] - mean_[at_place]) / deviation_[at_place];
      }
      wrong = store_all(to_, numbers.data(), some, end);
    }
    if (wrong) return wrong;
  }
  return std::nullopt;
}

outcome<void> array_walk::write(std::span<const std::byte> from, std::span<std::byte> to, std::uint64_t seed,
                                std::uint32_t epoch, std::uint64_t draw, const std::atomic<bool>* stop) const {
  const dimensions strides = dense_strides(row_);
  const auto element = static_cast<std::ptrdiff_t>(size_bytes(from_));
  const std::byte* at = from.data();
  absl::InlinedVector<axis, dimensions::rank_max> axes;
  absl::InlinedVector<bool, dimensions::rank_max> mirrored;
  for (const std::size_t stored : order_) {
    axis made{row_[stored], static_cast<std::ptrdiff_t>(strides[stored]) * element, axis_ == stored};
    mirrored.push_back(is_mirrored(stored, seed, epoch, draw));
    if (mirrored.back()) {
      at += (made.extent - 1) * made.stride_bytes;
      made.stride_bytes = -made.stride_bytes;
    }
    axes.push_back(made);
  }
  // Neighbours that lie one behind the other are one axis.
  for (std::size_t i = axes.size(); i-- > 1;) {
    axis& before = axes[i - 1];
    if (before.has_statistics || axes[i].has_statistics) continue;
    if (before.stride_bytes != axes[i].extent * axes[i].stride_bytes) continue;
    before = {before.extent * axes[i].extent, axes[i].stride_bytes, false};
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    mirrored.erase(mirrored.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (axes.empty()) axes.push_back({.stride_bytes = element}), mirrored.push_back(false);
  const std::size_t last = axes.size() - 1;
  const std::size_t run_bytes = static_cast<std::size_t>(axes[last].extent) * size_bytes(to_);
  if (run_bytes == 0) return {};
  std::array<std::int64_t, dimensions::rank_max> done{};
  std::size_t runs = 0;
  for (std::size_t made = 0; made < to.size(); made += run_bytes) {
    if (runs++ % runs_per_look == 0 && stop != nullptr && stop->load(std::memory_order_relaxed)) return cancelled();
    std::int64_t place = 0;
    for (std::size_t i = 0; i < last; ++i) {
      if (axes[i].has_statistics) place = mirrored[i] ? axes[i].extent - 1 - done[i] : done[i];
    }
    if (auto wrong = run(at, axes[last], place, mirrored[last], to.data() + made)) return corrupt(std::move(*wrong));
    for (std::size_t i = last; i-- > 0;) {
      at += axes[i].stride_bytes;
      if (++done[i] < axes[i].extent) break;
      at -= axes[i].extent * axes[i].stride_bytes;
      done[i] = 0;
    }
  }
  return {};
}

}  // namespace leat::stages
