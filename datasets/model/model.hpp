// The interface behind a dataset: what the line asks of any format. Everything is const and thread-safe; only functions
// that say so may block.
#pragma once

#include "base/corrupt_kind.hpp"
#include "datasets/model/box.hpp"
#include "datasets/model/sample_blocks.hpp"
#include "io/files/source.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/extent.hpp>
#include <leat/samples.hpp>

#include <absl/container/inlined_vector.h>
#include <boost/asio/awaitable.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace leat::datasets {

class blocking_sources;
class sample_counts;
class token_windows;
struct photo_place;

/// How a part of a sample's value is come by.
enum class part_form : std::uint8_t {
  stored,  ///< read: the bytes as they are
  coded,   ///< read, and expanded: expand() makes the value, which no other sample shares
  value,  ///< the whole value within a block that samples share: expand() makes the block, copy_box() takes the value out
  box,    ///< some elements of it, likewise; all values of such a field are of one size
  produced,  ///< produce() makes it, or shows it in memory, on a decode thread
  awaited    ///< fetch() gets it, awaited on the I/O thread
};

/// Forms that parts of a field may have.
class part_forms {
 public:
  constexpr part_forms() = default;
  constexpr part_forms(part_form one) noexcept
      : bits_(bit(one)) {}  // NOLINT(google-explicit-constructor): one is a set

  [[nodiscard]] constexpr bool has(part_form one) const noexcept { return (bits_ & bit(one)) != 0; }
  [[nodiscard]] constexpr bool any_of(part_forms others) const noexcept { return (bits_ & others.bits_) != 0; }
  [[nodiscard]] constexpr bool only(part_forms others) const noexcept { return (bits_ & ~others.bits_) == 0; }
  constexpr part_forms& operator|=(part_forms others) noexcept {
    bits_ |= others.bits_;
    return *this;
  }
  friend constexpr part_forms operator|(part_forms a, part_forms b) noexcept { return a |= b; }
  friend constexpr bool operator==(part_forms, part_forms) = default;

 private:
  static constexpr std::uint8_t bit(part_form one) noexcept {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(one));
  }
  std::uint8_t bits_ = 0;
};
[[nodiscard]] constexpr part_forms operator|(part_form a, part_form b) noexcept {
  return part_forms(a) | part_forms(b);
}

inline constexpr part_forms forms_in_blocks = part_form::value | part_form::box;
/// Nothing is read for these: they have no place.
inline constexpr part_forms forms_made = part_form::produced | part_form::awaited;
/// What is read for these is expanded.
inline constexpr part_forms forms_expanded = forms_in_blocks | part_form::coded;

/// A part of a sample's value of a field. A value in several pieces has several parts, in the order of their bytes.
///   codec    of what is expanded: a number that only the model knows, for dataset_model::expand(). It may have no stored bytes at all
///            (a chunk that was never written is its fill value)
///   block    of what lies in a block: which one it is, another number that only the model knows. Two parts of the same place, codec and
///            block expand to the same bytes, from which copy_box() takes each sample's or field's box
///   whole    of a box: the block is exactly what is wanted of the sample, and copy_box() need not be called
///   where.decoded_bytes   of what is expanded, which may be more than the sample's value: size_of_value() tells that one's bytes
///   picked        of a `value`: it is picked out of a record in the block, and take_value() may give fewer bytes than value_bytes, or none
///   value_bytes   of the sample's value, where that is known before what has it is expanded: always of a `value`; never of what is `coded`
///                 and picked out of a record
///   photo   of a photo pack, where its rows lie; null where nobody has said so. The model's
struct part {
  std::uint16_t field = 0;  ///< index into dataset_model::fields()
  part_form form = part_form::stored;
  bool whole : 1 = false;
  bool picked : 1 = false;
  std::uint32_t codec = 0;
  extent where = {};  ///< where.source indexes dataset_model::sources()
  std::uint64_t block = 0;
  std::uint64_t value_bytes = 0;
  const photo_place* photo = nullptr;

