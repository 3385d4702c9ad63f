// What the command says: results on standard output, all else on standard error. A result that could not be written is
// an error; a message that could not be is not.
#pragma once

#include "tools/output_kind.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

namespace leat {
class unfinished_file;
}

namespace leat::tools {

/// Names are bytes and not always UTF-8: what is not is replaced, so that the output is valid JSON whatever it tells of.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// Who was to read standard output has read enough, as `head` does: nobody has to be told.
class reader_has_gone : public error {
 public:
  reader_has_gone() : error(errc::io, "cannot write to standard output: who was to read it has gone") {}
};

/// Writes to standard output, now.
///   throws   reader_has_gone; error{errc::io}: it is closed, a full disk
void print(std::string_view text);

/// Writes a line to standard error: "leat epoch: <message>", made one line. Never throws.
void complain(std::string_view command, std::string_view message) noexcept;

/// Whether two options name one file, however it is spelled; never of an empty name, or of - for a standard stream.
[[nodiscard]] bool is_same_file(const std::string& a, const std::string& b);

/// A file that is written from front to back. Made anew, in the place of its own kind alone; removed again where it is not finished.
///   throws   error: usage (another file is there), permission, not_found (its directory), limit (a full disk), io; with path and what to do
class output_file {
 public:
  /// when_closed: written beside its place, behind its links, as .NAME.partial that nobody else may write; at once where a pipe, a device
  /// or a file that a process has open (/dev/stdout) has that place.
  enum class appears : bool { at_once, when_closed };
  output_file(std::string path, output_kind kind, appears when = appears::at_once);
  /// Goes on behind the first `bytes` of a file that is there, and removes what is beyond them; 0: begins it anew.
  ///   throws   as the constructor; error{errc::usage} where the file is shorter
  [[nodiscard]] static output_file continued(std::string path, output_kind kind, std::uint64_t bytes);
  /// Whether such a file could be made, for who has long to work before it is; leaves nothing behind.
  ///   throws   as the constructor
  static void check(const std::string& path, output_kind kind, std::string_view option = {},
                    appears when = appears::when_closed);
  /// Standard output, which stays open.
  [[nodiscard]] static output_file standard_output();
  output_file(output_file&& other) noexcept;
  output_file& operator=(output_file&&) = delete;
  ~output_file();

  /// Others see what was written when this returns. `stop` is looked at after each MiB, and while nobody reads a pipe; a
  /// part of `text` is in the file then.
  ///   throws   error{errc::cancelled} on stop
  void write(std::string_view text, const std::stop_token& stop = {});
  void write(std::span<const std::byte> bytes, const std::stop_token& stop = {});
  void close();
  /// Stays whatever comes, as far as it was written: for files of lines.
  void keep() noexcept { keep_ = true; }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Of the file so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  output_file() = default;
  void open_in_place();
  void remove_unfinished() noexcept;
  [[noreturn]] void fail(int failure) const;

  std::string path_;
  std::unique_ptr<unfinished_file> partial_;  // None: it has its name. Else `fd_` is its.
  int fd_ = -1;
  bool is_regular_ = false;
  bool is_standard_output_ = false;
  bool keep_ = false;
  std::uint64_t bytes_ = 0;
};

}  // namespace leat::tools
