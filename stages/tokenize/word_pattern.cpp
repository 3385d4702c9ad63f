#include "stages/tokenize/word_pattern.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leat::stages {
namespace {

// Of one match: an expression that goes back and forth is stopped. The longest run of spaces that `\s+(?!\S)` goes back over takes one
// step for each.
constexpr std::uint32_t steps_max = 50'000'000;
constexpr std::size_t stack_bytes_least = std::size_t{32} << 10;
constexpr std::size_t stack_bytes_max = std::size_t{8} << 20;

struct code_free {
  void operator()(pcre2_code* code) const noexcept { ::pcre2_code_free(code); }
};
struct data_free {
  void operator()(pcre2_match_data* data) const noexcept { ::pcre2_match_data_free(data); }
};
struct context_free {
  void operator()(pcre2_match_context* context) const noexcept { ::pcre2_match_context_free(context); }
};
struct stack_free {
  void operator()(pcre2_jit_stack* stack) const noexcept { ::pcre2_jit_stack_free(stack); }
};

std::string words_of(int code) {
  PCRE2_UCHAR text[256];
  if (::pcre2_get_error_message(code, text, sizeof text) < 0) return str_cat("error ", code);
  return reinterpret_cast<const char*>(text);
}

// Letters, numbers and marks of Unicode 15 and 16, which PCRE2 10.42 does not know, and tokenizers 0.23.3 and tiktoken 0.14 do. They were
// asked letter by letter; the two agree.
constexpr std::pair<std::string_view, std::string_view> newer_letters[] = {
    {"L", R"(\x{1C89}-\x{1C8A}\x{A7CB}-\x{A7CD}\x{A7DA}-\x{A7DC}\x{105C0}-\x{105F3}\x{10D4A}-\x{10D65})"
          R"(\x{10D6F}-\x{10D85}\x{10EC2}-\x{10EC4}\x{1123F}-\x{11240}\x{11380}-\x{11389}\x{1138B}\x{1138E})"
          R"(\x{11390}-\x{113B5}\x{113B7}\x{113D1}\x{113D3}\x{11BC0}-\x{11BE0}\x{11F02}\x{11F04}-\x{11F10})"
          R"(\x{11F12}-\x{11F33}\x{1342F}\x{13441}-\x{13446}\x{13460}-\x{143FA}\x{16100}-\x{1611D})"
          R"(\x{16D40}-\x{16D6C}\x{18CFF}\x{1B132}\x{1B155}\x{1DF25}-\x{1DF2A}\x{1E030}-\x{1E06D})"
          R"(\x{1E4D0}-\x{1E4EB}\x{1E5D0}-\x{1E5ED}\x{1E5F0}\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})"},
    {"N", R"(\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11F50}-\x{11F59}\x{16130}-\x{16139})"
          R"(\x{16D70}-\x{16D79}\x{1CCF0}-\x{1CCF9}\x{1D2C0}-\x{1D2D3}\x{1E4F0}-\x{1E4F9}\x{1E5F1}-\x{1E5FA})"},
    {"Lu", R"(\x{1C89}\x{A7CB}-\x{A7CC}\x{A7DA}\x{A7DC}\x{10D50}-\x{10D65})"},
    {"Ll", R"(\x{1C8A}\x{A7CD}\x{A7DB}\x{10D70}-\x{10D85}\x{1DF25}-\x{1DF2A})"},
    {"Lm", R"(\x{10D4E}\x{10D6F}\x{16D40}-\x{16D42}\x{16D6B}-\x{16D6C}\x{1E030}-\x{1E06D}\x{1E4EB})"},
    {"Lo", R"(\x{105C0}-\x{105F3}\x{10D4A}-\x{10D4D}\x{10D4F}\x{10EC2}-\x{10EC4}\x{1123F}-\x{11240})"
           R"(\x{11380}-\x{11389}\x{1138B}\x{1138E}\x{11390}-\x{113B5}\x{113B7}\x{113D1}\x{113D3})"
           R"(\x{11BC0}-\x{11BE0}\x{11F02}\x{11F04}-\x{11F10}\x{11F12}-\x{11F33}\x{1342F}\x{13441}-\x{13446})"
           R"(\x{13460}-\x{143FA}\x{16100}-\x{1611D}\x{16D43}-\x{16D6A}\x{18CFF}\x{1B132}\x{1B155})"
           R"(\x{1E4D0}-\x{1E4EA}\x{1E5D0}-\x{1E5ED}\x{1E5F0}\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})"},
    {"M", R"(\x{897}\x{CF3}\x{ECE}\x{10D69}-\x{10D6D}\x{10EFC}-\x{10EFF}\x{11241}\x{113B8}-\x{113C0}\x{113C2})"
          R"(\x{113C5}\x{113C7}-\x{113CA}\x{113CC}-\x{113D0}\x{113D2}\x{113E1}-\x{113E2}\x{11F00}-\x{11F01})"
          R"(\x{11F03}\x{11F34}-\x{11F3A}\x{11F3E}-\x{11F42}\x{11F5A}\x{13440}\x{13447}-\x{13455})"
          R"(\x{1611E}-\x{1612F}\x{1E08F}\x{1E4EC}-\x{1E4EF}\x{1E5EE}-\x{1E5EF})"},
};

// `\p{L}` and its like, where they have newer letters. `at` is behind the backslash; nothing where it is none of these.
std::optional<std::string> with_newer(std::string_view expression, std::size_t at, bool in_class) {
  if (!expression.substr(at).starts_with("p{")) return std::nullopt;
  const std::string_view name = expression.substr(at + 2, expression.find('}', at) - at - 2);
  for (const auto& [property, newer] : newer_letters) {
    if (property != name) continue;
    return in_class ? str_cat("\\p{", name, "}", newer) : str_cat("[\\p{", name, "}", newer, "]");
  }
  return std::nullopt;
}

// White_Space of Unicode, as the libraries have it whose expressions these are. PCRE2's \s lacks U+0085, and has U+180E.
constexpr std::string_view spaces =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view usual_spaces = R"(\s\x{85})";

// Whether a letter may be in a text that these tables are about. Their classes cost half as much time again, so other texts go without.
// Their first two bytes: U+0897, U+0CF3, U+0ECE; U+180E, U+1C89; U+A7CB to U+A7DC; U+10D40 to U+1E5FA, U+20000 on. Not emoji.
bool may_have_newer(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0xE0) continue;
    const auto next = static_cast<unsigned char>(text[i + 1]);
    if (lead == 0xF0 ? next != 0x9F
                     : (lead == 0xE0 && (next == 0xA2 || next == 0xB3 || next == 0xBB)) ||
                           (lead == 0xE1 && (next == 0xA0 || next == 0xB2)) || (lead == 0xEA && next == 0x9F)) {
      return true;
    }
  }
  return false;
}

