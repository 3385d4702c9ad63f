#include "stages/device/gpu_activity.hpp"

#include "base/text.hpp"

#include <memory>
#include <utility>

namespace leat::stages {
namespace {

constexpr std::chrono::milliseconds too_short{100};

// Of percents. What is no number, or more than all, is none.
std::optional<double> share_of(double percent) {
  constexpr double rounding = 0.5;
  if (!(percent >= 0 && percent <= 100 + rounding)) return std::nullopt;
  return percent < 100 ? percent / 100 : 1.0;
}

std::optional<double> share_of(const nvml::gpm_metric& metric) {
  return metric.status == nvml::success ? share_of(metric.value) : std::nullopt;
}

}  // namespace

gpu_activity::gpu_activity(const std::string& pci_address, const char* library, std::function<clock::time_point()> now)
    : now_(std::move(now)) {
  const std::optional<nvml_functions> found = find_nvml(library, why_not_);
  if (!found) return;
  nvml_ = *found;
  open(pci_address);
  if (device_ != nullptr) begin_gpm();
}

gpu_activity::~gpu_activity() {
  for (nvml::gpm_sample* const each : {before_, after_}) {
    if (each != nullptr) static_cast<void>(nvml_.gpm_free_sample(each));
  }
  if (is_begun_) static_cast<void>(nvml_.shutdown());
}

void gpu_activity::open(const std::string& pci_address) {
  if (const int status = nvml_.init(); status != nvml::success) {
    why_not_ = why("nvmlInit", status);
    return;
  }
  is_begun_ = true;
  nvml::device* found = nullptr;
  if (const int status = nvml_.device_at(pci_address.c_str(), &found); status != nvml::success) {
    why_not_ = str_cat(why("nvmlDeviceGetHandleByPciBusId", status), " (the GPU at ", pci_address, ")");
    return;
  }
  unsigned is_divided = 0;
  unsigned after_reset = 0;
  if (nvml_.mig_mode != nullptr && nvml_.mig_mode(found, &is_divided, &after_reset) == nvml::success &&
      is_divided != 0) {
    why_not_ = "the GPU is divided (MIG), and NVML would count all of it";
    return;
  }
  device_ = found;
}

void gpu_activity::begin_gpm() {
  constexpr const char* none = "this GPU or its driver has no counters of SMs (GPM: of Hopper and newer)";
  nvml::gpm_support support;
  if (!nvml_.have_gpm() || nvml_.gpm_support(device_, &support) != nvml::success || support.is_supported == 0) {
    why_no_sm_ = none;
    return;
  }
  for (nvml::gpm_sample** const each : {&before_, &after_}) {
    if (const int status = nvml_.gpm_make_sample(each); status != nvml::success) {
      *each = nullptr;
      why_no_sm_ = why("nvmlGpmSampleAlloc", status);
      return;
    }
  }
  has_before_ = take_sample();
  std::swap(before_, after_);
}

// NVML's own words.
std::string gpu_activity::why(const char* call, int status) {
  const char* const words = nvml_.error_string(status);
  return str_cat("NVML says '", words != nullptr ? words : "?", "' (", call, ", ", status, ")");
}

// Into after_.
bool gpu_activity::take_sample() {
  before_at_ = now_();
  const int status = nvml_.gpm_take_sample(device_, after_);
  if (status == nvml::success) return true;
  why_no_sm_ = why("nvmlGpmSampleGet", status);
  if (status == nvml::gpu_is_lost) {
    why_not_ = why_no_sm_;
    device_ = nullptr;
  }
  return false;
}

void gpu_activity::read_gpm(gpu_reading& to) {
  if (before_ == nullptr || after_ == nullptr) return;
  if (has_before_ && now_() - before_at_ < too_short) {
    to.why_sm = to.why_occupancy = "less than 0.1 s have passed";
    return;
  }
  const bool had_before = std::exchange(has_before_, false);
  if (!take_sample()) return;
  has_before_ = true;
  const auto between = std::make_unique<nvml::gpm_metrics>();
  between->count = 2;
  between->before = before_;
  between->after = after_;
  between->metrics[0].id = nvml::metric_sm_util;
  between->metrics[1].id = nvml::metric_sm_occupancy;
  std::swap(before_, after_);
  if (!had_before) return;  // the call that failed before says why
  const int status = nvml_.gpm_metrics(between.get());
  if (status != nvml::success) {
    to.why_sm = to.why_occupancy = why("nvmlGpmMetricsGet", status);
    return;
  }
  to.sm = share_of(between->metrics[0]);
  to.occupancy = share_of(between->metrics[1]);
  to.why_sm = str_cat("NVML has no number for SMs (", between->metrics[0].status, ")");
  to.why_occupancy = str_cat("NVML has no number for their occupancy (", between->metrics[1].status, ")");
}

gpu_reading gpu_activity::read() {
  gpu_reading found;
  if (device_ != nullptr) read_gpm(found);
  if (device_ != nullptr) {
    nvml::utilization rates;
    const int status = nvml_.utilization(device_, &rates);
    if (status == nvml::success) {
      found.busy = share_of(rates.gpu);
      found.why_busy = str_cat("NVML says ", rates.gpu, " percent");
    } else {
      found.why_busy = why("nvmlDeviceGetUtilizationRates", status);
    }
    if (status == nvml::gpu_is_lost) {
      why_not_ = found.why_busy;
      device_ = nullptr;
    }
  }
  const auto explain = [](const std::optional<double>& share, std::string& reason, const std::string& general) {
    if (share) {
      reason.clear();
    } else if (reason.empty()) {
      reason = general;
    }
  };
  explain(found.sm, found.why_sm, device_ != nullptr ? why_no_sm_ : why_not_);
  explain(found.occupancy, found.why_occupancy, device_ != nullptr ? why_no_sm_ : why_not_);
  explain(found.busy, found.why_busy, why_not_);
  return found;
}

}  // namespace leat::stages
