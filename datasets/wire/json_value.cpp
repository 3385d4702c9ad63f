#include "datasets/wire/json_value.hpp"

#include "base/json_depth.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace leat::datasets {
namespace {

using std::string_view_literals::operator""sv;

// What Python writes for a value that JSON lacks.
constexpr std::string_view not_a_number = "NaN";
constexpr std::string_view infinity = "Infinity";

/// Passes over JSON. What is wrong is thrown as a json_fault, and caught within this file.
class scanner {
 public:
  explicit scanner(std::string_view text) : text_(text) {}

  void begin_object() {
    skip_blank();
    if (!take('{')) fail("no object begins here");
    skip_blank();
    is_first_ = true;
  }
  // The next member; false at the end of the object.
  bool next(std::string_view& key, json_kind& kind, std::string_view& value) {
    if (take('}')) return false;
    if (!is_first_) {
      if (!take(',')) fail("no comma between members");
      skip_blank();
    }
    is_first_ = false;
    key = read_text();
    skip_blank();
    if (!take(':')) fail("no colon behind a key");
    skip_blank();
    kind = read_value(value);
    skip_blank();
    return true;
  }
  void begin_list() {
    skip_blank();
    if (!take('[')) fail("no list begins here");
    skip_blank();
    is_first_ = true;
  }
  // The next element; false at the end of the list.
  bool next(json_kind& kind, std::string_view& value) {
    if (take(']')) return false;
    if (!is_first_) {
      if (!take(',')) fail("no comma between elements");
      skip_blank();
    }
    is_first_ = false;
    kind = read_value(value);
    skip_blank();
    return true;
  }
  void end() {
    skip_blank();
    if (at_ != text_.size()) fail("more stands behind the object");
  }

 private:
  [[noreturn]] void fail(std::string why) const { throw json_fault{std::move(why), at_}; }

