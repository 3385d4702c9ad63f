#include "tools/help.hpp"

#include "base/as_absl.hpp"
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "tools/names_behind_dashes.hpp"
#include "tools/terminal.hpp"

#include <absl/strings/str_split.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

namespace leat::tools {
namespace {

constexpr std::size_t indent_columns = 2;
constexpr std::size_t name_columns = 32;
constexpr std::size_t columns_max = 100;

// "  --name TYPE      what it does, wrapped under itself"
std::string row(const terminal& screen, const std::string& name, const std::string& type, std::string_view text) {
  std::string line(indent_columns, ' ');
  line += screen.bold(name);
  std::size_t used = indent_columns + name.size();
  if (!type.empty()) {
    line += str_cat(" ", screen.dim(type));
    used += 1 + type.size();
  }
  const std::size_t left = indent_columns + name_columns;
  if (used + 2 > left) {
    line += "\n";
    used = 0;
  }
  line.append(left - used, ' ');
  std::size_t column = left;
  for (const absl::string_view word : absl::StrSplit(as_absl(text), ' ')) {
    if (column > left && column + 1 + word.size() > columns_max) {
      line += "\n" + std::string(left, ' ');
      column = left;
    }
    if (column > left) {
      line += ' ';
      ++column;
    }
    line.append(word.data(), word.size());
    column += word.size();
  }
  return line + "\n";
}

// The names and types of options without a word about them.
std::string names_in_lines(const std::vector<const CLI::Option*>& options) {
  std::string text;
  std::size_t column = 0;
  for (const CLI::Option* option : options) {
    const std::string type = option->get_type_name();
    const std::string shown = option->get_name(false, true) + (type.empty() ? "" : " " + type);
    const bool begins_line = column == 0 || column + 2 + shown.size() > columns_max;
    str_append(text, column == 0 ? "" : ",", begins_line ? (column == 0 ? "  " : "\n  ") : " ", shown);
    column = begins_line ? indent_columns + shown.size() : column + 2 + shown.size();
  }
  return text.empty() ? text : text + "\n";
}

constexpr std::ptrdiff_t screen_lines = 24;

std::string help_text(const CLI::App& app, const std::string& name, bool is_short) {
  const terminal screen = terminal::of(stdout);
  // Without headings: all of it fits a screen of 24 lines.
  const bool is_whole = app.get_parent() == nullptr;
  std::string text = str_cat(app.get_description(), "\n  ", screen.bold(usage(app, name)), "\n");

  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  if (!commands.empty() && !is_whole) text += "\n";
  for (const CLI::App* each : commands) {
    // What --help does, in another spelling.
    if (each->get_name() != "help") text += row(screen, each->get_name(), "", each->get_description());
  }

  for (const std::string& group : app.get_groups()) {
    if (group.empty()) continue;
    std::string rows;
    std::vector<const CLI::Option*> only_named;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() != group) continue;
      if (is_short && !option->get_positional()) {
        only_named.push_back(option);
        continue;
      }
      const std::string shown = option->get_positional() ? positional_name(*option) : option->get_name(false, true);
      rows += row(screen, shown, option->get_type_name(), option->get_description());
    }
    rows += names_in_lines(only_named);
    if (!rows.empty()) text += str_cat(is_whole ? "" : "\n" + screen.dim(group) + "\n", rows);
  }
  const std::string heading = is_whole ? std::string() : str_cat("\n", screen.dim("Examples"));
  if (!app.get_footer().empty()) text += str_cat(heading, "\n", app.get_footer(), "\n");
  return text;
}