//   exact   for texts that may_have_newer()
std::string of_unicode(const std::string& expression, bool exact) {
  std::string made;
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char letter = expression[i];
    if (letter == '\\' && i + 1 < expression.size()) {
      const char what = expression[++i];
      const std::optional<std::string> newer = exact ? with_newer(expression, i, in_class) : std::nullopt;
      if (newer) {
        made += *newer;
        i = expression.find('}', i);
      } else if (what == 's') {
        str_append(made, in_class ? "" : "[", exact ? spaces : usual_spaces, in_class ? "" : "]");
      } else if (what == 'S' && in_class) {
        throw error(errc::unsupported,
                    str_cat("the expression '", expression, R"(': \S within brackets is not known)"));
      } else if (what == 'S') {
        str_append(made, "[^", exact ? spaces : usual_spaces, "]");
      } else {
        made += letter;
        made += what;
      }
      continue;
    }
    if (letter == '[' && in_class && i + 1 < expression.size() && expression[i + 1] != ':') {
      throw error(errc::unsupported,
                  str_cat("the expression '", expression, "': brackets within brackets are not known"));
    }
    if (letter == '[' && !in_class) {
      in_class = true;
      made += letter;
      if (i + 1 < expression.size() && expression[i + 1] == '^') made += expression[++i];
      if (i + 1 < expression.size() && expression[i + 1] == ']') made += expression[++i];
      continue;
    }
    if (letter == ']') in_class = false;
    made += letter;
  }
  return made;
}

}  // namespace

struct word_pattern::compiled {
  std::string expression;
  std::unique_ptr<pcre2_code, code_free> code;
  std::unique_ptr<pcre2_code, code_free> exact;
};

struct word_pattern::matcher::state {
  const compiled* of = nullptr;
  const pcre2_code* code = nullptr;  // of the text
  std::unique_ptr<pcre2_match_data, data_free> data;
  std::unique_ptr<pcre2_match_context, context_free> context;
  std::unique_ptr<pcre2_jit_stack, stack_free> stack;
};

word_pattern::word_pattern(const std::string& expression) : compiled_(std::make_unique<compiled>()) {
  compiled_->expression = expression;
  const auto made = [&](bool exact) {
    const std::string ours = of_unicode(expression, exact);
    int failure = 0;
    PCRE2_SIZE at = 0;
    std::unique_ptr<pcre2_code, code_free> code(::pcre2_compile(reinterpret_cast<PCRE2_SPTR>(ours.data()), ours.size(),
                                                                PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                                                                &failure, &at, nullptr));
    if (code == nullptr) {
      throw error(errc::unsupported, str_cat("the expression '", expression, "': ", words_of(failure)));
    }
    // Where this machine cannot make code, PCRE2 goes through the expression itself.
    static_cast<void>(::pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE));
    return code;
  };
  compiled_->code = made(false);
  compiled_->exact = made(true);
}
word_pattern::~word_pattern() = default;
word_pattern::word_pattern(word_pattern&&) noexcept = default;
word_pattern& word_pattern::operator=(word_pattern&&) noexcept = default;

word_pattern::matcher::matcher(const word_pattern& pattern) : state_(std::make_unique<state>()) {
  state_->of = pattern.compiled_.get();
  state_->data.reset(::pcre2_match_data_create_from_pattern(state_->of->code.get(), nullptr));
  state_->context.reset(::pcre2_match_context_create(nullptr));
  state_->stack.reset(::pcre2_jit_stack_create(stack_bytes_least, stack_bytes_max, nullptr));
  if (state_->data == nullptr || state_->context == nullptr || state_->stack == nullptr) throw std::bad_alloc();
  ::pcre2_set_match_limit(state_->context.get(), steps_max);
  ::pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->stack.get());
}
word_pattern::matcher::~matcher() = default;
word_pattern::matcher::matcher(matcher&&) noexcept = default;
word_pattern::matcher& word_pattern::matcher::operator=(matcher&&) noexcept = default;

std::optional<word_place> word_pattern::matcher::find(std::string_view text, std::size_t from) {
  if (from == 0 || state_->code == nullptr)
    state_->code = may_have_newer(text) ? state_->of->exact.get() : state_->of->code.get();
  const int found = ::pcre2_match(state_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                  PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, state_->data.get(), state_->context.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw error(errc::limit, str_cat("the expression '", state_->of->expression, "': ", words_of(found)));
  }
  const PCRE2_SIZE* const places = ::pcre2_get_ovector_pointer(state_->data.get());
  return word_place{.begin = places[0], .end = places[1]};
}

}  // namespace leat::stages
