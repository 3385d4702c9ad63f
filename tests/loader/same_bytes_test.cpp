// The project's central test: what must not change a byte. A table with one base and one column for everything that may
// differ between two machines or two runs; later issues add columns.
#include "datasets/formats/tar/photo_places.hpp"
#include "datasets/write/pack.hpp"
#include "stages/fields/photo_reach.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/index_options.hpp>
#include <leat/join.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_tar.hpp>
#include <leat/photo_pack.hpp>
#include <leat/targets.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::fake_dataset_options;
using testing::fake_layout;
using testing::loader;
using testing::loader_options;
using testing::seen_batch;
using testing::seen_run;

constexpr std::size_t sample_count = 45;  // five batches of eight and one of five

/// Whether an index is kept of what is run over, and is there.
enum class index_state : std::uint8_t { none, cold, warm };

/// One way of running the same thing.
struct setup {
  loader_options options = testing::small_options();
  fake_dataset_options where;
  bool large_picture = false;  // one that takes more than a thread's usual scratch, and waits for the others'
  bool real_files = false;
  std::string directory_of_files;  // empty: the usual temporary one
  std::optional<index_state> tar;  // in tar shards, opened with such an index
  bool receipts = false;
  bool joined = false;  // the pictures and their other members are two datasets
  bool packs = false;   // JPEGs that can be are photo packs, beside those that cannot; in shards with their index
};

struct column {
  std::string name;
  std::function<void(setup&)> change;
};

