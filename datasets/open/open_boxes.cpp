// Openers of sets of pictures with boxes.
#include "base/text.hpp"
#include "base/words.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/path_error.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/formats/boxes/box_table.hpp"
#include "datasets/model/model.hpp"
#include "datasets/open/named_files.hpp"

#include <leat/error.hpp>
#include <leat/join.hpp>
#include <leat/open_boxes.hpp>
#include <leat/open_folder.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;

void refuse_address(std::string_view what, const std::string& path) {
  if (!datasets::is_remote(path)) return;
  throw error(errc::unsupported, str_cat(what, " of ", path, ": it is read from a disk; copy it there"));
}

std::string whole_file(const std::string& path) {
  const datasets::local_file file(path);
  std::string text(file.size(), '\0');
  text.resize(file.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

dataset pictures_in(const std::string& folder) {
  return open_folder(folder, {.classes = folder_options::class_folders::no});
}

// Pictures of a list, as ImageSets/Main has them: a stem, and in lists of a class a number behind it.
std::vector<std::string> stems_in(const std::string& path) {
  const std::string text = whole_file(path);
  std::vector<std::string> stems;
  for (const std::string_view line : words_of(text, "\r\n")) {
    for (const std::string_view word : words_of(line, " \t")) {
      stems.emplace_back(word);
      break;
    }
  }
  if (stems.empty()) throw error(errc::format, str_cat(path, ": no picture in it"));
  return stems;
}

std::vector<std::string> stems_of_annotations(const std::string& folder) {
  std::vector<std::string> stems;
  std::error_code failure;
  for (fs::directory_iterator each(folder, failure), end; !failure && each != end; each.increment(failure)) {
    if (each->path().extension() == ".xml") stems.push_back(each->path().stem().string());
  }
  if (failure)
    throw datasets::path_error(failure.value(), folder, "give the folder that has JPEGImages and Annotations");
  if (stems.empty()) throw error(errc::not_found, str_cat(folder, ": no .xml file in it"));
  std::sort(stems.begin(), stems.end());
  return stems;
}

// A dataset, and what the user should know about it.
class noted_model final : public datasets::dataset_model {
 public:
  noted_model(std::shared_ptr<const datasets::dataset_model> whole, std::string note) : whole_(std::move(whole)) {
    begin_as(*whole_);
    notes_.push_back(std::move(note));
  }

  std::uint64_t size() const noexcept override { return whole_->size(); }
  void parts(std::uint64_t sample, std::span<const datasets::need> needs, datasets::part_list& out) const override {
    whole_->parts(sample, needs, out);
  }
  std::string name(std::uint64_t sample) const override { return whole_->name(sample); }
  void describe(description& out) const override { whole_->describe(out); }
  dataset_memory memory() const override { return whole_->memory(); }

 private:
  std::shared_ptr<const datasets::dataset_model> whole_;
};

// Numbers classes in the order of their names.
void sort_classes(datasets::table_of_boxes& table) {
  std::vector<std::uint32_t> order(table.classes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return table.classes[a] < table.classes[b]; });
  std::vector<std::uint32_t> number(order.size());
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    number[order[i]] = i;
    names.push_back(std::move(table.classes[order[i]]));
  }
  table.classes = std::move(names);
  for (datasets::boxed_object& each : table.objects) each.class_number = number[each.class_number];
}

}  // namespace

dataset open_coco(const std::string& annotations, const std::string& pictures) {
  refuse_address("open_coco", annotations);
  const dataset boxes = datasets::dataset_of_boxes(datasets::read_coco(annotations, whole_file(annotations)));
  if (boxes.size() == 0) throw error(errc::not_found, str_cat(annotations, ": no picture in 'images'"));
  return join(pictures_in(pictures), boxes, by("name"));
}

dataset open_voc(const std::string& folder, const std::string& split) {
  refuse_address("open_voc", folder);
  const std::string annotations = str_cat(folder, "/Annotations");
  datasets::table_of_boxes table;
  table.format = "voc";
  table.flag_names = {"difficult", "truncated"};
  table.pictures =
      split.empty() ? stems_of_annotations(annotations) : stems_in(str_cat(folder, "/ImageSets/Main/", split, ".txt"));
  const auto read = [&](const std::string& stem, std::uint32_t sample, std::vector<datasets::boxed_object>& objects) {
    const std::string path = str_cat(annotations, "/", stem, ".xml");
    datasets::read_voc(path, whole_file(path), sample, table.classes, objects);
  };
  for (std::uint32_t sample = 0; sample < table.pictures.size(); ++sample) {
    read(table.pictures[sample], sample, table.objects);
  }
  if (!split.empty()) {
    // Splits of a folder number classes alike, whichever of them they hold.
    std::vector<std::string> in_split = table.pictures;
    std::sort(in_split.begin(), in_split.end());
    for (const std::string& stem : stems_of_annotations(annotations)) {
      std::vector<datasets::boxed_object> passed_over;
      if (!std::binary_search(in_split.begin(), in_split.end(), stem)) read(stem, 0, passed_over);
    }
  }
  sort_classes(table);
  return join(pictures_in(str_cat(folder, "/JPEGImages")), datasets::dataset_of_boxes(std::move(table)), by("path"));
}

dataset open_yolo(const std::string& folder, const std::string& split) {
  refuse_address("open_yolo", folder);
  const std::string below = split.empty() ? std::string() : str_cat("/", split);
  const std::string labels = str_cat(folder, "/labels", below);
  std::error_code failure;
  if (!fs::is_directory(labels, failure)) {
    throw error(errc::not_found, str_cat(labels, ": no folder of labels; give the folder that has images and labels"));
  }
  const dataset pictures = pictures_in(str_cat(folder, "/images", below));
  extent_list table;
  extent_list::field& field = table.fields.emplace_back();
  field.name = "txt";
  std::uint64_t without = 0;
  std::string first_without;
  for (std::uint64_t sample = 0; sample < pictures.size(); ++sample) {
    const std::string name = pictures.name(sample);
    const std::string path = str_cat(labels, "/", std::string_view(name).substr(0, name.rfind('.')), ".txt");
    const std::uintmax_t bytes = fs::file_size(path, failure);
    if (failure && failure != std::errc::no_such_file_or_directory) {
      throw datasets::path_error(failure.value(), path, "check the labels");
    }
    if (failure && without++ == 0) first_without = name;
    if (failure || bytes == 0) {
      field.extents.push_back({});  // No bytes of the first file.
      continue;
    }
    field.extents.push_back({.file = static_cast<std::uint32_t>(table.files.size()), .stored_bytes = bytes});
    table.files.push_back(path);
  }
  if (table.files.empty()) {
    throw error(errc::not_found,
                str_cat(labels, ": no picture has labels; those of images/a/1.jpg are labels/a/1.txt"));
  }
  dataset made = zip({pictures, from_extents(std::move(table))});
  if (without == 0) return made;
  return dataset(std::make_shared<noted_model>(
      made.model(), str_cat("yolo: ", without, " of ", pictures.size(),
                            " pictures have no file of labels, and so no boxes; the first is ", first_without)));
}

}  // namespace leat
