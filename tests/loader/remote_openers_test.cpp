// Each function that opens a format, of files, of the same ones over HTTP and in a bucket: one dataset.
#include "stages/fields/where.hpp"
#include "tests/loader/remote_shards.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/coded_forms.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/open_records.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/open_tokens.hpp>
#include <leat/order.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;
using testing::file_text;
using ::testing::HasSubstr;

std::string without(std::string text, const std::string& place) {
  for (std::size_t at = text.find(place); at != std::string::npos; at = text.find(place)) text.erase(at, place.size());
  return text;
}

// What a dataset is, and some of its samples, without the place that it was opened from.
std::string everything_of(const dataset& samples, const std::string& place) {
  std::ostringstream out;
  for (const std::string& each : samples.classes()) out << "class " << each << "\n";
  for (const std::string& each : samples.notes()) out << "note " << each << "\n";
  const std::vector<field_info> fields = samples.fields();
  for (const field_info& each : fields) {
    out << "field " << each.name << " " << static_cast<int>(each.kind) << " " << each.samples << " " << each.bytes_max
        << " " << each.bytes_total << " " << each.read_bytes_max() << "\n";
  }
  // Each look at one connects anew.
  constexpr std::uint64_t looked_at = 5;
  out << samples.size() << " samples\n";
  for (std::uint64_t k = 0; k < std::min(looked_at, samples.size()); ++k) {
    const std::uint64_t i =
        k * (samples.size() - 1) / std::max<std::uint64_t>(1, std::min(looked_at, samples.size()) - 1);
    out << samples.name(i) << " " << samples.label(i).value_or(-1);
    for (const field_info& each : fields) {
      if (each.column) {
        out << " " << samples.number(i, each.name).value_or(-1);
        continue;
      }
      try {
        const std::vector<std::byte> bytes = samples.read(i, each.name);
        out << " " << bytes.size() << ":"
            << std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      } catch (const error& lacks) {
        out << " " << static_cast<int>(lacks.code());
      }
    }
    out << "\n";
  }
  return without(out.str(), place);
}

class remote_openers : public ::testing::Test {
 protected:
  remote_openers() {
    const fs::path data = LEAT_TEST_DATA;
    for (const char* const each : {"npz/mixed.npz", "hdf5/filters.h5", "parquet/pictures-packed.parquet",
                                   "parquet/hub.parquet", "arrow/file.arrow", "lmdb/ocr.mdb",
                                   "lmdb/folder.lmdb/data.mdb", "tfrecord/examples.tfrecord", "zarr/kerchunk.json"}) {
      put(each, file_text(data / each));
    }
    for (const char* const folder : {"zarr/array.zarr", "zarr/consolidated-2.zarr", "zarr/consolidated-3.zarr",
                                     "zarr/v3.zarr", "mds/plain", "arrow/saved"}) {
      for (const auto& each : fs::recursive_directory_iterator(data / folder)) {
        if (each.is_regular_file()) put(each.path().lexically_relative(data).string(), file_text(each.path()));
      }
    }
    for (int i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i);
      put("tar/" + number + ".tar", testing::shard_of(i));
      put("npy/" + number + ".npy",
          testing::npy_text(testing::npy_dict("<i4", "3, 5"), testing::bytes_of(testing::counting<std::int32_t>(15))));
      put("tokens/" + number + ".bin", testing::bytes_of(testing::counting<std::uint16_t>(100)));
      put("lines/" + number + ".jsonl", "{\"text\": \"a" + number + "\", \"n\": 1}\n{\"text\": \"b\", \"n\": 2}\n");
      put("lines/" + number + ".csv", "text,n\na" + number + ",1\nb,2\n");
      put("classes/" + number + "/x.jpg", "picture " + number);
      put("records/" + number + ".bin", testing::bytes_of(testing::counting<std::int16_t>(60)));
      put("records/" + number + ".json", R"({"fields": [{"name": "x", "dtype": "i16", "shape": [10]}]})");
    }
    std::string lines;
    std::string rows = "text,n\n";
    for (int i = 0; i < 300; ++i) {
      const std::string text = testing::some_text(5'000, static_cast<unsigned>(i));
      lines += R"({"text": ")" + text + R"(", "n": )" + std::to_string(i) + "}\n";
      rows += text + "," + std::to_string(i) + "\n";
    }
    put_coded("coded/s.tar", testing::shard_of(7));
    put_coded("coded/t.jsonl", lines);
    put_coded("coded/t.csv", rows);
    put("megatron/m.bin", testing::bytes_of(testing::counting<std::int32_t>(12)));
    put("megatron/m.idx", testing::megatron_index(4, 4, {3, 2, 4, 0, 3}, {0, 2, 2, 3, 5}));
  }
  void put(const std::string& name, const std::string& content) {
    server_.put("bucket/" + name, content);
    testing::write_file(folder_.path() / name, content);
  }
  // As it is, and compressed.
  void put_coded(const std::string& name, const std::string& content) {
    constexpr std::size_t part_bytes = 400'000;
    put(name, content);
    put(name + ".gz", testing::coded(datasets::packing::gzip, content));
    put(name + ".zst", testing::coded_in_parts(datasets::packing::zstd, content, part_bytes));
  }
  [[nodiscard]] remote_options store() const {
    return {.allow_http = true, .endpoint = server_.address(""), .access_key_id = "KEYID", .secret_access_key = "hush"};
  }

