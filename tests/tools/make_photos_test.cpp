#include "tools/make_photos.hpp"

#include "tests/support/photos.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/jpeg_encode.hpp"
#include "tools/paint.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <fcntl.h>
#include <jpeglib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace leat::tools {
namespace {

namespace fs = std::filesystem;
using leat::testing::bytes_of_file;
using leat::testing::photo_folder;
using leat::testing::photo_jpeg;
using leat::testing::photo_pixels;
using leat::testing::temporary_directory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::map<std::string, std::vector<std::uint8_t>> contents_of(const fs::path& directory) {
  std::map<std::string, std::vector<std::uint8_t>> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) files[fs::relative(entry.path(), directory).string()] = bytes_of_file(entry.path());
  return files;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string message_of(errc expected, const fs::path& directory, const make_photos_options& options) {
  try {
    make_photos(directory, options);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), expected) << e.what();
    return e.what();
  }
  return "no error";
}

// FNV-1a: enough to see that a pixel has changed.
std::uint64_t fingerprint(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211U;
  return hash;
}

struct decoded {
  int warnings = -1;
  int components = 0;
  int width = 0, height = 0;
  int sampling_x = 0, sampling_y = 0;
  bool progressive = false;
};

[[noreturn]] void stop_decoding(j_common_ptr info) { std::longjmp(*static_cast<std::jmp_buf*>(info->client_data), 1); }

// Only C objects live here while libjpeg may jump. `rgb` holds width * height * 3 bytes or is null.
decoded decode(const unsigned char* bytes, std::size_t size, unsigned char* rgb) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf escape;
  decoded result;
  info.err = jpeg_std_error(&errors);
  errors.error_exit = stop_decoding;
  errors.emit_message = [](j_common_ptr i, int level) { i->err->num_warnings += level < 0 ? 1 : 0; };
  info.client_data = &escape;
  if (setjmp(escape) != 0) {
    jpeg_destroy_decompress(&info);
    return {};
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes, size);
  jpeg_read_header(&info, TRUE);
  result.components = info.num_components;
  result.sampling_x = info.comp_info[0].h_samp_factor;
  result.sampling_y = info.comp_info[0].v_samp_factor;
  result.progressive = info.progressive_mode != FALSE;
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  result.width = static_cast<int>(info.output_width);
  result.height = static_cast<int>(info.output_height);
  while (rgb != nullptr && info.output_scanline < info.output_height) {
    JSAMPROW row = rgb + std::size_t{info.output_scanline} * info.output_width * 3;
    jpeg_read_scanlines(&info, &row, 1);
  }
  if (rgb != nullptr) jpeg_finish_decompress(&info);
  result.warnings = static_cast<int>(errors.num_warnings);
  jpeg_destroy_decompress(&info);
  return result;
}

// A changed painter makes other pictures under the same options: then the number in the manifest must change too.
TEST(painter, never_changes_a_pixel) {
  EXPECT_EQ(fingerprint(photo_pixels(0, 500, 400)), 12202435127935888033U);
  EXPECT_EQ(fingerprint(photo_pixels(3, 400, 500)), 17235017321849281519U);
  EXPECT_EQ(fingerprint(photo_pixels(17, 33, 8)), 15973681807317914380U);
}

TEST(painter, paints_any_size) {
  for (const auto& [width, height] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{1, 1}, {1, 40}, {40, 1}, {8, 8}, {17, 301}, {3000, 9}}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed)
      EXPECT_EQ(photo_pixels(seed, width, height).size(), std::size_t{width} * height * 3);
  }
}

TEST(painter, gives_its_classes_names_in_the_order_of_their_numbers) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < 10; ++i) names.push_back(paint_class_name(i));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(names.front(), "autumn");
  EXPECT_EQ(paint_class_name(10), "autumn-2");
  EXPECT_EQ(paint_class_name(999), "slate-100");
}

