// A dataset some of whose samples are known not to be wanted.
#include "base/excluded_kind.hpp"
#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace leat {
namespace datasets {
namespace {

class excluding_model final : public dataset_model, defects_facet {
 public:
  ///   excluded   sorted, each once
  excluding_model(std::shared_ptr<const dataset_model> whole, std::vector<std::uint64_t> excluded)
      : whole_(std::move(whole)), excluded_(std::move(excluded)) {
    begin_as(*whole_);
    facets_.defects = this;
    defects_ = whole_->defects() + excluded_.size();
    if (whole_->defects() != 0) {
      for (const std::uint64_t each : excluded_) defects_ -= whole_->defect_of(each).has_value();
    }
  }

  std::uint64_t size() const noexcept override { return whole_->size(); }
  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    whole_->parts(sample, needs, out);
  }
  std::string name(std::uint64_t sample) const override { return whole_->name(sample); }
  std::uint64_t defects() const noexcept override { return defects_; }
  // Whatever else is wrong with it.
  std::optional<defect> defect_of(std::uint64_t sample) const override {
    if (!std::binary_search(excluded_.begin(), excluded_.end(), sample)) return whole_->defect_of(sample);
    defect found{.source = no_source, .file = 0, .offset = 0, .reason = "excluded", .kind = corrupt_kinds::excluded};
    part_list parts;
    whole_->parts(sample, parts);
    for (const part& each : parts) {
      if (each.is_made()) continue;
      found.source = each.where.source;
      found.file = each.where.file;
      found.offset = whole_->header_offset(sample, each.where);
      break;
    }
    return found;
  }
  void describe(description& out) const override {
    whole_->describe(out);
    hasher hash;
    for (const std::uint64_t each : excluded_) hash.add(each);
    out.add("excluded", str_cat(excluded_.size(), " samples, digest ", hash.finish().hex()));
  }
  dataset_memory memory() const override {
    dataset_memory held = whole_->memory();
    held.columns += excluded_.capacity() * sizeof excluded_.front();
    return held;
  }

 private:
  // Of what lies in no file.
  static constexpr std::uint32_t no_source = std::numeric_limits<std::uint32_t>::max();

  std::shared_ptr<const dataset_model> whole_;
  std::vector<std::uint64_t> excluded_;
  std::uint64_t defects_ = 0;
};

}  // namespace
}  // namespace datasets

dataset dataset::exclude(std::span<const std::uint64_t> samples) const {
  std::vector<std::uint64_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (sorted.empty()) return *this;
  if (sorted.back() >= size()) {
    throw error(errc::usage, str_cat("exclude: sample ", sorted.back(), " is not there; the dataset has ", size(),
                                     ", numbered from 0"));
  }
  if (sorted.size() == size()) {
    throw error(errc::usage, str_cat("exclude: all ", size(), " samples are among them; leave some"));
  }
  return dataset(std::make_shared<datasets::excluding_model>(model(), std::move(sorted)));
}

dataset dataset::exclude(std::initializer_list<std::uint64_t> samples) const {
  return exclude(std::span(samples.begin(), samples.size()));
}

}  // namespace leat
