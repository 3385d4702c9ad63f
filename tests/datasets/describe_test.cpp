// What a dataset says of itself: the same for the same data wherever it lies, something else for other data.
#include "datasets/model/model.hpp"
#include "datasets/views/token_windows.hpp"
#include "io/files/file_table.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/description.hpp>
#include <leat/field.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_records.hpp>
#include <leat/open_tar.hpp>
#include <leat/open_tokens.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <boost/asio/awaitable.hpp>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using testing::counting;
using testing::little;
using testing::temporary_directory;
using testing::write_file;

description described(const dataset& samples) {
  description out;
  samples.model()->describe(out);
  return out;
}

void expect_same(const dataset& a, const dataset& b) {
  EXPECT_EQ(described(a).to_json(), described(b).to_json());
  EXPECT_TRUE(described(a).unnamed().empty());
}
void expect_different(const dataset& a, const dataset& b, const char* what) {
  EXPECT_NE(described(a).digest(), described(b).digest()) << what << ": " << described(b).to_json();
}

// A folder of pictures, as it is or changed.
dataset folder(const fs::path& root, const std::function<void(const fs::path&)>& change = {}) {
  for (const char* const name : {"cats/1.jpg", "cats/2.jpg", "dogs/deep/3.jpg", "dogs/4.png"}) {
    write_file(root / name, name);
  }
  if (change) change(root);
  return open_folder(root.string());
}

TEST(description_of_a_folder, is_the_same_wherever_it_lies) {
  const temporary_directory here;
  const dataset first = folder(here.path() / "photos");
  expect_same(first, folder(here.path() / "mounted/elsewhere/photos"));
  expect_same(first, open_folder((here.path() / "photos/").string()));
  EXPECT_NE(described(first).to_json().find("\"format\":\"folder\""), std::string::npos);
  EXPECT_EQ(described(first).to_json().find(here.path().string()), std::string::npos);
}

TEST(description_of_a_folder, changes_with_names_sizes_classes_and_what_is_in_it) {
  const temporary_directory root;
  const dataset first = folder(root.path() / "first");
  int number = 0;
  const auto differs = [&](const char* what, const std::function<void(const fs::path&)>& change) {
    expect_different(first, folder(root.path() / std::to_string(number++), change), what);
  };
  differs("another name", [](const fs::path& at) { fs::rename(at / "cats/1.jpg", at / "cats/0.jpg"); });
  differs("another size", [](const fs::path& at) { write_file(at / "cats/1.jpg", "more than before"); });
  differs("one more", [](const fs::path& at) { write_file(at / "dogs/5.jpg", ""); });
  differs("one fewer", [](const fs::path& at) { fs::remove(at / "dogs/4.png"); });
  differs("another class", [](const fs::path& at) { fs::rename(at / "cats", at / "birds"); });
  differs("another class of the same files", [](const fs::path& at) {
    fs::create_directories(at / "dogs/x");
    fs::rename(at / "cats/2.jpg", at / "dogs/2.jpg");
  });
  differs("another folder in a class", [](const fs::path& at) { fs::rename(at / "dogs/deep", at / "dogs/deeper"); });
}

// Two shards of two samples each.
std::vector<std::string> shards(const fs::path& root, std::string_view last = "seven") {
  fs::create_directories(root);
  std::vector<std::string> paths;
  for (const char* const name : {"a.tar", "b.tar"}) {
    testing::archive made;
    made.file("1.txt", "one")
        .file("1.cls", "1")
        .file("2.txt", name[0] == 'b' ? last : "seven")
        .file("2.cls", "2")
        .end();
    paths.push_back(made.save(root / name));
  }
  return paths;
}

TEST(description_of_shards, is_the_same_wherever_they_lie) {
  const temporary_directory root;
  const dataset first = open_tar(shards(root.path() / "x"));
  expect_same(first, open_tar(shards(root.path() / "y/z")));
  EXPECT_EQ(described(first).to_json().find(root.path().string()), std::string::npos);
  // Relative paths, too.
  const fs::path before = fs::current_path();
  fs::current_path(root.path() / "x");
  const dataset relative = open_tar({"a.tar", "b.tar"});
  fs::current_path(before);
  expect_same(first, relative);
}

TEST(description_of_shards, changes_with_their_order_names_sizes_and_members) {
  const temporary_directory root;
  const std::vector<std::string> paths = shards(root.path() / "x");
  const dataset first = open_tar(paths);
  expect_different(first, open_tar({paths[1], paths[0]}), "another order");
  expect_different(first, open_tar({paths[0]}), "one fewer");
  // Of the same padded size: what the index has counted tells them apart.
  expect_different(first, open_tar(shards(root.path() / "y", "seven and a half")), "a member of another size");
  const std::vector<std::string> renamed = shards(root.path() / "z");
  fs::rename(renamed[1], root.path() / "z/c.tar");
  expect_different(first, open_tar({renamed[0], (root.path() / "z/c.tar").string()}), "another name");
}

