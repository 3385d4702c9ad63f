// Masks and boxes: which fields the command makes of them, and how they are drawn over a picture.
#include "tools/draw_targets.hpp"

#include "tests/support/make_picture.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Pictures of 37 x 37, of which an eval crop of 32 takes what begins at (2, 2).
std::string write_shard(const temporary_directory& directory) {
  tar_writer writer;
  for (const char* const key : {"a", "b", "c"}) {
    writer.add_file(std::string(key) + ".jpg", make_jpeg(make_texture(1, 37, 37), {}));
    writer.add_file(std::string(key) + ".seg.png",
                    make_mask_png(37, 37, std::vector<std::uint16_t>(37 * 37, 3), 2, true));
    writer.add_file(std::string(key) + ".json", std::string("{\"boxes\": [[8, 8.5, 24, 60]], \"classes\": [5]}"));
  }
  const std::vector<std::byte> archive = writer.finish();
  const std::string path = (directory.path() / "shard.tar").string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(archive.data()), static_cast<std::streamsize>(archive.size()));
  return path;
}

TEST(targets, follow_the_picture_in_an_epoch_and_on_a_page) {
  const temporary_directory directory;
  const std::string shard = write_shard(directory);
  const std::vector<std::string> targets{"--mask", "seg.png", "--boxes", "json:boxes:classes", "--size", "32"};
  std::vector<std::string> epoch{"epoch", shard, "--json"};
  epoch.insert(epoch.end(), targets.begin(), targets.end());
  const ended loaded = run(epoch);
  EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_EQ(loaded.json().at("samples"), 3);

  const std::string page = (directory.path() / "sheet.html").string();
  std::vector<std::string> show{"show", shard, "--transform", "eval", "-o", page};
  show.insert(show.end(), targets.begin(), targets.end());
  const ended shown = run(show);
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(text_of(page), HasSubstr("5: 6, 6.5 to 22, 32"));

  const ended wrong = run({"epoch", shard, "--mask", "seg.pgn"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err,
              HasSubstr("--mask 'seg.pgn': no such field; there is jpg, seg.png, json; did you mean 'seg.png'?"));
  EXPECT_THAT(run({"epoch", shard, "--boxes", "json:"}).err, HasSubstr("it is NAME, NAME:KEY or NAME:KEY:LABELS"));
  // Without the option it is a picture, of which inspect says what becomes of it.
  EXPECT_THAT(run({"inspect", shard}).out,
              HasSubstr("3 PNGs have a palette: its colours are taken; a mask (--mask) keeps the indexes"));
}

TEST(targets, of_coco_are_read_from_annotations_and_a_folder) {
  const temporary_directory directory;
  std::filesystem::create_directory(directory.path() / "images");
  const std::vector<std::byte> jpeg = make_jpeg(make_texture(1, 37, 37), {});
  std::ofstream(directory.path() / "images" / "a.jpg", std::ios::binary)
      .write(reinterpret_cast<const char*>(jpeg.data()), static_cast<std::streamsize>(jpeg.size()));
  const std::string annotations = (directory.path() / "instances.json").string();
  std::ofstream(annotations)
      << R"({"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 17, "name": "cat"}],
    "annotations": [{"image_id": 1, "bbox": [0, 0, 20, 30], "category_id": 17, "iscrowd": 0, "area": 600,
                     "segmentation": [[0, 0, 20, 0, 20, 30]]}]})";
  const std::string images = (directory.path() / "images").string();
  const std::vector<std::string> plain{"epoch", annotations, "--images", images, "--json"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = plain;
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const ended loaded = with({"--mask", "segmentation", "--boxes", "json:boxes:classes"});
  EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_EQ(loaded.json().at("samples"), 1);
  const std::string page = (directory.path() / "sheet.html").string();
  const ended shown = run({"show", annotations, "--images", images, "--mask", "segmentation", "--boxes",
                           "json:boxes:classes", "--transform", "eval", "-o", page});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(with({"--tokens", "8"}).exit_code, 2);
  EXPECT_THAT(with({"--tokens", "8"}).err, HasSubstr("--images: the source is a file of annotations"));
  EXPECT_THAT(with({annotations}).err, HasSubstr("one file of annotations goes with one folder, and there are 2"));
  EXPECT_THAT(with({"--stride", "2"}).err, HasSubstr("this is a folder of pictures; leave it out"));
  EXPECT_THAT(
      run({"epoch", images, "--images", images}).err,
      HasSubstr("--images: the source is a file of annotations, and " + images + " is a folder; give its .json"));
  EXPECT_THAT(run({"epoch", annotations}).err,
              HasSubstr("annotations as COCO's are for open_coco(), and for --images DIR"));
  EXPECT_THAT(run({"epoch", images, "--clip", "4,"}).err, HasSubstr("--clip '4,' will not do; give how many frames"));
  EXPECT_THAT(run({"epoch", annotations, "--images", images + "x"}).err, HasSubstr("imagesx"));
}

