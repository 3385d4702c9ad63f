#include "stages/device/open_device.hpp"

namespace leat::stages {
namespace {

constexpr const char* why =
    "this build of leat has no CUDA; configure where nvcc is, or with -DLEAT_CUDA=ON to hear why not";

}  // namespace

opened_device open_device(device which) {
  static_cast<void>(which);
  return {.calls = nullptr, .why_not = why};
}

opened_device open_for_pinning() { return {.calls = nullptr, .why_not = why}; }

device_list list_devices() { return {.devices = {}, .unusable = {}, .why_not = why, .built_with_cuda = false}; }

}  // namespace leat::stages
