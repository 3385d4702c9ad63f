#include "datasets/files/lines.hpp"

#include "base/huge_pages.hpp"
#include "base/text.hpp"
#include "datasets/files/cursor.hpp"
#include "datasets/files/parallel.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#ifdef __SSE2__
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace leat::datasets {
namespace {

// A file of its own is opened for each.
constexpr std::uint64_t piece_bytes = std::uint64_t{16} << 20;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
// A separator is none: tabs alone are a row of empty values.
bool is_blank(std::string_view line, char separator) {
  return std::all_of(line.begin(), line.end(), [&](char c) { return is_space(c) && c != separator; });
}

std::uint64_t mark_bytes(std::string_view start) { return start.starts_with("\xEF\xBB\xBF") ? 3 : 0; }
std::uint64_t mark_bytes(const file_bytes& file) {
  const std::vector<std::byte> start = file.read(0, 3);
  return mark_bytes({reinterpret_cast<const char*>(start.data()), start.size()});
}

// So many bytes are compared at once.
constexpr std::size_t block_bytes = 64;

/// Bit i: byte i of a block is this one.
std::uint64_t places_of(char wanted, const char* block) noexcept {
#ifdef __SSE2__
  std::uint64_t found = 0;
  const __m128i all = _mm_set1_epi8(wanted);
  for (int i = 0; i < 4; ++i) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * i));
    const int equal = _mm_movemask_epi8(_mm_cmpeq_epi8(part, all));
    found |= std::uint64_t{static_cast<std::uint32_t>(equal)} << (16 * i);
  }
  return found;
#elif defined(__aarch64__)
  // A bit of its own for each byte of eight; sums of neighbours, three times, put eight in one.
  const uint8x16_t all = vdupq_n_u8(static_cast<std::uint8_t>(wanted));
  const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  uint8x16_t parts[4];
  for (int i = 0; i < 4; ++i) {
    parts[i] = vandq_u8(vceqq_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(block + 16 * i)), all), bits);
  }
  const uint8x16_t sums = vpaddq_u8(vpaddq_u8(parts[0], parts[1]), vpaddq_u8(parts[2], parts[3]));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0);
#else
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < block_bytes; ++i) found |= std::uint64_t{block[i] == wanted} << i;
  return found;
#endif
}

/// Bit i: the number of bits up to this one, and with it, is odd.
std::uint64_t odd_so_far(std::uint64_t bits) noexcept {
  for (int by = 1; by < 64; by *= 2) bits ^= bits << by;
  return bits;
}

/// Calls each(place) for the ends of lines of a text, as long as it says that it goes on. Whether it did to the last
template <class Each>
bool for_each_feed(std::string_view text, const Each& each) {
  for (std::size_t at = 0; at < text.size(); at += block_bytes) {
    char rest[block_bytes] = {};
    const bool is_whole = at + block_bytes <= text.size();
    if (!is_whole) std::copy(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), rest);
    std::uint64_t feeds = places_of('\n', is_whole ? text.data() + at : rest);
    for (; feeds != 0; feeds &= feeds - 1) {
      if (!each(at + static_cast<std::size_t>(std::countr_zero(feeds)))) return false;
    }
  }
  return true;
}

/// What has been seen of a line, or a row, whose beginning may have left the buffer.
///   separator   of a row's values; 0 of lines
struct open_line {
  std::uint64_t begin = 0;  // in the file
  char separator = 0;
  bool is_blank = true;
  char last = 0;

  void pass(std::string_view text) noexcept {
    if (text.empty()) return;
    is_blank = is_blank && datasets::is_blank(text, separator);
    last = text.back();
  }
  /// Takes it where it is not blank, and begins the next one behind its end.
  void end_at(std::uint64_t end, std::vector<value_place>& found) {
    if (!is_blank) found.push_back({.offset = begin, .bytes = end - begin - (last == '\r' ? 1 : 0)});
    *this = {.begin = end + 1, .separator = separator};
  }
};

