// What of the rows of a run a device may keep: what is the same in every epoch.
#pragma once

#include "stages/device/device_cache.hpp"

#include <leat/loading.hpp>

#include <memory>

namespace leat::stages {

class run_spec;

/// As loader_options::device_cache asks; null where it asks for none. Rows stay where each is a function of its sample alone, and of fixed
/// length; and photo packs where a device decodes them, whatever is drawn.
[[nodiscard]] std::shared_ptr<const cache_needs> cache_needs_of(const run_spec& run, const loader_options& options);

/// Whether rows carry the packs that may stay: while some still fit, and not before there is a cache. Thread: any.
void carry_packs(const run_spec& run, bool carried);

}  // namespace leat::stages
