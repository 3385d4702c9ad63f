// Rows that stay on the device: what a trainer's kernels see of every epoch is what a run without a cache gives, and what is held is not
// read again.
#include "base/text.hpp"
#include "datasets/formats/tar/photo_places.hpp"
#include "stages/fields/photo_reach.hpp"
#include "tests/device/device_reader.hpp"
#include "tests/device/watched_calls.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/coded_forms.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/simulated_device.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/verbatim_field.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/clip.hpp>
#include <leat/loading.hpp>
#include <leat/mosaic.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_tokens.hpp>
#include <leat/photo_pack.hpp>
#include <leat/picture_geometry.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Of its own, as the names of other files of this folder are alike.
namespace leat::device_cache_tests {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::execution;
using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::simulated_device;
using testing::simulated_device_options;
using testing::watchdog;

constexpr std::size_t samples_count = 45;
constexpr std::size_t roomy = std::size_t{4} << 20;

/// Pictures, some of them photo packs, labels, and 600 bytes beside.
std::vector<testing::fake_sample> samples(std::size_t count = samples_count) {
  std::vector<testing::fake_sample> all = testing::make_samples(1, count);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (auto& member : all[i].members) {
      if (member.field != "jpg") continue;
      try {
        member.bytes = pack_photo(member.bytes);
        member.field = "fjpg";
      } catch (const error&) {
        // It stays as it is.
      }
    }
    std::vector<std::byte> beside(600);
    for (std::size_t at = 0; at < beside.size(); ++at) beside[at] = static_cast<std::byte>(i + at);
    all[i].members.push_back({"bin", std::move(beside)});
  }
  return all;
}

/// One batch ahead, so that a batch is on the device before the next but one is planned.
loader_options options_on(const std::shared_ptr<stages::device_calls>& device, std::size_t cache) {
  loader_options options = testing::small_options();
  options.device_calls = device;
  options.epochs = 4;
  options.prefetch_batches = 1;
  options.device_cache = cache;
  return options;
}

image small_picture() { return image("jpg").resize(20, 20); }

void expect_all_home(const simulated_device& device) {
  const simulated_device::counts left = device.count();
  EXPECT_EQ(left.memory, 0U);
  EXPECT_EQ(left.pinned, 0U);
  EXPECT_EQ(left.events, 0U);
}

/// With a cache and without.
struct two_runs {
  testing::seen_run wanted;
  testing::seen_run got;
};
two_runs run_both(const dataset& from, const loader_options& options, const std::vector<field>& fields) {
  loader_options plain = options;
  plain.device_cache = 0;
  plain.device_calls = std::make_shared<simulated_device>();
  two_runs made{testing::run_all(from, plain, fields), testing::run_all(from, options, fields)};
  EXPECT_FALSE(made.wanted.failed) << made.wanted.message;
  EXPECT_FALSE(made.got.failed) << made.got.message;
  EXPECT_EQ(made.got.batches, made.wanted.batches);
  EXPECT_EQ(made.got.stats.samples, made.wanted.stats.samples);
  EXPECT_EQ(made.wanted.stats.device.cache.use, "off");
  EXPECT_EQ(made.wanted.stats.device.cache.why, "not asked for");
  return made;
}

TEST(device_cache, gives_the_bytes_of_the_first_epoch_and_reads_no_more) {
  const std::vector<std::vector<field>> kinds = {
      {small_picture().normalize(imagenet), label("cls")},
      {small_picture(), image("whole").from("jpg").resize(11, 30).as(dtype::u8), label("cls")},
      {testing::verbatim("bin")},
      {testing::verbatim("bin"), label("cls"), small_picture().saturation({0.5, 0.5}).normalize(imagenet)}};
  const std::vector<testing::fake_sample> from = samples();
  for (const std::vector<field>& fields : kinds) {
    for (const decode_on where : {decode_on::host, decode_on::device}) {
      for (const bool shuffled : {true, false}) {
        for (const execution when : {execution::late, execution::early, execution::random}) {
          SCOPED_TRACE(str_cat(&fields - kinds.data(), " ", static_cast<int>(where), " ", shuffled, " ",
                               static_cast<int>(when)));
          const watchdog dog("rows that stay");
          const auto device = std::make_shared<simulated_device>(
              simulated_device_options{.loader = when, .consumer = execution::random});
          loader_options options = options_on(device, roomy);
          options.decode_on = where;
          options.shuffle = shuffled;
          const fake_dataset set(from);
          const two_runs runs = run_both(set, options, fields);
          const device_report& told = runs.got.stats.device;
          EXPECT_EQ(told.cache.use, "cuda:0");
          EXPECT_EQ(told.cache.why, "all 45 rows fit");
          EXPECT_EQ(told.cached_rows, samples_count);
          EXPECT_LE(told.cache_bytes, told.cache_bytes_max);
          EXPECT_LE(told.cache_bytes_max, options.device_cache);
          // Those of the second epoch that are planned before the last of the first are on the device are read again.
          EXPECT_GE(told.rows_from_cache, 2 * samples_count + samples_count / 2);
          EXPECT_LE(runs.got.stats.bytes_read * 2, runs.wanted.stats.bytes_read);
          expect_all_home(*device);
        }
      }
    }
  }
}

// No digests, names or receipts: then threads that read make rows, too.
TEST(device_cache, gives_rows_that_reading_threads_make) {
  const watchdog dog("cheap rows");
  const std::vector<testing::fake_sample> from = samples();
  const std::vector<field> fields = {testing::verbatim("bin"), label("cls")};
  const auto see = [&](std::size_t cache) {
    const auto device = std::make_shared<simulated_device>(simulated_device_options{.loader = execution::late});
    loader_options options = options_on(device, cache);
    options.digests = false;
    testing::device_reader reader(*device);
    const stream consumer = device->make_consumer();
    loader train(fake_dataset(from), options, fields);
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
      while (auto delivered = train.next_blocking()) {
        delivered->wait_on(consumer);
        reader.read(*delivered, consumer);
      }
    }
    device->finish_all(consumer);
    if (cache != 0) EXPECT_GT(train.stats().device.rows_from_cache, 2 * samples_count);
    return reader.seen();
  };
  EXPECT_EQ(see(roomy), see(0));
}