// What other loaders and trainers call it.
struct other_name {
  std::string_view theirs;
  std::string_view ours;
};
constexpr other_name other_names[] = {{"workers", "--threads"},
                                      {"num-workers", "--threads"},
                                      {"n-workers", "--threads"},
                                      {"nproc", "--threads"},
                                      {"jobs", "--threads"},
                                      {"num-threads", "--threads"},
                                      {"bs", "--batch-size"},
                                      {"batch", "--batch-size"},
                                      {"num-epochs", "--epochs"},
                                      {"max-epochs", "--epochs"},
                                      {"random-seed", "--seed"},
                                      {"manual-seed", "--seed"},
                                      {"image-size", "--size"},
                                      {"img-size", "--size"},
                                      {"imgsz", "--size"},
                                      {"input-size", "--size"},
                                      {"resolution", "--size"},
                                      {"resize", "--size"},
                                      {"crop", "--size"},
                                      {"crop-size", "--size"},
                                      {"augment", "--transform"},
                                      {"eval", "--transform"},
                                      {"val", "--transform"},
                                      {"precision", "--dtype"},
                                      {"channels-last", "--layout"},
                                      {"memory-format", "--layout"},
                                      {"gpu", "--device"},
                                      {"cuda", "--device"},
                                      {"seq-len", "--tokens"},
                                      {"seq-length", "--tokens"},
                                      {"sequence-length", "--tokens"},
                                      {"block-size", "--tokens"},
                                      {"context-length", "--tokens"},
                                      {"max-steps", "--limit"},
                                      {"steps", "--limit"},
                                      {"num-batches", "--limit"},
                                      {"max-batches", "--limit"},
                                      {"memory", "--host-bytes-max"},
                                      {"max-memory", "--host-bytes-max"},
                                      {"prefetch", "--host-bytes-max"},
                                      {"prefetch-factor", "--host-bytes-max"},
                                      {"on-error", "--on-corrupt"},
                                      {"skip-errors", "--on-corrupt"},
                                      {"skip-corrupt", "--on-corrupt"},
                                      {"output", "--out"},
                                      {"force", "--overwrite"},
                                      {"sequential", "--no-shuffle"},
                                      {"no-random", "--no-shuffle"}};

// What is done without being asked for, or is done no more, in words.
constexpr other_name done_anyway[] = {{"pin-memory", "memory is pinned by itself where --device is a GPU"},
                                      {"persistent-workers", "threads live as long as the loader"},
                                      {"poll", "drives are no longer polled, so leave it away"},
                                      {"use-io-uring", "io_uring is used where the kernel allows it; see --reader"}};

// "--num_workers" as it stands in the lists above.
std::string plain_name(std::string_view given) {
  std::string name(given.substr(std::min(given.find_first_not_of('-'), given.size())));
  for (char& letter : name) {
    if (letter == '_') letter = '-';
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return name;
}

// Nothing where it is no name that others have for one of `known`.
std::string_view meaning_of(std::string_view given, const std::vector<std::string>& known) {
  const std::string name = plain_name(given);
  for (const other_name& each : other_names) {
    if (each.theirs == name && std::find(known.begin(), known.end(), each.ours) != known.end()) return each.ours;
  }
  return {};
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  return names;
}

void list_commands(const CLI::App& app, const std::string& name, std::vector<listed_command>& all) {
  all.push_back({name, &app});
  for (const CLI::App* each : app.get_subcommands({})) {
    list_commands(*each, str_cat(name, name.empty() ? "" : " ", each->get_name()), all);
  }
}

// "--batch-size" for "--batchsize". Names are short, and many: a letter in four may be wrong, the dashes not counted.
std::string nearest_of(std::string_view given, const std::vector<std::string>& known) {
  const auto letters = [](std::string_view name) {
    return name.substr(std::min(name.find_first_not_of('-'), name.size()));
  };
  std::vector<std::string> names;
  for (const std::string& each : known) {
    if (each.starts_with('-') == given.starts_with('-')) names.emplace_back(letters(each));
  }
  const std::string meant = nearest_name(letters(given), names, (letters(given).size() + 1) / 4);
  return meant.empty() || !given.starts_with('-') ? meant : "--" + meant;
}

}  // namespace

std::string command_name(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string above = command_name(*app.get_parent());
  return above.empty() ? app.get_name() : above + " " + app.get_name();
}

std::string help_of(const CLI::App& app, CLI::AppFormatMode mode) {
  const std::string name = command_name(app);
  return help_formatter().make_help(&app, name.empty() ? "leat" : "leat " + name, mode);
}

std::vector<listed_command> commands_of(const CLI::App& leat) {
  std::vector<listed_command> all;
  list_commands(leat, "", all);
  return all;
}

std::vector<const CLI::Option*> named_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_positional(); });
}

std::string positional_name(const CLI::Option& option) {
  // CLI11 2.4 refuses a name of several words, which is given as a text.
  if (!option.get_option_text().empty()) return option.get_option_text();
  const std::string name = option.get_name(true);
  return option.get_expected_max() > 1 ? name + "..." : name;
}

