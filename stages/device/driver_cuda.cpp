#include "stages/device/driver_cuda.hpp"

#include <dlfcn.h>

namespace leat::stages {

void* find_in_driver(const char* symbol) noexcept {
  // The one that the runtime has opened, under the same name. It stays as long as the process.
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  return driver != nullptr ? ::dlsym(driver, symbol) : nullptr;
}

}  // namespace leat::stages