// In the second-level cache, where the kernel copies to and lines are looked for.
constexpr std::size_t line_buffer_bytes = std::size_t{256} << 10;

std::string_view read_buffer(const file_bytes& file, std::uint64_t at, std::span<std::byte> buffer) {
  const std::size_t bytes = file.read(at, buffer);
  if (bytes == 0) fail_at(file.path(), at, "the file ends earlier than it did");
  return {reinterpret_cast<const char*>(buffer.data()), bytes};
}

// Room for as many lines as there will be, if they go on as they began: memory that grows is copied, and is new once more.
//   seen, all   bytes in which the lines so far lie, and in which all will lie
void make_room(std::vector<value_place>& found, std::uint64_t seen, std::uint64_t all) {
  if (found.empty()) return;
  // It is a guess: the table of the lines that it expects is no larger than the file.
  const std::uint64_t line_bytes = std::max<std::uint64_t>(seen / found.size(), sizeof(value_place));
  // Of more, the first ones may be unlike the others.
  constexpr std::uint64_t lines_max = std::uint64_t{1} << 26;
  const std::uint64_t lines = std::min(all / line_bytes, lines_max);
  reserve_in_huge_pages(found, lines + lines / 16 + 1);
}

/// Lines that begin in a part of a file. The end of the last one may lie behind it.
class lines_of_part final : public line_finder {
 public:
  ///   begin, end   of the part
  ///   first        where the file's first line begins
  lines_of_part(std::string path, std::uint64_t begin, std::uint64_t end, std::uint64_t first)
      : path_(std::move(path)), begin_(begin), end_(end), is_within_line_(begin != first), line_{.begin = begin} {
    // The byte before tells whether a line begins here.
    from_ = is_within_line_ ? begin - 1 : begin;
  }

  /// Where the next bytes are to come from.
  [[nodiscard]] std::uint64_t position() const noexcept { return from_; }
  [[nodiscard]] bool goes_on() const noexcept { return line_.begin < end_ && (!is_within_line_ || from_ < end_); }
  /// In so many bytes lie the lines so far.
  void expect(std::uint64_t seen) { make_room(found_, seen, end_ - begin_); }

  void take(std::string_view text) override {
    std::size_t passed = 0;
    const bool goes_on = for_each_feed(text, [&](std::size_t end) {
      if (!is_within_line_) {
        line_.pass(text.substr(passed, end - passed));
        line_.end_at(from_ + end, found_);
      } else {
        is_within_line_ = false;
        line_ = {.begin = from_ + end + 1};
      }
      passed = end + 1;
      return line_.begin < end_;
    });
    if (goes_on && !is_within_line_) line_.pass(text.substr(passed));
    from_ += text.size();
    if (!is_within_line_ && line_.begin < from_ && from_ - line_.begin > line_bytes_max) {
      fail_at(path_, line_.begin, str_cat("a line of more than ", line_bytes_max >> 20, " MiB"));
    }
  }
  std::vector<value_place> finish() override {
    if (!is_within_line_ && line_.begin < end_ && line_.begin < from_) line_.end_at(from_, found_);
    return std::move(found_);
  }

 private:
  const std::string path_;
  const std::uint64_t begin_;
  const std::uint64_t end_;
  bool is_within_line_;
  std::uint64_t from_;
  open_line line_;
  std::vector<value_place> found_;
};

std::vector<value_place> lines_from(const file_bytes& file, std::uint64_t begin, std::uint64_t end,
                                    std::uint64_t first) {
  lines_of_part part(file.path(), begin, end, first);
  std::vector<std::byte> buffer(line_buffer_bytes);
  while (part.position() < file.size() && part.goes_on()) {
    const bool is_first = part.position() <= begin;
    const std::string_view text = read_buffer(file, part.position(), buffer);
    part.take(text);
    if (is_first) part.expect(text.size());
  }
  return part.finish();
}

