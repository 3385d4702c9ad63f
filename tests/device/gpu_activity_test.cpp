// How busy a GPU is, of a library that is made up (tests/support/simulated_nvml.cpp) and opened as the real one is.
#include "stages/device/gpu_activity.hpp"

#include "tests/support/simulated_nvml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <optional>
#include <string>

namespace leat {
namespace {

using stages::gpu_activity;
using stages::gpu_reading;
using ::testing::HasSubstr;
using ::testing::Optional;
using testing::simulated_nvml;
using testing::simulated_nvml_library;
using testing::simulated_nvml_of;
using namespace std::chrono_literals;

constexpr const char* address = "0000:17:00.0";

struct watched_gpu {
  explicit watched_gpu(const char* library = simulated_nvml_library, const std::string& at = address)
      : activity(at, library, [this] { return now; }) {}
  gpu_reading read_after(std::chrono::milliseconds time) {
    now += time;
    return activity.read();
  }
  gpu_activity::clock::time_point now{1h};
  gpu_activity activity;
};

TEST(gpu_activity, is_of_the_time_since_the_look_before) {
  simulated_nvml& library = simulated_nvml_of(simulated_nvml_library);
  {
    watched_gpu gpu;
    library.sm = 61.5;
    library.occupancy = 30;
    library.percent = 93;
    const gpu_reading first = gpu.read_after(1s);
    EXPECT_THAT(first.sm, Optional(0.615));
    EXPECT_THAT(first.occupancy, Optional(0.3));
    EXPECT_THAT(first.busy, Optional(0.93));
    EXPECT_EQ(first.why_sm + first.why_occupancy + first.why_busy, "");
    library.sm = 0;
    const gpu_reading idle = gpu.read_after(1s);
    EXPECT_THAT(idle.sm, Optional(0.0)) << "an idle GPU was measured";
    library.sm = 100.2;
    EXPECT_THAT(gpu.read_after(1s).sm, Optional(1.0));
    EXPECT_EQ(library.samples_taken, 4);
  }
  EXPECT_EQ(library.samples_made, 0) << "all are freed";
  EXPECT_EQ(library.initialised, 0);
}

TEST(gpu_activity, leaves_a_time_that_is_too_short_to_the_next_look) {
  simulated_nvml& library = simulated_nvml_of(simulated_nvml_library);
  watched_gpu gpu;
  library.sm = 50;
  const gpu_reading hasty = gpu.read_after(99ms);
  EXPECT_EQ(hasty.sm, std::nullopt);
  EXPECT_EQ(hasty.why_sm, "less than 0.1 s have passed");
  EXPECT_THAT(hasty.busy, Optional(0.0));
  EXPECT_THAT(gpu.read_after(1ms).sm, Optional(0.5));
  EXPECT_EQ(library.samples_taken, 2);
}

TEST(gpu_activity, without_counters_of_sms_tells_only_when_a_kernel_ran) {
  for (const char* const path : {simulated_nvml_library, testing::simulated_old_nvml_library}) {
    simulated_nvml& library = simulated_nvml_of(path);
    library.gpm_supported = 0;
    library.percent = 93;
    watched_gpu gpu(path);
    const gpu_reading found = gpu.read_after(1s);
    EXPECT_EQ(found.sm, std::nullopt) << "what is busy is not how many SMs are";
    EXPECT_THAT(found.busy, Optional(0.93));
    EXPECT_EQ(found.why_sm, "this GPU or its driver has no counters of SMs (GPM: of Hopper and newer)");
  }
}

TEST(gpu_activity, says_in_the_librarys_words_what_it_refused) {
  simulated_nvml& library = simulated_nvml_of(simulated_nvml_library);
  library.init_status = 9;
  EXPECT_EQ(watched_gpu().read_after(1s).why_sm, "NVML says 'Driver Not Loaded' (nvmlInit, 9)");
  library.init_status = 0;
  EXPECT_THAT(watched_gpu(simulated_nvml_library, "0000:99:00.0").read_after(1s).why_sm,
              HasSubstr("'Not Found' (nvmlDeviceGetHandleByPciBusId, 6) (the GPU at 0000:99:00.0)"));
  library.sample_status = 4;
  const gpu_reading forbidden = watched_gpu().read_after(1s);
  EXPECT_EQ(forbidden.sm, std::nullopt);
  EXPECT_EQ(forbidden.why_sm, "NVML says 'Insufficient Permissions' (nvmlGpmSampleGet, 4)");
  EXPECT_THAT(forbidden.busy, Optional(0.0));
  library.sample_status = 0;
  library.metrics_status = 999;
  EXPECT_THAT(watched_gpu().read_after(1s).why_sm, HasSubstr("'Unknown Error' (nvmlGpmMetricsGet, 999)"));
  library.metrics_status = 0;
  for (const int status : {0, 3}) {
    library.metric_status = status;
    library.sm = std::numeric_limits<double>::quiet_NaN();
    const gpu_reading none = watched_gpu().read_after(1s);
    EXPECT_EQ(none.sm, std::nullopt);
    EXPECT_THAT(none.why_sm, HasSubstr("no number for SMs"));
  }
  EXPECT_EQ(library.initialised, 0);
  EXPECT_EQ(library.samples_made, 0);
}

TEST(gpu_activity, has_a_reason_for_each_measure_that_is_not_there) {
  simulated_nvml& library = simulated_nvml_of(simulated_nvml_library);
  library.sm = 50;
  library.occupancy = std::numeric_limits<double>::quiet_NaN();
  library.utilization_status = 3;
  const gpu_reading found = watched_gpu().read_after(1s);
  EXPECT_THAT(found.sm, Optional(0.5));
  EXPECT_EQ(found.why_sm, "");
  EXPECT_EQ(found.occupancy, std::nullopt);
  EXPECT_THAT(found.why_occupancy, HasSubstr("no number for their occupancy"));
  EXPECT_EQ(found.busy, std::nullopt);
  EXPECT_THAT(found.why_busy, HasSubstr("nvmlDeviceGetUtilizationRates, 3"));
}

TEST(gpu_activity, of_a_look_that_failed_begins_anew) {
  simulated_nvml& library = simulated_nvml_of(simulated_nvml_library);
  watched_gpu gpu;
  library.sm = 50;
  library.sample_status = 999;
  EXPECT_EQ(gpu.read_after(1s).sm, std::nullopt);
  library.sample_status = 0;
  const gpu_reading first = gpu.read_after(1s);
  EXPECT_EQ(first.sm, std::nullopt) << "it would be of the second before, too";
  EXPECT_NE(first.why_sm, "");
  EXPECT_THAT(gpu.read_after(1s).sm, Optional(0.5));
}

TEST(gpu_activity, asks_a_gpu_that_is_lost_nothing_more) {
  simulated_nvml& library = simulated_nvml_of(simulated_nvml_library);
  for (const bool is_seen_by_samples : {true, false}) {
    library.sample_status = library.utilization_status = 0;
    library.sm = 50;
    watched_gpu gpu;
    EXPECT_THAT(gpu.read_after(1s).sm, Optional(0.5));
    (is_seen_by_samples ? library.sample_status : library.utilization_status) = 15;
    static_cast<void>(gpu.read_after(1s));
    library.sample_status = library.utilization_status = 0;
    const int taken = library.samples_taken;
    for (int i = 0; i < 2; ++i) {
      const gpu_reading lost = gpu.read_after(1s);
      EXPECT_EQ(lost.sm, std::nullopt);
      EXPECT_EQ(lost.busy, std::nullopt);
      EXPECT_THAT(lost.why_sm, HasSubstr("GPU is lost"));
    }
    EXPECT_EQ(library.samples_taken, taken);
  }
}

TEST(gpu_activity, measures_no_part_of_a_gpu_that_is_divided) {
  simulated_nvml& library = simulated_nvml_of(simulated_nvml_library);
  library.mig_mode = 1;
  library.sm = 50;
  const gpu_reading found = watched_gpu().read_after(1s);
  EXPECT_EQ(found.sm, std::nullopt);
  EXPECT_EQ(found.busy, std::nullopt);
  EXPECT_THAT(found.why_sm, HasSubstr("MIG"));
}

TEST(gpu_activity, says_which_library_is_missing_or_another_one) {
  const gpu_reading missing = watched_gpu("libnvidia-ml-of-nobody.so.1").read_after(1s);
  EXPECT_EQ(missing.sm, std::nullopt);
  EXPECT_EQ(missing.busy, std::nullopt);
  EXPECT_THAT(missing.why_sm, HasSubstr("libnvidia-ml-of-nobody.so.1"));
  EXPECT_THAT(missing.why_sm, HasSubstr("it comes with the driver"));
  EXPECT_EQ(watched_gpu("libm.so.6").read_after(1s).why_sm,
            "libm.so.6 has no nvmlInit_v2: it is not NVIDIA's NVML, or that of a very old driver");
}

}  // namespace
}  // namespace leat
