// Rows that are boxes out of chunks: the bytes are those of the same array in one piece, each chunk is expanded once a batch, and damage
// concerns the rows that need the damaged chunk. One long file, since nearly all tests make their arrays by make_both().
#include "datasets/files/input_files.hpp"
#include "datasets/model/model.hpp"
#include "datasets/model/sample_blocks.hpp"
#include "datasets/tables/chunked_rows.hpp"
#include "stages/order/order_model.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/open_records.hpp>
#include <leat/open_tables.hpp>
#include <leat/order.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <libdeflate.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using datasets::chunk_place;
using datasets::chunked_array;
using datasets::filter;
using datasets::filter_kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::small_options;

using extents = std::vector<std::uint64_t>;

std::uint64_t product_of(const extents& shape, std::size_t first = 0) {
  std::uint64_t product = 1;
  for (std::size_t axis = first; axis < shape.size(); ++axis) product *= shape[axis];
  return product;
}

std::string packed_by_zlib(const std::string& bytes) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> with(
      libdeflate_alloc_compressor(1), &libdeflate_free_compressor);
  std::string packed(libdeflate_zlib_compress_bound(with.get(), bytes.size()), '\0');
  packed.resize(libdeflate_zlib_compress(with.get(), bytes.data(), bytes.size(), packed.data(), packed.size()));
  return packed;
}

std::string shuffled_bytes(const std::string& bytes, std::size_t element) {
  std::string to(bytes.size(), '\0');
  const std::size_t elements = bytes.size() / element;
  for (std::size_t i = 0; i < elements; ++i) {
    for (std::size_t k = 0; k < element; ++k) to[k * elements + i] = bytes[i * element + k];
  }
  return to;
}

/// An array as it was made up, and as chunks in a file.
struct made_array {
  chunked_array array;
  std::string values;  ///< in C order
};

struct what_to_make {
  extents shape;
  extents chunk;
  std::vector<filter> filters = {};
  double absent = 0;  ///< the share of chunks that were never written
  std::vector<std::uint8_t> stored_axes = {};
  std::size_t record_bytes = 0;
  std::size_t record_offset = 0;
  dtype type = dtype::u32;
  bool big_endian = false;     ///< of records
  std::size_t lead_bytes = 0;  ///< before the first element of a chunk; where there are filters
};

/// Writes the chunks to `to`, one by one in any order, with gaps.
made_array make_array(const std::string& name, const what_to_make& what, std::mt19937_64& random, std::ofstream& to,
                      std::uint64_t& end) {
  const std::size_t element = size_bytes(what.type);
  const auto put = [&](char* to_element, std::uint64_t value, bool turned) {
    for (std::size_t i = 0; i < element; ++i) {
      to_element[turned ? element - 1 - i : i] = static_cast<char>(value >> (8 * i));
    }
  };
  constexpr std::uint64_t never_written = 0x0807060504030201;
  made_array made;
  made.array.name = name;
  made.array.type = what.type;
  made.array.big_endian = what.big_endian;
  made.array.lead_bytes = what.lead_bytes;
  made.array.shape = what.shape;
  made.array.chunk = what.chunk;
  made.array.filters = what.filters;
  const std::size_t step = what.record_bytes != 0 ? what.record_bytes : element;
  made.array.fill.assign(step, std::byte{9});
  put(reinterpret_cast<char*>(made.array.fill.data()) + what.record_offset, never_written, what.big_endian);
  made.array.stored_axes = what.stored_axes;
  made.array.record_bytes = static_cast<std::uint32_t>(what.record_bytes);
  made.array.record_offset = static_cast<std::uint32_t>(what.record_offset);
  made.values.resize(product_of(what.shape) * element);
  extents grid;
  for (std::size_t axis = 0; axis < what.shape.size(); ++axis) {
    grid.push_back((what.shape[axis] + what.chunk[axis] - 1) / what.chunk[axis]);
  }
  made.array.places.resize(product_of(grid));
  std::vector<std::size_t> order(made.array.places.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t number : order) {
    extents at(grid.size());
    std::size_t rest = number;
    for (std::size_t axis = grid.size(); axis-- > 0;) {
      at[axis] = rest % grid[axis];
      rest /= grid[axis];
    }
    const bool absent = std::uniform_real_distribution<>(0, 1)(random) < what.absent;
    // The slow reference: element by element.
    std::string chunk(product_of(what.chunk) * step, '\0');
    for (std::uint64_t i = 0; i < product_of(what.chunk); ++i) {
      const std::uint64_t value = absent ? never_written : random() % 7 * 1'000'003'000'005;
      std::uint64_t left = i;
      std::uint64_t place = 0;
      std::uint64_t stride = 1;
      bool inside = true;
      extents coordinates(grid.size());
      for (std::size_t slower = grid.size(); slower-- > 0;) {
        const std::size_t axis = what.stored_axes.empty() ? slower : what.stored_axes[slower];
        coordinates[axis] = at[axis] * what.chunk[axis] + left % what.chunk[axis];
        left /= what.chunk[axis];
      }
      for (std::size_t axis = grid.size(); axis-- > 0;) {
        inside = inside && coordinates[axis] < what.shape[axis];
        place += coordinates[axis] * stride;
        stride *= what.shape[axis];
      }
      put(chunk.data() + i * step + what.record_offset, value, what.big_endian);
      if (inside) put(made.values.data() + place * element, value, false);
    }
    if (absent) continue;
    chunk.insert(0, what.lead_bytes, 'h');
    for (const filter& each : what.filters) {
      chunk = each.kind == filter_kind::zlib ? packed_by_zlib(chunk) : shuffled_bytes(chunk, each.element_bytes);
    }
    const std::string gap(random() % 5, 'x');
    to << gap << chunk;
    end += gap.size();
    made.array.places[number] = {.offset = end, .bytes = chunk.size()};
    end += chunk.size();
  }
  return made;
}

void write_npy(const std::string& path, const made_array& made) {
  std::string shape;
  for (const std::uint64_t extent : made.array.shape) shape += std::to_string(extent) + ", ";
  const std::string descr = made.array.type == dtype::u8 ? "|u1" : "<u" + std::to_string(size_bytes(made.array.type));
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::ofstream to(path, std::ios::binary);
  to << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() & 0xFF)
     << static_cast<char>(header.size() >> 8) << header << made.values;
}

/// The same rows twice. Fields "x" and, in one piece, "npy".
struct both_forms {
  dataset chunked;
  dataset in_one_piece;
  std::string file;
  chunked_array array;
};

dataset opened(const std::string& file, std::vector<chunked_array> arrays, datasets::row_windows rows = {}) {
  const auto from = datasets::files_on_disk({file});
  const datasets::sized_file sized{file, std::filesystem::file_size(file)};
  datasets::placed_files placed = from->place({&sized, 1});
  return datasets::chunked_rows({.format = "test",
                                 .title = file,
                                 .files = std::move(placed.table),
                                 .source = std::move(placed.source),
                                 .arrays = std::move(arrays),
                                 .values = {},
                                 .notes = {},
                                 .rows = rows});
}

both_forms make_both(const testing::temporary_directory& root, const what_to_make& what, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::string file = (root.path() / ("chunks" + std::to_string(seed))).string();
  std::uint64_t end = 0;
  std::ofstream to(file, std::ios::binary);
  const made_array made = make_array("x", what, random, to, end);
  to.close();
  const std::string plain = file + ".npy";
  write_npy(plain, made);
  return {opened(file, {made.array}), open_npy(plain, {.samples = npy_options::sample::row}), file, made.array};
}

