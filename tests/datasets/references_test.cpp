// References to the chunks of arrays: what kerchunk wrote (tests/data/zarr/make.py), and what is made here of the hierarchies beside it.
#include "base/base64.hpp"
#include "datasets/write/references_writer.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using testing::expect_numbers;
using ::testing::HasSubstr;
using testing::message_of;
using json = nlohmann::json;
namespace fs = std::filesystem;

const std::string zarr_data = std::string(LEAT_TEST_DATA) + "/zarr/";

std::string written(const datasets::referable_arrays& what) {
  std::string text;
  datasets::write_references(what, [&](std::string_view piece) { text += piece; });
  return text;
}

void expect_same(const dataset& samples, const dataset& expected) {
  ASSERT_EQ(samples.size(), expected.size());
  const std::vector<field_info> fields = expected.fields();
  ASSERT_EQ(samples.fields().size(), fields.size());
  for (const field_info& field : fields) {
    SCOPED_TRACE(field.name);
    for (std::uint64_t i = 0; i < samples.size(); i += 1 + samples.size() / 10) {
      if (field.column) {
        EXPECT_EQ(samples.column(i, field.name), expected.column(i, field.name));
      } else {
        EXPECT_EQ(samples.read(i, field.name), expected.read(i, field.name));
      }
    }
  }
}