  [[nodiscard]] bool is_in_block() const noexcept { return forms_in_blocks.has(form); }
  [[nodiscard]] bool is_expanded() const noexcept { return forms_expanded.has(form); }
  [[nodiscard]] bool is_made() const noexcept { return forms_made.has(form); }
};
using part_list = absl::InlinedVector<part, 4>;

/// How long a sample's value is, not what it is stored in: a block that it shares, or a record that it is picked out of.
///   is_exact   false: it has `bytes` at most, and is read to know it (value_sizes.hpp)
struct value_size {
  std::uint64_t bytes = 0;
  bool is_exact = true;
};
///   parts    the sample's, of whatever fields; at least one is of this
[[nodiscard]] value_size size_of_value(const field_info& field, std::uint16_t number,
                                       std::span<const part> parts) noexcept;

/// A field that is wanted.
///   seed, draw, epoch   for samples whose bytes lie elsewhere in each epoch (windows of tokens): leat::pick
///   within              of a field in boxes, the elements that are wanted: blocks without any are left out. Null: all. Ignored for
///                       other fields
struct need {
  std::uint16_t field = 0;
  std::uint64_t seed = 0;
  std::uint64_t draw = 0;
  std::uint32_t epoch = 0;
  const box* within = nullptr;
};

/// A sample known to be damaged before anything was read: what goes to the corrupt policy and the journal.
struct defect {
  std::uint32_t source = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::string reason;
  corrupt_kind kind = corrupt_kinds::damaged;
};

/// How often a model wants to be asked whether its files are still those that were opened.
enum class guard : std::uint8_t {
  none,        ///< never
  epoch,       ///< with the last batch of each epoch
  batch,       ///< with batches as well, once a millisecond at most
  every_batch  ///< with each of them: files that are written in place, so that what was read may be another's bytes
};

/// A window of tokens: the view that cut it, and its number there. Null where a sample is no window.
struct window_number {
  const token_windows* of = nullptr;
  std::uint64_t number = 0;
};

/// A value of a column: a whole number or a real one.
using column_value = std::variant<std::int64_t, double>;
/// The number, if it is a whole one that a std::int64_t holds, whatever it is stored as.
[[nodiscard]] std::optional<std::int64_t> whole_of(const column_value& value) noexcept;
[[nodiscard]] double real_of(const column_value& value) noexcept;
/// Its digits: of a real number as few as give the same number again.
[[nodiscard]] std::string text_of(const column_value& value);
/// Writes it as an element of `type`, which is i64 or a type of floats.
void store(const column_value& value, dtype type, std::byte* to) noexcept;

class dataset_model {
 public:
  dataset_model() = default;
  dataset_model(const dataset_model&) = delete;
  dataset_model& operator=(const dataset_model&) = delete;
  virtual ~dataset_model() = default;

  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;

  /// Fields that have bytes; their index is the field's number. Fewer than 65,536. field_info::bytes_max bounds every
  /// sample's decoded bytes of that field, which are its stored bytes where nothing expands.
  [[nodiscard]] virtual std::span<const field_info> fields() const noexcept = 0;

  /// Appends the parts of the fields that are needed, in the order in which they lie in their file. A field that the
  /// sample lacks appends nothing. Cheap enough for the plan: no system call, no lock.
  ///   needs   at most one per field
  virtual void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const = 0;

  /// The same for every field the sample has: for tools, packing, and messages that name what is there.
  void parts(std::uint64_t sample, part_list& out) const;

  /// The forms that parts of a field may have. Rows of a field in boxes may also be stored as they are.
  ///   default   stored
  [[nodiscard]] virtual part_forms forms(std::uint16_t field) const noexcept;