std::vector<std::string> rows_of(const dataset& samples, const loader_options& options, const array& field) {
  loader train(samples, options, field);
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

std::vector<std::string> rows_of(const dataset& samples, const loader_options& options, const std::string& member) {
  return rows_of(samples, options, array{"x"}.from(member));
}

what_to_make any_array(std::mt19937_64& random) {
  what_to_make what;
  const std::size_t rank = 1 + random() % 4;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    what.shape.push_back(axis == 0 ? 1 + random() % 90 : 1 + random() % 9);
    what.chunk.push_back(1 + random() % (what.shape.back() + 3));
  }
  // A row of one number would be a column.
  if (rank == 1) {
    what.shape.push_back(2);
    what.chunk.push_back(2);
  }
  if (random() % 3 == 0) what.chunk = {1};
  while (what.chunk.size() < what.shape.size()) what.chunk.push_back(what.shape[what.chunk.size()]);
  constexpr dtype types[] = {dtype::u8, dtype::u16, dtype::u32, dtype::u64};
  what.type = types[random() % 4];
  const std::size_t element = size_bytes(what.type);
  switch (random() % 3) {
    case 0:
      break;
    case 1:
      what.filters = {{.kind = filter_kind::zlib}};
      if (random() % 3 == 0) what.lead_bytes = 1 + random() % 200;
      break;
    default:
      what.filters = {{.kind = filter_kind::shuffle, .element_bytes = static_cast<std::uint32_t>(element)},
                      {.kind = filter_kind::zlib}};
  }
  if (random() % 3 == 0) what.absent = 0.4;
  if (random() % 4 == 0) {
    for (std::size_t axis = 0; axis < what.shape.size(); ++axis)
      what.stored_axes.push_back(static_cast<std::uint8_t>(axis));
    std::shuffle(what.stored_axes.begin(), what.stored_axes.end(), random);
  }
  if (random() % 4 == 0) {
    what.record_offset = random() % 6;
    what.record_bytes = what.record_offset + element + random() % 6;
    what.big_endian = random() % 2 == 0;
    for (filter& each : what.filters) {
      if (each.kind == filter_kind::shuffle) each.element_bytes = static_cast<std::uint32_t>(what.record_bytes);
    }
  }
  return what;
}

TEST(chunked, rows_are_those_of_the_array_in_one_piece) {
  const testing::watchdog dog("chunked rows");
  testing::for_each_seed(40, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const testing::temporary_directory root;
    const both_forms same = make_both(root, any_array(random), seed);
    loader_options options = small_options();
    options.shuffle = seed % 2 == 0;
    options.batch_size = static_cast<std::uint32_t>(1 + random() % 40);
    options.decode_threads = static_cast<std::uint32_t>(1 + random() % 3);
    options.reader.io_threads = static_cast<std::uint32_t>(1 + random() % 2);
    options.digests = seed % 3 == 0;
    ASSERT_TRUE(rows_of(same.chunked, options, "x") == rows_of(same.in_one_piece, options, "npy"));
  });
}

// Crops and slices of "x", drawn once for both forms.
array any_crop(std::mt19937_64& random, std::span<const std::int64_t> row) {
  array field{"x"};
  std::vector<std::int64_t> room(row.begin(), row.end());
  if (random() % 2 == 0) {
    const std::size_t axis = random() % room.size();
    const auto first = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(room[axis]));
    room[axis] = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(room[axis] - first));
    const auto named =
        static_cast<std::int64_t>(axis) - (random() % 2 == 0 ? static_cast<std::int64_t>(room.size()) : 0);
    field = field.slice(named, first, room[axis]);
  }
  std::vector<std::int64_t> size;
  for (std::size_t axis = random() % room.size(); axis < room.size(); ++axis) {
    size.push_back(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(room[axis])));
  }
  return random() % 2 == 0 ? field.random_crop(size) : field.center_crop(size);
}

TEST(chunked, crops_are_those_of_the_array_in_one_piece) {
  const testing::watchdog dog("cropped rows");
  testing::for_each_seed(60, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const testing::temporary_directory root;
    const both_forms same = make_both(root, any_array(random), seed);
    const dimensions row = same.in_one_piece.fields().front().shape;
    const array field = any_crop(random, {row.begin(), row.end()});
    loader_options options = small_options();
    options.batch_size = static_cast<std::uint32_t>(1 + random() % 40);
    options.decode_threads = static_cast<std::uint32_t>(1 + random() % 3);
    options.seed = seed;
    options.digests = seed % 3 == 0;
    const std::vector<std::string> rows = rows_of(same.chunked, options, field);
    ASSERT_FALSE(rows.empty());
    ASSERT_TRUE(rows == rows_of(same.in_one_piece, options, field.from("npy")));
  });
}

std::vector<std::string> digests_of(const dataset& samples, const std::string& member) {
  loader_options options = small_options();
  options.batch_size = 4;
  options.digests = true;
  loader train(samples, options, array{"x"}.from(member));
  std::vector<std::string> digests;
  for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const batch& got : train.blocking()) digests.push_back(got.content_digest().value().hex());
  }
  return digests;
}

// Files that h5py and zarr-python wrote: the same numbers through every filter, by the same order, are the same run.
TEST(chunked, arrays_of_any_filter_and_chunks_have_one_digest) {
  const testing::watchdog dog("digests of arrays");
  const std::string folder = std::string(LEAT_TEST_DATA) + "/";
  const dataset filters = open_hdf5(folder + "hdf5/filters.h5");
  const std::vector<std::string> expected = digests_of(filters, "zstd");
  for (const char* const member : {"lzf", "lzf_shuffled", "lz4", "lz4_one_block", "blosc_lz4", "blosc_zstd", "blosclz",
                                   "bitshuffle", "bitshuffle_lz4", "bitshuffle_blocks"}) {
    EXPECT_EQ(digests_of(filters, member), expected) << member;
  }
  const dataset series = open_hdf5(folder + "hdf5/groups.h5", {.fields = {"series", "series_packed"}});
  EXPECT_EQ(digests_of(series, "series"), digests_of(series, "series_packed"));
  const dataset zarr = open_zarr(folder + "zarr/v3.zarr");
  for (const char* const member : {"zstd", "gzip_checked", "sharded"}) {
    EXPECT_EQ(digests_of(zarr, member), digests_of(zarr, "plain")) << member;
  }
}

TEST(chunked, windows_are_rows_side_by_side) {
  const testing::watchdog dog("windows of rows");
  testing::for_each_seed(30, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const testing::temporary_directory root;
    const both_forms same = make_both(root, any_array(random), seed);
    const std::uint64_t rows = same.array.shape.front();
    const datasets::row_windows windows{.window = random() % std::min<std::uint64_t>(rows, 9),
                                        .stride = 1 + random() % 5};
    const dataset cut = opened(same.file, {same.array}, windows);
    ASSERT_EQ(cut.size(), (rows - windows.count()) / windows.stride + 1);
    loader_options options = small_options();
    options.shuffle = false;
    options.epochs = 1;
    options.batch_size = 7;
    const std::vector<std::string> got = rows_of(cut, options, "x");
    ASSERT_EQ(got.size(), cut.size());
    for (std::uint64_t sample = 0; sample < cut.size(); ++sample) {
      std::string expected;
      for (std::uint64_t row = 0; row < windows.count(); ++row) {
        for (const std::byte each : same.in_one_piece.read(windows.first_of(sample) + row, "npy")) {
          expected += static_cast<char>(each);
        }
      }
      ASSERT_TRUE(got[sample] == expected) << "sample " << sample;
    }
  });
}

