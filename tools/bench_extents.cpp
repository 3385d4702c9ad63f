#include "tools/bench_extents.hpp"

#include "datasets/model/model.hpp"
#include "stages/plan/run_spec.hpp"

#include <leat/error.hpp>

#include <algorithm>
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

epoch_reads plan_epoch(const dataset& whole, const std::vector<field>& fields, const loader_options& options,
                       std::size_t reads_max) {
  const stages::run_spec run(whole, fields, options);
  epoch_reads made;
  made.samples_all = run.samples().size();
  file_numbers numbers(run.dataset(), made.files);
  for (std::uint64_t index = 0; index < run.batches(0) && made.reads.size() < reads_max; ++index) {
    const stages::batch_plan batch = run.plan(0, index);
    for (const stages::batch_plan::read& read : batch.reads) {
      made.reads.push_back({numbers.of(read.source, read.file), read.offset, read.bytes});
      made.bytes += read.bytes;
      made.read_bytes_max = std::max(made.read_bytes_max, read.bytes);
    }
    for (const stages::batch_plan::block& block : batch.blocks) {
      if (block.bytes == 0) continue;
      made.reads.push_back({numbers.of(block.source, block.file), block.offset, block.bytes});
      made.bytes += block.bytes;
      made.read_bytes_max = std::max(made.read_bytes_max, block.bytes);
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
