// What decides the bytes of a loader's run, by name: what its states carry.
#pragma once

#include <leat/description.hpp>
#include <leat/field.hpp>
#include <leat/loader_state.hpp>
#include <leat/sampler.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace leat {
struct loader_options;
}

namespace leat::stages {

///   global_batch_size   rows of a full batch of all ranks together
///   world_size          decides bytes only where rows of a rank are mixed with one another
struct run_shape {
  std::uint64_t global_batch_size = 0;
  std::uint32_t world_size = 1;
};

/// Those options that decide bytes; docs/guides/ranks-and-resume.md lists them, and those that decide nothing.
[[nodiscard]] description describe_options(const loader_options& options, const run_shape& shape);

/// Made once for a loader, when its first state is asked for: some milliseconds for a million loose files. `fields` in the loader's
/// order. What has no name is found by state_descriptions::check_named().
[[nodiscard]] std::shared_ptr<const state_descriptions> describe_run(const loader_options& options,
                                                                     const run_shape& shape, const dataset& samples,
                                                                     std::span<const field> fields,
                                                                     const sampler& order);

}  // namespace leat::stages
