// What the line is doing, for NVIDIA's profilers (Nsight Systems): a range of NVTX, in the domain "leat", around each batch that
// is planned, collated or sent, each sample that is decoded, and each next(). Where there is no nvtx3 (it is headers only, and not
// every toolkit brings it), or with LEAT_NVTX=OFF, all of this is nothing.
#pragma once

#if !defined(LEAT_NO_NVTX) && __has_include(<nvtx3/nvToolsExt.h>)
#define LEAT_HAS_NVTX 1
#include <nvtx3/nvToolsExt.h>
#else
#define LEAT_HAS_NVTX 0
#endif

#include <cstddef>
#include <cstdint>

namespace leat::stages {

/// What ranges are around, and called.
enum class work_of : std::uint8_t { plan, decode, collate, transfer, next };

#if LEAT_HAS_NVTX
inline namespace with_nvtx {

/// Made once, when the first range begins; what a profiler was told stays its own.
struct range_names {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("leat");
  nvtxEventAttributes_t of[5] = {named("plan"), named("decode"), named("collate"), named("transfer"), named("next")};

  static const range_names& get() {
    static const range_names once;
    return once;
  }

 private:
  [[nodiscard]] nvtxEventAttributes_t named(const char* name) const noexcept {
    nvtxEventAttributes_t made{};
    made.version = NVTX_VERSION;
    made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    made.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    made.message.registered = nvtxDomainRegisterStringA(domain, name);
    return made;
  }
};

/// From here to the end of the block, on this thread.
class range {
 public:
  explicit range(work_of what) noexcept {
    const range_names& names = range_names::get();
    nvtxDomainRangePushEx(names.domain, &names.of[static_cast<std::size_t>(what)]);
  }
  range(const range&) = delete;
  range& operator=(const range&) = delete;
  ~range() { nvtxDomainRangePop(range_names::get().domain); }
};

/// From begin() to end(), on whatever threads.
class long_range {
 public:
  void begin(work_of what) noexcept {
    const range_names& names = range_names::get();
    id_ = nvtxDomainRangeStartEx(names.domain, &names.of[static_cast<std::size_t>(what)]);
  }
  void end() noexcept { nvtxDomainRangeEnd(range_names::get().domain, id_); }

 private:
  nvtxRangeId_t id_ = 0;
};

}  // namespace with_nvtx
#else
inline namespace without_nvtx {

class range {
 public:
  explicit range(work_of) noexcept {}
  range(const range&) = delete;
  range& operator=(const range&) = delete;
  ~range() {}  // NOLINT: with a destructor nobody calls one unused
};

class long_range {
 public:
  void begin(work_of) noexcept {}
  void end() noexcept {}
};

}  // namespace without_nvtx
#endif

}  // namespace leat::stages
