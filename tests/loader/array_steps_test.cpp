// Steps of array fields, beside the same written out element by element.
#include "base/half.hpp"
#include "base/text.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_tar.hpp>
#include <leat/own_samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;

/// Rows of this shape, whose elements count on from 0.
template <class Number>
dataset counted(dtype type, const dimensions& row, std::int64_t samples) {
  const auto owner = std::make_shared<std::vector<Number>>(static_cast<std::size_t>(row.elements() * samples));
  std::iota(owner->begin(), owner->end(), Number{});
  dimensions shape{samples};
  for (const std::int64_t extent : row) shape.push_back(extent);
  return from_tensors({{"x", {type, shape, dense_strides(shape), owner->data(), host}}}, owner);
}

template <class Number>
std::vector<Number> all_of(const dataset& samples, const array& how, dimensions* shape = nullptr) {
  loader train(samples, testing::one_epoch_in_order(), how);
  std::vector<Number> all;
  for (const batch& each : train.blocking()) {
    if (shape != nullptr) *shape = each["x"].shape;
    const std::vector<Number> some = testing::values_of<Number>(each, "x");
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST(array_steps, mirror_normalise_convert_and_transpose_as_written_out) {
  const testing::watchdog dog("array steps");
  testing::for_each_seed(4, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    for (int i = 0; i < 6; ++i) {
      std::vector<std::int64_t> extents(static_cast<std::size_t>(1 + below(4)));
      dimensions row;
      for (std::int64_t& extent : extents) row.push_back(extent = 1 + below(extents.size() == 1 ? 700 : 7));
      const std::size_t rank = extents.size();
      array how("x");
      std::vector<bool> mirrored(rank);
      for (std::size_t axis = 0; axis < rank; ++axis) {
        if (below(2) == 0) continue;
        mirrored[axis] = true;
        how = how.flip(below(2) == 0 ? static_cast<std::int64_t>(axis)
                                     : static_cast<std::int64_t>(axis) - static_cast<std::int64_t>(rank));
      }
      const auto channels = static_cast<std::size_t>(below(static_cast<std::int64_t>(rank)));
      std::vector<double> mean(static_cast<std::size_t>(extents[channels]));
      std::vector<double> deviation(mean.size());
      for (std::size_t c = 0; c < mean.size(); ++c) {
        mean[c] = static_cast<double>(below(100));
        deviation[c] = static_cast<double>(1 + below(9));
      }
      const bool is_normalised = below(2) == 0;
      if (is_normalised) how = how.normalize(mean, deviation, static_cast<std::int64_t>(channels));
      std::vector<std::int64_t> order(rank);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      how = how.transpose(order).as(dtype::f32);

      std::vector<float> wanted;
      const std::int64_t samples = 3;
      for (std::int64_t sample = 0; sample < samples; ++sample) {
        for (std::int64_t made = 0; made < row.elements(); ++made) {
          std::vector<std::int64_t> at(rank);
          std::int64_t rest = made;
          for (std::size_t axis = rank; axis-- > 0;) {
            const std::int64_t extent = extents[static_cast<std::size_t>(order[axis])];
            at[static_cast<std::size_t>(order[axis])] = rest % extent;
            rest /= extent;
          }
          std::int64_t from = 0;
          std::size_t channel = 0;
          for (std::size_t axis = 0; axis < rank; ++axis) {
            const std::int64_t stored = mirrored[axis] ? extents[axis] - 1 - at[axis] : at[axis];
            if (axis == channels) channel = static_cast<std::size_t>(stored);
            from = from * extents[axis] + stored;
          }
          const auto number = static_cast<double>(sample * row.elements() + from);
          wanted.push_back(static_cast<float>(is_normalised ? (number - mean[channel]) / deviation[channel] : number));
        }
      }
      SCOPED_TRACE(str_cat("rows of ", to_string(row)));
      dimensions shape;
      ASSERT_EQ(all_of<float>(counted<std::int32_t>(dtype::i32, row, samples), how, &shape), wanted);
      for (std::size_t axis = 0; axis < rank; ++axis) {
        ASSERT_EQ(shape[axis + 1], extents[static_cast<std::size_t>(order[axis])]);
      }
    }
  });
}

TEST(array_steps, keep_the_dtype_where_nothing_is_computed) {
  const testing::watchdog dog("array steps that move");
  EXPECT_EQ(all_of<std::uint16_t>(counted<std::uint16_t>(dtype::u16, {2, 2}, 2), array("x").flip(-1)),
            (std::vector<std::uint16_t>{1, 0, 3, 2, 5, 4, 7, 6}));
  EXPECT_EQ(all_of<std::uint8_t>(counted<std::uint8_t>(dtype::u8, {2, 3}, 1), array("x").transpose({1, 0})),
            (std::vector<std::uint8_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(all_of<double>(counted<double>(dtype::f64, {2}, 1), array("x").normalize(1, 2)),
            (std::vector<double>{-0.5, 0}));
  EXPECT_EQ(all_of<float>(counted<std::uint8_t>(dtype::u8, {2}, 1), array("x").normalize(1, 2)),
            (std::vector<float>{-0.5F, 0}));
  EXPECT_EQ(all_of<std::uint16_t>(counted<std::int64_t>(dtype::i64, {2}, 1), array("x").as(dtype::f16)),
            (std::vector<std::uint16_t>{f16_bits(0), f16_bits(1)}));
  EXPECT_EQ(all_of<std::uint8_t>(counted<std::uint8_t>(dtype::u8, {3, 4}, 1), array("x").center_crop({2, 2}).flip(0)),
            (std::vector<std::uint8_t>{5, 6, 1, 2}));
}

TEST(array_steps, of_npy_members_are_those_of_tensors) {
  const testing::watchdog dog("array steps of .npy members");
  const testing::temporary_directory root;
  testing::tar_writer tar;
  for (std::uint8_t sample = 0; sample < 3; ++sample) {
    std::string bytes;
    for (int i = 0; i < 6; ++i) bytes += static_cast<char>(sample * 6 + i);
    tar.add_file(str_cat(1000 + sample, ".x.npy"), testing::npy_text(testing::npy_dict("|u1", "2, 3"), bytes));
  }
  const std::vector<std::byte> bytes = tar.finish();
  const std::string file =
      testing::write_file(root.path() / "x.tar", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const array how = array("x").center_crop({1, 2}).flip(1).as(dtype::i32);
  EXPECT_EQ(all_of<std::int32_t>(open_tar(file), how.from("x.npy")),
            all_of<std::int32_t>(counted<std::uint8_t>(dtype::u8, {2, 3}, 3), how));
}

TEST(array_steps, that_are_random_mirror_some_rows_and_all_fields_of_a_sample_alike) {
  const testing::watchdog dog("random flips of arrays");
  const auto owner = std::make_shared<std::vector<std::uint8_t>>(1000);
  for (std::size_t i = 0; i < owner->size(); ++i) (*owner)[i] = i % 5;
  const auto of = [&](const char* name, const dimensions& shape) {
    return named_tensor{name, {dtype::u8, shape, dense_strides(shape), owner->data(), host}};
  };
  const dataset samples = from_tensors({of("x", {100, 2, 5}), of("mask", {100, 5})}, owner);
  loader_options options = testing::one_epoch_in_order();
  options.epochs = 2;
  loader train(samples, options, array("x").random_flip(1), array("mask").random_flip(-1));
  std::vector<bool> mirrored;
  const auto look_at = [&](const batch& each) {
    for (std::size_t row = 0; row < each.ids().size(); ++row) {
      const std::vector<std::byte> volume = testing::row_of(each, "x", row);
      const std::vector<std::byte> mask = testing::row_of(each, "mask", row);
      mirrored.push_back(volume.front() == std::byte{4});
      EXPECT_EQ(volume.front(), mask.front());
      EXPECT_EQ(volume.front(), volume[5]);
    }
  };
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const batch& each : train.blocking()) look_at(each);
  }
  ASSERT_EQ(mirrored.size(), 200U);
  const auto count = std::count(mirrored.begin(), mirrored.end(), true);
  EXPECT_GT(count, 50);
  EXPECT_LT(count, 150);
  EXPECT_FALSE(std::equal(mirrored.begin(), mirrored.begin() + 100, mirrored.begin() + 100)) << "alike in each epoch";
}

TEST(array_steps, with_a_number_that_the_type_has_not_are_corrupt) {
  const testing::watchdog dog("numbers that do not fit");
  const auto reason = [](const dataset& samples, const array& how) -> std::string {
    try {
      loader train(samples, testing::one_epoch_in_order(), how);
      static_cast<void>(train.next_blocking());
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::corrupt);
      return failure.what();
    }
    return "";
  };
  EXPECT_THAT(reason(counted<std::int32_t>(dtype::i32, {300}, 1), array("x").as(dtype::u8)),
              HasSubstr("the number 256, which is none of u8"));
  EXPECT_THAT(reason(counted<double>(dtype::f64, {70'000}, 1), array("x").as(dtype::f16)), HasSubstr("none of f16"));
  EXPECT_EQ(reason(counted<double>(dtype::f64, {256}, 1), array("x").as(dtype::u8)), "");
}

TEST(array_steps, that_do_not_fit_the_rows_are_refused_when_the_loader_is_built) {
  const testing::watchdog dog("array steps that do not fit");
  const dataset samples = counted<std::uint8_t>(dtype::u8, {2, 3}, 2);
  const auto refused = [&](const array& how) -> std::string {
    try {
      loader train(samples, testing::one_epoch_in_order(), how);
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::usage);
      return failure.what();
    }
    return "";
  };
  EXPECT_THAT(refused(array("x").flip(2)), HasSubstr("flip of axis 2 of rows of [2, 3]"));
  EXPECT_THAT(refused(array("x").random_flip(0, 1.5)), HasSubstr("probability 1.5"));
  EXPECT_THAT(refused(array("x").transpose({0, 0})), HasSubstr("each axis"));
  EXPECT_THAT(refused(array("x").transpose({0})), HasSubstr("each axis"));
  EXPECT_THAT(refused(array("x").normalize({1, 2}, {1, 1}, 1)), HasSubstr("2 means along axis 1"));
  EXPECT_THAT(refused(array("x").normalize({1, 2}, {1}, 0)), HasSubstr("2 means and 1 deviations"));
  EXPECT_THAT(refused(array("x").normalize(0, 0)), HasSubstr("deviation of 0"));
  EXPECT_THAT(refused(array("x").normalize(std::numeric_limits<double>::infinity(), 1)), HasSubstr("mean of inf"));
  EXPECT_THAT(refused(array("x").normalize(0, 1).as(dtype::u8)), HasSubstr("normalized numbers as u8"));
  EXPECT_THAT(refused(array("x").as(dtype::boolean)), HasSubstr("as bool"));
}

}  // namespace
}  // namespace leat
