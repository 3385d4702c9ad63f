// What a field becomes inside the loader: bound to a dataset it says which members it reads, which outputs it fills and
// how one sample's encoded parts become one row.
#pragma once

#include "base/outcome.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/device_operation.hpp"

#include <leat/description.hpp>
#include <leat/field.hpp>
#include <leat/samples.hpp>
#include <leat/tensor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::pixels {
class scratch_budget;
}

namespace leat::stages {

class array_crop;

/// Whether the host makes a row to its end, or leaves what it can to an operation on the device; decoding, too, or not.
enum class finished_by : std::uint8_t { host, device, device_decoding };

/// One output of a field.
///   row_shape   of one row; empty for a scalar. Of a ragged output, that of an element
///   ragged      rows of any number of elements: laid out as one buffer and rows + 1 offsets, in elements
///   pad_multiple   of a ragged output, not 0: instead each row is as long as the longest that is planned for its batch, rounded up to
///                  a multiple of so many elements; decode() fills it up
///   offsets_name   of a ragged output, where it is not called `name`.offsets
///   of_batch    a ragged output whose tensor is made once a batch, by finish(), in as much room as its rows ask for together, or
///               `of_batch_bytes`, where that is not 0. It has no rows of its own, and is in no digest
///   hidden      finish() makes others of it; the trainer does not see it, and it is not copied to a device
///   digested    false: of a hidden output, what is made of it is digested instead
///   axes        of pictures: where the channels stand
///   made_by     null, or what makes its tensor on the device, of rows that decode() writes in another form
///   made_from   names of further outputs which that takes: the field's own first. The trainer does not see these
///   copied      decode() copies or widens stored bytes, or a number that the dataset knows: it takes as long as writing the row
///   label       mixed batches have its partner's beside it
///   slot        its row is part of that of another output, which stands before it: it has no tensor, and is hidden
///   row_bytes_max   of a ragged output, not 0: the most bytes of any row, whatever is read for it
///   read_into   reads go straight to its rows, which therefore begin on pages
struct output_spec {
  std::string name;
  dtype type = dtype::u8;
  dimensions row_shape = {};
  bool ragged = false;
  std::size_t pad_multiple = 0;
  std::string offsets_name = {};
  bool of_batch = false;
  std::size_t of_batch_bytes = 0;
  bool hidden = false;
  bool digested = true;
  std::optional<layout> axes = {};
  std::shared_ptr<const device_operation> made_by = {};
  std::vector<std::string> made_from = {};
  bool copied = false;
  bool label = false;
  struct slot_of {
    std::string of = {};
    std::size_t number = 0;
  };
  slot_of slot = {};
  std::size_t row_bytes_max = 0;
  bool read_into = false;

  [[nodiscard]] bool is_slot() const noexcept { return !slot.of.empty(); }

