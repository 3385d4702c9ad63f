// leat where: in which epoch, batch and row of a run a sample stands, and which part of its picture is seen there.
#include "base/text.hpp"
#include "datasets/files/parallel.hpp"
#include "stages/device/mosaic.hpp"
#include "stages/order/sample_places.hpp"
#include "stages/pixels/orientation.hpp"
#include "stages/pixels/picture_info.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/plan/run_spec.hpp"
#include "tools/arguments.hpp"
#include "tools/epoch_arguments.hpp"
#include "tools/fields.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/ranks.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/subcommand.hpp"
#include "tools/terminal.hpp"

#include <leat/corrupt_policy.hpp>
#include <leat/error.hpp>
#include <leat/loading.hpp>

#include <absl/strings/str_join.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

struct where_arguments {
  epoch_arguments run;
};

/// A part of a picture, in its pixels, before it is scaled.
struct seen_crop {
  std::string field;
  pixels::rectangle box;
  bool flipped = false;
};

/// One time that the run has the sample.
///   rank, row_of_rank   who has the row, and its number there
///   tiles_in            further rows of that rank, whose mosaics have a tile of it
struct standing {
  std::uint32_t epoch = 0;
  stages::sample_place place;
  std::uint32_t rank = 0;
  std::uint32_t row_of_rank = 0;
  std::vector<seen_crop> crops = {};
  std::vector<std::uint32_t> tiles_in = {};
};

// By number, or by name, which looks at them all.
std::uint64_t sample_of(const dataset& samples, const std::string& given) {
  std::uint64_t number = 0;
  const char* const end = given.data() + given.size();
  const auto [read, failure] = std::from_chars(given.data(), end, number);
  if (failure == std::errc() && read == end) {
    if (number < samples.size()) return number;
    throw error(errc::usage, str_cat("SAMPLE ", number, ": the run has ", counted(samples.size(), "sample", "samples"),
                                     ", numbered from 0"));
  }
  std::optional<std::uint64_t> found;
  for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
    const std::string name = samples.name(sample);
    // Of shards, and of paths, the end will do where it is one sample's.
    const bool is_end =
        name.size() > given.size() && name.ends_with(given) && name[name.size() - given.size() - 1] == '/';
    if (name == given) return sample;
    if (!is_end) continue;
    if (found) {
      throw error(errc::usage, str_cat("SAMPLE '", one_line(given), "' is the end of the names of samples ", *found,
                                       " and ", sample, "; give a number"));
    }
    found = sample;
  }
  if (found) return *found;
  throw error(errc::usage, str_cat("SAMPLE '", one_line(given),
                                   "': no sample of the run has this name; give a name or a "
                                   "number, as leat inspect, check and replay have them"));
}

/// What the geometry of each picture field draws for the sample.
class crop_finder {
 public:
  crop_finder(const dataset& samples, const chosen_fields& fields, std::uint64_t seed, std::uint64_t sample)
      : seed_(seed) {
    for (const image& each : fields.pictures) {
      const image::settings& settings = each.get();
      pixels::pipeline steps(settings.steps, settings.rounding);
      if (!steps.geometry_is_random()) continue;
      const std::optional<std::vector<std::byte>> file = picture_of(samples, sample, settings.name);
      if (!file) continue;
      const auto wanted = settings.exif_orientation ? pixels::look_for::orientation : pixels::look_for::size;
      const pixels::outcome<pixels::picture_info> info = pixels::peek(*file, wanted);
      if (!info) continue;
      const auto [width, height] = pixels::orientation(info->orientation).size(info->width, info->height);
      pictures_.push_back({settings.name, std::move(steps), width, height});
    }
  }

  [[nodiscard]] std::vector<seen_crop> of(const pick& row) const {
    std::vector<seen_crop> crops;
    for (const picture& each : pictures_) {
      const pixels::geometry drawn =
          each.steps.compile(each.width, each.height, {.seed = seed_, .epoch = row.epoch, .draw = row.draw});
      crops.push_back({each.field, drawn.box, drawn.flip});
    }
    return crops;
  }

 private:
  struct picture {
    std::string field;
    pixels::pipeline steps;
    int width = 0;
    int height = 0;
  };

  // Nothing where the sample has none, or it is damaged: the run says so when it meets it.
  static std::optional<std::vector<std::byte>> picture_of(const dataset& samples, std::uint64_t sample,
                                                          const std::string& field) {
    std::vector<std::string> names{field};
    if (field == "jpg") names.assign(datasets::picture_names().begin(), datasets::picture_names().end());
    for (const std::string& name : names) {
      try {
        return samples.read(sample, name);
      } catch (const error& failure) {
        if (failure.code() != errc::not_found && failure.code() != errc::corrupt) throw;
      }
    }
    return std::nullopt;
  }

