// Insides of outlines, and runs. tests/conformance/masks.py compares 1,000 random pictures with pycocotools.
#include "stages/pixels/mask_shapes.hpp"

#include "stages/pixels/mask_reader.hpp"

#include <leat/transforms.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace leat::pixels {
namespace {

constexpr int shapes_width = 8;
constexpr int shapes_height = 6;

mask_shapes one_shape(const std::vector<double>& numbers, bool is_outline) {
  mask_shapes shapes;
  shapes.all.push_back({.number = 1, .is_outline = is_outline, .first = 0, .count = numbers.size()});
  shapes.numbers.assign(numbers.begin(), numbers.end());
  return shapes;
}
mask_shapes outline_of(const std::vector<double>& places) { return one_shape(places, true); }
mask_shapes runs_of(const std::vector<double>& runs) { return one_shape(runs, false); }

// They are there already.
class ready_shapes final : public shape_source {
 public:
  explicit ready_shapes(const mask_shapes& of) : of_(of) {}
  std::size_t bytes() const override {
    return of_.all.size() * sizeof(mask_shape) + of_.numbers.size() * sizeof(double) + 2 * alignof(std::max_align_t);
  }
  stages::outcome<void> read(mask_shapes& to) const override {
    to.all.assign(of_.all.begin(), of_.all.end());
    to.numbers.assign(of_.numbers.begin(), of_.numbers.end());
    to.objects = of_.objects;
    return {};
  }

