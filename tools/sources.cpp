#include "tools/sources.hpp"

#include "base/as_absl.hpp"
#include "base/text.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/model/model.hpp"
#include "datasets/open/formats.hpp"
#include "io/remote/address.hpp"
#include "tools/arguments.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_boxes.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tokens.hpp>

#include <CLI/CLI.hpp>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace leat::tools {
namespace {

// Said here, since what can be done with such a file is the command's own.
void refuse_unknown(const std::vector<std::string>& sources, datasets::token_advice advice) {
  for (const std::string& source : sources) {
    if (!source.ends_with(".bin") || datasets::is_remote(source)) continue;
    for (const std::string& path : datasets::expand_paths(source)) {
      if (datasets::format_of_file(path) != datasets::source_format::raw) continue;
      throw error(errc::usage, str_cat(path, ": it has no header, and no file beside it says what it holds: ",
                                       datasets::looks_like(path, advice)));
    }
  }
}

// Files that say of themselves that they hold something else; a --token-type insists.
void refuse_other_kinds(const std::vector<std::string>& sources) {
  for (const std::string& source : sources) {
    if (datasets::is_remote(source)) continue;
    for (const std::string& path : datasets::expand_paths(source)) {
      const bool is_records =
          path.ends_with(".bin") && datasets::format_of_file(path) == datasets::source_format::records;
      if (!is_records && !path.ends_with(".tar") && !path.ends_with(".npz")) continue;
      throw error(errc::usage,
                  str_cat("--tokens: ", path,
                          is_records ? str_cat(" holds records, as ", datasets::with_extension(path, ".json"),
                                               " says; leave --tokens out, or give --token-type as well")
                                     : std::string(" is no file of tokens; leave --tokens out, or give --token-type "
                                                   "as well")));
    }
  }
}

std::vector<table_options::typed> types_in(std::string_view text) {
  std::vector<table_options::typed> types;
  for (const absl::string_view each : absl::StrSplit(as_absl(text), ',', absl::SkipEmpty())) {
    const std::size_t sign = each.rfind('=');
    const absl::string_view type = sign == absl::string_view::npos ? "" : each.substr(sign + 1);
    constexpr dtype all[] = {dtype::i64, dtype::f32, dtype::f64};
    const auto* const known = std::find_if(std::begin(all), std::end(all), [&](dtype one) {
      const std::string_view called = name(one);
      return absl::string_view(called.data(), called.size()) == type;
    });
    if (known == std::end(all) || sign == 0) {
      throw CLI::ValidationError(str_cat("--types: '", std::string_view(each.data(), each.size()),
                                         "' is no NAME=TYPE; types are i64, f32 and f64"));
    }
    types.push_back({.name = std::string(each.substr(0, sign)), .type = *known});
  }
  return types;
}

// COCO's annotations, and the pictures that they are of.
dataset open_annotations(std::span<const std::string> sources, const source_kind& kind) {
  if (kind.tokens || kind.arrays) {
    throw error(errc::usage, str_cat("--images: the source is a file of annotations, and ",
                                     kind.tokens ? "--tokens says that it has tokens" : "--arrays that it has arrays",
                                     "; leave one of them out"));
  }
  if (sources.size() != 1) {
    throw error(errc::usage, str_cat("--images: one file of annotations goes with one folder, and there are ",
                                     sources.size(), "; load them apart"));
  }
  std::error_code none;
  if (std::filesystem::is_directory(sources.front(), none)) {
    throw error(errc::usage, str_cat("--images: the source is a file of annotations, and ", sources.front(),
                                     " is a folder; give its .json, or leave --images out"));
  }
  open_options others = kind.opening;
  others.arrays.fields.clear();
  datasets::refuse_options(datasets::source_format::pictures, others, kind.images);
  const dataset opened = open_coco(sources.front(), kind.images);
  const std::vector<std::string>& fields = kind.opening.arrays.fields;
  return fields.empty() ? opened : opened.with_fields(fields);
}

void check_type(const dataset& opened, const token_options& asked) {
  const std::vector<field_info> fields = opened.fields();
  if (!asked.type || fields.front().type == *asked.type) return;
  throw error(errc::usage, str_cat("--token-type ", name(*asked.type), ": the files say themselves that they hold ",
                                   name(fields.front().type), "; leave it out"));
}

}  // namespace

std::string shown_source(const std::string& source) {
  return datasets::is_remote(source) ? io::redacted(source) : source;
}

std::string advise_loading(dtype type) {
  return str_cat("tokens are loaded with --tokens LENGTH, as --tokens 1024",
                 type == dtype::u32 ? " --token-type u32" : "");
}

