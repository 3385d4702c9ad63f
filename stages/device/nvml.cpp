#include "stages/device/nvml.hpp"

#include "base/text.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace leat::stages {
namespace {

struct nvml_symbol {
  const char* name;
  void (*found_at)(nvml_functions& all, void* address);
  bool is_needed = true;
};
template <auto member>
void nvml_found_at(nvml_functions& all, void* address) {
  all.*member = reinterpret_cast<std::remove_reference_t<decltype(all.*member)>>(address);
}
// GPM came with Hopper (driver 520), MIG with Ampere.
constexpr nvml_symbol nvml_symbols[] = {
    {"nvmlInit_v2", nvml_found_at<&nvml_functions::init>},
    {"nvmlShutdown", nvml_found_at<&nvml_functions::shutdown>},
    {"nvmlErrorString", nvml_found_at<&nvml_functions::error_string>},
    {"nvmlDeviceGetHandleByPciBusId_v2", nvml_found_at<&nvml_functions::device_at>},
    {"nvmlDeviceGetUtilizationRates", nvml_found_at<&nvml_functions::utilization>},
    {"nvmlDeviceGetMigMode", nvml_found_at<&nvml_functions::mig_mode>, false},
    {"nvmlGpmQueryDeviceSupport", nvml_found_at<&nvml_functions::gpm_support>, false},
    {"nvmlGpmSampleAlloc", nvml_found_at<&nvml_functions::gpm_make_sample>, false},
    {"nvmlGpmSampleFree", nvml_found_at<&nvml_functions::gpm_free_sample>, false},
    {"nvmlGpmSampleGet", nvml_found_at<&nvml_functions::gpm_take_sample>, false},
    {"nvmlGpmMetricsGet", nvml_found_at<&nvml_functions::gpm_metrics>, false}};

}  // namespace

std::optional<nvml_functions> find_nvml(const char* library, std::string& why_not) {
  void* const opened = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (opened == nullptr) {
    why_not = str_cat("NVIDIA's NVML was not found: ", ::dlerror(), "; it comes with the driver");
    return std::nullopt;
  }
  nvml_functions functions;
  for (const nvml_symbol& each : nvml_symbols) {
    void* const address = ::dlsym(opened, each.name);
    if (address != nullptr) {
      each.found_at(functions, address);
    } else if (each.is_needed) {
      why_not = str_cat(library, " has no ", each.name, ": it is not NVIDIA's NVML, or that of a very old driver");
      return std::nullopt;
    }
  }
  why_not.clear();
  return functions;
}

}  // namespace leat::stages
