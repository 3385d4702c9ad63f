// An option that a source does not take is refused by its name, whatever the source is.
#include "base/text.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;

/// A source, and which of the options it takes.
struct source_row {
  std::string path;
  std::string called;  ///< in errors
  bool tar = false;
  bool index = false;
  bool arrays = false;
  bool windows = false;
  bool columns = false;
  bool text = false;
  bool checksums = false;
  bool lmdb = false;
};

struct option_row {
  std::string name;
  bool source_row::* taken;
  std::function<void(open_options&)> ask;
};

TEST(source_options, that_a_source_does_not_take_are_refused_by_name) {
  const testing::temporary_directory root;
  const auto put = [&](const char* name, std::string_view content) {
    return testing::write_file(root.path() / name, content);
  };
  put("photos/a/1.jpg", "x");
  testing::archive shard;
  shard.file("a.txt", "t").end();
  const std::string data = LEAT_TEST_DATA;
  const std::vector<source_row> sources = {
      {.path = (root.path() / "photos").string(), .called = "a folder of pictures", .index = true},
      {.path = shard.save(root.path() / "a.tar"), .called = "tar shards", .tar = true, .index = true},
      {.path = put("a.npy", testing::npy_text("{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", "abcd")),
       .called = ".npy",
       .windows = true},
      {.path = data + "/npz/mixed.npz", .called = ".npz", .windows = true},
      {.path = data + "/hdf5/filters.h5", .called = "HDF5", .arrays = true, .windows = true, .columns = true},
      {.path = data + "/zarr/v3.zarr", .called = "Zarr", .arrays = true, .windows = true},
      {.path = data + "/parquet/bare-v1.parquet", .called = "Parquet", .columns = true, .checksums = true},
      {.path = data + "/arrow/file.arrow", .called = "Arrow", .columns = true},
      {.path = data + "/tfrecord/examples.tfrecord", .called = "TFRecord", .columns = true, .checksums = true},
      {.path = data + "/mds/plain", .called = "MDS", .columns = true, .checksums = true},
      {.path = put("a.jsonl", "{\"p\": 1}\n"), .called = "JSONL", .index = true, .columns = true, .text = true},
      {.path = put("a.csv", "p\n1\n"), .called = "CSV", .index = true, .columns = true, .text = true},
      {.path = data + "/lmdb/ocr.mdb", .called = "LMDB", .lmdb = true},
  };
  const std::vector<option_row> options = {
      {"tar_options::ignore_zeros", &source_row::tar, [](open_options& asked) { asked.tar.ignore_zeros = true; }},
      {"index_options::use", &source_row::index, [](open_options& asked) { asked.index.use = index_use::rebuild; }},
      {"array_options::window", &source_row::windows, [](open_options& asked) { asked.arrays.window = 2; }},
      {"array_options::stride", &source_row::windows, [](open_options& asked) { asked.arrays.stride = 2; }},
      {"array_options::samples", &source_row::arrays,
       [](open_options& asked) { asked.arrays.samples = array_options::sample::array; }},
      {"table_options::columns", &source_row::columns, [](open_options& asked) { asked.tables.columns = {"nothere"}; }},
      {"table_options::path_column", &source_row::text,
       [](open_options& asked) { asked.tables.path_column = "nothere"; }},
      {"table_options::root", &source_row::text, [](open_options& asked) { asked.tables.root = "/nowhere"; }},
      {"table_options::types", &source_row::text, [](open_options& asked) { asked.tables.types = {{"nothere", {}}}; }},
      {"table_options::checksums", &source_row::checksums, [](open_options& asked) { asked.tables.checksums = true; }},
      {"lmdb_options::database", &source_row::lmdb, [](open_options& asked) { asked.lmdb.database = "nothere"; }},
  };
  for (const source_row& source : sources) {
    for (const option_row& option : options) {
      SCOPED_TRACE(str_cat(option.name, " of ", source.path));
      open_options asked;
      asked.index.directory = (root.path() / "index").string();
      option.ask(asked);
      if (!(source.*option.taken)) {
        EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open(source.path, asked)); }),
                    AllOf(HasSubstr(source.path), HasSubstr(option.name + " is of "),
                          HasSubstr("and this is " + source.called)));
        continue;
      }
      // A name that is not there is no less an error.
      try {
        static_cast<void>(open(source.path, asked));
        EXPECT_FALSE(option.name == "table_options::columns" || option.name == "table_options::path_column");
      } catch (const error& refused) {
        EXPECT_EQ(std::string(refused.what()).find(" is of "), std::string::npos) << refused.what();
        if (option.name.find("column") != std::string::npos) EXPECT_THAT(refused.what(), HasSubstr("'nothere'"));
      }
    }
  }
}

TEST(source_options, of_tables_are_refused_where_a_table_is_opened_by_its_own_function) {
  const std::string data = LEAT_TEST_DATA;
  const table_options paths{.path_column = "text"};
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { static_cast<void>(open_parquet(data + "/parquet/bare-v1.parquet", paths)); },
           [&] { static_cast<void>(open_arrow(data + "/arrow/file.arrow", paths)); },
           [&] { static_cast<void>(open_tfrecord(data + "/tfrecord/examples.tfrecord", paths)); },
           [&] { static_cast<void>(open_mds(data + "/mds/plain", paths)); }}) {
    EXPECT_THAT(message_of(errc::usage, call), HasSubstr("table_options::path_column is of JSONL and CSV"));
  }
}

}  // namespace
}  // namespace leat
