#include "base/hasher.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/loader_state.hpp>
#include <leat/own_samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const state_descriptions> described(std::uint64_t seed = 7, std::string_view format = "tar") {
  description options;
  options.add("seed", seed);
  options.add("on_corrupt", "skip");
  description dataset;
  dataset.add("format", format);
  dataset.add("samples", 500);
  description fields;
  fields.add("jpg.step 1", "random_flip with probability 0.5");
  description order;
  order.add("order", "shuffled");
  order.add("seed", seed);
  return std::make_shared<const state_descriptions>(options, dataset, fields, order);
}

loader_state some_state() {
  loader_state state;
  state.epoch = 3;
  state.batch = 417;
  state.seed = 7;
  state.rank = 2;
  state.world = 8;
  state.global_batch_size = 256;
  state.batch_size = 64;
  state.counted = {.planned = 1,
                   .samples = 2,
                   .quarantined = 3,
                   .substituted = 4,
                   .bytes = 5,
                   .batches = 6,
                   .epochs_finished = 7,
                   .epoch_corrupt = 8,
                   .epoch_unreadable = 9};
  state.run_digest.emplace();
  for (std::size_t i = 0; i < 16; ++i) state.run_digest->bytes[i] = static_cast<std::uint8_t>(i * 17);
  state.journal_bytes = 1000;
  state.lines_bytes = 2000;
  state.descriptions = described();
  return state;
}

// What was thrown, for expectations about its kind and words.
template <class Function>
error thrown_by(Function&& function) {
  try {
    function();
  } catch (const error& thrown) {
    return thrown;
  }
  ADD_FAILURE() << "nothing was thrown";
  return error(errc::usage, "");
}

TEST(loader_state, comes_back_from_its_bytes_as_it_was) {
  const loader_state state = some_state();
  const std::vector<std::byte> bytes = state.bytes();
  EXPECT_LE(bytes.size(), 256U + (64U << 10));
  const loader_state read = loader_state::from_bytes(bytes);
  EXPECT_EQ(read.epoch, state.epoch);
  EXPECT_EQ(read.batch, state.batch);
  EXPECT_EQ(read.seed, state.seed);
  EXPECT_EQ(read.rank, state.rank);
  EXPECT_EQ(read.world, state.world);
  EXPECT_EQ(read.global_batch_size, state.global_batch_size);
  EXPECT_EQ(read.batch_size, state.batch_size);
  EXPECT_EQ(read.counted, state.counted);
  EXPECT_EQ(read.run_digest, state.run_digest);
  EXPECT_EQ(read.journal_bytes, state.journal_bytes);
  EXPECT_EQ(read.lines_bytes, state.lines_bytes);
  EXPECT_EQ(read.descriptions->json(), state.descriptions->json());
  EXPECT_EQ(read.bytes(), bytes);
  EXPECT_TRUE(differences(*read.descriptions, *state.descriptions).empty());
}

TEST(loader_state, keeps_which_samples_are_too_large_and_knows_where_nothing_is_said) {
  loader_state state = some_state();
  EXPECT_FALSE(loader_state::from_bytes(state.bytes()).limits) << "as an older leat saves it";
  for (const sample_limits& limits :
       {sample_limits{.scratch_bytes = 1 << 20, .value_bytes = sample_limits::none},
        sample_limits{.scratch_bytes = sample_limits::none, .value_bytes = 7}, sample_limits{.scratch_bytes = 0},
        sample_limits{.scratch_bytes = sample_limits::none - 1, .value_bytes = 1}}) {
    state.limits = limits;
    const loader_state read = loader_state::from_bytes(state.bytes());
    EXPECT_EQ(read.limits, limits);
    EXPECT_EQ(read.bytes(), state.bytes());
    EXPECT_NO_THROW(check_resumes(read, *some_state().descriptions)) << "another budget is no other run";
  }
}

TEST(loader_state, that_was_moved_has_no_digest_of_the_run) {
  const loader_state moved = some_state().at(2, 10);
  EXPECT_EQ(moved.epoch, 2U);
  EXPECT_EQ(moved.batch, 10U);
  EXPECT_FALSE(moved.run_digest);
  EXPECT_FALSE(loader_state::from_bytes(moved.bytes()).run_digest);
}

