// The loader with a simulated device behind it: what a consumer's kernels see has the digests of what was decoded, however
// late or early anything runs. And it bites: leave out one wait, whichever, and it does not.
#include "base/usable_cores.hpp"
#include "stages/device/open_device.hpp"
#include "stages/run/loader_memory.hpp"
#include "tests/device/device_reader.hpp"
#include "tests/device/watched_calls.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/simulated_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/clip.hpp>
#include <leat/loading.hpp>
#include <leat/mosaic.hpp>
#include <leat/photo_pack.hpp>

#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::execution;
using testing::fake_dataset;
using testing::fake_dataset_options;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::simulated_device;
using testing::simulated_device_options;
using testing::watchdog;

using digests = std::vector<std::string>;

const std::vector<testing::fake_sample>& samples() {
  static const std::vector<testing::fake_sample> made = testing::make_samples(1, 45);
  return made;
}

/// The content digests of two epochs, decoded on the host.
const digests& expected() {
  static const digests once = [] {
    digests all;
    for (const auto& each :
         testing::run_all(fake_dataset(samples()), testing::small_options(), testing::all_fields()).batches)
      all.push_back(each.content);
    return all;
  }();
  return once;
}

struct run_on_device {
  digests seen;    ///< by the consumer's kernels
  digests stated;  ///< by the batches
};

enum class consumer { one_stream, two_streams, releases_early, asks_ready, keeps_some };

run_on_device run(const std::shared_ptr<simulated_device>& device, loader_options options,
                  const fake_dataset_options& where, consumer how, std::uint64_t seed) {
  testing::seeded_random random(seed);
  run_on_device made;
  testing::device_reader reader(*device);
  const stream first = device->make_consumer();
  const stream second = device->make_consumer();
  std::vector<batch> kept;
  {
    loader train(fake_dataset(samples(), where), options, testing::all_fields());
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
      while (std::optional<batch> got = train.next_blocking()) {
        EXPECT_EQ((*got)["cls"].where, cuda(0));
        made.stated.push_back(got->content_digest()->hex());
        if (how == consumer::asks_ready) {
          got->ready(boost::asio::use_future).get();
          EXPECT_EQ(testing::batch_view(*got).content().hex(), made.stated.back()) << "not there when ready() said so";
        }
        got->wait_on(first);
        reader.read(*got, first);
        if (how == consumer::two_streams) {
          got->wait_on(second);
          got->wait_on(second);
          made.stated.push_back(made.stated.back());
          reader.read(*got, second);
        }
        if (how == consumer::releases_early) {
          got->release_on(first);
          EXPECT_THROW(static_cast<void>((*got)["cls"]), error);
        }
        if (how == consumer::keeps_some) {
          kept.push_back(std::move(*got));
          if (kept.size() > random.below(options.device_batches)) kept.erase(kept.begin());
        }
      }
    }
    if (random.below(2) == 0) kept.clear();
  }
  kept.clear();  // Some have outlived their loader.
  device->finish_all(first);
  device->finish_all(second);
  made.seen = reader.seen();
  return made;
}

void expect_all_home(const simulated_device& device) {
  const simulated_device::counts left = device.count();
  EXPECT_EQ(left.memory, 0U);
  EXPECT_EQ(left.pinned, 0U);
  EXPECT_EQ(left.events, 0U);
  EXPECT_EQ(left.copies_pageable, 0U);
}

loader_options options_on(const std::shared_ptr<simulated_device>& device) {
  loader_options options = testing::small_options();
  options.device_calls = device;
  return options;
}

TEST(simulated_device, sees_the_digests_of_the_host_however_late_or_early_it_runs) {
  for (const execution loader : {execution::late, execution::early, execution::random}) {
    for (const execution trainer : {execution::late, execution::early, execution::random}) {
      const watchdog dog("late or early");
      const auto device =
          std::make_shared<simulated_device>(simulated_device_options{.loader = loader, .consumer = trainer});
      const run_on_device got = run(device, options_on(device), {}, consumer::one_stream, 1);
      EXPECT_EQ(got.stated, expected());
      EXPECT_EQ(got.seen, expected());
      expect_all_home(*device);
    }
  }
}

TEST(simulated_device, sees_the_digests_of_the_host_at_every_seed_and_for_every_consumer) {
  testing::for_each_seed(60, [](std::uint64_t seed) {
    const watchdog dog("device seeds");
    testing::seeded_random random(seed);
    const auto any = [&] { return static_cast<execution>(random.below(3)); };
    const auto device =
        std::make_shared<simulated_device>(simulated_device_options{.seed = seed, .loader = any(), .consumer = any()});
    loader_options options = options_on(device);
    options.device_batches = static_cast<std::uint32_t>(1 + random.below(4));
    options.prefetch_batches = static_cast<std::uint32_t>(1 + random.below(4));
    options.decode_threads = static_cast<std::uint32_t>(1 + random.below(4));
    fake_dataset_options where;
    where.disk.seed = seed;
    const run_on_device got = run(device, options, where, static_cast<consumer>(random.below(5)), seed);
    EXPECT_EQ(got.seen, got.stated);
    EXPECT_EQ(std::set<std::string>(got.stated.begin(), got.stated.end()),
              std::set<std::string>(expected().begin(), expected().end()));
    expect_all_home(*device);
  });
}

TEST(loader_device, is_the_host_with_the_reason_where_there_is_no_gpu) {
  const watchdog dog("no gpu");
  if (stages::open_device(cuda(0)).calls != nullptr) GTEST_SKIP() << "there is a GPU here";
  loader_options options = testing::small_options();
  options.device = cuda(0);
  const testing::seen_run got = testing::run_all(fake_dataset(samples()), options, testing::all_fields());
  EXPECT_FALSE(got.failed) << got.message;
  digests content;
  for (const auto& each : got.batches) content.push_back(each.content);
  EXPECT_EQ(content, expected());
  EXPECT_EQ(got.stats.device.use.use, "host");
  EXPECT_NE(got.stats.device.use.why, "asked for");
  EXPECT_NE(got.stats.device.use.why, "");
}

TEST(loader_device, that_is_required_and_not_there_is_an_error_that_says_why) {
  if (stages::open_device(cuda(0)).calls != nullptr) GTEST_SKIP() << "there is a GPU here";
  loader_options options = testing::small_options();
  options.device = cuda(0);
  options.device_required = true;
  const std::string message = testing::message_of(
      errc::unsupported, [&] { const loader train(fake_dataset(samples()), options, testing::all_fields()); });
  EXPECT_THAT(message, HasSubstr("batches cannot go to cuda:0: "));
  EXPECT_THAT(message, HasSubstr("device_required"));
  // The host can be required, and is there.
  options.device = host;
  EXPECT_NO_THROW(loader(fake_dataset(samples()), options, testing::all_fields()));
}

/// Device and host over the same samples: equal batches, and on the device as many kernels as wanted.
void expect_finished_as_on_the_host(const std::vector<testing::fake_sample>& from, const std::vector<field>& fields,
                                    loader_options options, std::size_t kernels_per_batch) {
  const testing::seen_run wanted = testing::run_all(fake_dataset(from), options, fields);
  ASSERT_FALSE(wanted.failed) << wanted.message;
  const auto device = std::make_shared<simulated_device>();
  options.device_calls = device;
  const testing::seen_run got = testing::run_all(fake_dataset(from), options, fields);
  EXPECT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.batches, wanted.batches);
  EXPECT_EQ(got.stats.bytes_delivered, wanted.stats.bytes_delivered) << "of what the trainer sees";
  std::size_t with_rows = 0;
  for (const auto& each : got.batches) with_rows += each.ids.empty() ? 0 : 1;
  EXPECT_EQ(device->count().kernels, with_rows * kernels_per_batch);
}

TEST(loader_device, finishes_pictures_of_every_kind_with_the_bits_of_the_host) {
  for (const dtype type : {dtype::u8, dtype::f16, dtype::bf16, dtype::f32}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      SCOPED_TRACE(std::string(name(type)) + (order == layout::nchw ? " nchw" : " nhwc"));
      const watchdog dog("pictures of every kind");
      image picture = image("jpg").random_resized_crop(11).random_flip().as(type).as(order);
      if (type != dtype::u8) picture = picture.normalize(imagenet);
      loader_options options = testing::small_options();
      expect_finished_as_on_the_host(samples(), {picture, label("cls")}, options, type == dtype::u8 ? 0 : 1);
      options.finish_on_device = false;
      expect_finished_as_on_the_host(samples(), {picture, label("cls")}, options, 0);
    }
  }
}