  std::uint64_t seed_;
  std::vector<picture> pictures_;
};

std::vector<standing> find_all(const stages::run_spec& run, std::uint64_t seed, std::uint32_t epochs,
                               std::uint64_t sample) {
  std::vector<std::vector<standing>> by_epoch(epochs);
  const std::uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const auto threads =
      stages::finds_places(run.order()) ? 1 : static_cast<unsigned>(std::min<std::uint64_t>(cores, epochs));
  datasets::for_each_parallel(epochs, threads, [&](std::size_t number) {
    const auto epoch = static_cast<std::uint32_t>(number);
    for (const stages::sample_place& place :
         stages::places_of(run.order(), run.samples().size(), seed, epoch, run.batches(epoch), sample)) {
      const std::uint32_t rows = run.packing() != nullptr ? run.packing()->of().packed_rows(epoch, place.batch)
                                                          : run.order().rows(epoch, place.batch);
      world of_row = run.world();
      of_row.rank = stages::rank_of_row(place.row, rows, of_row.size);
      by_epoch[number].push_back({epoch, place, of_row.rank, place.row - of_row.row_begin(rows)});
    }
  });
  std::vector<standing> all;
  for (std::vector<standing>& each : by_epoch) all.insert(all.end(), each.begin(), each.end());
  return all;
}

