// Colour against its plain reference, on every instruction set; and what must not change a bit.
#include "base/half.hpp"
#include "stages/pixels/colour/kernels.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/pixels/row_of.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/each_target.hpp"
#include "tests/support/reference_colour.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using pixels::colour_pass;
using pixels::pass_reach;
using pixels::recipe;
using testing::rgb_picture;
namespace tr = transforms;

rgb_picture flat(int width, int height, std::uint8_t value) {
  return {width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * 3), value)};
}

std::vector<rgb_picture> pictures() {
  return {testing::make_noise(1, 71, 9),
          testing::make_texture(2, 64, 48),
          flat(17, 5, 200),
          flat(3, 3, 0),
          testing::make_noise(3, 1, 1),
          testing::make_noise(4, 2, 7),
          testing::make_texture(5, 130, 31)};
}

rgb_picture mirrored(const rgb_picture& of) {
  rgb_picture made = of;
  for (int y = 0; y < of.height; ++y) {
    for (int x = 0; x < of.width; ++x) std::copy_n(of.at(of.width - 1 - x, y), 3, made.at(x, y));
  }
  return made;
}

recipe drawn(const pixels::pipeline& chain, std::uint64_t sample) {
  recipe passes;
  chain.draw_colour({.seed = 7, .epoch = 1, .draw = sample}, passes);
  return passes;
}

// A row for each operation.
const std::vector<std::string>& operations() {
  static const std::vector<std::string> all = {"brightness(0..2)",
                                               "contrast(0..2)",
                                               "saturation(0..2)",
                                               "hue(-0.5..0.5)",
                                               "gamma(0.3..3)",
                                               "grayscale",
                                               "invert",
                                               "posterize(3)",
                                               "posterize(0)",
                                               "posterize(8)",
                                               "solarize(128)",
                                               "solarize_add(37)",
                                               "solarize_add(255, 256)",
                                               "solarize(0)",
                                               "solarize(256)",
                                               "autocontrast",
                                               "equalize",
                                               "sharpness(0..3)",
                                               "gaussian_blur(5, 0.1..2)",
                                               "gaussian_blur(1, 1)",
                                               "gaussian_blur(23, 0.1..2)",
                                               "channel_permutation",
                                               "brightness(0)",
                                               "saturation(0)",
                                               "contrast(0)",
                                               "hue(0.5)",
                                               "gaussian_blur(3, 100)"};
  return all;
}

