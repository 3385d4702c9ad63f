// What the library of simulated_nvml.cpp says, as whoever has opened it sets it: the symbol "simulated_nvml" is its address.
#pragma once

#include <dlfcn.h>

namespace leat::testing {

///   *_status            what the call answers; 0: it succeeds
///   percent             of the utilization
///   sm, occupancy       percent that was busy since the last sample, of GPM
///   metric_status       of each metric, where the call succeeds
struct simulated_nvml {
  int init_status = 0;
  int device_status = 0;
  int utilization_status = 0;
  unsigned percent = 0;
  unsigned mig_mode = 0;
  unsigned gpm_supported = 1;
  int sample_status = 0;
  int metrics_status = 0;
  int metric_status = 0;
  double sm = 0;
  double occupancy = 0;
  // What was done.
  int initialised = 0;
  int samples_made = 0;
  int samples_taken = 0;
};

/// Where a test's program looks for its libraries (BUILD_RPATH).
inline constexpr const char* simulated_nvml_library = "libsimulated_nvml.so";
inline constexpr const char* simulated_old_nvml_library = "libsimulated_old_nvml.so";

/// Of a library, which stays open; as it is at first.
inline simulated_nvml& simulated_nvml_of(const char* name) {
  void* const library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  auto& state = *static_cast<simulated_nvml*>(::dlsym(library, "simulated_nvml"));
  state = {};
  return state;
}

}  // namespace leat::testing
