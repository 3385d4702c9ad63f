// Timelines of several ranks as one file, which a viewer shows below one another.
#pragma once

#include <span>
#include <string>

namespace leat::tools {

/// A file that `leat epoch --trace` or a program has written.
struct trace_file {
  std::string path;
  std::string text;  ///< of all of it
};

/// All their events, with the times of each as they are: the ranks' clocks are those of their machines.
///   throws   error{errc::usage}, with the path: a file that is no trace of leat's, two of one rank, files that count from different moments
[[nodiscard]] std::string join_traces(std::span<const trace_file> files);

/// Whether there is a file, and something in it, that does not begin as a trace, packed or not: it is not to be replaced by one.
[[nodiscard]] bool is_file_but_no_trace(const std::string& path);

/// The text of a file of gzip, or the bytes themselves where they are none.
///   throws   error{errc::usage}: damaged
[[nodiscard]] std::string unpacked(const std::string& path, std::string bytes);

}  // namespace leat::tools