  const testing::temporary_directory folder_;
  testing::fault_server server_;
};

struct opener {
  const char* source;
  std::function<dataset(const std::string& source, const remote_options& remote)> open;
  bool is_listed = false;  // a folder of which https:// cannot say what it has
};

const opener openers[] = {
    {"tar/{0,1}.tar", [](const auto& source, const auto& remote) { return open_tar(source, {.remote = remote}); }},
    {"npy/{0,1}.npy", [](const auto& source, const auto& remote) { return open_npy(source, {.remote = remote}); }},
    {"npz/mixed.npz", [](const auto& source, const auto& remote) { return open_npz(source, {.remote = remote}); }},
    {"hdf5/filters.h5", [](const auto& source, const auto& remote) { return open_hdf5(source, {.remote = remote}); }},
    {"parquet/hub.parquet",
     [](const auto& source, const auto& remote) { return open_parquet(source, {.remote = remote}); }},
    {"parquet/pictures-packed.parquet",
     [](const auto& source, const auto& remote) { return open_parquet(source, {.remote = remote}); }},
    {"arrow/file.arrow", [](const auto& source, const auto& remote) { return open_arrow(source, {.remote = remote}); }},
    {"lmdb/ocr.mdb", [](const auto& source, const auto& remote) { return open_lmdb(source, {.remote = remote}); }},
    {"lmdb/folder.lmdb", [](const auto& source, const auto& remote) { return open_lmdb(source, {.remote = remote}); }},
    {"lmdb/folder.lmdb/", [](const auto& source, const auto& remote) { return open_lmdb(source, {.remote = remote}); }},
    {"tfrecord/examples.tfrecord",
     [](const auto& source, const auto& remote) { return open_tfrecord(source, {.remote = remote}); }},
    {"lines/{0,1}.jsonl",
     [](const auto& source, const auto& remote) { return open_jsonl(source, {.remote = remote}); }},
    {"coded/s.tar.gz", [](const auto& source, const auto& remote) { return open_tar(source, {.remote = remote}); }},
    {"coded/t.jsonl.zst",
     [](const auto& source, const auto& remote) { return open_jsonl(source, {.remote = remote}); }},
    {"coded/t.csv.gz", [](const auto& source, const auto& remote) { return open_csv(source, {.remote = remote}); }},
    {"lines/{0,1}.csv", [](const auto& source, const auto& remote) { return open_csv(source, {.remote = remote}); }},
    {"records/{0,1}.bin",
     [](const auto& source, const auto& remote) { return open_records(source, {.remote = remote}); }},
    {"tokens/{0,1}.bin",
     [](const auto& source, const auto& remote) { return open_tokens(source, {.remote = remote}); }},
    {"npy/0.npy",
     [](const auto& source, const auto& remote) {
       return open_npy(source, {.samples = npy_options::sample::file, .remote = remote});
     }},
    {"megatron/m.bin", [](const auto& source, const auto& remote) { return open_tokens(source, {.remote = remote}); }},
    {"megatron/m.idx", [](const auto& source, const auto& remote) { return open_tokens(source, {.remote = remote}); }},
    {"megatron/m", [](const auto& source, const auto& remote) { return open_tokens(source, {.remote = remote}); }},
    {"mds/plain", [](const auto& source, const auto& remote) { return open_mds(source, {.remote = remote}); }},
    {"zarr/array.zarr", [](const auto& source, const auto& remote) { return open_zarr(source, {.remote = remote}); }},
    {"zarr/consolidated-2.zarr",
     [](const auto& source, const auto& remote) { return open_zarr(source, {.remote = remote}); }},
    {"zarr/consolidated-3.zarr",
     [](const auto& source, const auto& remote) { return open_zarr(source, {.remote = remote}); }},
    {"zarr/kerchunk.json",
     [](const auto& source, const auto& remote) { return open_references(source, {.remote = remote}); }},
    {"classes/", [](const auto& source, const auto& remote) { return open_folder(source, {.remote = remote}); }, true},
};

TEST_F(remote_openers, have_the_dataset_of_the_files) {
  const std::string here = folder_.path().string() + "/";
  for (const opener& each : openers) {
    SCOPED_TRACE(each.source);
    const dataset on_disk = each.open(here + each.source, {});
    ASSERT_GT(on_disk.size(), 0U);
    const std::string wanted = everything_of(on_disk, here);
    EXPECT_EQ(everything_of(each.open(std::string("s3://bucket/") + each.source, store()), "s3://bucket/"), wanted);
    if (each.is_listed) continue;
    const std::string there = server_.address("bucket/");
    EXPECT_EQ(everything_of(each.open(there + each.source, {.allow_http = true}), there), wanted);
    EXPECT_EQ(everything_of(each.open(there + each.source + "?signature=hush", {.allow_http = true}), there), wanted);
  }
}

