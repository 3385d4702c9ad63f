#include "datasets/tables/dense_rows.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/files/file_staleness.hpp"
#include "datasets/model/model.hpp"
#include "datasets/model/value_runs.hpp"
#include "datasets/tables/column_table.hpp"
#include "datasets/tables/describe.hpp"
#include "io/files/source.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <utility>

namespace leat::datasets {
namespace {

// As in the table of extents, so that sums of sizes in budgets do not overflow.
constexpr std::uint64_t row_bytes_max = (std::uint64_t{1} << 40) - 1;

std::uint64_t samples_of(const dense_table& table) {
  std::uint64_t samples = 0;
  for (const dense_run& run : table.runs) samples += run.samples;
  return samples;
}

class dense_model final : public dataset_model, public value_runs {
 public:
  explicit dense_model(dense_table table)
      : files_(std::move(table.files)),
        watch_(std::move(table.watch)),
        strides_(std::move(table.strides)),
        columns_(std::move(table.columns), samples_of(table)) {
    fields_ = std::move(table.fields);
    notes_ = std::move(table.notes);
    facets_.columns = &columns_;
    facets_.staleness = watch_.get();
    sources_.push_back(std::move(table.source));
    for (field_info& field : fields_) {
      field.kind = field_kind::tensor;
      field.samples = columns_.samples();
      field.bytes_max = row_bytes(field.type, field.shape, str_cat("the field '", field.name, "'"));
      field.bytes_total = field.samples * field.bytes_max;
    }
    for (const dense_run& run : table.runs) add(run);
    for (std::size_t field = 0; field < fields_.size(); ++field) {
      std::uint64_t places = strides_[field] | fields_[field].bytes_max;
      for (const dense_run& run : table.runs) places |= run.offsets[field];
      fields_[field].alignment = io::alignment_of(places);
    }
  }

  std::uint64_t size() const noexcept override { return columns_.samples(); }

  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    const place at = find(sample);
    const std::size_t before = out.size();
    for (const need& wanted : needs) out.push_back(part_of(at, wanted.field));
    sort(out, before);
  }

  value_run run_from(std::uint64_t sample, const need& wanted) const override {
    const place at = find(sample);
    return {.first = part_of(at, wanted.field).where,
            .step_bytes = strides_[wanted.field],
            .samples = ends_[at.run] - sample};
  }

  std::string name(std::uint64_t sample) const override {
    const place at = find(sample);
    const std::uint64_t rows = ends_[at.run] - (at.run == 0 ? 0 : ends_[at.run - 1]);
    if (rows == 1) return files_->path(run_files_[at.run]);
    return str_cat(files_->path(run_files_[at.run]), "[", at.row, "]");
  }

  void describe(description& out) const override {
    describe_model(out, "rows", *this);
    describe_files(out, *files_);
    hasher hash;
    hash.add(std::as_bytes(std::span(ends_)));
    hash.add(std::as_bytes(std::span(run_files_)));
    hash.add(std::as_bytes(std::span(offsets_)));
    hash.add(std::as_bytes(std::span(strides_)));
    out.add("places", hash.finish());
    columns_.describe(out);
  }

  dataset_memory memory() const override {
    dataset_memory held;
    held.extents = ends_.capacity() * sizeof(std::uint64_t) + run_files_.capacity() * sizeof(std::uint32_t) +
                   offsets_.capacity() * sizeof(std::uint64_t);
    held.files = files_->memory_bytes() + (watch_ == nullptr ? 0 : watch_->memory_bytes());
    held.columns = columns_.memory_bytes();
    return held;
  }

 private:
  struct place {
    std::size_t run;
    std::uint64_t row;  // in the run
  };

  void add(const dense_run& run) {
    if (run.samples == 0) return;
    assert(run.offsets.size() == fields_.size());
    if (ends_.empty()) first_run_samples_ = run.samples;
    // All runs before this one were alike: then the run is found by a division.
    alike_ = alike_ && (ends_.empty() || ends_.back() == ends_.size() * first_run_samples_) &&
             run.samples <= first_run_samples_;
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + run.samples);
    run_files_.push_back(run.file);
    offsets_.insert(offsets_.end(), run.offsets.begin(), run.offsets.end());
    in_order_ = in_order_ && std::is_sorted(run.offsets.begin(), run.offsets.end());
  }

  place find(std::uint64_t sample) const noexcept {
    assert(sample < size());
    const std::size_t run =
        alike_ ? static_cast<std::size_t>(sample / first_run_samples_)
               : static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), sample) - ends_.begin());
    return {run, sample - (run == 0 ? 0 : ends_[run - 1])};
  }

  part part_of(const place& at, std::uint16_t field) const noexcept {
    const std::uint64_t offset = offsets_[at.run * fields_.size() + field] + at.row * strides_[field];
    const std::uint64_t bytes = fields_[field].bytes_max;
    return {
        .field = field,
        .where = {
            .source = 0, .file = run_files_[at.run], .offset = offset, .stored_bytes = bytes, .decoded_bytes = bytes}};
  }

  // In the order in which they lie in their file.
  void sort(part_list& out, std::size_t from) const {
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(from);
    if (in_order_ && std::is_sorted(begin, out.end(), [](const part& a, const part& b) { return a.field < b.field; })) {
      return;
    }
    std::sort(begin, out.end(), [](const part& a, const part& b) { return a.where.offset < b.where.offset; });
  }

  std::shared_ptr<const io::file_table> files_;
  std::shared_ptr<const file_staleness> watch_;
  std::vector<std::uint64_t> strides_;
  column_table columns_;
  std::vector<std::uint64_t> ends_;  // of each run, in samples
  std::vector<std::uint32_t> run_files_;
  std::vector<std::uint64_t> offsets_;  // [run * fields + field]
  std::uint64_t first_run_samples_ = 0;
  bool alike_ = true;
  bool in_order_ = true;
};

}  // namespace

std::uint64_t row_bytes(dtype type, const dimensions& shape, const std::string& where) {
  std::uint64_t bytes = size_bytes(type);
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes) ||
        bytes > row_bytes_max) {
      throw error(errc::limit, str_cat(where, ": a row has more than 1 TiB; is its shape right?"));
    }
  }
  return bytes;
}

dataset dense_rows(dense_table table) { return dataset(std::make_shared<dense_model>(std::move(table))); }

}  // namespace leat::datasets
