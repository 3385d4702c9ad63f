// For trainers that include CUDA's runtime anyway: leat's streams and devices as CUDA's own types. The only header of leat's
// that includes anything of CUDA. Nothing in it is needed: a cudaStream_t converts to leat::stream by itself.
//
// What it does better: a null stream is what the translation unit that says it means by it. Compiled with
// `nvcc --default-stream per-thread` (CUDA_API_PER_THREAD_DEFAULT_STREAM), that is the thread's own default stream and not
// the legacy one, which leat would take it for.
#pragma once

#include <leat/batch.hpp>
#include <leat/compiler.hpp>
#include <leat/stream.hpp>
#include <leat/tensor.hpp>

#include <cuda_runtime_api.h>

#include <type_traits>

#pragma GCC visibility push(default)
namespace leat {

static_assert(std::is_same_v<cudaStream_t, CUstream_st*>, "leat::stream holds a cudaStream_t");

// Two translation units that mean different streams by null must not share one function.
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
inline namespace per_thread_default_stream {
#else
inline namespace legacy_default_stream {
#endif

/// The stream that CUDA's calls of this translation unit mean by `handle`. Per thread, a null one is the calling thread's. A
/// batch that waited for it may end on any thread; on that one it costs the least (batch::wait_on()).
[[nodiscard]] inline stream cuda_stream(cudaStream_t handle) noexcept {
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  return handle == nullptr ? cudaStreamPerThread : handle;
#else
  return handle;
#endif
}

/// batch::wait_on() and batch::release_on(), and what they throw.
inline void wait_on(batch& from, cudaStream_t consumer) { from.wait_on(cuda_stream(consumer)); }
inline void release_on(batch& from, cudaStream_t consumer) { from.release_on(cuda_stream(consumer)); }

}  // namespace legacy_default_stream, per_thread_default_stream

/// The stream, for CUDA's calls.
[[nodiscard]] inline cudaStream_t cuda_handle(stream of) noexcept { return of.handle(); }

/// The GPU that the calling thread has chosen, for loader_options::device; the host where there is none.
[[nodiscard]] inline device current_device() noexcept {
  // cudaGetDevice alone answers 0 where there is no GPU.
  int count = 0;
  int index = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0 && cudaGetDevice(&index) == cudaSuccess) {
    return cuda(index);
  }
  static_cast<void>(cudaGetLastError());  // "No GPU" is an answer, and stays nobody's last error.
  return host;
}

}  // namespace leat
#pragma GCC visibility pop
