// open_coco(), open_voc() and open_yolo().
#include "datasets/formats/boxes/box_table.hpp"
#include "datasets/model/model.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open_boxes.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using json = nlohmann::json;
using testing::message_of;
using testing::temporary_directory;

void put(const fs::path& path, std::string_view content = "a picture") {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string value(const dataset& of, std::uint64_t sample, std::string_view field) {
  const std::vector<std::byte> bytes = of.read(sample, field);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Written as pycocotools' files are, with numbers of instances_val2017.json.
constexpr std::string_view coco = R"({"info": {"year": 2017}, "licenses": [],
 "images": [{"id": 785, "file_name": "000000000785.jpg", "width": 640, "height": 425},
            {"id": 139, "file_name": "000000000139.jpg", "width": 640, "height": 426},
            {"id": 872, "file_name": "sub\/872.jpg", "width": 621, "height": 640},
            {"id": 1, "file_name": "gone.jpg", "width": 6, "height": 4}],
 "annotations": [
  {"segmentation": [[240.86, 211.31, 240.16, 197.19]], "area": 531.8071000000001, "iscrowd": 0, "image_id": 139,
   "bbox": [236.98, 142.51, 24.7, 69.5], "category_id": 64, "id": 26547},
  {"segmentation": {"counts": [272, 2], "size": [426, 640]}, "iscrowd": 1, "image_id": 785, "bbox": [0, 1e1, 2.5, 4],
   "category_id": 1, "id": 5, "keypoints": [1, 2, 2, 3, 4, 1]},
  {"image_id": 139, "bbox": [7.03, 167.76, 149.32, 94.87], "category_id": 72, "area": 13244.657700000002, "id": 34646,
   "keypoints": []},
  {"image_id": 785, "bbox": [5, 6, 7, 8], "category_id": 64, "id": 6, "keypoints": [ 9, 9, 0 ]}],
 "categories": [{"supercategory": "x", "id": 64, "name": "potted plant"}, {"id": 1, "name": "person"},
                {"id": 72, "name": "tv \u00e9"}]})";

struct coco_files {
  temporary_directory root;
  std::string annotations = (root.path() / "instances.json").string();
  std::string pictures = (root.path() / "images").string();

  explicit coco_files(std::string_view content = coco) {
    put(annotations, content);
    for (const char* const each : {"000000000139.jpg", "000000000785.jpg", "sub/872.jpg", "unlabelled.jpg"}) {
      put(fs::path(pictures) / each, each);
    }
  }
};

TEST(open_coco, joins_pictures_and_their_boxes) {
  const coco_files files;
  const dataset set = open_coco(files.annotations, files.pictures);
  ASSERT_EQ(set.size(), 3U);
  EXPECT_THAT(set.classes(), ElementsAre("person", "potted plant", "tv \u00e9"));
  EXPECT_EQ(value(set, 0, "jpg"), "000000000139.jpg");
  const json first = json::parse(value(set, 0, "json"));
  EXPECT_EQ(first.at("image_id"), 139);
  EXPECT_EQ(first.at("classes"), json({1, 2}));
  EXPECT_EQ(first.at("iscrowd"), json({0, 0}));
  EXPECT_EQ(first.at("area"), json({531.8071000000001, 13244.657700000002}));
  constexpr double in_order[2][4] = {{236.98, 142.51, 261.68, 212.01}, {7.03, 167.76, 156.35, 262.63}};
  for (std::size_t box = 0; box < 2; ++box) {
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(first.at("boxes").at(box).at(i).get<double>(), in_order[box][i], 1e-9);
    }
  }
  EXPECT_EQ(json::parse(value(set, 1, "json")), json::parse(R"({"image_id": 785,
    "boxes": [[0, 10, 2.5, 14], [5, 6, 12, 14]], "classes": [0, 1], "iscrowd": [1, 0], "area": [10, 56]})"));
  EXPECT_EQ(value(set, 2, "jpg"), "sub/872.jpg");
  EXPECT_EQ(value(set, 2, "json"), R"({"image_id":872,"boxes":[],"classes":[],"iscrowd":[],"area":[]})");
  const std::string polygon_at = std::to_string(coco.find("[[240.86"));
  EXPECT_EQ(value(set, 0, "segmentation"), R"({"categories":[64,72],"iscrowd":[0,0],"at":[)" + polygon_at +
                                               R"(,0],"segmentation":[[[240.86, 211.31, 240.16, 197.19]],null]})");
  const std::string runs_at = std::to_string(coco.find("{\"counts\""));
  EXPECT_EQ(value(set, 1, "segmentation"),
            R"({"categories":[1,64],"iscrowd":[1,0],"at":[)" + runs_at +
                R"(,0],"segmentation":[{"counts": [272, 2], "size": [426, 640]},null]})");
  EXPECT_EQ(value(set, 2, "segmentation"), R"({"categories":[],"iscrowd":[],"at":[],"segmentation":[]})");
  EXPECT_EQ(value(set, 1, "keypoints"), "[[1, 2, 2, 3, 4, 1],[9, 9, 0]]");
  EXPECT_EQ(value(set, 0, "keypoints"), "[[0,0,0,0,0,0],[0,0,0,0,0,0]]");
  EXPECT_EQ(set.column(1, "image_id"), 785);
  EXPECT_THAT(set.notes(), ElementsAre("join: 1 of 4 samples of the left side without a partner: unlabelled.jpg",
                                       "join: 1 of 4 samples of the right side without a partner: gone.jpg"));
  for (std::uint64_t sample = 0; sample < set.size(); ++sample) {
    for (const field_info& field : set.fields()) {
      if (!field.column) EXPECT_LE(value(set, sample, field.name).size(), field.bytes_max) << field.name;
    }
  }
}

