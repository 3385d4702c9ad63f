#include "stages/run/row_placement.hpp"

#include "stages/plan/lowering.hpp"

#include <algorithm>

namespace leat::stages {
namespace {

bool is_cheap(const datasets::dataset_model& dataset, const field_program& program) {
  std::size_t bytes = 0;
  for (const output_spec& output : program.outputs()) {
    if (!output.copied || output.ragged) return false;
    bytes += output.row_bytes();
  }
  const auto reads = program.reads();
  return bytes <= row_placement::cheap_row_bytes &&
         std::all_of(reads.begin(), reads.end(), [&](std::uint16_t field) { return lower(dataset, field).as_stored; });
}

// Whether its rows are made, or looked at, when all of the sample is there. What came out of a block is only kept for it until then.
bool waits_for_sample(const field_program& program) {
  const program_facets& of = program.facets();
  return of.following != nullptr || of.looking != nullptr || of.checking != nullptr;
}

}  // namespace

row_placement::row_placement(const datasets::dataset_model& dataset,
                             std::span<const std::unique_ptr<field_program>> programs, bool read_again)
    : read_again_(read_again || std::any_of(programs.begin(), programs.end(),
                                            [](const auto& program) { return waits_for_sample(*program); })),
      cheap_(!read_again_ && std::all_of(programs.begin(), programs.end(),
                                         [&](const auto& program) { return is_cheap(dataset, *program); })) {}

}  // namespace leat::stages
