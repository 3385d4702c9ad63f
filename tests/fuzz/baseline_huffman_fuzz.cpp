// Does our Huffman stage ever answer otherwise than libjpeg-turbo's, on this processor or on one without vectors and BMI2?
//
// An input is eight bytes that say which crop, and a file. The crop is decoded by both stages, and by ours plainly: the same pixels,
// or the same words about what is wrong, else this stops and libFuzzer keeps the input. scripts/fuzz runs it.
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/pixels/random_jpeg.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

namespace leat {
namespace {

using testing::huffman_answer;
using testing::huffman_stage;

// Larger ones would be slower, and have nothing that small ones have not.
constexpr std::int64_t pixels_max = 128 * 128;

struct tally {
  std::uint64_t pictures = 0;  // with a header that says what size
  std::uint64_t good = 0;
  std::uint64_t again = 0;  // good, and ours had given up

  ~tally() {
    std::fprintf(stderr, "compared: %llu pictures, of which %llu are good; ours gave up in %llu of these\n",
                 static_cast<unsigned long long>(pictures), static_cast<unsigned long long>(good),
                 static_cast<unsigned long long>(again));
  }
};

void compare(std::span<const std::byte> encoded, const testing::fuzz_crop& wanted) {
  static testing::one_decoder one;
  static tally seen;
  const auto info = pixels::peek(encoded);
  if (!info || std::int64_t{info->width} * info->height > pixels_max) return;
  ++seen.pictures;
  const pixels::geometry drawn = wanted.of(info->width, info->height);
  const pixels::decode_options options{.pixels_max = pixels_max, .decimate = wanted.decimate()};
  const huffman_answer theirs = testing::ask_huffman(one.decoder, encoded, drawn, options, huffman_stage::libjpeg);
  if (theirs.kind == stages::outcome_kind::ok) ++seen.good;
  for (const huffman_stage by : {huffman_stage::own, huffman_stage::own_plain}) {
    const huffman_answer ours = testing::ask_huffman(one.decoder, encoded, drawn, options, by);
    if (ours.again && by == huffman_stage::own) ++seen.again;
    if (ours.kind == theirs.kind && ours.reason == theirs.reason && ours.row == theirs.row) continue;
    std::fprintf(stderr, "ours%s: %d '%s', libjpeg-turbo's: %d '%s'%s\n", by == huffman_stage::own ? "" : ", plain",
                 static_cast<int>(ours.kind), ours.reason.c_str(), static_cast<int>(theirs.kind), theirs.reason.c_str(),
                 ours.row == theirs.row ? "" : "; other pixels");
    std::abort();
  }
}

}  // namespace
}  // namespace leat

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using leat::testing::fuzz_crop;
  if (size < fuzz_crop::bytes) return -1;
  fuzz_crop crop;
  std::memcpy(crop.raw, data, fuzz_crop::bytes);
  leat::compare(std::as_bytes(std::span(data, size)).subspan(fuzz_crop::bytes), crop);
  return 0;
}

// Seven times of eight only the scan is changed: what is in the headers is libjpeg-turbo's alone.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max,
                                               unsigned seed) {
  const std::uint8_t start_of_scan[] = {0xFF, 0xDA};
  const auto scan = static_cast<std::size_t>(
      std::search(data, data + size, std::begin(start_of_scan), std::end(start_of_scan)) - data);
  const std::size_t kept = seed % 8 == 0 || size - scan < 16 ? 0 : scan + 2;
  return kept + LLVMFuzzerMutate(data + kept, size - kept, size_max - kept);
}
