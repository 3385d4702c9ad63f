// leat index: an index beside tar shards, so that opening them from elsewhere does not read them over.
#include "base/text.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/write/index_writer.hpp"
#include "tools/arguments.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>
#include <leat/open_tar.hpp>

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

struct index_arguments {
  std::vector<std::string> sources;
  std::string folder;
  tar_options tar;
  remote_options remote;
  bool json = false;
  asked_for asked;
};

std::vector<std::string> shards_of(const index_arguments& arguments) {
  std::vector<std::string> all;
  for (const std::string& source : arguments.sources) {
    if (datasets::is_remote(source) != datasets::is_remote(arguments.sources.front()))
      throw error(errc::usage, "shards at addresses and on a disk are indexed apart; give one kind of them");
    if (datasets::is_remote(source)) {
      for (std::string& each : datasets::expand_addresses(source, arguments.remote, ".tar"))
        all.push_back(std::move(each));
      continue;
    }
    for (std::string& path : datasets::expand_paths(source)) {
      if (!datasets::is_folder(path)) {
        all.push_back(std::move(path));
        continue;
      }
      std::vector<std::string> inside = datasets::files_in(path, ".tar");
      if (inside.empty())
        throw error(errc::not_found, str_cat(path, ": it has no tar shard, and only these are indexed"));
      all.insert(all.end(), inside.begin(), inside.end());
    }
  }
  return all;
}

int index_sources(const index_arguments& arguments, interruption& stop) {
  const leaving_at_once leaving(
      stop, [&] { complain("index", str_cat("stopped by ", stop.name(), "; nothing was written")); });
  const std::vector<datasets::written_index> written = as_named([&] {
    const std::vector<std::string> shards = shards_of(arguments);
    const status_line shown([&](const terminal& screen, std::size_t) {
      return screen.dim(str_cat("  reading the headers of ", counted(shards.size(), "shard", "shards")));
    });
    return datasets::write_indexes(shards, arguments.tar, arguments.remote, arguments.folder);
  });
  if (arguments.json) {
    json indexes = json::array();
    for (const datasets::written_index& each : written) {
      indexes.push_back(
          {{"path", each.path}, {"shards", each.shards}, {"samples", each.samples}, {"bytes", each.bytes}});
    }
    print(report_text(json{{"indexes", indexes}}, arguments.asked));
    return exit_done;
  }
  for (const datasets::written_index& each : written) {
    print(str_cat("  ", one_line(each.path), "  ", counted(each.shards, "shard", "shards"), ", ",
                  counted(each.samples, "sample", "samples"), ", ", bytes_text(each.bytes), "\n"));
  }
  return exit_done;
}

}  // namespace

void add_index(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<index_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("index", "write an index beside tar shards, for opening them from a store");
  app.add_option("SOURCE", arguments->sources,
                 "tar shards by path, brace list or glob; a folder of them; with --to, s3:// or https://")
      ->required();
  add_text(app, "--to", arguments->folder, "DIR", "where indexes are written; else beside the shards");
  app.add_flag("--ignore-zeros", arguments->tar.ignore_zeros,
               "read tars on behind their end marker; such an index is used where that is asked for too");
  add_remote_options(app, arguments->remote);
  app.add_flag("--json", arguments->json, "what was written, as one JSON object");
  app.footer(
      "  leat index 'shards/train-*.tar'                 # writes shards/train.index\n"
      "  leat index 's3://bucket/train-*.tar' --to .     # then: aws s3 cp train.index s3://bucket/");
  app.callback([arguments, &app, &chosen] {
    arguments->asked = asked_of(app);
    chosen = [arguments](interruption& stop) { return index_sources(*arguments, stop); };
  });
}

}  // namespace leat::tools