void add_cache_sizes(CLI::App& app, remote_options& remote) {
  add_bytes(app, "--cache-bytes", remote.cache_bytes, "what it may take, as 200GiB (LEAT_CACHE_BYTES)");
  add_bytes(app, "--cache-block-bytes", remote.cache_block_bytes, "what is fetched into it at once (4MiB)");
}

void add_remote_options(CLI::App& app, remote_options& remote) {
  app.add_flag("--allow-http", remote.allow_http, "read from http:// too, where it may be changed on its way");
  add_text(app, "--ca-file", remote.ca_file, "FILE",
           "certificates (PEM) that are trusted beside the system's, for https://");
  add_text(app, "--endpoint", remote.endpoint, "URL", "of s3:// at a store that is not AWS (AWS_ENDPOINT_URL_S3)");
  add_text(app, "--region", remote.region, "NAME", "of s3:// at AWS (AWS_REGION, or us-east-1)");
  app.add_flag("--anonymous", remote.anonymous, "requests of s3:// are not signed");
  app.add_flag("--requester-pays", remote.requester_pays, "of s3://: who reads pays, as such buckets want it");
  app.add_option("--header", remote.headers,
                 "'https://host Name: value', a line that goes with each request to this server alone; may be repeated")
      ->type_name("LINE")
      ->allow_extra_args(false);
  app.add_option_function<std::string>(
         "--patience",
         [&remote](const std::string& given) {
           constexpr std::uint64_t day_s = 86'400;
           remote.patience = std::chrono::seconds(parse_number("--patience", given, 1, day_s));
         },
         "that a store that answers nothing of use is waited for (120)")
      ->type_name("SECONDS");
}

void add_opening_options(CLI::App& app, open_options& opening) {
  app.add_flag("--ignore-zeros", opening.tar.ignore_zeros,
               "read tars on behind their end marker, for what `cat a.tar b.tar` made; else a warning");
  app.add_option_function<std::string>(
         "--fields",
         [&opening](const std::string& names) {
           opening.arrays.fields = absl::StrSplit(names, ',', absl::SkipEmpty());
         },
         "these fields only, of any source (of HDF5 and Zarr the arrays' paths; else those that share the commonest "
         "length)")
      ->type_name("A,B");
  app.add_option_function<std::string>(
         "--columns",
         [&opening](const std::string& names) {
           opening.tables.columns = absl::StrSplit(names, ',', absl::SkipEmpty());
         },
         "of tables: numbers that are kept with the samples, and texts that are classes (label, cls, class); of HDF5: "
         "attributes of the samples")
      ->type_name("A,B");
  app.add_option_function<std::string>(
         "--types", [&opening](const std::string& asked) { opening.tables.types = types_in(asked); },
         "of JSONL and CSV: what these numbers are, i64, f32 or f64 (i64 if all of the first 1,000 are whole, else "
         "f64)")
      ->type_name("A=f32,...");
  add_choice(app, "--text", opening.tables.text,
             {{"lines", text_samples::lines}, {"paragraphs", text_samples::paragraphs}, {"files", text_samples::files}},
             "of plain text: what a sample is (lines)");
  add_text(app, "--split", opening.split, "NAME",
           "of a folder that has several: train/ and test/, data/train-*.parquet, or what its README.md says");
  CLI::Option* const paths = add_text(app, "--path-column", opening.tables.path_column, "NAME",
                                      "of JSONL and CSV: it has the paths of pictures, which are the samples");
  add_text(app, "--root", opening.tables.root, "DIR",
           "what these paths are relative to, which may be an address (the table's folder)")
      ->needs(paths);
  app.add_flag(
      "--checksums", opening.tables.checksums,
      "all checksums of TFRecord, Parquet and MDS are verified (without it those of TFRecord's pictures, and of "
      "Parquet's pages that are read whole): a wrong one makes its sample corrupt, or is an error on opening");
  app.add_option("--window", opening.arrays.window,
                 "of arrays: a sample is so many rows side by side, [N, ...] (one row, without that axis)")
      ->type_name("N");
  app.add_option("--stride", opening.arrays.stride, "rows from one sample to the next (1)")->type_name("N");
  CLI::Option* const by_array = app.add_flag_callback(
      "--array-samples", [&opening] { opening.arrays.samples = array_options::sample::array; },
      "of HDF5 and Zarr: each array is a sample, of one type and shape; those of one name in different groups are a "
      "field (where many have names of one form, as sample_0, sample_1)");
  app.add_flag_callback(
         "--no-array-samples", [&opening] { opening.arrays.samples = array_options::sample::row; },
         "the rows of arrays are the samples, whatever their names are")
      ->excludes(by_array);
  add_remote_options(app, opening.remote);
  add_text(app, "--cache", opening.remote.cache, "DIR",
           "what is read of objects is kept there, on a local drive, for all processes that name it (LEAT_CACHE)");
  add_cache_sizes(app, opening.remote);
  opening.index.use = index_use::check;
  add_choice(
      app, "--index-use", opening.index.use,
      {{"check", index_use::check},
       {"rebuild", index_use::rebuild},
       {"trust", index_use::trust},
       {"off", index_use::off}},
      "the index that an earlier run has kept: used where nothing has changed, built anew, used without looking, or "
      "neither used nor kept (check)");
  add_text(app, "--index", opening.index.directory, "DIR", "where indexes are kept (~/.cache/leat)");
}