  bool take(char letter) {
    if (at_ == text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  void skip_blank() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n'))
      ++at_;
  }
  std::string_view read_text() {
    if (!take('"')) fail("no text where one is expected");
    const std::size_t begin = at_;
    for (;;) {
      const auto* const quote = static_cast<const char*>(std::memchr(text_.data() + at_, '"', text_.size() - at_));
      if (quote == nullptr) fail("a text without an end");
      const auto end = static_cast<std::size_t>(quote - text_.data());
      std::size_t backslashes = 0;
      while (end - backslashes > begin && text_[end - backslashes - 1] == '\\') ++backslashes;
      at_ = end + 1;
      if (backslashes % 2 == 0) return text_.substr(begin, end - begin);
    }
  }
  json_kind read_word(std::string_view word, json_kind kind) {
    if (text_.substr(at_, word.size()) != word) fail("a word that JSON does not have");
    at_ += word.size();
    return kind;
  }
  json_kind read_value(std::string_view& value) {
    if (at_ == text_.size()) fail("a value is missing");
    const std::size_t begin = at_;
    json_kind kind = json_kind::number;
    switch (text_[at_]) {
      case '"':
        value = read_text();
        return json_kind::text;
      case '{':
      case '[':
        kind = text_[at_] == '{' ? json_kind::object : json_kind::list;
        skip_nested();
        break;
      case 't':
        kind = read_word("true", json_kind::truth);
        break;
      case 'f':
        kind = read_word("false", json_kind::truth);
        break;
      case 'n':
        kind = read_word("null", json_kind::null);
        break;
      case 'N':
        kind = read_word(not_a_number, json_kind::number);
        break;
      case 'I':
        kind = read_word(infinity, json_kind::number);
        break;
      default: {
        if (text_.substr(at_ + 1, infinity.size()) == infinity && text_[at_] == '-') {
          at_ += 1 + infinity.size();
          break;
        }
        constexpr std::string_view letters = "+-0123456789.eE";
        while (at_ < text_.size() && letters.find(text_[at_]) != std::string_view::npos) ++at_;
        if (at_ == begin) fail("no value where one is expected");
      }
    }
    value = text_.substr(begin, at_ - begin);
    return kind;
  }
  // Checks only brackets and texts: whoever reads the content checks the rest.
  void skip_nested() {
    std::string open;
    do {
      if (at_ == text_.size()) fail("a list or an object without an end");
      const char letter = text_[at_];
      if (letter == '"') {
        static_cast<void>(read_text());
        continue;
      }
      ++at_;
      if (letter == '{' || letter == '[') {
        if (open.size() == json_depth_max) fail("lists within lists, more than 64");
        open.push_back(letter == '{' ? '}' : ']');
      } else if (letter == '}' || letter == ']') {
        if (open.back() != letter) fail("brackets that do not match");
        open.pop_back();
      }
    } while (!open.empty());
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool is_first_ = true;
};

int digit_of(char letter) noexcept {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

std::optional<std::uint32_t> four_digits(std::string_view text, std::size_t at) noexcept {
  if (text.size() - std::min(text.size(), at) < 4) return std::nullopt;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const int digit = digit_of(text[at + i]);
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<std::uint32_t>(digit);
  }
  return value;
}

// As UTF-8: up to 4 bytes, where the escape has at least 6 and a pair of surrogates 12.
std::size_t put_character(std::uint32_t code, std::byte* to) noexcept {
  const auto put = [&](std::size_t i, std::uint32_t bits) { to[i] = static_cast<std::byte>(bits); };
  if (code < 0x80) {
    put(0, code);
    return 1;
  }
  const std::size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::uint32_t leads[] = {0, 0xC0, 0xE0, 0xF0};
  put(0, leads[more] | code >> (6 * more));
  for (std::size_t i = 1; i <= more; ++i) put(i, 0x80U | (code >> (6 * (more - i)) & 0x3FU));
  return more + 1;
}

class json_picker final : public value_picker {
 public:
  json_picker(std::string key, bool nan_where_missing) : key_(std::move(key)), nan_where_missing_(nan_where_missing) {}

  std::uint64_t room(std::uint64_t record_bytes) const noexcept override {
    return std::max<std::uint64_t>(record_bytes, not_a_number.size());
  }
  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    const std::string_view text(reinterpret_cast<const char*>(record.data()), record.size());
    std::optional<json_fault> fault;
    const std::optional<json_member> found = find_member(text, key_, fault);
    if (fault) return str_cat("no JSON: ", fault->why, ", at byte ", fault->at, " of the record");
    if (!found || found->kind == json_kind::null) {
      if (nan_where_missing_) return put(not_a_number, into);
      return value_fault(found ? str_cat("'", key_, "' is null") : str_cat("the record has no '", key_, "'"),
                         corrupt_kinds::incomplete);
    }
    if (found->kind == json_kind::text) return unescape(found->written, into);
    const std::string_view written =
        found->kind == json_kind::truth ? found->written == "true" ? "1"sv : "0"sv : found->written;
    return put(written, into);
  }
  std::string what() const override { return str_cat("JSON ", key_); }

 private:
  static std::optional<value_fault> put(std::string_view written, std::span<std::byte>& into) {
    std::memcpy(into.data(), written.data(), written.size());
    into = into.first(written.size());
    return std::nullopt;
  }

  std::string key_;
  bool nan_where_missing_;
};

class member_of_each_picker final : public value_picker {
 public:
  member_of_each_picker(std::string key, std::string member) : key_(std::move(key)), member_(std::move(member)) {}

  // Of `{},` becomes `null,`.
  std::uint64_t room(std::uint64_t record_bytes) const noexcept override { return 2 * record_bytes; }
  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    const std::string_view text(reinterpret_cast<const char*>(record.data()), record.size());
    std::optional<json_fault> fault;
    const std::optional<json_member> list = find_member(text, key_, fault);
    std::string picked = "[";
    if (!fault && list && list->kind == json_kind::list) fault = add_each(list->written, picked);
    if (fault) return str_cat("no JSON: ", fault->why, ", at byte ", fault->at, " of the record or an object in it");
    if (!list || list->kind == json_kind::null) {
      return value_fault(list ? str_cat("'", key_, "' is null") : str_cat("the record has no '", key_, "'"),
                         corrupt_kinds::incomplete);
    }
    if (list->kind != json_kind::list) return str_cat("'", key_, "' is no list of objects in this record");
    picked += ']';
    std::memcpy(into.data(), picked.data(), picked.size());
    into = into.first(picked.size());
    return std::nullopt;
  }
  std::string what() const override { return str_cat("JSON ", member_, " of each of ", key_); }

 private:
  [[nodiscard]] std::optional<json_fault> add_each(std::string_view list, std::string& picked) const {
    std::vector<std::string_view> objects;
    if (std::optional<json_fault> fault = read_objects(list, objects)) return fault;
    for (const std::string_view object : objects) {
      std::optional<json_fault> fault;
      const std::optional<json_member> found = find_member(object, member_, fault);
      if (fault) return fault;
      if (picked.size() > 1) picked += ',';
      const std::string_view quote = found && found->kind == json_kind::text ? "\"" : "";
      str_append(picked, quote, found ? found->written : "null", quote);
    }
    return std::nullopt;
  }