TEST(chunked, samples_read_by_themselves_are_the_same) {
  testing::for_each_seed(10, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const testing::temporary_directory root;
    const both_forms same = make_both(root, any_array(random), seed);
    const dataset some = same.chunked.subset({0, same.chunked.size() - 1, 0});
    for (std::uint64_t i = 0; i < same.chunked.size(); i += 7) {
      ASSERT_EQ(same.chunked.read(i, "x"), same.in_one_piece.read(i, "npy")) << i;
    }
    EXPECT_EQ(some.read(1, "x"), same.in_one_piece.read(same.chunked.size() - 1, "npy"));
  });
}

TEST(chunked, a_block_is_expanded_once_for_all_rows_of_a_batch) {
  const testing::watchdog dog("blocks");
  const testing::temporary_directory root;
  const both_forms same =
      make_both(root, {.shape = {64, 6}, .chunk = {16, 6}, .filters = {{.kind = filter_kind::zlib}}}, 3);
  loader_options options = small_options();
  options.shuffle = false;
  options.epochs = 1;
  options.batch_size = 32;
  loader train(same.chunked, options, array{"x"});
  for (const batch& got : train.blocking()) EXPECT_EQ(got.valid_rows(), 32U);
  const loader_stats stats = train.stats();
  EXPECT_EQ(stats.expand.blocks, 4U);
  EXPECT_EQ(stats.expand.uses, 64U);
  EXPECT_EQ(stats.expand.bytes, 64U * 6 * 4);
  EXPECT_EQ(stats.read.count, 4U);
}

TEST(chunked, blocks_come_to_their_turn_with_the_least_memory) {
  const testing::watchdog dog("the least budget");
  const testing::temporary_directory root;
  // Each row lies in four chunks, and every chunk serves many rows of each batch and of the next ones.
  const both_forms same =
      make_both(root, {.shape = {200, 40, 40}, .chunk = {25, 20, 20}, .filters = {{.kind = filter_kind::zlib}}}, 5);
  loader_options options = small_options();
  options.batch_size = 16;
  options.prefetch_batches = 1;
  const std::vector<std::string> expected = rows_of(same.in_one_piece, options, "npy");
  options.host_bytes_max = 1;
  std::string refusal;
  try {
    const loader never(same.chunked, options, array{"x"});
  } catch (const error& too_little) {
    refusal = too_little.what();
  }
  ASSERT_THAT(refusal, HasSubstr("host_bytes_max"));
  // The least that is named, and nothing more.
  std::uint64_t least = 1;
  for (std::uint64_t bytes = std::uint64_t{1} << 16; bytes < (std::uint64_t{1} << 26);
       bytes += std::uint64_t{1} << 16) {
    options.host_bytes_max = bytes;
    try {
      const loader fits(same.chunked, options, array{"x"});
      least = bytes;
      break;
    } catch (const error& too_little) {
      ASSERT_EQ(too_little.code(), errc::limit) << too_little.what();
    }
  }
  options.host_bytes_max = least;
  EXPECT_EQ(rows_of(same.chunked, options, "x"), expected);
}

TEST(chunked, damage_concerns_the_rows_of_the_chunk_and_no_others) {
  const testing::watchdog dog("a damaged chunk");
  const testing::temporary_directory root;
  both_forms same = make_both(root, {.shape = {60, 8}, .chunk = {10, 8}, .filters = {{.kind = filter_kind::zlib}}}, 9);
  const chunk_place place = same.array.places[2];  // rows 20 to 29
  std::fstream file(same.file, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(place.offset + place.bytes / 2));
  file << "damaged";
  file.close();
  loader_options options = small_options();
  options.shuffle = false;
  options.epochs = 1;
  std::vector<std::string> expected = rows_of(same.in_one_piece, options, "npy");
  const std::vector<std::string> all = expected;
  options.on_corrupt = corrupt_policy::skip;
  expected.erase(expected.begin() + 20, expected.begin() + 30);
  EXPECT_EQ(rows_of(same.chunked, options, "x"), expected);

  options.on_corrupt = corrupt_policy::substitute;
  const std::vector<std::string> substituted = rows_of(same.chunked, options, "x");
  ASSERT_EQ(substituted.size(), all.size());
  for (std::size_t row = 0; row < all.size(); ++row) {
    if (row >= 20 && row < 30) {
      EXPECT_NE(std::find(expected.begin(), expected.end(), substituted[row]), expected.end()) << row;
    } else {
      EXPECT_EQ(substituted[row], all[row]) << row;
    }
  }

  options.on_corrupt = corrupt_policy::raise;
  try {
    rows_of(same.chunked, options, "x");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& damaged) {
    EXPECT_EQ(damaged.code(), errc::corrupt);
    EXPECT_THAT(damaged.what(), HasSubstr("x: damaged zlib data"));
    EXPECT_THAT(damaged.what(), HasSubstr(std::to_string(place.offset)));
  }
}

TEST(chunked, a_file_that_was_cut_concerns_the_rows_behind_the_cut) {
  const testing::watchdog dog("a cut file");
  const testing::temporary_directory root;
  const both_forms same =
      make_both(root, {.shape = {60, 8}, .chunk = {10, 8}, .filters = {{.kind = filter_kind::zlib}}}, 11);
  std::size_t last = 0;
  for (std::size_t i = 0; i < same.array.places.size(); ++i) {
    if (same.array.places[i].offset > same.array.places[last].offset) last = i;
  }
  std::filesystem::resize_file(same.file, same.array.places[last].offset + 1);
  loader_options options = small_options();
  options.shuffle = false;
  options.epochs = 1;
  options.on_corrupt = corrupt_policy::skip;
  options.reader.huge_pages = choice::off;
  std::vector<std::string> expected = rows_of(same.in_one_piece, options, "npy");
  expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(10 * last),
                 expected.begin() + static_cast<std::ptrdiff_t>(10 * last + 10));
  EXPECT_EQ(rows_of(same.chunked, options, "x"), expected);
}

/// Rows of h5py's in `count` files of their own.
std::vector<std::string> copies(const testing::temporary_directory& root, std::size_t count) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < count; ++i) {
    paths.push_back((root.path() / ("rows" + std::to_string(i) + ".h5")).string());
    std::filesystem::copy_file(std::string(LEAT_TEST_DATA) + "/hdf5/kinds-latest.h5", paths.back());
  }
  return paths;
}

TEST(chunked, a_file_that_changes_ends_the_run) {
  // A few files are looked at with each batch, many with the last one of each epoch.
  for (const std::size_t files : {1U, 12U}) {
    for (const bool is_gone : {false, true}) {
      const testing::temporary_directory root;
      const std::vector<std::string> paths = copies(root, files);
      const dataset all = open_hdf5(paths, {.fields = {"gzip", "labels"}});
      EXPECT_EQ(all.model()->staleness_checks(),
                files == 1 ? datasets::staleness_check::batch : datasets::staleness_check::epoch);
      loader_options options = small_options();
      options.epochs = 100;
      options.on_corrupt = corrupt_policy::skip;
      loader train(all.slice(1, all.size() - 1).with_fields(std::vector<std::string>{"gzip"}), options, array{"gzip"});
      ASSERT_TRUE(train.next_blocking());
      if (is_gone) {
        std::filesystem::remove(paths.back());
      } else {
        std::filesystem::last_write_time(paths.back(), std::filesystem::file_time_type::clock::now());
      }
      const std::string said = testing::message_of(errc::changed, [&] {
        for (int epoch = 0; epoch < 99; ++epoch) {
          for (const batch& got : train.blocking()) static_cast<void>(got);
        }
      });
      EXPECT_THAT(said, ::testing::AllOf(HasSubstr("dataset changed: "), HasSubstr(paths.back())));
      EXPECT_LT(train.stats().epochs_finished, 20U);
    }
  }
}

