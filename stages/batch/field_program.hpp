// A field that is bound to a dataset: which members it reads, which outputs it fills, and how one sample's encoded bytes become one
// row. What only some fields do is a facet.
#pragma once

#include "base/outcome.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/output_spec.hpp"

#include <leat/sampler.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
struct picture_geometry;
}
namespace leat::pixels {
class scratch_budget;
struct box;
struct picture_boxes;
struct placed_picture;
}  // namespace leat::pixels

namespace leat::stages {

class array_crop;
class field_program;
class rank_packing;
class tiling_facet;
struct placed_piece;

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
///   boxes     what the crops of a program with a looking facet look at, and of what follows it; null: nothing
///   geometry  where a program with a leading facet says how its picture lies in the row; in check() of one that follows its picture's
struct decode_input {
  std::uint64_t sample = 0;
  std::uint64_t draw = 0;
  std::uint32_t epoch = 0;
  std::uint64_t seed = 0;
  const datasets::dataset_model* dataset = nullptr;
  std::span<const std::byte> encoded;
  bool present = false;
  const std::atomic<bool>* stop = nullptr;
  const pixels::picture_boxes* boxes = nullptr;
  picture_geometry* geometry = nullptr;
};

/// One thread's decoder and scratch for one field.
class field_scratch {
 public:
  virtual ~field_scratch() = default;
};

/// Bytes of a stored value that are looked at: [first, end).
///   head_bytes   0: decode() is given these bytes. Otherwise so many at its begin are looked at as well, and decode() is given the whole
///                value's length, in which other bytes are anything at all
struct wanted_bytes {
  std::uint64_t head_bytes = 0;
  std::uint64_t first = 0;
  std::uint64_t end = 0;

  [[nodiscard]] static wanted_bytes all_of(const datasets::part& of) noexcept {
    return {.first = 0, .end = of.where.stored_bytes};
  }
};

/// It looks at some bytes of a stored value: no more is read.
class choosing_facet {
 public:
  [[nodiscard]] virtual wanted_bytes bytes_wanted(const datasets::part& of, std::uint64_t seed, std::uint32_t epoch,
                                                  std::uint64_t draw) const = 0;

 protected:
  ~choosing_facet() = default;
};

/// Its ragged rows have other sizes than what they are made of.
class ragged_facet {
 public:
  /// The most bytes that a row takes of so many encoded ones, a multiple of an element's, without padding. Of several rows together
  /// it is no more than of the sum of their bytes, and of one byte for each.
  ///   output   its place in outputs()
  [[nodiscard]] virtual std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const = 0;

 protected:
  ~ragged_facet() = default;
};

/// It draws. Several such programs of one member make different views of it.
class drawing_facet {
 public:
  /// Whether two draws of one sample can differ: a step that is always or never done draws as well. Programs of a group may draw nothing.
  [[nodiscard]] virtual bool varies() const noexcept = 0;
  /// Draws as the member's `number`-th view, from 1, which is what a program does by itself. Before it is shared.
  virtual void set_view(std::uint32_t number) = 0;
  /// Not empty: it draws by this name, and has no number.
  [[nodiscard]] virtual std::string_view group() const noexcept { return {}; }
  /// Where it takes the rows of some samples from: the same for all of a group.
  [[nodiscard]] virtual std::vector<double> geometry_probes() const { return {}; }

 protected:
  ~drawing_facet() = default;
};

/// One program's part of a decode that several share.
struct decode_share {
  const field_program* program = nullptr;
  std::span<row_target> rows;
  picture_geometry* geometry = nullptr;
  const pixels::picture_boxes* boxes = nullptr;
};

/// Several programs of a member share one decode.
class sharing_facet {
 public:
  /// Whether decode_together() of `first` can make this program's rows from the same encoded bytes, with its own. Then it is
  /// given the scratch that `first` has made.
  [[nodiscard]] virtual bool decodes_with(const field_program& first) const = 0;
  /// What another program's decode takes more of the scratch budget when it makes this one's row as well.
  [[nodiscard]] virtual std::size_t scratch_bytes_beside() const = 0;
  /// The rows of this program, the first of `all`, and of others that decode with it: each the bytes that its own decode()
  /// makes. False where that failed; decode() of each then says what there is to say.
  [[nodiscard]] virtual bool decode_together(field_scratch& scratch, const decode_input& input,
                                             std::span<const decode_share> all) const = 0;

