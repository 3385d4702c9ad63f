#include "stages/run/finish.hpp"

#include <cassert>

namespace leat::stages {
namespace {

class rows_of_batch final : public finished_rows {
 public:
  rows_of_batch(batch::state& batch, std::size_t first_output) : batch_(batch), first_output_(first_output) {}

  std::uint32_t rows() const noexcept override { return batch_.rows; }
  std::span<const std::byte> row(std::size_t output, std::uint32_t row) const override {
    return batch_.ragged_row(place_of(output), row);
  }
  std::span<std::byte> room(std::size_t output) const override {
    const batch::state::ragged& place = batch_.raggeds[place_of(output).ragged_index];
    return batch_.memory.bytes().subspan(place.offset, place.capacity);
  }
  void made(std::size_t output, const dimensions& shape) override {
    const batch_layout::output_place& place = place_of(output);
    batch::state::ragged& tensor = batch_.raggeds[place.ragged_index];
    tensor.shape = shape;
    tensor.bytes = static_cast<std::size_t>(shape.elements()) * size_bytes(place.spec.type);
    assert(tensor.bytes <= tensor.capacity);
  }
  std::span<const std::uint64_t> samples() const noexcept override { return batch_.ids; }
  std::uint32_t packed_rows() const noexcept override { return batch_.packed_rows; }
  std::span<const placed_piece> pieces() const noexcept override { return batch_.pieces; }
  std::uint32_t epoch() const noexcept override { return batch_.epoch; }
  std::uint64_t index() const noexcept override { return batch_.index; }

 private:
  [[nodiscard]] const batch_layout::output_place& place_of(std::size_t output) const {
    return batch_.layout->outputs()[first_output_ + output];
  }

  batch::state& batch_;
  std::size_t first_output_;
};

}  // namespace

void finish_outputs(batch::state& batch, std::span<const std::unique_ptr<field_program>> programs) {
  std::size_t first_output = 0;
  for (const auto& program : programs) {
    rows_of_batch rows(batch, first_output);
    if (const finishing_facet* const finishing = program->facets().finishing; finishing != nullptr)
      finishing->finish(rows);
    first_output += program->outputs().size();
  }
}

}  // namespace leat::stages