TEST(device_cache, has_names_geometries_and_row_digests_of_held_rows) {
  const watchdog dog("what is known of held rows");
  loader_options options = options_on(std::make_shared<simulated_device>(), roomy);
  options.names = true;
  options.shuffle = false;
  loader train(fake_dataset(samples()), options, image("jpg").resize(30, 40).center_crop(20), label("cls"));
  std::vector<std::vector<std::string>> seen(options.epochs);
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    while (const auto got = train.next_blocking()) {
      for (std::uint32_t row = 0; row < got->valid_rows(); ++row) {
        const picture_geometry of = got->placement("jpg", row);
        seen[epoch].push_back(str_cat(got->names()[row], " ", got->row_digests()[row].hex(), " ", of.picture_width, " ",
                                      of.picture_height, " ", of.matrix[0], " ", of.matrix[2]));
      }
    }
  }
  EXPECT_GT(train.stats().device.rows_from_cache, 2 * samples_count);
  EXPECT_EQ(seen[0].size(), samples_count);
  for (const auto& epoch : seen) EXPECT_EQ(epoch, seen[0]);
}

TEST(device_cache, that_is_too_small_keeps_the_rows_that_came_first) {
  const watchdog dog("a small cache");
  const std::vector<field> fields = {testing::verbatim("bin"), label("cls")};
  for (const bool shuffled : {true, false}) {
    loader_options options = options_on(std::make_shared<simulated_device>(), 10 * 608 + 100);
    options.shuffle = shuffled;
    const two_runs runs = run_both(fake_dataset(samples()), options, fields);
    const device_report& told = runs.got.stats.device;
    EXPECT_EQ(told.cached_rows, 10U);
    EXPECT_GE(told.rows_from_cache, 2 * 10U);
    EXPECT_LE(told.rows_from_cache, 3 * 10U);
    EXPECT_THAT(told.cache.why, HasSubstr("10 of 45 rows fit"));
    EXPECT_EQ(told.cache_bytes_max, 10 * 608U + 100);
    const std::vector<std::string> notes = loader(fake_dataset(samples()), options, fields).plan().notes;
    EXPECT_THAT(notes, ::testing::Contains(HasSubstr("device_cache: 10 of 45 rows fit")));
  }
}

TEST(device_cache, goes_beside_corrupt_samples_that_are_left_out_or_replaced) {
  std::vector<testing::fake_sample> from = samples();
  for (std::size_t i = 0; i < from.size(); i += 4) {
    for (const char* const picture : {"fjpg", "jpg", "png"}) {
      if (testing::fake_sample::member* const found = from[i].find(picture)) found->bytes.resize(30);
    }
  }
  const std::vector<field> fields = {small_picture().normalize(imagenet), label("cls"), testing::verbatim("bin")};
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    for (const std::size_t cache : {roomy, std::size_t{40'000}}) {
      const watchdog dog("corrupt samples beside held rows");
      loader_options options = options_on(std::make_shared<simulated_device>(), cache);
      options.on_corrupt = policy;
      options.decode_on = decode_on::device;
      const two_runs runs = run_both(fake_dataset(from), options, fields);
      EXPECT_EQ(runs.got.stats.quarantined, runs.wanted.stats.quarantined);
      EXPECT_EQ(runs.got.stats.substituted, runs.wanted.stats.substituted);
      EXPECT_GT(runs.got.stats.quarantined, 4 * 10U);
      EXPECT_LE(runs.got.stats.device.cached_rows, samples_count - 12);
      EXPECT_GT(runs.got.stats.device.rows_from_cache, 0U);
      if (cache == roomy) EXPECT_EQ(runs.got.stats.device.cached_rows, samples_count - 12);
    }
  }
}

TEST(device_cache, begins_empty_where_a_run_is_resumed) {
  const watchdog dog("resumed with a cache");
  const fake_dataset set(samples());
  const std::vector<field> fields = {small_picture().normalize(imagenet), label("cls")};
  const loader_options options = options_on(std::make_shared<simulated_device>(), roomy);
  const testing::seen_run whole = testing::run_all(set, options, fields);
  for (const std::size_t place : {3U, 6U, 9U, 20U}) {
    std::vector<testing::seen_batch> seen;
    loader_options first = options;
    first.device_calls = std::make_shared<simulated_device>();
    loader_options rest = options;
    rest.device_calls = std::make_shared<simulated_device>();
    {
      loader begun(set, first, fields);
      while (seen.size() < place) {
        if (const auto got = begun.next_blocking()) seen.push_back(testing::look_at(*got));
      }
      rest.resume = begun.state();
    }
    rest.device_cache = place == 9 ? 0 : roomy / 2;  // It is no part of what a run is.
    loader gone_on(set, rest, fields);
    while (!gone_on.finished()) {
      if (const auto got = gone_on.next_blocking()) seen.push_back(testing::look_at(*got));
    }
    EXPECT_EQ(seen, whole.batches) << place;
  }
}

// Each rank has a cache of its own, and gets other rows in each epoch.
TEST(device_cache, is_each_ranks_own_in_every_world) {
  const watchdog dog("ranks with caches");
  const fake_dataset set(samples());
  const std::vector<field> fields = {small_picture(), label("cls")};
  for (const std::uint32_t size : {2U, 3U}) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      loader_options options = options_on(std::make_shared<simulated_device>(), roomy);
      options.world = {.rank = rank, .size = size};
      options.batch_size = 4;
      const two_runs runs = run_both(set, options, fields);
      const device_report& told = runs.got.stats.device;
      EXPECT_GT(told.cached_rows, samples_count / size);
      EXPECT_LE(told.cached_rows, samples_count);
      EXPECT_GT(told.rows_from_cache, 0U);
    }
  }
}

TEST(device_cache, keeps_a_sample_that_comes_twice_in_a_batch_once) {
  const watchdog dog("repeated samples");
  const fake_dataset set(samples(10));
  loader_options options = options_on(std::make_shared<simulated_device>(), roomy);
  options.order = repeated(3);
  const two_runs runs = run_both(set, options, {testing::verbatim("bin"), label("cls")});
  EXPECT_EQ(runs.got.stats.device.cached_rows, 10U);
  EXPECT_EQ(runs.got.stats.device.cache_bytes_max, 10 * 608U) << "no more than all rows take";
}

