// Where the batches of the loader's suites lie. The suites are compiled once; each program that runs them links one of
// place_host.cpp, place_simulated_device.cpp and place_cuda.cpp.
#pragma once

#include "stages/run/loader_parts.hpp"

#include <leat/batch.hpp>
#include <leat/loading.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace leat::testing {

/// A loader's options, and the parts of it that a test brings along.
struct loader_options : leat::loader_options, stages::loader_parts {};

/// A loader that is made with both.
class loader : public leat::loader {
 public:
  template <class... Fields>
    requires(sizeof...(Fields) > 0 && (std::convertible_to<Fields, field> && ...))
  loader(dataset samples, const loader_options& options, Fields... fields)
      : loader(std::move(samples), options, std::vector<field>{field(std::move(fields))...}) {}
  loader(dataset samples, const loader_options& options, std::vector<field> fields)
      : leat::loader(stages::make_loader(std::move(samples), options, std::move(fields), options)) {}
};

/// Has the loader that is made with `options` deliver there.
void choose_place(loader_options& options);

/// Reads a batch that lies on a device, in a stream that has waited for it and for nothing else.
///   copy      as large as `whole`; what lies in `tensors` is written to the same places of it
///   whole     the batch's memory
///   tensors   parts of `whole`
void read_from_device(batch& from, std::span<std::byte> copy, std::span<const std::byte> whole,
                      const std::vector<std::span<const std::byte>>& tensors);

/// The same for who knows that the device is a simulated one.
void read_from_simulated_device(batch& from, std::span<std::byte> copy, std::span<const std::byte> whole,
                                const std::vector<std::span<const std::byte>>& tensors);

}  // namespace leat::testing