 private:
  const mask_shapes& of_;
};

// "#" for what is painted, line after line.
std::string painted(const mask_shapes& shapes, const rectangle& part) {
  const auto pixels = static_cast<std::size_t>(part.width * part.height);
  std::vector<std::uint8_t> marks(pixels);
  std::string text(pixels, '.');
  for (const mask_shape& each : shapes.all) {
    paint_shape(shapes, each, shapes_height, part, marks.data(), [&](int x, int begin, int end) {
      for (int y = begin; y < end; ++y) text[static_cast<std::size_t>((y - part.y) * part.width + x - part.x)] = '#';
    });
  }
  EXPECT_EQ(std::count(marks.begin(), marks.end(), 0), part.width * part.height);
  return text;
}
std::string painted(const mask_shapes& shapes) { return painted(shapes, {0, 0, shapes_width, shapes_height}); }

// pycocotools 2.0: decode(merge(frPyObjects([places], 6, 8))).
TEST(mask_shapes, have_the_inside_that_pycocotools_gives_an_outline) {
  EXPECT_EQ(painted(outline_of({1.2, 0.8, 6.7, 1.4, 5.1, 5.3, 2.6, 4.9})),
            "........"
            ".######."
            "..####.."
            "..####.."
            "..####.."
            "........");
  EXPECT_EQ(painted(outline_of({-3, -2, 4.5, 2.5, -1, 9})),
            "#......."
            "###....."
            "#####..."
            "####...."
            "###....."
            "##......");
  // It crosses itself.
  EXPECT_EQ(painted(outline_of({0, 0, 7.9, 5.9, 7.9, 0, 0, 5.9})),
            "#......#"
            "##....##"
            "###..###"
            "###..###"
            "##....##"
            "#......#");
}

TEST(mask_shapes, of_no_area_paint_nothing) {
  for (const std::vector<double>& places : {std::vector<double>{}, {1, 2}, {1, 2, 6, 4}, {3, 1, 3, 5, 3, 2}}) {
    EXPECT_EQ(painted(outline_of(places)), std::string(shapes_width * shapes_height, '.'));
  }
  EXPECT_EQ(painted(runs_of({48})), std::string(shapes_width * shapes_height, '.'));
}

TEST(mask_shapes, read_runs_down_the_columns) {
  EXPECT_EQ(painted(runs_of({2, 3, 2, 7, 0, 1, 33})),
            "..#....."
            ".##....."
            "###....."
            "##......"
            "##......"
            ".#......");
}

// A row of a crop looks at a part of the mask alone.
TEST(mask_shapes, are_the_same_in_each_part_of_their_picture) {
  const std::vector<mask_shapes> all{outline_of({1.2, 0.8, 6.7, 1.4, 5.1, 5.3, 2.6, 4.9}),
                                     outline_of({-3, -2, 4.5, 2.5, -1, 9}),
                                     outline_of({0, 0, 7.9, 5.9, 7.9, 0, 0, 5.9}),
                                     outline_of({-900, 1, 900, 2.5, 4, 7000}), runs_of({2, 3, 2, 7, 0, 1, 33})};
  for (const mask_shapes& shapes : all) {
    const std::string whole = painted(shapes);
    for (int y = 0; y < shapes_height; ++y) {
      for (int x = 0; x < shapes_width; ++x) {
        const rectangle part{x, y, shapes_width - x > 3 ? 3 : shapes_width - x, shapes_height - y > 2 ? 2 : 1};
        std::string expected;
        for (int line = y; line < y + part.height; ++line) {
          expected +=
              whole.substr(static_cast<std::size_t>(line * shapes_width + x), static_cast<std::size_t>(part.width));
        }
        ASSERT_EQ(painted(shapes, part), expected) << x << ", " << y;
      }
    }
  }
}

TEST(mask_shapes, lie_over_one_another_in_their_order_and_over_crowds) {
  mask_shapes shapes;
  shapes.numbers = {0, 0, 5, 0, 5, 6, 0, 6, 2, 0, 8, 0, 8, 6, 2, 6, 0, 48};
  shapes.all = {{.number = 300, .first = 0, .count = 8},
                {.number = 7, .first = 8, .count = 8},
                {.number = 1, .is_ignored = true, .is_outline = false, .first = 16, .count = 2}};
  const ready_shapes source(shapes);
  scratch_budget budget{std::size_t{64} << 20};
  mask_reader reader(budget);
  placed_picture where;
  const pipeline chain({transforms::center_crop{1, 10}});
  place(chain, {}, geometry_of(chain, {}, shapes_width, shapes_height, 1), where);
  std::vector<std::uint16_t> row(10);
  const auto bytes = std::as_writable_bytes(std::span(row));
  ASSERT_TRUE(reader.read({}, where, {.type = dtype::u16, .ignore = 9, .shapes = &source}, bytes, nullptr));
  EXPECT_EQ(row, (std::vector<std::uint16_t>{9, 300, 300, 7, 7, 7, 7, 7, 7, 9}));
  shapes.all.erase(shapes.all.begin() + 1);
  ASSERT_TRUE(reader.read({}, where, {.type = dtype::u16, .ignore = 9, .shapes = &source}, bytes, nullptr));
  EXPECT_EQ(row, (std::vector<std::uint16_t>{9, 300, 300, 300, 300, 300, 9, 9, 9, 9}));
  EXPECT_EQ(reader.read({}, where, {.shapes = &source}, bytes.first(10), nullptr).reason(),
            "category 300 is none of u8; mask::as() says another type");
}

TEST(mask_shapes, have_a_plane_for_each_object_that_is_asked_for) {
  mask_shapes shapes;
  shapes.numbers = {0, 0, 5, 0, 5, 6, 0, 6, 2, 0, 8, 0, 8, 6, 2, 6, 0, 48};
  shapes.all = {{.object = 0, .first = 0, .count = 8},
                {.object = 2, .first = 8, .count = 8},
                {.object = 3, .is_ignored = true, .is_outline = false, .first = 16, .count = 2}};
  shapes.objects = 4;
  const ready_shapes source(shapes);
  scratch_budget budget{std::size_t{64} << 20};
  mask_reader reader(budget);
  placed_picture where;
  const pipeline chain({transforms::center_crop{1, 10}});
  place(chain, {}, geometry_of(chain, {}, shapes_width, shapes_height, 1), where);
  std::vector<std::uint8_t> rows(50, 7);
  const auto bytes = std::as_writable_bytes(std::span(rows));
  const std::vector<std::int64_t> objects{0, 1, 2, 3};
  const auto read = reader.read_planes({}, where, {.shapes = &source}, {.objects = objects}, bytes, nullptr);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, 4U);
  // Crowds have a plane like others, an object without a shape an empty one.
  EXPECT_EQ(rows, (std::vector<std::uint8_t>{0, 1, 1, 1, 1, 1, 0, 0, 0, 0,  //
                                             0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                             0, 0, 0, 1, 1, 1, 1, 1, 1, 0,  //
                                             0, 1, 1, 1, 1, 1, 1, 1, 1, 0,  //
                                             0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  const std::vector<std::int64_t> one{2};
  ASSERT_TRUE(reader.read_planes({}, where, {.shapes = &source}, {.objects = one}, bytes.first(10), nullptr));
  EXPECT_EQ(std::vector(rows.begin(), rows.begin() + 10), (std::vector<std::uint8_t>{0, 0, 0, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(reader.read_planes({}, where, {.shapes = &source}, {.objects = one, .whole = 3}, bytes.first(10), nullptr)
                .reason(),
            "has 4 segmentations, and there are 3 boxes");
}

}  // namespace
}  // namespace leat::pixels
