// A loader may end at any moment, whatever it reads: nothing of it is left on a loop, on a thread or at a disk. These tests say so by
// the assertions of its parts, and by the sanitizers. LEAT_SEEDS=2000 takes 10^5 loaders.
#include "tests/loader/ends_early.hpp"

#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/order.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

namespace asio = boost::asio;
using testing::fake_dataset;
using testing::fake_dataset_options;
using testing::fake_layout;

/// Samples, and the fields that are made of them.
struct source {
  dataset samples;
  std::vector<field> fields;
};

std::string data(const std::string& name) { return std::string(LEAT_TEST_DATA) + "/" + name; }

// Pictures, classes and texts in each format. Rows of packed tables are blocks.
void add_tables(std::vector<source>& to) {
  const auto fields = [](const std::string& picture) -> std::vector<field> {
    return {image("pixels").from(picture).random_resized_crop(16).random_flip().normalize(imagenet),
            label("class").from("label"), text("words").from("caption")};
  };
  for (const char* const name :
       {"bare.parquet", "packed.parquet", "bare.arrow", "packed.arrow", "set.mdb", "set.tfrecord", "mds"}) {
    to.push_back({open(data("same/") + name), fields("image")});
  }
  for (const char* const name : {"set.jsonl", "set.csv"}) {
    to.push_back({open({data("same/") + name}, {.tables = {.path_column = "file_name"}}), fields("jpg")});
  }
  to.push_back({open(data("same/pictures")), {bytes("jpg")}});
}

// Rows of arrays, whose chunks several of them share.
void add_arrays(std::vector<source>& to) {
  for (const char* const name : {"gzip_whole", "gzip_uneven", "zstd_whole", "none_uneven"}) {
    to.push_back({open_hdf5(data("rows/latest.h5"), {.fields = {name}}), {array("x").from(name)}});
  }
  for (const char* const name : {"v2.zarr", "v3.zarr"}) {
    const dataset all = open_zarr(data("rows/") + name);
    std::vector<field> fields;
    for (const field_info& each : all.fields()) {
      if (each.kind == field_kind::tensor) fields.emplace_back(array(each.name));
    }
    to.push_back({all, std::move(fields)});
  }
  to.push_back({open_npy(data("rows/rows.npy"), {.samples = npy_options::sample::row}), {array("npy")}});
}

// Disks whose reads end in any order, with samples that are damaged and reads that fail.
void add_disks(std::vector<source>& to) {
  const auto samples = testing::make_samples(1, 40);
  for (const fake_layout layout : {fake_layout::file_per_member, fake_layout::shards, fake_layout::columns}) {
    fake_dataset_options how{.layout = layout, .disks = 2};
    fake_dataset whole(samples, how);
    to.push_back({whole, testing::all_fields()});
    fake_dataset faulty(samples, how);
    faulty.damage(3, "cls", EIO);
    faulty.damage(18, "txt", EIO);
    faulty.damage(30, "txt", testing::read_fault::never);
    to.push_back({faulty, testing::all_fields()});
  }
}

void add_functions(std::vector<source>& to) {
  to.push_back({from_function(30,
                              [](std::uint64_t sample) {
                                if (sample == 11) throw std::runtime_error("nothing for 11");
                                return testing::to_bytes("sample " + std::to_string(sample));
                              },
                              {.field = "txt", .bytes_max = 64}),
                {text("txt")}});
  to.push_back({from_coroutine(30,
                               [](std::uint64_t sample) -> asio::awaitable<std::vector<std::byte>> {
                                 const auto here = co_await asio::this_coro::executor;
                                 for (std::uint64_t i = 0; i < sample % 4; ++i) {
                                   co_await asio::post(here, asio::use_awaitable);
                                 }
                                 if (sample == 11) throw std::runtime_error("nothing for 11");
                                 co_return testing::to_bytes("sample " + std::to_string(sample));
                               },
                               {.field = "txt", .bytes_max = 64}),
                {text("txt")}});
}

std::vector<source> all_sources() {
  std::vector<source> all;
  add_tables(all);
  add_arrays(all);
  add_disks(all);
  add_functions(all);
  return all;
}

TEST(ends_early, whatever_it_reads) {
  const std::vector<source> all = all_sources();
  testing::for_each_seed(50, [&](std::uint64_t seed) {
    const testing::watchdog dog("a loader that ends early");
    testing::seeded_random random(seed);
    const source& from = all[random.below(all.size())];
    testing::end_early(from.samples, from.fields, random);
  });
}

// A block that is expanded makes rows ready, which makes them jobs, over three turns of a loop: the decode threads end in between.
TEST(ends_early, while_blocks_are_expanded) {
  std::vector<source> all;
  add_arrays(all);
  testing::for_each_seed(50, [&](std::uint64_t seed) {
    const testing::watchdog dog("a loader that ends while blocks are expanded");
    testing::seeded_random random(seed);
    const source& from = all[random.below(all.size())];
    testing::loader_options options = testing::small_options();
    options.seed = seed;
    options.reader.io_threads = static_cast<std::uint32_t>(1 + random.below(2));
    const testing::loader train(from.samples, options, from.fields);
    testing::pass_some_time(random);
  });
}

}  // namespace
}  // namespace leat
