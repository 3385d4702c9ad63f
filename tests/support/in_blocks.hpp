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

class in_blocks_model final : public datasets::dataset_model {
 public:
  in_blocks_model(const dataset& of, datasets::sample_blocks blocks) : of_(of.model()), blocks_(std::move(blocks)) {}
  std::uint64_t size() const noexcept override { return of_->size(); }
  std::span<const field_info> fields() const noexcept override { return of_->fields(); }
  std::span<const std::shared_ptr<const io::source_description>> sources() const noexcept override {
    return of_->sources();
  }
  void parts(std::uint64_t sample, std::span<const datasets::need> needs, datasets::part_list& out) const override {
    of_->parts(sample, needs, out);
  }
  datasets::part_forms forms(std::uint16_t field) const noexcept override { return of_->forms(field); }
  std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                     std::vector<std::byte>& scratch) const override {
    return of_->produce(sample, field, scratch);
  }
  std::span<const std::string> columns() const noexcept override { return of_->columns(); }
  std::optional<datasets::column_value> column(std::uint64_t sample, std::size_t column) const override {
    return of_->column(sample, column);
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