TEST(device_cache, lasts_when_epochs_are_skipped) {
  const watchdog dog("skipped epochs");
  const fake_dataset set(samples());
  const std::vector<field> fields = {testing::verbatim("bin"), label("cls")};
  const auto run = [&](std::size_t cache) {
    loader_options options = options_on(std::make_shared<simulated_device>(), cache);
    options.epochs = 6;
    loader train(set, options, fields);
    std::vector<testing::seen_batch> seen;
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
      std::size_t batches = 0;
      while (const auto got = train.next_blocking()) {
        seen.push_back(testing::look_at(*got));
        if (epoch % 2 == 0 && ++batches == 3) {
          train.skip_epoch();
          break;
        }
      }
    }
    if (cache != 0) EXPECT_GT(train.stats().device.rows_from_cache, samples_count);
    return seen;
  };
  EXPECT_EQ(run(roomy), run(0));
}

// Whatever is asked of it is in the stream before the loader ends.
TEST(device_cache, is_read_by_batches_that_outlive_their_loader) {
  const watchdog dog("batches that outlive a cache");
  const auto device = std::make_shared<simulated_device>(
      simulated_device_options{.loader = execution::late, .consumer = execution::late});
  const fake_dataset set(samples());
  {
    std::vector<batch> kept;
    {
      loader_options options = options_on(device, roomy);
      options.epochs = 3;
      loader train(set, options, testing::verbatim("bin"), label("cls"));
      while (!train.finished()) {
        auto got = train.next_blocking();
        if (!got) continue;
        if (got->epoch() == 2 && got->index() >= 4) {
          kept.push_back(std::move(*got));
        } else {
          testing::look_at(*got);
        }
      }
      EXPECT_GT(train.stats().device.rows_from_cache, samples_count);
    }
    ASSERT_EQ(kept.size(), 2U);
    for (const batch& each : kept) testing::look_at(each);
    device->finish_everything();
  }
  device->finish_everything();
  expect_all_home(*device);
}

TEST(device_cache, of_two_loaders_are_two) {
  const watchdog dog("two loaders");
  const auto device = std::make_shared<simulated_device>();
  const loader_options options = options_on(device, roomy);
  const std::vector<field> fields = {testing::verbatim("bin"), label("cls")};
  const std::vector<testing::fake_sample> all = samples(90);
  const fake_dataset first_set(std::vector<testing::fake_sample>(all.begin(), all.begin() + 45));
  const fake_dataset second_set(std::vector<testing::fake_sample>(all.begin() + 45, all.end()));
  loader first(first_set, options, fields);
  loader second(second_set, options, fields);
  std::vector<testing::seen_batch> seen[2];
  while (!first.finished() || !second.finished()) {
    if (const auto got = first.next_blocking()) seen[0].push_back(testing::look_at(*got));
    if (const auto got = second.next_blocking()) seen[1].push_back(testing::look_at(*got));
  }
  loader_options plain = options;
  plain.device_cache = 0;
  EXPECT_EQ(seen[0], testing::run_all(first_set, plain, fields).batches);
  EXPECT_EQ(seen[1], testing::run_all(second_set, plain, fields).batches);
}

// In the dataset's order rows lie in the cache as in their batches: a call for each batch and output takes them there, and one back.
TEST(device_cache, copies_neighbours_together) {
  const watchdog dog("neighbours");
  const auto device = std::make_shared<simulated_device>();
  loader_options options = options_on(device, roomy);
  options.shuffle = false;
  const testing::seen_run got =
      testing::run_all(fake_dataset(samples()), options, {testing::verbatim("bin"), label("cls")});
  ASSERT_FALSE(got.failed) << got.message;
  const std::size_t batches = got.batches.size();
  EXPECT_LE(device->count().copies_within, batches) << "one for each batch";
  EXPECT_GE(device->count().copies_within, batches - 2) << "but for those of the second epoch that were read twice";
  EXPECT_EQ(device->count().kernels, 0U);
}

// Shuffled: a launch for each batch, or for as many rows as it takes.
TEST(device_cache, gathers_others_by_one_launch) {
  struct one {
    std::size_t samples;
    std::uint32_t batch_size;
    std::size_t launches;  // for each batch
  };
  for (const one& each : {one{45, 8, 1}, one{200, 100, 1}, one{360, 360, 3}}) {
    SCOPED_TRACE(each.samples);
    const watchdog dog("rows that are gathered");
    const auto device = std::make_shared<simulated_device>();
    loader_options options = options_on(device, roomy);
    options.batch_size = each.batch_size;
    options.host_bytes_max = std::size_t{256} << 20;
    const two_runs runs =
        run_both(fake_dataset(samples(each.samples)), options, {testing::verbatim("bin"), label("cls")});
    EXPECT_EQ(runs.got.stats.device.cached_rows, each.samples);
    EXPECT_GE(runs.got.stats.device.rows_from_cache, 2 * each.samples);
    EXPECT_LE(device->count().kernels, runs.got.batches.size() * each.launches);
    EXPECT_GE(device->count().kernels, runs.got.batches.size() / 2);
    EXPECT_LE(device->count().kernels + device->count().copies_within, runs.got.batches.size() * each.launches);
  }
}

// Rows of 150 KB: what is held does not cross the bus.
TEST(device_cache, spares_the_copy_from_the_host) {
  const watchdog dog("what crosses the bus");
  std::vector<testing::fake_sample> from(12);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::vector<std::byte> jpeg = testing::make_jpeg(testing::make_texture(i, 230, 230), {.quality = 85});
    from[i].members = {{"fjpg", pack_photo(jpeg)}};
  }
  for (const decode_on where : {decode_on::host, decode_on::device}) {
    const auto device = std::make_shared<simulated_device>();
    loader_options options = options_on(device, std::size_t{64} << 20);
    options.batch_size = 4;
    options.epochs = 6;
    options.decode_on = where;
    options.host_bytes_max = std::size_t{256} << 20;
    const auto plain = std::make_shared<simulated_device>();
    const two_runs runs = run_both(fake_dataset(from), options, {image("jpg").resize(224, 224).normalize(imagenet)});
    loader_options without = options;
    without.device_cache = 0;
    without.device_calls = plain;
    static_cast<void>(
        testing::run_all(fake_dataset(from), without, {image("jpg").resize(224, 224).normalize(imagenet)}));
    RecordProperty("bytes_copied", std::to_string(device->count().bytes_copied));
    RecordProperty("bytes_copied_without", std::to_string(plain->count().bytes_copied));
    EXPECT_LT(device->count().bytes_copied, plain->count().bytes_copied * 45 / 100) << "of six epochs fewer than three";
    EXPECT_EQ(runs.got.stats.device.cached_rows, from.size());
  }
}

