// leat pack: any source as WebDataset shards, or rows as one file or as Zarr.
#include "datasets/write/pack.hpp"

#include "base/text.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/write/index_writer.hpp"
#include "datasets/write/pack_zarr.hpp"
#include "stages/fields/photo_reach.hpp"
#include "tools/arguments.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/pack_rows.hpp"
#include "tools/photo_packing.hpp"
#include "tools/ranks.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"
#include "tools/transcoding.hpp"
#include "tools/where_option.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

enum class pack_target : std::uint8_t { tar, npy, records, zarr };

struct pack_arguments {
  std::vector<std::string> paths;  // SOURCE... OUT
  datasets::pack_options how;
  bool transcode = false;
  photo_form photos = photo_form::as_they_are;
  bool verify = true;
  pack_target to = pack_target::tar;
  datasets::pack_zarr_options zarr;
  std::string zarr_option;  // one that was given and is of --to zarr alone
  rank_options ranks;
  open_options opening;
  std::string where;
  bool index = false;
  bool json = false;
  asked_for asked;
};

std::optional<row_format> rows_of(pack_target to) {
  if (to == pack_target::npy) return row_format::npy;
  if (to == pack_target::records) return row_format::records;
  return std::nullopt;
}

double share(const datasets::pack_progress& now) {
  return static_cast<double>(now.samples) / static_cast<double>(std::max<std::uint64_t>(now.samples_total, 1));
}

std::string progress(const terminal& screen, std::size_t columns, const datasets::pack_progress& now, double seconds) {
  std::string end = str_cat("  ", count_text(now.samples), " of ", count_text(now.samples_total), " samples");
  if (now.samples > 0) {
    str_append(end, "  ", rate_text(static_cast<double>(now.bytes) / seconds), "  eta ",
               clock_text(seconds * (1 - share(now)) / share(now)));
  }
  return bar_line(screen, columns, share(now), end);
}

// What was left as it is, the first ones by name.
void add_left(std::string& text, const std::vector<std::string>& first, std::uint64_t all) {
  for (const std::string& each : first) str_append(text, "  left as it is: ", one_line(each), "\n");
  if (all > first.size()) str_append(text, "  ... and ", counted(all - first.size(), "more", "more"), "\n");
}

std::string text_of(const photo_packing& done, photo_form to) {
  const photo_packing::counts count = done.count();
  std::string text = str_cat("  ", counted(count.rewritten, "photograph", "photographs"),
                             to == photo_form::fast ? " as photo packs" : " as JPEGs again");
  if (count.rewritten > 0) {
    str_append(text, ", ", bytes_text(count.bytes_before), " before and ", bytes_text(count.bytes_after), " after");
  }
  str_append(text, "; ", count_text(count.left), " left as they were\n");
  add_left(text, done.left(), count.left);
  return text;
}

std::string text_of(const transcoding& done) {
  const transcoding::counts count = done.count();
  std::string text = str_cat("  ", counted(count.rewritten, "JPEG", "JPEGs"), " written anew as baseline",
                             count.rewritten > 0 ? str_cat(", ", bytes_text(count.bytes_before), " before and ",
                                                           bytes_text(count.bytes_after), " after")
                                                 : "",
                             "; ", count_text(count.as_they_were), " left as they were\n");
  add_left(text, done.left(), count.left);
  return text;
}

