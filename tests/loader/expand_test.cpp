// Fields that are stored in another form than the batch has: the bytes are those of the same samples as they are, and damage is a
// sample's own.
#include "tests/loader/running.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <libdeflate.h>

#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::small_options;

/// The same samples twice: packed by zlib, and as they are.
struct both_forms {
  dataset packed;
  dataset as_they_are;
};

std::string packed_by_zlib(const std::string& bytes) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> with(
      libdeflate_alloc_compressor(6), &libdeflate_free_compressor);
  std::string packed(libdeflate_zlib_compress_bound(with.get(), bytes.size()), '\0');
  packed.resize(libdeflate_zlib_compress(with.get(), bytes.data(), bytes.size(), packed.data(), packed.size()));
  return packed;
}

both_forms samples_in(const testing::temporary_directory& root, std::size_t samples, std::uint64_t seed,
                      std::size_t damaged = ~std::size_t{0}) {
  std::mt19937_64 random(seed);
  const std::string files[] = {(root.path() / "packed").string(), (root.path() / "plain").string()};
  std::ofstream packed(files[0], std::ios::binary);
  std::ofstream plain(files[1], std::ios::binary);
  extent_list::field fields[] = {{"x", {}, "zlib"}, {"x", {}}};
  std::uint64_t at[] = {0, 0};
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::string bytes(random() % 5000, 'a');
    for (char& letter : bytes) letter = static_cast<char>('a' + random() % 4);
    std::string stored = packed_by_zlib(bytes);
    if (sample == damaged) stored[stored.size() / 2] = static_cast<char>(~stored[stored.size() / 2]);
    packed << stored;
    plain << bytes;
    fields[0].extents.push_back({.offset = at[0], .stored_bytes = stored.size(), .decoded_bytes = bytes.size()});
    fields[1].extents.push_back({.offset = at[1], .stored_bytes = bytes.size()});
    at[0] += stored.size();
    at[1] += bytes.size();
  }
  packed.close();
  plain.close();
  return {from_extents({.files = {files[0]}, .fields = {fields[0]}}),
          from_extents({.files = {files[1]}, .fields = {fields[1]}})};
}

std::vector<std::string> rows_of(const dataset& samples, const loader_options& options) {
  loader train(samples, options, bytes("x"));
  std::vector<std::string> rows;
  for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const batch& got : train.blocking()) {
      for (std::size_t row = 0; row < got.valid_rows(); ++row) {
        rows.emplace_back(testing::as_text(testing::row_of(got, "x", row)));
      }
    }
  }
  return rows;
}

TEST(expand, gives_the_bytes_of_the_same_samples_as_they_are) {
  const testing::watchdog dog("expanded samples");
  testing::for_each_seed(2, [](std::uint64_t seed) {
    const testing::temporary_directory root;
    const both_forms same = samples_in(root, 200, seed);
    for (const bool shuffle : {false, true}) {
      loader_options options = small_options();
      options.shuffle = shuffle;
      const std::vector<std::string> expected = rows_of(same.as_they_are, options);
      ASSERT_EQ(expected.size(), 400U);
      EXPECT_EQ(rows_of(same.packed, options), expected);
    }
  });
}

TEST(expand, damage_is_the_sample_s_own) {
  const testing::watchdog dog("a damaged block");
  const testing::temporary_directory root;
  const both_forms same = samples_in(root, 50, 7, 20);
  loader_options options = small_options();
  options.shuffle = false;
  options.epochs = 1;
  options.on_corrupt = corrupt_policy::skip;
  std::vector<std::string> expected = rows_of(same.as_they_are, options);
  expected.erase(expected.begin() + 20);
  EXPECT_EQ(rows_of(same.packed, options), expected);
}

TEST(expand, the_plan_counts_stored_bytes_and_expanded_blocks) {
  const testing::temporary_directory root;
  const both_forms same = samples_in(root, 50, 7);
  const field_info field = same.packed.fields().front();
  const loader train(same.packed, small_options(), bytes("x"));
  std::string scratch;
  for (const loader_plan::line& line : train.plan().lines) {
    if (line.holder == "decode scratch") scratch = line.why;
  }
  EXPECT_THAT(scratch, HasSubstr("for expanded blocks"));
  EXPECT_LT(field.stored_block_bytes_max, field.decoded_block_bytes_max);
  EXPECT_EQ(field.bytes_max, field.decoded_block_bytes_max);
}

}  // namespace
}  // namespace leat
