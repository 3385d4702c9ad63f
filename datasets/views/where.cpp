// The samples of a dataset that a condition holds of.
#include "datasets/model/model.hpp"
#include "datasets/views/predicate.hpp"
#include "datasets/views/predicate_text.hpp"

#include <leat/description.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace leat {
namespace datasets {
namespace {

// A subset that says why it is one, and still has the parts of a concatenation: each with its own of the samples.
class where_model final : public dataset_model, joined_facet {
 public:
  ///   chosen   ascending
  where_model(std::shared_ptr<const dataset_model> whole, std::vector<std::uint64_t> chosen, std::string condition)
      : whole_(std::move(whole)),
        samples_(dataset(whole_).subset(chosen).model()),
        chosen_(whole_->facets().joined != nullptr ? std::move(chosen) : std::vector<std::uint64_t>()),
        condition_(std::move(condition)) {
    begin_as(*samples_);
    if (whole_->facets().joined != nullptr) facets_.joined = this;
  }

  std::uint64_t size() const noexcept override { return samples_->size(); }
  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    samples_->parts(sample, needs, out);
  }
  std::string name(std::uint64_t sample) const override { return samples_->name(sample); }
  void describe(description& out) const override {
    samples_->describe(out);
    out.add("where", condition_);
  }
  dataset_memory memory() const override {
    dataset_memory held = samples_->memory();
    held.columns += chosen_.capacity() * sizeof(std::uint64_t);
    return held;
  }

  std::vector<std::shared_ptr<const dataset_model>> joined() const override {
    std::vector<std::shared_ptr<const dataset_model>> parts = whole_->joined();
    std::uint64_t begin = 0;
    auto at = chosen_.begin();
    for (std::shared_ptr<const dataset_model>& each : parts) {
      const std::uint64_t end = begin + each->size();
      std::vector<std::uint64_t> own;
      for (; at != chosen_.end() && *at < end; ++at) own.push_back(*at - begin);
      each = dataset(each).subset(own).model();
      begin = end;
    }
    return parts;
  }

 private:
  std::shared_ptr<const dataset_model> whole_;
  std::shared_ptr<const dataset_model> samples_;
  std::vector<std::uint64_t> chosen_;  // of a concatenation
  std::string condition_;
};

}  // namespace
}  // namespace datasets

dataset dataset::where(std::string_view condition) const {
  datasets::sample_predicate is_wanted(*model_, datasets::parse_predicate(condition));
  std::vector<std::uint64_t> chosen;
  for (std::uint64_t sample = 0; sample < size(); ++sample) {
    if (is_wanted.holds(sample)) chosen.push_back(sample);
  }
  return dataset(std::make_shared<datasets::where_model>(model_, std::move(chosen), is_wanted.text()));
}

}  // namespace leat