TEST(loader_state, is_refused_with_any_flipped_bit) {
  std::vector<std::byte> bytes = some_state().bytes();
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(thrown_by([&] { static_cast<void>(loader_state::from_bytes(bytes)); }).code(), errc::format) << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_NO_THROW(static_cast<void>(loader_state::from_bytes(bytes)));
}

TEST(loader_state, is_refused_where_it_was_cut_or_something_was_added) {
  std::vector<std::byte> bytes = some_state().bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(thrown_by([&] { static_cast<void>(loader_state::from_bytes(std::span(bytes).first(size))); }).code(),
              errc::format)
        << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(thrown_by([&] { static_cast<void>(loader_state::from_bytes(bytes)); }).code(), errc::format);
}

// As somebody might make it: with a checksum that is right.
std::vector<std::byte> signed_again(std::vector<std::byte> bytes) {
  hasher hash;
  hash.add(std::span<const std::byte>(bytes).first(24));
  hash.add(std::span<const std::byte>(bytes).subspan(40));
  const digest sum = hash.finish();
  std::memcpy(bytes.data() + 24, sum.bytes.data(), sum.bytes.size());
  return bytes;
}

TEST(loader_state, of_a_newer_version_is_unsupported) {
  std::vector<std::byte> bytes = some_state().bytes();
  bytes[8] = std::byte{2};
  EXPECT_EQ(thrown_by([&] { static_cast<void>(loader_state::from_bytes(bytes)); }).code(), errc::format);
  const error newer = thrown_by([&] { static_cast<void>(loader_state::from_bytes(signed_again(bytes), "run.state")); });
  EXPECT_EQ(newer.code(), errc::unsupported);
  EXPECT_THAT(newer.what(), HasSubstr("run.state: version 2"));
}

TEST(loader_state, of_another_content_version_is_unsupported) {
  std::vector<std::byte> bytes = some_state().bytes();
  bytes[12] ^= std::byte{4};
  const error other = thrown_by([&] { static_cast<void>(loader_state::from_bytes(signed_again(bytes), "run.state")); });
  EXPECT_EQ(other.code(), errc::unsupported);
  EXPECT_THAT(other.what(), HasSubstr("run.state: its batches have content version"));
}

TEST(loader_state, with_hostile_sizes_and_texts_is_refused) {
  const std::vector<std::byte> bytes = some_state().bytes();
  const auto refused = [](std::vector<std::byte> made) {
    const error thrown = thrown_by([&] { static_cast<void>(loader_state::from_bytes(signed_again(std::move(made)))); });
    EXPECT_EQ(thrown.code(), errc::format) << thrown.what();
  };
  for (const std::size_t place : {std::size_t{16}, std::size_t{20}}) {
    for (const std::uint32_t size : {0U, 1U, 255U, 257U, 65'536U, 65'537U, 0x7fff'ffffU, 0xffff'ffffU}) {
      std::vector<std::byte> made = bytes;
      std::memcpy(made.data() + place, &size, sizeof size);
      if (made != bytes) refused(std::move(made));
    }
  }
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("{}"), std::string(60'000, '['),
        std::string("{\"options\":7,\"dataset\":{},\"fields\":{},\"order\":{}}"),
        std::string("{\"options\":{\"seed\":7},\"dataset\":{},\"fields\":{},\"order\":{}}"),
        std::string("{\"options\":[\"7\"],\"dataset\":{},\"fields\":{},\"order\":{}}"),
        std::string("{\"options\":{},\"dataset\":{},\"fields\":{},\"order\":{}}"), std::string(10, '\0')}) {
    std::vector<std::byte> made(bytes.begin(), bytes.begin() + 256);
    for (const char letter : text) made.push_back(static_cast<std::byte>(letter));
    const auto size = static_cast<std::uint32_t>(text.size());
    std::memcpy(made.data() + 20, &size, sizeof size);
    refused(std::move(made));
  }
}

