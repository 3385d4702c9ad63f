#include "tools/manual.hpp"

#include "base/text.hpp"
#include "datasets/open/formats.hpp"
#include "tools/help.hpp"

#include <leat/version.hpp>

#include <string_view>

namespace leat::tools {
namespace {

// What troff prints as it stands.
std::string plain(std::string_view text) {
  std::string line;
  for (const char letter : text) {
    if (letter == '\\') {
      line += "\\e";
    } else if (letter == '-') {
      line += "\\-";
    } else if ((letter == '.' || letter == '\'') && (line.empty() || line.back() == '\n')) {
      line += "\\&";
      line += letter;
    } else {
      line += letter;
    }
  }
  return line;
}

void add_item(std::string& page, const std::string& name, const std::string& type, const std::string& text) {
  str_append(page, ".TP\n\\fB", plain(name), "\\fR", type.empty() ? "" : " \\fI" + plain(type) + "\\fR", "\n",
             plain(text), "\n");
}

void add_options(std::string& page, const CLI::App& app) {
  for (const std::string& group : app.get_groups()) {
    std::string items;
    for (const CLI::Option* option : app.get_options()) {
      if (group.empty() || option->get_group() != group) continue;
      const std::string shown = option->get_positional() ? positional_name(*option) : option->get_name(false, true);
      add_item(items, shown, option->get_type_name(), option->get_description());
    }
    if (!items.empty()) str_append(page, ".PP\n\\fI", plain(group), "\\fR\n", items);
  }
}

void add_examples(std::string& page, const CLI::App& app) {
  // A command that lists its own inherits none, and hands its examples down: they are shown once.
  const bool is_inherited = app.get_parent() != nullptr && app.get_parent()->get_footer() == app.get_footer();
  if (app.get_footer().empty() || is_inherited) return;
  str_append(page, ".PP\n\\fIExamples\\fR\n.PP\n.nf\n", plain(app.get_footer()), "\n.fi\n");
}

void add_formats(std::string& page) {
  page += ".SH FORMATS\n";
  for (const datasets::format& each : datasets::formats()) {
    if (each.recognised_by.empty()) continue;
    add_item(page, std::string(each.name), "",
             str_cat("Told by ", each.recognised_by, ". Fields: ", each.fields, " Read: ", each.reads,
                     " Not read: ", each.refuses));
  }
}

}  // namespace

std::string manual_page(const CLI::App& leat) {
  std::string page =
      str_cat(".TH LEAT 1 \"\" \"leat ", LEAT_VERSION_MAJOR, ".", LEAT_VERSION_MINOR, ".", LEAT_VERSION_PATCH,
              "\"\n.SH NAME\nleat \\- load training data\n.SH SYNOPSIS\n\\fB", plain(usage(leat, "leat")),
              "\\fR\n.SH DESCRIPTION\n", plain(leat.get_description()), "\n");
  add_options(page, leat);
  add_examples(page, leat);
  page += ".SH COMMANDS\n";
  for (const listed_command& each : commands_of(leat)) {
    if (each.name.empty()) continue;
    str_append(page, ".SS ", plain(usage(*each.app, "leat " + each.name)), "\n", plain(each.app->get_description()),
               "\n");
    add_options(page, *each.app);
    add_examples(page, *each.app);
  }
  page +=
      ".SH EXIT STATUS\n0: done. 1: the data is damaged, or the machine or the run failed. 2: a mistake of the command "
      "line. 128 + N: ended by signal N.\n";
  add_formats(page);
  return page;
}

}  // namespace leat::tools
