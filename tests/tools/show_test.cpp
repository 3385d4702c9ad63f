// leat show: the page and the grid of a real batch.
#include "stages/pixels/recipe.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <png.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct shown {
  photo_folder photos;
  temporary_directory directory;

  std::string page(const std::vector<std::string>& more = {}) const {
    const std::string file = (directory.path() / "sheet.html").string();
    std::vector<std::string> arguments{"show", photos.path().string(), "-o", file, "--size", "32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ended process = run(arguments);
    EXPECT_EQ(process.exit_code, 0) << process.err;
    EXPECT_EQ(process.err, "");
    return text_of(file);
  }
};

TEST(show, the_page_has_each_picture_beside_its_original) {
  const shown sheet;
  const std::string page = sheet.page();
  EXPECT_EQ(count_of(page, "<figure>"), 12U);
  EXPECT_EQ(count_of(page, "src=\"data:image/png;base64,"), 12U);
  EXPECT_EQ(count_of(page, "src=\"data:image/jpeg;base64,"), 12U);
  EXPECT_EQ(count_of(page, "class=\"box\""), 12U);
  for (const std::filesystem::path& file : sheet.photos.files()) {
    EXPECT_THAT(page, HasSubstr(file.filename().string()));
    EXPECT_THAT(page, HasSubstr(">" + file.parent_path().filename().string() + " ("));
  }
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

TEST(show, the_boxes_are_those_the_loader_draws) {
  const shown sheet;
  const std::string page = sheet.page({"--seed", "5", "--no-shuffle"});
  const pixels::pipeline steps({transforms::random_resized_crop{.height = 32, .width = 32}, transforms::random_flip{}});
  // Name, then box and flip of each: pictures are 64 x 48, or upright.
  const std::regex figure(
      "viewBox=\"0 0 (\\d+) (\\d+)\"[^>]*><path[^>]*/><path class=\"box\" d=\"M(\\d+) (\\d+)h(\\d+)v(\\d+)"
      "[^\"]*\"/></svg></div></div></div><figcaption>.*?<span>(flipped|not flipped)</span>");
  std::uint64_t sample = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), figure), end; it != end; ++it, ++sample) {
    const auto number = [&](std::size_t group) { return std::stoi((*it)[group].str()); };
    const pixels::geometry drawn = steps.compile(number(1), number(2), {.seed = 5, .epoch = 0, .draw = sample});
    EXPECT_EQ(drawn.box, (pixels::rectangle{number(3), number(4), number(5), number(6)})) << "sample " << sample;
    EXPECT_EQ(drawn.flip, (*it)[7] == "flipped") << "sample " << sample;
  }
  EXPECT_EQ(sample, 12U);
}

TEST(show, what_is_seen_through_a_warp_is_drawn_with_its_corners_and_the_steps_are_printed) {
  const shown sheet;
  const std::string page =
      sheet.page({"--transform", "eval", "--no-shuffle", "--augment", "vertical_flip rotate(90) invert"});
  EXPECT_EQ(count_of(page, "<b>drawn</b>vertical_flip from (1 0 0; 0 -1 32; 0 0 1), rotate"), 12U);
  EXPECT_EQ(count_of(page, "), invert</div>"), 12U);
  // The middle 32 / 36 of the shorter side: 42.67 of 48 pixels, turned and mirrored so that the upper left corner is the lower right.
  const std::regex outline(
      "viewBox=\"0 0 (\\d+) (\\d+)\"[^>]*><path[^>]*/><path class=\"box\" d=\"M([\\d.]+) ([\\d.]+)L([\\d.]+) "
      "([\\d.]+)L([\\d.]+) ([\\d.]+)L([\\d.]+) ([\\d.]+)z\"");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(page, found, outline)) << page.substr(0, 3000);
  const auto number = [&](std::size_t group) { return std::stod(found[group].str()); };
  const double side = 48.0 * 32 / 36;
  EXPECT_NEAR(number(3) - number(7), side, 1.5) << "from the right end to the left";
  EXPECT_NEAR(number(4) - number(8), side, 1.5);
  EXPECT_NEAR(number(3) + number(7), number(1), 3) << "in the middle";
  EXPECT_NEAR(number(4) + number(8), number(2), 3);
}

TEST(show, each_step_of_a_sample_is_a_picture_with_what_was_drawn) {
  const shown sheet;
  const std::string page = sheet.page({"--sample", "5", "--epoch", "2", "--seed", "3", "--augment",
                                       "random_apply(1, color_jitter(0.4, 0.3, 0, 0.1)) invert random_erasing(1)"});
  const pixels::pipeline steps({transforms::random_resized_crop{.height = 32, .width = 32}, transforms::random_flip{},
                                transforms::random_apply{1, {transforms::color_jitter{0.4, 0.3, 0, 0.1}}},
                                transforms::invert{}, transforms::random_erasing{.probability = 1}});
  pixels::recipe drawn;
  steps.draw_colour({.seed = 3, .epoch = 2, .draw = 5}, drawn);
  ASSERT_EQ(drawn.count, 4U);
  EXPECT_EQ(count_of(page, "<figure>"), 6U);  // the crop, four steps and the row
  EXPECT_EQ(count_of(page, "class=\"seen\""), 6U);
  for (const pixels::colour_pass& pass : drawn.drawn()) EXPECT_THAT(page, HasSubstr(pixels::text_of(pass)));
  EXPECT_THAT(page, HasSubstr("random_apply/color_jitter"));
  EXPECT_THAT(page, HasSubstr("color_jitter(0.4, 0.3, 0, 0.1)"));
  EXPECT_THAT(page, HasSubstr("<b>erased</b>"));
}