TEST(jpeg_encode, writes_what_libjpeg_reads_back) {
  const std::uint32_t width = 203, height = 101;
  const std::vector<std::uint8_t> pixels = photo_pixels(4, width, height);
  for (const jpeg_chroma chroma : {jpeg_chroma::yuv444, jpeg_chroma::yuv422, jpeg_chroma::yuv420, jpeg_chroma::grey}) {
    for (const bool progressive : {false, true}) {
      const auto file = photo_jpeg(4, width, height, {.chroma = chroma, .progressive = progressive});
      std::vector<std::uint8_t> back(pixels.size());
      const decoded d = decode(file.data(), file.size(), back.data());
      EXPECT_EQ(d.warnings, 0);
      EXPECT_EQ(d.progressive, progressive);
      EXPECT_EQ(d.components, chroma == jpeg_chroma::grey ? 1 : 3);
      EXPECT_EQ(d.sampling_x, chroma == jpeg_chroma::yuv422 || chroma == jpeg_chroma::yuv420 ? 2 : 1);
      EXPECT_EQ(d.sampling_y, chroma == jpeg_chroma::yuv420 ? 2 : 1);
      if (chroma != jpeg_chroma::yuv444) continue;
      double squares = 0;
      for (std::size_t i = 0; i < pixels.size(); ++i) squares += std::pow(double{1} * pixels[i] - back[i], 2);
      EXPECT_LT(squares / static_cast<double>(pixels.size()), 12) << "mean square error";  // 37 dB
    }
  }
}

TEST(jpeg_encode, holds_noise_at_quality_100) {
  std::vector<std::uint8_t> noise(std::size_t{65} * 47 * 3), file;
  std::uint32_t state = 1;
  for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  encode_jpeg(noise, 65, 47, {.quality = 100}, file);
  EXPECT_EQ(decode(file.data(), file.size(), nullptr).width, 65);
}