// Arrays that lie in one piece, metadata, and tables, as chunks.
TEST(chunked, an_array_metadata_or_a_table_that_change_end_the_run) {
  const testing::temporary_directory root;
  const std::filesystem::path data(LEAT_TEST_DATA);
  const std::string values = testing::npy_text(testing::npy_dict("<f4", "24, 2"), std::string(24 * 2 * 4, 'v'));
  std::filesystem::copy_file(data / "npz/packed.npz", root.path() / "packed.npz");
  for (const char* const hierarchy : {"v2.zarr", "v3.zarr", "consolidated-2.zarr", "consolidated-3.zarr"}) {
    std::filesystem::copy(data / "zarr" / hierarchy, root.path() / hierarchy, std::filesystem::copy_options::recursive);
  }
  struct changing {
    dataset samples;
    field wanted;
    std::string file;
  };
  const auto zarr = [&](const std::string& hierarchy, const std::string& name, const std::string& metadata) {
    const std::string folder = (root.path() / hierarchy).string();
    return changing{open_zarr(folder, {.fields = {name}}), array{name}, folder + "/" + metadata};
  };
  const auto copy = [&](const std::string& file, const std::string& name) {
    const std::string path = (root.path() / name).string();
    std::filesystem::copy_file(data / file, path);
    return path;
  };
  // One watches over all files of a table.
  const std::vector<std::string> parquet = {copy("parquet/bare-v1.parquet", "a.parquet"),
                                            copy("parquet/bare-v2.parquet", "b.parquet")};
  const std::string arrow = copy("arrow/file.arrow", "x.arrow");
  const std::string lmdb = copy("lmdb/folder.lmdb/data.mdb", "x.mdb");
  const std::string tfrecord = copy("tfrecord/examples.tfrecord", "x.tfrecord");
  std::string records;
  for (int i = 0; i < 60; ++i) records += "{\"t\": \"" + std::to_string(i) + "\"}\n";
  const std::string lines = testing::write_file(root.path() / "x.jsonl", records);
  for (const char* const file : {"links.h5", "kinds-latest.h5"}) {
    std::filesystem::copy_file(data / "hdf5" / file, root.path() / file);
  }
  const std::string npy = testing::write_file(root.path() / "x.npy", values);
  const std::string npz = testing::write_file(root.path() / "stored.npz", testing::zip_text({{"x.npy", values}}));
  const std::string packed = (root.path() / "packed.npz").string();
  const changing all[] = {{open_npy(npy), array{"npy"}, npy},
                          {open_npz(npz), array{"x"}, npz},
                          {open_npz(packed), array{"x"}, packed},
                          {open_parquet(parquet), label{"label"}, parquet.back()},
                          {open_arrow(arrow), bytes{"after"}, arrow},
                          {open_lmdb(lmdb), bytes{"value"}, lmdb},
                          {open_tfrecord(tfrecord), bytes{"image"}, tfrecord},
                          {open_jsonl(lines), bytes{"t"}, lines},
                          {open_hdf5((root.path() / "links.h5").string(), {.fields = {"other"}}), array{"other"},
                           (root.path() / "kinds-latest.h5").string()},
                          zarr("v2.zarr", "gzip", "gzip/.zarray"),
                          zarr("v3.zarr", "plain", "plain/zarr.json"),
                          zarr("consolidated-2.zarr", "x", ".zmetadata"),
                          zarr("consolidated-3.zarr", "x", "zarr.json")};
  for (const changing& each : all) {
    loader_options options = small_options();
    options.epochs = 100;
    loader train(each.samples, options, each.wanted);
    ASSERT_TRUE(train.next_blocking()) << each.file;
    std::filesystem::last_write_time(each.file, std::filesystem::file_time_type::clock::now());
    const std::string said = testing::message_of(errc::changed, [&] {
      for (int epoch = 0; epoch < 99; ++epoch) {
        for (const batch& got : train.blocking()) static_cast<void>(got);
      }
    });
    EXPECT_THAT(said, ::testing::AllOf(HasSubstr("dataset changed: "), HasSubstr(each.file)));
    EXPECT_LT(train.stats().epochs_finished, 20U) << each.file;
  }
}

// Each codec and encoding of Parquet, beside the same column as it lies.
TEST(chunked, values_of_packed_columns_are_made_where_their_block_is_expanded) {
  const testing::watchdog dog("packed columns");
  const std::string folder = std::string(LEAT_TEST_DATA) + "/parquet/";
  const std::vector<field> fields = {text{"text"}, bytes{"again"}.from("text"), label{"label"},
                                     sequence("letters").from("text").stored(dtype::u8).pad({.max = 7})};
  const auto digests = [&](const std::string& name, const order& in) {
    loader_options options = small_options();
    options.order = in;
    options.on_corrupt = corrupt_policy::substitute;  // for rows without a text
    loader train(open_parquet(folder + name, {.fields = {"text", "label"}}), options, fields);
    std::vector<std::string> all;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const batch& got : train.blocking()) {
        all.push_back(got.content_digest().value().hex());
        for (std::size_t row = 0; row < got.valid_rows(); ++row) {
          const std::string expected = "text " + std::to_string(got.ids()[row]);
          EXPECT_EQ(testing::as_text(testing::row_of(got, "text", row)), expected);
          EXPECT_EQ(testing::as_text(testing::row_of(got, "again", row)), expected);
        }
      }
    }
    return all;
  };
  const std::vector<std::string> expected = digests("bare-v1.parquet", shuffled());
  ASSERT_EQ(expected.size(), 26U);
  for (const char* const name :
       {"packed-snappy.parquet", "packed-gzip.parquet", "packed-zstd.parquet", "packed-lz4.parquet", "hub.parquet"}) {
    EXPECT_EQ(digests(name, shuffled()), expected) << name;
    EXPECT_EQ(digests(name, shuffled_blocks(2)).size(), 26U) << name;
  }
}

// Two views of one picture, too, which one pass makes where it lies as it is.
TEST(chunked, pictures_of_a_packed_column_are_those_that_lie_as_they_are) {
  const testing::watchdog dog("packed pictures");
  const auto digests = [](const std::string& name) {
    const std::string path = std::string(LEAT_TEST_DATA) + "/parquet/" + name;
    loader train(open_parquet(path), small_options(), image("image").random_resized_crop(12).random_flip(),
                 image("other").from("image").random_resized_crop(8).normalize(imagenet));
    std::vector<std::string> all;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const batch& got : train.blocking()) all.push_back(got.content_digest().value().hex());
    }
    EXPECT_EQ(train.stats().quarantined, 0U);
    return all;
  };
  const std::vector<std::string> expected = digests("pictures-bare.parquet");
  EXPECT_EQ(expected.size(), 6U);
  EXPECT_EQ(digests("pictures-packed.parquet"), expected);
}