TEST(device_cache, is_off_with_the_reason_where_rows_are_not_the_same_in_every_epoch) {
  const std::vector<testing::fake_sample> from = samples();
  const auto copied = [](std::span<const std::byte> encoded, const sample_context&, std::span<std::byte> row) {
    std::copy_n(encoded.begin(), row.size(), row.begin());
    return std::string();
  };
  struct one {
    std::vector<field> fields;
    std::string why;
  };
  const std::vector<one> all = {
      {{image("jpg").random_resized_crop(12), label("cls")}, "'jpg' is drawn anew in each epoch"},
      {{small_picture().random_flip()}, "'jpg' is drawn anew in each epoch"},
      {{small_picture(), text("txt")}, "rows of 'txt' have any length"},
      {{custom("bin", dtype::u8, {300}, copied)}, "'bin' is made by a function of yours"},
      {{label("cls")}, "no output has rows of more than 256 bytes"}};
  for (const one& each : all) {
    SCOPED_TRACE(each.why);
    const watchdog dog("no rows that stay");
    const loader_options options = options_on(std::make_shared<simulated_device>(), roomy);
    const two_runs runs = run_both(fake_dataset(from), options, each.fields);
    EXPECT_EQ(runs.got.stats.device.cache.use, "off");
    EXPECT_EQ(runs.got.stats.device.cache.why, each.why);
    EXPECT_EQ(runs.got.stats.device.cached_rows, 0U);
    EXPECT_EQ(runs.got.stats.device.rows_from_cache, 0U);
    EXPECT_THAT(loader(fake_dataset(from), options, each.fields).plan().warnings,
                ::testing::Contains("device_cache: no row stays: " + each.why));
  }
  loader_options mixed = options_on(std::make_shared<simulated_device>(), roomy);
  mixed.mix = mixup(0.5);
  const std::vector<field> floats = {small_picture().normalize(imagenet), label("cls")};
  EXPECT_EQ(run_both(fake_dataset(from), mixed, floats).got.stats.device.cache.why,
            "digests of mixed rows are made on the host");
  mixed.digests = mixed.finish_on_device = false;
  EXPECT_EQ(loader(fake_dataset(from), mixed, floats).stats().device.cache.why, "'jpg' is mixed on the host");
  mixed.mix = mosaic(0.5);
  EXPECT_EQ(loader(fake_dataset(from), mixed, floats).stats().device.cache.why,
            "rows become mosaics, whose boxes and masks the host moves");
  loader_options nvjpeg = options_on(std::make_shared<simulated_device>(), roomy);
  nvjpeg.digests = false;
  loader by_nvjpeg(fake_dataset(from), nvjpeg, small_picture().decoder(jpeg_decoder::nvjpeg));
  EXPECT_THAT(by_nvjpeg.stats().device.cache.why, HasSubstr("by nvJPEG"));
  loader_options on_host = options_on(nullptr, roomy);
  loader here(fake_dataset(from), on_host, small_picture());
  EXPECT_EQ(here.stats().device.cache.why, "batches stay on the host");
  EXPECT_THAT(here.plan().warnings, ::testing::Contains("device_cache: no row stays: batches stay on the host"));
}

TEST(device_cache, keeps_windows_of_tokens_that_are_tiled) {
  const watchdog dog("windows of tokens");
  const testing::temporary_directory root;
  const std::string file =
      testing::write_file(root.path() / "t.bin", testing::bytes_of(testing::counting<std::uint16_t>(2000)));
  for (const window_order order : {window_order::shifted, window_order::tiled, window_order::random}) {
    const tokens how{.length = 64, .windows = order};
    const loader_options options = options_on(std::make_shared<simulated_device>(), roomy);
    const two_runs runs = run_both(cut_windows(open_tokens(file), how), options, {how});
    const device_report& told = runs.got.stats.device;
    EXPECT_EQ(told.rows_from_cache != 0, order == window_order::tiled);
    if (order != window_order::tiled) EXPECT_THAT(told.cache.why, HasSubstr("begin elsewhere in each epoch"));
  }
}

/// What a trainer's kernels see, without digests of the host's.
struct seen_pixels {
  std::vector<std::string> all;
  loader_stats stats;
};
seen_pixels see_pixels(const dataset& from, loader_options options, const std::vector<field>& fields, std::size_t cache,
                       execution when = execution::random) {
  const auto device = std::make_shared<simulated_device>(simulated_device_options{.loader = when});
  options.device_calls = device;
  options.device_cache = cache;
  options.digests = false;
  seen_pixels seen;
  {
    testing::device_reader reader(*device);
    const stream consumer = device->make_consumer();
    loader train(from, options, fields);
    while (!train.finished()) {
      auto delivered = train.next_blocking();
      if (!delivered) continue;
      delivered->wait_on(consumer);
      reader.read(*delivered, consumer);
    }
    device->finish_all(consumer);
    seen = {reader.seen(), train.stats()};
  }
  expect_all_home(*device);
  return seen;
}

std::vector<testing::fake_sample> packs(std::size_t count) {
  std::vector<testing::fake_sample> all = testing::labels(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto side = static_cast<int>(48 + 5 * (i % 8));
    const std::vector<std::byte> jpeg =
        testing::make_jpeg(testing::make_texture(i, side, 110 - side),
                           {.h = 1 + static_cast<int>(i % 2), .v = 1 + static_cast<int>(i / 2 % 2), .quality = 80});
    all[i].members.push_back({"fjpg", pack_photo(jpeg)});
  }
  return all;
}

