// How busy a GPU is, from one look at it to the next: what its driver counts, whoever uses it.
#pragma once

#include "stages/device/nvml.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace leat::stages {

/// Shares of the time since the look before; nothing where they were not measured, which is never 0.
///   sm          of the GPU's processors (SMs), those that were busy
///   occupancy   of the threads (warps) that its SMs have room for, those that were there
///   busy        of the time, that with a kernel on the GPU, be it on one SM: of the driver's last sample period, of 1/6 s to 1 s
///   why_...     why there is none of these; empty where there is one
struct gpu_reading {
  std::optional<double> sm = {};
  std::optional<double> occupancy = {};
  std::optional<double> busy = {};
  std::string why_sm = {};
  std::string why_occupancy = {};
  std::string why_busy = {};
};

/// Looks at one GPU by NVML. SMs are counted by GPM, which Hopper and newer GPUs have. What belongs to other processes is counted too; where
/// the GPU is divided (MIG), nothing is. A GPU that is lost is not asked again.
/// Thread: one at a time.
class gpu_activity {
 public:
  using clock = std::chrono::steady_clock;

  /// Does not throw for a library or a GPU that is not there: read() says why.
  ///   pci_address   "0000:17:00.0"
  ///   library       its name or path
  ///   now           tests have a clock of their own
  explicit gpu_activity(
      const std::string& pci_address, const char* library = nvml_library,
      std::function<clock::time_point()> now = [] { return clock::now(); });
  gpu_activity(const gpu_activity&) = delete;
  gpu_activity& operator=(const gpu_activity&) = delete;
  ~gpu_activity();

  /// Since the look before; the first since the construction. A tenth of a second is too short to be measured, and left to the next look.
  [[nodiscard]] gpu_reading read();

 private:
  void open(const std::string& pci_address);
  void begin_gpm();
  [[nodiscard]] std::string why(const char* call, int status);
  [[nodiscard]] bool take_sample();
  void read_gpm(gpu_reading& to);

  const std::function<clock::time_point()> now_;
  nvml_functions nvml_;
  bool is_begun_ = false;           // init() has succeeded
  nvml::device* device_ = nullptr;  // null: there is none, or it is lost
  nvml::gpm_sample* before_ = nullptr;
  nvml::gpm_sample* after_ = nullptr;
  bool has_before_ = false;
  clock::time_point before_at_;
  std::string why_not_;  // no device
  std::string why_no_sm_;
};

}  // namespace leat::stages