// As they are planned: mosaics are of the rows that are left of a batch.
std::vector<std::uint32_t> rows_with_a_tile(const stages::run_spec& run, const loader_options& options,
                                            const standing& at) {
  const std::uint32_t of_all = run.order().rows(at.epoch, at.place.batch);
  world rank = run.world();
  rank.rank = at.rank;
  std::vector<pick> picks(rank.row_end(of_all) - rank.row_begin(of_all));
  run.order().picks(at.epoch, at.place.batch, rank.row_begin(of_all), rank.row_end(of_all), picks);
  std::vector<std::uint32_t> circle(picks.size());
  stages::draw_circle(options.seed, at.epoch, at.place.batch, circle);
  const auto here = static_cast<std::size_t>(std::find(circle.begin(), circle.end(), at.row_of_rank) - circle.begin());
  std::vector<std::uint32_t> rows;
  for (std::size_t before = 1; before < std::min<std::size_t>(4, circle.size()); ++before) {
    const std::uint32_t row = circle[(here + circle.size() - before) % circle.size()];
    const pick& of = picks[row];
    if (stages::draw_mosaic(options.mix.alpha, options.seed, of.epoch, of.draw, 1, 1).is_one) rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

//   tiled   rows become mosaics
json as_json(const std::vector<standing>& all, bool tiled) {
  json list = json::array();
  for (const standing& each : all) {
    json crops = json::array();
    for (const seen_crop& crop : each.crops) {
      crops.push_back({{"field", crop.field},
                       {"x", crop.box.x},
                       {"y", crop.box.y},
                       {"width", crop.box.width},
                       {"height", crop.box.height},
                       {"flipped", crop.flipped}});
    }
    json& row = list.emplace_back(json{{"epoch", each.epoch},
                                       {"batch", each.place.batch},
                                       {"row", each.place.row},
                                       {"rank", each.rank},
                                       {"row_of_rank", each.row_of_rank},
                                       {"draw", each.place.of.draw},
                                       {"drawn_in_epoch", each.place.of.epoch},
                                       {"padded", each.place.padded},
                                       {"crops", std::move(crops)}});
    if (tiled) row["tiles_in"] = each.tiles_in;
  }
  return list;
}

std::string as_text(const std::vector<standing>& all, std::uint64_t sample, std::uint32_t world_size,
                    const terminal& screen) {
  const bool has_ranks = world_size > 1;
  std::string text =
      "  " + screen.dim(str_cat("epoch       batch     row", has_ranks ? "    rank  its row" : "")) + "\n";
  for (const standing& each : all) {
    str_append(text, to_right(str_cat(each.epoch), 7), to_right(str_cat(each.place.batch), 12),
               to_right(str_cat(each.place.row), 8));
    if (has_ranks) str_append(text, to_right(str_cat(each.rank), 8), to_right(str_cat(each.row_of_rank), 9));
    if (each.place.padded) text += "  fills the batch";
    if (each.place.of.draw != sample) str_append(text, "  draw ", each.place.of.draw);
    if (each.place.of.epoch != each.epoch) str_append(text, "  drawn as in epoch ", each.place.of.epoch);
    for (const seen_crop& crop : each.crops) {
      str_append(text, "  ", each.crops.size() > 1 ? crop.field + " " : "", crop.box.width, " x ", crop.box.height,
                 " at ", crop.box.x, ", ", crop.box.y, crop.flipped ? ", mirrored" : "");
    }
    if (!each.tiles_in.empty()) {
      str_append(text, "  tiles in ", each.tiles_in.size() > 1 ? "rows " : "row ", absl::StrJoin(each.tiles_in, ", "),
                 has_ranks ? " of the rank" : "", " too");
    }
    text += "\n";
  }
  return text;
}

// What a run meets moves rows, and is not known before.
std::string_view moved_rows(corrupt_policy what) {
  switch (what) {
    case corrupt_policy::skip:
      return "behind a row that the run leaves out, the others of its batch move up";
    case corrupt_policy::substitute:
      return "it may take the rows of samples that the run leaves out, too";
    case corrupt_policy::raise:
      break;
  }
  return {};
}

int where(where_arguments arguments, interruption& stop) {
  if (arguments.run.sources.size() < 2) {
    throw error(errc::usage, "SOURCE and SAMPLE are both needed; as in `leat where photos 17 --epochs 90`");
  }
  const std::string wanted = std::move(arguments.run.sources.back());
  arguments.run.sources.pop_back();
  const auto leave = [&] { complain("where", str_cat("stopped by ", stop.name())); };
  const dataset opened =
      open_sources(arguments.run.sources, stop, leave, advise_loading, kind_of_sources(arguments.run));
  tell_notes("where", opened);
  const leaving_at_once leaving(stop, leave);
  const chosen_fields fields = fields_of(opened, arguments.run.pictures, arguments.run.windows);
  for (const std::string& each : fields.warnings) complain("where", each);
  loader_options options = loader_options_of(arguments.run);
  options.world = world_of(arguments.run.ranks).world;
  options = stages::checked(std::move(options));
  const dataset samples = set_up([&] { return samples_of_run(fields, arguments.run); });
  const stages::run_spec run(samples, fields.all, options);
  const std::uint64_t sample = sample_of(run.samples(), wanted);
  std::vector<standing> all = find_all(run, options.seed, arguments.run.epochs, sample);
  const crop_finder crops(run.samples(), fields, options.seed, sample);
  const bool tiled = stages::is_mosaic(options.mix);
  for (standing& each : all) {
    each.crops = crops.of(each.place.of);
    if (tiled) each.tiles_in = rows_with_a_tile(run, options, each);
  }

  const std::string name = run.samples().name(sample);
  const std::optional<datasets::defect> defect = run.dataset().defect_of(sample);
  const std::string_view moved = moved_rows(options.on_corrupt);
  if (arguments.run.json) {
    print(report_text({{"sample", sample},
                       {"name", name},
                       {"epochs", arguments.run.epochs},
                       {"corrupt", defect ? json(defect->reason) : json(nullptr)},
                       {"moved", moved.empty() ? json(nullptr) : json(moved)},
                       {"rows", as_json(all, tiled)}},
                      arguments.run.asked));
    return exit_done;
  }
  const terminal screen = terminal::of(stdout);
  std::string text =
      str_cat("\n  ", screen.bold(str_cat("sample ", sample)), "  ", one_line(name), "\n  ",
              words_of(arguments.run.order, arguments.run.pictures, arguments.run.choice), ", batches of ",
              stages::global_batch_size(options), ": ", counted(all.size(), "row", "rows"), " in ",
              counted(arguments.run.epochs, "epoch", "epochs"), "\n");
  if (defect) str_append(text, "  it is ", one_line(defect->reason), ": the run leaves it out, or replaces it\n");
  if (!moved.empty()) str_append(text, "  rows as planned: ", moved, "\n");
  if (!all.empty()) str_append(text, "\n", as_text(all, sample, options.world.size, screen));
  print(text + "\n");
  return exit_done;
}

}  // namespace

void add_where_command(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<where_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("where", "say in which batches and rows of a run a sample stands");
  add_loading_options(app, arguments->run);
  app.get_option("SOURCE")->option_text("SOURCE... SAMPLE");
  app.add_flag("--json", arguments->run.json, "all of it, as one JSON object");
  app.footer(
      "  # sources and options as the run was given; the sample by number, or by name\n"
      "  leat where photos 17 --seed 7 --epochs 90\n"
      "  leat where photos daisy/100080576.jpg --seed 7 --epochs 90 --world 8 --rank 0 --json");
  app.callback([arguments, &app, &chosen] {
    arguments->run.asked = asked_of(app);
    chosen = [arguments](interruption& stop) { return where(*arguments, stop); };
  });
}

}  // namespace leat::tools
