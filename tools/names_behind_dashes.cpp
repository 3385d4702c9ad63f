#include "tools/names_behind_dashes.hpp"

#include <cstddef>
#include <string_view>

namespace leat::tools {
namespace {

// No path or name begins so: of control characters, which a shell gives to nobody by accident.
constexpr std::string_view name_mark = "\x01\x02--\x02\x01";

const CLI::App* find_command(const CLI::App& of, const std::string& name) {
  const std::vector<const CLI::App*> all =
      of.get_subcommands([&](const CLI::App* each) { return each->check_name(name); });
  return all.empty() ? nullptr : all.front();
}

bool takes_value(const CLI::App& app, const std::string& word) {
  const CLI::Option* const option = app.get_option_no_throw(word);
  return word.starts_with('-') && option != nullptr && option->get_items_expected_min() > 0;
}

}  // namespace

std::vector<std::string> words_of(const CLI::App& leat, int argc, const char* const* argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const CLI::App* app = &leat;
  std::size_t at = 0;
  for (; at < words.size(); ++at) {
    if (const CLI::App* const own = find_command(*app, words[at])) {
      app = own;
    } else if (words[at] == "--" && app != &leat && !takes_value(*app, words[at - 1])) {
      break;
    }
  }
  if (at == words.size()) return words;
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
  for (; at < words.size(); ++at) words[at].insert(0, name_mark);
  return words;
}

void take_marks_off(CLI::App& leat) {
  for (CLI::Option* const each : leat.get_options()) {
    if (each->get_positional()) each->transform(without_mark);
  }
  for (CLI::App* const each : leat.get_subcommands(nullptr)) take_marks_off(*each);
}

bool is_marked(const std::string& word) { return word.starts_with(name_mark); }

std::string without_mark(std::string word) {
  if (is_marked(word)) word.erase(0, name_mark.size());
  return word;
}

}  // namespace leat::tools
