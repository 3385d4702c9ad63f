// From the name of a device to the table of its functions. CUDA's half of this file's declarations is device_cuda.cpp;
// builds without CUDA have device_none.cpp.
#pragma once

#include "stages/device.hpp"

#include <leat/tensor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace leat::stages {

/// A device, or why there is none: then batches stay on the host.
struct opened_device {
  std::shared_ptr<device_calls> calls;
  std::string why_not;
};

/// Throws error{errc::not_found} where there are GPUs and `which` is none of them.
[[nodiscard]] opened_device open_device(device which);

/// Every device that there is, or why there is none.
struct device_list {
  std::vector<std::shared_ptr<device_calls>> devices;
  std::string why_not;
  bool built_with_cuda = false;
};
[[nodiscard]] device_list list_devices();

}  // namespace leat::stages
