// A kernel as a value: a table of calls launches it without knowing what it does.
#pragma once

#include <cstddef>

namespace leat::stages {

/// What runs on a device, and its twin on the host, which gives the same bits. Its machine code is found by kernels_cuda.hpp.
///   name            for errors: "the kernel that finishes pictures"
///   argument_bytes  of its arguments, a struct that can be copied by bytes; pointers in it are the device's
///   run_on_host     what the launch does, on memory of the host
struct device_kernel {
  const char* name = "";
  std::size_t argument_bytes = 0;
  void (*run_on_host)(const void* arguments) noexcept = nullptr;
};

}  // namespace leat::stages
