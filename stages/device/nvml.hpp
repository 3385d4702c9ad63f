// NVIDIA's management library (NVML), as far as leat calls it: how busy a GPU is. Its functions are a table, as the library may be there or
// not. The prototypes are ours, after NVIDIA's nvml.h of 12.2; its Python binding of 13.615 has the same.
#pragma once

#include <optional>
#include <string>

namespace leat::stages {

/// Types and numbers of nvml.h.
namespace nvml {

struct device;      // nvmlDevice_t
struct gpm_sample;  // nvmlGpmSample_t

/// nvmlReturn_t, of which these concern us.
inline constexpr int success = 0;
inline constexpr int gpu_is_lost = 15;

/// nvmlUtilization_t, of the last sample period: 1/6 s to 1 s.
///   gpu   percent of its time that a kernel was executed
struct utilization {
  unsigned gpu = 0;
  unsigned memory = 0;
};

/// nvmlGpmSupport_t
struct gpm_support {
  unsigned version = 1;  // NVML_GPM_SUPPORT_VERSION
  unsigned is_supported = 0;
};

/// nvmlGpmMetricId_t, in percent.
inline constexpr unsigned metric_sm_util = 2;       // NVML_GPM_METRIC_SM_UTIL
inline constexpr unsigned metric_sm_occupancy = 3;  // NVML_GPM_METRIC_SM_OCCUPANCY

/// nvmlGpmMetric_t. `value` is one only where `status` is success.
struct gpm_metric {
  unsigned id = 0;
  int status = success;
  double value = 0;
  char* short_name = nullptr;
  char* long_name = nullptr;
  char* unit = nullptr;
};
static_assert(sizeof(gpm_metric) == 40);

/// nvmlGpmMetricsGet_t. Its array has room for 98 metrics in 12.2, and for 477 in 13.615, under one version: the library looks at the first
/// `count`. The room is that of the largest all the same.
struct gpm_metrics {
  unsigned version = 1;  // NVML_GPM_METRICS_GET_VERSION
  unsigned count = 0;
  gpm_sample* before = nullptr;
  gpm_sample* after = nullptr;
  gpm_metric metrics[512];
};

}  // namespace nvml

struct nvml_functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int status) = nullptr;
  int (*device_at)(const char* pci_address, nvml::device** found) = nullptr;
  int (*utilization)(nvml::device* of, nvml::utilization* found) = nullptr;
  // Not of every driver: null where they are not there.
  int (*mig_mode)(nvml::device* of, unsigned* now, unsigned* after_reset) = nullptr;
  int (*gpm_support)(nvml::device* of, nvml::gpm_support* found) = nullptr;
  int (*gpm_make_sample)(nvml::gpm_sample** made) = nullptr;
  int (*gpm_free_sample)(nvml::gpm_sample* which) = nullptr;
  int (*gpm_take_sample)(nvml::device* of, nvml::gpm_sample* into) = nullptr;
  int (*gpm_metrics)(nvml::gpm_metrics* between) = nullptr;

  [[nodiscard]] bool have_gpm() const noexcept {
    return gpm_support != nullptr && gpm_make_sample != nullptr && gpm_free_sample != nullptr &&
           gpm_take_sample != nullptr && gpm_metrics != nullptr;
  }
};

/// The name under which drivers have it.
inline constexpr const char* nvml_library = "libnvidia-ml.so.1";

/// Opens the library, which stays open as long as the process. Nothing, and `why_not`, where there is none, or one that lacks a function
/// that all of them have.
[[nodiscard]] std::optional<nvml_functions> find_nvml(const char* library, std::string& why_not);

}  // namespace leat::stages
