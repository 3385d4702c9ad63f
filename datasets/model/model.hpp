// The interface behind a dataset: what the line asks of any format. Everything is const and thread-safe; only functions
// that say so may block.
#pragma once

#include "datasets/model/columns.hpp"
#include "datasets/model/defects.hpp"
#include "datasets/model/expanding.hpp"
#include "datasets/model/making.hpp"
#include "datasets/model/packing.hpp"
#include "datasets/model/part.hpp"
#include "datasets/model/sample_blocks.hpp"
#include "datasets/model/staleness.hpp"
#include "datasets/model/windows.hpp"
#include "io/files/source.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

class dataset_model;
class sample_counts;

class joined_facet {
 public:
  /// The parts of a concatenation, in its order.
  [[nodiscard]] virtual std::vector<std::shared_ptr<const dataset_model>> joined() const = 0;

 protected:
  ~joined_facet() = default;
};

/// What a model may do beside its core; null: it does not. They live as long as the model.
///   counts   what was counted while it was opened; null: callers ask for each sample
struct model_facets {
  const sample_counts* counts = nullptr;
  const columns_facet* columns = nullptr;
  const blocks_facet* blocks = nullptr;
  const expanding_facet* expanding = nullptr;
  const making_facet* making = nullptr;
  const staleness_facet* staleness = nullptr;
  const defects_facet* defects = nullptr;
  const packing_facet* packing = nullptr;
  const windows_facet* windows = nullptr;
  const joined_facet* joined = nullptr;
};

class dataset_model {
 public:
  dataset_model() = default;
  dataset_model(const dataset_model&) = delete;
  dataset_model& operator=(const dataset_model&) = delete;
  virtual ~dataset_model() = default;

  // The core, which every model has.

  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;

  /// Appends the parts of the fields that are needed, in the order in which they lie in their file. A field that the
  /// sample lacks appends nothing. Cheap enough for the plan: no system call, no lock.
  ///   needs   at most one per field
  virtual void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const = 0;

  /// As dataset::name(). May block on a read of a few KiB.
  [[nodiscard]] virtual std::string name(std::uint64_t sample) const = 0;

  /// Names what the samples are, wherever they lie: the same data under another path is the same dataset. It reads nothing and asks
  /// for no sample. datasets/tables/describe.hpp has what formats share.
  ///   default   nothing has a name: a run over it can neither be saved nor resumed
  virtual void describe(description& out) const;

  [[nodiscard]] virtual dataset_memory memory() const = 0;

  // What it is made of.

