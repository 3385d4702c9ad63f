// Collate in place: the rows were written where they stay, so that all there is to do is to close the holes that
// skipped samples left, to put ragged rows side by side, and to sum up.
#pragma once

#include "stages/batch/batch_layout.hpp"
#include "stages/batch/batch_state.hpp"
#include "stages/run/batch_in_flight.hpp"

#include <memory>

namespace leat::stages {

/// Makes what is delivered of a batch in flight, and takes its memory. Rows of corrupt samples are left out, and the others move up in
/// order. Thread: the I/O thread, after the last row.
///   digests, names   fill those of the batch
[[nodiscard]] std::unique_ptr<batch::state> collate(batch_in_flight& batch, std::shared_ptr<const batch_layout> layout,
                                                    bool digests, bool names);

/// Bytes from the start of the block that hold rows of `batch`: what a copy to a device has to move.
[[nodiscard]] std::size_t bytes_used(const batch::state& batch);

/// Bytes of its outputs as the trainer sees them: of ragged ones the offsets too, and nothing of what lies between them.
[[nodiscard]] std::size_t output_bytes(const batch::state& batch);

}  // namespace leat::stages