std::string content_of(const fs::path& path) {
  std::ifstream from(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

// References to all that is in a hierarchy: metadata as text, files of up to so many bytes as base64, others by their paths.
json references_to(const std::string& name, std::size_t inline_bytes_max) {
  json refs;
  for (const auto& each : fs::recursive_directory_iterator(zarr_data + name)) {
    if (!each.is_regular_file()) continue;
    const std::string key = fs::relative(each.path(), zarr_data + name).string();
    const std::string file = each.path().filename().string();
    if (file.starts_with(".z") || file == "zarr.json") {
      refs[key] = content_of(each.path());
    } else if (each.file_size() <= inline_bytes_max) {
      refs[key] = "base64:" + to_base64(content_of(each.path()));
    } else {
      refs[key] = {each.path().string(), 0, each.file_size()};
    }
  }
  return refs;
}

class references : public ::testing::Test {
 protected:
  std::string write_text(const std::string& text, const std::string& name = "refs.json") {
    const fs::path path = directory_.path() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  std::string write(const json& refs, const std::string& name = "refs.json") { return write_text(refs.dump(), name); }

  // An array of 4 rows of two u8, each a chunk; the chunks are as given.
  json small(std::vector<json> chunks) {
    json refs = {{".zgroup", R"({"zarr_format":2})"},
                 {"x/.zarray", R"({"zarr_format":2,"shape":[4,2],"chunks":[1,2],"dtype":"|u1","order":"C",)"
                               R"("compressor":null,"filters":null,"fill_value":9})"}};
    for (std::size_t i = 0; i < chunks.size(); ++i) refs["x/" + std::to_string(i) + ".0"] = chunks[i];
    return refs;
  }

  testing::temporary_directory directory_;
};

std::string row(const dataset& samples, std::uint64_t number) {
  const std::vector<std::byte> bytes = samples.read(number, "x");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(references, what_kerchunk_wrote_of_hdf5_is_read) {
  const dataset samples = open(zarr_data + "kerchunk.json");
  ASSERT_EQ(samples.size(), 12U);
  for (const char* name : {"zstd", "blosc_lz4", "blosc_zstd"}) expect_numbers(samples, {name, dtype::i32, {37}});
}

TEST_F(references, of_both_versions_of_zarr_give_what_the_folders_give) {
  for (const std::string name : {"v2.zarr", "v3.zarr"}) {
    const dataset expected = open(zarr_data + name);
    for (const std::size_t inline_bytes_max : {std::size_t{0}, std::size_t{70}, std::size_t{100'000}}) {
      SCOPED_TRACE(name + ", inline up to " + std::to_string(inline_bytes_max));
      const json refs = references_to(name, inline_bytes_max);
      expect_same(open(write(inline_bytes_max == 70 ? refs : json{{"version", 1}, {"refs", refs}})), expected);
    }
  }
}

TEST_F(references, text_whole_files_parts_of_files_and_chunks_that_are_not_there) {
  std::ofstream(directory_.path() / "whole.bin", std::ios::binary) << "cd";
  std::ofstream(directory_.path() / "parts.bin", std::ios::binary) << "....ef.";
  json refs = small({"ab", {"whole.bin"}, {"file://" + (directory_.path() / "parts.bin").string(), 4, 2}});
  refs["x/.zarray"] = json::parse(refs["x/.zarray"].get<std::string>());  // an object is text to others
  const dataset samples = open_references(write(refs));
  EXPECT_EQ(row(samples, 0), "ab");
  EXPECT_EQ(row(samples, 1), "cd");
  EXPECT_EQ(row(samples, 2), "ef");
  EXPECT_EQ(row(samples, 3), "\x09\x09");
}

TEST_F(references, templates_that_are_names_are_filled_in) {
  std::ofstream(directory_.path() / "parts.bin", std::ios::binary) << "abcd";
  const json refs = small({{"{{u}}", 0, 2}, {"{{ folder }}/parts.bin", 2, 2}});
  json all = {{"version", 1},
              {"templates", {{"u", "parts.bin"}, {"folder", directory_.path().string()}, {"f", "{{c}}"}}},
              {"gen", json::array()},
              {"refs", refs}};
  const dataset samples = open(write(all));
  EXPECT_EQ(row(samples, 0), "ab");
  EXPECT_EQ(row(samples, 1), "cd");
  for (const char* url : {"{{f(c='x')}}", "{{f}}", "{{v}}"}) {
    all["refs"]["x/0.0"] = {url, 0, 2};
    EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(write(all))); }),
                AllOf(HasSubstr("template"), HasSubstr("x/0.0"), HasSubstr("write the url out")));
  }
}

TEST_F(references, an_array_at_the_root_is_called_as_the_file) {
  json refs = references_to("array.zarr", 0);
  expect_numbers(open(write(refs, "numbers.json")), {"numbers", dtype::i32, {2}});
}

TEST_F(references, what_is_not_read_is_named_with_what_to_do) {
  const auto opening = [&](const json& refs) {
    return [path = write(refs)] { static_cast<void>(open_references(path)); };
  };
  EXPECT_THAT(message_of(errc::unsupported, opening({{"version", 1}, {"refs", small({})}, {"gen", {{"key", "x"}}}})),
              AllOf(HasSubstr("refs.json"), HasSubstr("\"gen\""), HasSubstr("write each")));
  EXPECT_THAT(message_of(errc::unsupported, opening({{"version", 2}, {"refs", small({})}})), HasSubstr("version 2"));
  EXPECT_THAT(message_of(errc::unsupported, opening(small({{"gs://bucket/x.nc", 0, 2}}))),
              AllOf(HasSubstr("refs.json/x"), HasSubstr("gs://bucket/x.nc"), HasSubstr("copy it")));
  EXPECT_THAT(message_of(errc::unsupported, opening(small({{"simplecache::s3://b/x", 0, 2}}))),
              HasSubstr("files within others"));
  EXPECT_THAT(message_of(errc::not_found, opening(small({{"gone.nc", 0, 2}}))),
              AllOf(HasSubstr("x/0.0"), HasSubstr("gone.nc"), HasSubstr("folder of the references")));
  write_text("abc", "short.bin");
  EXPECT_THAT(message_of(errc::format, opening(small({{"short.bin", 2, 2}}))),
              AllOf(HasSubstr("x/0.0"), HasSubstr("2 bytes at offset 2"), HasSubstr("which has 3")));
  EXPECT_THAT(message_of(errc::format, opening(small({{"short.bin", ~std::uint64_t{0}, 2}}))), HasSubstr("x/0.0"));
  EXPECT_THAT(message_of(errc::format, opening(small({{"short.bin", -1, 2}}))), HasSubstr("\"x/0.0\""));
  EXPECT_THAT(message_of(errc::format, opening(small({{"short.bin", 2}}))), HasSubstr("[url, offset, length]"));
  EXPECT_THAT(message_of(errc::format, opening(small({"base64:*"}))), HasSubstr("base64"));
  EXPECT_THAT(message_of(errc::format, opening({{"version", 1}, {"refs", 7}})), HasSubstr("\"refs\""));
  EXPECT_THAT(message_of(errc::format, opening({{"/x/.zgroup", "{}"}})), HasSubstr("/x/.zgroup"));
  const std::string cut = write_text(small({}).dump().substr(0, 40));
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open(cut)); }), HasSubstr("it is no JSON"));
  // A JSON that is something else.
  const std::string other = write_text(R"({"fields": [{"refs": 1}]})");
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open(other)); }), HasSubstr("what the records"));
}

