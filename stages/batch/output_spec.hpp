// What a field makes of each sample, as the layout of a batch sees it.
#pragma once

#include "stages/batch/device_operation.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leat::stages {

/// One output of a field.
///   row_shape   of one row; empty for a scalar. Of a ragged output, that of an element
///   ragged      rows of any number of elements: laid out as one buffer and rows + 1 offsets, in elements
///   pad_multiple   of a ragged output, not 0: instead each row is as long as the longest that is planned for its batch, rounded up to
///                  a multiple of so many elements; decode() fills it up
///   narrowed    of a padded output: how long rows are is known only when they are made. A batch is as wide as its longest row turned out to be
///   offsets_name   of a ragged output, where it is not called `name`.offsets
///   of_batch    a ragged output whose tensor is made once a batch, by finish(), in as much room as its rows ask for together, or
///               `of_batch_bytes`, where that is not 0. It has no rows of its own, and is in no digest
///   packed_tokens   of a ragged output, not 0: its tensor is packed rows of so many elements. Each row is a piece, and lies where the order
///               says; finish() fills what no piece does, and says the shape
///   hidden      finish() makes others of it; the trainer does not see it, and it is not copied to a device
///   digested    false: of a hidden output, what is made of it is digested instead
///   axes        of pictures: where the channels stand
///   made_by     null, or what makes its tensor on the device, of rows that decode() writes in another form
///   made_from   names of further outputs which that takes: the field's own first. The trainer does not see these
///   copied      decode() copies or widens stored bytes, or a number that the dataset knows: it takes as long as writing the row
///   picture     a batch keeps the geometry of its rows: decode_input::geometry
///   label       mixed batches have its partner's beside it
///   unmixed     pictures that mixed batches cannot have
///   lies_apart  of pictures of one group: it has a crop of its own, as each of five_crop() has
///   slot        its row is part of that of another output, which stands before it: it has no tensor, and is hidden
///   row_bytes_max   of a ragged output, not 0: the most bytes of any row, whatever is read for it
///   read_into   reads go straight to its rows, which therefore begin on pages
struct output_spec {
  std::string name;
  dtype type = dtype::u8;
  dimensions row_shape = {};
  bool ragged = false;
  std::size_t pad_multiple = 0;
  bool narrowed = false;
  std::string offsets_name = {};
  bool of_batch = false;
  std::size_t of_batch_bytes = 0;
  std::size_t packed_tokens = 0;
  bool hidden = false;
  bool digested = true;
  std::optional<layout> axes = {};
  std::shared_ptr<const device_operation> made_by = {};
  std::vector<std::string> made_from = {};
  bool copied = false;
  bool picture = false;
  bool label = false;
  bool unmixed = false;
  bool lies_apart = false;
  struct slot_of {
    std::string of = {};
    std::size_t number = 0;
  };
  slot_of slot = {};
  std::size_t row_bytes_max = 0;
  bool read_into = false;

  [[nodiscard]] bool is_slot() const noexcept { return !slot.of.empty(); }

  [[nodiscard]] bool is_padded() const noexcept { return pad_multiple != 0; }
  [[nodiscard]] bool is_packed() const noexcept { return packed_tokens != 0; }
  [[nodiscard]] bool has_offsets() const noexcept { return ragged && !is_padded() && !of_batch && !is_packed(); }
  [[nodiscard]] std::string offsets() const { return offsets_name.empty() ? name + ".offsets" : offsets_name; }
  /// Bytes of each row of a batch whose longest one has so many.
  [[nodiscard]] std::size_t padded_bytes(std::size_t longest_bytes) const noexcept {
    const std::size_t step = pad_multiple * size_bytes(type);
    return (longest_bytes + step - 1) / step * step;
  }
  /// Of a row of a ragged output that has so many bytes.
  [[nodiscard]] dimensions ragged_shape(std::size_t bytes) const {
    dimensions shape{static_cast<std::int64_t>(bytes / row_bytes())};
    for (const std::int64_t extent : row_shape) shape.push_back(extent);
    return shape;
  }
  /// Of a fixed row; of an element of a ragged one.
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    return static_cast<std::size_t>(row_shape.elements()) * size_bytes(type);
  }
  /// Of what decode() writes.
  [[nodiscard]] std::size_t decoded_row_bytes() const noexcept {
    return made_by != nullptr ? made_by->decoded_row_bytes() : row_bytes();
  }
};

}  // namespace leat::stages