loader_options photo_options() {
  loader_options options = options_on(nullptr, 0);
  options.decode_on = decode_on::device;
  return options;
}

image drawn_picture() {
  return image("jpg")
      .random_resized_crop(64)
      .random_flip()
      .random_apply(0.8, {transforms::color_jitter{0.4, 0.4, 0.4, 0.1}})
      .normalize(imagenet);
}

TEST(device_cache, keeps_photo_packs_whatever_is_drawn_of_them) {
  const fake_dataset set(packs(samples_count));
  for (const std::vector<field>& fields :
       {std::vector<field>{drawn_picture(), label("cls")},
        std::vector<field>{image("jpg").random_resized_crop(40).random_flip().as(dtype::u8),
                           image("whole").from("jpg").resize(30, 60).normalize(imagenet), label("cls")}}) {
    for (const execution when : {execution::late, execution::early, execution::random}) {
      const watchdog dog("photo packs that stay");
      const seen_pixels wanted = see_pixels(set, photo_options(), fields, 0, when);
      const seen_pixels got = see_pixels(set, photo_options(), fields, roomy, when);
      EXPECT_EQ(got.all, wanted.all);
      EXPECT_EQ(got.all.size(), 4 * 6U);
      const device_report& told = got.stats.device;
      EXPECT_THAT(told.cache.why, ::testing::MatchesRegex("all 45 rows fit, where 'jpg' is a photo pack of less than "
                                                          ".* KiB; the others are read in each epoch"));
      EXPECT_EQ(told.cached_rows, samples_count);
      EXPECT_GE(told.rows_from_cache, 2 * samples_count + samples_count / 2);
      EXPECT_LE(got.stats.bytes_read * 2, wanted.stats.bytes_read);
      EXPECT_GE(told.photos_decoded, 4 * samples_count) << "of those that are drawn each";
      EXPECT_EQ(told.photos_on_host, 0U);
    }
  }
}

// By the kernel that finishes pictures; partners and weights are made anew in each epoch.
TEST(device_cache, keeps_what_a_device_mixes) {
  for (const batch_mix& how : {mixup(0.6), cutmix()}) {
    for (const bool drawn : {true, false}) {
      const watchdog dog("mixed rows that stay");
      const fake_dataset set(drawn ? packs(samples_count) : samples());
      const std::vector<field> fields = {drawn ? drawn_picture() : small_picture().normalize(imagenet), label("cls")};
      loader_options options = photo_options();
      options.mix = how;
      const seen_pixels wanted = see_pixels(set, options, fields, 0);
      const seen_pixels got = see_pixels(set, options, fields, roomy);
      EXPECT_EQ(got.all, wanted.all);
      EXPECT_EQ(got.stats.device.cached_rows, samples_count);
      EXPECT_GT(got.stats.device.rows_from_cache, 2 * samples_count);
    }
  }
}

// Pictures that are no packs, and packs whose slot has no room for all of their rows, are read in every epoch.
TEST(device_cache, keeps_the_packs_among_other_pictures) {
  const watchdog dog("packs among others");
  std::vector<testing::fake_sample> from = samples();
  from[3].members = {{"cls", testing::to_bytes("1003")},
                     {"fjpg", pack_photo(testing::make_jpeg(testing::make_noise(1, 200, 200), {.h = 1, .v = 1}))}};
  const fake_dataset set(from);
  const std::vector<field> fields = {image("jpg").random_resized_crop(20).random_flip().normalize(imagenet),
                                     label("cls")};
  const seen_pixels wanted = see_pixels(set, photo_options(), fields, 0);
  const seen_pixels got = see_pixels(set, photo_options(), fields, roomy);
  EXPECT_EQ(got.all, wanted.all);
  EXPECT_GT(got.stats.device.cached_rows, 10U);
  EXPECT_LT(got.stats.device.cached_rows, samples_count);
  EXPECT_GT(got.stats.device.rows_from_cache, 0U);
  EXPECT_GT(got.stats.bytes_read, wanted.stats.bytes_read / 4);
}

// An edit is the host's: where one is drawn for a pack that is held, it is read after all.
TEST(device_cache, reads_packs_again_where_the_host_has_to_decode_them) {
  const watchdog dog("packs that are read again");
  const fake_dataset set(packs(samples_count));
  const auto darker = [](draws&, planes p) {
    for (int y = 0; y < p.height; ++y) p.line(1, y)[0] = 3;
    return std::string();
  };
  const std::vector<field> fields = {image("jpg")
                                         .random_resized_crop(40)
                                         .random_flip()
                                         .random_apply(0.5, {transforms::edit{"darker", darker}})
                                         .normalize(imagenet),
                                     label("cls")};
  loader_options options = photo_options();
  options.epochs = 6;
  const seen_pixels wanted = see_pixels(set, options, fields, 0);
  const seen_pixels got = see_pixels(set, options, fields, roomy);
  EXPECT_EQ(got.all, wanted.all);
  EXPECT_GT(got.stats.device.cached_rows, samples_count / 2);
  EXPECT_GT(got.stats.device.photos_on_host, samples_count);
  EXPECT_GT(got.stats.device.rows_from_cache, 0U);
  EXPECT_LT(got.stats.bytes_read, wanted.stats.bytes_read);
}

// A row of MCUs that a crop does not need may be damaged: such a pack is never kept, and is corrupt where it is without a cache.
TEST(device_cache, keeps_no_pack_that_is_damaged_anywhere) {
  std::vector<testing::fake_sample> from = packs(samples_count);
  for (std::size_t i = 0; i < from.size(); i += 4) {
    std::vector<std::byte>& pack = from[i].find("fjpg")->bytes;
    pack[pack.size() - 40] ^= std::byte{1};  // in its last row
  }
  const fake_dataset set(from);
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    const watchdog dog("damaged packs");
    loader_options options = photo_options();
    options.on_corrupt = policy;
    const seen_pixels wanted = see_pixels(set, options, {drawn_picture(), label("cls")}, 0);
    const seen_pixels got = see_pixels(set, options, {drawn_picture(), label("cls")}, roomy);
    EXPECT_EQ(got.all, wanted.all);
    EXPECT_EQ(got.stats.quarantined, wanted.stats.quarantined);
    EXPECT_GT(got.stats.quarantined, 0U);
    EXPECT_EQ(got.stats.device.cached_rows, samples_count - 12);
  }
}

