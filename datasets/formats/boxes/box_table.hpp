// Boxes of pictures, as COCO and Pascal VOC have them: of each picture its name and its objects. A sample is their JSON.
#pragma once

#include <leat/samples.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// A piece of the file that the boxes come from; 0 bytes: there is none.
struct file_piece {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// A thing in a picture.
///   sample   its picture
///   flags    by table_of_boxes::flag_names
struct boxed_object {
  std::array<double, 4> box{};
  double area = 0;
  file_piece segmentation;
  file_piece keypoints;
  std::uint32_t sample = 0;
  std::uint32_t class_number = 0;
  std::array<std::uint8_t, 2> flags{};
};

///   pictures       names, in the order of the samples
///   image_ids      as many, or none
///   objects        in any order; those of a picture stay in theirs
///   category_ids   of each class, as the file numbers them; none where there are no pieces
///   flag_names     at most as many as boxed_object::flags
///   file           of pieces; empty: there are none
struct table_of_boxes {
  std::string format;
  std::vector<std::string> pictures;
  std::vector<std::int64_t> image_ids;
  std::vector<boxed_object> objects;
  std::vector<std::string> classes;
  std::vector<std::int64_t> category_ids;
  std::vector<std::string> flag_names;
  bool has_area = false;
  std::size_t keypoint_numbers = 0;  // of an object that has some; 0: none has
  std::string file;
};

/// The fields "json" and, of a file, "segmentation" and "keypoints".
[[nodiscard]] dataset dataset_of_boxes(table_of_boxes table);

/// The table of a file of COCO's annotations.
///   path     for messages, and for pieces that are read later
///   throws   error{errc::format} naming the byte
[[nodiscard]] table_of_boxes read_coco(const std::string& path, std::string_view text);

/// Appends the objects of an annotation of Pascal VOC.
///   classes   named so far: new ones are added, and numbered in their order
///   throws    error{errc::format} naming path and byte
void read_voc(const std::string& path, std::string_view xml, std::uint32_t sample, std::vector<std::string>& classes,
              std::vector<boxed_object>& objects);

}  // namespace leat::datasets