 protected:
  ~sharing_facet() = default;
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

/// It may leave work to a device.
class leaving_facet {
 public:
  /// Nothing where it leaves no decoding.
  [[nodiscard]] virtual std::optional<decodes_left> decodes_left_to_device() const = 0;
  /// Steps of colour; nothing where it has none.
  [[nodiscard]] virtual std::optional<passes_left> passes_left_to_device() const = 0;

 protected:
  ~leaving_facet() = default;
};

/// It looks at a sample whose rows are all made.
class checking_facet {
 public:
  /// What is wrong with the sample; nothing if nothing is. It may make rows of its own outputs of them.
  ///   rows   of the program's outputs, and of the programs behind it
  [[nodiscard]] virtual std::optional<std::string> check(const decode_input& input,
                                                         std::span<row_target> rows) const = 0;

 protected:
  ~checking_facet() = default;
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
  /// Where an order packs: so many rows, and the pieces in them that are there.
  [[nodiscard]] virtual std::uint32_t packed_rows() const noexcept = 0;
  [[nodiscard]] virtual std::span<const placed_piece> pieces() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t epoch() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t index() const noexcept = 0;

 protected:
  ~finished_rows() = default;
};

/// Its rows may be pieces that lie in packed rows.
class packable_facet {
 public:
  /// From now on each of its rows is a piece, and lies where that does. Before the program is shared. Its outputs become others.
  ///   by            lives as long as the program
  ///   with_places   it makes the outputs that say where pieces lie: one program of a loader does
  virtual void pack(const rank_packing& by, bool with_places) = 0;
  /// The order does not pack.
  ///   throws    error{errc::usage} where it has to
  ///   default   each row is a sample's
  virtual void leave_unpacked() const {}

 protected:
  ~packable_facet() = default;
};

/// It gets the bytes of some samples by itself: none are read for it, and decode() has none. Not of values in blocks.
class fetching_facet {
 public:
  [[nodiscard]] virtual bool fetches(std::uint64_t sample) const = 0;

 protected:
  ~fetching_facet() = default;
};

/// Which of the fields in reads() it reads depends on the pick, and on what the sample has.
class picking_facet {
 public:
  /// One that the sample lacks is a missing one.
  ///   parts   of the sample: of all of these fields, and of others
  [[nodiscard]] virtual std::uint16_t field_of(const pick& row, std::uint64_t seed,
                                               std::span<const datasets::part> parts) const = 0;
  /// Whether two draws of one sample can differ.
  [[nodiscard]] virtual bool varies() const noexcept = 0;

 protected:
  ~picking_facet() = default;
};

/// It makes rows of pictures, which others may follow. decode() fills decode_input::geometry.
class leading_facet {
 public:
  /// Of the rows.
  [[nodiscard]] virtual int row_height() const noexcept = 0;
  [[nodiscard]] virtual int row_width() const noexcept = 0;
  /// More about a row than its geometry says.
  ///   of   as decode() has filled it, for the same input
  virtual void place(const decode_input& input, const picture_geometry& of, pixels::placed_picture& out) const = 0;

