#include "datasets/views/where.hpp"

#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/views/predicate.hpp"
#include "datasets/views/predicate_text.hpp"

#include <leat/description.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

// A subset that says why it is one, and still has the parts of a concatenation: each with its own of the samples.
class where_model final : public dataset_model, joined_facet {
 public:
  ///   chosen   ascending
  ///   note     empty: there is none
  where_model(std::shared_ptr<const dataset_model> whole, std::vector<std::uint64_t> chosen, std::string condition,
              std::string note)
      : whole_(std::move(whole)),
        samples_(dataset(whole_).subset(chosen).model()),
        chosen_(whole_->facets().joined != nullptr ? std::move(chosen) : std::vector<std::uint64_t>()),
        condition_(std::move(condition)) {
    begin_as(*samples_);
    if (!note.empty()) notes_.push_back(std::move(note));
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

// Of what was asked for and could not be told.
std::string note_of(const dataset_model& model, std::span<const asked_picture> asked, const measured_pictures& found) {
  if (found.unreadable == 0) return {};
  const bool one = found.unreadable == 1;
  return str_cat("where: ", found.unreadable, " of ", asked.size(), asked.size() == 1 ? " picture" : " pictures",
                 one ? " has a header that cannot be read: its width and height are null; "
                     : " have headers that cannot be read: their width and height are null; the first is ",
                 model.name(asked[found.first].sample), ": ", found.why);
}

}  // namespace

dataset samples_where(const dataset& samples, std::string_view condition, const picture_measure& measure) {
  const std::shared_ptr<const dataset_model>& model = samples.model();
  sample_predicate is_wanted(*model, parse_predicate(condition));
  std::vector<std::uint64_t> chosen;
  std::vector<std::uint64_t> open;
  for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
    const sample_predicate::verdict said = is_wanted.holds(sample);
    if (said == sample_predicate::verdict::yes) chosen.push_back(sample);
    if (said == sample_predicate::verdict::open) open.push_back(sample);
  }
  std::string note;
  if (!open.empty()) {
    const std::vector<asked_picture> asked = is_wanted.asked();
    measured_pictures found = measure(*model, asked);
    note = note_of(*model, asked, found);
    is_wanted.take_sizes(std::move(found.sizes));
    std::vector<std::uint64_t> all;
    auto next = chosen.begin();
    for (const std::uint64_t sample : open) {
      if (is_wanted.holds(sample) != sample_predicate::verdict::yes) continue;
      const auto before = std::lower_bound(next, chosen.end(), sample);
      all.insert(all.end(), next, before);
      all.push_back(sample);
      next = before;
    }
    all.insert(all.end(), next, chosen.end());
    chosen = std::move(all);
  }
  return dataset(std::make_shared<where_model>(model, std::move(chosen), is_wanted.text(), std::move(note)));
}

}  // namespace leat::datasets