std::vector<column> columns() {
  std::vector<column> all;
  const auto add = [&](std::string name, std::function<void(setup&)> change) {
    all.push_back({std::move(name), std::move(change)});
  };
  const auto number = [](const char* what, auto value) { return std::string(what) + "_" + std::to_string(value); };

  for (const std::uint32_t threads : {1U, 3U, 4U, 5U, 6U, 7U, 8U}) {
    add(number("decode_threads", threads), [=](setup& s) { s.options.decode_threads = threads; });
  }
  for (const std::uint32_t depth : {1U, 2U, 7U, 32U, 128U}) {
    add(number("queue_depth", depth), [=](setup& s) { s.options.reader.queue_depth = depth; });
    add(number("files_queue_depth", depth), [=](setup& s) {
      s.options.reader.queue_depth = depth;
      s.real_files = true;
    });
  }
  for (const std::uint32_t batches : {1U, 2U, 3U, 5U, 8U}) {
    add(number("prefetch_batches", batches), [=](setup& s) { s.options.prefetch_batches = batches; });
  }
  for (const std::uint32_t threads : {2U, 3U}) {
    add(number("io_threads", threads), [=](setup& s) { s.options.reader.io_threads = threads; });
    add(number("files_io_threads", threads), [=](setup& s) {
      s.options.reader.io_threads = threads;
      s.real_files = true;
    });
  }
  // The smallest budget there is: what a loader says that it needs at least. It is found out by asking for too little.
  add("budget_least", [](setup& s) { s.options.host_bytes_max = 0; });
  add("budget_large", [](setup& s) { s.options.host_bytes_max = std::size_t{1} << 30; });
  for (const std::uint64_t seed : {2U, 3U, 4U, 5U, 6U, 7U}) {
    add(number("fake_disk_seed", seed), [=](setup& s) { s.where.disk.seed = seed; });
  }
  add("fake_disk_in_order", [](setup& s) { s.where.disk.order = testing::delivery::in_order; });
  add("fake_disk_mostly_short_reads", [](setup& s) { s.where.disk.faults.short_read = 0.9; });
  add("two_disks", [](setup& s) { s.where.disks = 2; });
  add("layout_loose_files", [](setup& s) { s.where.layout = fake_layout::file_per_member; });
  add("layout_columns", [](setup& s) { s.where.layout = fake_layout::columns; });
  add("one_shard", [](setup& s) { s.where.shards = 1; });
  add("names_too", [](setup& s) { s.options.names = true; });
  add("receipts", [](setup& s) { s.receipts = true; });
  add("skip_with_nothing_corrupt", [](setup& s) { s.options.on_corrupt = corrupt_policy::skip; });
  add("substitute_with_nothing_corrupt", [](setup& s) { s.options.on_corrupt = corrupt_policy::substitute; });

  add("files", [](setup& s) { s.real_files = true; });
  add("files_on_tmpfs", [](setup& s) {
    s.real_files = true;
    s.directory_of_files = "/dev/shm";
  });
  add("files_loose", [](setup& s) {
    s.real_files = true;
    s.where.layout = fake_layout::file_per_member;
  });
  add("files_columns", [](setup& s) {
    s.real_files = true;
    s.where.layout = fake_layout::columns;
  });
  for (const choice direct : {choice::on, choice::off}) {
    for (const choice pages : {choice::automatic, choice::off}) {
      for (const choice registered : {choice::automatic, choice::off}) {
        for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
          if (backend == read_backend::preadv && registered == choice::off) continue;  // It registers nothing anyway.
          const auto word = [](choice fallback) {
            return fallback == choice::off ? "off" : fallback == choice::on ? "on" : "auto";
          };
          add(std::string("files_") + (backend == read_backend::preadv ? "preadv" : "ring") + "_direct_" +
                  word(direct) + "_huge_pages_" + word(pages) + "_registered_" + word(registered),
              [=](setup& s) {
                s.real_files = true;
                s.options.reader = {
                    .backend = backend, .registered_buffers = registered, .huge_pages = pages, .direct = direct};
              });
        }
      }
    }
  }
  add("joined", [](setup& s) { s.joined = true; });
  add("joined_files", [](setup& s) {
    s.joined = true;
    s.real_files = true;
  });
  add("joined_tar", [](setup& s) {
    s.joined = true;
    s.tar = index_state::none;
  });
  add("tar", [](setup& s) { s.tar = index_state::none; });
  add("tar_index_cold", [](setup& s) { s.tar = index_state::cold; });
  add("tar_index_warm", [](setup& s) { s.tar = index_state::warm; });
  add("tar_index_warm_one_shard_preadv", [](setup& s) {
    s.tar = index_state::warm;
    s.where.shards = 1;
    s.options.reader.backend = read_backend::preadv;
  });
  add("packs", [](setup& s) { s.packs = true; });
  add("packs_decode_threads_3", [](setup& s) {
    s.packs = true;
    s.options.decode_threads = 3;
  });
  add("packs_files", [](setup& s) { s.packs = s.real_files = true; });
  add("decode_on_automatic", [](setup& s) { s.options.decode_on = decode_on::automatic; });
  add("packs_decode_on_automatic", [](setup& s) {
    s.packs = true;
    s.options.decode_on = decode_on::automatic;
  });
  add("packs_tar_decode_on_automatic", [](setup& s) {
    s.packs = true;
    s.tar = index_state::none;
    s.options.decode_on = decode_on::automatic;
  });
  for (const index_state state : {index_state::none, index_state::cold, index_state::warm}) {
    add(number("packs_tar", static_cast<int>(state)), [=](setup& s) {
      s.packs = true;
      s.tar = state;
    });
  }
  add("files_preadv_1_thread", [](setup& s) {
    s.real_files = true;
    s.options.reader.backend = read_backend::preadv;
    s.options.reader.preadv_threads = 1;
  });
  return all;
}

std::vector<testing::fake_sample> with_a_large_picture() {
  std::vector<testing::fake_sample> samples = testing::make_samples(1, sample_count);
  samples[11].remove("png");
  samples[11].remove("jpg");
  // Coefficients of 5 MB.
  samples[11].members.push_back(
      {"jpg", testing::make_jpeg(testing::make_texture(5, 1000, 800), {.h = 1, .v = 1, .progressive = true})});
  return samples;
}

// The budget that a refusal says would do, in whole MiB; 0 where it names none.
std::size_t budget_named(const std::string& message) {
  constexpr std::string_view before = "host_bytes_max of ";
  const std::size_t at = message.find(before);
  return at == std::string::npos ? 0 : std::size_t{std::stoull(message.substr(at + before.size()))} << 20;
}

