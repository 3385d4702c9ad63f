// What a thread keeps for masks; and what boxes say of a sample to the masks that are made behind them.
#pragma once

#include "stages/batch/field_program.hpp"
#include "stages/pixels/mask_reader.hpp"

#include <leat/targets.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace leat::stages {

///   reader   of boxes there is one where they have masks()
///   kept     of the boxes of the sample: the numbers of those in its row, ascending
///   boxes    of the sample
class mask_scratch : public field_scratch {
 public:
  std::optional<pixels::mask_reader> reader;
  std::vector<std::int64_t> kept;
  std::size_t boxes = 0;
};

/// boxes::masks(): stands right behind the program of the boxes, whose scratch is a mask_scratch.
///   throws   error{errc::usage} as a mask of that member
[[nodiscard]] std::unique_ptr<field_program> masks_of_boxes(const boxes::settings& of,
                                                            const datasets::dataset_model& dataset);

}  // namespace leat::stages
