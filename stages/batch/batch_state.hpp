// The state of a leat::batch: its leased memory, where each tensor lies in it, and what is released with it.
#pragma once

#include "base/clock.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/batch/batch_layout.hpp"
#include "stages/batch/packed_piece.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/observe/batches_out.hpp"
#include "stages/observe/run_progress.hpp"

#include <leat/batch.hpp>
#include <leat/picture_geometry.hpp>
#include <leat/sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat {

/// Resources that a batch releases when it ends. Its owner is the batch; once a tensor of the batch has been exported as DLPack, the
/// batch and all such tensors share it.
struct batch_hold {
  batch_hold() = default;
  batch_hold(batch_hold&&) = default;
  batch_hold& operator=(batch_hold&&) = delete;
  ~batch_hold() {
    on_device.reset();
    if (returns_to != nullptr && memory) returns_to->give_back(std::move(memory), batches_out != nullptr);
    if (batches_out != nullptr) batches_out->remove(now_ns(), out_slot);
  }

  /// Where rows begin for the trainer: the block, or its copy on a device; null once released.
  [[nodiscard]] std::byte* base() const noexcept { return on_device != nullptr ? on_device->data() : memory.data(); }
  [[nodiscard]] device where() const noexcept { return on_device != nullptr ? on_device->where() : host; }

  io::lease memory;                                 ///< the block, until a device has taken it
  std::unique_ptr<stages::device_batch> on_device;  ///< set if the batch is on a device
  // Takes the memory back. Shared with the loader, since a batch may outlive it.
  std::shared_ptr<stages::transfer> returns_to;
  // Counts the batches in the consumer's hands, for stats(); shared for the same reason. Set when the batch is handed out, not before.
  std::shared_ptr<stages::batches_out> batches_out;
  std::size_t out_slot = 0;
};

struct batch::state : batch_hold {
  /// A ragged output of this batch.
  struct ragged {
    std::size_t offset = 0;      ///< of its buffer in the block
    std::size_t bytes = 0;       ///< of the tensor, after collate
    std::size_t row_bytes = 0;   ///< of each row, where they are padded
    std::size_t own_bytes = 0;   ///< of its rows without padding
    std::size_t room_bytes = 0;  ///< of its rows with it; where they are not filled up, as if they were
    std::size_t longest = 0;     ///< of its rows without padding
    std::size_t capacity = 0;    ///< of an output that is of_batch
    dimensions shape = {};       ///< of an output that is of_batch
  };

  /// Throws error{errc::usage} after release_on().
  void check_held() const;
  /// The batch's resources, its own or shared.
  [[nodiscard]] batch_hold& held() noexcept { return shared != nullptr ? *shared : *this; }
  /// A row of a ragged output on the host, without padding.
  [[nodiscard]] std::span<const std::byte> ragged_row(const stages::batch_layout::output_place& place, std::size_t row);
  /// Makes them shared.
  [[nodiscard]] const std::shared_ptr<batch_hold>& share() {
    if (shared == nullptr) shared = std::make_shared<batch_hold>(std::move(static_cast<batch_hold&>(*this)));
    return shared;
  }

  std::shared_ptr<batch_hold> shared;  ///< set by share(); what this inherits is empty then
  bool released = false;               ///< release_on() was called
  // Shared with the loader and its other batches.
  std::shared_ptr<const stages::batch_layout> layout;

  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
  std::uint32_t rows = 0;
  std::uint32_t padded = 0;  ///< of them, at their end
  std::vector<ragged> raggeds;
  std::vector<std::size_t> ragged_bytes;  ///< [row * ragged outputs + output]: without padding
  std::vector<std::uint64_t> ids;
  std::vector<pick> picks;                   ///< the rows', where they are to be mixed, or have names
  std::vector<stages::placed_piece> pieces;  ///< the rows', where an order packs
  std::uint32_t packed_rows = 0;             ///< likewise
  std::vector<std::string> names;
  std::vector<digest> row_digests;
  std::vector<picture_geometry> geometries;  ///< [row * pictures + picture]: batch_layout::picture_count() of them
  std::optional<digest> content;
  stages::run_progress after;  ///< once it was handed out
};

}  // namespace leat