TEST(jpeg_encode, refuses_what_a_jpeg_cannot_hold) {
  std::vector<std::uint8_t> file;
  const std::vector<std::uint8_t> pixels(12);
  EXPECT_THROW(encode_jpeg(pixels, 0, 4, {}, file), error);
  EXPECT_THROW(encode_jpeg(pixels, 70'000, 1, {}, file), error);
  EXPECT_THROW(encode_jpeg(pixels, 3, 2, {}, file), error);
  EXPECT_THROW(encode_jpeg(pixels, 2, 2, {.quality = 0}, file), error);
  encode_jpeg(pixels, 2, 2, {}, file);
  EXPECT_EQ(decode(file.data(), file.size(), nullptr).height, 2);
}

// Photographs of ImageNet: mean 107 KiB, 4.3 bits per pixel, 16.5 coefficients per block.
TEST(make_photos, makes_files_as_large_as_photographs) {
  make_photos_options options;
  options.count = 40;
  const photo_folder set(options);
  double bits = 0, pixels = 0;
  int upright = 0, full_chroma = 0;
  for (const fs::path& file : set.files()) {
    const auto bytes = bytes_of_file(file);
    std::vector<std::uint8_t> rgb(std::size_t{500} * 400 * 3);
    const decoded d = decode(bytes.data(), bytes.size(), rgb.data());
    EXPECT_EQ(d.warnings, 0) << file;
    EXPECT_EQ(std::max(d.width, d.height), 500);
    EXPECT_EQ(std::min(d.width, d.height), 400);
    upright += d.width < d.height ? 1 : 0;
    full_chroma += d.components == 3 && d.sampling_x == 1 ? 1 : 0;
    bits += 8 * static_cast<double>(bytes.size());
    pixels += static_cast<double>(d.width) * d.height;
  }
  EXPECT_GT(bits / pixels, 3.5);
  EXPECT_LT(bits / pixels, 5.0);
  EXPECT_GT(upright, 3);
  EXPECT_LT(upright, 20);
  EXPECT_GT(full_chroma, 20);
  EXPECT_LT(full_chroma, 40);
}

TEST(make_photos, fills_the_class_folders_evenly) {
  make_photos_options options = photo_folder::small();
  options.count = 13;
  const photo_folder set(options);
  EXPECT_THAT(names_in(set.path()), ElementsAre(".leat-photos", "autumn", "coral", "dusk"));
  EXPECT_EQ(names_in(set.path() / "autumn").size(), 5U);
  EXPECT_THAT(names_in(set.path() / "dusk"),
              ElementsAre("dusk-00000.jpg", "dusk-00001.jpg", "dusk-00002.jpg", "dusk-00003.jpg"));
}

TEST(make_photos, makes_the_same_bytes_with_any_number_of_threads) {
  make_photos_options options = photo_folder::small();
  options.count = 40;
  const auto one = contents_of(photo_folder(options).path());
  for (const std::uint32_t threads : {2U, 3U, 8U, 100U}) {
    options.threads = threads;
    EXPECT_EQ(contents_of(photo_folder(options).path()), one) << threads << " threads";
  }
  options.seed = 1;
  EXPECT_NE(contents_of(photo_folder(options).path()), one);
}

// More pictures are more of the same: a larger set holds the smaller one of as many classes.
TEST(make_photos, makes_a_picture_whatever_stands_beside_it) {
  make_photos_options options = photo_folder::small();
  auto few = contents_of(photo_folder(options).path());
  options.count = 30;
  const auto many = contents_of(photo_folder(options).path());
  few.erase(".leat-photos");
  for (const auto& [name, bytes] : few) EXPECT_EQ(many.at(name), bytes) << name;
}

TEST(make_photos, leaves_a_complete_set_alone) {
  const temporary_directory home;
  const make_photos_options options = photo_folder::small();
  const auto made = make_photos(home.path() / "a/b/photos", options);
  EXPECT_TRUE(made.made);
  const fs::path file = home.path() / "a/b/photos/coral/coral-00002.jpg";
  const auto written_at = fs::last_write_time(file);
  for (const char* spelling : {"a/b/photos", "a/b/photos/", "a/b/photos/.", "a/../a/b/photos"}) {
    const auto found = make_photos(home.path() / spelling, options);
    EXPECT_FALSE(found.made);
    EXPECT_EQ(found.count, 12U);
    EXPECT_EQ(found.bytes, made.bytes);
  }
  EXPECT_EQ(fs::last_write_time(file), written_at);
  EXPECT_THAT(names_in(home.path() / "a/b"), ElementsAre("photos"));
}

TEST(make_photos, fills_an_empty_directory) {
  const temporary_directory home;
  fs::create_directory(home.path() / "photos");
  EXPECT_TRUE(make_photos(home.path() / "photos", photo_folder::small()).made);
  EXPECT_EQ(contents_of(home.path() / "photos").size(), 13U);
}

TEST(make_photos, refuses_a_directory_that_holds_anything_else) {
  const temporary_directory home;
  const make_photos_options options = photo_folder::small();
  std::ofstream(home.path() / "note") << "mine";
  EXPECT_THAT(message_of(errc::usage, home.path(), options), HasSubstr("no photo set of ours"));
  EXPECT_THAT(message_of(errc::usage, home.path() / "note", options), HasSubstr("is no directory"));
  EXPECT_THAT(names_in(home.path()), ElementsAre("note"));

  make_photos(home.path() / "photos", options);
  make_photos_options other = options;
  other.seed = 8;
  EXPECT_THAT(message_of(errc::usage, home.path() / "photos", other),
              AllOf(HasSubstr("other options"), HasSubstr("choose another directory")));
}

TEST(make_photos, says_when_files_of_a_set_are_missing_or_cut) {
  const temporary_directory home;
  const make_photos_options options = photo_folder::small();
  make_photos(home.path() / "photos", options);
  const fs::path file = home.path() / "photos/dusk/dusk-00001.jpg";
  fs::resize_file(file, 10);
  EXPECT_THAT(message_of(errc::corrupt, home.path() / "photos", options), HasSubstr("12 of 12 pictures, or damaged"));
  fs::remove(file);
  EXPECT_THAT(message_of(errc::corrupt, home.path() / "photos", options), HasSubstr("11 of 12 pictures"));
}

TEST(make_photos, removes_what_a_killed_run_left_and_not_what_a_living_one_is_making) {
  const temporary_directory home;
  const fs::path abandoned = home.path() / ".photos.unfinished-1-0", living = home.path() / ".photos.unfinished-1-1";
  for (const fs::path& directory : {abandoned, living}) {
    fs::create_directories(directory / "autumn");
    std::ofstream(directory / "autumn/autumn-00000.jpg") << "half";
  }
  fs::create_directory(home.path() / ".other.unfinished-1-0");
  const int lock = ::open(living.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(lock, 0);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  EXPECT_TRUE(make_photos(home.path() / "photos", photo_folder::small()).made);
  ::close(lock);
  EXPECT_THAT(names_in(home.path()), ElementsAre(".other.unfinished-1-0", ".photos.unfinished-1-1", "photos"));
}

TEST(make_photos, may_run_twice_at_once) {
  const temporary_directory home;
  for (int round = 0; round < 10; ++round) {
    const fs::path place = home.path() / ("photos" + std::to_string(round));
    std::vector<photo_set_summary> sets(3);
    {
      std::vector<std::jthread> threads;
      for (photo_set_summary& set : sets)
        threads.emplace_back([&set, &place] { set = make_photos(place, photo_folder::small()); });
    }
    EXPECT_EQ(std::count_if(sets.begin(), sets.end(), [](const auto& set) { return set.made; }), 1);
    EXPECT_EQ(contents_of(place).size(), 13U);
  }
  EXPECT_EQ(names_in(home.path()).size(), 10U);
}

TEST(make_photos, stops_when_asked_and_what_could_not_be_removed_in_time_goes_with_the_next_run) {
  const temporary_directory home;
  make_photos_options options = photo_folder::small();
  options.count = 1'000'000;
  options.threads = 2;
  std::stop_source stop;
  options.stop = stop.get_token();
  options.on_progress = [&](std::uint32_t, std::uint32_t) { stop.request_stop(); };
  const std::string message = message_of(errc::cancelled, home.path() / "photos", options);
  if (names_in(home.path()).empty()) {
    EXPECT_THAT(message, HasSubstr("nothing was left in " + (home.path() / "photos").string()));
  } else {
    ASSERT_EQ(names_in(home.path()).size(), 1U);
    EXPECT_THAT(message, HasSubstr(names_in(home.path()).front() + ", which the next run removes"));
  }
  EXPECT_TRUE(make_photos(home.path() / "photos", photo_folder::small()).made);
  EXPECT_THAT(names_in(home.path()), ElementsAre("photos"));
}

TEST(make_photos, stops_in_the_middle_of_a_picture) {
  // 8192 x 8192 pixels take seconds; the stop comes between two rows.
  canvas picture{.width = 8192, .height = 8192, .rgb = {}};
  painter::scratch scratch;
  std::stop_source stop;
  std::jthread later([&] { stop.request_stop(); });
  EXPECT_THROW(shared_painter().paint(0, 0, 0, picture, scratch, stop.get_token()), error);
  later.join();
  const std::vector<std::uint8_t> pixels(std::size_t{64} * 64 * 3);
  std::vector<std::uint8_t> file;
  EXPECT_THROW(encode_jpeg(pixels, 64, 64, {.stop = stop.get_token()}, file), error);
  EXPECT_THROW(painter{stop.get_token()}, error);
}

TEST(make_photos, tells_how_far_it_is) {
  make_photos_options options = photo_folder::small();
  std::vector<std::uint32_t> seen;
  options.on_progress = [&](std::uint32_t done, std::uint32_t count) {
    EXPECT_EQ(count, 12U);
    seen.push_back(done);
  };
  const photo_folder set(options);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), 12U);
}

TEST(make_photos, passes_on_what_the_progress_throws) {
  const temporary_directory home;
  make_photos_options options = photo_folder::small();
  options.on_progress = [](std::uint32_t, std::uint32_t) { throw std::runtime_error("the terminal is gone"); };
  EXPECT_THROW(make_photos(home.path() / "photos", options), std::runtime_error);
  EXPECT_THAT(names_in(home.path()), IsEmpty());
}

TEST(make_photos, names_the_file_that_cannot_be_written) {
  const temporary_directory home;
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of(errc::io, home.path() / "photos", photo_folder::small());
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(HasSubstr("cannot write " + (home.path() / "photos").string() + "/"), HasSubstr(".jpg"),
                             HasSubstr("File too large")));
  EXPECT_THAT(message, Not(HasSubstr("unfinished"))) << "the hidden directory's name is nobody's business";
  EXPECT_THAT(names_in(home.path()), IsEmpty());
}

