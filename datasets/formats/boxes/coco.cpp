// COCO's annotations: one JSON object with lists of pictures, categories and objects.
#include "base/hash_map.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "datasets/formats/boxes/box_table.hpp"
#include "datasets/wire/json_value.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

class coco_reader {
 public:
  coco_reader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  table_of_boxes read() {
    table_of_boxes table;
    table.format = "coco";
    table.flag_names = {"iscrowd"};
    table.has_area = true;
    table.file = path_;
    std::vector<json_member> lists;
    if (const auto fault = read_members(text_, lists)) fail(text_.data() + fault->at, fault->why);
    read_pictures(list_named(lists, "images"), table);
    read_categories(list_named(lists, "categories"), table);
    read_objects_of(list_named(lists, "annotations"), table);
    return table;
  }

 private:
  [[noreturn]] void fail(const char* at, std::string_view why) const {
    throw error(errc::format, str_cat(path_, ": byte ", at - text_.data(), ": ", why));
  }
  [[noreturn]] void fail(std::string_view at, std::string_view why) const { fail(at.data(), why); }

  [[nodiscard]] std::string_view list_named(const std::vector<json_member>& lists, std::string_view key) const {
    const auto found =
        std::find_if(lists.begin(), lists.end(), [&](const json_member& each) { return each.key == key; });
    if (found == lists.end()) {
      fail(text_, str_cat("no list '", key, "', which COCO's annotations have"));
    }
    if (found->kind != json_kind::list) fail(found->written, str_cat("'", key, "' is no list"));
    return found->written;
  }

  // Calls work for each object of a list; its members are then in members_.
  template <class Work>
  void each_of(std::string_view list, const Work& work) {
    std::vector<std::string_view> objects;
    if (const auto fault = read_objects(list, objects)) fail(list.data() + fault->at, fault->why);
    for (const std::string_view object : objects) {
      members_.clear();
      if (const auto fault = read_members(object, members_)) fail(object.data() + fault->at, fault->why);
      work(object);
    }
  }
  [[nodiscard]] const json_member* find(std::string_view key) const {
    const auto found =
        std::find_if(members_.begin(), members_.end(), [&](const json_member& each) { return each.key == key; });
    return found == members_.end() || found->kind == json_kind::null ? nullptr : &*found;
  }
  [[nodiscard]] const json_member& get(std::string_view object, std::string_view key, json_kind kind,
                                       std::string_view what) const {
    const json_member* const found = find(key);
    if (found == nullptr) fail(object, str_cat("the object has no '", key, "'"));
    if (found->kind != kind) fail(found->written, str_cat("'", key, "' is no ", what));
    return *found;
  }
  [[nodiscard]] std::int64_t whole(std::string_view object, std::string_view key) const {
    const json_member& found = get(object, key, json_kind::number, "whole number");
    const std::optional<std::int64_t> value = parse_signed(found.written);
    if (!value) fail(found.written, str_cat("'", key, "' is no whole number"));
    return *value;
  }
  [[nodiscard]] std::string text(std::string_view object, std::string_view key) const {
    const json_member& found = get(object, key, json_kind::text, "text");
    std::string value(found.written.size(), '\0');
    std::span<std::byte> bytes = std::as_writable_bytes(std::span(value));
    if (const auto why = unescape(found.written, bytes)) fail(found.written, str_cat("'", key, "': ", *why));
    value.resize(bytes.size());
    return value;
  }
  [[nodiscard]] double real(std::string_view written, std::string_view key) const {
    const std::optional<double> value = parse_real(written);
    if (!value || !std::isfinite(*value)) fail(written, str_cat("'", key, "' is no finite number"));
    return *value;
  }

  void read_pictures(std::string_view list, table_of_boxes& table) {
    struct picture {
      std::int64_t id;
      std::string name;
      std::string_view object;
    };
    std::vector<picture> all;
    each_of(list, [&](std::string_view object) {
      all.push_back({whole(object, "id"), text(object, "file_name"), object});
      if (all.back().name.empty()) fail(object, "'file_name' is empty");
    });
    if (all.size() >= std::numeric_limits<std::uint32_t>::max()) fail(list, "more than 4,294,967,294 pictures");
    // As pycocotools' users have them: sorted(coco.imgs).
    std::sort(all.begin(), all.end(), [](const picture& a, const picture& b) { return a.id < b.id; });
    for (picture& each : all) {
      if (!table.image_ids.empty() && table.image_ids.back() == each.id) {
        fail(each.object, str_cat("two pictures have the id ", each.id));
      }
      samples_.emplace(each.id, static_cast<std::uint32_t>(table.pictures.size()));
      table.image_ids.push_back(each.id);
      table.pictures.push_back(std::move(each.name));
    }
  }