TEST_F(references, arrays_elsewhere_are_left_out_with_a_note) {
  json refs = references_to("v2.zarr", 0);
  refs["plain/0.0"] = {"https://example.org/x.nc", 0, 96};
  const dataset samples = open(write(refs));
  EXPECT_THAT(samples.notes(),
              Contains(AllOf(HasSubstr("refs.json/plain"), HasSubstr("https://example.org/x.nc: an address"))));
  expect_numbers(samples, {"zlib", dtype::i16, {6}});
}

TEST_F(references, a_damaged_chunk_in_the_json_is_the_samples_own) {
  json refs = references_to("v2.zarr", 100'000);
  std::string chunk = refs["zlib/1.1"];
  chunk[chunk.size() / 2] = chunk[chunk.size() / 2] == 'A' ? 'B' : 'A';
  refs["zlib/1.1"] = chunk;
  const dataset samples = open(write(refs));
  EXPECT_EQ(samples.read(4, "zlib"), open(zarr_data + "v2.zarr").read(4, "zlib"));
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(5, "zlib")); }),
              AllOf(HasSubstr("'zlib'"), HasSubstr("refs.json")));
}

TEST_F(references, that_are_written_give_what_their_source_gives) {
  const std::vector<std::string> kinds{"contiguous", "never_written", "labels",           "gzip",       "shuffled",
                                       "checked",    "plain_chunks",  "pieces",           "big_endian", "half",
                                       "flags",      "partly",        "train/deep/images"};
  const std::pair<std::string, std::vector<std::string>> sources[] = {
      {"../hdf5/kinds-earliest.h5", kinds},
      {"../hdf5/kinds-latest.h5", kinds},
      {"../hdf5/indexes-latest.h5", {}},
      {"../hdf5/indexes-latest.h5", {"growing_both"}},
      {"../hdf5/user-block.h5", {}},
      {"../hdf5/filters.h5", {"zstd", "blosc_lz4", "blosc_zstd"}},
      {"v2.zarr", {}},
      {"v3.zarr", {"labels", "plain", "gzip_checked", "sharded", "sharded_partly", "half", "deep/er/images"}},
      {"array.zarr", {}},
      {"kerchunk.json", {}}};
  for (const auto& [source, fields] : sources) {
    SCOPED_TRACE(source);
    const std::string text = written(datasets::arrays_to_refer_to(zarr_data + source, fields));
    expect_same(open(write_text(text)), open(std::vector{zarr_data + source}, {.arrays = {.fields = fields}}));
    // All metadata in one place, for readers that list no groups.
    const json refs = json::parse(text)["refs"];
    const json consolidated = json::parse(refs[".zmetadata"].get<std::string>())["metadata"];
    std::size_t metadata = 0;
    for (const auto& [key, value] : refs.items()) {
      if (!key.ends_with("/.zarray") && !key.ends_with("/.zattrs") && !key.ends_with(".zgroup")) continue;
      EXPECT_EQ(consolidated.at(key), json::parse(value.get<std::string>())) << key;
      ++metadata;
    }
    EXPECT_EQ(consolidated.size(), metadata);
  }
}

