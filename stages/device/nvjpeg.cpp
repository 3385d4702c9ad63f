#include "stages/device/nvjpeg.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"

#include <cassert>

namespace leat::stages {
namespace {

failed_call failure_of(int status, const char* name) noexcept { return {nvjpeg_failures + status, name}; }

// The file's fault, and not the GPU's.
bool blames_the_file(int status) noexcept {
  return status == nvjpeg::bad_jpeg || status == nvjpeg::jpeg_not_supported || status == nvjpeg::incomplete_bitstream ||
         status == nvjpeg::invalid_parameter;
}

constexpr const char* decoding = "nvjpegDecodeBatched";

}  // namespace

std::string describe_nvjpeg(device_status code) {
  constexpr const char* names[] = {"SUCCESS",
                                   "NOT_INITIALIZED",
                                   "INVALID_PARAMETER",
                                   "BAD_JPEG",
                                   "JPEG_NOT_SUPPORTED",
                                   "ALLOCATOR_FAILURE",
                                   "EXECUTION_FAILED",
                                   "ARCH_MISMATCH; this library is not made for this GPU, or needs a newer driver",
                                   "INTERNAL_ERROR",
                                   "IMPLEMENTATION_NOT_SUPPORTED",
                                   "INCOMPLETE_BITSTREAM"};
  if (code < nvjpeg_failures) return {};
  const auto status = static_cast<std::size_t>(code - nvjpeg_failures);
  if (code == nvjpeg_failures + nvjpeg::allocator_failure) {
    return str_cat("NVJPEG_STATUS_", names[status],
                   "; the device is full: nvJPEG takes memory beside that of the loader's plan, so leave "
                   "some, by a smaller ",
                   spelled(option_id::batch_size), " or ", spelled(option_id::device_batches));
  }
  return status < std::size(names) ? str_cat("NVJPEG_STATUS_", names[status])
                                   : str_cat("status ", status, " of nvJPEG, which leat does not know");
}

nvjpeg_decoder::~nvjpeg_decoder() {
  if (parsed_ != nullptr) static_cast<void>(library_.destroy_parsed(parsed_));
  close(engine_);
  close(kernels_);
}

failed_call nvjpeg_decoder::open() noexcept {
  failed_call failed = open(kernels_, nvjpeg::backend_gpu_hybrid);
  if (failed.status != device_ok || !use_engine_) return failed;
  // A GPU without an engine, or a driver that does not give it to this process: kernels decode all.
  if (open(engine_, nvjpeg::backend_hardware).status != device_ok) {
    close(engine_);
    return {};
  }
  const int status = library_.create_parsed(engine_.handle, &parsed_);
  if (status != nvjpeg::success) return failure_of(status, "nvjpegJpegStreamCreate");
  return {};
}

failed_call nvjpeg_decoder::open(backend& which, int kind) noexcept {
  int status = library_.create(kind, nullptr, nullptr, nvjpeg::flags_upsampling_with_interpolation, &which.handle);
  // A library, or a backend of it, that does not know the flag.
  if (status != nvjpeg::success) status = library_.create(kind, nullptr, nullptr, 0, &which.handle);
  if (status != nvjpeg::success) {
    which.handle = nullptr;
    return failure_of(status, "nvjpegCreateEx");
  }
  for (turn& each : which.turns) {
    status = library_.create_state(which.handle, &each.state);
    if (status != nvjpeg::success) {
      each.state = nullptr;
      return failure_of(status, "nvjpegJpegStateCreate");
    }
    const device_status made = calls_.make_event(each.passed);
    if (made != device_ok) {
      each.passed = device_event::none;
      return {made, "cudaEventCreateWithFlags"};
    }
  }
  return {};
}

void nvjpeg_decoder::close(backend& which) noexcept {
  for (turn& each : which.turns) {
    if (each.state != nullptr) static_cast<void>(library_.destroy_state(each.state));
    if (each.passed != device_event::none) static_cast<void>(calls_.free_event(each.passed));
  }
  if (which.handle != nullptr) static_cast<void>(library_.destroy(which.handle));
  which = {};
}

bool nvjpeg_decoder::engine_takes(std::span<const std::byte> file) noexcept {
  if (engine_.handle == nullptr) return false;
  int refused = 1;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(file.data());
  return library_.parse_header(engine_.handle, bytes, file.size(), parsed_) == nvjpeg::success &&
         library_.is_supported(engine_.handle, parsed_, &refused) == nvjpeg::success && refused == 0;
}

failed_call nvjpeg_decoder::decode(std::span<const jpeg_on_device> pictures, stream in) noexcept {
  assert(pictures.size() <= jpegs_at_once);
  std::uint32_t by_engine[jpegs_at_once];
  std::uint32_t by_kernels[jpegs_at_once];
  std::size_t engine_count = 0;
  std::size_t kernel_count = 0;
  for (std::uint32_t i = 0; i < pictures.size(); ++i) {
    if (engine_takes(pictures[i].encoded)) {
      by_engine[engine_count++] = i;
    } else {
      by_kernels[kernel_count++] = i;
    }
  }
  const failed_call failed = decode(engine_, pictures, {by_engine, engine_count}, in);
  return failed.status != device_ok ? failed : decode(kernels_, pictures, {by_kernels, kernel_count}, in);
}

failed_call nvjpeg_decoder::decode(backend& by, std::span<const jpeg_on_device> pictures, chosen which,
                                   stream in) noexcept {
  if (which.empty()) return {};
  turn& mine = by.turns[by.next];
  by.next = 1 - by.next;
  if (mine.in_use) {
    const device_status passed = calls_.synchronize(mine.passed);
    if (passed != device_ok) return {passed, "cudaEventSynchronize"};
  }
  const int status = queue(by, mine, pictures, which, in);
  if (status != nvjpeg::success) return find_refused(by, mine, pictures, which, in, status);
  const device_status recorded = calls_.record(mine.passed, in);
  if (recorded != device_ok) return {recorded, "cudaEventRecord"};
  mine.in_use = true;
  return {};
}

int nvjpeg_decoder::queue(backend& by, turn& in_turn, std::span<const jpeg_on_device> pictures, chosen which,
                          stream in) noexcept {
  in_turn.to = {};
  for (std::size_t i = 0; i < which.size(); ++i) {
    const jpeg_on_device& picture = pictures[which[i]];
    nvjpeg::image& to = in_turn.to[i];
    in_turn.encoded[i] = reinterpret_cast<const unsigned char*>(picture.encoded.data());
    in_turn.encoded_bytes[i] = picture.encoded.size();
    for (std::size_t plane = 0; plane < 3; ++plane) {
      to.channel[plane] = picture.planes[plane];
      to.pitch[plane] = picture.stride;
    }
  }
  const auto count = static_cast<std::uint32_t>(which.size());
  if (in_turn.files != count) {
    in_turn.files = 0;
    const int status = library_.begin_batches(by.handle, in_turn.state, static_cast<int>(count), 1, nvjpeg::output_rgb);
    if (status != nvjpeg::success) return status;
    in_turn.files = count;
  }
  return library_.decode_batch(by.handle, in_turn.state, in_turn.encoded.data(), in_turn.encoded_bytes.data(),
                               in_turn.to.data(), in.handle());
}

// The run ends with this, so that it may wait.
failed_call nvjpeg_decoder::find_refused(backend& by, turn& in_turn, std::span<const jpeg_on_device> pictures,
                                         chosen which, stream in, int status) noexcept {
  failed_call failed = failure_of(status, decoding);
  if (!blames_the_file(status)) return failed;
  for (const std::uint32_t& each : which) {
    if (calls_.finish(in) != device_ok) break;
    in_turn.files = 0;
    const int alone = queue(by, in_turn, pictures, {&each, 1}, in);
    if (alone == nvjpeg::success) continue;
    failed = failure_of(alone, decoding);
    if (blames_the_file(alone)) failed.picture = each;
    break;
  }
  static_cast<void>(calls_.finish(in));
  in_turn.files = 0;
  return failed;
}

}  // namespace leat::stages
