#include "datasets/tables/wider_lists.hpp"

#include "base/text.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/model/value_blocks.hpp"
#include "datasets/model/value_picker.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

bool is_signed(dtype type) noexcept {
  return type == dtype::i8 || type == dtype::i16 || type == dtype::i32 || type == dtype::i64;
}

// From the last one on: the narrow ones may lie at the begin of where the wide ones go.
template <class From, class To>
void widen_each(std::span<const std::byte> from, std::span<std::byte> to) {
  for (std::size_t i = from.size() / sizeof(From); i-- > 0;) {
    From narrow;
    std::memcpy(&narrow, from.data() + i * sizeof narrow, sizeof narrow);
    const auto wide = static_cast<To>(narrow);
    std::memcpy(to.data() + i * sizeof wide, &wide, sizeof wide);
  }
}
template <class From>
void widen_to(std::span<const std::byte> from, dtype type, std::span<std::byte> to) {
  switch (type) {
    case dtype::u16:
      return widen_each<From, std::uint16_t>(from, to);
    case dtype::u32:
      return widen_each<From, std::uint32_t>(from, to);
    case dtype::u64:
      return widen_each<From, std::uint64_t>(from, to);
    case dtype::i16:
      return widen_each<From, std::int16_t>(from, to);
    case dtype::i32:
      return widen_each<From, std::int32_t>(from, to);
    case dtype::i64:
      return widen_each<From, std::int64_t>(from, to);
    case dtype::f64:
      return widen_each<From, double>(from, to);
    default:
      assert(false && "no type that is wider");
  }
}

struct widening {
  dtype from = dtype::i32;
  dtype to = dtype::i64;

  [[nodiscard]] std::uint64_t wide_bytes(std::uint64_t bytes) const noexcept {
    return bytes / size_bytes(from) * size_bytes(to);
  }
  [[nodiscard]] std::uint64_t narrow_bytes(std::uint64_t bytes) const noexcept {
    return bytes / size_bytes(to) * size_bytes(from);
  }
  void write(std::span<const std::byte> narrow, std::span<std::byte> wide) const {
    switch (from) {
      case dtype::i8:
        return widen_to<std::int8_t>(narrow, to, wide);
      case dtype::u16:
        return widen_to<std::uint16_t>(narrow, to, wide);
      case dtype::i16:
        return widen_to<std::int16_t>(narrow, to, wide);
      case dtype::u32:
        return widen_to<std::uint32_t>(narrow, to, wide);
      case dtype::i32:
        return widen_to<std::int32_t>(narrow, to, wide);
      case dtype::f32:
        return widen_to<float>(narrow, to, wide);
      default:
        assert(false && "no type that is narrower");
    }
  }
};

/// Of lists that lie in the file as they are, or are picked out of their records.
class widening_picker final : public value_picker {
 public:
  widening_picker(std::shared_ptr<const value_picker> narrow, widening how) : narrow_(std::move(narrow)), how_(how) {}

  std::uint64_t room(std::uint64_t record_bytes) const noexcept override {
    return how_.wide_bytes(narrow_ == nullptr ? record_bytes : narrow_->room(record_bytes));
  }
  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    std::span<const std::byte> narrow = record;
    if (narrow_ != nullptr) {
      std::span<std::byte> found = into.first(std::min(into.size(), narrow_->room(record.size())));
      if (std::optional<value_fault> fault = narrow_->pick(record, found)) return fault;
      narrow = found;
    }
    into = into.first(how_.wide_bytes(narrow.size()));
    how_.write(narrow, into);
    return std::nullopt;
  }
  std::string what() const override {
    const std::string how = str_cat("widened from ", name(how_.from), " to ", name(how_.to));
    return narrow_ == nullptr ? how : str_cat(narrow_->what(), ", ", how);
  }

 private:
  std::shared_ptr<const value_picker> narrow_;
  widening how_;
};

/// Of lists in blocks.
class widening_expander final : public block_expander {
 public:
  widening_expander(std::shared_ptr<const block_expander> narrow, widening how)
      : narrow_(std::move(narrow)), how_(how) {}

  std::optional<std::string> expand(std::size_t block, std::span<const std::byte> stored,
                                    std::span<const std::uint32_t> ends, std::span<std::byte> decoded) const override {
    std::vector<std::uint32_t> narrow_ends(ends.begin(), ends.end());
    for (std::uint32_t& each : narrow_ends) {
      const std::uint32_t missing = each & value_blocks::missing;
      each = static_cast<std::uint32_t>(how_.narrow_bytes(each & ~value_blocks::missing)) | missing;
    }
    const std::span<std::byte> narrow = decoded.first(how_.narrow_bytes(decoded.size()));
    if (auto reason = narrow_->expand(block, stored, narrow_ends, narrow)) return reason;
    how_.write(narrow, decoded);
    return std::nullopt;
  }

 private:
  std::shared_ptr<const block_expander> narrow_;
  widening how_;
};

std::shared_ptr<const value_blocks> widened(const value_blocks& narrow, widening how, const std::string& field) {
  auto wide = std::make_shared<value_blocks>(narrow);
  for (std::uint32_t& each : wide->ends) {
    const std::uint32_t missing = each & value_blocks::missing;
    const std::uint64_t end = how.wide_bytes(each & ~value_blocks::missing);
    if (end > value_blocks::decoded_bytes_max) {
      throw error(errc::limit, str_cat("lists of '", field, "' are ", name(how.from), " here and ", name(how.to),
                                       " in another file, and 2 GiB or more in a block as such; write smaller ones"));
    }
    each = static_cast<std::uint32_t>(end) | missing;
  }
  wide->expander = std::make_shared<widening_expander>(narrow.expander, how);
  return wide;
}

}  // namespace

std::optional<dtype> type_of_both(dtype a, dtype b) noexcept {
  if (a == b) return a;
  const auto is_any = [](dtype type) { return type == dtype::u8 || type == dtype::boolean; };
  if (is_any(a) || is_any(b)) return std::nullopt;
  if (!is_integer(a) || !is_integer(b)) {
    const bool are_reals = (a == dtype::f32 && b == dtype::f64) || (a == dtype::f64 && b == dtype::f32);
    return are_reals ? std::optional(dtype::f64) : std::nullopt;
  }
  if (is_signed(a) == is_signed(b)) return size_bytes(a) > size_bytes(b) ? a : b;
  // A signed one has the numbers of an unsigned one of half its bits.
  const dtype whole = is_signed(a) ? a : b;
  const std::size_t bytes = std::max(size_bytes(whole), 2 * size_bytes(is_signed(a) ? b : a));
  if (bytes > sizeof(std::int64_t)) return std::nullopt;
  return bytes == 2 ? dtype::i16 : bytes == 4 ? dtype::i32 : dtype::i64;
}

void widen_lists(record_field& field, dtype to) {
  const widening how{field.type, to};
  field.type = to;
  if (field.packed) {
    field.packed = widened(*field.packed, how, field.name);
  } else {
    field.picker = std::make_shared<widening_picker>(std::move(field.picker), how);
  }
}

}  // namespace leat::datasets