TEST(show, a_corrupt_sample_shows_its_reason_and_costs_no_other) {
  const shown sheet;
  std::ofstream(sheet.photos.files()[3], std::ios::trunc).flush();
  std::ofstream(sheet.photos.files()[6], std::ios::trunc) << "8BPS, or so it says";
  const std::string page = sheet.page();
  EXPECT_EQ(count_of(page, "<figure>"), 12U);
  EXPECT_EQ(count_of(page, "class=\"seen\""), 10U);
  EXPECT_EQ(count_of(page, "class=\"problem"), 2U);
  EXPECT_THAT(page, HasSubstr("2 corrupt samples"));
  EXPECT_THAT(page, HasSubstr("unsupported format"));
}

TEST(show, the_picture_is_that_of_the_tensor_for_every_type_and_layout) {
  const shown sheet;
  const auto pictures = [&](const std::string& type, const std::string& layout) {
    const std::string file = (sheet.directory.path() / "sheet.png").string();
    EXPECT_EQ(
        run({"show", sheet.photos.path().string(), "-o", file, "--size", "32", "--dtype", type, "--layout", layout})
            .exit_code,
        0);
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    EXPECT_NE(png_image_begin_read_from_file(&image, file.c_str()), 0) << image.message;
    image.format = PNG_FORMAT_RGB;
    std::vector<std::uint8_t> rgb(PNG_IMAGE_SIZE(image));
    EXPECT_NE(png_image_finish_read(&image, nullptr, rgb.data(), 0, nullptr), 0) << image.message;
    EXPECT_EQ(image.width, 4 * (32 + 4) + 4U);
    EXPECT_EQ(image.height, 3 * (32 + 4) + 4U);
    return rgb;
  };
  const std::vector<std::uint8_t> exact = pictures("u8", "nhwc");
  EXPECT_EQ(pictures("u8", "nchw"), exact);
  EXPECT_EQ(pictures("f32", "nchw"), exact);
  EXPECT_EQ(pictures("f32", "nhwc"), exact);
  EXPECT_EQ(pictures("f16", "nchw"), exact);
}

// Batch 1 of epoch 1 of an order, as the command loads it and as the page shows it.
void expect_the_batch_of_epoch(const shown& sheet, const std::vector<std::string>& order) {
  const std::string lines = (sheet.directory.path() / "batches").string();
  std::vector<std::string> load{"epoch",        sheet.photos.path().string(),
                                "--size",       "32",
                                "--batch-size", "4",
                                "--seed",       "9",
                                "--epochs",     "2",
                                "--batches",    lines};
  load.insert(load.end(), order.begin(), order.end());
  const ended process = run(load);
  ASSERT_EQ(process.exit_code, 0) << process.err;
  std::vector<std::string> show{"--seed", "9", "--batch-size", "4", "--epoch", "1", "--batch", "1"};
  show.insert(show.end(), order.begin(), order.end());
  const std::string page = sheet.page(show);
  std::size_t at = 0;
  std::size_t rows = 0;
  for (const std::string& line : lines_of(text_of(lines))) {
    const nlohmann::json batch = nlohmann::json::parse(line);
    if (batch.at("epoch") != 1 || batch.at("batch") != 1) continue;
    for (const auto& id : batch.at("ids")) {
      const std::size_t found = page.find("<span>sample " + std::to_string(id.get<int>()) + "</span>", at);
      ASSERT_NE(found, std::string::npos) << "sample " << id << " is missing, or in another place";
      at = found + 1;
      ++rows;
    }
  }
  EXPECT_EQ(rows, 4U);
}

TEST(show, it_shows_the_batch_that_epoch_loads) {
  const shown sheet;
  expect_the_batch_of_epoch(sheet, {});
  EXPECT_THAT(sheet.page({"--seed", "9"}), HasSubstr("shuffled, seed 9"));
  expect_the_batch_of_epoch(sheet, {"--no-shuffle"});
  expect_the_batch_of_epoch(sheet, {"--order", "balanced:cls"});
  EXPECT_THAT(sheet.page({"--order", "balanced:cls", "--seed", "9"}), HasSubstr("balanced:cls, seed 9"));
  expect_the_batch_of_epoch(sheet, {"--order", "repeated:3"});
  expect_the_batch_of_epoch(sheet, {"--order", "sequential", "--drop-last"});
}

