// What a profiler sees of a run: this program is one, by NVTX's own door for tools that are linked in.
#include "stages/batch/range.hpp"
#include "tests/device/ranges_off.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/simulated_device.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#if LEAT_HAS_NVTX

namespace leat {
namespace {

using testing::loader;
using testing::loader_options;

/// All that was told. A string's handle is its address here, a domain's that of its name.
struct listener {
  std::mutex mutex;
  std::set<std::string> names;
  std::string domain;
  std::map<std::string, int> pushed;
  std::map<std::string, int> started;
  int ended = 0;
  std::atomic<int> wrong{0};
} heard;                     // NOLINT
thread_local int depth = 0;  // NOLINT: of this thread's ranges

nvtxDomainHandle_t create(const char* name) {
  const std::lock_guard lock(heard.mutex);
  heard.domain = name;
  return reinterpret_cast<nvtxDomainHandle_t>(heard.domain.data());
}
nvtxStringHandle_t register_string(nvtxDomainHandle_t, const char* text) {
  const std::lock_guard lock(heard.mutex);
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<std::string*>(&*heard.names.emplace(text).first));
}
std::string name_of(const nvtxEventAttributes_t* event) {
  return *reinterpret_cast<const std::string*>(event->message.registered);
}
int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const std::lock_guard lock(heard.mutex);
  if (reinterpret_cast<char*>(domain) != heard.domain.data()) ++heard.wrong;
  ++heard.pushed[name_of(event)];
  return depth++;
}
int pop(nvtxDomainHandle_t) {
  if (--depth < 0) ++heard.wrong;
  return depth;
}
nvtxRangeId_t start(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  const std::lock_guard lock(heard.mutex);
  ++heard.started[name_of(event)];
  return 17;
}
void end(nvtxDomainHandle_t, nvtxRangeId_t id) {
  const std::lock_guard lock(heard.mutex);
  if (id != 17) ++heard.wrong;
  ++heard.ended;
}

int listen(NvtxGetExportTableFunc_t get) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  const auto set = [&](NvtxCallbackIdCore2 which, auto function) {
    *table[which] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  set(NVTX_CBID_CORE2_DomainCreateA, create);
  set(NVTX_CBID_CORE2_DomainRegisterStringA, register_string);
  set(NVTX_CBID_CORE2_DomainRangePushEx, push);
  set(NVTX_CBID_CORE2_DomainRangePop, pop);
  set(NVTX_CBID_CORE2_DomainRangeStartEx, start);
  set(NVTX_CBID_CORE2_DomainRangeEnd, end);
  return 1;
}

// NVTX calls what stands there when the first range begins.
const bool listening = (InitializeInjectionNvtx2_fnptr = listen) != nullptr;

TEST(ranges, are_around_every_batch_planned_collated_and_sent_every_sample_decoded_and_every_next) {
  ASSERT_TRUE(listening);
  const testing::watchdog dog("ranges");
  const auto device = std::make_shared<testing::simulated_device>();
  loader_options options = testing::small_options();
  options.device_calls = device;
  const int batches = 2 * ((45 + 7) / 8);
  {
    const testing::fake_dataset fake(testing::make_samples(1, 45));
    loader train(fake, options, testing::all_fields());
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (train.next_blocking()) {
      }
    }
  }
  const std::lock_guard lock(heard.mutex);
  EXPECT_EQ(heard.domain, "leat");
  EXPECT_EQ(heard.names, (std::set<std::string>{"plan", "decode", "collate", "transfer", "next"}));
  EXPECT_EQ(heard.pushed["plan"], batches);
  EXPECT_EQ(heard.pushed["decode"], 2 * 45);
  EXPECT_EQ(heard.pushed["collate"], batches);
  EXPECT_EQ(heard.pushed["transfer"], batches);
  EXPECT_EQ(heard.started["next"], batches + 2) << "with the two that said that an epoch has ended";
  EXPECT_EQ(heard.ended, batches + 2);
  EXPECT_EQ(heard.wrong, 0);
  EXPECT_EQ(depth, 0);
}

}  // namespace
}  // namespace leat

#else

TEST(ranges, are_nothing_where_there_is_no_nvtx3) { GTEST_SKIP() << "no nvtx3 here, or LEAT_NVTX=OFF"; }

#endif

namespace leat {
namespace {

TEST(ranges, that_are_off_are_nothing) { EXPECT_EQ(testing::ranges_off_sum(1000), 499'500U); }

}  // namespace
}  // namespace leat
