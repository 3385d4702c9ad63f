// Lines of a text file: where they lie.
#pragma once

#include "datasets/files/file_bytes.hpp"
#include "datasets/model/value_place.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// A line, or a row of several lines, is no longer than this.
inline constexpr std::uint64_t line_bytes_max = std::uint64_t{256} << 20;

/// Finds lines in a file whose bytes come piece by piece.
class line_finder {
 public:
  line_finder() = default;
  line_finder(const line_finder&) = delete;
  line_finder& operator=(const line_finder&) = delete;
  virtual ~line_finder() = default;

  /// The next bytes of the file; the first piece has three at least, unless the file has fewer.
  virtual void take(std::string_view text) = 0;
  /// After the last ones.
  [[nodiscard]] virtual std::vector<value_place> finish() = 0;
};
/// As find_lines() and find_csv_rows().
///   path   names the file in errors
[[nodiscard]] std::unique_ptr<line_finder> finder_of_text_lines(std::string path);
[[nodiscard]] std::unique_ptr<line_finder> finder_of_csv_rows(std::string path, char separator);

/// Paragraphs: lines that are not blank one after another, from the begin of the first to the end of the last one; and all
/// of a file. As long as a line at most.
[[nodiscard]] std::unique_ptr<line_finder> finder_of_paragraphs(std::string path);
[[nodiscard]] std::unique_ptr<line_finder> finder_of_whole_text(std::string path);
/// What a finder finds in a file.
[[nodiscard]] std::vector<value_place> find_in(const file_bytes& file, line_finder& by);

/// Lines that are not blank, without their ends (LF or CRLF); a byte order mark in front is no part of the first.
///   open      the file, anew for each thread that reads
///   throws    error{errc::format} a line of more than line_bytes_max, with its offset
[[nodiscard]] std::vector<value_place> find_lines(const std::function<std::unique_ptr<file_bytes>()>& open,
                                                  unsigned threads);

/// Rows of comma-separated values, likewise: a line end between quotes ends no row. A CR on its own is a line end too.
///   throws   error{errc::format} quotes without an end, with the offset of the row
///   source   RFC 4180
[[nodiscard]] std::vector<value_place> find_csv_rows(const file_bytes& file, char separator);

/// The values of such a row, as they are written. One that begins with a quote is quoted: two quotes in it stand for one.
[[nodiscard]] std::vector<std::string_view> split_csv(std::string_view row, char separator);

/// Copies a value without its quotes, if it has any.
///   into   at least as long; shortened
void unquote_csv(std::string_view written, std::span<std::byte>& into);
[[nodiscard]] std::string unquoted_csv(std::string_view written);

}  // namespace leat::datasets
