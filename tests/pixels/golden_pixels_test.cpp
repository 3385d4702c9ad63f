// Rows that x86-64 has made once, of every kind of kernel: each processor makes the same bytes. What loaders make of them is in
// tests/loader/golden_digests_test.cpp, and so is what to do where a change is meant.
#include "base/hasher.hpp"
#include "stages/pixels/picture_decoder.hpp"
#include "tests/support/each_target.hpp"
#include "tests/support/golden_pictures.hpp"

#include <leat/photo_pack.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
namespace {

constexpr std::size_t scratch_bytes = std::size_t{64} << 20;

// Of all formats, each drawn four times, and of a photo pack; of the pixels as they are, and as each float.
std::string digest_of_rows(std::string_view steps, pixel_rounding rounding) {
  std::vector<std::vector<std::byte>> pictures;
  for (const std::string_view each :
       {testing::golden_jpeg, testing::golden_progressive_jpeg, testing::golden_png, testing::golden_webp}) {
    pictures.push_back(testing::from_hex(each));
  }
  pictures.push_back(pack_photo(pictures.front()));
  const pixels::pipeline chain(parse_transforms(steps), rounding);
  pixels::scratch_budget budget(scratch_bytes);
  pixels::picture_decoder decoder(budget);
  hasher all;
  for (const dtype type : {dtype::u8, dtype::f32, dtype::f16, dtype::bf16}) {
    const bool is_whole = type == dtype::u8;
    const pixels::store how = pixels::store::from(type, is_whole ? layout::nhwc : layout::nchw,
                                                  is_whole ? std::nullopt : std::optional(imagenet));
    std::vector<std::byte> row(how.row_bytes(chain.out_height(), chain.out_width()));
    for (const std::vector<std::byte>& picture : pictures) {
      for (std::uint64_t draw = 0; draw < 4; ++draw) {
        const auto got = decoder.decode(picture, chain, {.seed = 7, .epoch = 1, .draw = draw}, how,
                                        {.decimate = draw % 2 == 1}, row.data(), nullptr);
        EXPECT_TRUE(got) << (got ? "" : got.reason());
        all.add(row);
      }
    }
  }
  return all.finish().hex();
}

struct golden {
  std::string_view steps;
  std::string_view exact;
  std::string_view fused = {};  // none: as exact, or refused
};

TEST(golden_pixels, are_those_of_x86_64_on_every_processor) {
  for (const golden& each : {
           golden{"random_resized_crop(37) random_flip", "5b2f8c6a62c84fd8c2b4d1ef73850818"},
           {"resize(16, bicubic) center_crop(20)", "910bb9f7795a6bdc963884882e5df8ee"},
           {"random_resized_crop(24, 0.05..0.3) hue(0.3) saturation(0.2) brightness(1.3) contrast(0.7)",
            "a4929b4542b649f51488d404cebade75"},
           {"random_resized_crop(24) equalize autocontrast sharpness(1.7) posterize(4) solarize(128)",
            "e687efadf63afb98b23df12e84e42147"},
           {"random_resized_crop(24) gaussian_blur(5)", "a4bc29ab8340f4586ef0dcd46610e193"},
           {"random_resized_crop(24) rotate(-30..30)", "f1707d64bfda067d06a290d13e5dbd74",
            "dfa85ba5daa518fbdc96c4dc0165fcef"},
           {"random_resized_crop(24) rand-m9-mstd0.5-inc1", "4e60c207dfda5bb308ee81c109ec4b83",
            "6355dda6dca9f843cf5a01a534c530f7"},
           {"random_resized_crop(24) augmix-m5-w4-d2", "e209dc287f1c6eb0c7228eec9076d593"},
           {"random_resized_crop(24) gaussian_noise iso_noise salt_and_pepper coarse_dropout",
            "98aacef956faa3fd9b33293f21dcec8b"},
           {"random_resized_crop(24) downscale median_blur motion_blur clahe", "8edb7debd42af3f370d6f71123483013"},
           {"longest_side(50) pad_to(60x60, 1/2/3)", "fc654dd68f8230755551858554dbe2c9"},
       }) {
    SCOPED_TRACE(each.steps);
    testing::for_each_target([&] {
      EXPECT_EQ(digest_of_rows(each.steps, pixel_rounding::exact), each.exact);
      if (!each.fused.empty()) EXPECT_EQ(digest_of_rows(each.steps, pixel_rounding::fused), each.fused);
    });
  }
}

TEST(golden_pixels, of_a_photo_pack_are_of_the_same_bytes) {
  hasher pack;
  pack.add(pack_photo(testing::from_hex(testing::golden_jpeg)));
  EXPECT_EQ(pack.finish().hex(), "10ea330069315e39f7a894c11b6830ca");
}

}  // namespace
}  // namespace leat
