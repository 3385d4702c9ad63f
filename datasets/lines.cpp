#include "datasets/lines.hpp"

#include "base/text.hpp"
#include "datasets/cursor.hpp"
#include "datasets/parallel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

std::uint64_t mark_bytes(const file_bytes& file) {
  const std::vector<std::byte> start = file.read(0, 3);
  return start.size() == 3 && std::memcmp(start.data(), "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

/// Lines that begin in a piece of the file. If the last one goes on behind the piece, its end is searched there.
std::vector<value_place> lines_from(const file_bytes& file, std::uint64_t begin, std::uint64_t end,
                                    std::uint64_t first) {
  std::vector<value_place> found;
  // The byte before tells whether a line begins here.
  const std::uint64_t from = begin == first ? first : begin - 1;
  std::vector<std::byte> bytes = file.read(from, end - from);
  const auto text = [&] { return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()); };
  std::size_t at = 0;
  if (begin != first) {
    at = text().find('\n');
    if (at == std::string_view::npos) return found;
    ++at;
  }
  const std::size_t own = bytes.size();
  while (at < own) {
    std::size_t line_end = text().find('\n', at);
    while (line_end == std::string_view::npos) {
      const std::uint64_t next = from + bytes.size();
      if (next >= file.size()) {
        line_end = bytes.size();
        break;
      }
      if (bytes.size() - at > line_bytes_max) {
        fail_at(file.path(), from + at, str_cat("a line of more than ", line_bytes_max >> 20, " MiB"));
      }
      const std::size_t had = bytes.size();
      const std::vector<std::byte> more = file.read(next, std::max<std::uint64_t>(piece_bytes, had));
      if (more.empty()) fail_at(file.path(), next, "the file ends earlier than it did");
      bytes.insert(bytes.end(), more.begin(), more.end());
      line_end = text().find('\n', had);
    }
    std::string_view line = text().substr(at, line_end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_blank(line)) found.push_back({.offset = from + at, .bytes = line.size()});
    at = line_end + 1;
  }
  return found;
}

}  // namespace

std::vector<value_place> find_lines(const std::function<std::unique_ptr<file_bytes>()>& open, unsigned threads) {
  const std::unique_ptr<file_bytes> file = open();
  const std::uint64_t first = mark_bytes(*file);
  const std::uint64_t pieces = (file->size() - first + piece_bytes - 1) / piece_bytes;
  std::vector<std::vector<value_place>> found(pieces);
  for_each_parallel(pieces, threads, [&](std::size_t i) {
    const std::uint64_t begin = first + i * piece_bytes;
    found[i] = lines_from(*open(), begin, std::min(file->size(), begin + piece_bytes), first);
  });
  std::size_t count = 0;
  for (const auto& each : found) count += each.size();
  std::vector<value_place> all;
  all.reserve(count);
  for (auto& each : found) {
    all.insert(all.end(), each.begin(), each.end());
    each = {};
  }
  return all;
}

std::vector<value_place> find_csv_rows(const file_bytes& file, char separator) {
  std::vector<value_place> rows;
  std::vector<std::byte> bytes;  // from `from` on
  std::uint64_t from = mark_bytes(file);
  std::uint64_t read_to = from;
  std::size_t row = 0;                          // in `bytes`, where it begins
  std::size_t at = 0;                           // what has been looked at
  std::size_t closed = std::string_view::npos;  // behind the quote that was the last one
  bool quoted = false;
  const auto add = [&](std::size_t end) {
    std::string_view line(reinterpret_cast<const char*>(bytes.data()) + row, end - row);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_blank(line)) rows.push_back({.offset = from + row, .bytes = line.size()});
    row = end + 1;
  };
  while (read_to < file.size()) {
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(row));
    from += row;
    at -= row;
    if (closed != std::string_view::npos) closed = closed >= row ? closed - row : std::string_view::npos;
    row = 0;
    if (bytes.size() > line_bytes_max) {
      fail_at(file.path(), from,
              quoted ? "quotes without an end begin in this row"
                     : str_cat("a row of more than ", line_bytes_max >> 20, " MiB"));
    }
    const std::vector<std::byte> more = file.read(read_to, std::max<std::uint64_t>(piece_bytes, bytes.size()));
    if (more.empty()) fail_at(file.path(), read_to, "the file ends earlier than it did");
    read_to += more.size();
    bytes.insert(bytes.end(), more.begin(), more.end());
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    // A quote opens where a value begins; of two that stand for one, the first closes and the second opens again.
    while (at < text.size()) {
      if (quoted) {
        at = std::min(text.find('"', at), text.size());
        if (at == text.size()) break;
        quoted = false;
        closed = ++at;
        continue;
      }
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const void* const quote = std::memchr(text.data() + at, '"', end - at);
      if (quote != nullptr) {
        const auto found = static_cast<std::size_t>(static_cast<const char*>(quote) - text.data());
        quoted = found == row || found == closed || text[found - 1] == separator;
        at = found + 1;
      } else {
        at = end;
        if (end == text.size()) break;
        add(end);
        ++at;
      }
    }
  }
  if (quoted) fail_at(file.path(), from + row, "quotes without an end begin in this row");
  if (row < bytes.size()) add(bytes.size());
  return rows;
}

std::vector<std::string_view> split_csv(std::string_view row, char separator) {
  std::vector<std::string_view> values;
  std::size_t at = 0;
  for (;;) {
    const std::size_t begin = at;
    if (at < row.size() && row[at] == '"') {
      ++at;
      for (;;) {
        at = std::min(row.find('"', at), row.size());
        if (at + 1 >= row.size() || row[at + 1] != '"') break;
        at += 2;
      }
    }
    at = std::min(row.find(separator, at), row.size());
    values.push_back(row.substr(begin, at - begin));
    if (at == row.size()) return values;
    ++at;
  }
}

void unquote_csv(std::string_view written, std::span<std::byte>& into) {
  std::size_t used = 0;
  const auto put = [&](std::string_view text) {
    if (!text.empty()) std::memcpy(into.data() + used, text.data(), text.size());
    used += text.size();
  };
  if (!written.starts_with('"')) {
    put(written);
  } else {
    std::size_t at = 1;
    while (at < written.size()) {
      const std::size_t quote = std::min(written.find('"', at), written.size());
      put(written.substr(at, quote - at));
      if (quote + 1 >= written.size() || written[quote + 1] != '"') {
        // What follows the last quote is kept as it is.
        if (quote < written.size()) put(written.substr(quote + 1));
        break;
      }
      put("\"");
      at = quote + 2;
    }
  }
  into = into.first(used);
}

std::string unquoted_csv(std::string_view written) {
  std::string text(written.size(), ' ');
  std::span<std::byte> into = std::as_writable_bytes(std::span(text));
  unquote_csv(written, into);
  text.resize(into.size());
  return text;
}

}  // namespace leat::datasets