  [[nodiscard]] bool is_padded() const noexcept { return pad_multiple != 0; }
  [[nodiscard]] bool has_offsets() const noexcept { return ragged && !is_padded() && !of_batch; }
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

/// Where one output of one row goes.
///   bytes   the row, dense; of a ragged output as many bytes as its capacity, of a padded one all that is to be filled
///   used    a ragged output's length in bytes, without padding, set by decode
struct row_target {
  std::span<std::byte> bytes;
  std::size_t used = 0;
};

/// One sample's input to a field.
///   draw, epoch, seed   key what is random: leat::pick
///   encoded   the member's bytes, empty where the field reads none
///   present   whether the sample has the member at all
///   stop      set when the result is no longer needed: long decodes check it and return `cancelled`
struct decode_input {
  std::uint64_t sample = 0;
  std::uint64_t draw = 0;
  std::uint32_t epoch = 0;
  std::uint64_t seed = 0;
  const datasets::dataset_model* dataset = nullptr;
  std::span<const std::byte> encoded;
  bool present = false;
  const std::atomic<bool>* stop = nullptr;
};

/// One thread's decoder and scratch for one field.
class field_scratch {
 public:
  virtual ~field_scratch() = default;
};

class field_program;

/// Bytes of a stored value that are looked at: [first, end).
///   head_bytes   0: decode() is given these bytes. Otherwise so many at its begin are looked at as well, and decode() is given the whole
///                value's length, in which other bytes are anything at all
struct wanted_bytes {
  std::uint64_t head_bytes = 0;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// Encoded values that decode() was given: those whose decoding it has left to the device, and those it has not.
///   packs   it leaves packs (docs/internals/photo-pack.md)
struct decodes_left {
  bool packs = false;
  std::uint64_t packs_to_device = 0;
  std::uint64_t packs_to_host = 0;
  std::uint64_t jpegs_to_device = 0;
  std::uint64_t jpegs_to_host = 0;
};

/// Steps of colour of the rows that decode() has made.
///   why_host   why those stayed that did
struct passes_left {
  std::uint64_t to_device = 0;
  std::uint64_t to_host = 0;
  std::string_view why_host;
};

/// What finish() has of a batch whose rows are there, without those that were skipped. Outputs are those of the program and of the
/// programs behind it, counted from its first.
class finished_rows {
 public:
  [[nodiscard]] virtual std::uint32_t rows() const noexcept = 0;
  /// A row of a ragged output, without padding.
  [[nodiscard]] virtual std::span<const std::byte> row(std::size_t output, std::uint32_t row) const = 0;
  /// Where the tensor of an output that is of_batch goes.
  [[nodiscard]] virtual std::span<std::byte> room(std::size_t output) const = 0;
  /// The shape of what was written there.
  virtual void made(std::size_t output, const dimensions& shape) = 0;
  [[nodiscard]] virtual std::span<const std::uint64_t> samples() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t epoch() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t index() const noexcept = 0;

 protected:
  ~finished_rows() = default;
};

/// One program's part of a decode that several share.
struct decode_share {
  const field_program* program = nullptr;
  std::span<row_target> rows;
};

/// A field bound to a dataset. Shared by the decode threads, and immutable from then on.
class field_program {
 public:
  field_program() = default;
  field_program(const field_program&) = delete;
  field_program& operator=(const field_program&) = delete;
  virtual ~field_program() = default;