TEST_F(remote_openers, give_an_epoch_of_compressed_files_as_the_plain_ones_do) {
  const std::string there = server_.address("bucket/");
  const auto contents = [](const dataset& samples, const std::vector<field>& fields) {
    auto options = testing::small_options();
    options.host_bytes_max = std::size_t{200} << 20;
    const testing::seen_run run = testing::run_all(samples, options, fields);
    EXPECT_FALSE(run.failed) << run.message;
    std::vector<std::string> all;
    for (const testing::seen_batch& each : run.batches) all.push_back(each.content);
    return all;
  };
  const std::vector<field> of_shards{bytes("bin"), label("cls")};
  const std::vector<field> of_lines{text("text"), label("n")};
  for (const char* const name : {"coded/s.tar", "coded/t.jsonl", "coded/t.csv"}) {
    const std::vector<field>& fields = std::string_view(name).ends_with(".tar") ? of_shards : of_lines;
    const std::vector<std::string> expected = contents(open((folder_.path() / name).string()), fields);
    for (const char* const ending : {".gz", ".zst"}) {
      const std::string coded = std::string(name) + ending;
      SCOPED_TRACE(coded);
      EXPECT_EQ(contents(open("s3://bucket/" + coded, {.remote = store()}), fields), expected);
      const open_options at_server{.remote = {.allow_http = true}};
      EXPECT_EQ(contents(open(there + coded, at_server), fields), expected);
      EXPECT_EQ(contents(open(there + coded + "?signature=hush/a.b", at_server), fields), expected);
    }
  }
}

TEST_F(remote_openers, find_out_what_a_folder_is_where_nothing_is_listed) {
  const std::string here = folder_.path().string() + "/";
  const std::string there = server_.address("bucket/");
  for (const char* const folder : {"zarr/array.zarr", "zarr/consolidated-3.zarr", "mds/plain/", "lmdb/folder.lmdb/",
                                   "arrow/saved/", "zarr/kerchunk.json"}) {
    SCOPED_TRACE(folder);
    const std::string wanted = everything_of(open(here + folder), here);
    EXPECT_EQ(everything_of(open(there + folder, {.remote = {.allow_http = true}}), there), wanted);
    EXPECT_EQ(everything_of(open(there + folder + "?signature=hush", {.remote = {.allow_http = true}}), there), wanted);
    EXPECT_EQ(everything_of(open(std::string("s3://bucket/") + folder, {.remote = store()}), "s3://bucket/"), wanted);
  }
  const auto refused = [&](errc code, const std::string& folder) {
    return testing::message_of(code,
                               [&] { static_cast<void>(open(there + folder, {.remote = {.allow_http = true}})); });
  };
  EXPECT_THAT(refused(errc::not_found, "tar/"), HasSubstr("tar/: a folder is listed of s3:// only"));
  EXPECT_THAT(refused(errc::unsupported, "zarr/v3.zarr"), HasSubstr("zarr.consolidate_metadata()"));
}

TEST_F(remote_openers, take_a_missing_chunk_for_its_fill_value) {
  const fs::path array = folder_.path() / "zarr" / "array.zarr";
  std::uint64_t chunks = 0;
  std::string first;
  for (const auto& each : fs::recursive_directory_iterator(array)) {
    const std::string name = each.path().filename().string();
    if (!each.is_regular_file() || name.starts_with('.') || name.ends_with(".json")) continue;
    ++chunks;
    if (first.empty() || each.path().string() < first) first = each.path().string();
  }
  ASSERT_GT(chunks, 1U);
  const std::string with_all = everything_of(open_zarr(array.string()), folder_.path().string());
  fs::remove(first);
  const std::string gone = "/bucket/" + fs::path(first).lexically_relative(folder_.path()).string();
  unsigned status = 404;
  server_.set_rule([&](const testing::served_request& asked) {
    return asked.target == gone ? testing::http_fault{.what = testing::http_fault::kind::status, .status = status}
                                : testing::http_fault();
  });
  const std::string wanted = everything_of(open_zarr(array.string()), folder_.path().string() + "/");
  ASSERT_NE(wanted, with_all);
  const std::string there = server_.address("bucket/");
  EXPECT_EQ(everything_of(open_zarr(there + "zarr/array.zarr", {.remote = {.allow_http = true}}), there), wanted);
  // Of a chunk that may not be read nobody knows what is in it.
  status = 403;
  EXPECT_THAT(testing::message_of(
                  errc::permission,
                  [&] { static_cast<void>(open_zarr(there + "zarr/array.zarr", {.remote = {.allow_http = true}})); }),
              HasSubstr(gone));
}

