// A field of one's own: what leat does not decode, here sounds. Each row is half a second of a WAV file, cut out at a place that
// is another one in each epoch; a file that is none is a corrupt sample, with the reason. As the sounds are made here, and
// each has one pitch, what arrives can be checked: a tone of f Hz crosses zero 2 f times a second.
#include <leat/loader.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

constexpr std::size_t rate = 8000, header_bytes = 44, row_length = rate / 2;

double pitch(std::uint64_t sample) { return 100.0 + 3.0 * static_cast<double>(sample); }

// Two seconds of a tone, as 16-bit samples behind a header; every fiftieth is no WAV file.
std::vector<std::byte> make_sound(std::uint64_t sample) {
  std::vector<std::int16_t> tone(2 * rate);
  for (std::size_t t = 0; t < tone.size(); ++t) {
    tone[t] = static_cast<std::int16_t>(20'000 *
                                        std::sin(6.283185307 * pitch(sample) * (static_cast<double>(t) + 0.5) / rate));
  }
  std::vector<std::byte> file(header_bytes + 2 * tone.size());
  if (sample % 50 != 49) std::memcpy(file.data(), "RIFF....WAVEfmt ", 16);
  std::memcpy(file.data() + header_bytes, tone.data(), 2 * tone.size());
  return file;
}

// On the decode threads, several at once: encoded bytes to a row. Random places are drawn from what keys the row, so that
// a batch is the same with any number of threads.
std::string read_sound(std::span<const std::byte> file, const leat::sample_context& of, std::span<std::byte> row) {
  if (file.size() < header_bytes || std::memcmp(file.data(), "RIFF", 4) != 0) return "no WAV file";
  const std::size_t samples = (file.size() - header_bytes) / 2;
  if (samples < row_length) return "a sound of " + std::to_string(samples) + " samples, and a row has more";
  std::mt19937_64 draw(of.seed ^ (of.draw << 20) ^ of.epoch);
  const std::size_t begin = draw() % (samples - row_length + 1);
  for (std::size_t t = 0; t < row_length; ++t) {
    std::int16_t stored = 0;
    std::memcpy(&stored, &file[header_bytes + 2 * (begin + t)], 2);
    const float value = static_cast<float>(stored) / 32768.0F;
    std::memcpy(&row[sizeof value * t], &value, sizeof value);
  }
  return {};
}

int main() try {
  const auto sounds = leat::from_function(500, make_sound, {.field = "wav", .bytes_max = header_bytes + 4 * rate});
  leat::loader train{sounds,
                     {.batch_size = 64, .seed = 7, .epochs = 1, .on_corrupt = leat::corrupt_policy::skip},
                     leat::custom{"wav", leat::dtype::f32, {row_length}, read_sound}};
  std::size_t rows = 0, right = 0;
  for (const leat::batch& batch : train.blocking()) {
    const auto values = batch["wav"].as<float>();  // [rows, 4000]
    for (std::size_t row = 0; row < batch.valid_rows(); ++row, ++rows) {
      int crossings = 0;
      for (std::size_t t = row * row_length + 1; t < (row + 1) * row_length; ++t) {
        crossings += (values[t] < 0) != (values[t - 1] < 0) ? 1 : 0;
      }
      right += std::abs(crossings - pitch(batch.ids()[row])) <= 1 ? 1 : 0;  // half a second has 2 f / 2 of them
    }
  }
  std::printf("%zu sounds, %zu of the pitch that they were made with; %llu were no WAV files\n", rows, right,
              static_cast<unsigned long long>(train.stats().quarantined));
} catch (const std::exception& problem) {
  std::fprintf(stderr, "own_field: %s\n", problem.what());
  return 1;
}
