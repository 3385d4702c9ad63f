// NVIDIA's nvJPEG, as far as leat calls it: batches of JPEG files to planes on a GPU. Its functions are a table, as the library may be there or
// not (nvjpeg_library_cuda.cpp), and tests have their own. The prototypes are ours, the same in versions 12 and 13.
#pragma once

#include "stages/device/device.hpp"

#include <leat/stream.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::stages {

/// Types and numbers of nvjpeg.h.
namespace nvjpeg {

struct handle;
struct state;
struct parsed;  // nvjpegJpegStream

/// nvjpegImage_t
struct image {
  unsigned char* channel[4] = {};
  std::size_t pitch[4] = {};
};

/// nvjpegStatus_t, of which these concern us.
inline constexpr int success = 0;
inline constexpr int invalid_parameter = 2;
inline constexpr int bad_jpeg = 3;
inline constexpr int jpeg_not_supported = 4;
inline constexpr int allocator_failure = 5;
inline constexpr int incomplete_bitstream = 10;
/// nvjpegBackend_t
inline constexpr int backend_gpu_hybrid = 2;
inline constexpr int backend_hardware = 3;
/// nvjpegOutputFormat_t: planes
inline constexpr int output_rgb = 3;
/// "Fancy" upsampling, as libjpeg-turbo's; of 12.1 and later.
inline constexpr unsigned flags_upsampling_with_interpolation = 1U << 5;

}  // namespace nvjpeg

struct nvjpeg_functions {
  int (*get_property)(int which, int* value) = nullptr;  // 0 major, 1 minor, 2 patch level
  int (*create)(int backend, void* device_allocator, void* pinned_allocator, unsigned flags,
                nvjpeg::handle** made) = nullptr;
  int (*destroy)(nvjpeg::handle* of) = nullptr;
  int (*create_state)(nvjpeg::handle* of, nvjpeg::state** made) = nullptr;
  int (*destroy_state)(nvjpeg::state* which) = nullptr;
  int (*create_parsed)(nvjpeg::handle* of, nvjpeg::parsed** made) = nullptr;
  int (*destroy_parsed)(nvjpeg::parsed* which) = nullptr;
  int (*parse_header)(nvjpeg::handle* of, const unsigned char* file, std::size_t bytes, nvjpeg::parsed* to) = nullptr;
  /// Sets `refused` to 0 where nvjpegDecodeBatched() of this handle takes the file.
  int (*is_supported)(nvjpeg::handle* of, nvjpeg::parsed* file, int* refused) = nullptr;
  int (*begin_batches)(nvjpeg::handle* of, nvjpeg::state* in, int files, int threads_max, int output_format) = nullptr;
  int (*decode_batch)(nvjpeg::handle* of, nvjpeg::state* in, const unsigned char* const* files,
                      const std::size_t* bytes, nvjpeg::image* to, CUstream_st* stream) = nullptr;
};

/// What was found. `from` is the file, as the loader of libraries was asked for it.
struct found_nvjpeg {
  nvjpeg_functions functions;
  std::string from;
};

/// Looks for libnvjpeg.so.13, then .12, where the loader of libraries looks; or only at what LEAT_NVJPEG names. It stays open as long as the
/// process. Nothing, and `why_not`, where there is none, or one that lacks a function.
[[nodiscard]] std::optional<found_nvjpeg> find_nvjpeg(std::string& why_not);

/// device_status of a function of nvJPEG: above all of CUDA's.
inline constexpr device_status nvjpeg_failures = 20'000;
/// Empty where the code is none of these.
[[nodiscard]] std::string describe_nvjpeg(device_status code);

/// What decodes on one device. Its context is the calling thread's, in all calls and at the end, which comes when the streams have passed.
/// One thread at a time.
///
/// Files go to the GPU's JPEG engine, where it has one that takes them, and others to kernels. The library keeps what belongs to a call in a
/// state until the call has passed on the GPU: two of them take turns, so that the host waits for the last call but one.
class nvjpeg_decoder {
 public:
  ///   use_engine   else all files go to kernels
  nvjpeg_decoder(device_calls& calls, const nvjpeg_functions& library, bool use_engine = true)
      : calls_(calls), library_(library), use_engine_(use_engine) {}
  nvjpeg_decoder(const nvjpeg_decoder&) = delete;
  nvjpeg_decoder& operator=(const nvjpeg_decoder&) = delete;
  ~nvjpeg_decoder();

  /// Once, first. Returns the call that failed, if one did.
  [[nodiscard]] failed_call open() noexcept;
  /// Whether there is an engine.
  [[nodiscard]] bool has_engine() const noexcept { return engine_.handle != nullptr; }
  /// As device_calls::decode_jpegs(). Of a batch that is refused each file is decoded by itself, to find which it is.
  [[nodiscard]] failed_call decode(std::span<const jpeg_on_device> pictures, stream in) noexcept;

 private:
  // What a call is given lies here, since nvJPEG does not say that it has no use for it later.
  struct turn {
    nvjpeg::state* state = nullptr;
    device_event passed = device_event::none;
    bool in_use = false;
    std::uint32_t files = 0;  // that it has begun batches of
    std::array<const unsigned char*, jpegs_at_once> encoded = {};
    std::array<std::size_t, jpegs_at_once> encoded_bytes = {};
    std::array<nvjpeg::image, jpegs_at_once> to = {};
  };
  struct backend {
    nvjpeg::handle* handle = nullptr;
    std::array<turn, 2> turns;
    std::size_t next = 0;
  };
  /// Places in `pictures`.
  using chosen = std::span<const std::uint32_t>;

  failed_call open(backend& which, int kind) noexcept;
  void close(backend& which) noexcept;
  [[nodiscard]] bool engine_takes(std::span<const std::byte> file) noexcept;
  failed_call decode(backend& by, std::span<const jpeg_on_device> pictures, chosen which, stream in) noexcept;
  int queue(backend& by, turn& in_turn, std::span<const jpeg_on_device> pictures, chosen which, stream in) noexcept;
  failed_call find_refused(backend& by, turn& in_turn, std::span<const jpeg_on_device> pictures, chosen which,
                           stream in, int status) noexcept;

  device_calls& calls_;
  const nvjpeg_functions library_;
  const bool use_engine_;
  backend engine_;
  backend kernels_;
  nvjpeg::parsed* parsed_ = nullptr;
};

}  // namespace leat::stages
