#include "tools/chunk_text.hpp"

#include "base/text.hpp"
#include "tools/human.hpp"

#include <cstddef>

namespace leat::tools {

std::uint64_t chunks_of_sample(const field_info& field) {
  std::uint64_t chunks = 1;
  const std::size_t axes = field.chunk.size();
  for (std::size_t axis = 1; axis < axes; ++axis) {
    const std::int64_t extent = field.shape[field.shape.size() - axes + axis];
    chunks *= static_cast<std::uint64_t>((extent + field.chunk[axis] - 1) / field.chunk[axis]);
  }
  return field.chunked ? chunks : 0;
}

std::string chunks_text(const terminal& screen, std::span<const field_info> fields) {
  std::string text;
  constexpr std::uint64_t pool_blocks = 64;
  std::uint64_t pool_bytes = 0;
  bool is_shared = false;
  bool are_arrays = true;
  for (const field_info& each : fields) {
    if (!each.chunked) continue;
    str_append(text, "  ", one_line(each.name), "  ");
    if (!each.chunk.empty())
      str_append(text, to_string(each.chunk), each.filters.empty() ? "" : " ", each.filters, ", ");
    str_append(text, "up to ", bytes_text(each.stored_block_bytes_max), " that expand to ",
               bytes_text(each.decoded_block_bytes_max));
    if (each.chunk_rows() > 1) {
      str_append(text, ", of ", counted(each.chunk_rows(), "row", "rows"));
      is_shared = true;
      are_arrays = are_arrays && each.kind == field_kind::tensor;
      pool_bytes += pool_blocks * (each.stored_block_bytes_max + each.decoded_block_bytes_max);
    }
    if (const std::uint64_t chunks = chunks_of_sample(each); chunks > 1)
      str_append(text, "; a sample lies in ", chunks);
    text += '\n';
  }
  if (text.empty()) return text;
  return str_cat("\n", screen.bold("chunks"), "\n", text,
                 is_shared ? str_cat("  shuffled, nearly each sample expands its chunks for itself; `--shuffle-blocks ",
                                     pool_blocks, "` expands each about once an epoch\n  where the budget has ",
                                     bytes_text(pool_bytes), " to keep them, and `leat pack SOURCE ",
                                     are_arrays ? "OUT.npy --to npy` (or records)" : "'OUT-%06d.tar'`",
                                     " leaves nothing to expand\n")
                           : "");
}

}  // namespace leat::tools