leaving_at_once::leaving_at_once(interruption& stop, const std::function<void()>& leave)
    : leaving_(stop.token(), [&stop, leave] {
        leave();
        std::fflush(nullptr);
        std::_Exit(stop.exit_code());  // The threads that look through the source are in the middle of it.
      }) {}

dataset open_sources(const std::vector<std::string>& sources, interruption& stop, const std::function<void()>& leave,
                     datasets::token_advice advice, const source_kind& kind) {
  const auto began = std::chrono::steady_clock::now();
  const leaving_at_once leaving(stop, leave);
  const std::string what =
      one_line(sources.size() == 1 ? shown_source(sources.front()) : counted(sources.size(), "source", "sources"));
  const status_line shown([&](const terminal& screen, std::size_t columns) {
    const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - began;
    const std::string line = str_cat("  opening ", what);
    const std::string clock = str_cat("  ", clock_text(so_far.count()));
    const std::string shown_line = line.size() + clock.size() <= columns ? line : "  opening";
    return screen.dim(shown_line + clock);
  });
  return as_named([&] {
    if (!kind.tokens && !kind.arrays && kind.images.empty()) refuse_unknown(sources, advice);
    if (kind.tokens && !kind.tokens->type) refuse_other_kinds(sources);
    const auto open_some = [&](std::span<const std::string> some) {
      if (!kind.images.empty()) return open_annotations(some, kind);
      if (!kind.tokens && !kind.arrays) return open(some, kind.opening);
      datasets::refuse_options(kind.tokens ? datasets::source_format::tokens : datasets::source_format::npy,
                               kind.opening, shown_source(some.front()));
      token_options tokens = kind.tokens.value_or(token_options());
      npy_options arrays = kind.arrays.value_or(npy_options());
      tokens.remote = arrays.remote = kind.opening.remote;
      arrays.window = kind.opening.arrays.window;
      arrays.stride = kind.opening.arrays.stride;
      const dataset opened = kind.tokens ? open_tokens(some, tokens) : open_npy(some, arrays);
      const std::vector<std::string>& fields = kind.opening.arrays.fields;
      return fields.empty() ? opened : opened.with_fields(fields);
    };
    std::vector<dataset> parts;
    for (std::size_t i = 0; kind.one_by_one && i < sources.size(); ++i) {
      parts.push_back(open_some(std::span(sources).subspan(i, 1)));
    }
    const dataset opened = parts.empty() ? open_some(sources) : concat(parts);
    if (opened.size() == 0) {
      throw error(errc::not_found, str_cat(what, ": there is no sample in it",
                                           opened.notes().empty() ? "" : "; " + opened.notes().front()));
    }
    if (kind.tokens) check_type(opened, *kind.tokens);
    return opened;
  });
}

void check_writes_no_sample(const dataset& samples, std::span<const written_file> files) {
  namespace fs = std::filesystem;
  // As the file is called whose place that is, so that names alone decide which of ten million are looked at.
  std::vector<std::pair<written_file, std::string>> there;
  for (const written_file& each : files) {
    std::error_code failure;
    if (each.second->empty() || *each.second == "-" || !fs::is_regular_file(*each.second, failure)) continue;
    there.emplace_back(each, fs::canonical(*each.second, failure).filename().string());
  }
  if (there.empty()) return;
  for (const auto& source : samples.model()->sources()) {
    for (std::uint32_t file = 0; file < source->files(); ++file) {
      const std::string name = source->file_name(file);
      for (const auto& [each, called] : there) {
        if (!name.ends_with(called) || !is_same_file(name, *each.second)) continue;
        throw error(errc::usage, str_cat(each.first, " ", one_line(*each.second),
                                         " is one of the files that samples are read from; name another"));
      }
    }
  }
}

void tell_notes(std::string_view command, const dataset& samples) {
  constexpr std::size_t notes_shown = 5;
  const std::vector<std::string>& all = samples.notes();
  for (std::size_t i = 0; i < std::min(all.size(), notes_shown); ++i) {
    complain(command, str_cat("warning: ", all[i]));
  }
  if (all.size() > notes_shown) {
    complain(command, str_cat("warning: and ", count_text(all.size() - notes_shown),
                              " more of the kind; `leat inspect` lists them"));
  }
}

std::vector<std::string> notes_of(const dataset& samples) { return samples.notes(); }

}  // namespace leat::tools
