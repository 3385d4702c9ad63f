// What does a clip of 16 frames cost beside 16 pictures?
//
//     clip_benchmark [--rounds=N] [--toy]
//
// Samples of 32 JPEG files of 320 x 240 (painted, quality 90) in memory. 16 of them become [rows, 16, 3, 112, 112] by clip(), or 16
// outputs by image(): random_resized_crop(112), a flip, floats, drawn alike. One decode thread; CPU time of the process for a sample,
// medians of N rounds in turns, with the lowest and the highest; before it the bytes of both are compared.
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "tools/jpeg_encode.hpp"
#include "tools/paint.hpp"

#include <leat/clip.hpp>
#include <leat/loading.hpp>
#include <leat/own_samples.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace leat::benchmarks {
namespace {

constexpr std::uint32_t width = 320;
constexpr std::uint32_t height = 240;
constexpr int frames_stored = 32;
constexpr int frames = 16;
constexpr int stride = 2;

std::string frame_name(int number) { return str_cat(number, ".jpg"); }

dataset make_videos(std::uint64_t count) {
  std::vector<std::vector<std::vector<std::byte>>> videos(count);
  tools::painter::scratch work;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t frame = 0; frame < frames_stored; ++frame) {
      tools::canvas photo{.width = width, .height = height, .rgb = {}};
      tools::shared_painter().paint(7, i % 10, i * frames_stored + frame, photo, work);
      std::vector<std::uint8_t> file;
      tools::encode_jpeg(photo.rgb, width, height, {.quality = 90, .chroma = tools::jpeg_chroma::yuv420}, file);
      const auto bytes = std::as_bytes(std::span(file));
      videos[i].emplace_back(bytes.begin(), bytes.end());
    }
  }
  std::vector<function_field> fields;
  for (int frame = 0; frame < frames_stored; ++frame) fields.push_back({frame_name(frame), 1 << 17});
  return from_function(count, [videos = std::move(videos)](std::uint64_t i) { return videos[i]; }, std::move(fields));
}

image picture(const std::string& name) {
  return image(name).random_resized_crop(112).random_flip().normalize(imagenet).together("clip");
}

std::vector<field> as_clip(bool random_start) {
  return {clip(picture("clip").from("*.jpg"), {.frames = frames, .stride = stride, .random_start = random_start})};
}
std::vector<field> as_pictures() {
  std::vector<field> all;
  for (int frame = 0; frame < frames; ++frame) all.emplace_back(picture(frame_name(frame * stride)));
  return all;
}

loader_options one_epoch() {
  loader_options options{.batch_size = 4, .seed = 7};
  options.decode_threads = 1;
  options.epochs = 1;
  return options;
}

// In milliseconds of CPU for a sample.
double cost_ms(const dataset& videos, const std::vector<field>& fields) {
  loader train(videos, one_epoch(), fields);
  std::uint64_t rows = 0;
  const double began_s = process_cpu_s();
  for (const batch& got : train.blocking()) rows += got.valid_rows();
  return (process_cpu_s() - began_s) * 1e3 / static_cast<double>(rows);
}

void check(const dataset& videos) {
  loader one(videos, one_epoch(), as_clip(false));
  loader many(videos, one_epoch(), as_pictures());
  for (const batch& clips : one.blocking()) {
    const std::optional<batch> pictures = many.next_blocking();
    const auto* at = static_cast<const std::byte*>(clips["clip"].data);
    for (std::size_t row = 0; row < clips.valid_rows(); ++row) {
      for (int frame = 0; frame < frames; ++frame) {
        const std::span<const std::byte> picture = pictures->bytes(frame_name(frame * stride), row);
        if (std::memcmp(at, picture.data(), picture.size()) != 0) {
          throw error(errc::corrupt, str_cat("frame ", frame, " of row ", row, " is not the picture"));
        }
        at += picture.size();
      }
    }
  }
}

void print(const char* name, const figure& ms, double beside) {
  std::printf("%-26s %8.3f ms  (%.3f to %.3f)  %.3f of 16 pictures\n", name, ms.median(), ms.low(), ms.high(),
              ms.median() / beside);
}

void run(int rounds, std::uint64_t samples) {
  const dataset videos = make_videos(samples);
  std::printf("%s\n", machine().c_str());
  check(videos);
  figure pictures;
  figure clips;
  figure drawn;
  for (int round = 0; round < rounds; ++round) {
    pictures.add(cost_ms(videos, as_pictures()));
    clips.add(cost_ms(videos, as_clip(false)));
    drawn.add(cost_ms(videos, as_clip(true)));
  }
  print("16 pictures", pictures, pictures.median());
  print("clip", clips, pictures.median());
  print("clip with a random start", drawn, pictures.median());
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("clip_benchmark", [&] {
    int rounds = 11;
    std::uint64_t samples = 32;
    benchmarks::read_options(count, words, {{"--rounds", rounds}, {"--toy", [&] {
                                                                     rounds = 1;
                                                                     samples = 2;
                                                                   }}});
    benchmarks::run(rounds, samples);
  });
}
