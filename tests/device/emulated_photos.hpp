// The device's code that decodes photo packs, run on the host with the threads in any order, and with a barrier left out.
#pragma once

#include "stages/device/photo_batch.hpp"

#include <cstdint>
#include <set>

namespace leat::testing {

enum class thread_order : std::uint8_t { ascending, descending, shuffled };

/// What stages::launch_decode_photos() does. Memory is the host's.
///   without   the line of a barrier in photo_threads.hpp that half of a warp's lanes pass before the others come to it; 0: none
void emulate_photos(const stages::photo_batch& photos, thread_order order, int without = 0);

/// The lines of the barriers that were passed since the program began.
const std::set<int>& barriers_passed();

}  // namespace leat::testing