std::string summary(const datasets::pack_result& made, const world& here, pack_target to, double seconds) {
  std::uint64_t bytes = 0;
  for (const datasets::packed_shard& shard : made.shards) bytes += shard.bytes;
  const std::string who = here.size > 1 ? str_cat("rank ", here.rank, " of ", here.size, ": ") : "";
  std::string text = str_cat(who, counted(made.samples, "sample", "samples"), " in ",
                             to == pack_target::tar    ? counted(made.shards.size(), "shard", "shards")
                             : to == pack_target::zarr ? "1 folder"
                                                       : "1 file",
                             ", ", bytes_text(bytes), ", in ", seconds_text(seconds), "\n");
  if (made.shards.size() == 1) str_append(text, "  ", made.shards.front().path, "\n");
  if (made.shards.size() > 1) {
    const auto [least, most] = std::minmax_element(made.shards.begin(), made.shards.end(),
                                                   [](const auto& a, const auto& b) { return a.samples < b.samples; });
    str_append(text, "  ", made.shards.front().path, " ... ", made.shards.back().path, ", ", count_text(least->samples),
               least->samples == most->samples ? "" : " to " + count_text(most->samples), " samples each\n");
  }
  if (made.kept > 0) {
    str_append(text, "  there already: ", counted(made.kept, "shard, which stays", "shards, which stay"), "\n");
  }
  if (made.skipped > 0)
    str_append(text, "  left out: ", counted(made.skipped, "damaged sample", "damaged samples"), "\n");
  for (const std::string& note : made.notes) str_append(text, "  note: ", one_line(note), "\n");
  return text;
}

nlohmann::ordered_json as_json(const datasets::pack_result& made, double seconds) {
  nlohmann::ordered_json shards = nlohmann::ordered_json::array();
  for (const datasets::packed_shard& shard : made.shards) {
    shards.push_back({{"path", shard.path}, {"samples", shard.samples}, {"bytes", shard.bytes}});
  }
  return {{"samples", made.samples}, {"kept", made.kept}, {"skipped", made.skipped},
          {"seconds", seconds},      {"shards", shards},  {"notes", made.notes}};
}

nlohmann::ordered_json as_json(const transcoding& done) {
  const transcoding::counts count = done.count();
  return {{"rewritten", count.rewritten},
          {"bytes_before", count.bytes_before},
          {"bytes_after", count.bytes_after},
          {"as_they_were", count.as_they_were},
          {"left", count.left},
          {"left_members", done.left()}};
}

nlohmann::ordered_json as_json(const photo_packing& done) {
  const photo_packing::counts count = done.count();
  return {{"rewritten", count.rewritten},
          {"bytes_before", count.bytes_before},
          {"bytes_after", count.bytes_after},
          {"left", count.left},
          {"left_members", done.left()}};
}

// Names that stand for several.
void check_one_file(const std::string& out) {
  if (!datasets::has_braces(out) && out.find('%') == std::string::npos) return;
  throw error(errc::usage, str_cat("OUT '", out,
                                   "' names several files, and --to npy and --to records write one; name it, as "
                                   "rows.npy or rows.bin"));
}

// What ranks cannot do together, since none waits for another.
void check_for_ranks(const pack_arguments& arguments, const world& here) {
  if (arguments.to != pack_target::tar) {
    throw error(errc::usage, str_cat("--to npy, --to records and --to zarr write one file or folder, which ", here.size,
                                     " ranks cannot write together; run it as one process"));
  }
  if (arguments.index) {
    throw error(errc::usage, str_cat("--write-index: an index is of all shards, and each of ", here.size,
                                     " ranks has some of them; leave it out, and run `leat index` when all are there"));
  }
  if (arguments.how.bytes_per_shard != 0) {
    throw error(
        errc::usage,
        str_cat("--bytes-per-shard: which samples a shard holds is known only when those before it are written, and ",
                here.size, " ranks write theirs at once; give --samples-per-shard"));
  }
}

// Rows are known by dtype and shape, which a member of a shard has no place for.
void check_members(const dataset& from) {
  for (const field_info& field : from.fields()) {
    if (field.kind != field_kind::tensor) continue;
    throw error(errc::usage, str_cat("the field '", field.name, "' has rows of ", name(field.type),
                                     ", and a member of a shard has no dtype and shape; --to records, --to npy and "
                                     "--to zarr keep them"));
  }
}

datasets::pack_result write(const dataset& from, const std::string& out, pack_arguments& arguments) {
  if (arguments.to == pack_target::zarr) {
    arguments.zarr.shuffle = arguments.how.shuffle;
    arguments.zarr.seed = arguments.how.seed;
    arguments.zarr.progress = arguments.how.progress;
    arguments.zarr.stop = arguments.how.stop;
    return datasets::pack_zarr(from, out, arguments.zarr);
  }
  if (const std::optional<row_format> rows = rows_of(arguments.to)) {
    return pack_rows(from, out, *rows, arguments.how);
  }
  return datasets::pack(from, out, arguments.how);
}

