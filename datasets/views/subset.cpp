// Some samples of a dataset, in an order of their own; and splits, which are subsets drawn by a seed.
#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/views/passed_on.hpp"
#include "datasets/views/shuffle.hpp"

#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace leat {
namespace datasets {
namespace {

// Sample numbers of the whole, as narrow as they can be.
class sample_choice {
 public:
  sample_choice(std::uint64_t first, std::uint64_t count) : first_(first), count_(count) {}

  sample_choice(std::span<const std::uint64_t> samples, std::uint64_t whole) : count_(samples.size()) {
    if (whole <= std::numeric_limits<std::uint32_t>::max()) {
      narrow_.reserve(samples.size());
      for (const std::uint64_t sample : samples) narrow_.push_back(static_cast<std::uint32_t>(sample));
    } else {
      wide_.assign(samples.begin(), samples.end());
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    assert(i < count_);
    return !narrow_.empty() ? narrow_[i] : !wide_.empty() ? wide_[i] : first_ + i;
  }
  // A range of samples is described as one, however it was chosen.
  void describe(description& out) const {
    std::uint64_t neighbours = 1;
    while (neighbours < count_ && (*this)[neighbours] == (*this)[0] + neighbours) ++neighbours;
    if (count_ == 0) {
      out.add("subset", "no samples");
    } else if (neighbours >= count_) {
      out.add("subset", str_cat(count_, " samples from ", (*this)[0], " on"));
    } else {
      hasher hash;
      hash.add(std::as_bytes(std::span(narrow_)));
      hash.add(std::as_bytes(std::span(wide_)));
      out.add("subset", str_cat(count_, " samples, digest ", hash.finish().hex()));
    }
  }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return narrow_.capacity() * sizeof(std::uint32_t) + wide_.capacity() * sizeof(std::uint64_t);
  }

 private:
  std::vector<std::uint32_t> narrow_;
  std::vector<std::uint64_t> wide_;
  std::uint64_t first_ = 0;
  std::uint64_t count_ = 0;
};

class subset_model final : public dataset_model, passed_on<subset_model>, columns_facet, blocks_facet, defects_facet {
 public:
  subset_model(std::shared_ptr<const dataset_model> whole, sample_choice choice)
      : whole_(std::move(whole)), choice_(std::move(choice)) {
    begin_as(*whole_);
    count_fields();
    if (whole_->defects() > 0) {
      for (std::uint64_t i = 0; i < choice_.size(); ++i) defects_ += whole_->defect_of(choice_[i]).has_value();
    }
    facets_.counts = nullptr;
    facets_.joined = nullptr;
    facets_.defects = defects_ > 0 ? this : nullptr;
    if (facets_.columns != nullptr) facets_.columns = this;
    if (facets_.blocks != nullptr) facets_.blocks = this;
    pass_on(whole_->facets(), facets_);
  }

  std::uint64_t size() const noexcept override { return choice_.size(); }
  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    whole_->parts(choice_[sample], needs, out);
  }
  std::span<const std::string> column_names() const noexcept override { return whole_->columns(); }
  std::optional<column_value> column(std::uint64_t sample, std::size_t column) const override {
    return whole_->column(choice_[sample], column);
  }
  dtype column_type(std::size_t column) const override { return whole_->column_type(column); }
  std::uint64_t column_gaps(std::size_t column) const override {
    std::uint64_t gaps = 0;
    if (whole_->column_gaps(column) == 0) return gaps;
    for (std::uint64_t i = 0; i < size(); ++i) gaps += !whole_->column(choice_[i], column).has_value();
    return gaps;
  }
  std::string name(std::uint64_t sample) const override { return whole_->name(choice_[sample]); }
  // Neighbours in the subset that share a block of the whole.
  sample_blocks blocks() const override {
    const sample_blocks whole = whole_->blocks();
    if (whole.empty()) return whole;
    sample_blocks shared(choice_.size());
    std::uint64_t before = 0;
    for (std::uint64_t i = 0; i < choice_.size(); ++i) {
      const std::uint64_t block = whole.block_of(choice_[i]);
      if (i == 0 || block != before) shared.begin_block(i);
      before = block;
    }
    return shared;
  }
  std::uint64_t defects() const noexcept override { return defects_; }
  std::optional<defect> defect_of(std::uint64_t sample) const override { return whole_->defect_of(choice_[sample]); }

  void describe(description& out) const override {
    whole_->describe(out);
    choice_.describe(out);
  }

  dataset_memory memory() const override {
    dataset_memory held = whole_->memory();
    held.columns += choice_.memory_bytes();
    return held;
  }

 private:
  friend class passed_on<subset_model>;
  [[nodiscard]] place at(std::uint64_t sample) const noexcept { return {*whole_, choice_[sample]}; }
  static std::uint16_t inner_field(const place&, std::uint16_t field) noexcept { return field; }
  static const part& inner_part(const place&, const part& outer) noexcept { return outer; }