TEST(make_photos, refuses_options_that_cannot_be) {
  const temporary_directory home;
  const auto message = [&](auto change) {
    make_photos_options options = photo_folder::small();
    change(options);
    return message_of(errc::usage, home.path() / "photos", options);
  };
  EXPECT_THAT(message([](auto& o) { o.classes = 0; }), HasSubstr("0 classes"));
  EXPECT_THAT(message([](auto& o) { o.classes = 1001; }), HasSubstr("1001 classes"));
  EXPECT_THAT(message([](auto& o) { o.count = 2; }), HasSubstr("2 pictures in 3 classes"));
  EXPECT_THAT(message([](auto& o) { o.width = 4; }), HasSubstr("4 x 48"));
  EXPECT_THAT(message([](auto& o) { o.height = 10'000; }), HasSubstr("64 x 10000"));
  EXPECT_THAT(message([](auto& o) { o.quality = 0; }), HasSubstr("quality 0"));
  EXPECT_THAT(message_of(errc::usage, "", photo_folder::small()), HasSubstr("empty"));
  EXPECT_THAT(message_of(errc::usage, "/", photo_folder::small()), HasSubstr("/ cannot be a photo set"));
  EXPECT_THAT(names_in(home.path()), IsEmpty());
}

}  // namespace
}  // namespace leat::tools