// By the same launch: there are no more kernels than without.
TEST(loader_device, mixes_pictures_with_the_bits_of_the_host) {
  for (const batch_mix& how : {mixup(0.6), cutmix()}) {
    for (const dtype type : {dtype::f16, dtype::bf16, dtype::f32}) {
      for (const layout order : {layout::nchw, layout::nhwc}) {
        SCOPED_TRACE(std::string(name(type)) + (order == layout::nchw ? " nchw" : " nhwc"));
        const watchdog dog("mixed pictures");
        const image picture = image("jpg").random_resized_crop(11).random_flip().normalize(imagenet).as(type).as(order);
        loader_options options = testing::small_options();
        options.mix = how;
        expect_finished_as_on_the_host(samples(), {picture, label("cls"), text("txt")}, options, 1);
        options.finish_on_device = false;
        expect_finished_as_on_the_host(samples(), {picture, label("cls"), text("txt")}, options, 0);
      }
    }
  }
}

TEST(loader_device, makes_mosaics_with_the_bits_of_the_host) {
  for (const dtype type : {dtype::u8, dtype::f16, dtype::f32}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      SCOPED_TRACE(std::string(name(type)) + (order == layout::nchw ? " nchw" : " nhwc"));
      const watchdog dog("mosaics");
      loader_options options = testing::small_options();
      options.mix = mosaic(0.8);
      image first = image("jpg").random_resized_crop(11).random_flip().hue({0.2, 0.2}).as(type).as(order);
      image second = image("plain").from("jpg").longest_side(11).pad_to({.height = 11, .width = 11}).as(type).as(order);
      if (type != dtype::u8) {
        first = first.normalize(imagenet);
        second = second.normalize(imagenet);
      }
      const std::vector<field> fields{first, second, label("cls")};
      // Of u8 without steps of colour the tiles are moved on the host.
      expect_finished_as_on_the_host(samples(), fields, options, type == dtype::u8 ? 2 : 4);
      options.finish_on_device = false;
      expect_finished_as_on_the_host(samples(), fields, options, 0);
    }
  }
}

// A hole that is closed on the host takes the flag of its row along.
TEST(loader_device, finishes_the_pictures_that_are_left_of_a_batch) {
  const watchdog dog("holes");
  const auto cut = [](testing::fake_sample& of) {
    for (const char* const picture : {"jpg", "png"}) {
      if (testing::fake_sample::member* const found = of.find(picture)) found->bytes.resize(40);
    }
  };
  std::vector<testing::fake_sample> damaged = samples();
  for (std::size_t i = 0; i < damaged.size(); i += 3) cut(damaged[i]);
  loader_options options = testing::small_options();
  options.on_corrupt = corrupt_policy::skip;
  expect_finished_as_on_the_host(damaged, testing::all_fields(), options, 1);
  // Batches without a picture, and one with one: where nothing at all is delivered the run ends.
  for (std::size_t i = 1; i < damaged.size(); ++i) cut(damaged[i]);
  damaged[0] = samples()[0];
  expect_finished_as_on_the_host(damaged, testing::all_fields(), options, 1);
}

/// Baseline JPEGs as photo packs, beside pictures that are none.
std::vector<testing::fake_sample> packed() {
  std::vector<testing::fake_sample> all = samples();
  for (testing::fake_sample& sample : all) {
    for (auto& member : sample.members) {
      if (member.field != "jpg") continue;
      try {
        member.bytes = pack_photo(member.bytes);
        member.field = "fjpg";
      } catch (const error&) {
        // It stays as it is.
      }
    }
  }
  return all;
}

loader_options photos_on(const std::shared_ptr<simulated_device>& device) {
  loader_options options = testing::small_options();
  options.device_calls = device;
  options.decode_on = decode_on::device;
  return options;
}

TEST(loader_device, decodes_photo_packs_with_the_bits_of_the_host) {
  const std::vector<testing::fake_sample> from = packed();
  for (const dtype type : {dtype::u8, dtype::f16, dtype::f32}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      for (const bool mixed : {false, true}) {
        if (type == dtype::u8 && mixed) continue;
        SCOPED_TRACE(std::string(name(type)) + (order == layout::nchw ? " nchw" : " nhwc") + (mixed ? " mixed" : ""));
        const watchdog dog("photo packs");
        image picture = image("jpg").random_resized_crop(11).random_flip().as(type).as(order);
        if (type != dtype::u8) picture = picture.normalize(imagenet);
        loader_options on_host = testing::small_options();
        loader_options on_device = photos_on(std::make_shared<simulated_device>());
        if (mixed) on_host.mix = on_device.mix = mixup(0.6);
        // More rows than are decoded at a time.
        on_host.batch_size = on_device.batch_size = 40;
        const std::vector<field> fields = {picture, image("whole").from("jpg").resize(9, 7).as(type), label("cls")};
        const testing::seen_run wanted = testing::run_all(fake_dataset(from), on_host, fields);
        const testing::seen_run got = testing::run_all(fake_dataset(from), on_device, fields);
        ASSERT_FALSE(wanted.failed) << wanted.message;
        ASSERT_FALSE(got.failed) << got.message;
        EXPECT_EQ(got.batches, wanted.batches);
        const device_report& told = got.stats.device;
        EXPECT_EQ(told.photos.use, "cuda:0");
        EXPECT_GT(told.photos_decoded, got.stats.samples) << "two pictures of each, most of them packs";
        EXPECT_EQ(wanted.stats.device.photos.use, "host");
        EXPECT_EQ(wanted.stats.device.photos_decoded, 0U);
      }
    }
  }
}

// A slot has room for twice its pixels' bytes. The rest of it does not cross the bus.
TEST(loader_device, copies_what_packs_fill_of_their_slots) {
  const watchdog dog("what packs fill");
  std::vector<testing::fake_sample> from(32);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto side = static_cast<int>(240 + 16 * (i % 8));
    const std::vector<std::byte> jpeg = testing::make_jpeg(testing::make_texture(i, side, side), {.quality = 85});
    from[i].members = {{"fjpg", pack_photo(jpeg)}};
  }
  const std::vector<field> fields = {image("jpg").random_resized_crop(224).normalize(imagenet)};
  loader_options options = testing::small_options();
  options.device_calls = nullptr;
  options.batch_size = 16;
  options.epochs = 1;
  options.host_bytes_max = std::size_t{256} << 20;
  const testing::seen_run wanted = testing::run_all(fake_dataset(from), options, fields);
  const auto device = std::make_shared<simulated_device>();
  options.device_calls = device;
  options.decode_on = decode_on::device;
  const testing::seen_run got = testing::run_all(fake_dataset(from), options, fields);
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.batches, wanted.batches);
  EXPECT_EQ(got.stats.device.photos_decoded, from.size());
  const std::size_t whole = got.stats.transfer.bytes;
  const simulated_device::counts count = device->count();
  RecordProperty("whole_bytes", std::to_string(whole));
  RecordProperty("copied_bytes", std::to_string(count.bytes_copied));
  RecordProperty("copies", std::to_string(count.copies));
  EXPECT_GT(whole, from.size() * 2 * 224 * 224 * 3);
  EXPECT_LT(count.bytes_copied, whole / 3);
  EXPECT_LE(count.copies, 2 * 10U) << "calls for two batches";
}

/// A chain of everything that a device does, and one that wants it to look at neighbours.
image coloured(const std::string& name) {
  return image(name)
      .from("jpg")
      .random_resized_crop(11)
      .random_flip()
      .random_apply(0.8, {transforms::color_jitter{0.4, 0.4, 0.4, 0.1}})
      .one_of({transforms::equalize{}, transforms::autocontrast{}, transforms::sharpness{{0, 2}}})
      .random_apply(0.5, {transforms::gaussian_blur{5, {0.1, 2}}})
      .lookup("dim", [](draws& d) { return table::of([f = d.uniform(0.5, 1)](int v) { return f * v; }); })
      .random_apply(0.3, {transforms::solarize{100}, transforms::grayscale{}});
}

TEST(loader_device, does_steps_of_colour_with_the_bits_of_the_host) {
  for (const dtype type : {dtype::u8, dtype::f16, dtype::bf16, dtype::f32}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      SCOPED_TRACE(std::string(name(type)) + (order == layout::nchw ? " nchw" : " nhwc"));
      const watchdog dog("steps of colour");
      image all = coloured("all").random_erasing(0.7).as(type).as(order);
      image pointwise = image("jpg").resize(9, 12).saturation({0.4, 0.4}).hue({0.2, 0.2}).as(type).as(order);
      if (type != dtype::u8) {
        all = all.normalize(imagenet);
        pointwise = pointwise.normalize(imagenet);
      }
      loader_options options = testing::small_options();
      expect_finished_as_on_the_host(samples(), {all, pointwise, label("cls")}, options, 2 + 1);
      if (type != dtype::u8) {
        options.mix = mixup(0.6);
        expect_finished_as_on_the_host(samples(), {all, pointwise, label("cls")}, options, 2 + 1);
      }
      options.finish_on_device = false;
      expect_finished_as_on_the_host(samples(), {all, pointwise, label("cls")}, options, 0);
    }
  }
}

