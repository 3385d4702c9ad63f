// leat bench read: where its reads go, what its figures are made of, the file it makes, and the command on a small one.
#include "datasets/write/pack.hpp"
#include "stages/fields/photo_reach.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"
#include "tools/bench_drive.hpp"
#include "tools/bench_extents.hpp"
#include "tools/bench_file.hpp"
#include "tools/bench_fio.hpp"
#include "tools/bench_plot.hpp"
#include "tools/bench_read.hpp"
#include "tools/child.hpp"
#include "tools/fields.hpp"
#include "tools/page_cache.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/open_tar.hpp>
#include <leat/open_tokens.hpp>
#include <leat/own_samples.hpp>
#include <leat/photo_pack.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace leat::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using tools::read_pattern;
using tools::read_places;
using tools::read_row;

std::vector<reader::file> files_of(const std::vector<std::uint64_t>& sizes) {
  std::vector<reader::file> made;
  for (const std::uint64_t size : sizes) made.push_back({.size_bytes = size});
  return made;
}

std::string file_of(const fs::path& path, std::size_t bytes) {
  std::ofstream(path) << std::string(bytes, 'x');
  return path.string();
}

TEST(bench_read, sequential_reads_go_through_the_files_block_by_block_and_begin_again) {
  const read_places places(read_pattern::sequential, files_of({10'000, 4096, 8192}), {"a", "b", "c"}, 4096);
  const std::vector<std::pair<std::size_t, std::uint64_t>> expected = {{0, 0},    {0, 4096}, {1, 0},   {2, 0},
                                                                       {2, 4096}, {0, 0},    {0, 4096}};
  for (std::size_t n = 0; n < expected.size(); ++n) {
    EXPECT_EQ(places.at(n), (read_places::place{expected[n].first, expected[n].second, 4096})) << n;
  }
  EXPECT_EQ(places.lease_bytes(), 4096U);
}

TEST(bench_read, random_reads_reach_every_page_that_a_block_may_begin_on_and_no_other) {
  const std::vector<std::uint64_t> sizes = {5 * 4096, 2 * 4096 + 100, 3 * 4096};
  const read_places places(read_pattern::random, files_of(sizes), {"a", "b", "c"}, 8192);
  std::set<std::pair<std::size_t, std::uint64_t>> seen;
  for (std::uint64_t n = 0; n < 1000; ++n) {
    const read_places::place each = places.at(n);
    EXPECT_EQ(each.offset % 4096, 0U);
    EXPECT_LE(each.offset + 8192, sizes[each.file]);
    seen.insert({each.file, each.offset});
  }
  EXPECT_EQ(seen.size(), 4U + 1U + 2U);
}

TEST(bench_read, listed_reads_come_in_their_order_again_and_again_and_fit_into_their_memory) {
  const std::vector<read_places::place> listed = {{1, 4000, 200}, {0, 0, 5000}, {1, 8192, 1}};
  const read_places places(listed);
  for (std::size_t n = 0; n < 7; ++n) EXPECT_EQ(places.at(n), listed[n % 3]) << n;
  EXPECT_EQ(places.lease_bytes(), 8192U);
}

// What the loader itself would read: each sample's bytes once, whole, in the sampler's order.
TEST(bench_extents, an_epochs_reads_are_those_of_the_loader) {
  const photo_folder photos;
  const dataset samples = open(photos.path().string());
  const tools::chosen_fields fields = tools::fields_of(samples, {});
  const tools::epoch_reads epoch = tools::plan_epoch(samples, fields.all, {.batch_size = 4, .seed = 3});
  EXPECT_EQ(epoch.samples, 12U);
  EXPECT_EQ(epoch.samples_all, 12U);
  EXPECT_EQ(epoch.files.size(), 12U);
  ASSERT_EQ(epoch.reads.size(), 12U);

  loader train(samples, {.batch_size = 4, .seed = 3, .epochs = 1, .names = true}, fields.all);
  std::size_t n = 0;
  std::uint64_t bytes = 0;
  while (const auto loaded = train.next_blocking()) {
    for (const std::string& name : loaded->names()) {
      const read_places::place& read = epoch.reads.at(n++);
      EXPECT_THAT(epoch.files.at(read.file), ::testing::EndsWith(name));
      EXPECT_EQ(read.offset, 0U);
      EXPECT_EQ(read.bytes, fs::file_size(epoch.files[read.file]));
      bytes += read.bytes;
    }
  }
  EXPECT_EQ(n, 12U);
  EXPECT_EQ(epoch.bytes, bytes);
  EXPECT_EQ(train.stats().bytes_read, bytes);
  EXPECT_EQ(train.stats().read.count, epoch.reads.size());
}

TEST(bench_extents, windows_of_tokens_are_those_of_the_loader) {
  const temporary_directory directory;
  const dataset runs = open_tokens(file_of(directory.path() / "t.bin", 20'002), {.type = dtype::u16});
  for (const window_order order : {window_order::shifted, window_order::random}) {
    const tools::chosen_fields fields = tools::fields_of(runs, {}, {.length = 100, .order = order});
    const tools::epoch_reads epoch = tools::plan_epoch(fields.samples, fields.all, {.batch_size = 8});
    loader train(fields.samples, {.batch_size = 8, .shuffle = true, .epochs = 1}, fields.all);
    while (train.next_blocking()) {
    }
    EXPECT_EQ(epoch.samples, train.samples());
    EXPECT_EQ(epoch.bytes, train.stats().bytes_read);
    EXPECT_EQ(epoch.reads.size(), train.stats().read.count);
    EXPECT_EQ(epoch.bytes, epoch.samples * 202);
  }
}

// A crop's rows, and the head before them: its place is drawn here as the loader draws it.
TEST(bench_extents, of_photo_packs_the_rows_are_those_of_the_loader) {
  std::vector<std::vector<std::byte>> packs;
  for (std::uint64_t i = 0; i < 8; ++i) {
    packs.push_back(pack_photo(make_jpeg(make_texture(i, 260, 520), {.quality = 97})));
  }
  std::size_t bytes = 0;
  for (const std::vector<std::byte>& each : packs) bytes += each.size();
  const temporary_directory directory;
  const std::string shard = (directory.path() / "photos.tar").string();
  datasets::pack(
      from_function(packs.size(), [&](std::uint64_t i) { return packs[i]; }, {.field = "fjpg", .bytes_max = bytes}),
      shard, {.photo = stages::place_of_photo});
  const dataset samples = open_tar(shard);
  const tools::chosen_fields fields = tools::fields_of(samples, {});
  const tools::epoch_reads epoch = tools::plan_epoch(samples, fields.all, {.batch_size = 4, .seed = 3});
  loader train(samples, {.batch_size = 4, .seed = 3, .epochs = 1}, fields.all);
  while (train.next_blocking()) {
  }
  EXPECT_EQ(epoch.bytes, train.stats().bytes_read);
  EXPECT_EQ(epoch.reads.size(), train.stats().read.count);
  EXPECT_GT(epoch.reads.size(), packs.size()) << "a head and rows, of some";
  EXPECT_LT(epoch.bytes, bytes);
}

TEST(bench_extents, of_a_long_epoch_a_part_is_planned) {
  const photo_folder photos;
  const dataset samples = open(photos.path().string());
  const tools::epoch_reads epoch = tools::plan_epoch(samples, tools::fields_of(samples, {}).all, {.batch_size = 4}, 5);
  EXPECT_EQ(epoch.samples, 8U) << "whole batches";
  EXPECT_EQ(epoch.samples_all, 12U);
  EXPECT_EQ(epoch.reads.size(), 8U);
}

TEST(bench_extents, a_dataset_that_is_in_no_file_is_refused) {
  const dataset made =
      from_function(10, [](std::uint64_t) { return std::vector<std::byte>(8); }, {.field = "x", .bytes_max = 8});
  EXPECT_THROW(static_cast<void>(tools::plan_epoch(made, {bytes("x")}, {})), error);
}

TEST(bench_read, a_file_smaller_than_a_block_is_named) {
  try {
    const read_places places(read_pattern::random, files_of({8192, 100}), {"large", "small"}, 4096);
    FAIL() << "not refused";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::usage);
    EXPECT_THAT(refused.what(), HasSubstr("small has 100 B"));
  }
}

TEST(bench_read, busy_time_of_the_machine_leaves_idle_and_waiting_out_and_counts_guests_once) {
  EXPECT_DOUBLE_EQ(tools::busy_cpu_s("cpu  100 20 30 5000 700 4 6 8 50 1", 100), 1.6);
  EXPECT_DOUBLE_EQ(tools::busy_cpu_s("", 100), 0);
  EXPECT_DOUBLE_EQ(tools::busy_cpu_s("intr 1 2 3 4 5 6 7 8", 100), 0);
}

TEST(bench_read, a_row_is_rates_over_the_wall_clock_and_cpu_over_gib) {
  read_row row;
  row.asked = {.block_bytes = 1 << 20, .depth = 16};
  row.fallbacks.backend.use = "io_uring";
  row.fallbacks.direct.use = "on";
  row.reads = 2048;
  row.bytes = std::uint64_t{2} << 30;
  row.wall_s = 4;
  row.cpu_s = 0.5;
  row.system_cpu_s = 1;
  row.p999_us = 7;
  const json made = json::parse(tools::as_json(row).dump());
  EXPECT_DOUBLE_EQ(made.at("gib_per_s").get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(made.at("iops").get<double>(), 512);
  EXPECT_DOUBLE_EQ(made.at("cpu_s_per_gib").get<double>(), 0.25);
  EXPECT_DOUBLE_EQ(made.at("system_cpu_s_per_gib").get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(made.at("p999_us").get<double>(), 7);
  EXPECT_EQ(made.at("block"), 1 << 20);
  EXPECT_EQ(made.at("pattern"), "random");
  EXPECT_THAT(tools::as_table({row}), HasSubstr("0.500"));
  EXPECT_THAT(tools::as_table({row}), HasSubstr("0.2500 (0.5000)"));
  row.system_cpu_s.reset();  // as of a run of less than a second
  EXPECT_TRUE(tools::as_json(row).at("system_cpu_s_per_gib").is_null());
  EXPECT_THAT(tools::as_table({row}), HasSubstr("0.2500 (-)"));
  row = {};
  EXPECT_DOUBLE_EQ(row.cpu_s_per_gib(), 0) << "nothing read is no division by zero";
}

// A tree as /sys has it, with the temporary directory's device as the partition of a drive.
TEST(bench_drive, is_the_whole_that_a_file_s_partition_is_of) {
  const temporary_directory directory;
  struct stat found{};
  ASSERT_EQ(::stat(directory.path().c_str(), &found), 0);
  const std::string number = std::to_string(major(found.st_dev)) + ":" + std::to_string(minor(found.st_dev));
  const fs::path sys = directory.path() / "sys";
  fs::create_directories(sys / "dev" / "block");
  fs::create_directories(sys / "vda" / "vda1");
  std::ofstream(sys / "vda" / "vda1" / "partition") << "1\n";
  fs::create_directory_symlink(sys / "vda" / "vda1", sys / "dev" / "block" / number);
  EXPECT_EQ(tools::drive_of(directory.path().string(), sys / "dev" / "block"), "vda");
  fs::remove_all(sys);
  EXPECT_EQ(tools::drive_of(directory.path().string(), sys / "dev" / "block"), "");
}

TEST(bench_file, is_made_once_and_used_again) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  EXPECT_TRUE(tools::create_bench_file(path, 3 << 20, {}));
  EXPECT_EQ(fs::file_size(path), 3U << 20);
  const fs::file_time_type made = fs::last_write_time(path);
  EXPECT_FALSE(tools::create_bench_file(path, 3 << 20, {}));
  EXPECT_EQ(fs::last_write_time(path), made);
}

TEST(bench_file, anything_else_that_is_there_is_left_alone) {
  const temporary_directory directory;
  const std::string mine = (directory.path() / "mine").string();
  tools::create_bench_file(mine, 2 << 20, {});
  const std::string same_size = file_of(directory.path() / "thesis", 1 << 20);
  for (const auto& [path, bytes] : {std::pair(same_size, 1U << 20),  // not ours
                                    std::pair(mine, 1U << 20),       // ours, of another size
                                    std::pair(directory.path().string(), 1U << 20)}) {
    try {
      tools::create_bench_file(path, bytes, {});
      FAIL() << path << " was overwritten";
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::usage);
      EXPECT_THAT(refused.what(), HasSubstr("give another PATH"));
    }
  }
  EXPECT_EQ(text_of(same_size), std::string(1 << 20, 'x'));
  EXPECT_EQ(fs::file_size(mine), 2U << 20);
}

TEST(bench_file, what_cannot_be_made_leaves_nothing) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  const auto code = [&](std::uint64_t bytes, const std::stop_token& stop) {
    try {
      tools::create_bench_file(path, bytes, stop);
    } catch (const error& refused) {
      return refused.code();
    }
    return errc::corrupt;
  };
  EXPECT_EQ(code(4097, {}), errc::usage);
  EXPECT_EQ(code(std::uint64_t{1} << 60, {}), errc::limit);
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(code(1 << 20, stopped.get_token()), errc::cancelled);
  EXPECT_FALSE(fs::exists(path));
}

TEST(bench_file, has_its_name_when_it_is_whole_and_what_a_kill_has_left_is_replaced_with_a_word) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  const std::string partial = path + ".partial";
  // So large that it is being written for a while, and there is room for it.
  const std::uint64_t bytes =
      std::min<std::uint64_t>(fs::space(directory.path()).available / 2, std::uint64_t{64} << 30);
  command killed({"bench", "read", path, "--create", std::to_string(bytes >> 20) + "MiB"}, command::streams::pipes);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!fs::exists(partial) || fs::file_size(partial) == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "not begun: " << killed.wait().err;
    std::this_thread::yield();
  }
  EXPECT_FALSE(fs::exists(path));
  int replaced = 0;
  const tools::bench_file_news news{.replaced = [&] { ++replaced; }};
  try {
    tools::create_bench_file(path, 1 << 20, {}, news);
    ADD_FAILURE() << "two make one file";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::usage);
    EXPECT_THAT(refused.what(), HasSubstr("somebody is making it at this moment"));
  }
  killed.signal(SIGKILL);
  static_cast<void>(killed.wait());
  ASSERT_GT(fs::file_size(partial), 0U);
  const ended again = run({"bench", "read", path, "--create", "1MiB", "--block", "4K", "--seconds", "0.02"});
  EXPECT_EQ(again.exit_code, 0);
  expect_one_line(again, "leat bench read: an unfinished file of an earlier --create, which was killed, is replaced");
  EXPECT_EQ(fs::file_size(path), 1U << 20);
  EXPECT_FALSE(fs::exists(partial));
  EXPECT_EQ(replaced, 0);
  EXPECT_FALSE(tools::create_bench_file(path, 1 << 20, {}, news)) << "and is used again";
  // A file of a user's own under that name is no leftover.
  fs::remove(path);
  std::ofstream(partial) << std::string(5000, 'x');
  try {
    tools::create_bench_file(path, 1 << 20, {}, news);
    ADD_FAILURE() << "overwritten";
  } catch (const error& refused) {
    EXPECT_THAT(refused.what(), HasSubstr(partial + " is there, and is not what --create writes"));
  }
  EXPECT_EQ(text_of(partial), std::string(5000, 'x'));
  fs::remove(partial);
  std::ofstream(partial).flush();
  EXPECT_TRUE(tools::create_bench_file(path, 1 << 20, {}, news)) << "an empty one was begun, no more";
  EXPECT_EQ(replaced, 0);
}