TEST_F(references, are_not_written_of_what_numcodecs_cannot_undo) {
  for (const std::string name : {"lzf", "lz4", "bitshuffle", "bitshuffle_lz4"}) {
    const std::vector<std::string> fields{name};
    EXPECT_THAT(
        message_of(errc::unsupported,
                   [&] {
                     static_cast<void>(written(datasets::arrays_to_refer_to(zarr_data + "../hdf5/filters.h5", fields)));
                   }),
        AllOf(HasSubstr("'" + name + "'"), HasSubstr("filter '" + name.substr(0, 3))));
  }
  const std::vector<std::string> stored_as_it_is{"blosclz"};
  EXPECT_THAT(message_of(errc::unsupported,
                         [&] {
                           static_cast<void>(written(
                               datasets::arrays_to_refer_to(zarr_data + "../hdf5/filters.h5", stored_as_it_is)));
                         }),
              HasSubstr("without the filter 'blosc'"));
  EXPECT_THAT(
      message_of(errc::usage, [] { static_cast<void>(datasets::arrays_to_refer_to(zarr_data + "make.py", {})); }),
      HasSubstr("neither"));
}

TEST_F(references, are_not_written_of_chunks_that_others_would_misread) {
  const datasets::chunked_array fine{.name = "x",
                                     .type = dtype::i16,
                                     .shape = {3, 2, 2},
                                     .chunk = {2, 2, 2},
                                     .places = {{.offset = 0, .bytes = 16}, {.offset = 16, .bytes = 16}},
                                     .filters = {},
                                     .fill = {},
                                     .held = {},
                                     .stored_axes = {}};
  const auto said_of = [](const datasets::chunked_array& array) {
    return message_of(errc::unsupported, [&] { static_cast<void>(written({{array}, {{"f", 64}}})); });
  };
  EXPECT_THAT(written({{fine}, {{"f", 64}}}), HasSubstr("/f\",16,16]"));
  datasets::chunked_array odd = fine;
  odd.places[1].bytes = 8;  // without the rows beyond the shape
  EXPECT_THAT(said_of(odd), AllOf(HasSubstr("'x'"), HasSubstr("chunk 1 has 8 bytes")));
  odd = fine;
  odd.filters = {{datasets::filter_kind::shuffle, 2}, {datasets::filter_kind::zlib, 2}};
  odd.places[0].skipped = 2;
  EXPECT_THAT(said_of(odd), AllOf(HasSubstr("chunk 0"), HasSubstr("'zlib'")));
  odd = fine;
  odd.stored_axes = {1, 0, 2};
  EXPECT_THAT(said_of(odd), HasSubstr("Fortran"));
  odd = fine;
  odd.record_bytes = 8;
  EXPECT_THAT(said_of(odd), HasSubstr("records"));
  odd = fine;
  odd.type = dtype::bf16;
  EXPECT_THAT(said_of(odd), HasSubstr("bf16"));
}

TEST_F(references, json_that_was_changed_comes_to_an_end) {
  std::mt19937_64 random(5);
  const std::string all = references_to("v3.zarr", 60).dump();
  for (int i = 0; i < testing::seed_count(150); ++i) {
    std::string text = all;
    for (std::uint64_t k = 0; k <= random() % 4; ++k) {
      const std::size_t at = text.find_first_of("0123456789/[]", random() % text.size());
      if (at != std::string::npos) text[at] = "0123456789/[],"[random() % 14];
    }
    try {
      const dataset samples = open_references(write_text(text));
      for (const field_info& field : samples.fields()) {
        if (field.column || field.bytes_max > (std::uint64_t{1} << 24) || samples.size() == 0) continue;
        if (field.decoded_block_bytes_max > (std::uint64_t{1} << 24)) continue;
        try {
          static_cast<void>(samples.read(samples.size() / 2, field.name));
        } catch (const error& said) {
          EXPECT_THAT(said.code(), AnyOf(errc::corrupt, errc::io, errc::format)) << said.what();
        }
      }
    } catch (const error& said) {
      EXPECT_THAT(said.code(),
                  AnyOf(errc::format, errc::unsupported, errc::usage, errc::limit, errc::io, errc::not_found))
          << said.what();
    }
  }
}

}  // namespace
}  // namespace leat