TEST(colour, is_the_plain_references_on_every_instruction_set) {
  for (const rgb_picture& picture : pictures()) {
    for (const std::string& text : operations()) {
      SCOPED_TRACE(text + " of " + std::to_string(picture.width) + " x " + std::to_string(picture.height));
      if (text.starts_with("gaussian_blur(5") && std::min(picture.width, picture.height) < 3) continue;
      if (text.starts_with("gaussian_blur(3") && std::min(picture.width, picture.height) < 2) continue;
      if (text.starts_with("gaussian_blur(23") && std::min(picture.width, picture.height) < 12) continue;
      const pixels::pipeline chain = testing::chain_for(picture, parse_transforms(text));
      for (std::uint64_t sample = 0; sample < 6; ++sample) {
        const recipe passes = drawn(chain, sample);
        ASSERT_EQ(passes.count, 1U);
        const colour_pass& pass = passes.passes[0];
        SCOPED_TRACE(text_of(pass));
        const rgb_picture expected = testing::reference_colour(picture, pass);
        rgb_picture first;
        testing::for_each_target([&] {
          const rgb_picture got = testing::coloured(picture, passes);
          if (first.pixels.empty()) first = got;
          ASSERT_EQ(got, first);
        });
        const bool exact = pass.reach() == pass_reach::table || text == "autocontrast" || text == "equalize" ||
                           text == "channel_permutation";
        std::size_t apart = 0;
        for (std::size_t i = 0; i < expected.pixels.size(); ++i) {
          const int by = std::abs(first.pixels[i] - expected.pixels[i]);
          ASSERT_LE(by, exact ? 0 : 1) << i;
          apart += by != 0 ? 1 : 0;
        }
        // Roundings in f32 and in fixed point show in few values.
        EXPECT_LE(apart, expected.pixels.size() / 50 + 2);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(colour, maps_any_number_of_values_by_a_table_on_every_instruction_set) {
  std::mt19937_64 random(3);
  std::vector<std::uint8_t> by(256);
  for (std::uint8_t& each : by) each = static_cast<std::uint8_t>(random());
  for (std::size_t count = 0; count <= 200; ++count) {
    std::vector<std::uint8_t> from(count), expected(count);
    for (std::size_t i = 0; i < count; ++i) expected[i] = by[from[i] = static_cast<std::uint8_t>(random())];
    testing::for_each_target([&] {
      std::vector<std::uint8_t> to(count);
      pixels::map_values(from.data(), count, by.data(), to.data());
      ASSERT_EQ(to, expected);
      std::vector<std::uint8_t> in_place = from;
      pixels::map_values(in_place.data(), count, by.data(), in_place.data());
      ASSERT_EQ(in_place, expected);
    });
  }
}

// A random chain of tables, with what follows from statistics in between.
std::string random_tables(std::mt19937_64& random) {
  const std::vector<std::string> some = {"brightness(0.3..1.7)", "invert",       "posterize(4)", "solarize(100)",
                                         "gamma(0.5..2)",        "autocontrast", "equalize",     "contrast(0.5..1.5)"};
  std::string text;
  for (int i = std::uniform_int_distribution<int>(1, 7)(random); i > 0; --i) {
    text += some[random() % some.size()] + " ";
  }
  return text;
}

TEST(colour, of_one_composed_table_is_that_of_one_step_after_the_other) {
  rgb_picture all = testing::make_noise(5, 256, 3);
  for (int v = 0; v < 256; ++v) std::fill_n(all.at(v, 0), 3, static_cast<std::uint8_t>(v));
  testing::for_each_seed(150, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::string text = random_tables(random);
    SCOPED_TRACE(text);
    const rgb_picture picture = seed % 3 == 0 ? testing::make_texture(seed, 40, 30) : all;
    const recipe passes = drawn(testing::chain_for(picture, parse_transforms(text)), seed);
    rgb_picture expected = picture;
    for (const colour_pass& pass : passes.drawn()) {
      recipe one;
      one.key = passes.key;
      one.add(pass);
      expected = testing::coloured(expected, one);
    }
    ASSERT_EQ(testing::coloured(picture, passes), expected);
  });
}

constexpr const char* everything =
    "brightness(0.5..1.5) sharpness(0..2) autocontrast saturation(0..2) hue(-0.5..0.5) equalize contrast(0.5..1.5) "
    "gaussian_blur(5, 0.5..2) in_random_order(invert, grayscale, solarize(90)) random_apply(0.5, channel_permutation) "
    "random_apply(0.5, posterize(5))";

const std::string everything_and_warps =
    std::string(everything) +
    " rotate(-40..40, bilinear, 9/8/7) random_apply(0.5, affine(-30..30, 0.1, 0.2, 0.7..1.3, -9..9)) "
    "perspective(0.4) random_apply(0.5, vertical_flip) rand_augment(2)";

TEST(colour, of_any_order_steps_is_that_of_one_after_the_other) {
  const rgb_picture picture = testing::make_texture(7, 53, 41);
  testing::for_each_seed(40, [&](std::uint64_t seed) {
    const pixels::pipeline chain =
        testing::chain_for(picture, {tr::in_random_order{parse_transforms(everything_and_warps)}});
    const recipe passes = drawn(chain, seed);
    rgb_picture expected = picture;
    for (const colour_pass& pass : passes.drawn()) {
      recipe one;
      one.key = passes.key;
      one.add(pass);
      expected = testing::coloured(expected, one);
    }
    ASSERT_EQ(testing::coloured(picture, passes), expected);
  });
}

TEST(colour, commutes_with_the_mirror) {
  for (const rgb_picture& picture : {testing::make_texture(8, 53, 41), testing::make_noise(9, 64, 12)}) {
    const pixels::pipeline chain = testing::chain_for(picture, parse_transforms(everything));
    for (std::uint64_t sample = 0; sample < 10; ++sample) {
      const recipe passes = drawn(chain, sample);
      testing::for_each_target([&] {
        ASSERT_EQ(testing::coloured(mirrored(picture), passes), mirrored(testing::coloured(picture, passes)));
      });
    }
  }
}

// What the u8 picture is, as an element: by the table of store, and where a table stood before it, by the composed one.
TEST(colour, ends_in_the_elements_that_its_u8_picture_has) {
  const rgb_picture picture = testing::make_texture(10, 29, 13);
  for (const char* text :
       {"hue(0.2)", "brightness(1.3)", "saturation(0.3) invert", "autocontrast solarize(70)", "equalize hue(0.1)"}) {
    const recipe passes = drawn(testing::chain_for(picture, parse_transforms(text)), 1);
    const rgb_picture seen = testing::coloured(picture, passes);
    for (const layout order : {layout::nchw, layout::nhwc}) {
      for (const dtype type : {dtype::u8, dtype::f32, dtype::f16, dtype::bf16}) {
        const auto how =
            pixels::store::from(type, order, type == dtype::u8 ? std::nullopt : std::optional<normalization>(imagenet));
        const std::vector<std::byte> row = testing::row_of(picture, passes, how);
        const std::size_t element = size_bytes(type);
        for (int y = 0; y < seen.height; ++y) {
          for (int x = 0; x < seen.width; ++x) {
            for (int c = 0; c < 3; ++c) {
              const int at =
                  order == layout::nchw ? (c * seen.height + y) * seen.width + x : (y * seen.width + x) * 3 + c;
              const std::uint8_t value = seen.at(x, y)[c];
              const auto channel = static_cast<std::size_t>(c);
              const float scaled = static_cast<float>(value) * how.scale[channel];
              std::array<std::byte, 4> expected{};
              pixels::store_number(how, type == dtype::u8 ? value : scaled + how.bias[channel], expected.data());
              ASSERT_EQ(std::memcmp(row.data() + static_cast<std::size_t>(at) * element, expected.data(), element), 0);
            }
          }
        }
      }
    }
  }
}

TEST(colour, calls_ones_own_functions_with_draws_of_their_own) {
  const rgb_picture picture = testing::make_texture(11, 20, 10);
  const tr::lookup dim{"dim", [](draws& d) { return table::of([f = d.uniform(0.5, 1)](int v) { return f * v; }); }};
  const tr::edit mark{"mark", [](draws& d, planes p) {
                        const auto x = static_cast<int>(d.below(static_cast<std::uint64_t>(p.width)));
                        for (int c = 0; c < 3; ++c) p.line(c, 3)[x] = 255;
                        return std::string();
                      }};
  const pixels::pipeline chain = testing::chain_for(picture, {tr::grayscale{}, dim, mark, tr::invert{}});
  EXPECT_TRUE(chain.calls_functions());
  std::map<int, int> places;
  for (std::uint64_t sample = 0; sample < 30; ++sample) {
    const rgb_picture got = testing::coloured(picture, drawn(chain, sample));
    EXPECT_EQ(got, testing::coloured(picture, drawn(chain, sample)));
    for (int x = 0; x < 20; ++x) {
      if (got.at(x, 3)[0] == 0 && got.at(x, 3)[1] == 0) ++places[x];
    }
  }
  EXPECT_GE(places.size(), 8U);

  std::string reason;
  const tr::edit refuses{"refuses", [](draws&, planes) { return std::string("too dark"); }};
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  const pixels::pipeline refusing = testing::chain_for(picture, {refuses});
  static_cast<void>(testing::row_of(picture, drawn(refusing, 1), how, &reason));
  EXPECT_EQ(reason, "too dark");
}

TEST(colour, erases_a_box_of_elements) {
  const rgb_picture picture = flat(40, 30, 100);
  for (const dtype type : {dtype::u8, dtype::f32, dtype::f16}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      const auto how = pixels::store::from(type, order, std::nullopt);
      const pixels::pipeline chain =
          testing::chain_for(picture, {tr::random_erasing{.probability = 1, .value = {1, 2, 3}}});
      const recipe passes = drawn(chain, 3);
      ASSERT_TRUE(passes.erased);
      const pixels::rectangle box = passes.erased->box;
      const std::vector<std::byte> row = testing::row_of(picture, passes, how);
      const std::size_t element = size_bytes(type);
      for (int y = 0; y < 30; ++y) {
        for (int x = 0; x < 40; ++x) {
          const bool inside = x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
          for (int c = 0; c < 3; ++c) {
            const int at = order == layout::nchw ? (c * 30 + y) * 40 + x : (y * 40 + x) * 3 + c;
            std::array<std::byte, 4> expected{};
            const float scaled = 100.0F * how.scale[0];
            const float outside = type == dtype::u8 ? 100.0F : scaled + how.bias[0];
            pixels::store_number(how, inside ? static_cast<float>(c + 1) : outside, expected.data());
            ASSERT_EQ(std::memcmp(row.data() + static_cast<std::size_t>(at) * element, expected.data(), element), 0);
          }
        }
      }
    }
  }
}

TEST(colour, erases_with_noise_of_the_normal_law) {
  const rgb_picture picture = flat(200, 200, 100);
  const auto how = pixels::store::from(dtype::f32, layout::nchw, std::nullopt);
  const pixels::pipeline chain = testing::chain_for(
      picture, {tr::random_erasing{.probability = 1, .scale = {0.3, 0.3}, .ratio = {1, 1}, .noise = true}});
  const recipe passes = drawn(chain, 5);
  ASSERT_TRUE(passes.erased);
  const std::vector<std::byte> row = testing::row_of(picture, passes, how);
  ASSERT_EQ(testing::row_of(picture, passes, how), row);
  double sum = 0, squares = 0, inside = 0, count = 0;
  for (std::size_t i = 0; i < row.size(); i += 4) {
    float value = 0;
    std::memcpy(&value, row.data() + i, 4);
    if (value == 100.0F * how.scale[0]) continue;
    sum += value;
    squares += value * value;
    inside += std::abs(value) < 1 ? 1 : 0;
    ++count;
  }
  ASSERT_GT(count, 30000);
  EXPECT_NEAR(sum / count, 0, 0.03);
  EXPECT_NEAR(squares / count, 1, 0.04);
  EXPECT_NEAR(inside / count, 0.6827, 0.02);
}

TEST(colour, of_a_photograph_is_the_same_on_every_instruction_set_and_whoever_mirrors_it) {
  const std::vector<std::byte> encoded = testing::make_jpeg(testing::make_texture(13, 90, 70), {});
  std::vector<transform> steps = {tr::random_resized_crop{.height = 31, .width = 45}, tr::random_flip{}};
  for (const transform& each : parse_transforms(everything)) steps.push_back(each);
  const pixels::pipeline chain(steps);
  steps.push_back(tr::edit{"mark", [](draws&, planes p) {
                             p.line(0, 2)[1] = 99;
                             return std::string();
                           }});
  const pixels::pipeline with_edit(steps);
  steps.back() = tr::rotate{.degrees = {-30, 30}, .how = filter::bilinear};
  const pixels::pipeline with_warp(steps);
  testing::one_decoder one;
  const auto decode = [&](const pixels::pipeline& by, std::uint64_t sample, dtype type, layout order, bool leave) {
    const auto how = pixels::store::from(type, order, std::nullopt);
    std::vector<std::byte> row(how.row_bytes(31, 45));
    const auto done = one.decoder.decode(encoded, by, {1, 0, sample}, how, {.leave_flip = leave}, row.data(), nullptr);
    EXPECT_TRUE(done) << done.reason();
    return std::pair(row, done && done->to_mirror);
  };
  const auto as_picture = [](const std::vector<std::byte>& row) {
    rgb_picture made{45, 31, {}};
    for (const std::byte each : row) made.pixels.push_back(std::to_integer<std::uint8_t>(each));
    return made;
  };
  int left = 0;
  for (std::uint64_t sample = 0; sample < 12; ++sample) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      for (const dtype type : {dtype::u8, dtype::f16, dtype::bf16, dtype::f32}) {
        std::vector<std::byte> first;
        testing::for_each_target([&] {
          const std::vector<std::byte> row = decode(chain, sample, type, order, false).first;
          if (first.empty()) first = row;
          ASSERT_EQ(row, first);
        });
      }
    }
    for (const pixels::pipeline* by : {&chain, &with_edit, &with_warp}) {
      const rgb_picture whole = as_picture(decode(*by, sample, dtype::u8, layout::nhwc, false).first);
      const auto [row, to_mirror] = decode(*by, sample, dtype::u8, layout::nhwc, true);
      ASSERT_EQ(to_mirror ? mirrored(as_picture(row)) : as_picture(row), whole);
      if (by != &chain) EXPECT_FALSE(to_mirror);
      left += to_mirror ? 1 : 0;
    }
  }
  EXPECT_GT(left, 2);
}

