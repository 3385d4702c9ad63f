#include "stages/assembled_row.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

class assembled_program final : public field_program {
 public:
  assembled_program(std::unique_ptr<field_program> program, std::uint64_t row_bytes) : program_(std::move(program)) {
    const std::span<const output_spec> own = program_->outputs();
    outputs_.assign(own.begin(), own.end());
    outputs_.push_back({.name = str_cat(own.front().name, ".row"),
                        .row_shape = {static_cast<std::int64_t>(row_bytes)},
                        .hidden = true});
  }

  std::span<const output_spec> outputs() const override { return outputs_; }
  std::size_t assembled_output() const override { return outputs_.size() - 1; }
  std::span<const std::uint16_t> reads() const override { return program_->reads(); }
  bool required(std::uint64_t sample) const override { return program_->required(sample); }
  std::size_t bytes_copied(std::size_t encoded_bytes) const override { return program_->bytes_copied(encoded_bytes); }
  std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const override {
    return program_->ragged_bytes(output, encoded_bytes);
  }
  std::size_t encoded_bytes_max() const override { return program_->encoded_bytes_max(); }
  bool random() const override { return program_->random(); }
  void set_view(std::uint32_t number) override { program_->set_view(number); }
  std::size_t scratch_bytes() const override { return program_->scratch_bytes(); }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const override {
    return program_->make_scratch(budget);
  }
  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const override {
    return program_->decode(scratch, input, rows.first(outputs_.size() - 1));
  }
  std::optional<std::string> check(std::span<const row_target> rows) const override {
    return program_->check(rows.first(outputs_.size() - 1));
  }
  bool finishes() const override { return program_->finishes(); }
  void finish(finished_rows& batch) const override { program_->finish(batch); }

 private:
  std::unique_ptr<field_program> program_;
  std::vector<output_spec> outputs_;
};

}  // namespace

std::unique_ptr<field_program> with_assembled_row(std::unique_ptr<field_program> program,
                                                  const datasets::dataset_model& dataset) {
  if (program->verbatim() || program->crop() != nullptr) return program;
  std::uint64_t row_bytes = 0;
  for (const std::uint16_t field : program->reads()) {
    const field_info& info = dataset.fields()[field];
    if (info.chunked && !datasets::has_values_in_blocks(info)) row_bytes = std::max(row_bytes, info.bytes_max);
  }
  if (row_bytes == 0) return program;
  return std::make_unique<assembled_program>(std::move(program), row_bytes);
}

}  // namespace leat::stages
