// The journal of quarantined samples: JSON lines in delivery order, so that the file is the same at every thread count.
#pragma once

#include "base/corrupt_kind.hpp"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace leat::stages {

/// One quarantined sample.
struct journal_entry {
  std::uint32_t epoch = 0;
  std::uint64_t batch = 0;
  std::uint64_t sample = 0;
  std::string name;                     ///< the sample's
  std::string source;                   ///< the file's path
  std::optional<std::uint64_t> offset;  ///< in that file: the header of the member to blame, or of the sample's first
  std::string reason;
  corrupt_kind kind = {};
  std::uint64_t bytes_needed = 0;           ///< of memory, where that is more than the budget has
  std::uint16_t field = 0;                  ///< the number of the one to blame, or batch_plan::no_field; not written
  int read_failure = 0;                     ///< the errno, where a read failed; not written
  bool unreadable = false;                  ///< and the fault is a file's: io::fault; not written
  std::string_view action;                  ///< "raised", "skipped" or "substituted"
  std::optional<std::uint64_t> substitute;  ///< the sample that took the row
};

/// The same for a message, in brackets with a space before them: " (a/1.jpg)", " (a.tar at offset 512)"; empty where
/// nothing is known. Of a file that is one sample the offset is 0, and says nothing.
[[nodiscard]] std::string place_text(std::string_view source, std::optional<std::uint64_t> offset);

/// "NAME (FILE at offset N): REASON". The reason of a failed read begins with its file, which is not said twice.
[[nodiscard]] std::string sample_text(const journal_entry& entry);

/// Appends to a file, a line at a time: a killed process loses no line and tears none.
class journal {
 public:
  /// Writes nothing.
  journal() = default;
  /// Starts the file anew. Throws error{errc::io}.
  explicit journal(const std::filesystem::path& path) : journal(path, 0) {}
  /// Goes on behind the first `bytes` of the file, and removes what is beyond them. Throws error{errc::io};
  /// error{errc::usage} where the file is shorter: it is not the journal of this run.
  journal(const std::filesystem::path& path, std::uint64_t bytes);

  /// Throws error{errc::io} when the line could not be written.
  void append(const journal_entry& entry);

  /// Of the file so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  struct close_file {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, close_file> file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace leat::stages
