// A loader some of whose parts its maker brings along: tests and benchmarks, which watch how batches get to the trainer, or need
// no GPU for it. Not installed.
#pragma once

#include <leat/dataset.hpp>
#include <leat/field.hpp>
#include <leat/loader.hpp>

#include <memory>
#include <vector>

namespace leat::stages {

class transfer;      // stages/transfer.hpp
class device_calls;  // stages/device.hpp

/// What stands in the place of what loader_options::device asks for; null is that itself.
///   transfer       how batches get to the trainer
///   device_calls   the device's table of calls; where there is a transfer it is not looked at
struct loader_parts {
  std::shared_ptr<stages::transfer> transfer = {};
  std::shared_ptr<stages::device_calls> device_calls = {};
};

/// As the loader's constructor.
[[nodiscard]] loader make_loader(dataset samples, loader_options options, std::vector<field> fields,
                                 loader_parts parts);

}  // namespace leat::stages