std::vector<testing::fake_sample> packed(std::vector<testing::fake_sample> samples) {
  std::size_t packs = 0;
  for (testing::fake_sample& sample : samples) {
    for (auto& member : sample.members) {
      if (member.field != "jpg") continue;
      try {
        member.bytes = pack_photo(member.bytes);
        member.field = "fjpg";
        ++packs;
      } catch (const error&) {
        // It stays a JPEG (progressive), or is a PNG under that name.
      }
    }
  }
  EXPECT_GT(packs, samples.size() / 2);
  EXPECT_LT(packs, samples.size());
  return samples;
}

const std::vector<testing::fake_sample>& samples_of(const setup& use) {
  static const std::vector<testing::fake_sample> small = testing::make_samples(1, sample_count);
  static const std::vector<testing::fake_sample> large = with_a_large_picture();
  static const std::vector<testing::fake_sample> small_packed = packed(small);
  static const std::vector<testing::fake_sample> large_packed = packed(large);
  if (use.packs) return use.large_picture ? large_packed : small_packed;
  return use.large_picture ? large : small;
}

/// `path` is a folder or a pattern of shards, and nothing of it has changed just now: of what has, no index is kept.
dataset open_with_index(const std::string& path, index_state state, const std::filesystem::path& kept) {
  using outcome = index_report::outcome;
  if (state == index_state::none) return leat::open(path);
  std::optional<dataset> opened;
  for (const outcome expected : {outcome::written, outcome::used}) {
    std::vector<index_report> reports;
    opened = leat::open(path, {.index = {.use = index_use::check,
                                         .directory = kept.string(),
                                         .on_report = [&](const index_report& each) { reports.push_back(each); }}});
    EXPECT_EQ(reports.size(), 1U);
    if (!reports.empty()) EXPECT_EQ(reports.front().what, expected) << reports.front().why;
    if (state == index_state::cold) break;
  }
  return *opened;
}

/// As if all below it, and itself, had been written an hour ago.
void let_age(const std::filesystem::path& root) {
  const auto then = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& each : std::filesystem::recursive_directory_iterator(root)) {
    if (!each.is_symlink()) std::filesystem::last_write_time(each.path(), then);
  }
  std::filesystem::last_write_time(root, then);
}

// A sample's members lie beside each other, and the samples in their order.
dataset write_shards(const std::vector<testing::fake_sample>& samples, const setup& use,
                     const std::filesystem::path& directory) {
  const std::size_t per_shard = (samples.size() + use.where.shards - 1) / use.where.shards;
  for (std::size_t shard = 0; shard < use.where.shards; ++shard) {
    testing::tar_writer made;
    std::vector<datasets::photo_place> photos;
    for (std::size_t i = shard * per_shard; i < std::min(samples.size(), (shard + 1) * per_shard); ++i) {
      for (const auto& member : samples[i].members) {
        const testing::tar_place at = made.add_file(std::to_string(i) + "." + member.field, member.bytes);
        std::optional<datasets::photo_place> photo = stages::place_of_photo(member.bytes);
        if (!photo) continue;
        photo->block = static_cast<std::uint32_t>(at.data_offset / 512);
        photos.push_back(*photo);
      }
    }
    if (use.packs) made.add_file(std::string(datasets::photo_places_member), datasets::as_member(photos));
    const std::vector<std::byte> bytes = made.finish();
    std::ofstream out(directory / ("s-" + std::to_string(shard) + ".tar"), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) throw std::runtime_error("cannot write a shard");
  }
  let_age(directory);
  return open_with_index((directory / "s-*.tar").string(), *use.tar, directory / "kept");
}

dataset joined_again(const dataset& whole) {
  const dataset pictures = whole.with_fields(std::vector<std::string>{"jpg"});  // and what else is a picture
  std::set<std::string> left;
  for (const field_info& each : pictures.fields()) left.insert(each.name);
  std::vector<std::string> others;
  for (const field_info& each : whole.fields()) {
    if (!left.contains(each.name)) others.push_back(each.name);
  }
  return join(pictures, whole.with_fields(others), by_stem());
}