// To ask for the versions of pictures takes as many requests as to read their sizes, of which none are kept then.
TEST_F(remote_openers, ask_for_no_picture_s_version_where_a_condition_reads_its_size) {
  std::string lines;
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i) + ".jpg";
    put("sizes/" + name, "picture");
    lines += "{\"file_name\": \"" + name + "\"}\n";
  }
  put("sizes/all.jsonl", lines);
  table_options options{.path_column = "file_name"};
  options.remote.allow_http = true;
  const dataset set = open_jsonl(server_.address("bucket/sizes/all.jsonl"), options);
  std::string why;
  const index_options index{.use = index_use::check,
                            .directory = (folder_.path() / "kept").string(),
                            .on_report = [&why](const index_report& each) { why = each.why; }};
  const auto requests_of = [&](const auto& choose) {
    const std::uint64_t before = server_.requests();
    EXPECT_EQ(choose().size(), 3U);
    return server_.requests() - before;
  };
  const char* const condition = "sample < 3 and width is null";
  const std::uint64_t without = requests_of([&] { return set.where(condition); });
  EXPECT_LT(without, 20U);
  EXPECT_EQ(requests_of([&] { return stages::samples_where(set, condition, index); }), without);
  EXPECT_THAT(why, HasSubstr("as many requests as to read them"));
}

