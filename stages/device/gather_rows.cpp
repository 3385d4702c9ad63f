#include "stages/device/gather_rows.hpp"

#include <cstring>

namespace leat::stages {

const device_kernel gather_rows_kernel = {.name = "the kernel that gathers rows",
                                          .argument_bytes = sizeof(gathered_pieces),
                                          .run_on_host = [](const void* arguments) noexcept {
                                            gather_rows(*static_cast<const gathered_pieces*>(arguments));
                                          }};

void gather_rows(const gathered_pieces& pieces) noexcept {
  for (std::uint32_t i = 0; i < pieces.count; ++i) {
    const piece_to_gather& piece = pieces.each[i];
    std::memcpy(piece.to, piece.from, piece.bytes);
  }
}

}  // namespace leat::stages