seen_run run(const setup& given, const std::vector<field>& fields = testing::all_fields()) {
  setup use = given;
  const std::vector<testing::fake_sample>& samples = samples_of(use);
  std::optional<testing::temporary_directory> receipts;
  if (use.receipts) use.options.receipts = (receipts.emplace().path() / "r").string();
  if (use.options.host_bytes_max == 0) {
    const fake_dataset asked(samples, use.where);
    use.options.host_bytes_max = std::size_t{256} << 20;
    use.options.host_bytes_max = loader(asked, use.options, fields).plan().host_bytes_least;
    if (given.large_picture) {
      const seen_run refused = testing::run_all(asked, use.options, fields);
      // What is decoded out of packed coefficients may fit as it is.
      if (refused.failed) {
        EXPECT_EQ(refused.failed, errc::limit) << refused.message;
        use.options.host_bytes_max = budget_named(refused.message);
      }
    }
  }
  if (!use.real_files && !use.tar) {
    const fake_dataset fake(samples, use.where);
    return testing::run_all(use.joined ? joined_again(fake) : dataset(fake), use.options, fields);
  }
  const testing::temporary_directory directory = use.directory_of_files.empty()
                                                     ? testing::temporary_directory()
                                                     : testing::temporary_directory(use.directory_of_files);
  const dataset written = use.tar ? write_shards(samples, use, directory.path())
                                  : testing::write_samples(samples, use.where, directory.path());
  return testing::run_all(use.joined ? joined_again(written) : written, use.options, fields);
}

const seen_run& base() {
  static const seen_run once = run({});
  return once;
}

void expect_same(const seen_run& got, const seen_run& expected = base()) {
  if (got.failed == errc::unsupported) throw error(errc::unsupported, got.message);  // O_DIRECT, once a file is opened
  EXPECT_FALSE(got.failed) << got.message;
  ASSERT_EQ(got.batches.size(), expected.batches.size());
  for (std::size_t i = 0; i < got.batches.size(); ++i) ASSERT_EQ(got.batches[i], expected.batches[i]);
}

class same_bytes : public ::testing::TestWithParam<column> {};

TEST_P(same_bytes, as_the_base) {
  const testing::watchdog dog("same_bytes " + GetParam().name);
  setup changed;
  GetParam().change(changed);
  try {
    expect_same(run(changed));
  } catch (const error& failure) {
    // A fallback that was asked for and that this machine lacks.
    if (failure.code() != errc::unsupported) throw;
    GTEST_SKIP() << failure.what();
  }
}

INSTANTIATE_TEST_SUITE_P(columns, same_bytes, ::testing::ValuesIn(columns()),
                         [](const auto& tested) { return tested.param.name; });

TEST(same_bytes, of_two_epochs_that_hold_every_sample_once_and_not_in_the_same_order) {
  ASSERT_EQ(base().batches.size(), 12U);
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> seen(sample_count);
    for (const seen_batch& each : base().batches) {
      if (each.epoch != epoch) continue;
      ASSERT_EQ(each.ids.size(), each.labels().size());
      for (std::size_t row = 0; row < each.ids.size(); ++row) {
        ++seen[each.ids[row]];
        EXPECT_EQ(each.labels()[row], 1000 + static_cast<std::int64_t>(each.ids[row]));
      }
    }
    EXPECT_EQ(seen, std::vector<int>(sample_count, 1));
  }
  EXPECT_NE(base().batches[0].ids, base().batches[6].ids);
}

