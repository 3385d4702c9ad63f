// A stream of the trainer's device, by name only: cudaStream_t without the header it comes from.
#pragma once

struct CUstream_st;  // CUDA's own: cudaStream_t and CUstream are pointers to it

namespace leat {

/// In which order the trainer's device works. A handle: it owns nothing, and lives no longer than what it stands for.
///
/// A cudaStream_t converts to it, and so does the default stream (a null one). On the host rung any stream will do,
/// since nothing is asynchronous there: a trainer's code is the same with and without a GPU.
class stream {
 public:
  /// The device's default stream.
  constexpr stream() noexcept = default;
  constexpr stream(CUstream_st* handle) noexcept : handle_(handle) {}  // NOLINT: a cudaStream_t is a stream.

  [[nodiscard]] constexpr CUstream_st* handle() const noexcept { return handle_; }

  friend constexpr bool operator==(const stream&, const stream&) noexcept = default;

 private:
  CUstream_st* handle_ = nullptr;
};

}  // namespace leat
