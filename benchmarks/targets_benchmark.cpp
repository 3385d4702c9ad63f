// What do a mask and 20 boxes cost beside the photograph that they follow? And a mosaic of 640 x 640 of four photographs beside one
// at 320?
//
//     targets_benchmark [--rounds=N] [--write=DIR] [--toy]
//
// Photographs of 640 x 480 (painted, JPEG of quality 90), a mask of 21 classes of each (PNG, palette) and JSON with 20 boxes and their
// classes. The photograph: random_resized_crop(512), a flip, an affine warp, exact rounding, floats. One thread; CPU time of a sample,
// medians of N rounds in turns, with the lowest and the highest; what is made is looked at. --write leaves the samples in a folder, as
// 7.jpg, 7.png and 7.json: peers/targets.py gives them to other libraries. Mosaics are made by a loader of one decode thread, floats, in
// batches of 8 rows with their boxes, 8 epochs behind a first one; its process's CPU time, with all that the loader does.
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/plan/shared_members.hpp"
#include "tests/support/make_picture.hpp"
#include "tools/jpeg_encode.hpp"
#include "tools/paint.hpp"

#include <leat/loading.hpp>
#include <leat/mosaic.hpp>
#include <leat/own_samples.hpp>
#include <leat/targets.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::benchmarks {
namespace {

constexpr int width = 640;
constexpr int height = 480;
constexpr int side = 512;

struct sample {
  std::vector<std::byte> photo;
  std::vector<std::byte> mask;
  std::vector<std::byte> boxes;
};

sample make_sample(std::uint32_t number) {
  sample made;
  tools::canvas photo{.width = width, .height = height, .rgb = {}};
  tools::painter::scratch work;
  tools::shared_painter().paint(7, number % 10, number, photo, work);
  std::vector<std::uint8_t> file;
  tools::encode_jpeg(photo.rgb, width, height, {.quality = 90, .chroma = tools::jpeg_chroma::yuv420}, file);
  const auto bytes = std::as_bytes(std::span(file));
  made.photo.assign(bytes.begin(), bytes.end());
  std::vector<std::uint16_t> classes(width * height, 0);
  std::string boxes;
  std::string labels;
  for (int i = 1; i <= 20; ++i) {
    const int w = 40 + (i * 37 + static_cast<int>(number) * 11) % 160;
    const int h = 40 + (i * 53 + static_cast<int>(number) * 7) % 120;
    const int left = (i * 131 + static_cast<int>(number) * 29) % (width - w);
    const int top = (i * 97 + static_cast<int>(number) * 17) % (height - h);
    // An ellipse in each box.
    for (int y = top; y < top + h; ++y) {
      for (int x = left; x < left + w; ++x) {
        const double u = (x - left + 0.5) / w * 2 - 1;
        const double v = (y - top + 0.5) / h * 2 - 1;
        if (u * u + v * v < 1) classes[static_cast<std::size_t>(y * width + x)] = static_cast<std::uint16_t>(i);
      }
    }
    boxes += (i > 1 ? ", [" : "[") + std::to_string(left) + ".25, " + std::to_string(top) + ".5, " +
             std::to_string(left + w) + ".75, " + std::to_string(top + h) + ".0]";
    labels += (i > 1 ? ", " : "") + std::to_string(i);
  }
  made.mask = testing::make_mask_png(width, height, classes, 8, true);
  const std::string json = "{\"image_id\": 1234, \"boxes\": [" + boxes + "], \"classes\": [" + labels + "]}";
  const auto text = std::as_bytes(std::span(json));
  made.boxes.assign(text.begin(), text.end());
  return made;
}

double thread_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// A program with a row of its own.
struct bench {
  const stages::field_program* program = nullptr;
  std::unique_ptr<stages::field_scratch> scratch;
  std::vector<std::vector<std::byte>> memory;
  std::vector<stages::row_target> rows;
  std::vector<double> us;  // of a sample, each round

  bench(const stages::field_program& of, pixels::scratch_budget& budget, std::size_t encoded_max)
      : program(&of), scratch(of.make_scratch(budget)) {
    for (std::size_t o = 0; o < of.outputs().size(); ++o) {
      const stages::output_spec& output = of.outputs()[o];
      memory.emplace_back(output.ragged ? of.ragged_bytes(o, encoded_max) : output.decoded_row_bytes());
      rows.push_back({.bytes = memory.back()});
    }
  }
  double median() {
    std::sort(us.begin(), us.end());
    return us[us.size() / 2];
  }
  void print(const char* name, double beside) {
    const double middle = median();
    std::printf("%-12s %9.1f us  (%.1f to %.1f)  %.3f of the photograph\n", name, middle, us.front(), us.back(),
                middle / beside);
  }
};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "targets_benchmark: %s\n", why.c_str());
  std::exit(1);
}

void write(const std::filesystem::path& to, const std::vector<std::byte>& bytes) {
  std::ofstream out(to, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) fail("cannot write " + to.string());
}

double process_us() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// CPU time of a row.
double loaded_us(const dataset& set, const image& photo, const batch_mix& mix) {
  loader_options options;
  options.batch_size = 8;
  options.epochs = 9;
  options.decode_threads = 1;
  options.prefetch_batches = 1;
  options.host_bytes_max = std::size_t{1} << 30;
  options.mix = mix;
  double begin = 0;
  std::uint64_t rows = 0;
  std::int64_t things = 0;
  loader all(set, options, photo, boxes("json").follows("jpg").key("boxes").labels("classes").min_area(4));
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    // The first one touches the memory.
    if (epoch == 1) {
      begin = process_us();
      rows = 0;
    }
    for (const batch& got : all.blocking()) {
      rows += got.valid_rows();
      things += got["json"].shape[0];
    }
  }
  if (things == 0) fail("no box is left of any row");
  return (process_us() - begin) / static_cast<double>(rows);
}