TEST_F(remote_openers, follow_the_paths_of_a_table) {
  const std::string there = server_.address("bucket/");
  constexpr int many = 40;
  std::string csv = "file_name,label\n";
  std::string lines;
  for (int i = 0; i < many; ++i) {
    const std::string name = "deep/a b+" + std::to_string(i) + ".jpg";
    put("pictures/" + name, "picture " + std::to_string(i));
    csv += name + "," + std::to_string(i % 3) + "\n";
    lines += "{\"file_name\": \"" + name + "\", \"label\": 1}\n";
  }
  put("pictures/metadata.csv", csv);
  put("pictures/other.jsonl", lines);
  const std::string here = folder_.path().string() + "/";
  const std::string wanted = everything_of(open(here + "pictures/"), here);
  EXPECT_THAT(wanted, HasSubstr("picture"));
  std::uint64_t before = server_.requests();
  EXPECT_EQ(everything_of(open("s3://bucket/pictures/", {.remote = store()}), "s3://bucket/"), wanted);
  const dataset counted = [&] {
    before = server_.requests();
    return open("s3://bucket/pictures/", {.remote = store()});
  }();
  EXPECT_LT(server_.requests() - before, 25U) << "pages of seven names, the table, and no picture by itself";
  EXPECT_EQ(counted.size(), static_cast<std::uint64_t>(many));
  // Samples are called by their addresses.
  const auto as_address = [](std::string text) {
    for (std::size_t at = text.find("a b"); at != std::string::npos; at = text.find("a b"))
      text.replace(at, 3, "a%20b");
    return text;
  };
  EXPECT_EQ(everything_of(open(there + "pictures/?signature=hush", {.remote = {.allow_http = true}}), there),
            as_address(wanted));

  const table_options by_name{.path_column = "file_name"};
  const std::string rows = everything_of(open_jsonl(here + "pictures/other.jsonl", by_name), here);
  table_options at_store = by_name;
  at_store.remote = store();
  EXPECT_EQ(everything_of(open_jsonl("s3://bucket/pictures/other.jsonl", at_store), "s3://bucket/"), rows);
  EXPECT_EQ(
      everything_of(open("s3://bucket/pictures/other.jsonl", {.tables = by_name, .remote = store()}), "s3://bucket/"),
      rows);
  table_options at_server = by_name;
  at_server.remote.allow_http = true;
  EXPECT_EQ(everything_of(open_jsonl(there + "pictures/other.jsonl?signature=hush", at_server), there),
            as_address(rows));

  // A name is a file's, whatever its letters mean in an address; a whole address is one.
  put("pictures/deep/why?.jpg", "asked");
  put("pictures/deep/50%25#.jpg", "half");
  put("odd.csv", "file_name\npictures/deep/why?.jpg\npictures/deep/50%25#.jpg\n" + there +
                     "pictures/deep/a%20b+7.jpg\n" + there + "pictures/deep/a%20b+8.jpg?signature=hush\n");
  const dataset odd = open_csv(there + "odd.csv", at_server);
  const auto text_in = [](const dataset& opened, std::uint64_t sample) {
    const std::vector<std::byte> read = opened.read(sample, "jpg");
    return std::string(reinterpret_cast<const char*>(read.data()), read.size());
  };
  EXPECT_EQ(text_in(odd, 0), "asked");
  EXPECT_EQ(text_in(odd, 1), "half");
  EXPECT_EQ(text_in(odd, 2), "picture 7");
  EXPECT_EQ(text_in(odd, 3), "picture 8");
  put("gone.csv", "file_name\npictures/deep/where?.jpg\n");
  EXPECT_THAT(testing::message_of(errc::not_found, [&] { static_cast<void>(open_csv(there + "gone.csv", at_server)); }),
              HasSubstr("pictures/deep/where"));

  // Whole addresses, and a root.
  std::string whole = "file_name\n";
  for (int i = 0; i < 3; ++i) whole += "s3://bucket/classes/" + std::to_string(i % 2) + "/x.jpg\n";
  put("whole.csv", whole);
  const dataset named = open_csv("s3://bucket/whole.csv", at_store);
  ASSERT_EQ(named.size(), 3U);
  EXPECT_EQ(named.read(2), open_csv("s3://bucket/whole.csv", at_store).read(0));
  EXPECT_NE(named.read(1), named.read(0));
  put("tables/up.csv", "file_name\n./../classes/0/x.jpg\n../../../classes/0/x.jpg\n");
  EXPECT_EQ(open_csv("s3://bucket/tables/up.csv", at_store).read(0), named.read(0));
  EXPECT_EQ(open_csv("s3://bucket/tables/up.csv", at_store).read(1), named.read(0)) << "a bucket has nothing above it";
  put("tables/signed.csv", "file_name\n" + there + "classes/0/x.jpg?signature=hush.2\n");
  const dataset of_signed = open_csv(there + "tables/signed.csv", at_server);
  EXPECT_EQ(of_signed.fields().front().name, "jpg");
  EXPECT_EQ(of_signed.read(0), named.read(0));
  put("classes/signed.csv", "file_name\n" + there + "classes/0/x.jpg?signature=hush.2\n0/x.jpg\n");
  std::vector<std::string> asked;
  server_.set_rule([&](const testing::served_request& request) {
    asked.push_back(request.target);
    return testing::http_fault();
  });
  const dataset beside = open_csv(there + "classes/signed.csv?signature=hush.1", at_server);
  EXPECT_EQ(beside.read(0), named.read(0)) << "beside the table, with a signature of its own";
  EXPECT_EQ(beside.read(1), named.read(0)) << "with the table's";
  server_.set_rule({});
  EXPECT_THAT(asked, ::testing::Contains(HasSubstr("/classes/0/x.jpg?signature=hush.2")));
  EXPECT_THAT(asked, ::testing::Contains(HasSubstr("/classes/0/x.jpg?signature=hush.1")));
  put("tables/rooted.csv", "file_name\nclasses/0/x.jpg\n");
  table_options rooted = at_store;
  rooted.root = "s3://bucket/";
  EXPECT_EQ(open_csv("s3://bucket/tables/rooted.csv", rooted).read(0), named.read(0));
  put("tables/signed-root.csv", "file_name\n0/x.jpg\n");
  table_options signed_root = at_server;
  signed_root.root = there + "classes?signature=hush.3";
  asked.clear();
  server_.set_rule([&](const testing::served_request& request) {
    asked.push_back(request.target);
    return testing::http_fault();
  });
  EXPECT_EQ(open_csv(there + "tables/signed-root.csv?signature=hush.1", signed_root).read(0), named.read(0));
  server_.set_rule({});
  EXPECT_THAT(asked, ::testing::Contains(HasSubstr("/classes/0/x.jpg?signature=hush.3")));

  const auto refused = [&](errc code, const std::string& content) {
    put("bad.csv", content);
    return testing::message_of(code, [&] { static_cast<void>(open_csv("s3://bucket/bad.csv", at_store)); });
  };
  EXPECT_THAT(refused(errc::not_found, "file_name\nnone.jpg\n"),
              ::testing::AllOf(HasSubstr("s3://bucket/none.jpg"), HasSubstr("the table s3://bucket/bad.csv names it")));
  EXPECT_THAT(refused(errc::usage, "file_name\n/data/x.jpg\n"), HasSubstr("a file of a disk"));
}

