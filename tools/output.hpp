// What the command says: results on standard output, all else on standard error. A result that could not be written is
// an error; a message that could not be is not.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace leat::tools {

/// Names are bytes and not always UTF-8: what is not is replaced, so that the output is valid JSON whatever it tells of.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// Writes to standard output, now.
///   throws   error{errc::io}: a closed pipe, a full disk
void print(std::string_view text);

/// Writes a line to standard error: "leat epoch: <message>", made one line. Never throws.
void complain(std::string_view command, std::string_view message) noexcept;

/// A file that is written from front to back. Made anew; removed again where it is not finished.
///   throws   error: permission, not_found (its directory), limit (a full disk), io; with path and what to do
class output_file {
 public:
  explicit output_file(std::string path);
  output_file(output_file&&) noexcept = default;
  output_file& operator=(output_file&&) = delete;
  ~output_file();

  void write(std::string_view text);
  void write(std::span<const std::byte> bytes);
  /// What was written so far is seen by others.
  void flush();
  void close();
  /// Stays whatever comes, as far as it was written: for files of lines.
  void keep() noexcept { keep_ = true; }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  struct close_file {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  [[noreturn]] void fail(int failure) const;

  std::string path_;
  std::unique_ptr<std::FILE, close_file> file_;
  bool keep_ = false;
};

}  // namespace leat::tools
