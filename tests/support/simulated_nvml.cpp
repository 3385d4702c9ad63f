// Names and layouts of NVIDIA's nvml.h of 12.2, declared once more: that of stages/device/nvml.hpp is held to them.
#include "tests/support/simulated_nvml.hpp"

#include <cstring>

extern "C" {

leat::testing::simulated_nvml simulated_nvml;

int nvmlInit_v2() {
  if (simulated_nvml.init_status == 0) ++simulated_nvml.initialised;
  return simulated_nvml.init_status;
}
int nvmlShutdown() {
  --simulated_nvml.initialised;
  return 0;
}
const char* nvmlErrorString(int status) {
  switch (status) {
    case 4:
      return "Insufficient Permissions";
    case 6:
      return "Not Found";
    case 9:
      return "Driver Not Loaded";
    case 15:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}

struct nvmlDevice_st {
  int number;
};
nvmlDevice_st the_gpu = {7};

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, nvmlDevice_st** device) {
  if (simulated_nvml.initialised == 0) return 1;
  if (simulated_nvml.device_status != 0) return simulated_nvml.device_status;
  if (std::strcmp(address, "0000:17:00.0") != 0) return 6;
  *device = &the_gpu;
  return 0;
}

struct nvmlUtilization_st {
  unsigned int gpu;
  unsigned int memory;
};
int nvmlDeviceGetUtilizationRates(nvmlDevice_st* device, nvmlUtilization_st* rates) {
  if (device != &the_gpu) return 2;
  if (simulated_nvml.utilization_status == 0) *rates = {simulated_nvml.percent, 99};
  return simulated_nvml.utilization_status;
}

#ifndef LEAT_WITHOUT_GPM

int nvmlDeviceGetMigMode(nvmlDevice_st* device, unsigned int* now, unsigned int* pending) {
  if (device != &the_gpu) return 2;
  *now = simulated_nvml.mig_mode;
  *pending = 0;
  return 0;
}

struct nvmlGpmSupport_t {
  unsigned int version;
  unsigned int isSupportedDevice;
};
int nvmlGpmQueryDeviceSupport(nvmlDevice_st* device, nvmlGpmSupport_t* support) {
  if (device != &the_gpu) return 2;
  if (support->version != 1) return 25;
  support->isSupportedDevice = simulated_nvml.gpm_supported;
  return 0;
}

struct nvmlGpmSample_st {
  int taken;
};
int nvmlGpmSampleAlloc(nvmlGpmSample_st** sample) {
  *sample = new nvmlGpmSample_st{};
  ++simulated_nvml.samples_made;
  return 0;
}
int nvmlGpmSampleFree(nvmlGpmSample_st* sample) {
  delete sample;
  --simulated_nvml.samples_made;
  return 0;
}
int nvmlGpmSampleGet(nvmlDevice_st* device, nvmlGpmSample_st* sample) {
  if (device != &the_gpu) return 2;
  if (simulated_nvml.sample_status == 0) sample->taken = ++simulated_nvml.samples_taken;
  return simulated_nvml.sample_status;
}

struct nvmlGpmMetric_t {
  unsigned int metricId;
  int nvmlReturn;
  double value;
  struct {
    char* shortName;
    char* longName;
    char* unit;
  } metricInfo;
};
struct nvmlGpmMetricsGet_t {
  unsigned int version;
  unsigned int numMetrics;
  nvmlGpmSample_st* sample1;
  nvmlGpmSample_st* sample2;
  nvmlGpmMetric_t metrics[98];
};
int nvmlGpmMetricsGet(nvmlGpmMetricsGet_t* asked) {
  if (asked->version != 1) return 25;
  // One after the other, as they were taken.
  if (asked->sample1->taken == 0 || asked->sample2->taken != asked->sample1->taken + 1) return 2;
  if (simulated_nvml.metrics_status != 0) return simulated_nvml.metrics_status;
  for (unsigned int i = 0; i < asked->numMetrics; ++i) {
    nvmlGpmMetric_t& metric = asked->metrics[i];
    metric.nvmlReturn = simulated_nvml.metric_status;
    metric.value = metric.metricId == 2 ? simulated_nvml.sm : metric.metricId == 3 ? simulated_nvml.occupancy : -1;
  }
  return 0;
}

#endif

}  // extern "C"