read_row measured(std::uint64_t block, std::uint32_t depth, double gib_per_s) {
  read_row row;
  row.asked.block_bytes = block;
  row.asked.depth = depth;
  row.bytes = static_cast<std::uint64_t>(gib_per_s * (1 << 30));
  row.wall_s = 1;
  return row;
}

TEST(bench_sweep, the_smallest_depth_is_that_with_enough_of_the_best_of_its_block) {
  const std::vector<read_row> rows = {measured(4096, 1, 0.1),  measured(4096, 2, 0.5),   measured(4096, 4, 0.48),
                                      measured(1024, 8, 1.91), measured(1024, 16, 1.95), measured(1024, 32, 2.0)};
  EXPECT_EQ(tools::smallest_depth(rows, 4096, 0.95)->asked.depth, 2U);
  EXPECT_EQ(tools::smallest_depth(rows, 1024, 0.95)->asked.depth, 8U);
  EXPECT_EQ(tools::smallest_depth(rows, 1024, 0.99)->asked.depth, 32U);
  EXPECT_EQ(tools::smallest_depth(rows, 512, 0.95), nullptr);
}

reader_report report_of(const std::string& backend, const std::string& why) {
  return {.backend = {backend, why}, .registered_buffers = {"off", ""}, .direct = {"on", ""}, .huge_pages = {"on", ""}};
}