TEST(loader_device, decodes_photo_packs_of_any_recipe_with_the_bits_of_the_host) {
  const std::vector<testing::fake_sample> from = packed();
  for (const dtype type : {dtype::u8, dtype::f16, dtype::f32}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      SCOPED_TRACE(std::string(name(type)) + (order == layout::nchw ? " nchw" : " nhwc"));
      const watchdog dog("photo packs with steps of colour");
      image all = coloured("all").random_erasing(0.7).as(type).as(order);
      if (type != dtype::u8) all = all.normalize(imagenet);
      const std::vector<field> fields = {all, label("cls")};
      const testing::seen_run wanted = testing::run_all(fake_dataset(from), testing::small_options(), fields);
      const testing::seen_run got =
          testing::run_all(fake_dataset(from), photos_on(std::make_shared<simulated_device>()), fields);
      ASSERT_FALSE(wanted.failed) << wanted.message;
      ASSERT_FALSE(got.failed) << got.message;
      EXPECT_EQ(got.batches, wanted.batches);
      const device_report& told = got.stats.device;
      EXPECT_EQ(told.photos.use, "cuda:0");
      EXPECT_GT(told.photos_decoded, 0U);
      EXPECT_EQ(told.passes.use, "cuda:0");
      EXPECT_EQ(told.passes_on_host, 0U);
      EXPECT_EQ(told.passes_on_device, wanted.stats.device.passes_on_host);
      EXPECT_EQ(wanted.stats.device.passes.use, "host");
      EXPECT_EQ(wanted.stats.device.passes.why, "pictures are finished on the host");
    }
  }
}

// Drawn by policies and step by step; rows with a warp are mirrored before it, the others after all steps. Masks, boxes and points that follow
// are held against the host by the loader's own suites on a device.
TEST(loader_device, warps_pictures_with_the_bits_of_the_host) {
  const std::vector<testing::fake_sample> from = packed();
  namespace tr = transforms;
  const std::vector<transform> chains[] = {
      {tr::rand_augment{.ops = 2, .magnitude = 9, .fill = {10, 200, 30}}, tr::random_erasing{0.3}},
      {tr::trivial_augment{.how = filter::bilinear}, tr::gaussian_blur{3, {0.1, 2}}},
      {tr::color_jitter{0.4, 0.4, 0.4, 0.1},
       tr::random_apply{0.5, {tr::rotate{.degrees = {-30, 30}, .how = filter::bilinear}}}, tr::saturation{{0.5, 2}},
       tr::random_apply{0.3, {tr::perspective{}}}, tr::vertical_flip{}, tr::equalize{}}};
  for (const std::vector<transform>& chain : chains) {
    for (const dtype type : {dtype::u8, dtype::f32}) {
      SCOPED_TRACE(std::string(chain.front().name()) + " to " + std::string(name(type)));
      const watchdog dog("warps");
      image all = image("jpg").random_resized_crop(11).random_flip().as(type);
      for (const transform& each : chain) all = all.apply(each);
      const std::vector<field> fields = {all, label("cls")};
      const testing::seen_run wanted = testing::run_all(fake_dataset(from), testing::small_options(), fields);
      loader_options finishing = testing::small_options();
      finishing.device_calls = std::make_shared<simulated_device>();
      for (const loader_options& options : {finishing, photos_on(std::make_shared<simulated_device>())}) {
        const testing::seen_run got = testing::run_all(fake_dataset(from), options, fields);
        ASSERT_FALSE(wanted.failed) << wanted.message;
        ASSERT_FALSE(got.failed) << got.message;
        EXPECT_EQ(got.batches, wanted.batches);
        const device_report& told = got.stats.device;
        EXPECT_EQ(told.photos_decoded != 0, options.decode_on == decode_on::device);
        EXPECT_EQ(told.passes_on_host, 0U);
        EXPECT_GT(told.passes_on_device, 0U);
        EXPECT_EQ(told.passes_on_device, wanted.stats.device.passes_on_host);
      }
    }
  }
}

// What is edited, and what comes before it, is the host's; what comes behind it is not, and neither are rows without an edit.
TEST(loader_device, leaves_what_comes_behind_an_edit_to_the_device) {
  const watchdog dog("photo packs with an edit");
  const std::vector<testing::fake_sample> from = packed();
  const auto darker = [](draws&, planes p) {
    for (int y = 0; y < p.height; ++y) p.line(1, y)[0] = 3;
    return std::string();
  };
  const std::vector<field> fields = {image("jpg")
                                         .random_resized_crop(11)
                                         .random_flip()
                                         .brightness({1.2, 1.2})
                                         .rotate(-20, 20)
                                         .random_apply(0.5, {transforms::edit{"darker", darker}})
                                         .contrast({0.7, 0.7})
                                         .rotate(-20, 20)
                                         .hue({0.1, 0.1})};
  const testing::seen_run wanted = testing::run_all(fake_dataset(from), testing::small_options(), fields);
  const testing::seen_run got =
      testing::run_all(fake_dataset(from), photos_on(std::make_shared<simulated_device>()), fields);
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.batches, wanted.batches);
  const device_report& told = got.stats.device;
  EXPECT_GT(told.photos_decoded, 0U);
  EXPECT_GT(told.photos_on_host, 0U);
  EXPECT_EQ(told.passes_on_device + told.passes_on_host, wanted.stats.device.passes_on_host);
  EXPECT_GT(told.passes_on_host, 0U);
  EXPECT_THAT(told.passes.why, HasSubstr("an edit"));
}

/// What is left to a device of fields whose rows are several pictures: all steps, unless it is told to finish none.
void expect_slots_finished_as_on_the_host(const std::vector<testing::fake_sample>& from,
                                          const std::vector<field>& fields, std::size_t kernels_per_batch) {
  loader_options options = testing::small_options();
  expect_finished_as_on_the_host(from, fields, options, kernels_per_batch);
  options.finish_on_device = false;
  expect_finished_as_on_the_host(from, fields, options, 0);
  const testing::seen_run wanted = testing::run_all(fake_dataset(from), testing::small_options(), fields);
  const device_report told =
      testing::run_all(fake_dataset(from), options_on(std::make_shared<simulated_device>()), fields).stats.device;
  EXPECT_EQ(told.passes_on_host, 0U);
  EXPECT_EQ(told.passes_on_device, wanted.stats.device.passes_on_host);
}

TEST(loader_device, finishes_views_with_the_bits_of_the_host) {
  for (const dtype type : {dtype::u8, dtype::f16, dtype::bf16, dtype::f32}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      SCOPED_TRACE(std::string(name(type)) + (order == layout::nchw ? " nchw" : " nhwc"));
      const watchdog dog("views");
      const transforms::random_erasing erasing{.probability = 0.7, .noise = type != dtype::u8};
      image global = coloured("jpg").apply(erasing).as(type).as(order);
      image local = image("jpg").random_resized_crop(8).random_flip().as(type).as(order);
      image crops = image("crops").from("jpg").resize(20, 24).random_flip().as(type).as(order);
      if (type != dtype::u8) {
        global = global.normalize(imagenet);
        local = local.normalize(imagenet);
        crops = crops.normalize(imagenet);
      }
      const std::size_t of_others = type == dtype::u8 ? 0 : 2;
      expect_slots_finished_as_on_the_host(
          samples(), {views(global, 2, "global"), label("cls"), views(local, 5, "local"), ten_crop(crops, 12)},
          2 + of_others);
    }
  }
}

TEST(loader_device, finishes_clips_with_the_bits_of_the_host) {
  std::vector<testing::fake_sample> videos = samples();
  for (std::size_t i = 0; i < videos.size(); ++i) {
    for (std::size_t frame = 0; frame < 6; ++frame) {
      const auto picture = testing::make_texture(10 * i + frame, 30, 20);
      videos[i].members.push_back({(frame % 2 == 0 ? "left." : "right.") + std::to_string(frame / 2) + ".jpg",
                                   testing::make_jpeg(picture, {})});
    }
  }
  for (const bool per_frame : {false, true}) {
    const watchdog dog("clips");
    const image of = coloured("clip").from("{left,right}.*.jpg").rotate(-20, 20).normalize(imagenet);
    const clip_options how{.frames = 2, .random_start = true, .per_frame = per_frame};
    expect_slots_finished_as_on_the_host(videos, {clip(of, how), label("cls"), image("jpg").center_crop(9)}, 2 + 1);
  }
}

// One operation makes all of a stack where it does the same to all: otherwise the host does.
TEST(loader_device, finishes_stacks_of_pictures_that_are_made_alike) {
  const watchdog dog("stacks");
  const image first = coloured("first").normalize(imagenet);
  const image second = image("second").from("jpg").random_resized_crop(11).normalize(imagenet);
  const image third = image("third").from("jpg").resize(11, 11).normalize(imagenet);
  expect_slots_finished_as_on_the_host(
      samples(), {stack{"alike", {second, third, second}}, stack{"steps", {first, first.from("jpg")}}}, 1 + 2);
  const std::vector<std::vector<field>> others{
      {first, second}, {second, image("plain").from("jpg").resize(11, 11)}, {label("cls"), label("cls")}};
  for (const std::vector<field>& each : others) {
    expect_finished_as_on_the_host(samples(), {stack{"others", each}}, testing::small_options(), 0);
  }
  const std::vector<testing::fake_sample> from = packed();
  const std::vector<field> packs{stack{"alike", {second, third}}, stack{"others", {first, second}}};
  const testing::seen_run wanted = testing::run_all(fake_dataset(from), testing::small_options(), packs);
  const testing::seen_run got =
      testing::run_all(fake_dataset(from), photos_on(std::make_shared<simulated_device>()), packs);
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.batches, wanted.batches);
  EXPECT_GT(got.stats.device.photos_decoded, got.stats.samples);
  EXPECT_LE(got.stats.device.photos_decoded, 2 * got.stats.samples) << "those of the first stack";
}

