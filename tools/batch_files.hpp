// What `leat epoch` writes of each batch for others to look at.
#pragma once

#include "tools/output.hpp"

#include <leat/batch.hpp>

#include <stop_token>
#include <string>

namespace leat::tools {

/// --batches: a JSON line per delivered batch, in order: epoch, batch, ids, labels, digest, rows.
class batch_lines {
 public:
  /// path          "-" is standard output
  /// rows          also write the row digests
  /// label         the output that becomes `labels`; empty: there is none, and they are []
  /// bytes         of a file that is there, with the lines of a run that is resumed; what is beyond them goes
  /// throws        error as output_file
  batch_lines(const std::string& path, bool rows, std::string label, std::uint64_t bytes = 0);

  /// The line is in the file when this returns.
  ///   throws   error as output_file::write
  void append(const batch& delivered, const std::stop_token& stop);
  void close() { file_.close(); }
  /// Of the file, with all lines so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return file_.bytes(); }

 private:
  output_file file_;
  bool rows_;
  std::string label_;
};

/// Whether what is in the directory, as far as these epochs would write it anew, are arrays. One that is not there is made later.
///   throws   error{errc::usage}: no directory, a file that is no array; error{errc::io}: not to be written
void check_npy_files(const std::string& directory, std::uint32_t epochs);

/// --npy: every output of the batch as directory/<epoch>-<batch>-<output>.npy.
///   throws   as write_npy
void write_npy_files(const std::string& directory, const batch& delivered, const std::stop_token& stop);

/// The labels of a batch as JSON: a number per row, or a list of them.
[[nodiscard]] nlohmann::ordered_json labels_of(const tensor& values);

}  // namespace leat::tools