std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  // "N|P%" are kinds of values.
  const auto is_kind = [](char letter) { return (letter >= 'A' && letter <= 'Z') || letter == '%' || letter == '.'; };
  if (type.find('|') == std::string::npos || std::any_of(type.begin(), type.end(), is_kind)) return {};
  return absl::StrSplit(type, '|');
}

bool takes_path(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.starts_with("FILE") || type == "DIR";
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string line = name;
  bool has_options = false;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) {
      has_options |= !option->get_group().empty() && option != app.get_help_ptr() && option != app.get_help_all_ptr();
      continue;
    }
    line += " " + positional_name(*option);
  }
  if (!app.get_subcommands({}).empty()) return line + " COMMAND ...";
  return line + (has_options ? " [options]" : "");
}

std::string help_formatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = help_text(*app, name, false);
  if (mode == CLI::AppFormatMode::All || std::count(text.begin(), text.end(), '\n') <= screen_lines) return text;
  return str_cat(help_text(*app, name, true), "\n`", name, " --help` says what each option does.\n");
}

namespace {

std::string explain_before(const std::string& given, const CLI::App& app, const std::string& help) {
  const std::string named = given.substr(0, given.find('='));
  const bool is_of_app = app.get_option_no_throw(named) != nullptr;
  return str_cat("'", without_mark(given), "' stands before ", command_name(app), "; ",
                 is_of_app ? str_cat("options go behind it: `leat ", command_name(app), " ", named, "`")
                           : str_cat("leave it out, ", help, " lists what may stand behind"));
}

}  // namespace

std::string explain(const CLI::ParseError& problem, const CLI::App& app) {
  const std::string named = command_name(app);
  const std::string help = str_cat("`leat", named.empty() ? "" : " ", named, " --help`");
  std::string what = problem.what();
  if (const auto* const extras = dynamic_cast<const CLI::ExtrasError*>(&problem)) {
    static_cast<void>(extras);
    const std::vector<std::string> left = app.remaining();
    // Behind a command all is its own: what is left over stood before its name.
    for (const CLI::App* above = app.get_parent(); left.empty() && above != nullptr; above = above->get_parent()) {
      const std::vector<std::string> before = above->remaining();
      if (!before.empty()) return explain_before(before.front(), app, help);
    }
    if (!left.empty() && is_marked(left.front())) {
      return str_cat("unknown argument '", without_mark(left.front()), "'; ", help, " lists what there is");
    }
    const std::string given = left.empty() ? "" : left.front().substr(0, left.front().find('='));
    const std::vector<std::string> known = names_of(app);
    for (const other_name& each : done_anyway) {
      if (given.starts_with("-") && each.theirs == plain_name(given)) {
        return str_cat("unknown option '", given, "'; ", each.ours);
      }
    }
    const std::string_view elsewhere = given.starts_with("-") ? meaning_of(given, known) : std::string_view();
    const std::string meant = elsewhere.empty() ? nearest_of(given, known) : std::string(elsewhere);
    const char* const kind = given.starts_with("-")            ? "option"
                             : app.get_subcommands({}).empty() ? "argument"
                                                               : "command";
    return str_cat("unknown ", kind, " '", given, "'; ",
                   meant.empty() ? str_cat(help, " lists what there is") : str_cat("did you mean ", meant, "?"));
  }
  if (dynamic_cast<const CLI::RequiredError*>(&problem) != nullptr) {
    return str_cat(what, "; ", help, " shows how");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&problem) != nullptr) {
    // "--seed: 1 required N missing", "--seed: At Most 1 required but received 2".
    const std::size_t colon = what.find(": ");
    const std::string_view rest = std::string_view(what).substr(colon == std::string::npos ? what.size() : colon);
    if (rest.ends_with("missing")) return str_cat(what.substr(0, colon), " needs a value; ", help, " shows which");
    if (rest.find("At Most 1") != std::string_view::npos) {
      return str_cat(what.substr(0, colon), " is given more than once; leave all but one of them out");
    }
  }
  if (dynamic_cast<const CLI::ValidationError*>(&problem) != nullptr) {
    if (const std::size_t colon = what.find(": "); colon != std::string::npos) what.replace(colon, 2, " ");
    return what;
  }
  return str_cat(what, "; ", help, " shows how");
}

}  // namespace leat::tools