// Rows that are left of a batch, and a view of which some are edited.
TEST(loader_device, finishes_what_is_left_of_views) {
  const watchdog dog("views that are left");
  const auto darker = [](draws&, planes p) {
    for (int y = 0; y < p.height; ++y) p.line(1, y)[0] = 3;
    return std::string();
  };
  std::vector<testing::fake_sample> damaged = samples();
  for (std::size_t i = 0; i < damaged.size(); i += 3) {
    for (const char* const picture : {"jpg", "png"}) {
      if (testing::fake_sample::member* const found = damaged[i].find(picture)) found->bytes.resize(40);
    }
  }
  const image edited = image("jpg")
                           .random_resized_crop(11)
                           .random_flip()
                           .brightness({1.2, 1.2})
                           .random_apply(0.5, {transforms::edit{"darker", darker}})
                           .contrast({0.7, 0.7})
                           .rotate(-20, 20);
  const std::vector<field> fields{views(edited, 3, "global"), label("cls")};
  loader_options options = testing::small_options();
  options.on_corrupt = corrupt_policy::skip;
  expect_finished_as_on_the_host(damaged, fields, options, 2);
  const testing::seen_run wanted = testing::run_all(fake_dataset(samples()), testing::small_options(), fields);
  const testing::seen_run got =
      testing::run_all(fake_dataset(samples()), options_on(std::make_shared<simulated_device>()), fields);
  const device_report& told = got.stats.device;
  EXPECT_EQ(told.passes_on_device + told.passes_on_host, wanted.stats.device.passes_on_host);
  EXPECT_GT(told.passes_on_device, told.passes_on_host);
  EXPECT_GT(told.passes_on_host, 0U);
  EXPECT_THAT(told.passes.why, HasSubstr("an edit"));
}

// Packs beside pictures that are none; of packs some views have no room in their slots, and others are edited.
TEST(loader_device, decodes_views_of_photo_packs_with_the_bits_of_the_host) {
  std::vector<testing::fake_sample> from = packed();
  for (std::size_t i = 0; i < from.size(); i += 5) {
    const auto noise = testing::make_noise(i, 200, 200);
    for (auto& member : from[i].members) {
      if (member.field == "fjpg") member.bytes = pack_photo(testing::make_jpeg(noise, {.h = 1, .v = 1}));
    }
  }
  const auto darker = [](draws&, planes p) {
    for (int y = 0; y < p.height; ++y) p.line(1, y)[0] = 3;
    return std::string();
  };
  for (const dtype type : {dtype::u8, dtype::f32}) {
    SCOPED_TRACE(std::string(name(type)));
    const watchdog dog("views of photo packs");
    const image global = coloured("jpg").random_apply(0.1, {transforms::edit{"darker", darker}}).as(type);
    const image local = image("jpg").random_resized_crop(8).random_flip().as(type).as(layout::nhwc);
    const std::vector<field> fields{views(global, 2, "global"), label("cls"), views(local, 5, "local"),
                                    five_crop(image("crops").from("jpg").resize(20, 24).as(type), 12),
                                    image("alone").from("jpg").resize(9, 7).as(type)};
    const testing::seen_run wanted = testing::run_all(fake_dataset(from), testing::small_options(), fields);
    const testing::seen_run got =
        testing::run_all(fake_dataset(from), photos_on(std::make_shared<simulated_device>()), fields);
    ASSERT_FALSE(wanted.failed) << wanted.message;
    ASSERT_FALSE(got.failed) << got.message;
    EXPECT_EQ(got.batches, wanted.batches);
    const device_report& told = got.stats.device;
    EXPECT_EQ(told.photos.use, "cuda:0");
    EXPECT_GT(told.photos_decoded, 6 * got.stats.samples) << "thirteen pictures of each, half of them packs with room";
    EXPECT_GT(told.photos_on_host, 0U);
    EXPECT_EQ(told.passes_on_device + told.passes_on_host, wanted.stats.device.passes_on_host);
  }
}

TEST(loader_device, makes_mosaics_of_photo_packs) {
  const std::vector<testing::fake_sample> from = packed();
  for (const dtype type : {dtype::u8, dtype::f32}) {
    SCOPED_TRACE(std::string(name(type)));
    const watchdog dog("mosaics of photo packs");
    const std::vector<field> fields{coloured("jpg").as(type), image("plain").from("jpg").resize(11, 11).as(type)};
    loader_options options = testing::small_options();
    options.mix = mosaic(0.7);
    const testing::seen_run wanted = testing::run_all(fake_dataset(from), options, fields);
    options.device_calls = std::make_shared<simulated_device>();
    options.decode_on = decode_on::device;
    const testing::seen_run got = testing::run_all(fake_dataset(from), options, fields);
    ASSERT_FALSE(wanted.failed) << wanted.message;
    ASSERT_FALSE(got.failed) << got.message;
    EXPECT_EQ(got.batches, wanted.batches);
    EXPECT_GT(got.stats.device.photos_decoded, got.stats.samples);
    EXPECT_EQ(got.stats.device.passes_on_device, wanted.stats.device.passes_on_host);
  }
}

TEST(loader_device, copies_what_packs_fill_of_the_slots_of_views) {
  const watchdog dog("what views of packs fill");
  std::vector<testing::fake_sample> from(16);
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i].members = {{"fjpg", pack_photo(testing::make_jpeg(testing::make_texture(i, 300, 300), {.quality = 85}))}};
  }
  const std::vector<field> fields = {views(image().random_resized_crop(224).normalize(imagenet), 3, "global")};
  loader_options options = testing::small_options();
  options.batch_size = 8;
  options.epochs = 1;
  options.host_bytes_max = std::size_t{512} << 20;
  const testing::seen_run wanted = testing::run_all(fake_dataset(from), options, fields);
  const auto device = std::make_shared<simulated_device>();
  options.device_calls = device;
  options.decode_on = decode_on::device;
  const testing::seen_run got = testing::run_all(fake_dataset(from), options, fields);
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.batches, wanted.batches);
  EXPECT_EQ(got.stats.device.photos_decoded, 3 * from.size());
  EXPECT_GT(got.stats.transfer.bytes, from.size() * 3 * 2 * 224 * 224 * 3);
  EXPECT_LT(device->count().bytes_copied, got.stats.transfer.bytes / 3);
}

TEST(loader_device, has_as_many_io_threads_as_packs_need_unless_told) {
  EXPECT_EQ(stages::io_threads_for_device(1), 1U);
  EXPECT_EQ(stages::io_threads_for_device(8), 2U);
  EXPECT_EQ(stages::io_threads_for_device(96), 4U);
  const std::vector<field> fields = {image("jpg").random_resized_crop(11)};
  const auto threads_of = [&](const loader_options& options, const std::vector<testing::fake_sample>& from = packed()) {
    std::uint32_t count = 0;
    for (const thread_stats& each : testing::run_all(fake_dataset(from), options, fields).stats.threads)
      count += each.name.starts_with("io-") ? 1 : 0;
    return count;
  };
  loader_options options = photos_on(std::make_shared<simulated_device>());
  EXPECT_EQ(threads_of(options), stages::io_threads_for_device(usable_cores()));
  EXPECT_EQ(threads_of(options, samples()), 1U) << "pictures, and none of them packed";
  options.reader.io_threads = 3;
  EXPECT_EQ(threads_of(options), 3U);
  EXPECT_EQ(threads_of(testing::small_options()), 1U) << "no device";
}

TEST(loader_device, has_its_threads_at_the_node_of_the_device) {
  const watchdog dog("NUMA");
  const testing::temporary_directory root;
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path file = root.path() / "sys" / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  };
  write("devices/system/node/node0/cpulist", "");
  write("devices/system/node/node1/cpulist", "0-1023");
  write("bus/pci/devices/0000:17:0a.0/numa_node", "1");
  const auto calls = std::make_shared<testing::watched_calls>(std::make_shared<simulated_device>());
  calls->pci_address = "0000:17:0A.0";
  loader_options options = testing::small_options();
  options.device_calls = calls;
  options.sysfs_root = root.path().string();
  const testing::seen_run got = testing::run_all(fake_dataset(samples()), options, testing::all_fields());
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.stats.placement.use, "node 1");
  EXPECT_THAT(got.stats.placement.why, ::testing::StartsWith("the device is there"));
  digests found;
  for (const auto& each : got.batches) found.push_back(each.content);
  EXPECT_EQ(found, expected());
}

