// Many pieces of a device's memory copied by one launch, where a call for each would take longer than its bytes do.
//
// No includes but these: it is compiled by nvcc too.
#pragma once

#include "stages/device/device_kernel.hpp"

#include <leat/stream.hpp>

#include <cstddef>
#include <cstdint>

namespace leat::stages {

/// A piece of memory and where it goes, whatever their alignment.
///   chunks_end   chunks of this piece and of those before it
struct piece_to_gather {
  const std::byte* from;
  std::byte* to;
  std::uint32_t bytes;
  std::uint32_t chunks_end;
};

/// What a block of threads copies: of each thread four times 16 bytes.
inline constexpr std::uint32_t gathered_chunk_bytes = 16 * 1024;
/// A longer one is several pieces.
inline constexpr std::uint32_t gathered_piece_bytes_max = std::uint32_t{1} << 30;
/// The arguments of a kernel are 4 KiB at the most, CUDA C++ Programming Guide; CUDA 12.1 and later allow more.
inline constexpr std::uint32_t gathered_pieces_max = 170;

/// No piece goes to where another lies.
struct gathered_pieces {
  std::uint32_t count = 0;
  piece_to_gather each[gathered_pieces_max];

  [[nodiscard]] bool has_room() const noexcept { return count < gathered_pieces_max; }
  ///   bytes   1 to gathered_piece_bytes_max. There is room
  void add(std::byte* to, const std::byte* from, std::uint32_t bytes) noexcept {
    const std::uint32_t before = count == 0 ? 0 : each[count - 1].chunks_end;
    each[count++] = {from, to, bytes, before + (bytes - 1) / gathered_chunk_bytes + 1};
  }
};
static_assert(sizeof(gathered_pieces) <= 4096);

/// Arguments: gathered_pieces.
extern const device_kernel gather_rows_kernel;

/// On the host.
void gather_rows(const gathered_pieces& pieces) noexcept;

/// Of gather_rows_kernel, as kernels_cuda.hpp says. One launch; all pointers are the device's.
int load_gather_rows() noexcept;
int launch_gather_rows(const gathered_pieces& pieces, stream in) noexcept;

}  // namespace leat::stages