class csv_rows final : public line_finder {
 public:
  csv_rows(std::string path, char separator, std::uint64_t begin)
      : path_(std::move(path)), separator_(separator), from_(begin), row_{.begin = begin, .separator = separator} {}

  [[nodiscard]] std::uint64_t position() const noexcept { return from_; }
  void expect(std::uint64_t seen, std::uint64_t all) { make_room(found_, seen, all); }

  void take(std::string_view text) override {
    if (text.empty()) return;
    text_ = text;
    passed_ = 0;
    if (std::exchange(ends_in_return_, false)) pass_return(text.front() != '\n');
    look_through();
    pass(text_.size() - (ends_in_return_ ? 1 : 0));
    before_ = text_.back();
    from_ += text_.size();
    if (row_.begin < from_ && from_ - row_.begin > line_bytes_max) {
      fail_at(path_, row_.begin,
              quoted_ ? "quotes without an end begin in this row"
                      : str_cat("a row of more than ", line_bytes_max >> 20, " MiB"));
    }
  }
  std::vector<value_place> finish() override {
    if (std::exchange(ends_in_return_, false)) pass_return(true);
    if (quoted_) fail_at(path_, row_.begin, "quotes without an end begin in this row");
    if (row_.begin < from_) row_.end_at(from_, found_);
    if (found_.capacity() > found_.size() + found_.size() / 4) found_.shrink_to_fit();
    return std::move(found_);
  }

 private:
  void look_through() {
    std::size_t at = 0;
    for (; at + block_bytes <= text_.size(); at += block_bytes) take_block(at);
    if (at == text_.size()) return;
    char rest[block_bytes] = {};
    std::copy(text_.begin() + static_cast<std::ptrdiff_t>(at), text_.end(), rest);
    take(places_of('"', rest) | places_of('\n', rest) | places_of('\r', rest), at);
  }

  // Where each quote opens a value or closes it, counting them tells what is quoted.
  void take_block(std::size_t at) {
    const char* const block = text_.data() + at;
    const std::uint64_t quotes = places_of('"', block);
    const std::uint64_t feeds = places_of('\n', block);
    const std::uint64_t returns = places_of('\r', block);
    if ((quotes | feeds | returns) == 0) return;
    const std::uint64_t quoted = odd_so_far(quotes) ^ (quoted_ ? ~std::uint64_t{0} : 0);
    const std::uint64_t value_ends = quotes | feeds | returns | places_of(separator_, block);
    const std::uint64_t value_begins = value_ends << 1 | std::uint64_t{may_open(at)};
    if ((quotes & quoted & ~value_begins) != 0) return take(quotes | feeds | returns, at);

    constexpr int last = block_bytes - 1;
    const std::size_t end = at + block_bytes;
    const bool feed_follows = end < text_.size() && text_[end] == '\n';
    std::uint64_t ends = (feeds | (returns & ~(feeds >> 1 | std::uint64_t{feed_follows} << last))) & ~quoted;
    if (end == text_.size() && (returns & ~quoted) >> last != 0) {
      ends_in_return_ = true;  // the next byte tells what it is
      ends &= ~(std::uint64_t{1} << last);
    }
    for (; ends != 0; ends &= ends - 1) end_row(at + static_cast<std::size_t>(std::countr_zero(ends)));
    quoted_ = quoted >> last != 0;
    if ((quotes & ~quoted) >> last != 0) closed_ = from_ + end;
  }

  // A quote opens where a value begins; of two that stand for one, the first closes and the second opens again.
  bool may_open(std::size_t at) const noexcept {
    const std::uint64_t here = from_ + at;
    return here == row_.begin || here == closed_ || (at == 0 ? before_ : text_[at - 1]) == separator_;
  }

  void end_row(std::size_t at) {
    pass(at);
    row_.end_at(from_ + at, found_);
    passed_ = at + 1;
  }