  /// Expands a part. Thread-safe: several decode threads call it at once, and so do readers of single samples.
  /// Damaged bytes concern only the samples that use them.
  ///   sample    that the part is of: views find the part's dataset by it
  ///   stored    the bytes of the part, as they were read: part.where.stored_bytes of them
  ///   decoded   part.where.decoded_bytes bytes; all are written, or there is a reason. Of a `coded` part there may be fewer:
  ///             then it is shortened to those
  ///   returns   the reason for a failure; nothing on success
  ///   default   never called for a model whose parts are not expanded
  [[nodiscard]] virtual std::optional<value_fault> expand(std::uint64_t sample, const part& of,
                                                          std::span<const std::byte> stored,
                                                          std::span<std::byte>& decoded) const;

  /// Copies the sample's elements from an expanded block to their places in `bytes`. Thread-safe, as expand().
  ///   of        a part that lies in a block
  ///   within    need::within, as given to parts()
  ///   decoded   what expand() made
  ///   bytes     all that is wanted of the sample, dense. Bytes of other parts are left alone
  ///   default   never called for a model without blocks
  virtual void copy_box(std::uint64_t sample, const part& of, const box* within, std::span<const std::byte> decoded,
                        std::span<std::byte> bytes) const;

  /// What to connect to a loop; extents index it.
  [[nodiscard]] virtual std::span<const std::shared_ptr<const io::source_description>> sources() const noexcept = 0;

  /// Bytes of a `produced` part: either a view of memory that lives as long as the model, or `scratch`, which
  /// the call has resized and filled. Thread: decode threads, several at once. Whatever it throws concerns this sample.
  [[nodiscard]] virtual std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                                           std::vector<std::byte>& scratch) const;
  /// Bytes of an `awaited` part. Thread: I/O thread. Cancellation: as the coroutine honours it.
  [[nodiscard]] virtual boost::asio::awaitable<std::vector<std::byte>> fetch(std::uint64_t sample,
                                                                             std::uint16_t field) const;

  /// Columns: names, and a sample's value in column k; nullopt where this sample has none (the parts of a
  /// concatenation need not share their columns: then the field of that name may be there instead).
  [[nodiscard]] virtual std::span<const std::string> columns() const noexcept { return {}; }
  [[nodiscard]] virtual std::optional<column_value> column(std::uint64_t sample, std::size_t column) const;
  /// i64 of whole numbers; else what the real ones are stored as.
  ///   default   i64
  [[nodiscard]] virtual dtype column_type(std::size_t column) const;
  /// How many samples have a value in it.
  [[nodiscard]] virtual std::uint64_t column_samples(std::size_t column) const;

  [[nodiscard]] virtual const std::vector<std::string>& classes() const noexcept;
  /// The column whose numbers classes() names, and dataset::label() gives.
  ///   default   "cls"
  [[nodiscard]] virtual std::string_view class_column() const noexcept;
  [[nodiscard]] virtual const std::vector<std::string>& notes() const noexcept;

  /// As dataset::name(). May block on a read of a few KiB.
  [[nodiscard]] virtual std::string name(std::uint64_t sample) const = 0;

  /// Where packing puts a field of a sample: a member's path without its extension, and the extension as it was.
  struct member_path {
    std::string stem;       ///< may hold directories; dots too, unless it is a key already
    std::string extension;  ///< without the dot; may hold dots where the source's members had them
    bool is_key = false;    ///< it comes from a shard and goes into one as it is
  };
  /// One for each of `fields`, which the sample has. May block, reading from `sources`.
  ///   default   name() and the fields' names
  [[nodiscard]] virtual std::vector<member_path> members(std::uint64_t sample, std::span<const std::uint16_t> fields,
                                                         blocking_sources& sources) const;

  /// The number of samples with a defect. If it is 0, as nearly always, no sample need be asked.
  [[nodiscard]] virtual std::uint64_t defects() const noexcept { return 0; }
  [[nodiscard]] virtual std::optional<defect> defect_of(std::uint64_t sample) const;

  /// The window of tokens that the sample is (datasets/views/token_windows.hpp).
  [[nodiscard]] virtual window_number window_of(std::uint64_t sample) const;

  /// What was counted while it was opened. Null if nothing was: then callers ask for each sample.
  [[nodiscard]] virtual const sample_counts* counts() const noexcept { return nullptr; }

  /// The blocks that samples share. A block is expanded once if its samples are read near one another. If fields have blocks of
  /// different lengths, the longest blocks count.
  ///   default   none
  [[nodiscard]] virtual sample_blocks blocks() const;

  /// With `batch`, a batch within a millisecond of one that was checked is not checked, unless it is the last of an epoch or has a corrupt
  /// sample.
  /// A batch is checked when all its rows are made, before its corrupt samples are reported and before it is delivered.
  ///   default   none
  [[nodiscard]] virtual guard guarded() const noexcept { return guard::none; }
  /// What has changed since it was opened: one line, with the file. Nothing if nothing has. Thread: decode threads, several at
  /// once; it may block on files.
  ///   at   `batch`: checks what is guarded with batches; `epoch`: checks everything
  [[nodiscard]] virtual std::optional<std::string> changed(guard at) const;

  /// The parts of a concatenation, in its order. Empty for other models.
  [[nodiscard]] virtual std::vector<std::shared_ptr<const dataset_model>> joined() const;

  /// Where a person looks for a part of this sample in its file: at the header before it, where a format has one.
  ///   default   the offset of its bytes
  [[nodiscard]] virtual std::uint64_t header_offset(std::uint64_t sample, const extent& part) const;

  [[nodiscard]] virtual dataset_memory memory() const = 0;

  /// Names what the samples are, wherever they lie: the same data under another path is the same dataset. It reads nothing and asks
  /// for no sample. datasets/tables/describe.hpp has what formats share.
  ///   default   nothing has a name: a run over it can neither be saved nor resumed
  virtual void describe(description& out) const;

  /// Takes the sample's value out of an expanded block. Thread-safe, as expand().
  ///   of        a `value`
  ///   bytes     part.value_bytes of them; shortened where the value is picked out of a record
  ///   returns   the reason why there is none
  ///   default   copy_box()
  [[nodiscard]] virtual std::optional<value_fault> take_value(std::uint64_t sample, const part& of,
                                                              std::span<const std::byte> decoded,
                                                              std::span<std::byte>& bytes) const;

  // Found by name, out of the above.
  [[nodiscard]] std::optional<std::uint16_t> find_field(std::string_view name) const noexcept;
  [[nodiscard]] std::optional<std::size_t> find_column(std::string_view name) const noexcept;
  /// The label: class_column().
  [[nodiscard]] std::optional<std::int64_t> label(std::uint64_t sample) const;
};