 protected:
  ~leading_facet() = default;
};

/// Its rows follow those of a picture: they are made when all programs have made theirs. decode() makes none.
class following_facet {
 public:
  /// The name of the field that it follows.
  [[nodiscard]] virtual const std::string& leader() const noexcept = 0;
  /// Before the program is shared: its outputs become as large as the leader's rows.
  ///   by   lives as long as the program
  virtual void follow(const leading_facet& by) = 0;
  /// As decode(), of a sample whose picture lies so.
  [[nodiscard]] virtual outcome<void> make(field_scratch& scratch, const decode_input& input,
                                           const picture_geometry& picture, std::span<row_target> rows) const = 0;

 protected:
  ~following_facet() = default;
};

/// Its crops look at a sample's boxes before anything is decoded: decode_input::boxes.
class looking_facet {
 public:
  /// The name of the field that has them; empty: the one that follows this picture.
  [[nodiscard]] virtual const std::string& boxes_field() const noexcept = 0;

 protected:
  ~looking_facet() = default;
};

/// It has boxes that crops look at.
class boxing_facet {
 public:
  /// Of a sample, as they are stored. Before decode(), or behind it where the value came out of a block.
  ///   rows   of the program
  ///   made   memory of the boxes, which `out` refers to
  [[nodiscard]] virtual outcome<void> boxes_of(field_scratch& scratch, std::span<const std::byte> encoded,
                                               std::span<const row_target> rows, std::vector<pixels::box>& made,
                                               pixels::picture_boxes& out) const = 0;

 protected:
  ~boxing_facet() = default;
};

/// Its first output is made by an operation that has device_operation::keeping().
class keeping_facet {
 public:
  /// Whether rows carry all of their packs from here on, where these have room. Thread: any.
  virtual void carry_packs(bool carried) noexcept = 0;
  /// As decode(), of a pack whose head alone is there: other bytes of it are anything at all. False where this row needs them.
  [[nodiscard]] virtual bool decode_held(field_scratch& scratch, const decode_input& input,
                                         std::span<row_target> rows) const = 0;

 protected:
  ~keeping_facet() = default;
};

/// It has outputs that are of_batch.
class finishing_facet {
 public:
  /// Makes them, once a batch, on a decode thread; what it throws ends the run.
  virtual void finish(finished_rows& batch) const = 0;

 protected:
  ~finishing_facet() = default;
};

/// What a program may do beside its core; null: it does not. They live as long as the program.
struct program_facets {
  const choosing_facet* choosing = nullptr;
  const ragged_facet* ragged = nullptr;
  drawing_facet* drawing = nullptr;
  const sharing_facet* sharing = nullptr;
  const leaving_facet* leaving = nullptr;
  const checking_facet* checking = nullptr;
  const finishing_facet* finishing = nullptr;
  const fetching_facet* fetching = nullptr;
  const picking_facet* picking = nullptr;
  packable_facet* packable = nullptr;
  const leading_facet* leading = nullptr;
  following_facet* following = nullptr;
  const looking_facet* looking = nullptr;
  const boxing_facet* boxing = nullptr;
  tiling_facet* tiling = nullptr;  ///< tiled_rows.hpp
  keeping_facet* keeping = nullptr;
};

/// Facts of a program.
///   required            a sample without any of what it reads is corrupt; otherwise decode() is asked with present = false
///   verbatim            each row is its sample's stored bytes as they are, so that a read could put them there: one output, of fixed
///                       size, as many bytes as the part that is read for it
///   crop                not null: each row is this part of its stored row, as it is, and no more than that is read. It reads one field,
///                       and is not verbatim
///   encoded_bytes_max   samples of more encoded bytes are corrupt, as decode() says: no more room is planned for their ragged rows
///   recodes_packs       rows of photo packs are coded again for this libjpeg
///   scratch_bytes       what decoding a usual sample takes of the scratch budget, per thread
///   scratch_of_previous   it decodes with the scratch of the program before it: one of the same field, and one by one
///   calls_function      a function of the user's makes its rows: they may be others in each epoch, though nothing is drawn
///   names_member        what it says of a corrupt sample names the member that it read
///   warning             for loader_plan::warnings; empty: none
struct program_facts {
  bool required = true;
  bool verbatim = false;
  const array_crop* crop = nullptr;
  std::size_t encoded_bytes_max = std::numeric_limits<std::size_t>::max();
  bool recodes_packs = false;
  std::size_t scratch_bytes = 0;
  bool scratch_of_previous = false;
  bool calls_function = false;
  bool names_member = false;
  std::string warning = {};
};

/// Shared by the decode threads, and immutable from then on.
class field_program {
 public:
  field_program(const field_program&) = delete;
  field_program& operator=(const field_program&) = delete;
  virtual ~field_program() = default;

