// gather_rows() on the GPU: one launch, a block of threads for each chunk of a piece. It is bound by memory. Pieces are rows that lie one
// behind another, and so begin at any byte: what is written is always whole words, and what is read where the other side is aligned alike.
#include "stages/device/gather_rows.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace leat::stages {
namespace {

constexpr unsigned gather_threads = 256;
constexpr unsigned lines_of_thread = 4;
static_assert(gathered_chunk_bytes == gather_threads * lines_of_thread * sizeof(uint4));

__device__ std::uintptr_t address(const void* of) { return reinterpret_cast<std::uintptr_t>(of); }

// Both are aligned to 16 bytes. All that a thread reads is under way before it writes.
__device__ void copy_lines(std::byte* to, const std::byte* from, unsigned lines) {
  const auto* const source = reinterpret_cast<const uint4*>(from);
  auto* const target = reinterpret_cast<uint4*>(to);
  uint4 taken[lines_of_thread];
#pragma unroll
  for (unsigned k = 0; k < lines_of_thread; ++k) {
    const unsigned at = k * gather_threads + threadIdx.x;
    if (at < lines) taken[k] = source[at];
  }
#pragma unroll
  for (unsigned k = 0; k < lines_of_thread; ++k) {
    const unsigned at = k * gather_threads + threadIdx.x;
    if (at < lines) target[at] = taken[k];
  }
}

// Only `to` is aligned, to 4 bytes. Each word is put together of the two in which its bytes lie, both of which hold some of them: no
// word beyond them is looked at.
__device__ void copy_words(std::byte* to, const std::byte* from, unsigned words) {
  const unsigned shift = static_cast<unsigned>(address(from) % 4) * 8;
  const auto* const source = reinterpret_cast<const std::uint32_t*>(from - shift / 8);
  auto* const target = reinterpret_cast<std::uint32_t*>(to);
#pragma unroll 4
  for (unsigned at = threadIdx.x; at < words; at += gather_threads) {
    const std::uint32_t low = source[at];
    target[at] = shift == 0 ? low : low >> shift | source[at + 1] << (32 - shift);
  }
}

__global__ void __launch_bounds__(gather_threads) gather_chunks(const __grid_constant__ gathered_pieces pieces) {
  // The first piece that ends behind this chunk.
  unsigned first = 0;
  for (unsigned end = pieces.count - 1; first < end;) {
    const unsigned middle = (first + end) / 2;
    if (pieces.each[middle].chunks_end > blockIdx.x) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  const piece_to_gather& piece = pieces.each[first];
  const unsigned begin = (blockIdx.x - (first == 0 ? 0 : pieces.each[first - 1].chunks_end)) * gathered_chunk_bytes;
  const unsigned left = piece.bytes - begin;
  unsigned bytes = left < gathered_chunk_bytes ? left : gathered_chunk_bytes;
  std::byte* to = piece.to + begin;
  const std::byte* from = piece.from + begin;

  const unsigned to_line = static_cast<unsigned>((16 - address(to) % 16) % 16);
  const unsigned head = bytes < to_line ? bytes : to_line;
  if (threadIdx.x < head) to[threadIdx.x] = from[threadIdx.x];
  to += head;
  from += head;
  bytes -= head;
  const bool is_alike = address(from) % 16 == 0;
  const unsigned unit = is_alike ? 16 : 4;
  const unsigned tail = bytes % unit;
  const unsigned whole = bytes - tail;
  if (is_alike) {
    copy_lines(to, from, whole / 16);
  } else {
    copy_words(to, from, whole / 4);
  }
  if (threadIdx.x < tail) to[whole + threadIdx.x] = from[whole + threadIdx.x];
}

}  // namespace

int load_gather_rows() noexcept {
  cudaFuncAttributes attributes{};
  return static_cast<int>(cudaFuncGetAttributes(&attributes, &gather_chunks));
}

// Not <<<>>>: this answers for the one launch, and leaves the trainer's last error to the trainer.
int launch_gather_rows(const gathered_pieces& pieces, stream in) noexcept {
  if (pieces.count == 0) return 0;
  cudaLaunchConfig_t how{};
  how.gridDim.x = pieces.each[pieces.count - 1].chunks_end;
  how.blockDim.x = gather_threads;
  how.stream = in.handle();
  return static_cast<int>(cudaLaunchKernelEx(&how, &gather_chunks, pieces));
}

}  // namespace leat::stages