// What cannot be made of a value concerns its row.
TEST(chunked, damage_in_a_packed_column_concerns_its_rows) {
  const testing::watchdog dog("damaged packed columns");
  const testing::temporary_directory root;
  const std::string path = (root.path() / "x.parquet").string();
  std::filesystem::copy_file(std::string(LEAT_TEST_DATA) + "/parquet/packed-snappy.parquet", path);
  const dataset samples = open_parquet(path, {.fields = {"text"}});
  loader_options options = small_options();
  options.epochs = 1;
  options.shuffle = false;
  options.on_corrupt = corrupt_policy::skip;
  const auto delivered = [&](const field& wanted) {
    std::set<std::uint64_t> ids;
    loader train(samples, options, wanted);
    for (const batch& got : train.blocking()) ids.insert(got.ids().begin(), got.ids().end());
    EXPECT_EQ(ids.size() + train.stats().quarantined, 100U);
    return ids;
  };
  // Texts of rows from 10 on are longer.
  const auto letters = sequence("letters").from("text").stored(dtype::u8);
  EXPECT_THAT(delivered(letters.pad({.max = 6})), ElementsAre(0, 1, 2, 4, 5, 6, 7, 8, 9));
  options.on_corrupt = corrupt_policy::raise;
  EXPECT_THAT(testing::message_of(errc::corrupt, [&] { delivered(letters.pad({.max = 6})); }),
              ::testing::AllOf(HasSubstr("text"), HasSubstr("x.parquet")));
  // A row group that is overwritten is damaged, and the file another one.
  datasets::part_list parts;
  samples.model()->parts(32, parts);  // of the second of four row groups
  const extent where = parts.front().where;
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(static_cast<std::streamoff>(where.offset))
      << std::string(where.stored_bytes, '\xff');
  EXPECT_THAT(testing::message_of(errc::corrupt, [&] { static_cast<void>(samples.read(32, "text")); }),
              ::testing::AllOf(HasSubstr("x.parquet"), HasSubstr("'text'")));
  EXPECT_THAT(testing::message_of(errc::changed, [&] { delivered(text{"text"}); }), HasSubstr("x.parquet"));
}

// Members of one array of records, whose chunks are those of all of them.
TEST(chunked, members_of_a_compound_share_their_blocks) {
  const dataset samples = open_hdf5(std::string(LEAT_TEST_DATA) + "/hdf5/compounds.h5", {.fields = {"records"}});
  loader train(samples, small_options(), array{"image"}.from("records/image"), array{"x"}.from("records/x"),
               array{"big"}.from("records/big"));
  std::uint64_t rows = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const batch& got : train.blocking()) {
      for (std::size_t row = 0; row < got.valid_rows(); ++row, ++rows) {
        const std::uint64_t sample = got.ids()[row];
        EXPECT_EQ(testing::row_of(got, "image", row), samples.read(sample, "records/image"));
        EXPECT_EQ(testing::row_of(got, "x", row), samples.read(sample, "records/x"));
        EXPECT_EQ(testing::row_of(got, "big", row), samples.read(sample, "records/big"));
      }
    }
  }
  EXPECT_EQ(rows, 60U);
  const expand_stats expanded = train.stats().expand;
  EXPECT_EQ(expanded.uses, 3 * rows);
  EXPECT_LE(expanded.blocks, 5U * 8);  // of five chunks each batch expands each once at most
}

TEST(chunked, chunks_that_were_never_written_have_the_fill_value_of_their_own_file) {
  const std::string folder = std::string(LEAT_TEST_DATA) + "/hdf5/";
  const dataset both = open_hdf5({folder + "fill-5.h5", folder + "fill-6.h5"}, {.fields = {"x"}});
  loader train(both, small_options(), array{"x"});
  for (const batch& got : train.blocking()) {
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      const std::uint64_t sample = got.ids()[row];
      const auto expected = sample % 4 < 2 ? std::uint8_t{1} : sample < 4 ? std::uint8_t{5} : std::uint8_t{6};
      EXPECT_EQ(testing::row_of(got, "x", row).front(), std::byte{expected}) << sample;
    }
  }
}

// A group of arrays that have metadata and no chunk: all is the fill value.
std::string unwritten_zarr(const std::filesystem::path& folder, int arrays, int rows, int length, int chunk,
                           int fill = 7) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / ".zgroup") << R"({"zarr_format": 2})";
  for (int i = 0; i < arrays; ++i) {
    const std::filesystem::path array = folder / ("x" + std::to_string(i));
    std::filesystem::create_directory(array);
    std::ofstream(array / ".zarray")
        << R"({"zarr_format": 2, "order": "C", "dtype": "|u1", "compressor": null, "filters": null, )"
        << R"("fill_value": )" << fill << R"(, "shape": [)" << rows << ", " << length << R"(], "chunks": [1, )" << chunk
        << "]}";
  }
  return folder.string();
}

TEST(chunked, blocks_that_a_row_lies_in_are_in_the_memory_plan) {
  const testing::temporary_directory root;
  const auto least = [&](const char* name, int chunk, const array& field) {
    const dataset samples = open_zarr(unwritten_zarr(root.path() / name, 1, 64, 1024, chunk));
    return loader(samples, small_options(), field).plan().host_bytes_least;
  };
  const std::size_t one = least("one", 1024, array{"x0"});
  const std::size_t many = least("many", 1, array{"x0"});
  EXPECT_GT(many, one + std::size_t{small_options().batch_size} * 1023 * 100);
  EXPECT_LT(least("crop", 1, array{"x0"}.random_crop({8})), many / 2);
}

TEST(chunked, a_sample_of_more_blocks_than_it_can_count_is_refused) {
  const testing::temporary_directory root;
  const dataset samples = open_zarr(unwritten_zarr(root.path() / "a", 8, 2, 8192, 1));
  const auto take = [&](int count) {
    std::vector<field> fields;
    for (int i = 0; i < count; ++i) fields.emplace_back(array{"x" + std::to_string(i)});
    loader_options options = small_options();
    options.batch_size = 1;
    return loader(samples, options, fields);
  };
  EXPECT_THAT(testing::message_of(errc::limit, [&] { take(8); }), HasSubstr("65536 chunks"));
  loader train = take(2);
  EXPECT_EQ(testing::row_of(*train.next_blocking(), "x1", 0).back(), std::byte{7});
}

// Sums a row's bytes: something else than the row.
std::string add_up(std::span<const std::byte> bytes, const sample_context&, std::span<std::byte> out) {
  std::uint64_t sum = bytes.size();
  for (const std::byte each : bytes) sum = sum * 31 + std::to_integer<std::uint64_t>(each);
  std::memcpy(out.data(), &sum, sizeof sum);
  return {};
}

// Rows of one member, however they are come by: read as they are, out of chunks, and out of memory.
std::vector<dataset> in_every_storage(const testing::temporary_directory& root, const both_forms& same) {
  const auto values = std::make_shared<std::string>();
  for (std::uint64_t sample = 0; sample < same.chunked.size(); ++sample) {
    *values += testing::as_text(same.chunked.read(sample, "x"));
  }
  const auto rows = static_cast<std::int64_t>(same.chunked.size());
  const auto length = static_cast<std::int64_t>(values->size()) / rows;
  testing::write_file(root.path() / "rows.json", R"({"fields": [{"name": "x", "dtype": "u8", "shape": [)" +
                                                     std::to_string(length) + R"(]}], "header_bytes": 0})");
  const std::string records = testing::write_file(root.path() / "rows.bin", *values);
  const tensor in_memory(dtype::u8, {rows, length}, {length, 1}, values->data(), host);
  return {open_records(records), same.chunked, from_tensors({{"x", in_memory}}, values)};
}

// Values of any length: read as they are, packed, made by a function, and fetched by a coroutine.
std::vector<dataset> values_in_every_storage(const testing::temporary_directory& root) {
  std::string plain;
  std::string packed;
  extent_list::field stored{.name = "x", .extents = {}};
  extent_list::field coded{.name = "x", .extents = {}, .codec = "zlib"};
  std::vector<std::vector<std::byte>> all;
  for (std::size_t sample = 0; sample < 24; ++sample) {
    const std::string value(1 + sample * 7 % 5, static_cast<char>('a' + sample));
    const std::string small = packed_by_zlib(value);
    stored.extents.push_back({0, 0, plain.size(), value.size(), value.size()});
    coded.extents.push_back({0, 0, packed.size(), small.size(), value.size()});
    plain += value;
    packed += small;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(value));
    all.emplace_back(bytes.begin(), bytes.end());
  }
  const auto listed = [&](const char* name, const std::string& content, const extent_list::field& field) {
    return from_extents({.files = {testing::write_file(root.path() / name, content)}, .fields = {field}});
  };
  const function_options how{.field = "x", .bytes_max = 5};
  const auto fetch = [all](std::uint64_t sample) -> coroutine_of_bytes { co_return all[sample]; };
  return {listed("plain", plain, stored), listed("packed", packed, coded),
          from_function(
              all.size(), [all](std::uint64_t sample) { return all[sample]; }, how),
          from_coroutine(all.size(), fetch, how)};
}