TEST(bench_fallbacks, of_several_readers_each_backend_is_named_once) {
  std::vector<reader_report> each = {report_of("io_uring", "fine"), report_of("preadv", "no memory"),
                                     report_of("preadv", "no memory"), report_of("io_uring", "fine")};
  each[2].huge_pages = {"off", "none left"};
  const reader_report all = tools::together(each);
  EXPECT_EQ(all.backend.use, "io_uring and preadv");
  EXPECT_EQ(all.backend.why, "no memory");
  EXPECT_EQ(all.huge_pages.use, "partly");
  EXPECT_EQ(all.huge_pages.why, "none left");
  EXPECT_EQ(all.registered_buffers.use, "off");
}

TEST(bench_fallbacks, a_row_on_another_backend_than_it_is_called_says_so_and_is_no_best_depth) {
  std::vector<read_row> rows = {measured(4096, 1, 1.0), measured(4096, 2, 2.0), measured(4096, 4, 8.0),
                                measured(1024, 1, 1.0)};
  for (read_row& row : rows) row.fallbacks = report_of("io_uring", "");
  rows[2].fallbacks = rows[3].fallbacks = report_of("preadv", "ENOMEM");
  tools::mark_off_label(rows);
  EXPECT_EQ(rows[1].off_label, "");
  EXPECT_EQ(rows[2].off_label, "preadv, not io_uring: ENOMEM");
  EXPECT_EQ(tools::smallest_depth(rows, 4096, 0.95)->asked.depth, 2U);
  EXPECT_EQ(tools::smallest_depth(rows, 1024, 0.95), nullptr);
  EXPECT_EQ(tools::as_json(rows[2]).at("off_label"), "preadv, not io_uring: ENOMEM");
  EXPECT_FALSE(tools::as_json(rows[1]).contains("off_label"));
  EXPECT_THAT(tools::as_table(rows), HasSubstr("  not what it is called: preadv, not io_uring: ENOMEM\n"));
  EXPECT_THAT(tools::plot_script(rows, {&rows[1]}, ""), ::testing::Not(HasSubstr("4 8.000000")));

  for (read_row& row : rows) row.fallbacks = report_of("preadv", "seccomp");
  tools::mark_off_label(rows);
  EXPECT_EQ(rows[0].off_label, "") << "where there is no ring at all a sweep is one of preadv";
  rows[0].fallback = "nothing left out";
  rows[1].fallback = "preadv";
  rows[1].asked.backend = read_backend::preadv;
  tools::mark_off_label(rows);
  EXPECT_EQ(rows[0].off_label, "preadv, not io_uring: seccomp");
  EXPECT_EQ(rows[1].off_label, "");
}

TEST(bench_sweep, walks_the_blocks_and_depths_within_256_mib_in_flight) {
  std::set<std::uint64_t> blocks;
  for (const tools::read_settings& each : tools::sweep_of({}, false)) {
    blocks.insert(each.block_bytes);
    EXPECT_LE(each.depth * each.block_bytes, 256U << 20);
  }
  EXPECT_EQ(blocks, (std::set<std::uint64_t>{4 << 10, 112 << 10, 1 << 20, 8 << 20}));
  EXPECT_EQ(tools::sweep_of({.block_bytes = 64 << 10}, true).size(), 8U);
}