  void read_categories(std::string_view list, table_of_boxes& table) {
    std::vector<std::pair<std::int64_t, std::string>> all;
    each_of(list, [&](std::string_view object) {
      all.emplace_back(whole(object, "id"), text(object, "name"));
      if (!classes_.emplace(all.back().first, 0).second)
        fail(object, str_cat("two categories have the id ", all.back().first));
    });
    std::sort(all.begin(), all.end());
    for (auto& [id, name] : all) {
      classes_[id] = static_cast<std::uint32_t>(table.classes.size());
      table.classes.push_back(std::move(name));
      table.category_ids.push_back(id);
    }
  }

  void read_objects_of(std::string_view list, table_of_boxes& table) {
    each_of(list, [&](std::string_view object) {
      boxed_object& made = table.objects.emplace_back();
      const std::int64_t image_id = whole(object, "image_id");
      const auto sample = samples_.find(image_id);
      if (sample == samples_.end())
        fail(object, str_cat("the object is in the picture ", image_id, ", which 'images' does not list"));
      made.sample = sample->second;
      const std::int64_t category = whole(object, "category_id");
      const auto number = classes_.find(category);
      if (number == classes_.end())
        fail(object, str_cat("the object is of the category ", category, ", which 'categories' does not list"));
      made.class_number = number->second;
      const std::array<double, 4> box = box_of(get(object, "bbox", json_kind::list, "list").written);
      made.box = {box[0], box[1], box[0] + box[2], box[1] + box[3]};
      if (const json_member* const crowd = find("iscrowd")) {
        const bool is_known = crowd->written == "0" || crowd->written == "1" || crowd->kind == json_kind::truth;
        if (!is_known) fail(crowd->written, "'iscrowd' is neither 0 nor 1");
        made.flags[0] = crowd->written == "1" || crowd->written == "true" ? 1 : 0;
      }
      const json_member* const area = find("area");
      made.area = area != nullptr ? real(area->written, "area") : box[2] * box[3];
      made.segmentation = piece_of("segmentation");
      made.keypoints = inside_of(piece_of("keypoints"));
      if (table.keypoint_numbers == 0 && made.keypoints.bytes != 0) {
        const std::string_view numbers = text_.substr(made.keypoints.offset, made.keypoints.bytes);
        table.keypoint_numbers = static_cast<std::size_t>(std::count(numbers.begin(), numbers.end(), ',')) + 1;
        constexpr std::size_t most = 3 * 4096;  // Objects without any are filled up with as many.
        if (table.keypoint_numbers > most) fail(numbers, "an object has more than 4,096 keypoints");
      }
    });
    if (table.objects.size() > std::numeric_limits<std::uint32_t>::max()) fail(list, "more than 4,294,967,295 objects");
  }

  [[nodiscard]] std::array<double, 4> box_of(std::string_view list) const {
    std::array<double, 4> box{};
    std::string_view rest = list.substr(1, list.size() - 2);
    for (std::size_t i = 0; i < box.size(); ++i) {
      const std::size_t comma = rest.find(',');
      if ((comma == std::string_view::npos) != (i + 1 == box.size())) fail(list, "'bbox' has not four numbers");
      const std::string_view number = trimmed(rest.substr(0, comma));
      box[i] = real(number.empty() ? list.substr(0, 1) : number, "bbox");
      if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
    }
    if (box[2] < 0 || box[3] < 0) fail(list, "'bbox' has a negative width or height");
    return box;
  }
  [[nodiscard]] file_piece piece_of(std::string_view key) const {
    const json_member* const found = find(key);
    if (found == nullptr) return {};
    if (found->kind != json_kind::list && found->kind != json_kind::object) {
      fail(found->written, str_cat("'", key, "' is neither a list nor an object"));
    }
    return {static_cast<std::uint64_t>(found->written.data() - text_.data()), found->written.size()};
  }

  // The numbers of a list.
  [[nodiscard]] file_piece inside_of(file_piece list) const {
    if (list.bytes < 2 || text_[list.offset] != '[') return {};
    const std::string_view inside = trimmed(text_.substr(list.offset + 1, list.bytes - 2));
    if (inside.empty()) return {};
    return {static_cast<std::uint64_t>(inside.data() - text_.data()), inside.size()};
  }

  const std::string& path_;
  std::string_view text_;
  std::vector<json_member> members_;
  hash_map<std::int64_t, std::uint32_t> samples_;
  hash_map<std::int64_t, std::uint32_t> classes_;
};

}  // namespace

table_of_boxes read_coco(const std::string& path, std::string_view text) { return coco_reader(path, text).read(); }

}  // namespace leat::datasets
