// From the name of a device to the table of its functions. CUDA's half of this file's declarations is device_cuda.cpp;
// builds without CUDA have device_none.cpp.
#pragma once

#include "stages/device/device.hpp"

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

/// A device whose table pins host memory, for copies that the trainer makes: that of the calling thread's context, else the first GPU that
/// the process uses, else the one that CUDA gives a thread. It loads no kernels. Where the driver lacks record_all() there is none.
[[nodiscard]] opened_device open_for_pinning();

struct unusable_device {
  device which = host;
  std::string why;
};

/// Every device that there is: those that can be used, and those that cannot.
struct device_list {
  std::vector<std::shared_ptr<device_calls>> devices;
  std::vector<unusable_device> unusable = {};
  std::string why_not;  ///< why there is none that can
  bool built_with_cuda = false;
};
[[nodiscard]] device_list list_devices();

}  // namespace leat::stages