void run_mosaics(const dataset& set, int rounds) {
  const image one = image("jpg").longest_side(320).pad_to({.height = 320, .width = 320, .fill = {114, 114, 114}});
  const image tile = image("jpg").longest_side(320).pad_to({.height = 640, .width = 640, .fill = {114, 114, 114}});
  const image whole = image("jpg").letterbox(640);
  struct measured {
    const char* name;
    const image* photo;
    batch_mix mix;
    std::vector<double> us = {};
  };
  std::vector<measured> all{{"one at 320", &one, {}},
                            {"mosaic of four at 320", &tile, mosaic()},
                            {"one at 640", &whole, {}},
                            {"mosaic of four at 640", &whole, mosaic()}};
  for (int round = 0; round < rounds; ++round) {
    for (measured& each : all) each.us.push_back(loaded_us(set, *each.photo, each.mix));
  }
  double beside = 0;
  for (measured& each : all) {
    std::sort(each.us.begin(), each.us.end());
    const double middle = each.us[each.us.size() / 2];
    if (beside == 0) beside = middle;
    std::printf("%-22s %9.1f us a row  (%.1f to %.1f)  %.2f of one at 320\n", each.name, middle, each.us.front(),
                each.us.back(), middle / beside);
  }
}

int run(int rounds, std::uint32_t count, const std::string& directory) {
  std::vector<sample> samples;
  std::size_t largest = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    samples.push_back(make_sample(i));
    largest = std::max(largest, samples.back().boxes.size());
    if (directory.empty()) continue;
    const std::string name = directory + "/" + std::to_string(i);
    write(name + ".jpg", samples.back().photo);
    write(name + ".png", samples.back().mask);
    write(name + ".json", samples.back().boxes);
  }
  const dataset set = from_function(
      count, [&](std::uint64_t i) { return std::vector{samples[i].photo, samples[i].mask, samples[i].boxes}; },
      {{"jpg", 1 << 20}, {"mask.png", 1 << 20}, {"json", 1 << 16}});
  const std::vector<field> fields{
      image("jpg").random_resized_crop(side).random_flip().affine({.degrees = {-10, 10}, .scale = {0.9, 1.1}}),
      mask("mask.png").follows("jpg"), boxes("json").follows("jpg").key("boxes").labels("classes").min_area(4)};
  std::vector<std::unique_ptr<stages::field_program>> programs;
  for (const field& each : fields) each.model().bind(*set.model(), stages::finished_by::host, programs);
  stages::follow_pictures(programs);
  pixels::scratch_budget budget(std::size_t{256} << 20);
  bench photo(*programs[0], budget, 0);
  bench masked(*programs[1], budget, 0);
  bench boxed(*programs[2], budget, largest);
  std::vector<picture_geometry> geometries(count);
  std::size_t kept = 0;
  const auto input = [&](std::uint32_t i, int round, const std::vector<std::byte>& encoded) {
    return stages::decode_input{.sample = i,
                                .draw = i + count * static_cast<std::uint32_t>(round),
                                .seed = 7,
                                .dataset = set.model().get(),
                                .encoded = encoded,
                                .present = true,
                                .geometry = &geometries[i]};
  };
  for (int round = 0; round < rounds; ++round) {
    double begin = thread_us();
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto made = photo.program->decode(*photo.scratch, input(i, round, samples[i].photo), photo.rows);
      if (!made) fail(made.reason());
    }
    photo.us.push_back((thread_us() - begin) / count);
    const auto follow = [&](bench& target, const std::vector<std::byte> sample::* member) {
      begin = thread_us();
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto made = target.program->facets().following->make(*target.scratch, input(i, round, samples[i].*member),
                                                                   geometries[i], target.rows);
        if (!made) fail(made.reason());
      }
      target.us.push_back((thread_us() - begin) / count);
    };
    follow(masked, &sample::mask);
    follow(boxed, &sample::boxes);
    kept += boxed.rows[0].used / (4 * sizeof(float));
  }
  if (kept == 0) fail("no box is left of any sample");
  if (std::all_of(masked.memory[0].begin(), masked.memory[0].end(),
                  [&](std::byte each) { return each == masked.memory[0][0]; }))
    fail("a mask of one number");
  const double beside = photo.median();
  photo.print("photograph", beside);
  masked.print("mask", beside);
  boxed.print("20 boxes", beside);
  const double all_us = photo.median() + masked.median() + boxed.median();
  std::printf("all three: %.1f samples per CPU-second\n", 1e6 / all_us);
  run_mosaics(set, rounds);
  return 0;
}

}  // namespace
}  // namespace leat::benchmarks

int main(int argc, char** argv) {
  int rounds = 11;
  std::uint32_t samples = 32;
  std::string directory;
  for (int i = 1; i < argc; ++i) {
    const std::string_view given = argv[i];
    if (given == "--toy") {
      rounds = 1;
      samples = 2;
    } else if (given.starts_with("--rounds=")) {
      rounds = std::max(1, std::atoi(argv[i] + 9));
    } else if (given.starts_with("--write=")) {
      directory = given.substr(8);
    } else {
      std::fprintf(stderr, "unknown argument '%s'; there are --rounds, --write, --toy\n", argv[i]);
      return 2;
    }
  }
  return leat::benchmarks::run(rounds, samples, directory);
}
