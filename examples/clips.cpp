// Clips: windows of eight frames of a video that lies as an array, and the same box of all frames of a clip. The video, a
// Zarr array with a frame in each chunk, is made here: a pixel is the number of its frame and its place, to see what arrives.
#include <leat/loader.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

constexpr int frames = 120, side = 32, length = 8, crop = 16;

// The first byte of a pixel is its frame, the second its line, the third its column.
void make_video(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::string shape = std::to_string(side) + ", " + std::to_string(side) + ", 3]";
  std::ofstream(folder / ".zarray") << "{\"zarr_format\": 2, \"shape\": [" << frames << ", " << shape
                                    << ", \"chunks\": [1, " << shape
                                    << ", \"dtype\": \"|u1\", \"compressor\": null, \"filters\": null, "
                                       "\"fill_value\": 0, \"order\": \"C\"}";
  for (int frame = 0; frame < frames; ++frame) {
    std::ofstream out(folder / (std::to_string(frame) + ".0.0.0"), std::ios::binary);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        for (const int value : {frame, y, x}) out.put(static_cast<char>(value));
      }
    }
  }
}

int main() try {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "leat-clips-example.zarr";
  make_video(folder);
  const leat::dataset clips = leat::open_zarr(folder.string(), {.window = length, .stride = 4});
  const std::string name = clips.fields().front().name;
  leat::loader train{clips,
                     {.batch_size = 6, .seed = 7, .epochs = 2, .host_bytes_max = 64 << 20},
                     leat::array{name}.random_crop({length, crop, crop, 3})};
  std::size_t seen = 0, whole = 0;
  while (!train.finished()) {
    for (const leat::batch& batch : train.blocking()) {
      const auto pixels = batch[name].as<std::uint8_t>();  // [rows, 8, 16, 16, 3]
      for (std::size_t row = 0; row < batch.valid_rows(); ++row, ++seen) {
        const std::uint8_t* const first = &pixels[row * length * crop * crop * 3];
        bool in_order = first[0] == 4 * batch.ids()[row];
        for (std::size_t i = 0; i < length * crop * crop; ++i) {
          const std::uint8_t* const pixel = first + 3 * i;
          in_order = in_order && pixel[0] == first[0] + i / (crop * crop) && pixel[1] == first[1] + i / crop % crop &&
                     pixel[2] == first[2] + i % crop;
        }
        whole += in_order ? 1 : 0;
      }
    }
  }
  std::filesystem::remove_all(folder);
  std::printf("%zu clips of %d frames, %zu of one box and in order\n", seen, length, whole);
} catch (const std::exception& problem) {
  std::fprintf(stderr, "clips: %s\n", problem.what());
  return 1;
}