TEST(loader_device, erases_by_noise_with_the_bits_of_the_host) {
  const watchdog dog("photo packs with noise");
  const std::vector<testing::fake_sample> from = packed();
  for (const dtype type : {dtype::f16, dtype::f32}) {
    const std::vector<field> noise = {image("jpg")
                                          .random_resized_crop(11)
                                          .saturation({0.5, 0.5})
                                          .as(type)
                                          .apply(transforms::random_erasing{.probability = 0.5, .noise = true})};
    const testing::seen_run wanted = testing::run_all(fake_dataset(from), testing::small_options(), noise);
    const testing::seen_run got =
        testing::run_all(fake_dataset(from), photos_on(std::make_shared<simulated_device>()), noise);
    ASSERT_FALSE(got.failed) << got.message;
    EXPECT_EQ(got.batches, wanted.batches);
    EXPECT_EQ(got.stats.device.passes_on_host, 0U);
    EXPECT_GT(got.stats.device.photos_decoded, 0U);
  }
}

TEST(loader_device, leaves_packs_without_room_to_the_host) {
  const watchdog dog("photo packs that stay on the host");
  const std::vector<testing::fake_sample> from = packed();
  // Of a whole picture a pack is larger than a row of 2 x 2 pixels and 4 KiB.
  std::vector<testing::fake_sample> large = {from.front()};
  for (const char* const picture : {"jpg", "png", "fjpg"}) large.front().remove(picture);
  large.front().members.push_back(
      {"fjpg", pack_photo(testing::make_jpeg(testing::make_noise(1, 200, 200), {.h = 1, .v = 1}))});
  const std::vector<field> small = {image("jpg").resize(2, 2)};
  const testing::seen_run wanted = testing::run_all(fake_dataset(large), testing::small_options(), small);
  const testing::seen_run got =
      testing::run_all(fake_dataset(large), photos_on(std::make_shared<simulated_device>()), small);
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.batches, wanted.batches);
  EXPECT_EQ(got.stats.device.photos_decoded, 0U);
  EXPECT_EQ(got.stats.device.photos_on_host, got.stats.samples);
}

// Damaged packs are found before the device gets them: the policy is what it is on the host.
TEST(loader_device, passes_over_damaged_photo_packs_as_the_host_does) {
  std::vector<testing::fake_sample> from = packed();
  std::size_t damaged = 0;
  for (std::size_t i = 0; i < from.size(); i += 4) {
    testing::fake_sample::member* const pack = from[i].find("fjpg");
    if (pack == nullptr) continue;
    pack->bytes[pack->bytes.size() - 40] ^= std::byte{1};  // in its last row
    ++damaged;
  }
  ASSERT_GT(damaged, 3U);
  const std::vector<field> fields = {image("jpg").resize(12, 10).normalize(imagenet), label("cls")};
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute, corrupt_policy::raise}) {
    const watchdog dog("damaged photo packs");
    loader_options on_host = testing::small_options();
    loader_options on_device = photos_on(std::make_shared<simulated_device>());
    on_host.on_corrupt = on_device.on_corrupt = policy;
    const testing::seen_run wanted = testing::run_all(fake_dataset(from), on_host, fields);
    const testing::seen_run got = testing::run_all(fake_dataset(from), on_device, fields);
    EXPECT_EQ(got.failed, wanted.failed);
    EXPECT_EQ(got.message, wanted.message);
    EXPECT_EQ(got.stats.quarantined, wanted.stats.quarantined);
    EXPECT_EQ(got.stats.substituted, wanted.stats.substituted);
    if (policy == corrupt_policy::raise) continue;
    EXPECT_EQ(got.batches, wanted.batches);
    EXPECT_GE(got.stats.quarantined, damaged);
  }
}

TEST(loader_device, decodes_photo_packs_on_the_host_where_no_device_is_and_that_may_be) {
  loader_options options = testing::small_options();
  options.decode_on = decode_on::device;
  const std::vector<field> fields = {image("jpg").resize(9, 7)};
  const testing::seen_run refused = testing::run_all(fake_dataset(packed()), options, fields);
  EXPECT_EQ(refused.failed, errc::unsupported);
  EXPECT_THAT(refused.message, HasSubstr("loader_options::device is the host"));
  EXPECT_THAT(refused.message, HasSubstr("decode_on::automatic"));
  options.decode_on = decode_on::automatic;
  const testing::seen_run got = testing::run_all(fake_dataset(packed()), options, fields);
  EXPECT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.stats.device.photos.use, "host");
  EXPECT_EQ(got.stats.device.photos.why, "batches stay on the host");

  loader_options contradiction = photos_on(std::make_shared<simulated_device>());
  contradiction.finish_on_device = false;
  EXPECT_EQ(testing::run_all(fake_dataset(packed()), contradiction, fields).failed, errc::usage);
}

TEST(loader_device, makes_one_batch_again_on_the_host_wherever_its_packs_were_decoded) {
  const watchdog dog("a batch by itself");
  loader_options options = photos_on(std::make_shared<simulated_device>());
  options.digests = true;
  const std::vector<field> fields = {image("jpg").resize(9, 7).normalize(imagenet), label("cls")};
  loader train(fake_dataset(packed()), options, fields);
  const auto first = train.next_blocking();
  ASSERT_TRUE(first);
  const batch again = train.batch_at(first->epoch(), 0);
  EXPECT_EQ(again.content_digest(), first->content_digest());
  EXPECT_TRUE(again.content_digest());
}

/// What a trainer's kernels see of each batch of a run on a device, or a trainer of one on the host.
struct seen_pixels {
  digests all;
  std::optional<errc> failed;
  std::string message;
  loader_stats stats;
};
seen_pixels see_pixels(const std::vector<testing::fake_sample>& from, loader_options options,
                       const std::vector<field>& fields, const std::shared_ptr<simulated_device>& device = nullptr) {
  options.digests = false;
  options.device_calls = device;
  seen_pixels seen;
  std::optional<testing::device_reader> reader;
  if (device) reader.emplace(*device);
  const stream consumer = device ? device->make_consumer() : stream();
  std::optional<loader> train;
  try {
    train.emplace(fake_dataset(from), options, fields);
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
      while (auto delivered = train->next_blocking()) {
        if (!device) {
          seen.all.push_back(testing::batch_view(*delivered).content().hex());
          continue;
        }
        delivered->wait_on(consumer);
        reader->read(*delivered, consumer);
      }
    }
  } catch (const error& failure) {
    seen.failed = failure.code();
    seen.message = failure.what();
  }
  if (device) {
    device->finish_all(consumer);
    seen.all = reader->seen();
  }
  if (train) seen.stats = train->stats();
  return seen;
}

/// JPEG files of all kinds, turned and not; and what is none.
std::vector<testing::fake_sample> jpegs() {
  std::vector<testing::fake_sample> all = samples();
  int number = 0;
  for (testing::fake_sample& sample : all) {
    for (auto& member : sample.members) {
      if (member.field != "jpg" || number % 3 == 0) continue;
      member.bytes =
          testing::make_jpeg(testing::make_texture(static_cast<std::uint64_t>(number), 40 + number, 70 - number),
                             {.h = 1 + number % 2, .v = 1 + number / 2 % 2, .orientation = number % 9});
    }
    ++number;
  }
  return all;
}

// The simulated device decodes by libjpeg-turbo: what is compared is everything around that.
TEST(loader_device, crops_and_resizes_what_nvjpeg_decodes_as_the_host_does) {
  const std::vector<testing::fake_sample> from = jpegs();
  for (const dtype type : {dtype::u8, dtype::f16, dtype::f32}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      for (const execution when : {execution::late, execution::early, execution::random}) {
        SCOPED_TRACE(std::string(name(type)) + (order == layout::nchw ? " nchw " : " nhwc ") +
                     std::to_string(static_cast<int>(when)));
        const watchdog dog("nvjpeg");
        const auto fields = [&](jpeg_decoder decoder) {
          image crop = image("jpg").random_resized_crop(25).random_flip().as(type).as(order).exif_orientation();
          crop = crop.random_apply(0.5, {transforms::rotate{.degrees = {-30, 30}, .how = filter::bilinear}});
          image whole = image("whole").from("jpg").resize(29, 23).as(type);
          if (type != dtype::u8) crop = crop.normalize(imagenet);
          return std::vector<field>{crop.decoder(decoder).decimate(false), whole.decoder(decoder), label("cls")};
        };
        const auto device = std::make_shared<simulated_device>(simulated_device_options{.loader = when});
        loader_options options = testing::small_options();
        options.batch_size = 20;
        if (type != dtype::u8) options.mix = mixup(0.6);
        const seen_pixels wanted = see_pixels(from, options, fields(jpeg_decoder::turbo));
        const seen_pixels got = see_pixels(from, options, fields(jpeg_decoder::nvjpeg), device);
        ASSERT_FALSE(wanted.failed) << wanted.message;
        ASSERT_FALSE(got.failed) << got.message;
        EXPECT_EQ(got.all, wanted.all);
        EXPECT_GT(got.stats.device.jpegs_decoded, got.stats.samples) << "two pictures of each, most of them baseline";
        EXPECT_GT(got.stats.device.jpegs_on_host, 0U);
        EXPECT_EQ(device->count().jpegs, got.stats.device.jpegs_decoded);
        EXPECT_EQ(got.stats.device.passes_on_host, 0U);
        EXPECT_GT(got.stats.device.passes_on_device, 0U);
        EXPECT_EQ(got.stats.device.photos.use, "host");
        EXPECT_EQ(wanted.stats.device.jpegs_decoded + wanted.stats.device.jpegs_on_host, 0U);
      }
    }
  }
}