TEST(bench_page_cache, is_warm_where_its_pages_stay_or_serve_what_is_read) {
  constexpr std::uint64_t mib = 1 << 20;
  EXPECT_EQ(tools::why_warm({.bytes = 100 * mib, .file_bytes = 50 * mib, .kept = 0, .drive = 97 * mib}), "");
  EXPECT_EQ(tools::why_warm({.bytes = 100 * mib, .file_bytes = 50 * mib, .kept = 0, .drive = std::nullopt}), "")
      << "a file system that the kernel does not count: what is dropped has to be read again";
  EXPECT_EQ(tools::why_warm({.bytes = 1000 * mib, .file_bytes = 50 * mib, .kept = 0, .drive = 50 * mib}),
            "5 % of the bytes came from a drive");
  EXPECT_EQ(tools::why_warm({.bytes = 100 * mib, .file_bytes = 50 * mib, .kept = 50 * mib, .drive = std::nullopt}),
            "50.0 MiB of the files' 50.0 MiB stay in memory when they are dropped");
  EXPECT_EQ(tools::why_warm({.bytes = 1, .file_bytes = 1, .kept = std::nullopt, .drive = std::nullopt}),
            "the kernel does not tell what came from a drive");
}

TEST(bench_page_cache, counts_what_is_in_it_and_drops_it) {
  const temporary_directory directory;
  const std::string path = file_of(directory.path() / "f", 1 << 20);
  const tools::page_cache_of cache({path, (directory.path() / "none").string()});
  EXPECT_EQ(cache.bytes(), 1U << 20) << "just written";
  cache.write_out();
  cache.drop();
  if (cache.bytes() == 1U << 20) GTEST_SKIP() << "the file system keeps its pages (tmpfs)";
  EXPECT_EQ(cache.bytes(), 0U);
}

// What would be compared with fio, or taken for the drive's, and is not.
TEST(bench_read, rows_that_are_not_the_drive_are_no_best_depth_and_no_fair_comparison) {
  std::vector<read_row> rows = {measured(4096, 1, 1.0), measured(4096, 2, 8.0)};
  for (read_row& row : rows) {
    row.fallbacks.direct.use = "off";
    row.fio = tools::fio_figures{.gib_per_s = 1, .cpu_s_per_gib = 1, .huge_pages = true};
    row.asked.pattern = read_pattern::sequential;
  }
  rows[1].warm = "5 % of the bytes came from a drive";
  EXPECT_EQ(tools::smallest_depth(rows, 4096, 0.95)->asked.depth, 1U);
  EXPECT_EQ(tools::as_json(rows[0]).at("fio").at("fair"), true);
  const auto unfair = tools::as_json(rows[1]).at("fio");
  EXPECT_EQ(unfair.at("fair"), false);
  EXPECT_THAT(unfair.at("why").dump(), HasSubstr("page cache, warm, and not the drive: 5 %"));
  EXPECT_EQ(tools::as_json(rows[1]).at("page_cache"), "warm");
  EXPECT_THAT(tools::as_table(rows), HasSubstr("  page cache, warm, and not the drive: 5 % of the bytes"));
  rows[0].fio->huge_pages = false;
  rows[0].fallbacks.huge_pages.use = "on";
  EXPECT_THAT(tools::as_json(rows[0]).at("fio").at("why").dump(), HasSubstr("sysctl vm.nr_hugepages="));
  rows[0].asked.pattern = read_pattern::random;
  EXPECT_EQ(tools::why_unfair(rows[0]).size(), 2U) << "fio drops the page cache at another pace";
}

TEST(bench_read, the_histogram_has_each_read_once) {
  read_row row;
  row.reads = 4;
  row.latency = {{4.096, 0}, {16.384, 3}, {std::numeric_limits<double>::infinity(), 1}};
  EXPECT_EQ(tools::histogram_text(row),
            "   < 16.4 us            3  75.00 %  75.00 %  ######################################\n"
            "      longer            1  25.00 % 100.00 %  #############\n");
  EXPECT_TRUE(tools::as_json(row).at("latency").at(2).at("below_us").is_null());
}