void expect_pairs_alike(const std::vector<dataset>& all, const std::vector<field>& fields) {
  loader_options options = small_options();
  options.batch_size = 7;
  options.decode_threads = 2;
  const testing::seen_run expected = testing::run_all(all.front(), options, fields);
  ASSERT_FALSE(expected.failed) << expected.message;
  ASSERT_FALSE(expected.batches.empty());
  for (std::size_t first = 0; first < all.size(); ++first) {
    for (std::size_t second = 0; second < all.size(); ++second) {
      const dataset both = concat({all[first].slice(0, 11), all[second].slice(11, 13)});
      const testing::seen_run got = testing::run_all(both, options, fields);
      EXPECT_FALSE(got.failed) << got.message << ", " << first << " and " << second;
      EXPECT_EQ(got.batches, expected.batches) << first << " and " << second;
    }
  }
}

TEST(chunked, every_pair_of_storages_is_one_dataset) {
  const testing::watchdog dog("pairs of storages");
  const testing::temporary_directory root;
  const both_forms same = make_both(
      root, {.shape = {24, 6}, .chunk = {5, 4}, .filters = {{.kind = filter_kind::zlib}}, .type = dtype::u8}, 5);
  expect_pairs_alike(
      in_every_storage(root, same),
      {array{"x"}, array{"some"}.from("x").random_crop({3}), bytes{"raw"}.from("x"),
       custom{"sum", dtype::u64, {}, add_up}.from("x"), sequence("ids").from("x").stored(dtype::u8).pad({.max = 6})});
  expect_pairs_alike(values_in_every_storage(root), {bytes{"x"}, custom{"sum", dtype::u64, {}, add_up}.from("x"),
                                                     sequence("ids").from("x").stored(dtype::u8).pad({.max = 6})});
}

// A packed column's blocks, and values that are picked out of records.
TEST(chunked, texts_of_packed_columns_and_of_records_are_one_dataset) {
  const testing::watchdog dog("texts of two storages");
  const testing::temporary_directory root;
  std::ofstream(root.path() / "a.jsonl") << R"({"text": "one"})" << "\n" << R"({"text": "two"})" << "\n";
  const dataset lines = open_jsonl((root.path() / "a.jsonl").string());
  for (const char* const name : {"packed-snappy.parquet", "packed-zstd.parquet", "bare-v1.parquet"}) {
    const dataset packed =
        open_parquet(std::string(LEAT_TEST_DATA) + "/parquet/" + name, {.fields = {"text"}}).slice(0, 5);
    const dataset both = concat({lines, packed, lines});
    loader_options options = small_options();
    options.shuffle = false;
    options.epochs = 1;
    options.on_corrupt = corrupt_policy::skip;  // of rows without a text
    loader train(both, options, text{"text"}, sequence("letters").from("text").stored(dtype::u8).pad({.max = 9}));
    std::vector<std::string> got;
    for (const batch& each : train.blocking()) {
      for (std::size_t row = 0; row < each.valid_rows(); ++row) {
        got.emplace_back(testing::as_text(testing::row_of(each, "text", row)));
      }
    }
    std::vector<std::string> expected = {"one", "two"};
    for (std::uint64_t sample = 0; sample < packed.size(); ++sample) {
      datasets::part_list parts;
      packed.model()->parts(sample, parts);
      if (!parts.empty()) expected.push_back("text " + std::to_string(sample));
    }
    expected.insert(expected.end(), {"one", "two"});
    EXPECT_EQ(got, expected) << name;
  }
}

TEST(chunked, rows_of_numbers_are_sequences_whatever_packs_them) {
  const testing::temporary_directory root;
  std::vector<std::vector<std::string>> seen;
  const std::vector<filter> packed = {{.kind = filter_kind::zlib}};
  std::uint64_t seed = 8;
  for (const auto& filters : {std::vector<filter>{}, packed}) {
    for (const extents& chunk : {extents{5, 6}, extents{4, 4}}) {
      const both_forms same = make_both(root, {.shape = {20, 6}, .chunk = chunk, .filters = filters}, seed++);
      for (const bool padded : {false, true}) {
        sequence ids = sequence("ids").as(dtype::i64).from("x").stored(dtype::u32);
        if (padded) ids = ids.pad({.multiple = 4});
        const auto rows = [&](const dataset& samples, const sequence& field) {
          return testing::run_all(samples, small_options(), {field});
        };
        const testing::seen_run expected = rows(same.in_one_piece, ids.from("npy"));
        ASSERT_FALSE(expected.failed) << expected.message;
        EXPECT_EQ(rows(same.chunked, ids).batches, expected.batches);
      }
    }
  }
}

// Guards of both kinds in one dataset: each is asked when it wants to be.
class watched_rows final : public datasets::dataset_model, datasets::staleness_facet {
 public:
  watched_rows(std::shared_ptr<const datasets::dataset_model> whole, datasets::staleness_check rate)
      : whole_(std::move(whole)), rate_(rate) {
    begin_as(*whole_);
    facets_.staleness = this;
  }
  std::uint64_t size() const noexcept override { return whole_->size(); }
  void parts(std::uint64_t sample, std::span<const datasets::need> needs, datasets::part_list& out) const override {
    whole_->parts(sample, needs, out);
  }
  std::string name(std::uint64_t sample) const override { return whole_->name(sample); }
  dataset_memory memory() const override { return whole_->memory(); }
  datasets::staleness_check staleness_checks() const noexcept override { return rate_; }
  std::optional<std::string> changed(datasets::staleness_check at) const override {
    (at == datasets::staleness_check::epoch ? asked_at_epoch : asked_at_batch).fetch_add(1);
    return std::nullopt;
  }
  mutable std::atomic<int> asked_at_epoch{0};
  mutable std::atomic<int> asked_at_batch{0};

 private:
  std::shared_ptr<const datasets::dataset_model> whole_;
  datasets::staleness_check rate_;
};

TEST(staleness_checks, are_asked_with_batches_or_with_the_last_of_each_epoch) {
  const testing::temporary_directory root;
  std::mt19937_64 random(3);
  const both_forms rows = make_both(root, {.shape = {20, 4}, .chunk = {20, 4}}, 3);
  const auto each_epoch = std::make_shared<watched_rows>(rows.in_one_piece.model(), datasets::staleness_check::epoch);
  const auto each_batch = std::make_shared<watched_rows>(rows.in_one_piece.model(), datasets::staleness_check::batch);
  loader train(concat({dataset(each_epoch), dataset(each_batch)}), small_options(), array{"npy"});
  EXPECT_EQ(train.batches(), 5U);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const batch& got : train.blocking()) static_cast<void>(got);
  }
  EXPECT_EQ(each_epoch->asked_at_epoch, 2);
  EXPECT_EQ(each_epoch->asked_at_batch, 0);
  EXPECT_EQ(each_batch->asked_at_epoch, 2);
  EXPECT_GE(each_batch->asked_at_batch, 1) << "not with batches that come within a millisecond of one that was";
  EXPECT_LE(each_batch->asked_at_batch, 8);
}