TEST(loader_device, makes_mosaics_of_what_nvjpeg_decodes) {
  const watchdog dog("mosaics by nvjpeg");
  const auto fields = [](jpeg_decoder decoder) {
    const image crop = image("jpg").random_resized_crop(25).random_flip().hue({0.2, 0.2}).normalize(imagenet);
    return std::vector<field>{crop.decoder(decoder).decimate(false), label("cls")};
  };
  loader_options options = testing::small_options();
  options.mix = mosaic(0.7);
  const seen_pixels wanted = see_pixels(jpegs(), options, fields(jpeg_decoder::turbo));
  const seen_pixels got =
      see_pixels(jpegs(), options, fields(jpeg_decoder::nvjpeg), std::make_shared<simulated_device>());
  ASSERT_FALSE(wanted.failed) << wanted.message;
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.all, wanted.all);
  EXPECT_GT(got.stats.device.jpegs_decoded, 0U);
}

// More than there are decoded at a time, beside packs that the device decodes too.
TEST(loader_device, decodes_photo_packs_beside_what_nvjpeg_decodes) {
  const watchdog dog("nvjpeg and packs");
  std::vector<testing::fake_sample> from = jpegs();
  const std::vector<testing::fake_sample> packs = packed();
  for (std::size_t i = 0; i < from.size(); i += 4) from[i] = packs[i];
  const std::vector<testing::fake_sample> more = jpegs();
  for (std::size_t i = 0; i < 3; ++i) from.insert(from.end(), more.begin(), more.end());
  const auto fields = [](jpeg_decoder decoder) {
    return std::vector<field>{image("jpg").resize(29, 23).decoder(decoder)};
  };
  loader_options options = testing::small_options();
  options.batch_size = 150;
  const seen_pixels wanted = see_pixels(from, options, fields(jpeg_decoder::turbo));
  options.decode_on = decode_on::device;
  const seen_pixels got = see_pixels(from, options, fields(jpeg_decoder::nvjpeg), std::make_shared<simulated_device>());
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.all, wanted.all);
  EXPECT_GT(got.stats.device.photos_decoded, 0U);
  EXPECT_GT(got.stats.device.jpegs_decoded, 0U);
}

TEST(loader_device, never_decodes_elsewhere_what_was_to_be_decoded_by_nvjpeg) {
  const std::vector<field> fields = {image("jpg").resize(9, 7).decoder(jpeg_decoder::nvjpeg)};
  loader_options options = testing::small_options();
  const seen_pixels on_host = see_pixels(samples(), options, fields);
  EXPECT_EQ(on_host.failed, errc::unsupported);
  EXPECT_THAT(on_host.message, HasSubstr("loader_options::device is the host"));
  EXPECT_THAT(on_host.message, HasSubstr("jpeg_decoder::turbo"));
  const seen_pixels without =
      see_pixels(samples(), options, fields,
                 std::make_shared<simulated_device>(simulated_device_options{.can_decode_jpegs = false}));
  EXPECT_EQ(without.failed, errc::unsupported);
  EXPECT_THAT(without.message, HasSubstr("a simulated device without nvJPEG"));

  const auto device = std::make_shared<simulated_device>();
  options.device_calls = device;
  EXPECT_EQ(testing::run_all(fake_dataset(samples()), options, fields).failed, errc::usage) << "digests";
  options.finish_on_device = false;
  EXPECT_EQ(see_pixels(samples(), options, fields, device).failed, errc::usage);
  options.finish_on_device = true;
  const auto nothing = [](draws&, planes) { return std::string(); };
  EXPECT_EQ(see_pixels(samples(), options,
                       {image("jpg").resize(9, 7).decoder(jpeg_decoder::nvjpeg).edit("nothing", nothing)}, device)
                .failed,
            errc::usage);
  options.digests = false;
  loader train(fake_dataset(samples()), options, fields);
  ASSERT_TRUE(train.next_blocking());
  EXPECT_THAT(testing::message_of(errc::unsupported, [&] { static_cast<void>(train.batch_at(0, 0)); }),
              HasSubstr("batch_at() makes its batch on the host"));
}

// Headers and sizes are settled before the copy, under the loader's policy; what shows only there ends the run.
TEST(loader_device, ends_with_the_sample_that_nvjpeg_refuses) {
  std::vector<testing::fake_sample> from = jpegs();
  const std::vector<field> fields = {image("jpg").resize(29, 23).decoder(jpeg_decoder::nvjpeg)};
  loader_options options = testing::small_options();
  options.on_corrupt = corrupt_policy::skip;
  options.shuffle = false;
  const auto picture = [&](std::size_t of) -> std::vector<std::byte>& { return from[of].find("jpg")->bytes; };
  std::size_t baseline = 0;
  while (baseline % 3 == 0 || from[baseline].find("jpg") == nullptr) ++baseline;
  picture(baseline).resize(picture(baseline).size() / 2);
  {
    const watchdog dog("a file that was cut off");
    const seen_pixels got = see_pixels(from, options, fields, std::make_shared<simulated_device>());
    ASSERT_FALSE(got.failed) << got.message;
    EXPECT_GE(got.stats.quarantined, 2U) << "in each epoch";
  }
  const watchdog dog("a file whose data lacks");
  picture(baseline).push_back(std::byte{0xFF});
  picture(baseline).push_back(std::byte{0xD9});
  const seen_pixels got = see_pixels(from, options, fields, std::make_shared<simulated_device>());
  EXPECT_EQ(got.failed, errc::corrupt);
  EXPECT_THAT(got.message, HasSubstr(", number " + std::to_string(baseline) + ", in row "));
}

// The device is well: what was handed over before stays usable, and a loader that comes next finds all of the device's memory.
TEST(loader_device, keeps_nothing_of_a_device_for_a_picture_that_nvjpeg_refuses) {
  const watchdog dog("a picture that is refused, and its neighbours");
  std::vector<testing::fake_sample> from = jpegs();
  loader_options options = testing::small_options();
  options.shuffle = false;
  options.digests = false;
  std::size_t refused = options.batch_size;  // not in the first batch
  while (refused % 3 == 0 || from[refused].find("jpg") == nullptr) ++refused;
  std::vector<std::byte>& file = from[refused].find("jpg")->bytes;
  file.resize(file.size() / 2);
  file.insert(file.end(), {std::byte{0xFF}, std::byte{0xD9}});
  const auto device = std::make_shared<simulated_device>();
  options.device_calls = device;
  {
    const stream consumer = device->make_consumer();
    loader train(fake_dataset(from), options, {image("jpg").resize(29, 23).decoder(jpeg_decoder::nvjpeg)});
    std::vector<batch> before;
    const std::string message = testing::message_of(errc::corrupt, [&] {
      while (auto delivered = train.next_blocking()) before.push_back(std::move(*delivered));
    });
    EXPECT_THAT(message, HasSubstr(", number " + std::to_string(refused) + ", in row "));
    EXPECT_EQ(before.size(), refused / options.batch_size);
    for (batch& each : before) each.wait_on(consumer);
    before.clear();
    device->finish_all(consumer);
  }
  const simulated_device::counts left = device->count();
  EXPECT_EQ(left.memory, 0U);
  EXPECT_EQ(left.pinned, 0U);
  EXPECT_EQ(left.events, 0U);
}

TEST(loader_device, says_in_its_plan_what_it_takes_of_the_devices_memory) {
  const watchdog dog("plan");
  const auto device = std::make_shared<simulated_device>();
  const loader train(fake_dataset(samples()), options_on(device), {image("jpg").resize(64, 64), label("cls")});
  // 8 pictures as they cross the bus with their flags, 8 labels, and 8 pictures of floats.
  const std::size_t batch = 8 * 64 * 64 * 3 + 256 + 256 + 8 * 64 * 64 * 3 * 4;
  EXPECT_EQ(train.plan().device.bytes, 3 * batch);
  EXPECT_NE(train.plan().to_string().find("cuda:0"), std::string::npos) << train.plan().to_string();
  EXPECT_EQ(loader(fake_dataset(samples()), testing::small_options(), {label("cls")}).plan().device.bytes, 0U);
  // What photo packs are decoded in counts, once for all batches, and is within the bound.
  const std::vector<field> fields = {image("jpg").resize(64, 64).as(dtype::u8), label("cls")};
  loader_options options = options_on(std::make_shared<simulated_device>());
  options.decode_on = decode_on::device;
  const loader packs(fake_dataset(packed()), options, fields);
  const loader_plan plan = packs.plan();
  EXPECT_NE(plan.to_string().find("to decode in"), std::string::npos) << plan.to_string();
  const device_report all = packs.stats().device;
  EXPECT_EQ(all.bytes, plan.device.bytes);
  options = options_on(std::make_shared<simulated_device>());
  options.decode_on = decode_on::device;
  options.device_bytes_max = plan.device.bytes - 1;
  EXPECT_EQ(loader(fake_dataset(packed()), options, fields).stats().device.batches, all.batches - 1);
}

