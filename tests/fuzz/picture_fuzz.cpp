// Does a file that was made up bring down the readers of WebP, BMP and photo packs, or make them contradict themselves?
//
// An input is eight bytes that say which crop, and a file. The crop is decoded, and the whole: where both are good the crop is
// that part of the whole, and a WebP is what libwebp itself makes of it, else this stops and libFuzzer keeps the input. Of a pack
// that unpacks into a JPEG both are what that gives.
// scripts/fuzz runs it.
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/support/make_webp.hpp"

#include <leat/error.hpp>
#include <leat/photo_pack.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

namespace leat {
namespace {

using testing::rgb_picture;

constexpr std::int64_t pixels_max = 128 * 128;

struct tally {
  std::uint64_t pictures = 0;  // with a header that says what size
  std::uint64_t good = 0;

  ~tally() {
    std::fprintf(stderr, "decoded: %llu pictures, of which %llu are good\n", static_cast<unsigned long long>(pictures),
                 static_cast<unsigned long long>(good));
  }
};

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::abort();
}

// Its JPEG, where it becomes one.
std::vector<std::byte> unpacked(const std::vector<std::byte>& pack) {
  try {
    return unpack_photo(pack);
  } catch (const error&) {
    return {};
  }
}

void look_at_pack(testing::one_decoder& one, tally& seen, const std::vector<std::byte>& pack,
                  const pixels::geometry& drawn, int width, int height) {
  const std::vector<std::byte> jpeg = unpacked(pack);
  for (const pixels::geometry& each : {drawn, testing::plain_box(0, 0, width, height)}) {
    const rgb_picture ours = one.decode(pack, each);
    if (one.kind != stages::outcome_kind::ok || jpeg.empty()) continue;
    ++seen.good;
    if (one.decode(jpeg, each) != ours) stop("the pack and its JPEG give two pictures");
    const rgb_picture recoded = one.decode(pack, each, {.own_huffman = false});
    if (one.kind != stages::outcome_kind::ok) {
      // A DC value of -32768 has no code in a row that begins with it.
      if (one.reason.find("out of range") == std::string::npos)
        stop("the pack is read, and not when it is coded again");
    } else if (recoded != ours) {
      stop("the pack gives another picture when it is coded again");
    }
  }
}

void look_at(const std::vector<std::byte>& encoded, const testing::fuzz_crop& wanted) {
  static testing::one_decoder one;
  static tally seen;
  const auto info = pixels::peek(encoded);
  if (!info || (info->what != pixels::format::webp && info->what != pixels::format::bmp &&
                info->what != pixels::format::photo_pack)) {
    return;
  }
  if (std::int64_t{info->width} * info->height > pixels_max) return;
  ++seen.pictures;
  const pixels::geometry drawn = wanted.of(info->width, info->height);
  static_cast<void>(one.decode(encoded, drawn, {.exif_orientation = wanted.decimate()}));
  if (info->what == pixels::format::photo_pack) {
    return look_at_pack(one, seen, encoded, drawn, info->width, info->height);
  }

  const pixels::rectangle box = drawn.box;
  const rgb_picture part = one.decode(encoded, testing::plain_box(box.x, box.y, box.width, box.height));
  const bool part_is_good = one.kind == stages::outcome_kind::ok;
  const rgb_picture whole = one.decode(encoded, testing::plain_box(0, 0, info->width, info->height));
  if (one.kind != stages::outcome_kind::ok) return;
  ++seen.good;
  // Lossy pictures are decoded as far as the crop goes: there it may not be that the whole is good and the part is not.
  if (!part_is_good) stop("the whole is good, and a part of it is not");
  if (part != testing::crop(whole, box.x, box.y, box.width, box.height)) stop("the part is another than in the whole");
  if (info->what != pixels::format::webp) return;
  const rgb_picture theirs = testing::decode_whole_webp(encoded);
  // Alpha is nothing to us, and damage in it is to libwebp.
  if (!theirs.pixels.empty() && whole != theirs) stop("libwebp makes other pixels of it");
}

}  // namespace
}  // namespace leat

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using leat::testing::fuzz_crop;
  if (size < fuzz_crop::bytes) return -1;
  fuzz_crop crop;
  std::memcpy(crop.raw, data, fuzz_crop::bytes);
  const auto file = std::as_bytes(std::span(data, size)).subspan(fuzz_crop::bytes);
  leat::look_at({file.begin(), file.end()}, crop);
  return 0;
}
