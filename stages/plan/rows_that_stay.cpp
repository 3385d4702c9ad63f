#include "stages/plan/rows_that_stay.hpp"

#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/views/token_windows.hpp"
#include "stages/plan/run_spec.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

// Windows that begin elsewhere in each epoch. A view may show some samples of several such datasets.
bool draws_windows(const datasets::dataset_model& dataset) {
  if (dataset.facets().windows == nullptr) return false;
  const datasets::token_windows* known = nullptr;
  for (std::uint64_t sample = 0; sample < dataset.size(); ++sample) {
    const datasets::token_windows* const of = dataset.window_of(sample).of;
    if (of == nullptr || of == known) continue;
    known = of;
    const datasets::window_rule& rule = of->rule();
    if (rule.documents != document_rule::within && rule.order != window_order::tiled) return true;
    if (of == &dataset) return false;  // all of them are its
  }
  return false;
}

// Whether draws can change its rows.
bool is_drawn(const field_program& program) {
  const program_facets& facets = program.facets();
  return (facets.drawing != nullptr && facets.drawing->varies()) ||
         (facets.picking != nullptr && facets.picking->varies());
}

std::string why_not(const field_program& program) {
  const std::string& name = program.outputs().front().name;
  if (is_drawn(program)) return str_cat("'", name, "' is drawn anew in each epoch");
  if (program.facts().calls_function) return str_cat("'", name, "' is made by a function of yours");
  for (const output_spec& each : program.outputs()) {
    if (each.ragged) return str_cat("rows of '", each.name, "' have any length");
    if (each.made_by != nullptr && each.made_by->reads_host()) {
      return str_cat("'", each.name, "' is decoded from the host's memory, by nvJPEG");
    }
  }
  return program.finishes() ? str_cat("'", name, "' is made of the whole batch") : std::string();
}

// What mixing adds is made anew each time. What it reads has to be on the host then, and what it mixes on the device.
std::string why_mixed_not(const run_spec& run, const loader_options& options) {
  if (options.mix.what == batch_mix::kind::none) return {};
  if (options.mix.what == batch_mix::kind::mosaic) return "rows become mosaics, whose boxes and masks the host moves";
  if (options.digests) return "digests of mixed rows are made on the host";
  for (const batch_layout::output_place& each : run.layout()->outputs()) {
    const bool is_read = each.spec.label && each.row_bytes > short_row_bytes_max;
    if (is_read || (each.spec.axes && each.spec.made_by == nullptr)) {
      return str_cat("'", each.spec.name, "' is mixed on the host");
    }
  }
  return {};
}

// An order without repeats gives no sample twice in an epoch.
std::string why_never_again(const run_spec& run, const loader_options& options) {
  const std::uint32_t begun = options.resume ? options.resume->epoch : 0;
  if (options.epochs == 0 || options.epochs > begun + std::uint64_t{1} || run.order().repeats()) return {};
  return str_cat("there is one epoch", begun != 0 ? " left" : "", ", which asks for each sample once");
}

// Of all samples, as they are held. What is stored in compressed blocks is fewer bytes: there each sample is asked.
std::uint64_t bytes_of_values(const datasets::dataset_model& dataset, std::uint16_t field) {
  const field_info& info = dataset.fields()[field];
  if (!info.expands()) return info.bytes_total;
  const datasets::need wanted[] = {{.field = field}};
  datasets::part_list parts;
  std::uint64_t bytes = 0;
  for (std::uint64_t sample = 0; sample < dataset.size(); ++sample) {
    parts.clear();
    dataset.parts(sample, wanted, parts);
    bytes += datasets::size_of_value(info, field, parts).bytes;
  }
  return bytes;
}

// Null where it is not drawn, or where packs are not what it is made of on the device.
keeping_facet* packs_of(const field_program& program) {
  const std::optional<decodes_left> left = program.decodes_left_to_device();
  const program_facets& facets = program.facets();
  const output_spec& made = program.outputs().front();
  const bool can = is_drawn(program) && left && left->packs && facets.picking == nullptr && facets.looking == nullptr &&
                   !made.is_slot() && made.made_by != nullptr && !made.made_by->reads_host() &&
                   made.made_by->keeping() != nullptr;
  return can ? facets.keeping : nullptr;
}

}  // namespace

std::shared_ptr<const cache_needs> cache_needs_of(const run_spec& run, const loader_options& options) {
  if (options.device_cache == 0) return nullptr;
  const datasets::dataset_model& dataset = run.dataset();
  const batch_layout& layout = *run.layout();
  cache_needs needs{.bytes_max = options.device_cache, .rows = dataset.size(), .layout = run.layout()};
  const auto refuse = [&](std::string why) {
    needs.why_not = std::move(why);
    return std::make_shared<const cache_needs>(std::move(needs));
  };
  if (std::string why = why_never_again(run, options); !why.empty()) return refuse(std::move(why));
  if (std::string why = why_mixed_not(run, options); !why.empty()) return refuse(std::move(why));
  if (run.packing() != nullptr) return refuse("rows are packed");
  if (draws_windows(dataset)) return refuse("windows begin elsewhere in each epoch, unless they are tiled");
  std::size_t packs = 0;
  for (const auto& program : run.programs()) {
    if (packs_of(*program) == nullptr) {
      if (std::string why = why_not(*program); !why.empty()) return refuse(std::move(why));
      needs.outputs.insert(needs.outputs.end(), program->outputs().size(), row_stays::whole);
      continue;
    }
    if (options.digests) {
      return refuse(str_cat("digests are made on the host, where '", program->outputs().front().name,
                            "' would have to be decoded in each epoch"));
    }
    ++packs;
    const output_spec& made = program->outputs().front();
    str_append(needs.where, needs.where.empty() ? ", where '" : " and '", made.name, "' is a photo pack of less than ",
               bytes_text(made.decoded_row_bytes()));
    needs.outputs.push_back(row_stays::pack);
    needs.outputs.insert(needs.outputs.end(), program->outputs().size() - 1, row_stays::made);
    for (const std::uint16_t field : program->reads()) needs.bytes_of_all += bytes_of_values(dataset, field);
  }
  for (const auto& program : run.programs()) {
    if (packs != 0 && program->facets().following != nullptr) {
      return refuse(str_cat("'", program->outputs().front().name, "' follows a picture that is drawn anew"));
    }
  }
  std::vector<row_stays> whole = needs.outputs;
  std::replace(whole.begin(), whole.end(), row_stays::pack, row_stays::made);
  // Each begins at a multiple of 16.
  needs.bytes_of_all += needs.rows * (cached_row_bytes(layout, whole) + 16 * packs);
  return std::make_shared<const cache_needs>(std::move(needs));
}

void carry_packs(const run_spec& run, bool carried) {
  for (const auto& program : run.programs()) {
    if (keeping_facet* const keeping = packs_of(*program)) keeping->carry_packs(carried);
  }
}

}  // namespace leat::stages