TEST(loader_device, sends_a_fourth_of_the_bytes_where_it_finishes_there) {
  const watchdog dog("bytes");
  std::uint64_t bytes[2] = {};
  for (const bool there : {false, true}) {
    loader_options options = options_on(std::make_shared<simulated_device>());
    options.finish_on_device = there;
    options.batch_size = 45;
    bytes[there] =
        testing::run_all(fake_dataset(samples()), options, {image("jpg").resize(64, 64)}).stats.transfer.bytes;
  }
  EXPECT_NEAR(static_cast<double>(bytes[0]) / static_cast<double>(bytes[1]), 4, 0.01);
}

// Its steps are late: that they have begun shows that somebody on the CPU has waited for them, as copies from pageable memory do.
// As on a GPU in cuda_test.cpp, with more batches than there is memory for, and no more in the epoch, for which memory would lack.
TEST(loader_device, has_nobody_wait_for_a_consumer_but_the_next_copy_on_the_device) {
  for (const execution when : {execution::late, execution::early}) {
    for (const bool can_pin : {true, false}) {
      const watchdog dog("a consumer that has not begun");
      const auto device = std::make_shared<simulated_device>(
          simulated_device_options{.loader = when, .consumer = execution::late, .can_pin = can_pin});
      loader_options options = options_on(device);
      options.epochs = 1;
      options.device_batches = 3;
      const stream held = device->make_consumer();
      std::atomic<bool> begun = false;
      device->launch(held, [&] { begun = true; });
      testing::device_reader reader(*device);
      digests stated;
      loader train(fake_dataset(testing::make_samples(1, 32)), options, testing::all_fields());
      while (std::optional<batch> got = train.next_blocking()) {
        got->wait_on(held);
        reader.read(*got, held);
        stated.push_back(got->content_digest()->hex());
      }
      EXPECT_EQ(begun, !can_pin);
      EXPECT_EQ(stated.size(), 4U);
      device->finish_all(held);
      EXPECT_EQ(reader.seen(), stated);
    }
  }
}

// In the loop nothing is taken or made on the device, nobody waits for it but the thread that is there for it, and what waits
// on the CPU for a copy is asked for only while the line starves.
TEST(loader_device, makes_only_the_calls_of_the_loop_in_the_loop) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    const watchdog dog("calls of the loop");
    testing::seeded_random random(seed);
    const auto any = [&] { return static_cast<execution>(random.below(3)); };
    const auto device =
        std::make_shared<simulated_device>(simulated_device_options{.seed = seed, .loader = any(), .consumer = any()});
    const auto watched = std::make_shared<testing::watched_calls>(device);
    loader_options options = testing::small_options();
    options.device_calls = watched;
    const stream one = device->make_consumer();
    const stream two = device->make_consumer();
    loader train(fake_dataset(samples()), options, testing::all_fields());
    std::optional<batch> got = train.next_blocking();
    ASSERT_TRUE(got);
    const std::map<std::string, std::size_t> before = watched->counts();
    while (got) {
      got->wait_on(one);
      got->wait_on(two);
      got = train.next_blocking();
    }
    testing::expect_only_calls_of_the_loop(*watched, before);
  });
}

// Where pinning fails: the same batches, and no thread waits for the device but those that are there for it.
TEST(loader_device, delivers_the_digests_of_the_host_from_pageable_memory_too) {
  testing::for_each_seed(30, [](std::uint64_t seed) {
    const watchdog dog("pageable");
    testing::seeded_random random(seed);
    const auto any = [&] { return static_cast<execution>(random.below(3)); };
    const auto device = std::make_shared<simulated_device>(
        simulated_device_options{.seed = seed, .loader = any(), .consumer = any(), .can_pin = false});
    loader_options options = options_on(device);
    options.device_batches = static_cast<std::uint32_t>(1 + random.below(3));
    const run_on_device got = run(device, options, {}, static_cast<consumer>(random.below(5)), seed);
    EXPECT_EQ(got.seen, got.stated);
    const simulated_device::counts count = device->count();
    EXPECT_EQ(count.copies_pageable, count.copies);
    EXPECT_EQ(count.memory + count.pinned + count.events, 0U);
    for (const std::string& each : device->waiting_threads()) EXPECT_NE(each.rfind("leat-io", 0), 0U) << each;
  });
}

// A trainer's code is the same without a GPU.
TEST(loader_device, hands_over_on_the_host_with_the_same_calls) {
  const watchdog dog("hand-over on the host");
  loader train(fake_dataset(samples()), testing::small_options(), testing::all_fields());
  std::optional<batch> got = train.next_blocking();
  ASSERT_TRUE(got);
  const stream any;
  got->wait_on(any);
  got->ready(boost::asio::use_future).get();
  EXPECT_EQ(testing::batch_view(*got).content(), *got->content_digest());
  got->release_on(any);
  EXPECT_THROW(static_cast<void>((*got)["cls"]), error);
  EXPECT_THROW(got->wait_on(any), error);
  EXPECT_THROW(got->release_on(any), error);
  EXPECT_THROW(got->ready(boost::asio::use_future).get(), error);
}

TEST(loader_device, several_loaders_share_one) {
  const watchdog dog("several loaders");
  const auto device = std::make_shared<simulated_device>();
  const fake_dataset fake(samples());
  {
    loader first(fake, options_on(device), testing::all_fields());
    loader second(fake, options_on(device), testing::all_fields());
    testing::device_reader reader(*device);
    const stream one = device->make_consumer();
    digests stated;
    for (int i = 0; i < 6; ++i) {
      for (loader* each : {&first, &second}) {
        std::optional<batch> got = each->next_blocking();
        ASSERT_TRUE(got);
        got->wait_on(one);
        reader.read(*got, one);
        stated.push_back(got->content_digest()->hex());
      }
    }
    EXPECT_EQ(device->count().memory, 6U);
    device->finish_all(one);
    EXPECT_EQ(reader.seen(), stated);
  }
  expect_all_home(*device);
}

// One loader on each of two: neither's batches, streams or events are known to the other, which would stop the test.
TEST(loader_device, several_devices_have_one_loader_each) {
  const watchdog dog("several devices");
  std::vector<std::shared_ptr<simulated_device>> devices;
  std::vector<std::unique_ptr<loader>> loaders;
  std::vector<testing::device_reader> readers;
  std::vector<stream> consumers;
  for (int index = 0; index < 2; ++index) {
    devices.push_back(std::make_shared<simulated_device>(
        simulated_device_options{.seed = static_cast<std::uint64_t>(index), .index = index}));
    loader_options options = options_on(devices.back());
    options.seed = static_cast<std::uint64_t>(index);
    loaders.push_back(std::make_unique<loader>(fake_dataset(samples()), options, testing::all_fields()));
    readers.emplace_back(*devices.back());
    consumers.push_back(devices.back()->make_consumer());
  }
  digests stated[2];
  for (int i = 0; i < 5; ++i) {
    for (std::size_t index = 0; index < 2; ++index) {
      std::optional<batch> got = loaders[index]->next_blocking();
      ASSERT_TRUE(got);
      EXPECT_EQ((*got)["jpg"].where, cuda(static_cast<int>(index)));
      got->wait_on(consumers[index]);
      readers[index].read(*got, consumers[index]);
      stated[index].push_back(got->content_digest()->hex());
    }
  }
  for (std::size_t index = 0; index < 2; ++index) {
    devices[index]->finish_all(consumers[index]);
    EXPECT_EQ(readers[index].seen(), stated[index]);
    EXPECT_EQ(loaders[index]->stats().device.use.use, "cuda:" + std::to_string(index));
    loaders[index].reset();
    expect_all_home(*devices[index]);
  }
  EXPECT_NE(stated[0], stated[1]);
}

