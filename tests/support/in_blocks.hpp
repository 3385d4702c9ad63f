// A dataset whose neighbours share blocks, as rows of a chunked array do: those would have to lie in a file.
#pragma once

#include "datasets/model/model.hpp"

#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

class in_blocks_model final : public datasets::dataset_model, datasets::blocks_facet {
 public:
  in_blocks_model(const dataset& of, datasets::sample_blocks blocks) : of_(of.model()), blocks_(std::move(blocks)) {
    begin_as(*of_);
    facets_.blocks = this;
  }
  std::uint64_t size() const noexcept override { return of_->size(); }
  void parts(std::uint64_t sample, std::span<const datasets::need> needs, datasets::part_list& out) const override {
    of_->parts(sample, needs, out);
  }
  std::string name(std::uint64_t sample) const override { return of_->name(sample); }
  datasets::sample_blocks blocks() const override { return blocks_; }
  void describe(description& out) const override { of_->describe(out); }
  dataset_memory memory() const override { return of_->memory(); }

 private:
  std::shared_ptr<const datasets::dataset_model> of_;
  datasets::sample_blocks blocks_;
};

inline dataset in_blocks(const dataset& of, datasets::sample_blocks blocks) {
  return dataset(std::make_shared<in_blocks_model>(of, std::move(blocks)));
}

}  // namespace leat::testing
