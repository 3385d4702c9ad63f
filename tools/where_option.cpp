#include "tools/where_option.hpp"

#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/views/predicate_text.hpp"
#include "stages/fields/where.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>

#include <CLI/CLI.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace leat::tools {

void add_where(CLI::App& app, std::string& where) {
  app.add_option_function<std::string>(
         "--where",
         [&where](const std::string& given) {
           try {
             static_cast<void>(datasets::parse_predicate(given));
           } catch (const error& refused) {
             throw CLI::ValidationError("--where", str_cat("'", one_line(given.substr(0, 60)), "': ", refused.what()));
           }
           where = given;
         },
         "only samples of which this is so, as \"width >= 224 and cls != 7\": columns, class, name, sample, width and "
         "height of pictures, jpg.bytes; and, or, not, in, matches, is null")
      ->type_name("CONDITION");
}

dataset with_columns_for(const dataset& samples, const std::string& where) {
  if (where.empty()) return samples;
  dataset with = samples;
  for (const std::string& name : datasets::parse_predicate(where).names()) {
    const datasets::dataset_model& model = *with.model();
    const std::optional<std::uint16_t> field = model.find_field(name);
    if (!field || model.find_column(name) || model.fields()[*field].kind != field_kind::label) continue;
    try {
      with = with.with_column(name, read_column(with, name));
    } catch (const error& refused) {
      throw error(refused.code(), str_cat("--where: '", one_line(name), "' is read as whole numbers, and ",
                                          refused.what(), "; of a table name it with --columns"));
    }
  }
  return with;
}

dataset samples_where(const dataset& samples, const std::string& where, const index_options& index) {
  if (where.empty()) return samples;
  dataset found = as_named([&] { return stages::samples_where(with_columns_for(samples, where), where, index); });
  if (found.size() == 0) {
    throw error(errc::usage, str_cat("--where '", one_line(where), "': it holds of none of ",
                                     counted(samples.size(), "sample", "samples")));
  }
  const std::vector<std::string>& notes = found.notes();
  for (std::size_t i = samples.notes().size(); i < notes.size(); ++i) complain("", str_cat("warning: ", notes[i]));
  return found;
}

}  // namespace leat::tools