// In every phase: before the first batch, with copies under way, with batches out and ready.
TEST(loader_device, may_be_left_at_any_moment) {
  testing::for_each_seed(40, [](std::uint64_t seed) {
    const watchdog dog("left at any moment");
    testing::seeded_random random(seed);
    const auto any = [&] { return static_cast<execution>(random.below(3)); };
    const auto device =
        std::make_shared<simulated_device>(simulated_device_options{.seed = seed, .loader = any(), .consumer = any()});
    const stream one = device->make_consumer();
    std::vector<batch> kept;
    {
      loader train(fake_dataset(samples()), options_on(device), testing::all_fields());
      for (std::uint64_t left = random.below(7); left != 0; --left) {
        std::optional<batch> got = train.next_blocking();
        ASSERT_TRUE(got);
        if (random.below(2) == 0) got->wait_on(one);
        if (random.below(3) == 0 && kept.size() < 2) kept.push_back(std::move(*got));
      }
      if (random.below(2) == 0) train.stop();
    }
    for (batch& each : kept) {
      each.wait_on(one);
      testing::device_reader reader(*device);
      reader.read(each, one);
      device->finish_all(one);
      EXPECT_EQ(reader.seen().front(), each.content_digest()->hex());
    }
    kept.clear();
    device->finish_all(one);
    expect_all_home(*device);
  });
}

TEST(loader_device, that_fails_ends_the_run_in_its_batchs_turn_and_says_what_failed) {
  const watchdog dog("device fails");
  for (const char* call : {"copy", "record", "wait"}) {
    const auto device = std::make_shared<simulated_device>();
    const auto watched = std::make_shared<testing::watched_calls>(device);
    loader_options options = testing::small_options();
    options.device_calls = watched;
    watched->fail(call, 5, 999);
    const stream one = device->make_consumer();
    std::uint64_t taken = 0;
    loader train(fake_dataset(samples()), options, testing::all_fields());
    const std::string message = testing::message_of(errc::device, [&] {
      while (std::optional<batch> got = train.next_blocking()) {
        EXPECT_EQ(got->index(), taken++ % train.batches());
        if (std::string(call) != "wait") got->wait_on(one);
        if (std::string(call) == "wait") got->release_on(one);
      }
      ASSERT_TRUE(train.next_blocking()) << "two epochs";
      while (std::optional<batch> got = train.next_blocking()) got->release_on(one);
    });
    EXPECT_NE(message.find("on simulated device (cuda:0): error 999"), std::string::npos) << message;
    // Those that were there before are good.
    const std::string again = testing::message_of(errc::device, [&] {
      for (std::uint64_t i = 0; i < 2 * train.batches(); ++i) static_cast<void>(train.next_blocking());
    });
    EXPECT_EQ(again, message);
  }
}

// What the trainer's streams wait for is as good as before; of the device's memory nothing is freed, and of the host's nothing unpinned.
TEST(loader_device, that_fails_where_a_batch_ends_or_is_waited_for_ends_the_run_and_leaves_all_as_it_is) {
  struct {
    const char* call;
    std::size_t nth;
    const char* in_words;
  } const cases[] = {
      {"look_at", 4, "cudaStreamIsCapturing or cuStreamGetCtx of a consumer's stream on simulated device (cuda:0)"},
      {"make_event", 1, "cudaEventCreateWithFlags on simulated device (cuda:0)"},
      {"synchronize", 1, "cudaEventSynchronize on simulated device (cuda:0)"}};
  for (const auto& [call, nth, in_words] : cases) {
    SCOPED_TRACE(call);
    const watchdog dog("device fails at a batch's end");
    const auto device = std::make_shared<simulated_device>(
        simulated_device_options{.loader = execution::late, .consumer = execution::late});
    const auto watched = std::make_shared<testing::watched_calls>(device);
    loader_options options = testing::small_options();
    options.device_calls = watched;
    options.prefetch_batches = 1;
    const stream one = device->make_consumer();
    const stream two = device->make_consumer();
    const stream three = device->make_consumer();  // for whom there is no event yet
    testing::device_reader reader(*device);
    digests stated;
    {
      loader train(fake_dataset(samples()), options, testing::all_fields());
      watched->fail(call, nth, 999);
      const std::string message = testing::message_of(errc::device, [&] {
        for (int epoch = 0; epoch < 2; ++epoch) {
          while (std::optional<batch> got = train.next_blocking()) {
            got->wait_on(one);
            got->wait_on(two);
            got->wait_on(three);
            reader.read(*got, two);
            stated.push_back(got->content_digest()->hex());
          }
        }
      });
      EXPECT_EQ(message, std::string(in_words) + ": error 999");
      const std::string again = testing::message_of(errc::device, [&] {
        for (std::uint64_t b = 0; b < 2 * train.batches(); ++b) static_cast<void>(train.next_blocking());
      });
      EXPECT_EQ(again, message);
    }
    EXPECT_EQ(device->count().memory, options.device_batches);
    EXPECT_GE(device->count().pinned, 1U);
    // Who waits for memory may be told that it does not come before the first batch has been asked for.
    if (std::string_view(call) != "synchronize") EXPECT_GE(stated.size(), 1U);
    device->finish_everything();
    EXPECT_EQ(reader.seen(), stated);
  }
}

// --- it bites ---------------------------------------------------------------------------------------------------------

/// Whether a run with one wait left out delivers what it should nonetheless.
bool survives_without(const testing::waits_left_out& wait, execution loader, execution trainer, std::uint64_t seed) {
  const auto device = std::make_shared<simulated_device>(
      simulated_device_options{.seed = seed, .loader = loader, .consumer = trainer, .left_out = wait});
  loader_options options = options_on(device);
  options.prefetch_batches = 2;
  options.device_batches = 2;
  const run_on_device got = run(device, options, {}, consumer::one_stream, seed);
  return got.seen == got.stated;
}

TEST(simulated_device, goes_wrong_where_a_copy_does_not_wait_for_the_consumer) {
  const watchdog dog("copy for consumer");
  EXPECT_TRUE(survives_without({}, execution::early, execution::late, 1));
  EXPECT_FALSE(survives_without({.copy_for_consumer = true}, execution::early, execution::late, 1));
}

TEST(simulated_device, goes_wrong_where_the_consumer_does_not_wait_for_the_copy) {
  const watchdog dog("consumer for copy");
  EXPECT_TRUE(survives_without({}, execution::late, execution::early, 1));
  EXPECT_FALSE(survives_without({.consumer_for_copy = true}, execution::late, execution::early, 1));
}

TEST(simulated_device, goes_wrong_where_host_memory_does_not_wait_for_its_copy) {
  const watchdog dog("host for copy");
  EXPECT_TRUE(survives_without({}, execution::late, execution::late, 1));
  EXPECT_FALSE(survives_without({.host_for_copy = true}, execution::late, execution::late, 1));
}

TEST(simulated_device, goes_wrong_where_operations_do_not_wait_for_the_copy) {
  const watchdog dog("operation for copy");
  EXPECT_FALSE(survives_without({.operation_for_copy = true}, execution::late, execution::early, 1));
}

/// How often the look that the loader's suites take at a batch finds something wrong in a run.
std::size_t failures_of_the_suites_look(const testing::waits_left_out& wait, execution loader, execution trainer) {
  const auto device = std::make_shared<simulated_device>(
      simulated_device_options{.seed = 1, .loader = loader, .consumer = trainer, .left_out = wait});
  loader_options options = options_on(device);
  options.prefetch_batches = 2;
  options.device_batches = 2;
  ::testing::TestPartResultArray found;
  {
    // Steps are executed by whoever calls the device.
    const ::testing::ScopedFakeTestPartResultReporter kept(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &found);
    static_cast<void>(testing::run_all(fake_dataset(samples()), options, testing::all_fields()));
    device->finish_everything();
  }
  return static_cast<std::size_t>(found.size());
}

TEST(simulated_device, fails_the_suites_look_at_a_batch_without_any_of_the_waits) {
  const watchdog dog("the suites' look");
  for (const execution loader : {execution::late, execution::early, execution::random}) {
    for (const execution trainer : {execution::late, execution::early, execution::random})
      EXPECT_EQ(failures_of_the_suites_look({}, loader, trainer), 0U);
  }
  EXPECT_GT(failures_of_the_suites_look({.copy_for_consumer = true}, execution::early, execution::late), 0U);
  EXPECT_GT(failures_of_the_suites_look({.consumer_for_copy = true}, execution::late, execution::early), 0U);
  EXPECT_GT(failures_of_the_suites_look({.host_for_copy = true}, execution::late, execution::late), 0U);
  EXPECT_GT(failures_of_the_suites_look({.operation_for_copy = true}, execution::late, execution::early), 0U);
}

// Also where nothing is driven to its extreme: at random most seeds notice.
TEST(simulated_device, goes_wrong_at_random_too_without_any_of_the_waits) {
  const testing::waits_left_out waits[] = {
      {.copy_for_consumer = true}, {.consumer_for_copy = true}, {.host_for_copy = true}, {.operation_for_copy = true}};
  for (const auto& wait : waits) {
    int noticed = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const watchdog dog("one wait less, at random");
      if (!survives_without(wait, execution::random, execution::random, seed)) ++noticed;
    }
    EXPECT_GE(noticed, 3) << wait.copy_for_consumer << wait.consumer_for_copy << wait.host_for_copy
                          << wait.operation_for_copy;
  }
}

}  // namespace
}  // namespace leat
