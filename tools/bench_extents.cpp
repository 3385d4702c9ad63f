#include "tools/bench_extents.hpp"

#include "datasets/model.hpp"
#include "stages/batch_layout.hpp"
#include "stages/field_model.hpp"
#include "stages/plan.hpp"
#include "stages/work.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace leat::tools {
namespace {

/// The files that reads go to, by the number they have here.
class file_numbers {
 public:
  explicit file_numbers(const datasets::dataset_model& dataset, std::vector<std::string>& names)
      : dataset_(dataset), names_(names) {
    for (const auto& each : dataset.sources()) numbers_.emplace_back(each->files(), unknown);
  }
  std::size_t of(std::uint32_t source, std::uint32_t file) {
    std::uint32_t& number = numbers_[source][file];
    if (number == unknown) {
      number = static_cast<std::uint32_t>(names_.size());
      names_.push_back(dataset_.sources()[source]->file_name(file));
    }
    return number;
  }

 private:
  static constexpr std::uint32_t unknown = 0xFFFFFFFFU;
  const datasets::dataset_model& dataset_;
  std::vector<std::string>& names_;
  std::vector<std::vector<std::uint32_t>> numbers_;
};

}  // namespace

epoch_reads plan_epoch(const dataset& whole, const std::vector<field>& fields, const sampler_options& order,
                       std::size_t reads_max) {
  const dataset samples = stages::samples_for(whole, fields);
  const datasets::dataset_model& model = *samples.model();
  std::vector<std::unique_ptr<stages::field_program>> programs;
  std::vector<stages::output_spec> outputs;
  for (const field& each : fields) {
    programs.push_back(each.model().bind(model, stages::finished_by::host));
    outputs.insert(outputs.end(), programs.back()->outputs().begin(), programs.back()->outputs().end());
  }
  const stages::batch_layout layout(std::move(outputs), order.batch_size);
  const stages::planner planner(model, programs, layout, {.in_order = !order.shuffle, .seed = order.seed});
  const global_sampler sampler(model.size(), order);

  epoch_reads made;
  made.samples_all = model.size();
  file_numbers numbers(model, made.files);
  stages::work batch;
  for (std::uint64_t index = 0; index < sampler.batches(0) && made.reads.size() < reads_max; ++index) {
    batch.picks.resize(sampler.rows(0, index));
    sampler.picks(0, index, 0, static_cast<std::uint32_t>(batch.picks.size()), batch.picks);
    planner.plan_batch(batch);
    for (std::size_t k = 0; k < batch.reads_used; ++k) {
      const stages::read_slot& read = batch.reads[k];
      made.reads.push_back({numbers.of(read.source, read.file), read.offset, read.bytes});
      made.bytes += read.bytes;
      made.read_bytes_max = std::max(made.read_bytes_max, read.bytes);
    }
    made.samples += batch.picks.size();
  }
  if (made.reads.empty()) {
    throw error(errc::usage,
                "--pattern extents: no sample of it is read from a file; give a folder, shards or a table");
  }
  return made;
}

}  // namespace leat::tools