TEST_F(remote_openers, follow_a_table_on_a_disk_to_addresses) {
  const std::string there = server_.address("bucket/");
  const std::string here = folder_.path().string() + "/";
  constexpr int many = 40;
  std::string csv = "file_name,label,said\n";
  std::string whole = csv;
  for (int i = 0; i < many; ++i) {
    const std::string name = "deep/" + std::to_string(i) + ".jpg";
    put("pictures/" + name, "picture " + std::to_string(i));
    const std::string rest = "," + std::to_string(i % 3) + ",word " + std::to_string(i) + "\n";
    csv += name + rest;
    whole += "s3://bucket/pictures/" + name + rest;
  }
  testing::write_file(folder_.path() / "names.csv", csv);
  testing::write_file(folder_.path() / "more.csv", csv);
  testing::write_file(folder_.path() / "whole.csv", whole);
  const table_options on_disk{.path_column = "file_name", .root = here + "pictures"};
  const table_options at_store{.path_column = "file_name", .root = "s3://bucket/pictures/", .remote = store()};
  const std::string wanted = everything_of(open_csv(here + "names.csv", on_disk), here);
  const auto seen = [&](const dataset& opened) { return without(everything_of(opened, here), "s3://bucket/"); };
  const std::uint64_t before = server_.requests();
  const dataset named = open_csv(here + "names.csv", at_store);
  EXPECT_LT(server_.requests() - before, 37U) << "a page of seven names, and the others by themselves";
  EXPECT_EQ(seen(named), wanted);
  table_options no_root = at_store;
  no_root.root.clear();
  // Its rows are longer, and the same pictures.
  const auto samples_of = [](const std::string& text) { return text.substr(text.find(" samples")); };
  EXPECT_EQ(samples_of(seen(open_csv(here + "whole.csv", no_root))), samples_of(wanted));
  EXPECT_EQ(seen(open_csv({here + "names.csv", here + "more.csv"}, at_store)),
            without(everything_of(open_csv({here + "names.csv", here + "more.csv"}, on_disk), here), "s3://bucket/"));
  // As the command opens it; what signs a root is of each file below it.
  table_options signed_root{.path_column = "file_name", .root = there + "pictures?signature=hush"};
  std::vector<std::string> asked;
  server_.set_rule([&](const testing::served_request& request) {
    asked.push_back(request.target);
    return testing::http_fault();
  });
  const dataset of_server = open(here + "names.csv", {.tables = signed_root, .remote = {.allow_http = true}});
  EXPECT_EQ(without(everything_of(of_server, here), there), wanted);
  server_.set_rule({});
  EXPECT_THAT(asked, ::testing::Contains(HasSubstr("/pictures/deep/0.jpg?signature=hush")));

  // Both in one batch: a picture of the store, and the text of its row from the disk.
  loader_options line{.batch_size = 8, .order = sequential()};
  loader read(named, line, bytes{"jpg"}, bytes{"said"});
  std::uint64_t rows = 0;
  for (const batch& each : read.blocking()) rows += each.valid_rows();
  EXPECT_EQ(rows, static_cast<std::uint64_t>(many));
  EXPECT_GT(read.stats().remote.requests, 0U);

  const auto refused = [&](errc code, const std::string& content, const table_options& options) {
    testing::write_file(folder_.path() / "bad.csv", content);
    return testing::message_of(code, [&] { static_cast<void>(open_csv(here + "bad.csv", options)); });
  };
  EXPECT_THAT(refused(errc::not_found, "file_name\ndeep/0.jpg\nnone.jpg\n", at_store),
              ::testing::AllOf(HasSubstr("s3://bucket/pictures/none.jpg"), HasSubstr("row 1 of the table"),
                               HasSubstr("bad.csv names it")));
  EXPECT_THAT(refused(errc::usage, "file_name\n/data/x.jpg\n", at_store), HasSubstr("a file of a disk"));
  EXPECT_THAT(
      refused(errc::usage, "file_name\ns3://bucket/classes/0/x.jpg\nclasses/0/x.jpg\n", no_root),
      ::testing::AllOf(HasSubstr("row 1 of the table"), HasSubstr("bad.csv names classes/0/x.jpg, a file of a disk"),
                       HasSubstr("s3://bucket/classes/0/x.jpg, which is at an address")));
  EXPECT_THAT(refused(errc::usage, "file_name\nclasses/0/x.jpg\ns3://bucket/classes/0/x.jpg\n", no_root),
              HasSubstr("into tables of their own"));
  for (const table_options& each : {at_store, on_disk, no_root}) {
    EXPECT_THAT(refused(errc::unsupported, "file_name\ngs://bucket/x.jpg\n", each),
                ::testing::AllOf(HasSubstr("row 0 of the table"), HasSubstr("bad.csv: gs://bucket/x.jpg"),
                                 HasSubstr("storage.googleapis.com")));
  }
  EXPECT_THAT(refused(errc::unsupported, "file_name\nx.jpg\n", {.path_column = "file_name", .root = "gs://bucket"}),
              HasSubstr("gs://bucket: leat reads"));
  // As that error says.
  testing::write_file(folder_.path() / "both.csv", "file_name,label,said\nclasses/0/x.jpg,1,a\n");
  const dataset joined = open_csv({here + "both.csv", here + "whole.csv"}, no_root);
  EXPECT_EQ(joined.size(), many + 1U);
  EXPECT_EQ(joined.read(0, "jpg"), open_csv(here + "both.csv", no_root).read(0, "jpg"));
  EXPECT_EQ(joined.read(1, "jpg"), named.read(0, "jpg"));
}