  // What is at these places of a block, where a quote may be neither.
  void take(std::uint64_t places, std::size_t block) {
    for (; places != 0; places &= places - 1) {
      const std::size_t at = block + static_cast<std::size_t>(std::countr_zero(places));
      if (text_[at] == '"') {
        if (quoted_) {
          quoted_ = false;
          closed_ = from_ + at + 1;
        } else {
          quoted_ = may_open(at);
        }
      } else if (!quoted_ && text_[at] == '\r' && at + 1 == text_.size()) {
        ends_in_return_ = true;  // the next byte tells what it is
      } else if (!quoted_ && (text_[at] == '\n' || text_[at + 1] != '\n')) {
        // A CR that is no part of a CRLF is the end of a row itself, as Python's csv and pandas have it.
        end_row(at);
      }
    }
  }

  // The CR before what has come.
  void pass_return(bool is_end) {
    if (is_end) {
      row_.end_at(from_ - 1, found_);
    } else {
      row_.pass("\r");
    }
  }

  // Up to here what has come belongs to the row.
  void pass(std::size_t at) {
    row_.pass(text_.substr(passed_, at - passed_));
    passed_ = at;
  }

  const std::string path_;
  const char separator_;
  std::uint64_t from_;     // where what has come lies
  std::string_view text_;  // what has come
  std::size_t passed_ = 0;
  char before_ = 0;  // the byte before it
  bool ends_in_return_ = false;
  open_line row_;
  bool quoted_ = false;
  std::uint64_t closed_ = ~std::uint64_t{0};  // behind the quote that was the last one
  std::vector<value_place> found_;
};

/// Lines that are not blank, as long as they follow one another.
class paragraphs_of_file final : public line_finder {
 public:
  paragraphs_of_file(std::string path, std::uint64_t begin)
      : path_(std::move(path)), from_(begin), line_{.begin = begin} {}

  void take(std::string_view text) override {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t line_end = std::min(text.find('\n', at), text.size());
      line_.pass(text.substr(at, line_end - at));
      if (line_end < text.size()) end_line(from_ + line_end);
      at = line_end + 1;
    }
    from_ += text.size();
    const std::uint64_t begin = open_ ? open_->offset : line_.begin;
    if (from_ - begin > line_bytes_max)
      fail_at(path_, begin, str_cat("a paragraph of more than ", line_bytes_max >> 20, " MiB"));
  }
  std::vector<value_place> finish() override {
    if (line_.begin < from_) end_line(from_);
    if (open_) found_.push_back(*open_);
    open_.reset();
    return std::move(found_);
  }

 private:
  void end_line(std::uint64_t end) {
    lines_.clear();
    line_.end_at(end, lines_);
    if (lines_.empty()) {
      if (open_) found_.push_back(*open_);
      open_.reset();
    } else if (open_) {
      open_->bytes = lines_.front().offset + lines_.front().bytes - open_->offset;
    } else {
      open_ = lines_.front();
    }
  }

  const std::string path_;
  std::uint64_t from_;
  open_line line_;
  std::vector<value_place> lines_;   // the one that has ended, if it is not blank
  std::optional<value_place> open_;  // the paragraph so far
  std::vector<value_place> found_;
};

class whole_text final : public line_finder {
 public:
  whole_text(std::string path, std::uint64_t begin) : path_(std::move(path)), begin_(begin) {}

  void take(std::string_view text) override {
    bytes_ += text.size();
    if (bytes_ > line_bytes_max) fail_at(path_, begin_, str_cat("a text of more than ", line_bytes_max >> 20, " MiB"));
  }
  std::vector<value_place> finish() override {
    return bytes_ == 0 ? std::vector<value_place>() : std::vector<value_place>{{.offset = begin_, .bytes = bytes_}};
  }

 private:
  const std::string path_;
  const std::uint64_t begin_;
  std::uint64_t bytes_ = 0;
};