TEST(show, a_page_of_64_photographs_is_at_most_4_mb_and_says_what_is_scaled) {
  tools::make_photos_options large_photos = photo_folder::small();
  large_photos.count = 64;
  large_photos.width = 640;
  large_photos.height = 480;
  const photo_folder photos(large_photos);
  const temporary_directory directory;
  const std::string file = (directory.path() / "sheet.html").string();
  const auto page_of = [&](const std::string& batch_size) {
    const ended process = run({"show", photos.path().string(), "-o", file, "--batch-size", batch_size});
    EXPECT_EQ(process.exit_code, 0) << process.err;
    return text_of(file);
  };
  const std::string large = page_of("64");
  EXPECT_LE(large.size(), 4'000'000U);
  EXPECT_EQ(count_of(large, "<figure>"), 64U);
  EXPECT_EQ(count_of(large, "class=\"seen\""), 64U);
  EXPECT_EQ(count_of(large, "class=\"box\""), 64U);
  EXPECT_THAT(large, HasSubstr("as a JPEG of quality"));
  EXPECT_THAT(large, HasSubstr("scaled to at most 360 pixels a side where it is large"));
  EXPECT_THAT(large, HasSubstr("viewBox=\"0 0 640 480\"")) << "the box is in the original's pixels";
  const std::string small = page_of("4");
  EXPECT_EQ(count_of(small, "src=\"data:image/png;base64,"), 4U);
  EXPECT_THAT(small, AllOf(HasSubstr("pixel by pixel"), Not(HasSubstr("scaled to"))));
}

TEST(show, of_tokens_it_shows_windows_and_of_arrays_numbers_and_says_so) {
  const temporary_directory directory;
  const std::string bin = write_file(directory.path() / "train.bin", bytes_of(counting<std::uint16_t>(1001)));
  const std::string file = (directory.path() / "sheet.html").string();
  const auto page_of = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "show");
    arguments.insert(arguments.end(), {"-o", file});
    const ended process = run(arguments);
    EXPECT_EQ(process.exit_code, 0) << process.err;
    return text_of(file);
  };
  const std::string windows =
      page_of({bin, "--tokens", "8", "--windows", "tiled", "--no-shuffle", "--batch-size", "3", "--documents", "mark"});
  EXPECT_THAT(windows, AllOf(HasSubstr("first batch: 3 of 125 windows"), HasSubstr("windows of 8 tokens, tiled"),
                             HasSubstr("<b>x</b>i64 [8]: 8, 9, 10, 11, 12, 13, 14, 15<"),
                             HasSubstr("<b>y</b>i64 [8]: 9, 10, 11, 12, 13, 14, 15, 16<"), HasSubstr("<b>document</b>"),
                             HasSubstr("train.bin at offset 16: tokens 8 to 16")));
  EXPECT_EQ(count_of(windows, "<figure>"), 3U);
  const std::string random = page_of({bin, "--tokens", "100", "--seed", "3", "--batch-size", "2"});
  EXPECT_THAT(random, AllOf(HasSubstr("shuffled, seed 3"), HasSubstr(" ...")));
  const std::string array =
      write_file(directory.path() / "x.npy", npy_text(npy_dict("<f4", "2, 3"), std::string(24, '\0')));
  const std::string numbers = page_of({array});
  EXPECT_THAT(numbers, AllOf(HasSubstr("the first 12 numbers of each row"), HasSubstr("f32 [3]: 0.0, 0.0, 0.0")));
  for (const std::string& page : {windows, random, numbers}) {
    EXPECT_THAT(page, AllOf(Not(HasSubstr("nchw")), Not(HasSubstr("224")), Not(HasSubstr("Left: "))));
  }
}

// Nothing of a batch is left out, and a number that tells samples apart is no class.
TEST(show, every_field_of_the_batch_is_there) {
  const temporary_directory directory;
  const std::string table = (directory.path() / "a.jsonl").string();
  std::ofstream(table) << R"({"id": 1001, "label": 3, "text": "first", "score": 0.123456789})"
                          "\n"
                       << R"({"id": 1002, "label": 4, "text": "second", "score": 2.5})"
                          "\n";
  const std::string file = (directory.path() / "sheet.html").string();
  const ended process = run({"show", table, "-o", file, "--no-shuffle"});
  ASSERT_EQ(process.exit_code, 0) << process.err;
  const std::string page = text_of(file);
  EXPECT_THAT(page, AllOf(HasSubstr("<span class=\"label\">3</span>"), HasSubstr("<b>id</b>1001<"),
                          HasSubstr("<b>text</b>first<"), HasSubstr("<b>score</b>0.1235<")));

  const photo_folder photos;
  const std::string shard = (directory.path() / "p.tar").string();
  ASSERT_EQ(run({"pack", photos.path().string(), shard}).exit_code, 0);
  const ended packed = run({"show", shard, "-o", file, "--size", "32"});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_EQ(count_of(text_of(file), "class=\"label\""), 12U);
}

TEST(show, a_page_that_cannot_be_written_is_named) {
  const photo_folder photos;
  const ended process = run({"show", photos.path().string(), "-o", "/no/such/place/sheet.html", "--size", "32"});
  EXPECT_EQ(process.exit_code, 1);
  expect_one_line(process, "leat show: cannot write /no/such/place/sheet.html: ");
}

}  // namespace
}  // namespace leat::testing