TEST(description_of_rows, names_dtype_shape_places_and_columns) {
  const temporary_directory root;
  const auto rows = [&](const char* folder, const char* descr, const char* shape, const std::string& data) {
    return open_npy(
        write_file(root.path() / folder / "x.npy", testing::npy_text(testing::npy_dict(descr, shape), data)));
  };
  const std::string data = bytes_of(counting<float>(12));
  const dataset first = rows("a", "<f4", "3, 4", data);
  expect_same(first, rows("b", "<f4", "3, 4", data));
  expect_different(first, rows("c", "<i4", "3, 4", data), "another dtype");
  expect_different(first, rows("d", "<f4", "4, 3", data), "another shape");
  const dataset labels = rows("e", "<i4", "3,", bytes_of(std::vector<std::int32_t>{1, 2, 3}));
  expect_same(labels, rows("f", "<i4", "3,", bytes_of(std::vector<std::int32_t>{1, 2, 3})));
  expect_different(labels, rows("g", "<i4", "3,", bytes_of(std::vector<std::int32_t>{1, 2, 4})), "another label");
}

TEST(description_of_records, names_the_header_that_is_left_out) {
  const temporary_directory root;
  const auto records = [&](const char* folder, const char* json) {
    write_file(root.path() / folder / "r.json", json);
    return open_records(write_file(root.path() / folder / "r.bin", std::string(40, 'x')));
  };
  const dataset first = records("a", R"({"fields": [{"name": "x", "dtype": "u8", "shape": [4]}], "records": 9})");
  expect_same(first, records("b", R"({"fields": [{"name": "x", "dtype": "u8", "shape": [4]}], "records": 9})"));
  expect_different(
      first,
      records("c", R"({"fields": [{"name": "x", "dtype": "u8", "shape": [4]}], "records": 9, "header_bytes": 4})"),
      "another header");
}

dataset windows_of(const std::string& path, const datasets::window_rule& rule) {
  return dataset(std::make_shared<datasets::token_windows>(open_tokens(path).model(), std::uint16_t{0}, rule));
}

TEST(description_of_tokens, names_type_documents_and_the_rule_of_windows) {
  const temporary_directory root;
  const std::string path = write_file(root.path() / "train.bin", bytes_of(counting<std::uint16_t>(400)));
  const std::string copy = write_file(root.path() / "copy/train.bin", bytes_of(counting<std::uint16_t>(400)));
  expect_same(open_tokens(path), open_tokens(copy));
  expect_different(open_tokens(path), open_tokens(path, {.type = dtype::i16}), "another type");
  const dataset windows = windows_of(path, {.length = 8});
  expect_same(windows, windows_of(copy, {.length = 8}));
  expect_different(windows, open_tokens(path), "no windows");
  expect_different(windows, windows_of(path, {.length = 9}), "another length");
  expect_different(windows, windows_of(path, {.length = 8, .order = window_order::tiled}), "another order");
  expect_different(windows, windows_of(path, {.length = 8, .documents = document_rule::mark}),
                   "another rule of documents");
}

dataset extents(const fs::path& root, std::uint64_t offset, std::int64_t label) {
  extent_list table;
  table.files = {write_file(root / "a.bin", "0123456789")};
  table.fields = {{"txt", {extent{0, 0, 2, 3, 0}, extent{0, 0, offset, 3, 0}}}};
  table.columns = {{"cls", {4, label}}};
  return from_extents(table);
}

TEST(description_of_extents, names_places_and_columns) {
  const temporary_directory root;
  const dataset first = extents(root.path() / "a", 5, 1);
  expect_same(first, extents(root.path() / "b", 5, 1));
  expect_different(first, extents(root.path() / "b", 6, 1), "another place");
  expect_different(first, extents(root.path() / "b", 5, 2), "another label");
}

dataset made(const std::string& described_as, std::uint64_t samples = 10) {
  return from_function(samples, [](std::uint64_t) { return std::vector<std::byte>(1); },
                       {.field = "bytes", .bytes_max = 1, .described_as = described_as});
}

TEST(description_of_a_function, is_the_name_that_it_is_given) {
  expect_same(made("ones, v1"), made("ones, v1"));
  expect_different(made("ones, v1"), made("ones, v2"), "another version");
  expect_different(made("ones, v1"), made("ones, v1", 11), "more samples");
  const description nameless = described(made(""));
  ASSERT_EQ(nameless.unnamed().size(), 1U);
  EXPECT_NE(nameless.unnamed()[0].remedy.find("function_options::described_as"), std::string::npos);
}

TEST(description_of_a_view, has_what_its_parts_say) {
  const dataset nameless = concat({made("a"), made("")});
  EXPECT_EQ(described(nameless).unnamed().size(), 1U) << "a part without a name";
  EXPECT_EQ(described(nameless.slice(0, 3)).unnamed().size(), 1U);
  const std::vector<dataset> many(20, made(""));
  EXPECT_EQ(described(concat(many)).unnamed().size(), 20U);
}

tensor tensor_of(void* data, dtype type, dimensions shape) {
  tensor values;
  values.data = data;
  values.type = type;
  values.shape = shape;
  return values;
}

