#include "stages/tokenize/word_pattern.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>
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

// PCRE2's \s lacks U+0085, which is a space of Unicode and of the libraries whose expressions these are.
std::string with_spaces_of_unicode(const std::string& expression) {
  std::string made;
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char letter = expression[i];
    if (letter == '\\' && i + 1 < expression.size()) {
      const char what = expression[++i];
      if (what == 's') {
        made += in_class ? R"(\s\x{85})" : R"([\s\x{85}])";
      } else if (what == 'S' && in_class) {
        throw error(errc::unsupported,
                    str_cat("the expression '", expression, R"(': \S within brackets is not known)"));
      } else if (what == 'S') {
        made += R"([^\s\x{85}])";
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
};

struct word_pattern::matcher::state {
  const compiled* of = nullptr;
  std::unique_ptr<pcre2_match_data, data_free> data;
  std::unique_ptr<pcre2_match_context, context_free> context;
  std::unique_ptr<pcre2_jit_stack, stack_free> stack;
};

word_pattern::word_pattern(const std::string& expression) : compiled_(std::make_unique<compiled>()) {
  compiled_->expression = expression;
  const std::string ours = with_spaces_of_unicode(expression);
  int failure = 0;
  PCRE2_SIZE at = 0;
  compiled_->code.reset(::pcre2_compile(reinterpret_cast<PCRE2_SPTR>(ours.data()), ours.size(),
                                        PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &failure, &at, nullptr));
  if (compiled_->code == nullptr) {
    throw error(errc::unsupported, str_cat("the expression '", expression, "': ", words_of(failure)));
  }
  // Where this machine cannot make code, PCRE2 goes through the expression itself.
  static_cast<void>(::pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE));
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
  const int found = ::pcre2_match(state_->of->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                  PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, state_->data.get(), state_->context.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw error(errc::limit, str_cat("the expression '", state_->of->expression, "': ", words_of(found)));
  }
  const PCRE2_SIZE* const places = ::pcre2_get_ovector_pointer(state_->data.get());
  return word_place{.begin = places[0], .end = places[1]};
}

}  // namespace leat::stages