TEST(open_coco, says_that_its_file_has_changed) {
  const coco_files files;
  const dataset set = open_coco(files.annotations, files.pictures);
  EXPECT_FALSE(set.model()->changed(datasets::staleness_check::epoch));
  put(files.annotations, std::string(coco) + "\n");
  EXPECT_THAT(set.model()->changed(datasets::staleness_check::epoch).value_or(""), HasSubstr("instances.json"));
}

// The file with `from` replaced, and the byte that a message names.
std::string refusal(std::string_view from, std::string_view to) {
  std::string text(coco);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const coco_files files(text);
  const std::string message =
      message_of(errc::format, [&] { static_cast<void>(open_coco(files.annotations, files.pictures)); });
  EXPECT_THAT(message, HasSubstr("instances.json: byte "));
  return message;
}

TEST(open_coco, refuses_what_is_wrong_with_its_place) {
  EXPECT_THAT(refusal("\"images\"", "\"pictures\""), HasSubstr("byte 0: no list 'images'"));
  EXPECT_THAT(refusal("\"id\": 139", "\"id\": 785"), HasSubstr("two pictures have the id 785"));
  EXPECT_THAT(refusal("\"id\": 64,", "\"id\": 1,"), HasSubstr("two categories have the id 1"));
  EXPECT_THAT(refusal("\"image_id\": 139", "\"image_id\": 138"), HasSubstr("in the picture 138"));
  EXPECT_THAT(refusal("\"category_id\": 72", "\"category_id\": 73"), HasSubstr("of the category 73"));
  EXPECT_THAT(refusal("[5, 6, 7, 8]", "[5, 6, 7]"), HasSubstr("'bbox' has not four numbers"));
  EXPECT_THAT(refusal("[5, 6, 7, 8]", "[5, 6, 7, 8, 9]"), HasSubstr("'bbox' has not four numbers"));
  EXPECT_THAT(refusal("[5, 6, 7, 8]", "[5, 6, -7, 8]"), HasSubstr("negative"));
  EXPECT_THAT(refusal("[5, 6, 7, 8]", "[5, , 7, 8]"), HasSubstr("no finite number"));
  EXPECT_THAT(refusal("[5, 6, 7, 8]", "[5, NaN, 7, 8]"), HasSubstr("no finite number"));
  EXPECT_THAT(refusal("[5, 6, 7, 8]", "[5, 1e999, 7, 8]"), HasSubstr("no finite number"));
  EXPECT_THAT(refusal("\"iscrowd\": 1", "\"iscrowd\": 2"), HasSubstr("'iscrowd' is neither 0 nor 1"));
  EXPECT_THAT(refusal("\"id\": 139", "\"id\": 13.9"), HasSubstr("'id' is no whole number"));
  EXPECT_THAT(refusal("\"000000000785.jpg\"", "17"), HasSubstr("'file_name' is no text"));
  EXPECT_THAT(refusal("\"name\": \"person\"}", "}"), HasSubstr("byte"));
  // The byte where a box stands.
  const std::string text(coco);
  EXPECT_THAT(refusal("[5, 6, 7, 8]", "[5, 6, x, 8]"),
              HasSubstr("byte " + std::to_string(text.find("[5, 6, 7, 8]") + 7)));
}

TEST(open_coco, of_a_file_that_is_cut_anywhere_is_refused) {
  for (std::size_t bytes = 0; bytes < coco.size(); ++bytes) {
    ASSERT_THAT(message_of(errc::format, [&] { static_cast<void>(datasets::read_coco("a", coco.substr(0, bytes))); }),
                HasSubstr("a: byte "));
  }
  EXPECT_EQ(datasets::read_coco("a", coco).objects.size(), 4U);
}

constexpr std::string_view voc = R"(<?xml version="1.0"?>
<annotation>
  <folder>VOC2007</folder><filename>000001.jpg</filename>
  <size><width>353</width><height>500</height><depth>3</depth></size><segmented/>
  <object>
    <name>dog</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>
    <bndbox><xmin>48</xmin><ymin>240</ymin><xmax>195</xmax><ymax>371.5</ymax></bndbox>
    <part><name>head</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></part>
  </object>
  <!-- another -->
  <object><name>cat &amp; mouse</name><difficult>1</difficult>
    <bndbox><ymin>12</ymin><xmin>8</xmin><xmax>352</xmax><ymax>498</ymax></bndbox></object>
</annotation>
)";

