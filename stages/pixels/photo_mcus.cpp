#include "stages/pixels/photo_mcus.hpp"

#include "stages/pixels/entropy_door.hpp"

#include <limits>

namespace leat::pixels {
namespace {

constexpr JDIMENSION no_row = std::numeric_limits<JDIMENSION>::max();

// A row that is not wanted costs only its index entry.
void begin_row(j_decompress_ptr cinfo, photo_mcus& p, JDIMENSION row) {
  const byte_span bytes = p.pack_->row(row);
  const bool good = !bytes.empty() &&
                    p.reading_->begin(p.reader_, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  if (!good) p.damaged_(cinfo, row);
  p.begun_ = row;
  p.next_column_ = 0;
}

}  // namespace

bool photo_mcus::begin(const jpeg_decompress_struct& c, const photo_pack_view& pack, std::uint8_t* scratch,
                       void (*damaged)(j_decompress_ptr, std::uint32_t), bool plain) noexcept {
  if (!is_one_plain_scan(c) || c.arith_code || c.num_components != pack.head.components ||
      c.blocks_in_MCU != pack.head.mcu_blocks || c.MCUs_per_row != pack.head.mcu_columns ||
      c.MCU_rows_in_scan != pack.head.mcu_rows) {
    return false;
  }
  pack_ = &pack;
  reading_ = plain ? &photo_row_readings().back() : &photo_row_readings().front();
  damaged_ = damaged;
  reader_ = {};
  reader_.set_scratch(scratch, pack.row_blocks());
  blocks_ = c.blocks_in_MCU;
  for (int i = 0; i < blocks_; ++i) component_of_[i] = static_cast<std::uint8_t>(c.MCU_membership[i]);
  columns_ = c.MCUs_per_row;
  column_ = row_ = next_column_ = 0;
  begun_ = no_row;
  want(0, 0, columns_);
  return true;
}

void photo_mcus::want(JDIMENSION first_row, JDIMENSION first, JDIMENSION last) noexcept {
  first_row_wanted_ = first_row;
  first_wanted_ = first;
  last_wanted_ = last;
}

bool photo_mcus::next(j_decompress_ptr cinfo, std::int16_t* const* to) {
  const JDIMENSION column = column_;
  const JDIMENSION row = row_;
  if (++column_ == columns_) {
    column_ = 0;
    ++row_;
  }
  if (to == nullptr || row < first_row_wanted_ || column < first_wanted_ || column > last_wanted_) return false;
  if (begun_ != row) begin_row(cinfo, *this, row);
  if (column != next_column_) reader_.skip(component_of_, blocks_, column - next_column_);
  reading_->decode(reader_, component_of_, blocks_, to);
  next_column_ = column + 1;
  return true;
}

}  // namespace leat::pixels