TEST(chunked, packed_members_of_npz_have_the_digests_of_those_that_are_stored) {
  const testing::temporary_directory root;
  const dataset packed = open_npz(std::string(LEAT_TEST_DATA) + "/npz/packed.npz");
  std::string values;
  for (std::uint64_t sample = 0; sample < packed.size(); ++sample) values += testing::as_text(packed.read(sample, "x"));
  const std::string stored = testing::write_file(
      root.path() / "stored.npz",
      testing::zip_text({{"x.npy", testing::npy_text(testing::npy_dict("<f4", "40, 6, 5"), values)}}));
  EXPECT_EQ(rows_of(packed, small_options(), "x"), rows_of(open_npz(stored), small_options(), "x"));
  // Each archive is a block, expanded once while it is kept.
  loader train(packed, small_options(), array{"x"});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const batch& got : train.blocking()) static_cast<void>(got);
  }
  EXPECT_EQ(train.stats().expand.blocks, 1U);
}

TEST(chunked, several_fields_of_several_files_are_read_together) {
  const testing::watchdog dog("several files");
  const testing::temporary_directory root;
  std::mt19937_64 random(17);
  std::vector<dataset> parts;
  std::string values;
  for (int number = 0; number < 3; ++number) {
    const std::string path = (root.path() / std::to_string(number)).string();
    std::ofstream to(path, std::ios::binary);
    std::uint64_t end = 0;
    made_array x =
        make_array("x", {.shape = {20, 5}, .chunk = {6, 2}, .filters = {{.kind = filter_kind::zlib}}}, random, to, end);
    made_array y = make_array("y", {.shape = {20, 3}, .chunk = {20, 3}}, random, to, end);
    made_array n =
        make_array("n", {.shape = {20}, .chunk = {7}, .filters = {{.kind = filter_kind::zlib}}}, random, to, end);
    to.close();
    for (std::size_t row = 0; row < 20; ++row) {
      values += x.values.substr(row * 20, 20) + y.values.substr(row * 12, 12) + n.values.substr(row * 4, 4);
    }
    parts.push_back(opened(path, {x.array, y.array, n.array}));
  }
  const dataset all = concat(parts);
  ASSERT_EQ(all.size(), 60U);
  loader_options options = small_options();
  options.shuffle = false;
  options.epochs = 1;
  loader train(all, options, array{"x"}, array{"y"}, label{"n"});
  std::string got_values;
  for (const batch& got : train.blocking()) {
    const std::vector<std::int64_t> labels = testing::values_of<std::int64_t>(got, "n");
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      got_values += testing::as_text(testing::row_of(got, "x", row));
      got_values += testing::as_text(testing::row_of(got, "y", row));
      const auto value = static_cast<std::uint32_t>(labels[row]);
      got_values.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  EXPECT_EQ(got_values, values);
}

std::vector<std::uint64_t> epoch_of(const sampler& order, std::uint32_t epoch) {
  std::vector<std::uint64_t> samples;
  for (std::uint64_t batch = 0; batch < order.batches(epoch); ++batch) {
    std::vector<pick> rows(order.rows(epoch, batch));
    order.picks(epoch, batch, 0, order.rows(epoch, batch), rows);
    for (const pick& row : rows) samples.push_back(row.sample);
  }
  return samples;
}

TEST(shuffled_blocks, give_each_sample_once_and_those_of_few_blocks_at_a_time) {
  const testing::temporary_directory root;
  const both_forms same =
      make_both(root, {.shape = {103, 2}, .chunk = {8, 2}, .filters = {{.kind = filter_kind::zlib}}}, 3);
  const dataset twice = concat(std::vector<dataset>{same.chunked, same.chunked});
  for (const dataset& samples : {same.chunked, twice, same.chunked.slice(5, 90)}) {
    const datasets::sample_blocks blocks = samples.model()->blocks();
    ASSERT_GT(blocks.size(), 11U);
    for (const std::uint32_t pool_blocks : {1U, 3U, 50U}) {
      const auto order = shuffled_blocks(pool_blocks).model().bind(samples, {.seed = 5, .batch_size = 7});
      std::vector<std::uint64_t> first_epoch;
      for (const std::uint32_t epoch : {0U, 1U, 9U}) {
        std::vector<std::uint64_t> all = epoch_of(*order, epoch);
        if (epoch == 0) first_epoch = all;
        if (epoch != 0) EXPECT_NE(all, first_epoch);
        // A block that has begun ends before more than pool_blocks - 1 others begin.
        std::set<std::uint64_t> open;
        std::map<std::uint64_t, std::uint64_t> left;
        for (const std::uint64_t sample : all) {
          const std::uint64_t block = blocks.block_of(sample);
          if (left.try_emplace(block, blocks.samples_of(block)).second) open.insert(block);
          if (--left[block] == 0) open.erase(block);
          ASSERT_LE(open.size(), pool_blocks);
        }
        std::sort(all.begin(), all.end());
        for (std::uint64_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
        ASSERT_EQ(all.size(), samples.size());
      }
    }
  }
}

// Pearson's test of where each of 12 samples stands, over 6,000 epochs: 121 degrees of freedom, and the hundred-thousandth part of their
// distribution lies above 196.
TEST(shuffled_blocks, put_every_sample_to_every_place_alike) {
  const testing::temporary_directory root;
  const both_forms same =
      make_both(root, {.shape = {12, 2}, .chunk = {3, 2}, .filters = {{.kind = filter_kind::zlib}}}, 3);
  const auto order = shuffled_blocks(2).model().bind(same.chunked, {.seed = 11, .batch_size = 12});
  constexpr std::uint32_t epochs = 6000;
  double seen[12][12] = {};
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<std::uint64_t> all = epoch_of(*order, epoch);
    for (std::size_t place = 0; place < all.size(); ++place) ++seen[place][all[place]];
  }
  double sum = 0;
  constexpr double expected = epochs / 12.0;
  for (const auto& place : seen) {
    for (const double count : place) sum += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(sum, 196);
  EXPECT_GT(sum, 60);
}

TEST(shuffled_blocks, give_the_rows_of_the_array_whatever_is_kept) {
  const testing::watchdog dog("kept blocks");
  testing::for_each_seed(30, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const testing::temporary_directory root;
    what_to_make what = any_array(random);
    what.filters = {{.kind = filter_kind::zlib}};
    what.shape.front() = 40 + random() % 60;
    what.chunk.front() = 2 + random() % 9;
    const both_forms same = make_both(root, what, seed);
    loader_options options = small_options();
    options.shuffle = false;
    std::vector<std::string> expected = rows_of(same.in_one_piece, options, "npy");
    options.order = shuffled_blocks(static_cast<std::uint32_t>(1 + random() % 6));
    options.batch_size = static_cast<std::uint32_t>(1 + random() % 20);
    options.decode_threads = static_cast<std::uint32_t>(1 + random() % 3);
    options.reader.io_threads = static_cast<std::uint32_t>(1 + random() % 2);
    options.prefetch_batches = static_cast<std::uint32_t>(1 + random() % 5);
    // Now and then there is little room beside what must be.
    if (random() % 2 == 0) options.host_bytes_max = loader(same.chunked, options, array{"x"}).plan().host_bytes_least;
    std::vector<std::string> rows = rows_of(same.chunked, options, "x");
    std::sort(rows.begin(), rows.end());
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(rows, expected);
  });
}

TEST(shuffled_blocks, a_pool_above_the_budget_is_refused_or_warned_of_with_the_budget_that_does) {
  const testing::temporary_directory root;
  const both_forms same =
      make_both(root, {.shape = {512, 1024}, .chunk = {16, 1024}, .filters = {{.kind = filter_kind::zlib}}}, 3);
  loader_options options = small_options();
  options.shuffle_blocks = 20;
  const loader roomy(same.chunked, options, array{"x"});
  EXPECT_THAT(roomy.plan().warnings, ::testing::IsEmpty());
  options.host_bytes_max = roomy.plan().host_bytes_least;
  std::string refusal;
  try {
    const loader never(same.chunked, options, array{"x"});
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::limit);
    refusal = refused.what();
  }
  EXPECT_THAT(refusal, HasSubstr("20 blocks"));
  const std::size_t bytes_at = refusal.find('(');
  ASSERT_NE(bytes_at, std::string::npos) << refusal;
  options.host_bytes_max = std::stoull(refusal.substr(bytes_at + 1));
  const loader enough(same.chunked, options, array{"x"});
  EXPECT_THAT(enough.plan().warnings, ::testing::IsEmpty());

  options.shuffle_blocks = 0;
  options.order = shuffled_blocks(20);
  options.host_bytes_max = loader(same.chunked, options, array{"x"}).plan().host_bytes_least;
  const loader_plan tight = loader(same.chunked, options, array{"x"}).plan();
  ASSERT_EQ(tight.warnings.size(), 1U);
  const std::string& said = tight.warnings.front();
  EXPECT_THAT(said, HasSubstr("20 blocks"));
  const std::size_t at = said.find('(');
  ASSERT_NE(at, std::string::npos);
  options.host_bytes_max = std::stoull(said.substr(at + 1));
  EXPECT_THAT(loader(same.chunked, options, array{"x"}).plan().warnings, ::testing::IsEmpty());
}