TEST(bench_plot, the_script_has_a_curve_for_each_block_and_a_mark_for_each_knee) {
  const std::vector<read_row> rows = {measured(4096, 1, 0.25), measured(4096, 2, 0.5), measured(1 << 20, 1, 1.5),
                                      measured(1 << 20, 2, 2)};
  const std::string script = tools::plot_script(rows, {&rows[1], &rows[3]}, "a \"drive\"\n\\");
  EXPECT_THAT(script, HasSubstr("$curve1 << EOD\n1 0.250000\n2 0.500000\nEOD\n"
                                "$curve2 << EOD\n1 1.500000\n2 2.000000\nEOD\n"
                                "$good << EOD\n2 0.500000\n2 2.000000\nEOD\n"));
  EXPECT_THAT(script, HasSubstr(R"(set title "a \"drive\"\\n\\")"));
  EXPECT_THAT(script, HasSubstr("plot $curve1 with linespoints linewidth 2 title \"4.00 KiB\""));
}

std::string refused_memory(const tools::read_settings& asked, const tools::epoch_reads* epoch, std::uint64_t bytes) {
  try {
    tools::check_memory(asked, epoch, {bytes, "MemAvailable"});
  } catch (const error& refused) {
    return refused.code() == errc::limit ? refused.what() : "another kind of error";
  }
  return {};
}

TEST(bench_read, takes_half_of_the_memory_available_and_says_what_fits) {
  constexpr std::uint64_t mib = 1 << 20;
  const tools::read_settings large{.block_bytes = 8 * mib, .depth = 4096};
  EXPECT_EQ(refused_memory(large, nullptr, 0), "") << "not known";
  EXPECT_EQ(refused_memory(large, nullptr, (64 << 10) * mib + 4096 * 2 * 4096), "");
  const std::string why = refused_memory(large, nullptr, (16 << 10) * mib);
  EXPECT_THAT(why, HasSubstr("a block of 8.00 MiB x depth 4096 x 1 thread takes more than half of the 16.0 GiB"));
  EXPECT_THAT(why, HasSubstr("(MemAvailable); give --depth 1023 or less"));
  EXPECT_EQ(refused_memory({.block_bytes = 8 * mib, .depth = 1023}, nullptr, (16 << 10) * mib), "");
  EXPECT_THAT(refused_memory({.block_bytes = 8 * mib, .depth = 64, .threads = 64}, nullptr, 1024 * mib),
              HasSubstr("x 64 threads takes more than half of the 1.00 GiB of memory available (MemAvailable); "
                        "give --depth 1 and --threads 63 or fewer"));
  for (const std::uint64_t block : {1024 * mib, ~std::uint64_t{0}}) {
    EXPECT_THAT(refused_memory({.block_bytes = block}, nullptr, 1024 * mib), HasSubstr("give a smaller --block"));
  }
  tools::epoch_reads epoch;
  epoch.reads = {{0, 0, 4096}, {0, 4096, 512 * mib}};
  epoch.read_bytes_max = 512 * mib;
  epoch.bytes = 512 * mib + 4096;
  EXPECT_EQ(refused_memory({}, &epoch, 2048 * mib), "") << "of its own accord no deeper than that";
  EXPECT_THAT(refused_memory({.depth = 3}, &epoch, 2048 * mib), HasSubstr("reads of up to 512 MiB x depth 3"));
  EXPECT_THAT(refused_memory({}, &epoch, 512 * mib), HasSubstr("it is too little for such samples"));
}

TEST(bench_fio, is_given_the_settings_of_the_row) {
  read_row like = measured(112 << 10, 32, 1);
  like.fallbacks.direct.use = "on";
  like.asked.seconds = 1.5;
  const std::string line = tools::command_line(tools::fio_arguments({"/a b/it's:1"}, like, true));
  EXPECT_THAT(line, HasSubstr(R"('--filename=/a b/it'\''s\:1')"));
  for (const char* part :
       {"fio --name", " --bs=114688 ", "--rw=randread", "--iodepth=32 ", "--iodepth_batch_submit=8 ", "--direct=1",
        "--runtime=1500ms", "--mem=mmaphuge", "--fixedbufs=1", "--thread", "--registerfiles=1"}) {
    EXPECT_THAT(line, HasSubstr(part));
  }
  like.asked.pattern = read_pattern::sequential;
  like.asked.threads = 2;
  like.fallbacks.direct.use = "off";
  const std::string other = tools::command_line(tools::fio_arguments({"/a"}, like, false));
  for (const char* part : {"--rw=read ", "--direct=0", "--numjobs=2"}) EXPECT_THAT(other, HasSubstr(part));
}

TEST(bench_fio, figures_are_bytes_by_wall_time_and_cpu_of_all_jobs) {
  const tools::fio_figures found = tools::parse_fio(
      R"(note{"jobs":[{"error":0,"job_runtime":4000,"usr_cpu":5,"sys_cpu":20,"read":{"io_bytes":4294967296,"runtime":2000}}]})");
  EXPECT_DOUBLE_EQ(found.gib_per_s, 2);
  EXPECT_DOUBLE_EQ(found.cpu_s_per_gib, 0.25);
  for (const char* wrong : {"", "{", "{}", R"({"jobs":[]})"})
    EXPECT_THROW(static_cast<void>(tools::parse_fio(wrong)), error) << wrong;
}

// The kernel gives a ring's locked memory back late: without patience every second row is one of preadv.
TEST(bench_fallbacks, each_row_waits_for_the_locked_memory_of_the_row_before) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const temporary_directory directory;
  fs::permissions(directory.path(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  const std::string path = (directory.path() / "f").string();
  tools::create_bench_file(path, 1 << 20, {});
  const std::string limited =
      "exec setpriv --reuid 65534 --regid 65534 --clear-groups prlimit --memlock=65536:65536 "
      "\"$LEAT_COMMAND\" bench read \"$0\" --block 4K --seconds 0.02 --json ";
  std::atomic<int> running{0};
  const auto rows_of = [&](const std::string& options) {
    return json::parse(tools::run_program({"sh", "-c", limited + options, path}, {}, running)).at("rows");
  };
  json fallbacks;
  try {
    fallbacks = rows_of("--fallbacks");
  } catch (const error& failed) {
    GTEST_SKIP() << "cannot run as another user: " << failed.what();
  }
  if (fallbacks.at(0).at("reader") != "io_uring") GTEST_SKIP() << "no ring within 64 KiB of locked memory";
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(fallbacks.at(k).at("reader"), "io_uring") << fallbacks.at(k);
    EXPECT_EQ(fallbacks.at(k).at("registered_buffers"), "off");
    EXPECT_FALSE(fallbacks.at(k).contains("off_label"));
  }
  const json threads = rows_of("--threads 16").at(0).at("reader");
  EXPECT_TRUE(threads == "io_uring and preadv" || threads == "io_uring") << threads;
}

// fio has registered buffers, huge pages and io_uring in any case.
TEST(bench_command, of_the_fallbacks_fio_is_beside_that_with_all_of_them) {
  if (std::system("fio --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "fio is not installed";
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  tools::create_bench_file(path, 1 << 20, {});
  const ended process =
      run({"bench", "read", path, "--block", "4K", "--seconds", "0.02", "--fallbacks", "--fio", "--json"});
  ASSERT_EQ(process.exit_code, 0) << process.err;
  const json told = process.json();
  for (const json& row : told.at("rows")) EXPECT_EQ(row.contains("fio"), row.at("fallback") == "nothing left out");
  EXPECT_EQ(told.at("fio_commands").size(), 1U);
}

TEST(bench_command, without_fio_says_how_to_get_it) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  command process({"bench", "read", path, "--create", "1MiB", "--block", "4K", "--seconds", "0.02", "--fio"},
                  command::streams::pipes, {"PATH=" + directory.path().string()});
  const ended result = process.wait();
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result, "leat bench read: --fio: fio is not installed; `apt install fio`");
}

TEST(bench_command, lays_no_file_out_for_what_cannot_be_measured) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  const auto refused = [&](const std::vector<std::string>& more, int code, const std::string& why) {
    std::vector<std::string> arguments{"bench", "read", path, "--create", "1MiB", "--seconds", "0.02"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    command process(arguments, command::streams::pipes, {"PATH=" + directory.path().string()});
    const ended result = process.wait();
    EXPECT_EQ(result.exit_code, code);
    EXPECT_EQ(result.out, "");
    expect_one_line(result, "leat bench read: " + why);
    EXPECT_FALSE(fs::exists(path)) << why;
  };
  refused({"--block", "1GiB", "--depth", "4096", "--threads", "64"}, 2,
          "a block of 1.00 GiB x depth 4096 x 64 threads takes more than half of the ");
  refused({"--block", "2MiB"}, 2, "--create 1.00 MiB is less than a block of 2.00 MiB; give a larger one");
  refused({"--sweep"}, 2, "--create 1.00 MiB is less than a block of 8.00 MiB; give a larger one");
  refused({"--block", "4K", "--sweep", "--plot", path + ".svg"}, 1, "--plot: gnuplot is not installed");
}

TEST(bench_command, a_plot_is_drawn_by_gnuplot_or_says_how_to_get_it) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  const std::string plot = (directory.path() / "curve.svg").string();
  tools::create_bench_file(path, 1 << 20, {});
  const std::vector<std::string> arguments = {"bench",   "read",      path,   "--block", "4K",
                                              "--sweep", "--seconds", "0.02", "--plot",  plot};
  command without(arguments, command::streams::pipes, {"PATH=" + directory.path().string()});
  const ended refused = without.wait();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "") << "said before anything is measured";
  expect_one_line(refused, "leat bench read: --plot: gnuplot is not installed; `apt install gnuplot-nox`");
  EXPECT_FALSE(fs::exists(plot));
  EXPECT_EQ(run({"bench", "read", path, "--plot", plot}).exit_code, 2) << "there is nothing to draw without --sweep";
  if (std::system("gnuplot --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const ended drawn = run(arguments);
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  const std::string svg = text_of(plot);
  EXPECT_THAT(svg, HasSubstr("<svg"));
  EXPECT_THAT(svg, HasSubstr("4.00 KiB"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

// Of the line of the table that ends so; the rate of samples, where each is a read.
std::string iops_of(const std::string& table, const std::string& fallback) {
  for (const std::string& line : lines_of(table)) {
    if (!line.ends_with("  " + fallback)) continue;
    std::istringstream words(line);
    const std::vector<std::string> found{std::istream_iterator<std::string>(words), {}};
    return found.at(9);  // Size and unit are two.
  }
  return "no line of " + fallback;
}

TEST(bench_command, a_plot_that_cannot_be_written_is_said_before_anything_is_measured) {
  if (std::system("gnuplot --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  tools::create_bench_file(path, 1 << 20, {});
  const auto sweep_to = [&](const std::string& plot, const std::string& seconds) {
    return run({"bench", "read", path, "--block", "4K", "--sweep", "--seconds", seconds, "--plot", plot});
  };
  const std::string nowhere = (directory.path() / "none" / "x.svg").string();
  const ended refused = sweep_to(nowhere, "600");
  EXPECT_EQ(refused.exit_code, 1);
  expect_one_line(refused, "leat bench read: cannot write " + nowhere + ": No such file or directory; make its");
  const ended is_directory = sweep_to(directory.path().string(), "600");
  EXPECT_EQ(is_directory.exit_code, 2);
  expect_one_line(is_directory,
                  "leat bench read: cannot write " + directory.path().string() + ": Is a directory; name a file");
  EXPECT_FALSE(fs::exists(directory.path().string() + ".partial"));
}

TEST(bench_command, what_was_measured_is_printed_where_the_plot_fails) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  tools::create_bench_file(path, 1 << 20, {});
  const fs::path gnuplot = directory.path() / "gnuplot";  // that is installed, and cannot draw
  std::ofstream(gnuplot) << "#!/bin/sh\n[ \"$1\" = --version ]\n";
  fs::permissions(gnuplot, fs::perms::owner_all);
  const std::string plot = (directory.path() / "curve.svg").string();
  command process({"bench", "read", path, "--block", "4K", "--sweep", "--seconds", "0.02", "--plot", plot},
                  command::streams::pipes, {"PATH=" + directory.path().string()});
  const ended failed = process.wait();
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.out, HasSubstr("is the smallest with 95 % of the best rate"));
  EXPECT_THAT(failed.err,
              HasSubstr("leat bench read: --plot: gnuplot ended with 1; the figures are in what was printed"));
  EXPECT_FALSE(fs::exists(plot));
  EXPECT_FALSE(fs::exists(plot + ".partial"));
}

TEST(bench_command, replays_the_reads_of_an_epoch) {
  const photo_folder folder;
  const std::string photos = folder.path().string();
  const ended process =
      run({"bench", "read", photos, "--pattern", "extents", "--threads", "2", "--seconds", "0.05", "--json"});
  ASSERT_EQ(process.exit_code, 0) << process.err;
  EXPECT_EQ(process.json().at("epoch").at("samples"), 12);
  EXPECT_EQ(process.json().at("epoch").at("files"), 12);
  const json row = process.json().at("rows").at(0);
  EXPECT_EQ(row.at("pattern"), "extents");
  EXPECT_EQ(row.at("block"), process.json().at("epoch").at("read_bytes_mean"));
  EXPECT_GT(row.at("gib_per_s").get<double>(), 0);
  EXPECT_DOUBLE_EQ(row.at("samples_per_s").get<double>(), row.at("iops").get<double>()) << "a picture is a read";
  const std::string tokens = file_of(folder.path() / "t.bin", 20'000);
  const ended windows = run({"bench", "read", tokens, "--pattern", "extents", "--tokens", "100", "--windows", "tiled",
                             "--token-type", "u32", "--no-shuffle", "--seconds", "0.02", "--json"});
  ASSERT_EQ(windows.exit_code, 0) << windows.err;
  EXPECT_EQ(windows.json().at("epoch").at("samples"), 49);
  EXPECT_EQ(windows.json().at("epoch").at("reads"), 1) << "in their order they are one";
  const ended text = run({"bench", "read", photos, "--pattern", "extents", "--sweep", "--seconds", "0.02"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("the reads of an epoch of 12 samples: 12 reads of 12 files"));
  EXPECT_THAT(text.out, HasSubstr("samples/s: an epoch in"));
  const ended fallbacks = run({"bench", "read", photos, "--pattern", "extents", "--fallbacks", "--seconds", "0.05"});
  ASSERT_EQ(fallbacks.exit_code, 0) << fallbacks.err;
  EXPECT_THAT(fallbacks.out,
              HasSubstr("  the drive gives training " + iops_of(fallbacks.out, "nothing left out") + " samples/s"));
  for (const char* option : {"--fio", "--block=4K", "--create=1MiB"}) {
    const ended refused = run({"bench", "read", photos, "--pattern", "extents", option});
    EXPECT_EQ(refused.exit_code, 2);
    expect_one_line(refused, "leat bench read: --pattern extents reads what a dataset has");
  }
}

// It is read only, by its name; its size is what /sys says.
TEST(bench_drive, a_block_device_has_the_size_that_sys_says) {
  const temporary_directory directory;
  EXPECT_EQ(tools::block_device_bytes(directory.path().string()), 0U) << "no device";
  for (const fs::directory_entry& each : fs::directory_iterator("/dev")) {
    struct stat found{};
    if (!each.is_block_file() || ::stat(each.path().c_str(), &found) != 0) continue;
    const std::string number = std::to_string(major(found.st_rdev)) + ":" + std::to_string(minor(found.st_rdev));
    fs::create_directories(directory.path() / number);
    std::ofstream(directory.path() / number / "size") << "2048\n";
    EXPECT_EQ(tools::block_device_bytes(each.path().string(), directory.path()), 1U << 20);
    return;
  }
  GTEST_SKIP() << "no block device in /dev";
}

TEST(bench_command, the_words_of_fio_are_understood) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  tools::create_bench_file(path, 1 << 20, {});
  const ended process = run({"bench", "read", path, "--bs", "8k", "--rw", "read", "--runtime", "0.05s", "--numjobs",
                             "2", "--iodepth", "4", "--ramp", "0.02", "--size", "64K", "--json"});
  ASSERT_EQ(process.exit_code, 0) << process.err;
  const json row = process.json().at("rows").at(0);
  EXPECT_EQ(row.at("block"), 8192);
  EXPECT_EQ(row.at("pattern"), "sequential");
  EXPECT_EQ(row.at("threads"), 2);
  EXPECT_EQ(row.at("depth"), 4);
  std::uint64_t reads = 0;
  for (const json& each : row.at("latency")) reads += each.at("reads").get<std::uint64_t>();
  EXPECT_GT(reads, 0U);
  const ended refused = run({"bench", "read", path, "--bs", "large"});
  expect_one_line(refused, "leat bench read: --block 'large' will not do; give a size");
  const ended too_large = run({"bench", "read", path, "--size", "2MiB"});
  EXPECT_EQ(too_large.exit_code, 2);
  expect_one_line(too_large, "leat bench read: " + path + " has 1.00 MiB, less than --size 2.00 MiB");
  const ended text = run({"bench", "read", path, "--bs", "8k", "--seconds", "0.02", "--histogram"});
  EXPECT_THAT(text.out, HasSubstr("latency of reads of 8.00 KiB"));
  EXPECT_THAT(text.out, HasSubstr("100.00 %"));
}

TEST(bench_command, a_changed_byte_is_found_by_verify) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  tools::create_bench_file(path, 1 << 20, {});
  const std::vector<std::string> verified = {"bench",      "read",      path,   "--block",  "5000",  "--pattern",
                                             "sequential", "--seconds", "0.05", "--verify", "--json"};
  const ended right = run(verified);
  EXPECT_EQ(right.exit_code, 0) << right.err;
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(100'001) << '?';
  const ended wrong = run(verified);
  EXPECT_EQ(wrong.exit_code, 1);
  expect_one_line(
      wrong, "leat bench read: --verify: a read of 5000 bytes at 100000 has not what --create wrote, from byte 100001");
  const ended other = run({"bench", "read", file_of(directory.path() / "g", 1 << 20), "--verify"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("is no file that --create made"));
}

// Memory is no drive: what is read twice was dropped between, or the report says so.
TEST(bench_command, through_the_page_cache_the_rate_is_the_drives_or_is_called_warm) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  tools::create_bench_file(path, 8 << 20, {});
  for (const char* pattern : {"random", "sequential"}) {
    const ended process = run({"bench", "read", path, "--direct", "off", "--block", "64K", "--depth", "2", "--pattern",
                               pattern, "--seconds", "0.3", "--json"});
    ASSERT_EQ(process.exit_code, 0) << process.err;
    const json told = process.json();
    const std::string cache = told.at("rows").at(0).at("page_cache");
    if (cache == "warm") {
      EXPECT_THAT(told.at("caveats").dump(), HasSubstr("page cache, warm, and not the drive"));
      continue;
    }
    EXPECT_EQ(cache, "cold");
    EXPECT_TRUE(told.at("caveats").empty()) << told.at("caveats");
    const auto left = tools::page_cache_of({path}).bytes();
    EXPECT_TRUE(!left || *left <= (8U << 20)) << "it was read";
  }
  const ended memory = run({"bench", "read", path, "--block", "64K", "--seconds", "0.05", "--json"});
  const json row = memory.json().at("rows").at(0);
  EXPECT_EQ(row.at("page_cache") == "not used", row.at("direct") == "on");
}

TEST(bench_command, a_file_of_holes_is_named) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  std::ofstream(path).flush();
  fs::resize_file(path, 4 << 20);
  if (tools::bytes_on_drive(path) == 4U << 20) GTEST_SKIP() << "the file system has no holes";
  const ended told = run({"bench", "read", path, "--block", "64K", "--seconds", "0.02", "--json"});
  ASSERT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.json().at("caveats").dump(), HasSubstr("has holes: 0 B of its 4.00 MiB are on the drive"));
  EXPECT_THAT(run({"bench", "read", path, "--block", "64K", "--seconds", "0.02"}).out, HasSubstr("has holes: 0 B of"));
}

TEST(bench_command, fallbacks_are_side_by_side_and_a_sweep_ends_with_depths) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  tools::create_bench_file(path, 1 << 20, {});
  const ended fallbacks = run({"bench", "read", path, "--block", "4K", "--seconds", "0.02", "--fallbacks", "--json"});
  ASSERT_EQ(fallbacks.exit_code, 0) << fallbacks.err;
  const json rows = fallbacks.json().at("rows");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows.at(3).at("direct"), "off");
  EXPECT_EQ(rows.at(4).at("reader"), "preadv");
  EXPECT_EQ(rows.at(4).at("fallback"), "preadv");

  const ended text = run({"bench", "read", path, "--block", "4K", "--seconds", "0.02", "--fallbacks"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  for (const char* fallback : {"\n  backend ", "\n  registered buffers ", "\n  O_DIRECT ", "\n  huge pages "}) {
    EXPECT_THAT(text.out, HasSubstr(fallback)) << "what is in use and why";
  }

  const ended sweep = run({"bench", "read", path, "--block", "4K", "--seconds", "0.02", "--sweep", "--json"});
  ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
  EXPECT_EQ(sweep.json().at("rows").size(), 8U);
  EXPECT_EQ(sweep.json().at("smallest_depths").at(0).at("block"), 4096);
  EXPECT_EQ(run({"bench", "read", path, "--sweep", "--fallbacks"}).exit_code, 2);
  EXPECT_EQ(run({"bench", "read", path, "--sweep", "--depth", "4"}).exit_code, 2);
}

TEST(bench_command, makes_a_file_and_measures_it) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  for (const char* pattern : {"random", "sequential"}) {
    for (const char* backend : {"auto", "preadv"}) {
      SCOPED_TRACE(std::string(pattern) + " " + backend);
      const ended process =
          run({"bench", "read", path, "--create", "4MiB", "--block", "64K", "--depth", "4", "--threads", "2",
               "--pattern", pattern, "--reader", backend, "--seconds", "0.05", "--json"});
      ASSERT_EQ(process.exit_code, 0) << process.err;
      const json row = process.json().at("rows").at(0);
      EXPECT_EQ(row.at("block"), 65536);
      EXPECT_EQ(row.at("depth"), 4);
      EXPECT_EQ(row.at("threads"), 2);
      EXPECT_EQ(row.at("pattern"), pattern);
      EXPECT_GT(row.at("gib_per_s").get<double>(), 0);
      EXPECT_NEAR(row.at("iops").get<double>() * 65536 / (1 << 30), row.at("gib_per_s").get<double>(), 1e-6);
      EXPECT_GT(row.at("p50_us").get<double>(), 0);
      EXPECT_LE(row.at("p50_us").get<double>(), row.at("p99_us").get<double>());
      EXPECT_LE(row.at("p999_us").get<double>(), row.at("max_us").get<double>());
      EXPECT_GT(row.at("cpu_s_per_gib").get<double>(), 0);
      EXPECT_TRUE(row.at("system_cpu_s_per_gib").is_null()) << "ticks of 10 ms tell nothing of so short a run";
    }
  }
  const ended odd =
      run({"bench", "read", path, "--block", "5000", "--pattern", "sequential", "--seconds", "0.05", "--json"});
  EXPECT_EQ(odd.exit_code, 0) << odd.err;
  const ended text = run({"bench", "read", path, "--block", "4K", "--seconds", "0.05", "--direct", "off"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("GiB/s"));
  EXPECT_THAT(text.out, HasSubstr("huge pages"));
  const ended direct = run({"bench", "read", path, "--block", "4K", "--seconds", "0.05"});
  EXPECT_EQ(direct.exit_code, 0) << direct.err;
  EXPECT_THAT(direct.out, ::testing::Not(HasSubstr("an epoch"))) << "there is none";
}

TEST(bench_command, mistakes_are_one_line) {
  const temporary_directory directory;
  const std::string small = file_of(directory.path() / "small", 100);
  const std::string none = (directory.path() / "none").string();
  const std::string pipe = (directory.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::vector<std::tuple<std::vector<std::string>, int, std::string>> mistakes = {
      {{"bench"},
       2,
       "leat bench: its only command is read, as `leat bench read PATH... [options]`; `leat bench read --help` says "
       "more"},
      {{"bench", "write"}, 2, "leat bench: unknown command 'write'"},
      {{"bench", "read"}, 2, "leat bench read: PATH"},
      {{"bench", "read", small, "--depht", "3"}, 2, "leat bench read: unknown option '--depht'; did you mean --depth?"},
      {{"bench", "read", small, "--poll"}, 2, "leat bench read: unknown option '--poll'; drives are no longer polled"},
      {{"bench", "read", small, "--seconds", "0"}, 2, "leat bench read: --seconds '0'"},
      {{"bench", "read", small, "--block", "4K"}, 2, "leat bench read: " + small + " has 100 B"},
      {{"bench", "read", "/dev/null"}, 2, "leat bench read: /dev/null is a character device; give a regular file"},
      {{"bench", "read", pipe}, 2, "leat bench read: " + pipe + " is a pipe; give a regular file"},
      {{"bench", "read", small, pipe, "--direct", "off"}, 2, "leat bench read: " + pipe + " is a pipe"},
      {{"bench", "read", none + "_*.npy"},
       2,
       "leat bench read: " + none + "_*.npy: no such file; name files one by one"},
      {{"bench", "read", small + "/x"}, 2, "leat bench read: " + small + "/x: a part of the path is not a directory"},
      {{"bench", "read", small, "--create", "1MiB"}, 2, "leat bench read: " + small + " is there"},
      {{"bench", "read", small, "--block", "1024GiB", "--depth", "4096", "--threads", "64"},
       2,
       "leat bench read: a block of 1.00 TiB x depth 4096 x 64 threads takes more than half of the "},
      {{"bench", "read", small, none, "--create", "1MiB"}, 2, "leat bench read: --create makes one file"},
      {{"bench", "read", none}, 2, "leat bench read: " + none + ": no such file; check the path, or make a file there"},
      {{"bench", "read", directory.path().string()},
       2,
       "leat bench read: " + directory.path().string() + " is a directory; give files, or --pattern extents"},
      {{"bench", "read", none, "--pattern", "extents"}, 2, "leat bench read: "},
  };
  for (const auto& [arguments, code, start] : mistakes) {
    SCOPED_TRACE(start);
    const ended process = run(arguments);
    EXPECT_EQ(process.exit_code, code);
    EXPECT_EQ(process.out, "");
    expect_one_line(process, start);
  }
  const ended help = run({"bench", "read", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("leat bench read PATH... [options]"));
}

TEST(bench_command, ctrl_c_ends_measuring_and_removes_a_file_begun) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  tools::create_bench_file(path, 1 << 20, {});
  command process({"bench", "read", path, "--block", "4K", "--seconds", "600"}, command::streams::terminal,
                  {"TERM=xterm"});
  process.read_until("reading");
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 130);

  const std::string begun = (directory.path() / "begun").string();
  command creating({"bench", "read", begun, "--create", "4GiB", "--seconds", "0.01"}, command::streams::pipes, {},
                   command::start::interrupted);
  const ended result = creating.wait();
  EXPECT_EQ(result.exit_code, 130);
  expect_one_line(result, "leat bench read: stopped by Ctrl-C");
  EXPECT_FALSE(fs::exists(begun));
  EXPECT_FALSE(fs::exists(begun + ".partial"));
}

// A file system that discards what it frees makes whoever closes a large file wait, and we say so before we do.
TEST(bench_file, says_what_is_left_to_free_before_it_is_freed) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "f").string();
  std::stop_source stopped;
  stopped.request_stop();
  std::uint64_t told = 0;
  bool gone = false;
  const auto removed = [&](std::uint64_t bytes) {
    told = bytes;
    gone = fs::is_empty(directory.path());
  };
  EXPECT_THROW(tools::create_bench_file(path, 8 << 20, stopped.get_token(), {.removed = removed}), error);
  EXPECT_TRUE(gone);
  EXPECT_LE(told, 9U << 20) << "what was reserved, where the file system reserves";
}

TEST(child, gives_what_a_program_writes_and_names_how_it_failed) {
  std::atomic<int> running{0};
  EXPECT_EQ(tools::run_program({"cat"}, "two\nlines\n", running), "two\nlines\n");
  EXPECT_EQ(tools::run_program({"sh", "-c", "echo $0 >&2; echo $1", "a", "b c"}, {}, running), "b c\n");
  EXPECT_EQ(running.load(), 0);
  const auto failure = [&](const std::vector<std::string>& arguments) {
    try {
      static_cast<void>(tools::run_program(arguments, {}, running));
    } catch (const error& failed) {
      return std::pair(failed.code(), std::string(failed.what()));
    }
    return std::pair(errc::corrupt, std::string());
  };
  EXPECT_EQ(failure({"leat-has-no-such-program"}),
            std::pair(errc::not_found, std::string("leat-has-no-such-program is not installed")));
  EXPECT_EQ(failure({"sh", "-c", "exit 3"}), std::pair(errc::io, std::string("sh ended with 3")));
  EXPECT_EQ(failure({"sh", "-c", "kill -9 $$"}), std::pair(errc::io, std::string("sh was killed by signal 9")));
}

}  // namespace
}  // namespace leat::testing
