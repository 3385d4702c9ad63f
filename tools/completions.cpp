#include "tools/completions.hpp"

#include "base/as_absl.hpp"
#include "base/text.hpp"
#include "tools/help.hpp"

#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include <string_view>
#include <vector>

namespace leat::tools {
namespace {

// As one word of any of the three shells.
std::string shell_word(std::string_view text) {
  return str_cat("'", absl::StrReplaceAll(as_absl(text), {{"'", "'\\''"}}), "'");
}

// "-o", "--out": as they are typed.
std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> all;
  for (const std::string& name : option.get_snames()) all.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) all.push_back("--" + name);
  return all;
}

bool takes_value(const CLI::Option& option) { return option.get_expected_max() > 0; }

/// The pattern of a case that a word belongs to a command's name: what was found before it, a blank, and the word.
std::string command_steps(const CLI::App& leat, std::string_view between, std::string_view quote) {
  std::vector<std::string> steps;
  for (const listed_command& each : commands_of(leat)) {
    if (each.name.empty()) continue;
    const bool is_nested = each.name.find(' ') != std::string::npos;
    steps.push_back(str_cat(quote, is_nested ? "" : " ", each.name, quote));
  }
  return absl::StrJoin(steps, std::string(between));
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  return names;
}

std::string for_bash(const CLI::App& leat) {
  std::string values;
  std::string words;
  for (const listed_command& each : commands_of(leat)) {
    std::vector<std::string> offered;
    for (const CLI::Option* option : named_options(*each.app)) {
      std::vector<std::string> after;
      for (const std::string& name : spellings(*option)) {
        offered.push_back(name);
        after.push_back(shell_word(str_cat(each.name, " ", name)));
      }
      if (!takes_value(*option)) continue;
      const std::vector<std::string> choices = values_of(*option);
      const std::string reply =
          takes_path(*option) ? "compgen -f -- \"$current\""
                              : str_cat("compgen -W ", shell_word(absl::StrJoin(choices, " ")), " -- \"$current\"");
      str_append(values, "    ", absl::StrJoin(after, " | "), ") mapfile -t COMPREPLY < <(", reply, "); return ;;\n");
    }
    str_append(words, "    ", shell_word(each.name),
               ")\n      commands=", shell_word(absl::StrJoin(names_of_commands(*each.app), " ")),
               "\n      options=", shell_word(absl::StrJoin(offered, " ")), "\n      ;;\n");
  }
  return str_cat(R"(# bash completion of leat, made by `leat help --completions bash`.
_leat() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' commands='' options='' i
  # --name=value is three words.
  if [[ $current == '=' ]]; then current=''; fi
  if [[ $previous == '=' ]]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${COMP_WORDS[i]}" in
      )",
                 command_steps(leat, " | ", "'"), R"() command="${command:+$command }${COMP_WORDS[i]}" ;;
      *) break ;;
    esac
  done
  case "$command $previous" in
)",
                 values, R"(  esac
  case $command in
)",
                 words, R"(  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [[ $commands ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -o filenames -F _leat leat
)");
}

// Of a description in _arguments: brackets and colons have a meaning.
std::string in_brackets(std::string_view text) {
  return absl::StrReplaceAll(as_absl(text), {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string zsh_argument(const CLI::Option& option, const std::string& name) {
  std::string text = str_cat(name, "[", in_brackets(option.get_description()), "]");
  if (takes_value(option)) {
    const std::vector<std::string> choices = values_of(option);
    str_append(text, ":", in_brackets(option.get_type_name()), ":",
               takes_path(option) ? "_files"
               : choices.empty()  ? ""
                                  : str_cat("(", absl::StrJoin(choices, " "), ")"));
  }
  return shell_word(text);
}

std::string for_zsh(const CLI::App& leat) {
  std::string cases;
  for (const listed_command& each : commands_of(leat)) {
    str_append(cases, "    ", shell_word(each.name), ")\n      _arguments");
    for (const CLI::Option* option : named_options(*each.app)) {
      for (const std::string& name : spellings(*option))
        str_append(cases, " \\\n        ", zsh_argument(*option, name));
    }
    std::string commands;
    for (const CLI::App* one : each.app->get_subcommands({})) {
      str_append(commands, commands.empty() ? "" : " ", one->get_name(), "\\:", "\"",
                 absl::StrReplaceAll(one->get_description(), {{":", "\\:"}, {"\"", "\\\""}}), "\"");
    }
    const std::string rest = commands.empty() ? "*:file:_files" : str_cat("1:command:((", commands, "))");
    str_append(cases, " \\\n        ", shell_word(rest), "\n      ;;\n");
  }
  return str_cat(R"(#compdef leat
# zsh completion of leat, made by `leat help --completions zsh`.
_leat() {
  local command=''
  local -i at=2
  while (( at < CURRENT )); do
    case "$command $words[at]" in
      )",
                 command_steps(leat, " | ", "'"), R"() command="${command:+$command }$words[at]" ;;
      *) break ;;
    esac
    (( ++at ))
  done
  # _arguments sees what follows the command.
  words=("leat" "${(@)words[at,-1]}")
  (( CURRENT -= at - 2 ))
  case $command in
)",
                 cases, R"(  esac
}
if [ "$funcstack[1]" = _leat ]; then _leat "$@"; else compdef _leat leat; fi
)");
}

std::string for_fish(const CLI::App& leat) {
  std::string lines;
  for (const listed_command& each : commands_of(leat)) {
    const std::string begin = str_cat("complete -c leat -n ", shell_word(str_cat("__leat_is \"", each.name, "\"")));
    for (const CLI::App* one : each.app->get_subcommands({})) {
      str_append(lines, begin, " -f -a ", one->get_name(), " -d ", shell_word(one->get_description()), "\n");
    }
    for (const CLI::Option* option : named_options(*each.app)) {
      lines += begin;
      for (const std::string& name : option->get_snames()) str_append(lines, " -s ", name);
      for (const std::string& name : option->get_lnames()) str_append(lines, " -l ", name);
      if (takes_value(*option)) {
        const std::vector<std::string> choices = values_of(*option);
        str_append(lines, takes_path(*option) ? " -r -F" : " -x",
                   choices.empty() ? "" : str_cat(" -a ", shell_word(absl::StrJoin(choices, " "))));
      }
      str_append(lines, " -d ", shell_word(option->get_description()), "\n");
    }
  }
  return str_cat(R"(# fish completion of leat, made by `leat help --completions fish`.
function __leat_is
    set -l command
    set -l words (commandline -opc)
    for word in $words[2..]
        switch "$command $word"
            case )",
                 command_steps(leat, " ", "'"), R"(
                set command (string trim -- "$command $word")
            case '*'
                break
        end
    end
    test "$command" = "$argv[1]"
end
)",
                 lines);
}

}  // namespace

std::string completions(const CLI::App& leat, shell which) {
  switch (which) {
    case shell::bash:
      return for_bash(leat);
    case shell::zsh:
      return for_zsh(leat);
    case shell::fish:
      return for_fish(leat);
  }
  return {};
}

}  // namespace leat::tools