/// Begins behind a byte order mark.
class behind_mark final : public line_finder {
 public:
  using maker = std::function<std::unique_ptr<line_finder>(std::uint64_t begin)>;
  explicit behind_mark(maker make) : make_(std::move(make)) {}

  void take(std::string_view text) override {
    if (text.empty()) return;
    if (!rest_) {
      const std::uint64_t mark = mark_bytes(text);
      rest_ = make_(mark);
      text.remove_prefix(mark);
    }
    rest_->take(text);
  }
  std::vector<value_place> finish() override { return rest_ ? rest_->finish() : std::vector<value_place>(); }

 private:
  const maker make_;
  std::unique_ptr<line_finder> rest_;
};

}  // namespace

std::vector<value_place> find_lines(const std::function<std::unique_ptr<file_bytes>()>& open, unsigned threads) {
  const std::unique_ptr<file_bytes> file = open();
  const std::uint64_t first = mark_bytes(*file);
  const std::uint64_t bytes = file->size() - first;
  const std::uint64_t pieces = (bytes + piece_bytes - 1) / piece_bytes;
  std::vector<value_place> all;
  std::mutex mutex;  // of `all` and these two
  std::vector<std::optional<std::vector<value_place>>> found(pieces);
  std::size_t joined = 0;
  for_each_parallel(pieces, threads, [&](std::size_t i) {
    const std::uint64_t begin = first + i * piece_bytes;
    std::vector<value_place> lines = lines_from(*open(), begin, std::min(file->size(), begin + piece_bytes), first);
    const std::lock_guard lock(mutex);
    found[i] = std::move(lines);
    // As soon as those before are there: their memory is then used again.
    for (; joined < pieces && found[joined]; ++joined) {
      all.insert(all.end(), found[joined]->begin(), found[joined]->end());
      found[joined].reset();
      if (joined == 0) make_room(all, std::min(piece_bytes, bytes), bytes);
    }
  });
  return all;
}

std::vector<value_place> find_csv_rows(const file_bytes& file, char separator) {
  csv_rows rows(file.path(), separator, mark_bytes(file));
  std::vector<std::byte> buffer(line_buffer_bytes);
  while (rows.position() < file.size()) {
    const bool is_first = rows.position() < line_buffer_bytes;
    const std::string_view text = read_buffer(file, rows.position(), buffer);
    rows.take(text);
    if (is_first) rows.expect(text.size(), file.size());
  }
  return rows.finish();
}

std::unique_ptr<line_finder> finder_of_text_lines(std::string path) {
  return std::make_unique<behind_mark>([path = std::move(path)](std::uint64_t begin) {
    return std::make_unique<lines_of_part>(path, begin, std::numeric_limits<std::uint64_t>::max(), begin);
  });
}
std::unique_ptr<line_finder> finder_of_paragraphs(std::string path) {
  return std::make_unique<behind_mark>(
      [path = std::move(path)](std::uint64_t begin) { return std::make_unique<paragraphs_of_file>(path, begin); });
}
std::unique_ptr<line_finder> finder_of_whole_text(std::string path) {
  return std::make_unique<behind_mark>(
      [path = std::move(path)](std::uint64_t begin) { return std::make_unique<whole_text>(path, begin); });
}

std::vector<value_place> find_in(const file_bytes& file, line_finder& by) {
  std::vector<std::byte> buffer(line_buffer_bytes);
  for (std::uint64_t at = 0; at < file.size();) {
    const std::string_view text = read_buffer(file, at, buffer);
    by.take(text);
    at += text.size();
  }
  return by.finish();
}

std::unique_ptr<line_finder> finder_of_csv_rows(std::string path, char separator) {
  return std::make_unique<behind_mark>([path = std::move(path), separator](std::uint64_t begin) {
    return std::make_unique<csv_rows>(path, separator, begin);
  });
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
