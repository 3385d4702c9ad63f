#include "stages/pixels/photo_entropy.hpp"

#include <limits>
#include <type_traits>

namespace leat::pixels {
namespace {

static_assert(std::is_same_v<JCOEF, std::int16_t>);

constexpr JDIMENSION no_row = std::numeric_limits<JDIMENSION>::max();

// A row that is not wanted costs only its index entry.
void begin_row(j_decompress_ptr cinfo, photo_entropy& p, JDIMENSION row) {
  const byte_span bytes = p.pack_->row(row);
  const bool good = !bytes.empty() &&
                    p.reading_->begin(p.reader_, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  if (!good) p.damaged_(cinfo, row);
  p.begun_ = row;
  p.next_column_ = 0;
}

boolean decode_mcu(j_decompress_ptr cinfo, JBLOCKROW* mcu) {
  auto& p = *reinterpret_cast<photo_entropy*>(cinfo->entropy);
  const JDIMENSION column = p.column_;
  const JDIMENSION row = p.row_;
  if (++p.column_ == p.columns_) {
    p.column_ = 0;
    ++p.row_;
  }
  if (mcu == nullptr || row < p.first_row_wanted_ || column < p.first_wanted_ || column > p.last_wanted_) return TRUE;
  if (p.begun_ != row) begin_row(cinfo, p, row);
  if (column != p.next_column_) p.reader_.skip(p.component_of_, p.mcu_blocks_, column - p.next_column_);
  p.reading_->decode(p.reader_, p.component_of_, p.mcu_blocks_, reinterpret_cast<std::int16_t* const*>(mcu));
  p.next_column_ = column + 1;
  return TRUE;
}

}  // namespace

photo_entropy::installed photo_entropy::install(j_decompress_ptr cinfo, const photo_pack_view& pack,
                                                std::uint8_t* scratch, void (*damaged)(j_decompress_ptr, std::uint32_t),
                                                bool plain) noexcept {
  const jpeg_decompress_struct& c = *cinfo;
  if (!entropy_door_is_open(*c.entropy)) return installed::door_is_shut;
  if (!is_one_plain_scan(c) || c.num_components != pack.head.components || c.blocks_in_MCU != pack.head.mcu_blocks ||
      c.MCUs_per_row != pack.head.mcu_columns || c.MCU_rows_in_scan != pack.head.mcu_rows) {
    return installed::other_picture;
  }
  pack_ = &pack;
  reading_ = plain ? &photo_row_readings().back() : &photo_row_readings().front();
  damaged_ = damaged;
  reader_ = {};
  reader_.set_scratch(scratch, pack.row_blocks());
  mcu_blocks_ = c.blocks_in_MCU;
  for (int i = 0; i < mcu_blocks_; ++i) component_of_[i] = static_cast<std::uint8_t>(c.MCU_membership[i]);
  columns_ = c.MCUs_per_row;
  column_ = row_ = next_column_ = 0;
  begun_ = no_row;
  want(0, 0, columns_);
  methods = *c.entropy;
  methods.decode_mcu = decode_mcu;
  cinfo->entropy = &methods;
  return installed::yes;
}

void photo_entropy::want(JDIMENSION first_row, JDIMENSION first, JDIMENSION last) noexcept {
  first_row_wanted_ = first_row;
  first_wanted_ = first;
  last_wanted_ = last;
}

}  // namespace leat::pixels