  [[nodiscard]] virtual std::span<const output_spec> outputs() const = 0;
  /// The dataset's fields this one reads, in order of preference: the first that a sample has is its encoded part.
  /// Empty where the row comes from the dataset's columns alone.
  [[nodiscard]] virtual std::span<const std::uint16_t> reads() const = 0;
  /// Whether a sample without any of them is corrupt; otherwise decode() is asked with present = false.
  [[nodiscard]] virtual bool required(std::uint64_t sample) const {
    static_cast<void>(sample);
    return !reads().empty();
  }
  /// Whether each row is its sample's stored bytes as they are, so that a read could put them there: one output, of fixed
  /// size, as many bytes as the part that is read for it.
  [[nodiscard]] virtual bool verbatim() const { return false; }
  /// What part of its stored row each row is, as it is: no more than that is read. It reads one field, and it is not verbatim().
  ///   default   null: it takes all
  [[nodiscard]] virtual const array_crop* crop() const { return nullptr; }
  /// What it looks at of a stored value: no more is read.
  ///   default   all
  [[nodiscard]] virtual wanted_bytes bytes_wanted(const datasets::part& of, std::uint64_t seed, std::uint32_t epoch,
                                                  std::uint64_t draw) const {
    static_cast<void>(seed);
    static_cast<void>(epoch);
    static_cast<void>(draw);
    return {.first = 0, .end = of.where.stored_bytes};
  }
  /// Of a row made of so many encoded bytes, those that decode() copies as they are.
  [[nodiscard]] virtual std::size_t bytes_copied(std::size_t encoded_bytes) const {
    return verbatim() ? encoded_bytes : 0;
  }
  /// The most bytes that a row of a ragged output takes of so many encoded ones, a multiple of an element's, without padding. Of several
  /// rows together it is no more than of the sum of their bytes, and of one byte for each.
  ///   output   its place in outputs()
  [[nodiscard]] virtual std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const {
    static_cast<void>(output);
    return encoded_bytes;
  }
  /// Samples of more encoded bytes are corrupt, as decode() says: no more room is planned for their ragged rows.
  [[nodiscard]] virtual std::size_t encoded_bytes_max() const { return std::numeric_limits<std::size_t>::max(); }
  /// Whether rows depend on random draws. Several such programs of one member make different views of it.
  [[nodiscard]] virtual bool random() const { return false; }
  /// Draws as the member's `number`-th view, from 1, which is what a program does by itself. Before it is shared.
  virtual void set_view(std::uint32_t number) { static_cast<void>(number); }
  /// Whether decode_together() of `first` can make this program's rows from the same encoded bytes, with its own. Then it is
  /// given the scratch that `first` has made.
  [[nodiscard]] virtual bool decodes_with(const field_program& first) const {
    static_cast<void>(first);
    return false;
  }
  /// What decoding a usual sample takes of the scratch budget, per thread; and what another program's takes more of it when
  /// it makes this one's row as well.
  [[nodiscard]] virtual std::size_t scratch_bytes() const { return 0; }
  [[nodiscard]] virtual std::size_t scratch_bytes_beside() const { return 0; }
  [[nodiscard]] virtual std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const = 0;
  /// Nothing where it leaves no decoding to a device.
  [[nodiscard]] virtual std::optional<decodes_left> decodes_left_to_device() const { return std::nullopt; }
  /// Steps of colour; nothing where it has none.
  [[nodiscard]] virtual std::optional<passes_left> passes_left_to_device() const { return std::nullopt; }
  /// One job: one sample, start to end, on one thread. `rows` has one target per output.
  virtual outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const = 0;
  /// What is wrong with a sample whose rows are all made; nothing if nothing is. It may make rows of its own outputs of them.
  ///   rows   of the program's outputs, and of the programs behind it
  [[nodiscard]] virtual std::optional<std::string> check(const decode_input& input, std::span<row_target> rows) const {
    static_cast<void>(input);
    static_cast<void>(rows);
    return std::nullopt;
  }
  /// Whether it has outputs that are of_batch. finish() makes them, once a batch, on a decode thread; what it throws ends the run.
  [[nodiscard]] virtual bool finishes() const { return false; }
  virtual void finish(finished_rows& batch) const { static_cast<void>(batch); }
  /// The rows of this program, the first of `all`, and of others that decode with it: each the bytes that its own decode()
  /// makes. False where that failed; decode() of each then says what there is to say.
  [[nodiscard]] virtual bool decode_together(field_scratch& scratch, const decode_input& input,
                                             std::span<const decode_share> all) const {
    static_cast<void>(scratch);
    static_cast<void>(input);
    static_cast<void>(all);
    return false;
  }
};

/// A field as the user wrote it.
class field_model {
 public:
  field_model() = default;
  field_model(const field_model&) = delete;
  field_model& operator=(const field_model&) = delete;
  virtual ~field_model() = default;

  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// Whether the device has to decode JPEG files for it: image::decoder(). A program that is bound to be finished_by::host makes no rows.
  [[nodiscard]] virtual bool needs_nvjpeg() const noexcept { return false; }
  /// Appends its programs: one, or several that stand one behind the other, since it reads several members of a sample.
  /// Throws error{errc::usage} naming the dataset's fields where it has none that fits.
  ///   finished   a device may be left to finish what it can; the bytes are the same
  virtual void bind(const datasets::dataset_model& dataset, finished_by finished,
                    std::vector<std::unique_ptr<field_program>>& out) const = 0;
  /// Names what decides the bytes of its rows, but for the dataset's.
  ///   default   nothing has a name: a run with it can neither be saved nor resumed
  virtual void describe(description& out) const { out.add_unnamed(name(), "override field_model::describe()"); }
};

/// A field that is one program.
class one_program_field : public field_model {
 public:
  void bind(const datasets::dataset_model& dataset, finished_by finished,
            std::vector<std::unique_ptr<field_program>>& out) const final {
    out.push_back(program(dataset, finished));
  }

 protected:
  /// As bind().
  [[nodiscard]] virtual std::unique_ptr<field_program> program(const datasets::dataset_model& dataset,
                                                               finished_by finished) const = 0;
};

}  // namespace leat::stages