TEST(device_cache, that_is_too_small_for_all_packs_keeps_the_first) {
  const watchdog dog("some packs");
  const fake_dataset set(packs(samples_count));
  const seen_pixels wanted = see_pixels(set, photo_options(), {drawn_picture(), label("cls")}, 0);
  const seen_pixels got = see_pixels(set, photo_options(), {drawn_picture(), label("cls")}, 15'000);
  EXPECT_EQ(got.all, wanted.all);
  EXPECT_GT(got.stats.device.cached_rows, 3U);
  EXPECT_LT(got.stats.device.cached_rows, samples_count / 2);
  EXPECT_LE(got.stats.device.cache_bytes, 15'000U);
  EXPECT_THAT(got.stats.device.cache.why, HasSubstr(" of 45 rows fit"));
  loader_options with_digests = photo_options();
  with_digests.device_calls = std::make_shared<simulated_device>();
  with_digests.device_cache = roomy;
  EXPECT_THAT(loader(set, with_digests, drawn_picture()).stats().device.cache.why,
              HasSubstr("digests are made on the host"));
}

/// A shard of `count` packs with their index, by which it is read crop by crop.
struct indexed_shard {
  static constexpr std::size_t count = 22;
  testing::temporary_directory root;
  std::string file;
  std::size_t pack_bytes = 0;  // of all

  indexed_shard() {
    testing::tar_writer shard;
    std::vector<datasets::photo_place> places;
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<std::byte> pack =
          pack_photo(testing::make_jpeg(testing::make_texture(i, 220, 320), {.h = 2, .v = 2, .quality = 92}));
      pack_bytes += pack.size();
      const testing::tar_place at = shard.add_file(std::to_string(i) + ".fjpg", pack);
      shard.add_file(std::to_string(i) + ".cls", std::to_string(i));
      datasets::photo_place place = stages::place_of_photo(pack).value();
      place.block = static_cast<std::uint32_t>(at.data_offset / 512);
      places.push_back(place);
    }
    shard.add_file(std::string(datasets::photo_places_member), datasets::as_member(places));
    const std::vector<std::byte> bytes = shard.finish();
    file = testing::write_file(root.path() / "s.tar",
                               std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
};

// While packs fit they are read whole, and once one did not, crop by crop again.
TEST(device_cache, reads_whole_packs_only_while_some_fit) {
  const watchdog dog("packs of a shard with an index");
  const indexed_shard shard;
  const std::size_t whole_bytes = shard.pack_bytes;
  const dataset set = open(shard.file);
  const std::vector<field> fields = {image("jpg").random_resized_crop(160, {0.05, 0.15}).random_flip(), label("cls")};
  loader_options options = photo_options();
  options.epochs = 6;
  options.batch_size = 4;
  const seen_pixels wanted = see_pixels(set, options, fields, 0);
  const seen_pixels all = see_pixels(set, options, fields, 2 * whole_bytes);
  const seen_pixels some = see_pixels(set, options, fields, whole_bytes / 4);
  EXPECT_EQ(all.all, wanted.all);
  EXPECT_EQ(some.all, wanted.all);
  EXPECT_EQ(all.stats.device.cached_rows, indexed_shard::count);
  EXPECT_LT(all.stats.bytes_read, whole_bytes * 2) << "once, and of the second epoch what is planned too soon";
  EXPECT_GT(some.stats.device.cached_rows, 2U);
  EXPECT_LT(some.stats.device.cached_rows, indexed_shard::count / 2);
  EXPECT_LT(some.stats.bytes_read, wanted.stats.bytes_read + whole_bytes);
  EXPECT_LT(wanted.stats.bytes_read, 3 * whole_bytes) << "crops are small";
}

// Rows of small pictures have no room for a pack, which never stays: no more of it is read than without a cache.
TEST(device_cache, reads_no_more_of_packs_that_have_no_room_in_a_row) {
  const watchdog dog("packs without room");
  const indexed_shard shard;
  const dataset set = open(shard.file);
  const std::vector<field> fields = {image("jpg").random_resized_crop(24, {0.05, 0.15}).random_flip(), label("cls")};
  loader_options options = photo_options();
  options.batch_size = 4;
  const seen_pixels wanted = see_pixels(set, options, fields, 0);
  const seen_pixels got = see_pixels(set, options, fields, 2 * shard.pack_bytes);
  EXPECT_EQ(got.all, wanted.all);
  EXPECT_EQ(got.stats.device.cached_rows, 0U);
  EXPECT_EQ(got.stats.bytes_read, wanted.stats.bytes_read);
}

// The same pack again and again: compressed they are hardly more than one, and in the device's memory they are all that they are.
TEST(device_cache, counts_what_is_held_of_compressed_packs) {
  const watchdog dog("packs of a compressed shard");
  const testing::temporary_directory root;
  const std::vector<std::byte> pack = pack_photo(testing::make_jpeg(testing::make_texture(1, 60, 60), {.quality = 85}));
  testing::tar_writer shard;
  for (std::size_t i = 0; i < samples_count; ++i) {
    shard.add_file(std::to_string(i) + ".fjpg", pack);
    shard.add_file(std::to_string(i) + ".cls", std::to_string(i));
  }
  const std::vector<std::byte> bytes = shard.finish();
  const std::string file = (root.path() / "s.tar.zst").string();
  testing::put(file, testing::coded(datasets::packing::zstd,
                                    std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  const dataset set = open(file);
  ASSERT_LT(set.fields().front().bytes_total, 5 * pack.size()) << "as stored";
  const std::vector<field> fields = {image("jpg").random_resized_crop(64).random_flip(), label("cls")};
  const seen_pixels wanted = see_pixels(set, photo_options(), fields, 0);
  const seen_pixels all = see_pixels(set, photo_options(), fields, roomy);
  EXPECT_EQ(all.all, wanted.all);
  EXPECT_EQ(all.stats.device.cached_rows, samples_count);
  EXPECT_THAT(all.stats.device.cache.why, ::testing::StartsWith("all 45 rows fit"));
  EXPECT_GE(all.stats.device.cache_bytes_max, all.stats.device.cache_bytes);
  EXPECT_LE(all.stats.device.cache_bytes_max, samples_count * (pack.size() + 16));
  const seen_pixels some = see_pixels(set, photo_options(), fields, 10 * (pack.size() + 16));
  EXPECT_EQ(some.all, wanted.all);
  EXPECT_THAT(some.stats.device.cache.why, ::testing::StartsWith("10 of 45 rows fit"));
  EXPECT_GE(some.stats.device.cached_rows, 10U) << "without their heads they are smaller";
  EXPECT_LT(some.stats.device.cached_rows, samples_count);
}

// Nothing would be asked for again: what is read is what is read without a cache. A sample that an order gives twice is.
TEST(device_cache, is_off_where_one_epoch_is_left) {
  const watchdog dog("one epoch");
  const indexed_shard shard;
  const dataset set = open(shard.file);
  const std::vector<field> fields = {image("jpg").random_resized_crop(160, {0.05, 0.15}).random_flip(), label("cls")};
  loader_options options = photo_options();
  options.epochs = 1;
  options.batch_size = 4;
  const seen_pixels wanted = see_pixels(set, options, fields, 0);
  const seen_pixels got = see_pixels(set, options, fields, 2 * shard.pack_bytes);
  EXPECT_EQ(got.all, wanted.all);
  EXPECT_EQ(got.stats.bytes_read, wanted.stats.bytes_read);
  EXPECT_EQ(got.stats.device.cache.use, "off");
  EXPECT_EQ(got.stats.device.cache.why, "there is one epoch, which asks for each sample once");

  const fake_dataset small(samples());
  const std::vector<field> rows = {small_picture(), label("cls")};
  loader_options last = options_on(std::make_shared<simulated_device>(), roomy);
  loader_state state = loader(small, last, rows).state();
  for (const std::uint32_t epoch : {2U, 3U}) {
    last.device_calls = std::make_shared<simulated_device>();
    last.resume = state.at(epoch, 1);
    const loader rest(small, last, rows);
    EXPECT_EQ(rest.stats().device.cache.why,
              epoch == 2 ? "all 45 rows fit" : "there is one epoch left, which asks for each sample once");
  }
  loader_options twice = options_on(std::make_shared<simulated_device>(), roomy);
  twice.epochs = 1;
  twice.batch_size = 5;
  twice.order = repeated(20);
  const two_runs runs = run_both(fake_dataset(samples(5)), twice, rows);
  EXPECT_EQ(runs.got.stats.device.cached_rows, 5U);
  EXPECT_GT(runs.got.stats.device.rows_from_cache, 0U);
}

// Of pictures in slots of one row none differs in another epoch, though crops of one picture draw as a group, and mirror what they crop.
TEST(device_cache, keeps_rows_of_several_pictures) {
  const image crops = image("crops").from("jpg").resize(24, 28);
  const image one = image("one").from("jpg").resize(12, 12).as(dtype::u8);
  const std::vector<std::vector<field>> kinds = {
      {five_crop(crops.normalize(imagenet), 14), label("cls")},
      {ten_crop(crops.normalize(imagenet), 14), label("cls")},
      {testing::verbatim("bin"), five_crop(crops.as(dtype::u8), 14), small_picture()},
      {stack{"both", {one, image("other").from("jpg").resize(30, 30).center_crop(12).as(dtype::u8)}}, label("cls")}};
  for (const std::vector<field>& fields : kinds) {
    for (const decode_on where : {decode_on::host, decode_on::device}) {
      for (const std::size_t cache : {std::size_t{64} << 20, std::size_t{300'000}}) {
        for (const bool digests : {true, false}) {
          SCOPED_TRACE(str_cat(&fields - kinds.data(), " ", static_cast<int>(where), " ", cache, " ", digests));
          const watchdog dog("views that stay");
          loader_options options = options_on(std::make_shared<simulated_device>(), cache);
          options.decode_on = where;
          options.host_bytes_max = std::size_t{256} << 20;
          loader_stats stats;
          if (digests) {
            stats = run_both(fake_dataset(samples()), options, fields).got.stats;
          } else {
            const seen_pixels wanted = see_pixels(fake_dataset(samples()), options, fields, 0);
            const seen_pixels got = see_pixels(fake_dataset(samples()), options, fields, cache);
            EXPECT_EQ(got.all, wanted.all);
            stats = got.stats;
          }
          EXPECT_GT(stats.device.rows_from_cache, 0U);
          EXPECT_LE(stats.device.cache_bytes, stats.device.cache_bytes_max);
          if (cache > 300'000) EXPECT_EQ(stats.device.cached_rows, samples_count);
        }
      }
    }
  }
}

// What has steps that draw stays all the same where their draws change nothing.
TEST(device_cache, keeps_what_draws_cannot_change) {
  const watchdog dog("draws without effect");
  std::vector<testing::fake_sample> from = samples();
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (std::size_t frame = 0; frame < 3 + i % 2; ++frame) {
      const std::vector<std::byte> jpeg = testing::make_jpeg(testing::make_texture(10 * i + frame, 30, 20), {});
      from[i].members.push_back({str_cat("frame", frame), jpeg});
    }
  }
  const auto frames = [](const clip_options& how) {
    return clip(image("clip").from("frame*").resize(16, 16).random_flip(1), how);
  };
  struct one {
    field what;
    bool stays;
  };
  const std::vector<one> all = {
      {small_picture().random_flip(1), true},
      {small_picture().random_apply(0, {transforms::color_jitter{0.4}}).normalize(imagenet), true},
      {small_picture().random_apply(1, {transforms::brightness{{0.7, 0.7}}}).normalize(imagenet), true},
      {small_picture().random_apply(0.5, {transforms::invert{}}), false},
      {frames({.frames = 3}), true},
      {frames({.frames = 4, .missing = missing_frame::repeat_last}), true},
      {frames({.frames = 4, .random_start = true, .missing = missing_frame::repeat_last}), true},
      {frames({.frames = 3, .random_start = true}), false}};
  for (const one& each : all) {
    SCOPED_TRACE(&each - all.data());
    for (const decode_on where : {decode_on::host, decode_on::device}) {
      loader_options options = options_on(std::make_shared<simulated_device>(), roomy);
      options.decode_on = where;
      const two_runs runs = run_both(fake_dataset(from), options, {each.what, label("cls"), testing::verbatim("bin")});
      const device_report& told = runs.got.stats.device;
      EXPECT_EQ(told.cached_rows, each.stays ? samples_count : 0U) << told.cache.why;
      EXPECT_EQ(told.rows_from_cache > 2 * samples_count, each.stays);
      // Of a picture that the device finishes the packs would stay, but for the digests that this compares.
      if (!each.stays) {
        EXPECT_THAT(told.cache.why,
                    AnyOf(HasSubstr("is drawn anew in each epoch"), HasSubstr("digests are made on the host")));
      }
    }
  }
}

TEST(device_cache, keeps_arrays_whose_draws_change_nothing) {
  const watchdog dog("arrays that stay");
  const testing::temporary_directory root;
  const std::string file = testing::write_file(
      root.path() / "rows.npy", testing::npy_text(testing::npy_dict("<i2", "40, 12, 16"),
                                                  testing::bytes_of(testing::counting<std::int16_t>(40 * 12 * 16))));
  const dataset set = open_npy(file, {.samples = npy_options::sample::row});
  const auto stays = [&](const array& rows) {
    const loader_options options = options_on(std::make_shared<simulated_device>(), roomy);
    return run_both(set, options, {rows}).got.stats.device.rows_from_cache != 0;
  };
  const array whole("npy");
  EXPECT_TRUE(stays(whole.random_crop({12, 16})));
  EXPECT_FALSE(stays(whole.random_crop({12, 15})));
  EXPECT_TRUE(stays(whole.random_flip(0, 1)));
  EXPECT_FALSE(stays(whole.random_flip(0, 0.5)));
}

TEST(device_cache, takes_what_batches_leave_of_device_bytes_max) {
  const watchdog dog("device_bytes_max");
  const std::vector<field> fields = {testing::verbatim("bin"), label("cls")};
  loader_options options = options_on(std::make_shared<simulated_device>(), roomy);
  options.batch_size = 4;
  const std::uint64_t batches = [&] {
    loader_options plain = options;
    plain.device_cache = 0;
    plain.device_calls = std::make_shared<simulated_device>();
    return loader(fake_dataset(samples()), plain, fields).stats().device.bytes;
  }();
  options.device_bytes_max = batches + 5 * 608;
  const two_runs runs = run_both(fake_dataset(samples()), options, fields);
  EXPECT_EQ(runs.got.stats.device.cached_rows, 5U);
  EXPECT_EQ(runs.got.stats.device.bytes, options.device_bytes_max);
  EXPECT_EQ(runs.got.stats.device.batches, 3U);
  loader_options none = options;
  none.device_calls = std::make_shared<simulated_device>();
  none.device_bytes_max = batches + 600;
  loader without(fake_dataset(samples()), none, fields);
  EXPECT_THAT(without.stats().device.cache.why, HasSubstr("loader_options::device_bytes_max beside batches"));
  EXPECT_EQ(without.plan().device.bytes, batches);
}

TEST(device_cache, that_the_device_has_no_room_for_is_an_error_that_names_it) {
  const auto calls = std::make_shared<testing::watched_calls>(std::make_shared<simulated_device>());
  const loader_options options = options_on(calls, roomy);
  calls->fail("take_memory", 4, 2);
  EXPECT_THAT(
      testing::message_of(errc::limit,
                          [&] { loader(fake_dataset(samples()), options, testing::verbatim("bin"), label("cls")); }),
      HasSubstr("device memory for device_cache of 27360 bytes"));
}

// Each copy of a run in turn.
TEST(device_cache, ends_the_run_where_one_of_its_copies_fails) {
  for (const std::size_t nth : {1U, 2U, 7U, 9U, 14U}) {
    const watchdog dog("a copy that fails");
    const auto calls = std::make_shared<testing::watched_calls>(std::make_shared<simulated_device>());
    loader_options options = options_on(calls, roomy);
    options.shuffle = false;
    calls->fail("copy_within", nth, 999);
    std::size_t batches = 0;
    loader train(fake_dataset(samples()), options, testing::verbatim("bin"), label("cls"));
    const std::string message = testing::message_of(errc::device, [&] {
      while (!train.finished()) batches += train.next_blocking() ? 1 : 0;
    });
    EXPECT_THAT(message, HasSubstr("cudaMemcpyAsync within the device of "));
    EXPECT_THAT(message, HasSubstr("error 999"));
    EXPECT_EQ(batches, nth - 1) << "one copy for each batch";
    EXPECT_THROW(static_cast<void>(train.next_blocking()), error) << "at every further call as well";
  }
}

TEST(device_cache, ends_the_run_where_its_kernel_fails) {
  const watchdog dog("a kernel that fails");
  const auto calls = std::make_shared<testing::watched_calls>(std::make_shared<simulated_device>());
  const loader_options options = options_on(calls, roomy);
  calls->fail("launch", 2, 999);
  loader train(fake_dataset(samples()), options, testing::verbatim("bin"), label("cls"));
  EXPECT_THAT(testing::message_of(errc::device,
                                  [&] {
                                    while (!train.finished()) static_cast<void>(train.next_blocking());
                                  }),
              AllOf(HasSubstr("the kernel that gathers rows on "), HasSubstr("error 999")));
}

TEST(device_cache, makes_a_batch_again_from_the_files) {
  const watchdog dog("batch_at with a cache");
  loader train(fake_dataset(samples()), options_on(std::make_shared<simulated_device>(), roomy), small_picture(),
               label("cls"));
  std::vector<std::optional<digest>> last;
  while (!train.finished()) {
    const auto got = train.next_blocking();
    if (got && got->epoch() == 3) last.push_back(got->content_digest());
  }
  ASSERT_EQ(last.size(), 6U);
  for (std::size_t index = 0; index < last.size(); ++index) {
    EXPECT_EQ(train.batch_at(3, index).content_digest(), last[index]);
  }
}

}  // namespace
}  // namespace leat::device_cache_tests