TEST_F(remote_openers, hold_a_table_to_the_files_that_it_was_opened_with) {
  const auto write_pictures = [&](int count) {
    std::string csv = "file_name\n";
    for (int i = 0; i < count; ++i) {
      const std::string name = std::to_string(i) + ".jpg";
      put("pictures/" + name, "picture " + std::to_string(i));
      csv += name + "\n";
    }
    put("names.csv", csv);
  };
  const auto epoch_of = [](const dataset& samples) {
    loader_options line{.batch_size = 4, .order = sequential()};
    loader read(samples, line, bytes{"jpg"});
    for (const batch& each : read.blocking()) EXPECT_GT(each.valid_rows(), 0U);
    return read.stats().remote;
  };
  remote_options cached = store();
  cached.cache_bytes = 64U << 20;
  const std::string here = folder_.path().string() + "/names.csv";
  // Few are asked for one by one, many are listed.
  for (const int count : {5, 40}) {
    write_pictures(count);
    for (const std::string& table : {here, std::string("s3://bucket/names.csv"), server_.address("bucket/names.csv")}) {
      SCOPED_TRACE(table + " of " + std::to_string(count));
      cached.cache = (folder_.path() / ("cache" + std::to_string(count) + std::to_string(table.size()))).string();
      const table_options options{
          .path_column = "file_name",
          .root = table == here ? "s3://bucket/pictures" : table.substr(0, table.rfind('/')) + "/pictures",
          .remote = cached};
      EXPECT_GT(epoch_of(open_csv(table, options)).cached_blocks, 0U);
      const remote_stats again = epoch_of(open_csv(table, options));
      EXPECT_EQ(again.cached_blocks, 0U);
      EXPECT_GT(again.bytes_from_cache, 0U);

      table_options uncached = options;
      uncached.remote = store();
      const dataset opened = open_csv(table, uncached);
      put("pictures/3.jpg", "painting 3");
      EXPECT_THAT(testing::message_of(errc::changed, [&] { static_cast<void>(epoch_of(opened)); }),
                  HasSubstr("pictures/3.jpg"));
      put("pictures/3.jpg", "picture 3");
    }
  }
}

TEST_F(remote_openers, follow_references_on_a_disk_to_addresses) {
  const std::string here = folder_.path().string() + "/";
  std::string values;
  for (int i = 0; i < 8; ++i) values += std::string(3, '\0') + static_cast<char>('0' + i);
  put("chunks/data.bin", values);
  const auto references = [](const std::string& first, const std::string& second) {
    return R"({"version": 1, "templates": {"u": ")" + first +
           R"("}, "refs": {".zgroup": "{\"zarr_format\": 2}", )"
           R"("x/.zarray": "{\"zarr_format\": 2, \"shape\": [10], \"chunks\": [4], \"dtype\": \">i4\", )"
           R"(\"compressor\": null, \"fill_value\": 0, \"order\": \"C\", \"filters\": null}", )"
           R"("x/0": ["{{u}}", 0, 16], "x/1": [")" +
           second + R"(", 16, 16], "x/2": "base64:AAAAAQAAAAIAAAADAAAABA=="}})";
  };
  testing::write_file(folder_.path() / "there.json",
                      references("s3://bucket/chunks/data.bin", "s3://bucket/chunks/data.bin"));
  testing::write_file(folder_.path() / "here.json", references("chunks/data.bin", "chunks/data.bin"));
  const dataset there = open_references(here + "there.json", {.remote = store()});
  EXPECT_EQ(without(everything_of(there, here), "there.json"),
            without(everything_of(open_references(here + "here.json"), here), "here.json"));
  EXPECT_EQ(everything_of(open(here + "there.json", {.remote = store()}), here), everything_of(there, here));
  testing::write_file(folder_.path() / "gone.json", references("s3://bucket/gone.bin", "s3://bucket/chunks/data.bin"));
  EXPECT_THAT(
      testing::message_of(
          errc::not_found,
          [&] { static_cast<void>(open_references(here + "gone.json", {.fields = {"x"}, .remote = store()})); }),
      ::testing::AllOf(HasSubstr("gone.json/x/0: it lies in s3://bucket/gone.bin"), HasSubstr("the template")));
  // Both kinds in one file: which of them is not read, and why.
  testing::write_file(folder_.path() / "both.json", references("s3://bucket/chunks/data.bin", "chunks/data.bin"));
  EXPECT_THAT(
      testing::message_of(
          errc::unsupported,
          [&] { static_cast<void>(open_references(here + "both.json", {.fields = {"x"}, .remote = store()})); }),
      ::testing::AllOf(HasSubstr("s3://bucket/chunks/data.bin: an address"), HasSubstr("on a disk (")));
}