TEST(description_of_tensors, is_their_digest_or_the_name_that_they_are_given) {
  std::array<float, 6> values{1, 2, 3, 4, 5, 6};
  std::array<std::int64_t, 3> labels{7, 8, 9};
  const auto from = [&](const std::string& name = {}) {
    return from_tensors(
        {{"x", tensor_of(values.data(), dtype::f32, {3, 2})}, {"cls", tensor_of(labels.data(), dtype::i64, {3})}},
        nullptr, {}, name);
  };
  const description first = described(from());
  EXPECT_EQ(first.digest(), described(from()).digest());
  EXPECT_NE(first.digest(), described(from("named")).digest());
  values[5] = 7;
  EXPECT_NE(first.digest(), described(from()).digest()) << "another value";
  values[5] = 6;
  labels[2] = 0;
  EXPECT_NE(first.digest(), described(from()).digest()) << "another label";

  std::vector<std::byte> large((std::size_t{64} << 20) + 16);
  const auto from_large = [&](const std::string& name) {
    return from_tensors({{"x", tensor_of(large.data(), dtype::u8, {4, static_cast<std::int64_t>(large.size() / 4)})}},
                        nullptr, {}, name);
  };
  EXPECT_EQ(described(from_large("")).unnamed().size(), 1U);
  EXPECT_TRUE(described(from_large("noise, v1")).unnamed().empty());
  EXPECT_NE(described(from_large("noise, v1")).digest(), described(from_large("noise, v2")).digest());
}

TEST(description_of_a_choice_of_samples, is_what_was_chosen) {
  const dataset whole = made("a", 100);
  expect_different(whole, whole.slice(0, 100), "a slice says that it is one");
  expect_same(whole.slice(10, 5), whole.subset({10, 11, 12, 13, 14}));
  expect_different(whole.slice(10, 5), whole.slice(11, 5), "another place");
  expect_different(whole.slice(10, 5), whole.slice(10, 6), "another length");
  expect_same(whole.subset({3, 1, 2}), whole.subset({3, 1, 2}));
  expect_different(whole.subset({3, 1, 2}), whole.subset({1, 2, 3}), "another order");
  expect_different(whole.slice(10, 50).slice(2, 5), whole.slice(10, 50).slice(3, 5), "a slice of a slice");
  expect_same(whole.split(7, {0.9})[0], whole.split(7, {0.9})[0]);
  expect_different(whole.split(7, {0.9})[0], whole.split(8, {0.9})[0], "another seed");
  EXPECT_NE(described(whole.slice(0, 0)).digest(), described(whole).digest());
}

TEST(description_of_a_concatenation, is_that_of_its_parts_in_their_order) {
  const dataset a = made("a");
  const dataset b = made("b");
  expect_same(concat({a, b}), concat({a, b}));
  expect_different(concat({a, b}), concat({b, a}), "another order");
  expect_different(concat({a, b}), concat({a, a}), "another part");
  for (const std::size_t parts : {9U, 100U}) {
    std::vector<dataset> many(parts, a);
    const dataset before = concat(many);
    EXPECT_LT(described(before).to_json().size(), 8192U);
    expect_same(before, concat(many));
    many[parts / 2] = b;
    expect_different(before, concat(many), "one part of many");
  }
}

TEST(digest_of_files, counts_names_from_the_folder_that_all_share) {
  const auto of = [](std::initializer_list<std::pair<const char*, std::uint64_t>> files) {
    io::file_table table;
    for (const auto& [path, size] : files) table.add(path, size);
    table.finish();
    return table.digest();
  };
  constexpr std::uint64_t large = std::uint64_t{5} << 30;
  EXPECT_EQ(of({{"/a/x", 1}, {"/a/b/y", 2}}), of({{"x", 1}, {"b/y", 2}}));
  EXPECT_EQ(of({{"/a/x", 1}, {"/a/b/y", 2}}), of({{"/q/r/x", 1}, {"/q/r/b/y", 2}}));
  EXPECT_EQ(of({{"/x", 1}, {"/b/y", 2}}), of({{"c/x", 1}, {"c/b/y", 2}}));
  EXPECT_EQ(of({{"/a/b/x", 1}, {"/a/bc/y", 2}}), of({{"b/x", 1}, {"bc/y", 2}})) << "a common beginning is no folder";
  EXPECT_NE(of({{"a/x", 1}, {"b/x", 1}}), of({{"a/x", 1}, {"c/x", 1}}));
  EXPECT_NE(of({{"a/x", 1}, {"a/y", 1}}), of({{"a/x", 1}, {"b/y", 1}}));
  EXPECT_NE(of({{"a/x", 1}}), of({{"a/x", 2}}));
  EXPECT_NE(of({{"a/x", large}}), of({{"a/x", large + 1}}));
  EXPECT_NE(of({{"a/xy", 1}, {"a/z", 1}}), of({{"a/x", 1}, {"a/yz", 1}}));
  EXPECT_NE(of({}), of({{"a", 0}}));
}

}  // namespace
}  // namespace leat