int pack_sources(pack_arguments& arguments, interruption& stop) {
  if (arguments.paths.size() < 2) {
    throw error(errc::usage, "SOURCE and OUT are both needed; as in `leat pack photos 'photos-{000000..000003}.tar'`");
  }
  const std::string out = arguments.paths.back();
  if (out == "-") {
    throw error(errc::usage,
                "OUT '-': shards are written to files, which appear when they are whole; name one, as photos.tar");
  }
  if (arguments.to != pack_target::tar &&
      (arguments.how.samples_per_shard != 0 || arguments.how.bytes_per_shard != 0 || arguments.transcode)) {
    throw error(errc::usage,
                "--to npy, --to records and --to zarr write rows; leave out --samples-per-shard, --bytes-per-shard and "
                "--transcode, which are for tar shards");
  }
  if (arguments.photos != photo_form::as_they_are && (arguments.to != pack_target::tar || arguments.transcode)) {
    throw error(
        errc::usage,
        "--photos makes members of tar shards, and not together with --transcode; leave out one of them: shards "
        "that were written with --transcode can be packed with --photos fast");
  }
  if (arguments.to != pack_target::zarr && !arguments.zarr_option.empty()) {
    throw error(errc::usage, str_cat(arguments.zarr_option, " is of --to zarr; give that too, or leave it out"));
  }
  if (arguments.how.keep_finished && arguments.to != pack_target::tar) {
    throw error(errc::usage,
                "--continue: --to npy, --to records and --to zarr write one file or folder, whole or not at all; "
                "leave it out");
  }
  if (arguments.how.keep_finished && arguments.how.overwrite) {
    throw error(errc::usage,
                "--continue keeps the shards that are there, and --overwrite replaces them; leave out one of them");
  }
  if (!arguments.verify && arguments.photos != photo_form::fast) {
    throw error(errc::usage,
                "--verify off: it is of --photos fast; nothing else compares what it writes; leave it out");
  }
  if (arguments.index && arguments.to != pack_target::tar)
    throw error(errc::usage, "--write-index: it is of tar shards; leave it out");
  if (arguments.to == pack_target::zarr && arguments.how.overwrite) {
    throw error(errc::usage, "--overwrite: --to zarr replaces no folder; remove it, or give another name");
  }
  const std::vector<std::string> sources(arguments.paths.begin(), arguments.paths.end() - 1);
  as_named([&] { datasets::refuse_address(out); });
  if (arguments.to != pack_target::tar) check_one_file(out);
  const found_world here = world_of(arguments.ranks);
  arguments.how.world = here.world;
  if (here.world.size > 1) check_for_ranks(arguments, here.world);
  const auto leave = [&] {
    complain("pack", str_cat("stopped by ", stop.name(), " while opening the source; nothing was written"));
  };
  const dataset opened = open_sources(sources, stop, leave,
                                      [](dtype) { return std::string("files of tokens need no packing: copy them"); },
                                      {.opening = arguments.opening});
  const dataset from = [&] {
    const leaving_at_once leaving(stop, leave);
    return samples_where(opened, arguments.where, arguments.opening.index);
  }();
  tell_notes("pack", from);
  if (arguments.to == pack_target::tar) check_members(from);

  const auto began = std::chrono::steady_clock::now();
  const auto seconds = [began] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  std::mutex mutex;
  datasets::pack_progress now{.samples = 0, .samples_total = from.size(), .bytes = 0};
  arguments.how.stop = stop.token();
  arguments.how.progress = [&](const datasets::pack_progress& so_far) {
    const std::lock_guard lock(mutex);
    now = so_far;
  };
  // What is only compared with a shard that stays is not counted.
  transcoding transcoded, transcoded_to_compare;
  if (arguments.transcode) {
    const auto by = [](transcoding& counted) {
      return [&counted](std::string_view member, std::span<const std::byte> content) {
        std::optional<std::vector<std::byte>> file = counted.rewrite(member, content);
        return file ? std::optional(datasets::rewritten_member{std::string(member), std::move(*file)}) : std::nullopt;
      };
    };
    arguments.how.rewrite = by(transcoded);
    arguments.how.rewrite_to_compare = by(transcoded_to_compare);
  }
  photo_packing photos(arguments.photos, arguments.verify), photos_to_compare(arguments.photos, arguments.verify);
  const bool packs_photos = arguments.photos != photo_form::as_they_are;
  if (packs_photos) {
    const auto by = [](photo_packing& counted) {
      return [&counted](std::string_view member, std::span<const std::byte> content) {
        return counted.rewrite(member, content);
      };
    };
    arguments.how.rewrite = by(photos);
    arguments.how.rewrite_to_compare = by(photos_to_compare);
  }
  arguments.how.photo = stages::place_of_photo;
  datasets::pack_result made;
  try {
    const status_line shown([&](const terminal& screen, std::size_t columns) {
      const std::lock_guard lock(mutex);
      return progress(screen, columns, now, seconds());
    });
    made = write(from, out, arguments);
  } catch (const error& failure) {
    if (failure.code() != errc::cancelled || !stop.requested()) throw;
    complain("pack", str_cat("stopped by ", stop.name(), " after ", count_text(now.samples), " of ",
                             counted(now.samples_total, "sample", "samples"),
                             arguments.to == pack_target::tar
                                 ? "; finished shards stay, the one begun was removed; --continue goes on behind them"
                             : arguments.to == pack_target::zarr ? "; the folder begun was removed"
                                                                 : "; the file begun was removed"));
    return stop.exit_code();
  }
  if (arguments.index) {
    std::vector<std::string> shards;
    for (const datasets::packed_shard& each : made.shards) shards.push_back(each.path);
    for (const datasets::written_index& each : datasets::write_indexes(shards, {}, {}))
      made.notes.push_back(str_cat("indexed in ", each.path));
  }
  if (arguments.json) {
    const std::vector<std::string> notes = notes_of(from);
    made.notes.insert(made.notes.begin(), notes.begin(), notes.end());
    nlohmann::ordered_json all = as_json(made, seconds());
    add_ranks(all, here);
    if (arguments.transcode) all["transcoded"] = as_json(transcoded);
    if (packs_photos) all["photos"] = as_json(photos);
    print(report_text(all, arguments.asked));
  } else {
    print(summary(made, here.world, arguments.to, seconds()) + (arguments.transcode ? text_of(transcoded) : "") +
          (packs_photos ? text_of(photos, arguments.photos) : ""));
  }
  // A JPEG may stay one. A pack that does not become one again is damaged, or of a later version.
  if (arguments.photos == photo_form::jpeg && photos.count().left > 0) {
    complain("pack", counted(photos.count().left, "photo pack is no JPEG again", "photo packs are no JPEGs again"));
    return exit_failed;
  }
  return exit_done;
}

}  // namespace