TEST(targets, and_clips_are_loaded_by_the_command) {
  const temporary_directory directory;
  tar_writer writer;
  for (const char* const key : {"a", "b", "c"}) {
    for (int frame = 0; frame < (*key == 'b' ? 7 : 5); ++frame) {
      writer.add_file(std::string(key) + ".00" + std::to_string(frame) + ".jpg",
                      make_jpeg(make_texture(static_cast<std::uint64_t>(frame), 37, 37), {}));
    }
    writer.add_file(std::string(key) + ".json", std::string("{\"boxes\": [[8, 8.5, 24, 60]], \"classes\": [5]}"));
  }
  const std::vector<std::byte> archive = writer.finish();
  const std::string path = (directory.path() / "clips.tar").string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(archive.data()), static_cast<std::streamsize>(archive.size()));
  const ended loaded = run({"epoch", path, "--clip", "3,2", "--boxes", "json:boxes:classes", "--size", "32", "--json"});
  EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_EQ(loaded.json().at("samples"), 3);
  EXPECT_THAT(loaded.err, Not(HasSubstr("left out")));
  const ended few = run({"epoch", path, "--clip", "6", "--transform", "eval", "--size", "32"});
  EXPECT_NE(few.exit_code, 0);
  EXPECT_THAT(few.err, HasSubstr("no field '005.jpg' in this sample"));
  EXPECT_THAT(run({"epoch", path, "--clip", "0"}).err, HasSubstr("--clip"));
  EXPECT_THAT(run({"epoch", path, "--clip", "3,x"}).err, HasSubstr("--clip"));
  EXPECT_THAT(run({"epoch", path, "--clip", "3", "--views", "2"}).err, HasSubstr("leave one of them out"));
  EXPECT_THAT(run({"epoch", write_shard(directory), "--clip", "3"}).err, HasSubstr("frames are several members"));
}

TEST(targets, are_drawn_over_the_picture) {
  tools::rgb_picture picture{4, 3, std::vector<std::uint8_t>(36, 100)};
  const std::vector<std::uint8_t> numbers{0, 0, 0, 255, 1, 1, 2, 0, 0, 0, 0, 0};
  tools::draw_mask(dtype::u8, std::as_bytes(std::span(numbers)), picture);
  const auto at = [&](std::size_t i) {
    return std::vector<int>{picture.rgb[3 * i], picture.rgb[3 * i + 1], picture.rgb[3 * i + 2]};
  };
  const std::vector<int> plain{100, 100, 100};
  for (const std::size_t i : {0U, 1U, 2U, 3U, 7U, 8U, 11U}) EXPECT_EQ(at(i), plain) << i;
  EXPECT_EQ(at(4), at(5));
  EXPECT_NE(at(4), plain);
  EXPECT_NE(at(6), at(4));

  // Of u16 leat::mask ignores 65535.
  picture.rgb.assign(36, 100);
  const std::vector<std::uint16_t> wide{0, 255, 65535, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  tools::draw_mask(dtype::u16, std::as_bytes(std::span(wide)), picture);
  EXPECT_NE(at(1), plain);
  EXPECT_EQ(at(2), plain);

  picture.rgb.assign(36, 100);
  const std::vector<float> places{1, 0, 4, 3};
  const auto boxes = tools::boxes_in(std::as_bytes(std::span(places)), {});
  tools::draw_boxes(boxes, picture);
  for (const std::size_t i : {0U, 4U, 6U, 8U}) EXPECT_EQ(at(i), plain) << i;  // beside it, and in it
  for (const std::size_t i : {1U, 2U, 3U, 5U, 7U, 9U, 10U, 11U}) EXPECT_NE(at(i), plain) << i;
  EXPECT_EQ(tools::text_of(boxes), "1, 0 to 4, 3");
  EXPECT_EQ(tools::text_of({}), "none");
}

}  // namespace
}  // namespace leat::testing