  // The core, which every program has.

  /// One job: one sample, start to end, on one thread. `rows` has one target per output.
  virtual outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const = 0;
  [[nodiscard]] virtual std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const;
  /// Of a row made of so many encoded bytes, those that decode() copies as they are.
  [[nodiscard]] virtual std::size_t bytes_copied(std::size_t encoded_bytes) const {
    return facts_.verbatim ? encoded_bytes : 0;
  }

  // What it is made of.

  [[nodiscard]] std::span<const output_spec> outputs() const noexcept { return outputs_; }
  /// The dataset's fields this one reads, in order of preference: the first that a sample has is its encoded part.
  /// Empty where the row comes from the dataset's columns alone.
  [[nodiscard]] std::span<const std::uint16_t> reads() const noexcept { return reads_; }
  [[nodiscard]] const program_facts& facts() const noexcept { return facts_; }
  [[nodiscard]] bool required() const noexcept { return facts_.required && !reads_.empty(); }

  // What it may do besides: each facet says more about it.

  [[nodiscard]] const program_facets& facets() const noexcept { return facets_; }

  [[nodiscard]] wanted_bytes bytes_wanted(const datasets::part& of, std::uint64_t seed, std::uint32_t epoch,
                                          std::uint64_t draw) const {
    return facets_.choosing ? facets_.choosing->bytes_wanted(of, seed, epoch, draw) : wanted_bytes::all_of(of);
  }
  [[nodiscard]] std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const {
    return facets_.ragged ? facets_.ragged->ragged_bytes(output, encoded_bytes) : encoded_bytes;
  }
  [[nodiscard]] bool random() const noexcept { return facets_.drawing != nullptr; }
  /// What makes its rows: of a slot another program, else itself.
  [[nodiscard]] const field_program& maker() const noexcept { return maker_ != nullptr ? *maker_ : *this; }
  [[nodiscard]] bool decodes_with(const field_program& first) const {
    return facets_.sharing && facets_.sharing->decodes_with(first.maker());
  }
  [[nodiscard]] std::optional<decodes_left> decodes_left_to_device() const {
    return facets_.leaving ? facets_.leaving->decodes_left_to_device() : std::nullopt;
  }
  [[nodiscard]] std::optional<passes_left> passes_left_to_device() const {
    return facets_.leaving ? facets_.leaving->passes_left_to_device() : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> check(const decode_input& input, std::span<row_target> rows) const {
    return facets_.checking ? facets_.checking->check(input, rows) : std::nullopt;
  }
  [[nodiscard]] bool finishes() const noexcept { return facets_.finishing != nullptr; }

 protected:
  explicit field_program(std::vector<output_spec> outputs = {}, std::vector<std::uint16_t> reads = {},
                         program_facts facts = {})
      : outputs_(std::move(outputs)), reads_(std::move(reads)), facts_(std::move(facts)) {}

  // A program's constructor fills them.
  std::vector<output_spec> outputs_;
  std::vector<std::uint16_t> reads_;
  program_facts facts_;
  program_facets facets_;
  const field_program* maker_ = nullptr;
};

inline std::unique_ptr<field_scratch> field_program::make_scratch(pixels::scratch_budget&) const {
  return std::make_unique<field_scratch>();
}

}  // namespace leat::stages