void add_pack(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<pack_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("pack", "write any source as tar shards, or its rows as one file or as Zarr");
  app.add_option("SOURCE", arguments->paths,
                 "OUT names the shards: one ('p.tar'), so many, as even as can be, by a brace list "
                 "('p-{000000..000003}.tar'), or as many as it takes by a pattern ('p-%06d.tar')")
      ->required()
      ->option_text("SOURCE... OUT")
      ->type_name("");
  add_choice(app, "--to", arguments->to,
             {{"tar", pack_target::tar},
              {"npy", pack_target::npy},
              {"records", pack_target::records},
              {"zarr", pack_target::zarr}},
             "npy: one field of fixed dtype and shape as OUT.npy; records: all of them as OUT.bin and OUT.json; zarr: "
             "each an array of the Zarr 3 group OUT, a new or empty folder (tar)");
  using datasets::zarr_codec;
  CLI::Option* const codec = add_choice(
      app, "--codec", arguments->zarr.codec,
      {{"none", zarr_codec::none}, {"lz4", zarr_codec::lz4}, {"zstd", zarr_codec::zstd}, {"gzip", zarr_codec::gzip}},
      "of --to zarr: what packs its chunks; lz4: within Blosc (zstd)");
  CLI::Option* const chunk = add_number(app, "--rows-per-chunk", arguments->zarr.rows_per_chunk, 1,
                                        "of --to zarr (as many as make 1 MiB, at least 1)");
  CLI::Option* const shard = add_number(app, "--chunks-per-shard", arguments->zarr.chunks_per_shard, 1,
                                        "of --to zarr: so many chunks in a file; else each is a file");
  CLI::Option* const samples =
      add_number(app, "--samples-per-shard", arguments->how.samples_per_shard, 1, "for a pattern");
  CLI::Option* const bytes =
      add_bytes(app, "--bytes-per-shard", arguments->how.bytes_per_shard, "for a pattern (1GiB)");
  static_cast<void>(samples);
  static_cast<void>(bytes);
  CLI::Option* const shuffle =
      app.add_flag("--shuffle", arguments->how.shuffle, "in an order drawn from the seed; else in the source's own");
  add_number(app, "--seed", arguments->how.seed, 0, "of --shuffle (0)")->needs(shuffle);
  app.add_flag("--overwrite", arguments->how.overwrite,
               "replace shards of these names that are there; else they are an error");
  app.add_flag("--continue", arguments->how.keep_finished,
               "go on where a run of the same command was stopped: whole shards stay, from the first on up to one that "
               "is missing");
  app.add_flag("--write-index", arguments->index, "write an index beside the shards too, as `leat index` does");
  app.add_flag("--skip-damaged", arguments->how.skip_damaged,
               "leave out samples known to be damaged; else they are an error");
  app.add_flag(
      "--transcode", arguments->transcode,
      "write progressive and other multi-scan JPEGs as baseline, which decode in a third of the time: the same "
      "pixels and markers; what is baseline or damaged is left as it is");
  CLI::Option* const photos = add_choice(
      app, "--photos", arguments->photos, {{"fast", photo_form::fast}, {"jpeg", photo_form::jpeg}},
      "fast: baseline JPEGs become photo packs (.jpg: .fjpg), which take 1.2 times the bytes and little more than half "
      "the "
      "CPU, with the same pixels; what cannot be packed stays as it is; jpeg: the way back");
  add_choice(
      app, "--verify", arguments->verify, {{"on", true}, {"off", false}},
      "of --photos fast: unpack each pack and compare; a JPEG that does not come back byte for byte stays one. off: "
      "a third less CPU, and such a JPEG cannot be had back (on)")
      ->needs(photos);
  add_opening_options(app, arguments->opening);
  add_where(app, arguments->where);
  add_rank_options(app, arguments->ranks);
  app.add_flag("--json", arguments->json, "what was written, as one JSON object");
  app.footer(
      "  leat pack photos photos.tar\n"
      "  leat pack photos 'photos-{000000..000003}.tar'\n"
      "  leat pack scraped 'train-%06d.tar' --transcode\n"
      "  leat pack photos 'fast-%06d.tar' --photos fast\n"
      "  leat pack photos 'shards/photos-%06d.tar' --bytes-per-shard 256MiB --shuffle --seed 7\n"
      "  mpirun -n 8 leat pack photos 'shards/photos-%06d.tar' --samples-per-shard 10000\n"
      "  leat pack 'arrays/*.npy' arrays.bin --to records\n"
      "  leat pack train.h5 train.zarr --to zarr --rows-per-chunk 16 --chunks-per-shard 64");
  app.callback([=, &app, &chosen] {
    arguments->asked = asked_of(app);
    for (const CLI::Option* const each : {codec, chunk, shard}) {
      if (each->count() != 0) arguments->zarr_option = each->get_name();
    }
    chosen = [arguments](interruption& stop) { return pack_sources(*arguments, stop); };
  });
}

}  // namespace leat::tools
