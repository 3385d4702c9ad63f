// A finished batch: named tensors in one block of leased memory.
#pragma once

#include <leat/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leat {

/// A 128-bit digest (XXH3), canonical byte order.
struct digest {
  std::array<std::uint8_t, 16> bytes{};

  /// 32 lower-case hex digits.
  [[nodiscard]] std::string hex() const;
  friend bool operator==(const digest&, const digest&) = default;
};

/// One batch. Move-only: the only owner of its memory, which goes home when the batch ends. It may outlive its loader.
/// Each batch that is kept is memory the loader cannot fill; who keeps as many as loader_plan::batches gets no more.
/// Thread: one at a time.
class batch {
 public:
  struct state;  // stages/batch_state.hpp
  explicit batch(std::unique_ptr<state> from) noexcept;
  batch(batch&&) noexcept;
  batch& operator=(batch&&) noexcept;
  batch(const batch&) = delete;
  batch& operator=(const batch&) = delete;
  ~batch();

  /// The output of this name; its first axis is valid_rows(). Throws error{errc::not_found}, naming what there is.
  [[nodiscard]] tensor operator[](std::string_view name) const;
  /// All outputs, in the order of the fields.
  [[nodiscard]] std::span<const std::string> outputs() const noexcept;
  /// One row of a ragged output (bytes, text).
  [[nodiscard]] std::span<const std::byte> bytes(std::string_view name, std::size_t row) const;

  /// Rows that hold a sample: the planned rows less those skipped. May be 0.
  [[nodiscard]] std::uint32_t valid_rows() const noexcept;
  /// The epoch, from 0, and the batch's number in it, from 0.
  [[nodiscard]] std::uint32_t epoch() const noexcept;
  [[nodiscard]] std::uint64_t index() const noexcept;
  /// For each row the sample that lies in it, in the dataset's numbering. A substituted row names its substitute.
  [[nodiscard]] std::span<const std::uint64_t> ids() const noexcept;
  /// For each row the sample's name; empty unless loader_options::names.
  [[nodiscard]] std::span<const std::string> names() const noexcept;
  /// Over (epoch, index, row digests in order); unset unless loader_options::digests.
  [[nodiscard]] std::optional<digest> content_digest() const noexcept;
  /// One per row, over the sample id and each output's name, dtype, shape and bytes; empty unless digests.
  [[nodiscard]] std::span<const digest> row_digests() const noexcept;

  [[nodiscard]] const state& details() const noexcept { return *state_; }

 private:
  std::unique_ptr<state> state_;
};

}  // namespace leat