  // What a batch of these samples needs at most is known from these samples alone.
  void count_fields() {
    for (std::uint16_t field = 0; field < fields_.size(); ++field) {
      field_info& info = fields_[field];
      info.samples = info.bytes_total = 0;
      info.stored_block_bytes_max = info.decoded_block_bytes_max = 0;
      // What is made says no size, and all values in boxes are of one.
      if (!whole_->forms(field).any_of(forms_made | part_form::box)) info.bytes_max = 0;
    }
    part_list parts;
    for (std::uint64_t i = 0; i < choice_.size(); ++i) {
      parts.clear();
      whole_->parts(choice_[i], parts);
      for (std::size_t k = 0; k < parts.size(); ++k) {
        const std::uint16_t number = parts[k].field;
        fields_[number].bytes_total += parts[k].where.stored_bytes;
        if (parts[k].is_made()) fields_[number].bytes_total += fields_[number].bytes_max;
        if (parts[k].is_expanded()) {
          field_info& info = fields_[number];
          info.stored_block_bytes_max = std::max(info.stored_block_bytes_max, parts[k].where.stored_bytes);
          info.decoded_block_bytes_max = std::max(info.decoded_block_bytes_max, parts[k].where.decoded_bytes);
        }
        const bool more_follow = std::any_of(parts.begin() + static_cast<std::ptrdiff_t>(k) + 1, parts.end(),
                                             [&](const part& other) { return other.field == number; });
        if (more_follow) continue;
        field_info& field = fields_[number];
        ++field.samples;
        field.bytes_max = std::max(field.bytes_max, size_of_value(whole_->fields()[number], number, parts).bytes);
      }
    }
    for (std::uint16_t field = 0; field < fields_.size(); ++field) {
      const field_info& whole = whole_->fields()[field];
      if (!whole_->forms(field).any_of(forms_in_blocks) || whole.samples == 0) continue;
      // They share blocks.
      field_info& info = fields_[field];
      const double share = static_cast<double>(info.samples) / static_cast<double>(whole.samples);
      info.bytes_total = static_cast<std::uint64_t>(static_cast<double>(whole.bytes_total) * share);
    }
  }

  std::shared_ptr<const dataset_model> whole_;
  sample_choice choice_;
  std::uint64_t defects_ = 0;
};

}  // namespace
}  // namespace datasets

dataset dataset::subset(std::span<const std::uint64_t> samples) const {
  for (const std::uint64_t sample : samples) {
    if (sample < size()) continue;
    throw error(errc::usage,
                str_cat("a subset asks for sample ", sample, "; the data set has ", size(), ", numbered from 0"));
  }
  if (samples.empty()) return slice(0, 0);
  return dataset(std::make_shared<datasets::subset_model>(model_, datasets::sample_choice(samples, model_->size())));
}

dataset dataset::subset(std::initializer_list<std::uint64_t> samples) const {
  return subset(std::span<const std::uint64_t>(samples.begin(), samples.size()));
}

dataset dataset::slice(std::uint64_t first, std::uint64_t count) const {
  if (first > size() || count > size() - first) {
    throw error(errc::usage, str_cat("a slice asks for ", count, " samples from ", first, " on; the data set has ",
                                     size(), ", numbered from 0"));
  }
  return dataset(std::make_shared<datasets::subset_model>(model_, datasets::sample_choice(first, count)));
}

std::vector<dataset> dataset::split(std::uint64_t seed, std::span<const double> fractions) const {
  const auto n = static_cast<double>(size());
  std::vector<std::uint64_t> ends;
  double sum = 0;
  for (const double fraction : fractions) {
    if (!(fraction >= 0 && fraction <= 1)) {
      throw error(errc::usage, str_cat("split: the fraction ", std::to_string(fraction), " is not between 0 and 1"));
    }
    sum += fraction;
    // Three times 1/3 and ten times 0.1 are meant to be the whole, whatever their sum's last bit says.
    if (sum > 1 + 1e-9) {
      throw error(errc::usage, str_cat("split: the fractions add up to ", std::to_string(sum), ", more than 1"));
    }
    ends.push_back(std::min(size(), static_cast<std::uint64_t>(std::llround(n * sum))));
  }
  if (sum >= 1 - 1e-9) {
    ends.back() = size();
  } else {
    ends.push_back(size());
  }

  std::vector<std::uint64_t> order = datasets::shuffled(size(), seed, "split");
  std::vector<dataset> parts;
  std::uint64_t begin = 0;
  for (const std::uint64_t end : ends) {
    const auto from = order.begin() + static_cast<std::ptrdiff_t>(begin);
    std::sort(from, order.begin() + static_cast<std::ptrdiff_t>(end));
    parts.push_back(subset(std::span<const std::uint64_t>(order).subspan(begin, end - begin)));
    begin = end;
  }
  return parts;
}

std::vector<dataset> dataset::split(std::uint64_t seed, std::initializer_list<double> fractions) const {
  return split(seed, std::span<const double>(fractions.begin(), fractions.size()));
}

}  // namespace leat