TEST_F(remote_openers, show_no_signature_of_what_references_lead_to) {
  const std::string there = server_.address("bucket/");
  const auto said = [&](errc code, const std::string& file, const std::string& bytes) {
    put("refs/bad.json",
        R"({".zgroup": "{\"zarr_format\": 2}", "x/.zarray": "{\"zarr_format\": 2, \"shape\": [2], \"chunks\": [2], )"
        R"(\"dtype\": \"<f4\", \"compressor\": null, \"fill_value\": 0, \"order\": \"C\", \"filters\": null}", )"
        R"("x/0": [")" +
            there + file + R"(?signature=hush", 0, )" + bytes + "]}");
    return testing::message_of(
        code, [&] { static_cast<void>(open_references(there + "refs/bad.json", {.remote = {.allow_http = true}})); });
  };
  EXPECT_THAT(said(errc::not_found, "none.bin", "8"),
              ::testing::AllOf(HasSubstr("bucket/none.bin: "), ::testing::Not(HasSubstr("hush"))));
  EXPECT_THAT(said(errc::format, "classes/0/x.jpg", "8000000"),
              ::testing::AllOf(HasSubstr("bucket/classes/0/x.jpg, which has"), ::testing::Not(HasSubstr("hush"))));
  // Nor of what is not read.
  const std::string here = (folder_.path() / "within.json").string();
  testing::write_file(
      here,
      R"({".zgroup": "{\"zarr_format\": 2}", "x/.zarray": "{\"zarr_format\": 2, \"shape\": [2], \"chunks\": [2], )"
      R"(\"dtype\": \"<f4\", \"compressor\": null, \"fill_value\": 0, \"order\": \"C\", \"filters\": null}", )"
      R"("x/0": ["simplecache::https://host.invalid/x.nc?signature=hush", 0, 8]})");
  EXPECT_THAT(testing::message_of(errc::unsupported, [&] { static_cast<void>(open_references(here)); }),
              ::testing::AllOf(HasSubstr("files within others"), ::testing::Not(HasSubstr("hush"))));
}

TEST_F(remote_openers, read_through_the_cache_that_they_are_given) {
  remote_options cached = store();
  cached.cache = (folder_.path() / "cache").string();
  cached.cache_bytes = std::uint64_t{64} << 20;
  const auto opened = [&] { return open_tar("s3://bucket/tar/0.tar", {.remote = cached}); };
  const std::vector<std::byte> first = opened().read(0);
  const dataset again = opened();
  server_.set_rule([](const testing::served_request& asked) {
    // Whether it is what it was is asked for, by its first byte.
    return asked.value("Range") == "bytes=0-0"
               ? testing::http_fault()
               : testing::http_fault{.what = testing::http_fault::kind::status, .status = 403};
  });
  EXPECT_EQ(again.read(0), first);
  EXPECT_THROW(static_cast<void>(open_tar("s3://bucket/tar/0.tar", {.remote = store()}).read(0)), error);
}

TEST_F(remote_openers, say_what_is_wrong_with_what_is_named) {
  const std::string there = server_.address("bucket/");
  const auto refused = [](errc code, const std::function<dataset()>& open) {
    return testing::message_of(code, [&] { static_cast<void>(open()); });
  };
  const remote_options http{.allow_http = true};
  EXPECT_THAT(
      refused(
          errc::usage,
          [&] { return open_npy({there + "npy/0.npy", (folder_.path() / "npy/1.npy").string()}, {.remote = http}); }),
      HasSubstr("is an address, and"));
  EXPECT_THAT(refused(errc::usage, [&] { return open_npy(there + "npy/0.npy"); }), HasSubstr("allow_http"));
  EXPECT_THAT(refused(errc::not_found, [&] { return open_npy(there + "npy/7.npy", {.remote = http}); }),
              HasSubstr("404"));
  EXPECT_THAT(refused(errc::usage, [&] { return open_csv(there + "lines/", {.remote = http}); }),
              HasSubstr("a folder is listed of s3:// only"));
  EXPECT_THAT(refused(errc::usage, [&] { return open_csv("s3://bucket/lines/", {.remote = store()}); }),
              HasSubstr("s3://bucket/lines/*"));
  for (const char* const signature : {"", "?signature=hush"}) {
    EXPECT_THAT(
        refused(errc::usage, [&] { return open_folder(there + "classes" + signature, {.remote = http}); }),
        ::testing::AllOf(HasSubstr("classes/: a folder is listed of s3:// only"), ::testing::Not(HasSubstr("hush"))));
  }
  EXPECT_THAT(refused(errc::not_found, [&] { return open_tokens(there + "megatron/none", {.remote = http}); }),
              ::testing::AllOf(HasSubstr("megatron/none: none of "), HasSubstr("megatron/none.idx")));
  EXPECT_THAT(refused(errc::not_found, [&] { return open_records(there + "tokens/0.bin", {.remote = http}); }),
              HasSubstr("tokens/0.json"));
  EXPECT_THAT(refused(errc::not_found, [&] { return open_zarr(there + "mds/plain", {.remote = http}); }),
              HasSubstr("no Zarr"));
  EXPECT_THAT(refused(errc::not_found, [&] { return open_mds(there + "classes", {.remote = http}); }),
              HasSubstr("index.json"));
  EXPECT_THAT(refused(errc::not_found, [&] { return open_zarr("s3://bucket/mds/plain", {.remote = store()}); }),
              HasSubstr("no Zarr"));
}

}  // namespace
}  // namespace leat
