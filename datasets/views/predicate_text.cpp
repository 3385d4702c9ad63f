#include "datasets/views/predicate_text.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

namespace leat::datasets {
namespace {

enum class token_kind : std::uint8_t { word, quoted_name, number, text, sign, end };

///   text      of a quoted name or text, what is between the quotes
///   written   as it stands in the canonical text
///   at        its first letter, counted from 1
struct predicate_token {
  token_kind kind = token_kind::end;
  std::string text;
  std::string written;
  std::size_t at = 0;
};

constexpr bool begins_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

bool is_keyword(std::string_view word) noexcept {
  constexpr std::string_view all[] = {"and", "or", "not", "in", "is", "null", "matches"};
  return std::find(std::begin(all), std::end(all), word) != std::end(all);
}

class predicate_lexer {
 public:
  explicit predicate_lexer(std::string_view text) : text_(text) {}

  predicate_token next() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    // Letters, not bytes: that is what a person counts.
    for (; begin_ < at_; ++begin_) letter_ += (static_cast<unsigned char>(text_[begin_]) & 0xC0U) != 0x80U ? 1 : 0;
    if (at_ == text_.size()) return token(token_kind::end, "", "");
    const char c = text_[at_];
    if (c == '\'' || c == '"' || c == '`') return quoted(c);
    if (begins_word(c)) return word();
    if (is_digit(c) || ((c == '-' || c == '+' || c == '.') && at_ + 1 < text_.size() && begins_number(at_ + 1))) {
      return number();
    }
    return sign();
  }

 private:
  [[noreturn]] void fail(std::string_view token, std::string_view why) const {
    throw error(errc::usage, str_cat(place_in_predicate(letter_, token), ": ", why));
  }
  [[nodiscard]] bool begins_number(std::size_t at) const noexcept {
    if (is_digit(text_[at])) return true;
    return text_[at] == '.' && at + 1 < text_.size() && is_digit(text_[at + 1]);
  }
  predicate_token token(token_kind kind, std::string text, std::string written) const {
    return {.kind = kind, .text = std::move(text), .written = std::move(written), .at = letter_};
  }

