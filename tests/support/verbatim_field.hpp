// A field whose rows are the stored bytes, of one size, without a word about what they mean.
#pragma once

#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"

#include <leat/field.hpp>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

class verbatim_program final : public stages::field_program {
 public:
  verbatim_program(const datasets::dataset_model& dataset, const std::string& name, std::function<void()> at_decode)
      : field_program({}, {*dataset.find_field(name)}, {.verbatim = true}), at_decode_(std::move(at_decode)) {
    outputs_.push_back({.name = name,
                        .type = dtype::u8,
                        .row_shape = {static_cast<std::int64_t>(dataset.fields()[reads_[0]].bytes_max)},
                        .copied = true});
  }

  stages::outcome<void> decode(stages::field_scratch&, const stages::decode_input& input,
                               std::span<stages::row_target> rows) const override {
    if (at_decode_) at_decode_();
    if (input.encoded.size() != rows[0].bytes.size()) return stages::corrupt("of another size");
    std::memcpy(rows[0].bytes.data(), input.encoded.data(), input.encoded.size());
    return {};
  }

 private:
  std::function<void()> at_decode_;
};

class verbatim_model final : public stages::one_program_field {
 public:
  verbatim_model(std::string name, std::function<void()> at_decode)
      : name_(std::move(name)), at_decode_(std::move(at_decode)) {}
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::unique_ptr<stages::field_program> program(const datasets::dataset_model& dataset,
                                                               stages::finished_by) const override {
    return std::make_unique<verbatim_program>(dataset, name_, at_decode_);
  }

 private:
  std::string name_;
  std::function<void()> at_decode_;
};

///   at_decode   called for each row that is made, on the thread that makes it
[[nodiscard]] inline field verbatim(std::string name, std::function<void()> at_decode = {}) {
  return field(std::make_shared<const verbatim_model>(std::move(name), std::move(at_decode)));
}

}  // namespace leat::testing
