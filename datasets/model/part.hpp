// The parts of a sample's value: in which form each comes, and where it lies.
#pragma once

#include "datasets/model/box.hpp"

#include <leat/extent.hpp>
#include <leat/samples.hpp>

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <span>

namespace leat::datasets {

struct photo_place;

/// How a part of a sample's value is come by.
enum class part_form : std::uint8_t {
  stored,  ///< read: the bytes as they are
  coded,   ///< read, and expanded: expand() makes the value, which no other sample shares
  value,  ///< the whole value within a block that samples share: expand() makes the block, copy_box() takes the value out
  box,    ///< some elements of it, likewise; all values of such a field are of one size
  produced,  ///< produce() makes it, or shows it in memory, on a decode thread
  awaited    ///< fetch() gets it, awaited on the I/O thread
};

/// Forms that parts of a field may have.
class part_forms {
 public:
  constexpr part_forms() = default;
  constexpr part_forms(part_form one) noexcept
      : bits_(bit(one)) {}  // NOLINT(google-explicit-constructor): one is a set

  [[nodiscard]] constexpr bool has(part_form one) const noexcept { return (bits_ & bit(one)) != 0; }
  [[nodiscard]] constexpr bool any_of(part_forms others) const noexcept { return (bits_ & others.bits_) != 0; }
  [[nodiscard]] constexpr bool only(part_forms others) const noexcept { return (bits_ & ~others.bits_) == 0; }
  constexpr part_forms& operator|=(part_forms others) noexcept {
    bits_ |= others.bits_;
    return *this;
  }
  friend constexpr part_forms operator|(part_forms a, part_forms b) noexcept { return a |= b; }
  friend constexpr bool operator==(part_forms, part_forms) = default;

 private:
  static constexpr std::uint8_t bit(part_form one) noexcept {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(one));
  }
  std::uint8_t bits_ = 0;
};
[[nodiscard]] constexpr part_forms operator|(part_form a, part_form b) noexcept {
  return part_forms(a) | part_forms(b);
}

inline constexpr part_forms forms_in_blocks = part_form::value | part_form::box;
/// Nothing is read for these: they have no place.
inline constexpr part_forms forms_made = part_form::produced | part_form::awaited;
/// What is read for these is expanded.
inline constexpr part_forms forms_expanded = forms_in_blocks | part_form::coded;

/// A part of a sample's value of a field. A value in several pieces has several parts, in the order of their bytes.
///   codec    of what is expanded: a number that only the model knows, for dataset_model::expand(). It may have no stored bytes at all
///            (a chunk that was never written is its fill value)
///   block    of what lies in a block: which one it is, another number that only the model knows. Two parts of the same place, codec and
///            block expand to the same bytes, from which copy_box() takes each sample's or field's box
///   whole    of a box: the block is exactly what is wanted of the sample, and copy_box() need not be called
///   where.decoded_bytes   of what is expanded, which may be more than the sample's value: size_of_value() tells that one's bytes
///   picked        of a `value`: it is picked out of a record in the block, and take_value() may give fewer bytes than value_bytes, or none
///   value_bytes   of the sample's value, where that is known before what has it is expanded: always of a `value`; never of what is `coded`
///                 and picked out of a record
///   photo   of a photo pack, where its rows lie; null where nobody has said so. The model's
struct part {
  std::uint16_t field = 0;  ///< index into dataset_model::fields()
  part_form form = part_form::stored;
  bool whole : 1 = false;
  bool picked : 1 = false;
  std::uint32_t codec = 0;
  extent where = {};  ///< where.source indexes dataset_model::sources()
  std::uint64_t block = 0;
  std::uint64_t value_bytes = 0;
  const photo_place* photo = nullptr;

  [[nodiscard]] bool is_in_block() const noexcept { return forms_in_blocks.has(form); }
  [[nodiscard]] bool is_expanded() const noexcept { return forms_expanded.has(form); }
  [[nodiscard]] bool is_made() const noexcept { return forms_made.has(form); }
};
using part_list = absl::InlinedVector<part, 4>;

/// How long a sample's value is, not what it is stored in: a block that it shares, or a record that it is picked out of.
///   is_exact   false: it has `bytes` at most, and is read to know it (value_sizes.hpp)
struct value_size {
  std::uint64_t bytes = 0;
  bool is_exact = true;
};
///   parts    the sample's, of whatever fields; at least one is of this
[[nodiscard]] value_size size_of_value(const field_info& field, std::uint16_t number,
                                       std::span<const part> parts) noexcept;

/// A field that is wanted.
///   seed, draw, epoch   for samples whose bytes lie elsewhere in each epoch (windows of tokens): leat::pick
///   within              of a field in boxes, the elements that are wanted: blocks without any are left out. Null: all. Ignored for
///                       other fields
struct need {
  std::uint16_t field = 0;
  std::uint64_t seed = 0;
  std::uint64_t draw = 0;
  std::uint32_t epoch = 0;
  const box* within = nullptr;
};

}  // namespace leat::datasets