  /// Fields that have bytes; their index is the field's number. Fewer than 65,536. field_info::bytes_max bounds every
  /// sample's decoded bytes of that field, which are its stored bytes where nothing expands.
  [[nodiscard]] std::span<const field_info> fields() const noexcept { return fields_; }
  /// The forms that parts of a field may have. Rows of a field in boxes may also be stored as they are.
  [[nodiscard]] part_forms forms(std::uint16_t field) const noexcept {
    return forms_.empty() ? part_forms(part_form::stored) : forms_[field];
  }
  /// What to connect to a loop; extents index it.
  [[nodiscard]] std::span<const std::shared_ptr<const io::source_description>> sources() const noexcept {
    return sources_;
  }
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }
  [[nodiscard]] const std::vector<std::string>& classes() const noexcept { return classes_->names; }
  [[nodiscard]] std::string_view class_column() const noexcept { return classes_->column; }

  // What it may do besides: each facet says more about it.

  [[nodiscard]] const model_facets& facets() const noexcept { return facets_; }
  [[nodiscard]] const sample_counts* counts() const noexcept { return facets_.counts; }

  [[nodiscard]] std::span<const std::string> columns() const noexcept {
    return facets_.columns ? facets_.columns->column_names() : std::span<const std::string>();
  }
  [[nodiscard]] std::optional<column_value> column(std::uint64_t sample, std::size_t column) const {
    assert(facets_.columns);
    return facets_.columns->column(sample, column);
  }
  [[nodiscard]] dtype column_type(std::size_t column) const { return facets_.columns->column_type(column); }
  [[nodiscard]] std::uint64_t column_gaps(std::size_t column) const { return facets_.columns->column_gaps(column); }

  [[nodiscard]] sample_blocks blocks() const { return facets_.blocks ? facets_.blocks->blocks() : sample_blocks(); }
  [[nodiscard]] std::optional<value_fault> expand(std::uint64_t sample, const part& of,
                                                  std::span<const std::byte> stored,
                                                  std::span<std::byte>& decoded) const {
    assert(facets_.expanding);
    return facets_.expanding->expand(sample, of, stored, decoded);
  }
  void copy_box(std::uint64_t sample, const part& of, const box* within, std::span<const std::byte> decoded,
                std::span<std::byte> bytes) const {
    assert(facets_.expanding);
    facets_.expanding->copy_box(sample, of, within, decoded, bytes);
  }
  [[nodiscard]] std::optional<value_fault> take_value(std::uint64_t sample, const part& of,
                                                      std::span<const std::byte> decoded,
                                                      std::span<std::byte>& bytes) const {
    assert(facets_.expanding);
    return facets_.expanding->take_value(sample, of, decoded, bytes);
  }

  [[nodiscard]] std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                                   std::vector<std::byte>& scratch) const {
    assert(facets_.making);
    return facets_.making->produce(sample, field, scratch);
  }
  [[nodiscard]] boost::asio::awaitable<std::vector<std::vector<std::byte>>> fetch(
      std::uint64_t sample, std::vector<std::uint16_t> fields) const {
    assert(facets_.making);
    return facets_.making->fetch(sample, std::move(fields));
  }
  [[nodiscard]] std::uint16_t fetch_group(std::uint64_t sample, std::uint16_t field) const {
    assert(facets_.making);
    return facets_.making->fetch_group(sample, field);
  }

  [[nodiscard]] staleness_check staleness_checks() const noexcept {
    return facets_.staleness ? facets_.staleness->staleness_checks() : staleness_check::none;
  }
  [[nodiscard]] std::optional<std::string> changed(staleness_check at) const {
    return facets_.staleness ? facets_.staleness->changed(at) : std::nullopt;
  }

  /// If it is 0, as nearly always, no sample need be asked.
  [[nodiscard]] std::uint64_t defects() const noexcept { return facets_.defects ? facets_.defects->defects() : 0; }
  [[nodiscard]] std::optional<defect> defect_of(std::uint64_t sample) const {
    return facets_.defects ? facets_.defects->defect_of(sample) : std::nullopt;
  }

  ///   default   members_by_name()
  [[nodiscard]] std::vector<member_path> members(std::uint64_t sample, std::span<const std::uint16_t> fields,
                                                 blocking_sources& sources) const;
  [[nodiscard]] std::uint64_t header_offset(std::uint64_t sample, const extent& part) const {
    return facets_.packing ? facets_.packing->header_offset(sample, part) : part.offset;
  }

  [[nodiscard]] window_number window_of(std::uint64_t sample) const {
    return facets_.windows ? facets_.windows->window_of(sample) : window_number();
  }
  [[nodiscard]] std::vector<std::shared_ptr<const dataset_model>> joined() const {
    return facets_.joined ? facets_.joined->joined() : std::vector<std::shared_ptr<const dataset_model>>();
  }

  // Found by name, out of the above.

  /// The parts of every field the sample has: for tools, packing, and messages that name what is there.
  void parts(std::uint64_t sample, part_list& out) const;
  [[nodiscard]] std::optional<std::uint16_t> find_field(std::string_view name) const noexcept;
  [[nodiscard]] std::optional<std::size_t> find_column(std::string_view name) const noexcept;
  /// The label: class_column().
  [[nodiscard]] std::optional<std::int64_t> label(std::uint64_t sample) const;

 protected:
  /// For a view's constructor, which then changes what is otherwise in the view.
  void begin_as(const dataset_model& whole);
  /// name() and the fields' names.
  [[nodiscard]] std::vector<member_path> members_by_name(std::uint64_t sample,
                                                         std::span<const std::uint16_t> fields) const;

  // A model's constructor fills them.
  std::vector<field_info> fields_;
  std::vector<part_forms> forms_;  ///< of each field; empty: all are stored
  std::vector<std::shared_ptr<const io::source_description>> sources_;
  std::vector<std::string> notes_;
  std::shared_ptr<const class_names> classes_ = no_classes();
  model_facets facets_;

 private:
  static const std::shared_ptr<const class_names>& no_classes();
};

/// Of several datasets together. One that is among them twice is held once.
[[nodiscard]] dataset_memory memory_of(std::span<const std::shared_ptr<const dataset_model>> models);

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