// The table's second base, under every column: a progressive picture, and every budget that holds it. Which budget is too
// small, and what then, the corrupt samples' tests say.
TEST(same_bytes, with_a_picture_that_takes_the_scratch_of_several_threads_under_every_column) {
  setup large;
  large.large_picture = true;
  const seen_run expected = run(large);
  ASSERT_EQ(expected.batches.size(), 12U);
  EXPECT_NE(expected.batches, base().batches);
  for (const column& each : columns()) {
    SCOPED_TRACE(each.name);
    const testing::watchdog dog("same_bytes large " + each.name);
    setup changed = large;
    each.change(changed);
    try {
      expect_same(run(changed), expected);
    } catch (const error& failure) {
      if (failure.code() != errc::unsupported) throw;  // a fallback that this machine lacks
    }
  }
}

// Other fields than all_fields(), under every fifth column.
//   first   of these columns
void expect_same_under_some(std::size_t first, const std::vector<field>& fields) {
  const seen_run expected = run(setup(), fields);
  EXPECT_NE(expected.batches, base().batches);
  const std::vector<column> all = columns();
  for (std::size_t number = first; number < all.size(); number += 5) {
    const column& each = all[number];
    SCOPED_TRACE(each.name);
    const testing::watchdog dog("same_bytes of other fields " + each.name);
    setup changed;
    each.change(changed);
    try {
      expect_same(run(changed, fields), expected);
    } catch (const error& failure) {
      if (failure.code() != errc::unsupported) throw;  // a fallback that this machine lacks
    }
  }
}

// A third base, under some of the columns: pictures with colour, a member that two fields see, and points that follow one of them.
TEST(same_bytes, with_augmented_pictures_under_some_columns) {
  const auto fields = [] {
    std::vector<field> of = testing::all_fields();
    for (const dtype type : {dtype::bf16, dtype::f32}) {
      of.emplace_back(image(type == dtype::f32 ? "a" : "b")
                          .from("jpg")
                          .random_resized_crop(24)
                          .random_flip()
                          .random_apply(0.8, {transforms::color_jitter{0.4, 0.4, 0.4, 0.1}})
                          .one_of({transforms::gaussian_blur{.kernel = 7}, transforms::equalize{}})
                          .as(type)
                          .random_erasing(type == dtype::f32 ? 0.5 : 0));
    }
    of.emplace_back(points("dot").from("json").follows("a").key("box").visibility());
    return of;
  };
  expect_same_under_some(0, fields());
}

// A fourth base, likewise: views in one output, of several scales, beside a field that is numbered.
TEST(same_bytes, with_views_under_some_columns) {
  const auto fields = [] {
    std::vector<field> of = testing::all_fields();
    const image view = image().from("jpg").random_flip().normalize(imagenet);
    of.push_back(views(view.random_resized_crop(24, {0.4, 1}), 2, "global"));
    of.push_back(views(view.random_resized_crop(10, {0.05, 0.4}), 5, "local"));
    of.push_back(ten_crop(image("tested").from("jpg").resize(16).as(dtype::u8), 12));
    return of;
  };
  expect_same_under_some(2, fields());
}

// Everything at once: columns hide each other's mistakes one by one, not all together.
TEST(same_bytes, under_any_mixture_of_columns) {
  const std::vector<column> all = columns();
  testing::for_each_seed(12, [&](std::uint64_t seed) {
    testing::seeded_random random(seed);
    setup mixed;
    mixed.where.disk.seed = seed;
    std::string names;
    for (int k = 0; k < 4; ++k) {
      const column& chosen = all[random.below(all.size())];
      chosen.change(mixed);
      names += " " + chosen.name;
    }
    const testing::watchdog dog("same_bytes mixture of" + names);
    SCOPED_TRACE(names);
    try {
      expect_same(run(mixed));
    } catch (const error& failure) {
      if (failure.code() != errc::unsupported && failure.code() != errc::limit) throw;
    }
  });
}