TEST(colour, asks_for_no_memory_once_it_is_warm) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  const rgb_picture picture = testing::make_texture(12, 48, 48);
  const pixels::pipeline chain =
      testing::chain_for(picture, parse_transforms(everything_and_warps + " random_erasing(0.5)"));
  const auto how = pixels::store::from(dtype::f16, layout::nchw, imagenet);
  pixels::scratch_budget budget(std::size_t{64} << 20);
  pixels::scratch_arena arena(budget);
  std::vector<std::byte> row(how.row_bytes(48, 48));
  std::vector<std::uint8_t> line(48 * 3, 77);
  const auto run = [&](std::uint64_t sample) {
    recipe passes;
    chain.draw_colour({1, 0, sample}, passes);
    arena.begin();
    pixels::row_writer writer(how, &passes, 48, 48, row.data());
    ASSERT_TRUE(arena.reserve(writer.scratch_bytes()));
    ASSERT_LE(writer.scratch_bytes(), pixels::row_writer::scratch_bytes_most(chain));
    ASSERT_TRUE(writer.start(arena));
    for (int y = 0; y < 48; ++y) writer.take(line.data(), y);
    ASSERT_TRUE(writer.finish());
    arena.end();
  };
  for (std::uint64_t sample = 0; sample < 40; ++sample) run(sample);
  const testing::allocation_counter counter;
  for (std::uint64_t sample = 0; sample < 40; ++sample) run(sample);
  EXPECT_EQ(counter.count().allocations, 0U);
}

}  // namespace
}  // namespace leat
