// What may stand where the command writes a file: an older one of its kind, which is replaced. Any other file is refused, whatever option
// or argument it was named by: a mistyped name costs nobody a picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leat::tools {

/// What an output is. Each is told by its first bytes, and has its line in output_kind.cpp.
///   page         of leat show, report and check
///   grid         a PNG of leat show
///   plot         an SVG of leat bench read
///   findings     leat check --json
///   ids          leat check --ids
///   trace        leat epoch --trace, and traces that were joined
///   events       TensorBoard's
///   progress     leat epoch --progress
///   batches      leat epoch --batches
///   metrics      leat epoch --metrics
///   array        .npy
///   proof        leat receipt --proof
///   references   leat inspect --references
///   token_index  leat tokens --to megatron
///   tokens       which look like any bytes: no file is replaced
///   packed       leat pack, which replaces what --overwrite says
enum class output_kind : std::uint8_t {
  page,
  grid,
  plot,
  findings,
  ids,
  trace,
  events,
  progress,
  batches,
  metrics,
  array,
  proof,
  references,
  token_index,
  tokens,
  packed
};

/// A file that is not there or empty, a device and a pipe are not looked at.
///   option   that names it, for the message; empty: none does
///   throws   error{errc::usage}: what it is that would be replaced, and what to do
void check_replaces_own_kind(const std::string& path, output_kind kind, std::string_view option = {});

/// The same of the name that the file has until it is whole: what a killed run has left of its kind is written anew. Of tokens and packed
/// shards nothing is known.
///   throws   error{errc::usage}
void check_partial_is_own(const std::string& path, output_kind kind);

/// gnuplot's SVG with the comment by which leat knows its own.
[[nodiscard]] std::string marked_plot(std::string svg);

/// The lines of leat check --ids between their heading and a checksum: a list that somebody has edited is not replaced.
[[nodiscard]] std::string sealed_list(std::string_view lines);

/// The signature of a PNG, and its IHDR with 13 bytes.
inline constexpr std::size_t png_header_bytes = 33;

/// The text chunk of PNG by which leat knows its own: all of it, to stand behind the header.
[[nodiscard]] std::string_view png_software_chunk() noexcept;

}  // namespace leat::tools