  predicate_token quoted(char quote) {
    std::string inside;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) {
        if (at_ + 1 == text_.size() || text_[at_ + 1] != quote) break;
        ++at_;  // Doubled, it stands for itself.
      }
      inside += text_[at_];
    }
    if (at_ == text_.size()) fail(text_.substr(begin_), str_cat("the closing ", std::string(1, quote), " is missing"));
    ++at_;
    const char as = quote == '`' ? '`' : '\'';
    std::string written(1, as);
    for (const char c : inside) written.append(c == as ? 2 : 1, c);
    written += as;
    return token(quote == '`' ? token_kind::quoted_name : token_kind::text, std::move(inside), std::move(written));
  }

  predicate_token word() {
    while (at_ < text_.size() && (begins_word(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    std::string found(text_.substr(begin_, at_ - begin_));
    if (std::string small = lower_case(found); is_keyword(small)) found = std::move(small);
    return token(token_kind::word, found, found);
  }

  predicate_token number() {
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool is_exponent_sign = (c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (!is_digit(c) && !begins_word(c) && c != '.' && !is_exponent_sign) break;
      ++at_;
    }
    std::string found(text_.substr(begin_, at_ - begin_));
    if (found.front() == '+') found.erase(0, 1);
    return token(token_kind::number, found, found);
  }

  predicate_token sign() {
    if (text_.substr(at_).starts_with("<>")) fail("<>", "write !=");
    constexpr std::string_view known[] = {"==", "!=", "<=", ">=", "<", ">", "(", ")", ","};
    for (const std::string_view each : known) {
      if (!text_.substr(at_).starts_with(each)) continue;
      at_ += each.size();
      return token(token_kind::sign, std::string(each), std::string(each));
    }
    constexpr std::pair<std::string_view, std::string_view> others[] = {{"=", "write == for is equal"},
                                                                        {"&&", "write and"},
                                                                        {"&", "write and"},
                                                                        {"||", "write or"},
                                                                        {"|", "write or"},
                                                                        {"!", "write not"}};
    for (const auto& [given, remedy] : others) {
      if (text_.substr(at_).starts_with(given)) fail(given, remedy);
    }
    fail(text_.substr(at_, 1), "is no part of a condition; a name with other letters stands between ` and `");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;   // of the token
  std::size_t letter_ = 1;  // that stands there
};

class predicate_parser {
 public:
  explicit predicate_parser(std::string_view text) : lexer_(text) { advance(); }

  parsed_predicate parse() {
    if (now_.kind == token_kind::end) {
      throw error(errc::usage, "where: there is no condition; give one, as width >= 224 and cls != 7");
    }
    predicate_node root = alternatives(0);
    if (now_.kind != token_kind::end) fail("the condition has ended before; put 'and' or 'or' between two");
    return {.root = std::move(root), .text = std::move(written_)};
  }

 private:
  void advance() {
    if (!now_.written.empty()) {
      const bool is_tight = written_.empty() || written_.ends_with('(') || now_.written == ")" || now_.written == ",";
      written_ += is_tight ? "" : " ";
      written_ += now_.written;
    }
    now_ = lexer_.next();
  }
  [[noreturn]] void fail(std::string_view why) const {
    throw error(errc::usage, str_cat(place_in_predicate(now_.at, now_.written), ": ", why));
  }
  [[nodiscard]] bool is(std::string_view word) const noexcept {
    return (now_.kind == token_kind::word || now_.kind == token_kind::sign) && now_.text == word;
  }
  bool take(std::string_view word) {
    if (!is(word)) return false;
    advance();
    return true;
  }
  void check_depth(std::size_t depth) const {
    if (depth > predicate_depth_max) {
      fail(str_cat("is nested more than ", predicate_depth_max, " deep; leave out some parentheses"));
    }
  }

  // A row of them is one node, so that a long one is not a deep one.
  predicate_node row_of(predicate_kind kind, std::string_view word, std::size_t depth) {
    const auto part = [&] {
      return kind == predicate_kind::any ? row_of(predicate_kind::all, "and", depth) : no(depth);
    };
    predicate_node first = part();
    if (!is(word)) return first;
    predicate_node row{.kind = kind};
    row.inner.push_back(std::move(first));
    while (take(word)) row.inner.push_back(part());
    return row;
  }
  predicate_node alternatives(std::size_t depth) { return row_of(predicate_kind::any, "or", depth); }

  static predicate_node negation_of(predicate_node of) {
    predicate_node node{.kind = predicate_kind::negation};
    node.inner.push_back(std::move(of));
    return node;
  }

  predicate_node no(std::size_t depth) {
    check_depth(depth);
    if (take("not")) return negation_of(no(depth + 1));
    if (take("(")) {
      check_depth(depth + 1);
      predicate_node inner = alternatives(depth + 1);
      if (!take(")")) fail("a ')' is missing before it");
      return inner;
    }
    return comparison();
  }

  predicate_node comparison() {
    predicate_value left = value();
    if (take("is")) {
      const bool is_there = take("not");
      if (!take("null")) fail("behind 'is' stands 'null', or 'not null'; two values are compared by ==");
      predicate_node missing{.kind = predicate_kind::missing, .values = {std::move(left)}};
      return is_there ? negation_of(std::move(missing)) : missing;
    }
    const bool is_not = take("not");
    if (take("in")) return negated(is_not, list(std::move(left)));
    if (take("matches")) {
      predicate_value pattern = value();
      if (!std::holds_alternative<std::string>(pattern.is)) {
        throw error(errc::usage, str_cat(place_in_predicate(pattern.at, ""),
                                         ": 'matches' wants a text with * and ?, as name matches 'n01*'"));
      }
      return negated(is_not, {.kind = predicate_kind::matches, .values = {std::move(left), std::move(pattern)}});
    }
    if (is_not) fail("behind 'not' stands 'in' or 'matches' here");
    return compared(std::move(left));
  }
  static predicate_node negated(bool is_not, predicate_node of) {
    return is_not ? negation_of(std::move(of)) : std::move(of);
  }

  predicate_node compared(predicate_value left) {
    struct meaning {
      std::string_view sign;
      predicate_kind kind;
      bool exchanged;
      bool negated;
    };
    constexpr meaning all[] = {
        {"==", predicate_kind::equal, false, false},      {"!=", predicate_kind::equal, false, true},
        {"<", predicate_kind::less, false, false},        {">", predicate_kind::less, true, false},
        {"<=", predicate_kind::less_equal, false, false}, {">=", predicate_kind::less_equal, true, false}};
    const auto* const found =
        std::find_if(std::begin(all), std::end(all), [&](const meaning& each) { return is(each.sign); });
    if (found == std::end(all)) fail("a comparison is expected here: ==, !=, <, <=, >, >=, in, matches or is null");
    advance();
    predicate_value right = value();
    if (std::any_of(std::begin(all), std::end(all), [&](const meaning& each) { return is(each.sign); })) {
      fail("two comparisons in a row; join them, as 1 < a and a < 5");
    }
    if (found->exchanged) std::swap(left, right);
    return negated(found->negated, {.kind = found->kind, .values = {std::move(left), std::move(right)}});
  }

  predicate_node list(predicate_value left) {
    if (!take("(")) fail("behind 'in' stands a list, as cls in (1, 2)");
    predicate_node node{.kind = predicate_kind::among, .values = {std::move(left)}};
    do {
      node.values.push_back(value());
      if (node.values.back().name() != nullptr) {
        throw error(errc::usage, str_cat(place_in_predicate(node.values.back().at, *node.values.back().name()),
                                         ": a list holds numbers and texts; a text stands between quotes"));
      }
    } while (take(","));
    if (!take(")")) fail("a ',' or the list's ')' is missing before it");
    return node;
  }

  predicate_value value() {
    predicate_value found{.is = {}, .at = now_.at};
    switch (now_.kind) {
      case token_kind::number:
        found.is = number();
        break;
      case token_kind::text:
        found.is = now_.text;
        break;
      case token_kind::quoted_name:
        found.is = predicate_name{now_.text};
        break;
      case token_kind::word:
        if (is_keyword(now_.text)) fail("a name, a number or a text is expected here");
        found.is = predicate_name{now_.text};
        break;
      case token_kind::sign:
      case token_kind::end:
        fail("a name, a number or a text is expected here");
    }
    advance();
    return found;
  }

  [[nodiscard]] std::variant<std::int64_t, double, std::string, predicate_name> number() const {
    const char* const begin = now_.text.data();
    const char* const end = begin + now_.text.size();
    std::int64_t whole = 0;
    const auto as_whole = std::from_chars(begin, end, whole);
    if (as_whole.ec == std::errc() && as_whole.ptr == end) return whole;
    double real = 0;
    const auto as_real = std::from_chars(begin, end, real);
    if (as_real.ec != std::errc() || as_real.ptr != end || !std::isfinite(real)) {
      fail("is no number; a name that begins with a digit stands between ` and `");
    }
    if (as_whole.ec == std::errc::result_out_of_range && as_whole.ptr == end) {
      fail("is a whole number of more than 64 bits");
    }
    return real;
  }

  predicate_lexer lexer_;
  predicate_token now_;
  std::string written_;
};

void add_names(const predicate_node& of, std::vector<std::string>& to) {
  for (const predicate_value& each : of.values) {
    if (each.name() != nullptr && std::find(to.begin(), to.end(), *each.name()) == to.end()) to.push_back(*each.name());
  }
  for (const predicate_node& each : of.inner) add_names(each, to);
}

}  // namespace

std::string place_in_predicate(std::size_t at, std::string_view token) {
  constexpr std::size_t shown_max = 40;
  std::string place = str_cat("where, letter ", at);
  if (token.empty()) return place;
  // Not in the middle of a letter.
  std::size_t shown = std::min(token.size(), shown_max);
  while (shown < token.size() && shown > 0 && (static_cast<unsigned char>(token[shown]) & 0xC0U) == 0x80U) --shown;
  return str_cat(place, ", at ", token.substr(0, shown), shown < token.size() ? "..." : "");
}

std::vector<std::string> parsed_predicate::names() const {
  std::vector<std::string> all;
  add_names(root, all);
  return all;
}

parsed_predicate parse_predicate(std::string_view text) {
  if (text.size() > predicate_bytes_max) {
    throw error(errc::usage, str_cat("where: the condition has ", text.size(), " bytes, and may have ",
                                     predicate_bytes_max, "; add a column to compare"));
  }
  return predicate_parser(text).parse();
}

}  // namespace leat::datasets