TEST(shuffled_blocks, have_a_short_form_and_are_the_same_order) {
  const testing::watchdog dog("the short form");
  const testing::temporary_directory root;
  const both_forms same =
      make_both(root, {.shape = {96, 4}, .chunk = {16, 4}, .filters = {{.kind = filter_kind::zlib}}}, 3);
  loader_options options = small_options();
  options.shuffle_blocks = 2;
  const std::vector<std::string> in_short = rows_of(same.chunked, options, "x");
  const loader_state state = loader(same.chunked, options, array{"x"}).state();
  options.order = shuffled_blocks(2);
  EXPECT_THROW(loader(same.chunked, options, array{"x"}), error) << "both";
  options.shuffle_blocks = 0;
  EXPECT_EQ(rows_of(same.chunked, options, "x"), in_short);
  // So a machine with less memory goes on with what one began that kept the pool.
  options.resume = state;
  EXPECT_NO_THROW(loader(same.chunked, options, array{"x"}));
}

TEST(shuffled_blocks, say_how_often_a_block_is_expanded) {
  const testing::temporary_directory root;
  const both_forms same =
      make_both(root, {.shape = {512, 4}, .chunk = {16, 4}, .filters = {{.kind = filter_kind::zlib}}}, 3);
  const auto notes_with = [&](const loader_options& options, const dataset& samples, const std::string& member) {
    const loader_plan plan = loader(samples, options, array{"x"}.from(member)).plan();
    return plan.notes;
  };
  loader_options options = small_options();
  options.batch_size = 8;
  EXPECT_THAT(notes_with(options, same.chunked, "x"),
              ::testing::ElementsAre("blocks: of 16.0 samples each; in this order one is expanded about 1.0 times an "
                                     "epoch, once for 16.0 uses"));
  options.host_bytes_max = loader(same.chunked, options, array{"x"}).plan().host_bytes_least;
  EXPECT_THAT(notes_with(options, same.chunked, "x"), ::testing::ElementsAre(HasSubstr("once for 1.1 uses")));
  EXPECT_THAT(notes_with(options, same.in_one_piece, "npy"), ::testing::IsEmpty());
}

TEST(shuffled_blocks, expand_a_block_few_times) {
  const testing::watchdog dog("shuffled blocks");
  const testing::temporary_directory root;
  const both_forms same =
      make_both(root, {.shape = {512, 4}, .chunk = {16, 4}, .filters = {{.kind = filter_kind::zlib}}}, 3);
  const auto blocks_with = [&](order chosen) {
    loader_options options = small_options();
    options.epochs = 1;
    options.batch_size = 64;
    options.order = std::move(chosen);
    loader train(same.chunked, options, array{"x"});
    std::uint64_t rows = 0;
    for (const batch& got : train.blocking()) rows += got.valid_rows();
    EXPECT_EQ(rows, 512U);
    return train.stats().expand.blocks;
  };
  EXPECT_EQ(blocks_with(shuffled_blocks(4)), 32U);  // a pool is a batch
  EXPECT_EQ(blocks_with(shuffled_blocks(8)), 32U);  // a pool is two batches, and blocks are kept for the second
  EXPECT_EQ(blocks_with(shuffled_blocks(32)), 32U);
  // An exact shuffle comes back to all blocks, which are kept where the budget has room for all.
  EXPECT_EQ(blocks_with(shuffled()), 32U);
}

TEST(shuffled_blocks, are_refused_where_samples_share_none) {
  const testing::temporary_directory root;
  const both_forms same = make_both(root, {.shape = {8, 2}, .chunk = {4, 2}}, 3);
  loader_options options = small_options();
  options.order = shuffled_blocks(4);
  try {
    const loader train(same.in_one_piece, options, array{"x"}.from("npy"));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::usage);
    EXPECT_THAT(refused.what(), HasSubstr("share blocks"));
  }
  EXPECT_THROW(static_cast<void>(shuffled_blocks(0)), error);
}

TEST(chunked, fields_that_make_something_else_of_a_row_get_it_whole) {
  const testing::watchdog dog("other fields than arrays");
  testing::for_each_seed(30, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const testing::temporary_directory root;
    const both_forms same = make_both(root, any_array(random), seed);
    loader_options options = small_options();
    options.shuffle = random() % 2 == 0;
    options.batch_size = static_cast<std::uint32_t>(1 + random() % 20);
    options.decode_threads = static_cast<std::uint32_t>(1 + random() % 3);
    options.digests = random() % 2 == 0;
    const auto seen = [&](const dataset& samples, const std::string& member) {
      std::vector<std::string> rows;
      loader train(samples, options, custom{"sum", dtype::u64, {}, add_up}.from(member), array{"x"}.from(member),
                   bytes{"raw"}.from(member));
      for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
        for (const batch& got : train.blocking()) {
          EXPECT_THAT(got.outputs(), ::testing::ElementsAre("sum", "x", "raw", "raw.offsets"));
          for (std::size_t row = 0; row < got.valid_rows(); ++row) {
            for (const char* const output : {"sum", "x", "raw"}) {
              rows.emplace_back(testing::as_text(testing::row_of(got, output, row)));
            }
            EXPECT_EQ(rows.back(), rows[rows.size() - 2]);
          }
        }
      }
      return rows;
    };
    ASSERT_EQ(seen(same.chunked, "x"), seen(same.in_one_piece, "npy"));
  });
}

TEST(chunked, a_field_of_several_members_gets_each_of_them_whole) {
  const testing::temporary_directory root;
  const dataset samples = open_zarr(unwritten_zarr(root.path() / "a", 2, 8, 4, 3, 1));
  loader_options options = small_options();
  options.batch_size = 4;
  options.epochs = 1;
  loader train(samples, options, graph{}.x({.member = "x0", .width = 2}).edge_index("x1"));
  for (const batch& got : train.blocking()) {
    EXPECT_THAT(testing::values_of<float>(got, "x"), ::testing::Each(1.0F));
    // Each sample has two nodes, and twice an edge from its second one to itself.
    EXPECT_THAT(testing::values_of<std::int64_t>(got, "edge_index"),
                ElementsAre(1, 1, 3, 3, 5, 5, 7, 7, 1, 1, 3, 3, 5, 5, 7, 7));
  }
}

}  // namespace
}  // namespace leat