/// For who writes out what was read.
///   throws   error{errc::changed} naming the file, where what the model was opened from has changed since
void check_unchanged(const dataset_model& model);
/// Calls `read`. What fails where files have changed meanwhile failed because of that, and is reported so.
///   throws   what `read` throws, or error{errc::changed}; a stop stays one
template <class Read>
decltype(auto) reading_unchanged(const dataset_model& model, const Read& read) {
  try {
    return read();
  } catch (const error& failed) {
    if (failed.code() != errc::cancelled) check_unchanged(model);
    throw;
  }
}

/// Field names that promise a picture, "jpg" first. People call any picture "jpg", so a request for the field "jpg" gets
/// whichever of these a sample has.
[[nodiscard]] std::span<const std::string_view> picture_names() noexcept;
/// Whether a field's name is a photo pack's: "fjpg", "left.fjpeg" and the like. An index of packs is used for these only.
[[nodiscard]] bool is_photo_pack_name(std::string_view field_name) noexcept;
/// The most reads that a value may take, by its field's name: two where an index may say which of its bytes are wanted.
[[nodiscard]] std::size_t reads_of_value_max(const field_info& field) noexcept;

/// The kind that a field's name (lower case, without dot) promises. "seg.png" is a picture too: the last extension counts.
[[nodiscard]] field_kind kind_of(std::string_view field_name) noexcept;

}  // namespace leat::datasets