  std::string key_;
  std::string member_;
};

bool is_key(std::string_view written, std::string_view key) {
  if (written == key) return true;
  if (written.find('\\') == std::string_view::npos) return false;
  std::string plain(written.size(), ' ');
  std::span<std::byte> into = std::as_writable_bytes(std::span(plain));
  if (unescape(written, into)) return false;
  return std::string_view(plain).substr(0, into.size()) == key;
}

}  // namespace

std::optional<std::string> unescape(std::string_view written, std::span<std::byte>& into) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < written.size();) {
    const auto* const next = static_cast<const char*>(std::memchr(written.data() + i, '\\', written.size() - i));
    const std::size_t end = next == nullptr ? written.size() : static_cast<std::size_t>(next - written.data());
    if (end > i) std::memcpy(into.data() + used, written.data() + i, end - i);
    used += end - i;
    i = end;
    if (i == written.size()) break;
    if (++i == written.size()) return "a text that ends within an escape";
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    const char letter = written[i++];
    if (letter != 'u') {
      const std::size_t known = letters.find(letter);
      if (known == std::string_view::npos) return str_cat("an escape that JSON does not have, at character ", i);
      into[used++] = static_cast<std::byte>(meanings[known]);
      continue;
    }
    const std::optional<std::uint32_t> code = four_digits(written, i);
    if (!code) return str_cat("an escape without its four digits, at character ", i);
    i += 4;
    std::uint32_t character = *code;
    if (character >= 0xD800 && character < 0xDC00 && written.substr(i, 2) == "\\u") {
      const std::optional<std::uint32_t> low = four_digits(written, i + 2);
      if (low && *low >= 0xDC00 && *low < 0xE000) {
        character = 0x10000 + ((character - 0xD800) << 10) + (*low - 0xDC00);
        i += 6;
      }
    }
    if (character >= 0xD800 && character < 0xE000) return str_cat("half of a pair of surrogates, at character ", i);
    used += put_character(character, into.data() + used);
  }
  into = into.first(used);
  if (const auto bad = first_invalid_utf8(into)) return str_cat("no UTF-8, at byte ", *bad, " of the text");
  return std::nullopt;
}

std::optional<json_fault> read_members(std::string_view object, std::vector<json_member>& out) {
  try {
    scanner scan(object);
    scan.begin_object();
    std::string_view key;
    json_member member;
    while (scan.next(key, member.kind, member.written)) {
      member.key.assign(key.size(), ' ');
      std::span<std::byte> into = std::as_writable_bytes(std::span(member.key));
      if (const auto reason = unescape(key, into)) return json_fault{*reason, 0};
      member.key.resize(into.size());
      out.push_back(member);
    }
    scan.end();
    return std::nullopt;
  } catch (const json_fault& found) {
    return found;
  }
}

std::optional<json_member> find_member(std::string_view object, std::string_view key,
                                       std::optional<json_fault>& fault) {
  try {
    scanner scan(object);
    scan.begin_object();
    std::string_view written;
    std::optional<json_member> found;
    json_member member;
    while (scan.next(written, member.kind, member.written)) {
      if (is_key(written, key)) found = member;
    }
    scan.end();
    return found;
  } catch (const json_fault& found) {
    fault = found;
  }
  return std::nullopt;
}

std::optional<json_fault> read_objects(std::string_view list, std::vector<std::string_view>& out) {
  try {
    scanner scan(list);
    scan.begin_list();
    json_kind kind = json_kind::null;
    std::string_view element;
    while (scan.next(kind, element)) {
      if (kind != json_kind::object) return json_fault{"a list of other things than objects", 0};
      out.push_back(element);
    }
    scan.end();
    return std::nullopt;
  } catch (const json_fault& found) {
    return found;
  }
}

std::shared_ptr<const value_picker> pick_json_of_each(std::string key, std::string member) {
  return std::make_shared<member_of_each_picker>(std::move(key), std::move(member));
}

std::shared_ptr<const value_picker> pick_json(std::string key, bool nan_where_missing) {
  return std::make_shared<json_picker>(std::move(key), nan_where_missing);
}

}  // namespace leat::datasets