// The same samples in the same order: a folder, its pack in any number of shards, and the pack of that.
TEST(same_bytes, from_a_folder_and_from_its_pack) {
  const testing::watchdog dog("folder or pack");
  const testing::photo_folder photos;
  const testing::temporary_directory directory;
  const std::string here = directory.path().string();
  const dataset folder = open_folder(photos.path().string());
  const auto run_of = [](const dataset& samples, const reader_options& reader) {
    loader_options options = testing::small_options();
    options.batch_size = 5;
    options.reader = reader;
    return testing::run_all(samples, options,
                            {image("jpg").random_resized_crop(32).random_flip().normalize(imagenet), label("cls")});
  };
  const seen_run expected = run_of(folder, {});
  ASSERT_EQ(expected.batches.size(), 6U);

  datasets::pack(folder, here + "/one.tar", {});
  datasets::pack(folder, here + "/three-{0..2}.tar", {});
  datasets::pack(folder, here + "/many-%03d.tar", {.samples_per_shard = 2});
  datasets::pack(open_tar(here + "/three-{0..2}.tar"), here + "/again-{0..4}.tar", {});
  for (const char* const shards : {"/one.tar", "/three-{0..2}.tar", "/many-*.tar", "/again-{0..4}.tar"}) {
    const dataset packed = open_tar(here + shards);
    for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
      for (const choice direct : {choice::automatic, choice::on, choice::off}) {
        const seen_run got = run_of(packed, {.backend = backend, .direct = direct});
        if (got.failed == errc::unsupported) continue;  // no O_DIRECT here; the fallbacks' tests say what then
        EXPECT_FALSE(got.failed) << got.message;
        EXPECT_EQ(got.batches, expected.batches) << shards;
      }
    }
  }
}

TEST(same_bytes, from_a_folder_whose_index_is_cold_or_warm) {
  const testing::watchdog dog("a folder with an index");
  const testing::photo_folder photos;
  let_age(photos.path());
  const auto run_with = [&](index_state state, const reader_options& reader) {
    const testing::temporary_directory kept;
    loader_options options = testing::small_options();
    options.batch_size = 5;
    options.reader = reader;
    return testing::run_all(open_with_index(photos.path().string(), state, kept.path()), options,
                            {image("jpg").random_resized_crop(32).random_flip().normalize(imagenet), label("cls")});
  };
  const seen_run expected = run_with(index_state::none, {});
  ASSERT_FALSE(expected.failed) << expected.message;
  ASSERT_EQ(expected.batches.size(), 6U);
  for (const index_state state : {index_state::cold, index_state::warm}) {
    for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
      for (const choice direct : {choice::on, choice::off}) {
        const seen_run got = run_with(state, {.backend = backend, .direct = direct});
        if (got.failed == errc::unsupported) continue;  // no O_DIRECT here; the fallbacks' tests say what then
        EXPECT_FALSE(got.failed) << got.message;
        EXPECT_EQ(got.batches, expected.batches);
      }
    }
  }
}

// And the other way round: what should change the bytes does.
TEST(same_bytes, not_with_another_seed_order_size_type_or_batch) {
  const auto changed = [](const std::function<void(setup&)>& change) {
    setup s;
    change(s);
    return run(s).batches;
  };
  EXPECT_NE(changed([](setup& s) { s.options.seed = 8; }), base().batches);
  EXPECT_NE(changed([](setup& s) { s.options.shuffle = false; }), base().batches);
  EXPECT_NE(changed([](setup& s) { s.options.batch_size = 9; }), base().batches);

  const fake_dataset fake(testing::make_samples(1, sample_count));
  const auto with = [&](const image& picture) {
    return testing::run_all(fake, testing::small_options(), {picture, label("cls"), text("txt"), bytes("json")})
        .batches;
  };
  const image usual = image("jpg").random_resized_crop(12).random_flip().normalize(imagenet);
  EXPECT_EQ(with(usual), base().batches);
  EXPECT_NE(with(usual.as(dtype::f16)), base().batches);
  EXPECT_NE(with(usual.as(layout::nhwc)), base().batches);
  EXPECT_NE(with(image("jpg").random_resized_crop(13).random_flip().normalize(imagenet)), base().batches);
  EXPECT_NE(with(image("jpg").random_resized_crop(12).normalize(imagenet)), base().batches);
}

}  // namespace
}  // namespace leat