void put_voc(const fs::path& root) {
  put(root / "Annotations/000001.xml", voc);
  put(root / "Annotations/000002.xml", "<annotation></annotation>");
  put(root / "JPEGImages/000001.jpg");
  put(root / "JPEGImages/000002.jpg");
  put(root / "ImageSets/Main/train.txt", "000002\n");
  put(root / "ImageSets/Main/dog_train.txt", "000001  1\r\n000002 -1\r\n");
}

TEST(open_voc, joins_pictures_and_their_annotations) {
  const temporary_directory root;
  put_voc(root.path());
  const dataset set = open_voc(root.path().string());
  ASSERT_EQ(set.size(), 2U);
  EXPECT_THAT(set.classes(), ElementsAre("cat & mouse", "dog"));
  EXPECT_EQ(json::parse(value(set, 0, "json")), json::parse(R"({"boxes": [[48, 240, 195, 371.5], [8, 12, 352, 498]],
    "classes": [1, 0], "difficult": [0, 1], "truncated": [1, 0]})"));
  EXPECT_EQ(value(set, 1, "json"), R"({"boxes":[],"classes":[],"difficult":[],"truncated":[]})");
  EXPECT_EQ(open_voc(root.path().string(), "train").size(), 1U);
  EXPECT_THAT(open_voc(root.path().string(), "train").classes(), ElementsAre("cat & mouse", "dog"))
      << "a class has one number in all splits";
  EXPECT_EQ(open_voc(root.path().string(), "dog_train").size(), 2U);
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open_voc(root.path().string(), "val")); }),
              HasSubstr("val.txt"));
}

TEST(open_voc, refuses_xml_that_is_none_with_its_place) {
  const auto refusal_of = [](std::string_view from, std::string_view to) {
    std::string text(voc);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::vector<std::string> classes;
    std::vector<datasets::boxed_object> objects;
    return message_of(errc::format, [&] { datasets::read_voc("1.xml", text, 0, classes, objects); });
  };
  EXPECT_THAT(refusal_of("</size>", ""), HasSubstr("1.xml: byte "));
  EXPECT_THAT(refusal_of("</annotation>", ""), HasSubstr("the file ends within <annotation>"));
  EXPECT_THAT(refusal_of("<?xml version=\"1.0\"?>", "<!DOCTYPE x>"), HasSubstr("a DOCTYPE"));
  EXPECT_THAT(refusal_of("&amp;", "&bomb;"), HasSubstr("an entity other than"));
  EXPECT_THAT(refusal_of("<xmin>48</xmin>", ""), HasSubstr("an object without <xmin>"));
  EXPECT_THAT(refusal_of("<xmin>48<", "<xmin>4a8<"), HasSubstr("<xmin> is no finite number"));
  EXPECT_THAT(refusal_of("<xmin>48<", "<xmin>196<"), HasSubstr("below"));
  EXPECT_THAT(refusal_of("<name>dog</name>", ""), HasSubstr("an object without <name>"));
  EXPECT_THAT(refusal_of("<difficult>1<", "<difficult>yes<"), HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(refusal_of("<annotation>", "<annotations>"), HasSubstr("byte"));
  for (std::size_t bytes = 0; bytes + 2 < voc.size(); ++bytes) {
    std::vector<std::string> classes;
    std::vector<datasets::boxed_object> objects;
    ASSERT_THAT(
        message_of(errc::format, [&] { datasets::read_voc("1.xml", voc.substr(0, bytes), 0, classes, objects); }),
        HasSubstr("1.xml: byte "));
  }
}

TEST(open_yolo, joins_pictures_and_files_of_lines) {
  const temporary_directory root;
  put(root.path() / "images/train/a.jpg");
  put(root.path() / "images/train/b.png");
  put(root.path() / "images/val/c.jpg");
  put(root.path() / "labels/train/a.txt", "0 0.5 0.5 0.25 0.125\n");
  put(root.path() / "labels/train/b.txt", "");
  put(root.path() / "labels/val/c.txt", "3 0.1 0.2 0.3 0.4\n");
  const dataset all = open_yolo(root.path().string());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(all.notes().empty());
  EXPECT_EQ(value(all, 0, "txt"), "0 0.5 0.5 0.25 0.125\n");
  EXPECT_EQ(value(all, 1, "txt"), "");
  EXPECT_EQ(value(all, 2, "txt"), "3 0.1 0.2 0.3 0.4\n");
  EXPECT_EQ(open_yolo(root.path().string(), "val").size(), 1U);
  fs::remove(root.path() / "labels/val/c.txt");
  const dataset lacking = open_yolo(root.path().string());
  EXPECT_EQ(value(lacking, 2, "txt"), "");
  EXPECT_EQ(lacking.name(2), all.name(2));
  EXPECT_THAT(lacking.notes(),
              ElementsAre("yolo: 1 of 3 pictures have no file of labels, and so no boxes; the first is "
                          "val/c.jpg"));
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open_yolo(root.path().string(), "val")); }),
              HasSubstr("no picture has labels"));
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open_yolo(root.path().string(), "test")); }),
              HasSubstr("labels/test: no folder of labels"));
}

}  // namespace
}  // namespace leat
