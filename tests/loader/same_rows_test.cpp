// The same rows as .npy, HDF5 and Zarr, as the libraries of others wrote them (tests/data/rows/make.py): by the same order they are the
// same run, whatever filters and chunks they went through, and whether their -7 was written or is the fill value of chunks that were not.
#include "tests/loader/running.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/order.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::loader;
using testing::loader_options;
using testing::small_options;

struct form {
  std::string name;
  dataset samples;
  std::string member;
};

std::string path_of(const std::string& name) { return std::string(LEAT_TEST_DATA) + "/rows/" + name; }

// Each array of a file by itself: what else lies there has chunks of its own.
void add_each(const dataset& all, const std::string& name, std::vector<form>& forms,
              const std::function<dataset(const std::string& field)>& open) {
  for (const field_info& each : all.fields()) {
    if (each.kind == field_kind::tensor) forms.push_back({name + "/" + each.name, open(each.name), each.name});
  }
}

std::vector<form> all_forms() {
  std::vector<form> forms;
  for (const std::string name : {"earliest.h5", "latest.h5", "pytables.h5"}) {
    const std::string path = path_of(name);
    add_each(open_hdf5(path), name, forms,
             [&](const std::string& field) { return open_hdf5(path, {.fields = {field}}); });
  }
  for (const std::string name : {"old.zarr", "v2.zarr", "v3.zarr"}) {
    const std::string path = path_of(name);
    add_each(open_zarr(path), name, forms,
             [&](const std::string& field) { return open_zarr(path, {.fields = {field}}); });
  }
  return forms;
}

std::string digest_of(const dataset& samples, const std::string& member, const loader_options& how) {
  loader_options options = how;
  options.digests = true;
  options.epochs = 2;
  options.batch_size = 6;
  loader train(samples, options, array{"x"}.from(member));
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const batch& got : train.blocking()) EXPECT_GT(got.valid_rows(), 0U);
  }
  return train.state().run_digest.value().hex();
}

TEST(same_rows, have_one_digest_in_every_form_by_the_same_order) {
  const testing::watchdog dog("the same rows");
  const dataset npy = open_npy(path_of("rows.npy"), {.samples = npy_options::sample::row});
  const std::vector<form> forms = all_forms();
  EXPECT_EQ(forms.size(), 2U * 16 + 5 + 4 + 2 + 3);
  for (const bool shuffle : {false, true}) {
    loader_options options = small_options();
    options.shuffle = shuffle;
    const std::string expected = digest_of(npy, "npy", options);
    for (const form& each : forms) EXPECT_EQ(digest_of(each.samples, each.member, options), expected) << each.name;
  }
}

TEST(same_rows, of_blocks_that_are_as_long_have_one_digest_by_the_order_of_their_blocks) {
  const testing::watchdog dog("the same blocks");
  loader_options options = small_options();
  options.shuffle_blocks = 2;
  std::string expected;
  std::size_t compared = 0;
  for (const form& each : all_forms()) {
    const field_info info = each.samples.fields().front();
    if (!info.chunked || info.chunk_rows() != 4) continue;
    const std::string digest = digest_of(each.samples, each.member, options);
    if (expected.empty()) expected = digest;
    EXPECT_EQ(digest, expected) << each.name;
    ++compared;
  }
  EXPECT_GT(compared, 25U);
}

}  // namespace
}  // namespace leat
