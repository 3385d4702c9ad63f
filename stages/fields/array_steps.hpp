// What an array field does with the numbers of a row: mirrors, normalises, converts and reorders them, in one pass.
#pragma once

#include "base/outcome.hpp"
#include "base/random.hpp"

#include <leat/description.hpp>
#include <leat/tensor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

/// As the user wrote it, before the shape of a row is known. Axes are of the row before it is transposed, from the end where negative.
struct array_steps {
  struct flip {
    std::int64_t axis = 0;
    double probability = 1;
    bool random = false;
  };
  ///   mean, deviation   of each place along the axis; one number: of all
  struct normalization {
    std::vector<double> mean;
    std::vector<double> deviation;
    std::int64_t axis = 0;
  };
  std::vector<flip> flips;
  std::optional<normalization> statistics;
  std::optional<dtype> type;
  std::vector<std::int64_t> order;  // of axes; empty: as they are

  [[nodiscard]] bool empty() const noexcept { return flips.empty() && !statistics && !type && order.empty(); }
  void describe(description& out) const;
};

/// The same for rows of one dtype and shape. Immutable once it is shared.
class array_walk {
 public:
  ///   where    names the field in errors
  ///   throws   error{errc::usage} an axis that the rows lack, an order that is none, statistics of another number of places, a
  ///            probability that is none, a dtype that the numbers do not become
  array_walk(const array_steps& steps, dtype type, const dimensions& row, const std::string& where);

  /// Of what it makes.
  [[nodiscard]] dtype type() const noexcept { return to_; }
  [[nodiscard]] const dimensions& shape() const noexcept { return shape_; }
  [[nodiscard]] bool random() const noexcept;
  /// Whether two draws of one row can differ.
  [[nodiscard]] bool varies() const noexcept;
  /// Bytes of an element, and of a row, as they are stored.
  [[nodiscard]] std::size_t stored_bytes() const noexcept { return size_bytes(from_); }
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    return static_cast<std::size_t>(row_.elements()) * stored_bytes();
  }

  /// Draws as the `number`-th view of its member, from 1, which it is by itself.
  void set_view(std::uint32_t number) { view_ = number; }

  /// Makes a row of the stored one.
  ///   returns   corrupt: a number that the dtype of the output has not
  [[nodiscard]] outcome<void> write(std::span<const std::byte> from, std::span<std::byte> to, std::uint64_t seed,
                                    std::uint32_t epoch, std::uint64_t draw, const std::atomic<bool>* stop) const;

 private:
  struct axis {
    std::int64_t extent = 1;
    std::ptrdiff_t stride_bytes = 0;  // of the stored row; negative where it is mirrored
    bool has_statistics = false;
  };
  [[nodiscard]] bool is_mirrored(std::size_t stored_axis, std::uint64_t seed, std::uint32_t epoch,
                                 std::uint64_t draw) const;
  [[nodiscard]] bool only_moves() const noexcept { return mean_.empty() && from_ == to_; }
  [[nodiscard]] std::optional<std::string> run(const std::byte* at, const axis& along, std::int64_t place,
                                               bool is_mirrored, std::byte* to) const;

  dtype from_;
  dtype to_;
  dimensions row_;
  dimensions shape_;
  std::vector<std::size_t> order_;  // the stored axis of each axis that is made
  std::vector<array_steps::flip> flips_;
  std::vector<double> mean_;  // along axis_; empty: nothing is normalised
  std::vector<double> deviation_;
  std::optional<std::size_t> axis_;  // none: one mean for all
  std::uint32_t view_ = 1;
};

}  // namespace leat::stages
