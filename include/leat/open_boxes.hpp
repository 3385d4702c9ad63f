// Sets of pictures with boxes of what is in them: COCO, Pascal VOC, YOLO. Each is a join of a folder of pictures and what is
// known about them: the field "jpg", of any picture format, and those below.
#pragma once

#include <leat/compiler.hpp>
#include <leat/samples.hpp>

#include <string>

#pragma GCC visibility push(default)
namespace leat {

/// COCO: the pictures of a folder that a file of annotations lists, in the folder's order.
///   json           {"image_id": 139, "boxes": [[236.98, 142.51, 261.68, 212.01], ...], "classes": [58, ...], "iscrowd": [0,
///                  ...], "area": [1035.7, ...]}, of each object as the file has it, in its order. Boxes are left, top, right,
///                  bottom. Classes are numbered from 0 by ascending category_id; classes() has their names
///   segmentation   {"categories": [64, ...], "iscrowd": [0, ...], "at": [90210, ...], "segmentation": [..., ...]}, of each object
///                  what the file has: category_id; the byte of the file at which the last begins; polygons, or run lengths, or null
///                  where there is neither. It is read from the file when it is asked for. mask{"segmentation"}.follows("jpg")
///                  makes a map of categories of it, boxes::masks("segmentation") a plane for each box
///   keypoints      read likewise, where any object has some: a list for each object, x, y and visibility of each point; zeros for an object
///                  that has none, so that list i is of box i
///   image_id       a column
///   annotations    a file of a disk: instances_train2017.json, person_keypoints_val2017.json
///   pictures       their folder; file_name is the path below it. What one side lacks is left out, and counted in notes()
///   memory         while it is opened the file's bytes; then some 80 bytes for each object
///   throws         error{errc::format} naming the byte at which the file is wrong: no JSON, no list of objects, a box that is not
///                  four finite numbers or has a negative side, a picture or category that is not listed, an id twice;
///                  error{errc::not_found}, error{errc::io}; error{errc::unsupported} for an address
///   source         https://cocodataset.org/#format-data; torchvision's CocoDetection has the same order where names ascend with ids
[[nodiscard]] dataset open_coco(const std::string& annotations, const std::string& pictures);

/// Pascal VOC: JPEGImages/ and Annotations/ of a folder, by stem.
///   json      {"boxes": [[48, 240, 195, 371], ...], "classes": [11, ...], "difficult": [0, ...], "truncated": [0, ...]}. Boxes are
///             xmin, ymin, xmax, ymax, as the file has them. Classes are those of all annotations of the folder, also with
///             a split, numbered in the order of their names
///   split     pictures of ImageSets/Main/<split>.txt alone. Empty (default): all
///   throws    error{errc::format} naming file and byte: XML that is none, a DOCTYPE, an object without name or box;
///             error{errc::not_found}, error{errc::io}
[[nodiscard]] dataset open_voc(const std::string& folder, const std::string& split = {});

/// YOLO: images/ and labels/ of a folder; the labels of images/a/1.jpg are labels/a/1.txt.
///   txt       the file as it is: a line "class cx cy width height" for each box. Without a file, or in an empty one, there is
///             no box; notes() says how many pictures have no file
///   split     images/<split> and labels/<split> alone. Empty (default): all
///   throws    error{errc::not_found} where either folder is not there, or no picture has labels
[[nodiscard]] dataset open_yolo(const std::string& folder, const std::string& split = {});

}  // namespace leat
#pragma GCC visibility pop
