// A stream of the trainer's device, by name only: cudaStream_t without the header it comes from.
#pragma once

#include <leat/compiler.hpp>

#include <concepts>

struct CUstream_st;  // CUDA's own: cudaStream_t and CUstream are pointers to it

#pragma GCC visibility push(default)
namespace leat {

/// A stream of the trainer's device. A handle: it owns nothing, and is valid as long as the stream.
///
/// A cudaStream_t converts to it, and so does the default stream (a null one); and a stream of a library's that says by
/// `.stream()` which cudaStream_t it is: c10::cuda::CUDAStream and others. Without a GPU any stream may be given,
/// since nothing is asynchronous there: the code of a trainer is the same with and without a GPU.
class stream {
 public:
  /// The device's default stream.
  constexpr stream() noexcept = default;
  constexpr stream(CUstream_st* handle) noexcept : handle_(handle) {}  // NOLINT: a cudaStream_t is a stream.
  template <class Library>
    requires requires(const Library& theirs) {
      { theirs.stream() } -> std::same_as<CUstream_st*>;
    }
  constexpr stream(const Library& theirs) noexcept(noexcept(theirs.stream())) : handle_(theirs.stream()) {}  // NOLINT

  [[nodiscard]] constexpr CUstream_st* handle() const noexcept { return handle_; }

  friend constexpr bool operator==(const stream&, const stream&) noexcept = default;

 private:
  CUstream_st* handle_ = nullptr;
};

}  // namespace leat
#pragma GCC visibility pop
