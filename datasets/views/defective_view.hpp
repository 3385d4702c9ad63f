// A dataset some of whose samples are corrupt, whatever their bytes are.
#pragma once

#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {

/// All but these samples is as in the whole.
class defective_view : public dataset_model, protected defects_facet {
 public:
  std::uint64_t size() const noexcept final { return whole_->size(); }
  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const final {
    whole_->parts(sample, needs, out);
  }
  std::string name(std::uint64_t sample) const final { return whole_->name(sample); }
  dataset_memory memory() const final {
    dataset_memory held = whole_->memory();
    held.columns += defective_.capacity() * sizeof(std::uint64_t);
    return held;
  }

 protected:
  ///   defective   ascending, each once
  defective_view(std::shared_ptr<const dataset_model> whole, std::vector<std::uint64_t> defective)
      : whole_(std::move(whole)), defective_(std::move(defective)) {
    begin_as(*whole_);
    if (defective_.empty()) return;
    facets_.defects = this;
    defects_ = whole_->defects() + defective_.size();
    if (whole_->defects() == 0) return;
    for (const std::uint64_t each : defective_) defects_ -= whole_->defect_of(each).has_value();
  }

  /// What is wrong with one of them, whatever else is.
  [[nodiscard]] virtual defect wrong_with(std::uint64_t sample) const = 0;

  [[nodiscard]] const dataset_model& whole() const noexcept { return *whole_; }
  [[nodiscard]] const std::vector<std::uint64_t>& defective() const noexcept { return defective_; }
  [[nodiscard]] bool is_defective(std::uint64_t sample) const noexcept {
    return std::binary_search(defective_.begin(), defective_.end(), sample);
  }
  /// "3 samples, digest ..."
  [[nodiscard]] std::string which() const {
    hasher hash;
    for (const std::uint64_t each : defective_) hash.add(each);
    return str_cat(defective_.size(), " samples, digest ", hash.finish().hex());
  }
  // Of what lies in no file.
  static constexpr std::uint32_t no_source = std::numeric_limits<std::uint32_t>::max();

 private:
  std::uint64_t defects() const noexcept final { return defects_; }
  std::optional<defect> defect_of(std::uint64_t sample) const final {
    return is_defective(sample) ? wrong_with(sample) : whole_->defect_of(sample);
  }

  std::shared_ptr<const dataset_model> whole_;
  std::vector<std::uint64_t> defective_;
  std::uint64_t defects_ = 0;
};

}  // namespace leat::datasets
