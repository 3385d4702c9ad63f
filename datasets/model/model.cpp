#include "datasets/model/model.hpp"

#include "datasets/model/member_key.hpp"

#include <leat/error.hpp>

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <set>

namespace leat::datasets {

const std::shared_ptr<const class_names>& dataset_model::no_classes() {
  static const auto none = std::make_shared<const class_names>();
  return none;
}

void dataset_model::begin_as(const dataset_model& whole) {
  fields_ = whole.fields_;
  forms_ = whole.forms_;
  sources_ = whole.sources_;
  notes_ = whole.notes_;
  classes_ = whole.classes_;
  facets_ = whole.facets_;
}

void dataset_model::parts(std::uint64_t sample, part_list& out) const {
  absl::InlinedVector<need, 16> all(fields().size());
  for (std::uint16_t field = 0; field < all.size(); ++field) all[field].field = field;
  parts(sample, {all.data(), all.size()}, out);
}

void dataset_model::describe(description& out) const {
  out.add_unnamed("dataset_model", "override dataset_model::describe()");
}

std::vector<member_path> dataset_model::members(std::uint64_t sample, std::span<const std::uint16_t> wanted,
                                                blocking_sources& from) const {
  return facets_.packing != nullptr ? facets_.packing->members(sample, wanted, from) : members_by_name(sample, wanted);
}

std::vector<member_path> dataset_model::members_by_name(std::uint64_t sample,
                                                        std::span<const std::uint16_t> wanted) const {
  std::vector<member_path> paths;
  for (const std::uint16_t field : wanted) {
    paths.push_back({name(sample), encode_field_name(fields()[field].name), false});
  }
  return paths;
}

std::optional<std::uint16_t> dataset_model::find_field(std::string_view name) const noexcept {
  const std::span<const field_info> all = fields();
  const auto found = std::find_if(all.begin(), all.end(), [&](const field_info& field) { return field.name == name; });
  if (found == all.end()) return std::nullopt;
  return static_cast<std::uint16_t>(found - all.begin());
}

std::optional<std::size_t> dataset_model::find_column(std::string_view name) const noexcept {
  const std::span<const std::string> all = columns();
  const auto found = std::find(all.begin(), all.end(), name);
  if (found == all.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all.begin());
}

std::optional<std::int64_t> dataset_model::label(std::uint64_t sample) const {
  const std::optional<std::size_t> found = find_column(class_column());
  const std::optional<column_value> value = found ? column(sample, *found) : std::nullopt;
  return value ? whole_of(*value) : std::nullopt;
}

dataset_memory memory_of(std::span<const std::shared_ptr<const dataset_model>> models) {
  dataset_memory held;
  std::set<const dataset_model*> counted;
  for (const std::shared_ptr<const dataset_model>& each : models) {
    if (!counted.insert(each.get()).second) continue;
    const dataset_memory inner = each->memory();
    held.extents += inner.extents;
    held.files += inner.files;
    held.columns += inner.columns;
    held.data += inner.data;
  }
  return held;
}

void check_unchanged(const dataset_model& model) {
  if (model.staleness_checks() == staleness_check::none) return;
  if (const std::optional<std::string> what = model.changed(staleness_check::epoch)) {
    throw error(errc::changed, "dataset changed: " + *what);
  }
}

void expanding_facet::copy_box(std::uint64_t, const part&, const box*, std::span<const std::byte>,
                               std::span<std::byte>) const {
  assert(false && "no part lies in a block");
}

std::optional<value_fault> expanding_facet::take_value(std::uint64_t sample, const part& of,
                                                       std::span<const std::byte> decoded,
                                                       std::span<std::byte>& bytes) const {
  copy_box(sample, of, nullptr, decoded, bytes);
  return std::nullopt;
}

std::span<const std::byte> making_facet::produce(std::uint64_t, std::uint16_t, std::vector<std::byte>&) const {
  assert(false && "no part is produced");
  return {};
}

std::uint16_t making_facet::fetch_group(std::uint64_t, std::uint16_t field) const { return field; }

boost::asio::awaitable<std::vector<std::vector<std::byte>>> making_facet::fetch(std::uint64_t,
                                                                                std::vector<std::uint16_t>) const {
  assert(false && "no part is fetched");
  co_return std::vector<std::vector<std::byte>>{};
}

std::uint64_t packing_facet::header_offset(std::uint64_t, const extent& part) const { return part.offset; }

static std::string_view last_name(std::string_view field_name) noexcept {
  return field_name.substr(field_name.find_last_of("./") + 1);
}

std::span<const std::string_view> picture_names() noexcept {
  static constexpr std::array<std::string_view, 14> names = {"jpg",  "jpeg", "png", "webp", "bmp",  "gif",   "tif",
                                                             "tiff", "ppm",  "pgm", "jpe",  "fjpg", "fjpeg", "fjpe"};
  return names;
}

bool is_photo_pack_name(std::string_view field_name) noexcept {
  const std::string_view last = last_name(field_name);
  return last == "fjpg" || last == "fjpeg" || last == "fjpe";
}

std::size_t reads_of_value_max(const field_info& field) noexcept { return is_photo_pack_name(field.name) ? 2 : 1; }

field_kind kind_of(std::string_view field_name) noexcept {
  constexpr std::array<std::string_view, 3> texts = {"txt", "text", "caption"};
  const std::string_view last = last_name(field_name);
  const std::span<const std::string_view> pictures = picture_names();
  if (std::find(pictures.begin(), pictures.end(), last) != pictures.end()) return field_kind::picture;
  if (last == "cls" || last == "cls2" || last == "index" || last == "id") return field_kind::label;
  if (std::find(texts.begin(), texts.end(), last) != texts.end()) return field_kind::text;
  return field_kind::bytes;
}

}  // namespace leat::datasets
