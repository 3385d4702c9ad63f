// What a device does to a batch between its copy and its hand-over: an output of the batch is made there of others that were copied.
// Made with the fields, launched once for each batch, in order with the copy.
#pragma once

#include <leat/stream.hpp>

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace leat::stages {

class device_calls;
class keeping_operation;
struct failed_call;

/// What an operation works on: all of it memory of the device, or, in make_row(), of the host.
///   from   the tensor of the output's rows as decode() wrote them, then those of output_spec::made_from
struct operands {
  std::span<const std::byte* const> from;
  std::uint32_t rows = 0;
  std::byte* to = nullptr;       ///< the tensor that is made
  std::byte* scratch = nullptr;  ///< scratch_bytes() that are this launch's until the next operation begins
  /// launch() alone: the host's memory that from[0] was copied from. Read after launch() only where reads_host().
  const std::byte* on_host = nullptr;
};

/// Immutable, and shared by all batches. Its tensor takes output_spec::row_bytes() of device memory for each row.
class device_operation {
 public:
  device_operation() = default;
  device_operation(const device_operation&) = delete;
  device_operation& operator=(const device_operation&) = delete;
  virtual ~device_operation() = default;

  /// Bytes of a row as decode() writes it, which is what is copied to the device.
  [[nodiscard]] virtual std::size_t decoded_row_bytes() const noexcept = 0;
  /// Whether rows are full. Where they are not only what is used of each is copied.
  [[nodiscard]] virtual bool has_full_rows() const noexcept { return true; }
  /// Of a row as decode() wrote it: bytes from its beginning at which launch() looks on the device.
  [[nodiscard]] virtual std::size_t used_row_bytes(const std::byte* /*row*/) const noexcept {
    return decoded_row_bytes();
  }
  /// A row that is not full lies in so many pieces of one length, of each of which used_piece_bytes() are copied.
  [[nodiscard]] virtual std::uint32_t pieces_in_row() const noexcept { return 1; }
  [[nodiscard]] virtual std::size_t used_piece_bytes(const std::byte* piece) const noexcept {
    return used_row_bytes(piece);
  }
  /// Device memory for a batch of so many rows, beside its operands. One piece serves all batches, as they are made one by one.
  [[nodiscard]] virtual std::size_t scratch_bytes(std::uint32_t /*rows*/) const noexcept { return 0; }
  /// Whether what launch() puts into the stream reads operands::on_host when its turn comes: it stays until then.
  [[nodiscard]] virtual bool reads_host() const noexcept { return false; }
  /// Puts its kernels into `in`. Returns the call that failed, if one did.
  [[nodiscard]] virtual failed_call launch(device_calls& calls, const operands& of, stream in) const noexcept = 0;
  /// What make_row() needs beside the row.
  [[nodiscard]] virtual std::size_t make_row_bytes() const noexcept { return 0; }
  /// One row of what launch() makes, on the host with the same bits, for digests. Without the operands that other outputs of the
  /// batch have added to those of its field.
  ///   scratch   make_row_bytes(), aligned to 16
  virtual void make_row(std::span<const std::byte* const> from, std::uint32_t row, std::byte* to,
                        std::byte* scratch) const noexcept = 0;
  /// Not null: a device may keep the packs that rows carry (kept_pack.hpp).
  [[nodiscard]] virtual const keeping_operation* keeping() const noexcept { return nullptr; }
  /// It makes of any operands what the other does: rows of both can then be those of one. False where nobody knows.
  [[nodiscard]] virtual bool is_like(const device_operation& /*other*/) const noexcept { return false; }
};

/// An operation and where its operands lie in a batch.
///   from   offsets in the block that was copied
///   to     offset in the memory that only the device has
struct device_step {
  const device_operation* operation = nullptr;
  absl::InlinedVector<std::size_t, 4> from;
  std::size_t to = 0;
};

/// Where the scratch of make_row() lies behind a row, in one piece of memory.
[[nodiscard]] constexpr std::size_t scratch_behind(std::size_t row_bytes) noexcept {
  constexpr std::size_t alignment = 16;
  return (row_bytes + alignment - 1) / alignment * alignment;
}

}  // namespace leat::stages
