#include "datasets/formats/boxes/box_table.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/file_staleness.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/column_table.hpp"
#include "datasets/tables/describe.hpp"
#include "io/files/file_table.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <charconv>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>

namespace leat::datasets {
namespace {

// 17 digits, a sign, a point and an exponent, and the comma behind it.
constexpr std::size_t number_bytes_max = 25;

void append_number(std::string& to, double value) {
  std::array<char, 32> digits{};
  const std::to_chars_result end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  to.append(digits.data(), end.ptr);
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

class boxes_model final : public dataset_model, making_facet {
 public:
  explicit boxes_model(table_of_boxes table)
      : columns_(id_column(table), table.pictures.size()), table_(std::move(table)) {
    sort_objects();
    if (!table_.file.empty()) {
      file_ = std::make_unique<local_file>(table_.file);
      const auto files = std::make_shared<io::file_table>();
      files->add(table_.file, file_->size());
      files->finish();
      watch_ = std::make_unique<file_staleness>(files, nullptr, std::vector{version_on_disk(table_.file)});
      facets_.staleness = watch_.get();
    }
    add_fields();
    facets_.columns = &columns_;
    facets_.making = this;
    classes_ = std::make_shared<class_names>(class_names{table_.classes});
  }

  std::uint64_t size() const noexcept override { return table_.pictures.size(); }
  void parts(std::uint64_t, std::span<const need> needs, part_list& out) const override {
    for (const need& wanted : needs) out.push_back({.field = wanted.field, .form = part_form::produced});
  }
  std::string name(std::uint64_t sample) const override { return table_.pictures[sample]; }

  std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                     std::vector<std::byte>& scratch) const override {
    const auto pieces = pieces_of(field);
    scratch = pieces == nullptr ? bytes_of(json_of(sample)) : list_of(sample, pieces);
    return scratch;
  }

  void describe(description& out) const override {
    describe_model(out, table_.format, *this);
    columns_.describe(out);
    hasher hash;
    for (const std::string& each : table_.pictures) hash.add(each);
    for (const boxed_object& each : table_.objects) {
      hash.add(std::as_bytes(std::span(each.box)));
      hash.add(std::as_bytes(std::span(&each.area, 1)));
      for (const std::uint64_t number :
           {std::uint64_t{each.sample}, std::uint64_t{each.class_number}, std::uint64_t{each.flags[0]},
            std::uint64_t{each.flags[1]}, each.segmentation.bytes, each.keypoints.bytes}) {
        hash.add(number);
      }
    }
    for (const std::int64_t each : table_.category_ids) hash.add(static_cast<std::uint64_t>(each));
    out.add("boxes", hash.finish());
  }
  dataset_memory memory() const override {
    dataset_memory held;
    held.columns = columns_.memory_bytes() + table_.objects.capacity() * sizeof(boxed_object) +
                   first_.capacity() * sizeof(std::uint32_t);
    for (const std::string& each : table_.pictures) held.files += sizeof(each) + each.capacity();
    return held;
  }

 private:
  using pieces = file_piece boxed_object::*;

  static std::vector<column_values> id_column(table_of_boxes& table) {
    if (table.image_ids.empty()) return {};
    return {{.name = "image_id", .values = table.image_ids}};
  }

  [[nodiscard]] std::span<const boxed_object> objects_of(std::uint64_t sample) const noexcept {
    return std::span(table_.objects).subspan(first_[sample], first_[sample + 1] - first_[sample]);
  }
  // Null: it is the JSON.
  [[nodiscard]] pieces pieces_of(std::uint16_t field) const noexcept {
    return field == 0 ? nullptr : field == 1 ? &boxed_object::segmentation : &boxed_object::keypoints;
  }

  // By sample; those of one stay in their order.
  void sort_objects() {
    first_.assign(size() + 1, 0);
    for (const boxed_object& each : table_.objects) ++first_[each.sample + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<boxed_object> sorted(table_.objects.size());
    std::vector<std::uint32_t> next = first_;
    for (const boxed_object& each : table_.objects) sorted[next[each.sample]++] = each;
    table_.objects = std::move(sorted);
  }

  void add_fields() {
    const std::size_t numbers = 4 + 1 + table_.flag_names.size() + (table_.has_area ? 1 : 0);
    std::uint64_t objects_max = 0;
    for (std::uint64_t sample = 0; sample < size(); ++sample) {
      objects_max = std::max<std::uint64_t>(objects_max, objects_of(sample).size());
    }
    constexpr std::uint64_t names_bytes = 160;
    add_field("json", names_bytes + objects_max * (numbers * number_bytes_max + 3));
    if (table_.file.empty()) return;
    for (std::uint16_t field = 1; field < (table_.keypoint_numbers != 0 ? 3 : 2); ++field) {
      std::uint64_t most = 0;
      for (std::uint64_t sample = 0; sample < size(); ++sample) {
        std::uint64_t bytes = field == 1 ? numbers_of(sample).size() + 2 : 2;
        for (const boxed_object& each : objects_of(sample)) {
          const std::uint64_t least = field == 1 ? null_text.size() : zeros().size();
          bytes += 3 + std::max<std::uint64_t>((each.*pieces_of(field)).bytes, least);
        }
        most = std::max(most, bytes);
      }
      add_field(field == 1 ? "segmentation" : "keypoints", most);
    }
  }
  void add_field(std::string name, std::uint64_t bytes_max) {
    field_info& field = fields_.emplace_back();
    field.name = std::move(name);
    field.kind = field_kind::text;
    field.samples = size();
    field.bytes_max = bytes_max;
    field.bytes_total = size() * bytes_max;
    forms_.push_back(part_form::produced);
  }

  // Calls add(object) for each of a sample, with commas between.
  template <class Add>
  void add_list(std::string& text, std::string_view key, std::uint64_t sample, const Add& add) const {
    str_append(text, "\"", key, "\":[");
    const std::size_t begin = text.size();
    for (const boxed_object& each : objects_of(sample)) {
      if (text.size() > begin) text += ',';
      add(each);
    }
    text += "],";
  }
  void add_flags(std::string& text, std::uint64_t sample) const {
    for (std::size_t flag = 0; flag < table_.flag_names.size(); ++flag) {
      add_list(text, table_.flag_names[flag], sample,
               [&](const boxed_object& each) { text += each.flags[flag] != 0 ? '1' : '0'; });
    }
  }

  [[nodiscard]] std::string json_of(std::uint64_t sample) const {
    std::string text = "{";
    if (!table_.image_ids.empty()) str_append(text, "\"image_id\":", table_.image_ids[sample], ",");
    add_list(text, "boxes", sample, [&](const boxed_object& each) {
      for (std::size_t i = 0; i < each.box.size(); ++i) {
        text += i == 0 ? '[' : ',';
        append_number(text, each.box[i]);
      }
      text += ']';
    });
    add_list(text, "classes", sample, [&](const boxed_object& each) { str_append(text, each.class_number); });
    add_flags(text, sample);
    if (table_.has_area) {
      add_list(text, "area", sample, [&](const boxed_object& each) { append_number(text, each.area); });
    }
    text.back() = '}';
    return text;
  }

  // What a mask has to know of each segmentation; the list of them follows.
  [[nodiscard]] std::string numbers_of(std::uint64_t sample) const {
    std::string text = "{";
    add_list(text, "categories", sample,
             [&](const boxed_object& each) { str_append(text, table_.category_ids[each.class_number]); });
    add_flags(text, sample);
    add_list(text, "at", sample, [&](const boxed_object& each) { str_append(text, each.segmentation.offset); });
    return text + "\"segmentation\":";
  }

  // Of an object without keypoints: all of them unlabelled, so that object i has list i.
  [[nodiscard]] std::string zeros() const {
    std::string text;
    for (std::size_t i = 0; i < table_.keypoint_numbers; ++i) text += i == 0 ? "0" : ",0";
    return text;
  }

  [[nodiscard]] std::vector<std::byte> list_of(std::uint64_t sample, pieces which) const {
    const bool are_keypoints = which == &boxed_object::keypoints;
    std::vector<std::byte> list;
    const auto add = [&](std::string_view text) {
      const auto bytes = std::as_bytes(std::span(text));
      list.insert(list.end(), bytes.begin(), bytes.end());
    };
    if (!are_keypoints) add(numbers_of(sample));
    add("[");
    bool is_first = true;
    for (const boxed_object& each : objects_of(sample)) {
      const file_piece& piece = each.*which;
      if (!std::exchange(is_first, false)) add(",");
      if (piece.bytes == 0) {
        add(are_keypoints ? str_cat("[", zeros(), "]") : std::string(null_text));
        continue;
      }
      if (are_keypoints) add("[");
      const std::size_t begin = list.size();
      list.resize(begin + piece.bytes);
      const std::lock_guard lock(reading_);  // A file_bytes is one thread's at a time.
      if (file_->read(piece.offset, std::span(list).subspan(begin)) != piece.bytes) {
        throw error(errc::io, str_cat(table_.file, " has become shorter"));
      }
      if (are_keypoints) add("]");
    }
    add(are_keypoints ? "]" : "]}");
    return list;
  }

  static constexpr std::string_view null_text = "null";

  column_table columns_;
  table_of_boxes table_;
  std::vector<std::uint32_t> first_;  // of each sample's objects, and the end
  std::unique_ptr<local_file> file_;
  std::unique_ptr<file_staleness> watch_;
  mutable std::mutex reading_;
};

}  // namespace

dataset dataset_of_boxes(table_of_boxes table) { return dataset(std::make_shared<boxes_model>(std::move(table))); }

}  // namespace leat::datasets