TEST(loader_state, keeps_long_descriptions_as_digests_and_still_tells_them_apart) {
  const auto long_one = [](std::string_view last) {
    description dataset;
    for (int i = 0; i < 1000; ++i) dataset.add("field " + std::to_string(i), std::string(100, 'x'));
    dataset.add("last", last);
    description options;
    options.add("seed", 7);
    return std::make_shared<const state_descriptions>(options, dataset, description(), description());
  };
  loader_state state;
  state.descriptions = long_one("a");
  const std::vector<std::byte> bytes = state.bytes();
  EXPECT_LE(bytes.size(), 256U + (64U << 10));
  loader_state read = loader_state::from_bytes(bytes);
  EXPECT_NO_THROW(check_resumes(read, *long_one("a")));
  EXPECT_THAT(thrown_by([&] { check_resumes(read, *long_one("b")); }).what(),
              HasSubstr("the dataset's description is "));
}

TEST(loader_state, of_a_run_with_something_unnamed_is_not_saved) {
  description dataset;
  dataset.add_unnamed("function", "name it: function_options::described_as");
  loader_state state;
  state.descriptions = std::make_shared<const state_descriptions>(description(), dataset, description(), description());
  const error thrown = thrown_by([&] { static_cast<void>(state.bytes()); });
  EXPECT_EQ(thrown.code(), errc::usage);
  EXPECT_THAT(thrown.what(), HasSubstr("the dataset's function"));
  EXPECT_THAT(thrown.what(), HasSubstr("function_options::described_as"));
}

TEST(check_resumes, names_what_differs_with_both_values_and_the_file) {
  loader_state state = some_state();
  state.file = "run.state";
  EXPECT_NO_THROW(check_resumes(state, *described()));
  const error seed = thrown_by([&] { check_resumes(state, *described(8)); });
  EXPECT_EQ(seed.code(), errc::usage);
  EXPECT_THAT(seed.what(), HasSubstr("seed is 8, and was 7 in run.state"));
  EXPECT_THAT(seed.what(), ::testing::Not(HasSubstr("order's seed"))) << "once is enough";
  const error format = thrown_by([&] { check_resumes(state, *described(7, "folder")); });
  EXPECT_THAT(format.what(), HasSubstr("the dataset's format is folder, and was tar in run.state"));
}

TEST(check_resumes, names_what_is_new_and_what_has_gone) {
  description before;
  before.add("seed", 7);
  before.add("mix", "cutmix");
  description now;
  now.add("seed", 7);
  now.add("last", "pad");
  loader_state state;
  state.file = "run.state";
  state.descriptions = std::make_shared<const state_descriptions>(before, description(), description(), description());
  const error thrown =
      thrown_by([&] { check_resumes(state, state_descriptions(now, description(), description(), description())); });
  EXPECT_THAT(thrown.what(), HasSubstr("last is pad, and run.state has none"));
  EXPECT_THAT(thrown.what(), HasSubstr("mix was cutmix in run.state, and is not there now"));
}

class state_files : public ::testing::Test {
 protected:
  testing::temporary_directory folder_;
  const std::filesystem::path path_ = folder_.path() / "run.state";
};

TEST_F(state_files, are_saved_and_loaded) {
  const loader_state state = some_state();
  for (int times = 0; times < 2; ++times) {
    state.save(path_);
    const loader_state read = loader_state::load(path_);
    EXPECT_EQ(read.bytes(), state.bytes());
    EXPECT_EQ(read.file, path_.string());
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(state_files, that_cannot_be_read_are_refused_by_name) {
  const auto fails = [&](errc code) {
    const error thrown = thrown_by([&] { static_cast<void>(loader_state::load(path_)); });
    EXPECT_EQ(thrown.code(), code) << thrown.what();
    EXPECT_THAT(thrown.what(), HasSubstr(path_.string()));
  };
  fails(errc::not_found);
  std::ofstream(path_, std::ios::binary) << "";
  fails(errc::format);
  std::ofstream(path_, std::ios::binary) << std::string(1 << 20, 'x');
  fails(errc::format);
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  fails(errc::format);
}

}  // namespace
}  // namespace leat
