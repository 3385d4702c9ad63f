// From an encoded picture whose samples may have more than 8 bits to a finished row of the batch, on one thread.
#pragma once

#include "stages/pixels/recipe.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/wide_store.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace leat::pixels {

/// What was done.
///   width, height   of the picture as it is stored
struct wide_decoded {
  geometry drawn;
  int width = 0;
  int height = 0;
};

/// A decoder and its scratch memory. Belongs to one thread.
class wide_decoder {
 public:
  /// Takes scratch_arena::base_bytes of the budget, which outlives this. Throws as scratch_arena does.
  explicit wide_decoder(scratch_budget& budget);
  ~wide_decoder();
  wide_decoder(const wide_decoder&) = delete;
  wide_decoder& operator=(const wide_decoder&) = delete;

  /// Decodes one sample into its row.
  ///   encoded      the file's bytes; they may be anything at all
  ///   steps        of geometry alone, padded with zeros
  ///   bits         that its samples have to have
  ///   pixels_max   pictures of more pixels are refused before any memory is taken
  ///   row          height x width x channels elements, aligned to one. Its content is unspecified unless the outcome is ok
  ///   stop         looked at every few lines; may be null
  ///   returns      as picture_decoder::decode(); unsupported: another number of bits or channels; corrupt: a number that the row's
  ///                type cannot hold
  outcome<wide_decoded> decode(std::span<const std::byte> encoded, const pipeline& steps, const draw_key& key, int bits,
                               const wide_store& how, std::int64_t pixels_max, std::byte* row,
                               const std::atomic<bool>* stop);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace leat::pixels
