// leat inspect: what it finds in a source.
#include "tests/support/make_picture.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <string_view>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::uint64_t bytes_in(const photo_folder& photos) {
  std::uint64_t bytes = 0;
  for (const std::filesystem::path& file : photos.files()) bytes += std::filesystem::file_size(file);
  return bytes;
}

const json& named(const json& list, const std::string& name) {
  for (const json& each : list) {
    if (each.at("name") == name) return each;
  }
  static const json nothing;
  ADD_FAILURE() << "nothing is called " << name << " in " << list;
  return nothing;
}

TEST(inspect, a_folder_of_classes) {
  const photo_folder photos;
  const ended process = run({"inspect", photos.path().string(), "--json"});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  const json found = process.json();
  EXPECT_EQ(found.at("samples"), 12);
  EXPECT_EQ(found.at("files"), 12);
  EXPECT_EQ(found.at("bytes"), bytes_in(photos));
  EXPECT_EQ(named(found.at("fields"), "jpg").at("kind"), "picture");
  EXPECT_EQ(named(found.at("fields"), "jpg").at("bytes"), bytes_in(photos));
  EXPECT_EQ(named(found.at("fields"), "cls").at("column"), true);
  ASSERT_EQ(found.at("classes").size(), 3U);
  for (const json& each : found["classes"]) EXPECT_EQ(each.at("samples"), 4);
  EXPECT_EQ(found["classes"][1].at("class"), 1);
  EXPECT_EQ(found["classes"][1].at("name"), photos.files()[4].parent_path().filename().string());
  EXPECT_TRUE(found.at("notes").is_array());
  EXPECT_TRUE(found.at("defects").empty());
}

TEST(inspect, the_histogram_has_every_sample_once) {
  const photo_folder photos;
  const json found = run({"inspect", photos.path().string(), "--json"}).json();
  std::uint64_t samples = 0;
  std::uint64_t last = 0;
  for (const json& bucket : found.at("size_histogram")) {
    EXPECT_LT(bucket.at("from"), bucket.at("to"));
    if (last != 0) EXPECT_EQ(bucket["from"], last) << "a gap";
    last = bucket["to"];
    samples += bucket.at("samples").get<std::uint64_t>();
    for (const std::filesystem::path& file : photos.files()) {
      const std::uint64_t size = std::filesystem::file_size(file);
      if (size >= bucket["from"] && size < bucket["to"]) EXPECT_GT(bucket["samples"], 0);
    }
  }
  EXPECT_EQ(samples, 12U);
}

TEST(inspect, shards_tell_their_classes_from_their_members) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string shards = (directory.path() / "p-{0..2}.tar").string();
  ASSERT_EQ(run({"pack", photos.path().string(), shards}).exit_code, 0);
  const json found = run({"inspect", shards, "--json"}).json();
  EXPECT_EQ(found.at("samples"), 12);
  EXPECT_EQ(found.at("files"), 3);
  EXPECT_EQ(named(found.at("fields"), "cls").at("column"), false);
  EXPECT_EQ(found.at("classes").size(), 3U);
  EXPECT_EQ(found.at("classes_looked_at"), 12);
  // A folder of shards is those shards.
  EXPECT_EQ(run({"inspect", directory.path().string(), "--json"}).json().at("samples"), 12);
}

// What would end the run is said before it, and the budget that is named does.
TEST(inspect, references_are_written_of_arrays_and_are_a_source) {
  const temporary_directory directory;
  const std::filesystem::path array = directory.path() / "numbers.zarr";
  std::filesystem::create_directory(array);
  std::ofstream(array / ".zarray") << R"({"zarr_format":2,"shape":[4,2],"chunks":[2,2],"dtype":"|u1","order":"C",)"
                                   << R"("compressor":null,"filters":null,"fill_value":9})";
  std::ofstream(array / "0.0") << "abcd";
  const std::string out = (directory.path() / "refs.json").string();
  const ended process = run({"inspect", array.string(), "--references", out, "--json"});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_EQ(process.json().at("samples"), 4);
  const json refs = json::parse(std::ifstream(out)).at("refs");
  EXPECT_EQ(refs.at("numbers/0.0"), (json{(array / "0.0").string(), 0, 4}));
  EXPECT_FALSE(refs.contains("numbers/1.0"));
  const json found = run({"inspect", out, "--json"}).json();
  EXPECT_EQ(found.at("samples"), 4);
  EXPECT_EQ(named(found.at("fields"), "numbers").at("dtype"), "u8");

  const photo_folder photos;
  std::filesystem::remove(out);
  const ended refused = run({"inspect", photos.path().string(), "--references", out});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("neither"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(inspect, pictures_that_take_too_much_memory_are_named_with_the_budget_that_would_do) {
  const photo_folder photos;
  const std::filesystem::path large = photos.files().front().parent_path() / "large.jpg";
  const std::vector<std::byte> encoded = make_jpeg(make_noise(9, 1600, 1200), {.quality = 100, .progressive = true});
  std::ofstream(large, std::ios::binary)
      .write(reinterpret_cast<const char*>(encoded.data()), static_cast<std::streamsize>(encoded.size()));
  const std::string folder = photos.path().string();

  const json usual = run({"inspect", folder, "--json"}).json().at("large_pictures");
  EXPECT_EQ(usual.at("host_bytes_max"), 512 << 20);
  EXPECT_TRUE(usual.at("over_budget").empty());
  EXPECT_THAT(run({"inspect", folder}).out, Not(HasSubstr("will be corrupt")));

  const json found = run({"inspect", folder, "--json", "--host-bytes-max", "20MiB"}).json().at("large_pictures");
  EXPECT_GE(found.at("looked_at"), 1);
  ASSERT_EQ(found.at("over_budget").size(), 1U);
  EXPECT_THAT(found["over_budget"][0].at("name").get<std::string>(), HasSubstr("large"));
  EXPECT_GT(found["over_budget"][0].at("bytes"), 5 << 20);
  const ended page = run({"inspect", folder, "--host-bytes-max", "20MiB"});
  EXPECT_THAT(page.out, HasSubstr("1 picture that will be corrupt"));
  EXPECT_THAT(page.out, HasSubstr("leat pack --transcode"));

  // A small file can take any memory: one colour, interlaced.
  const photo_folder bombs;
  rgb_picture black{3000, 2000, {}};
  black.pixels.resize(std::size_t{3} * 3000 * 2000);
  rgb_picture seen;
  const std::vector<std::byte> small =
      make_png(black, {.colours = png_colours::grey, .depth = 1, .interlaced = true}, seen);
  ASSERT_LT(small.size(), 5000U);
  std::ofstream(bombs.files().front(), std::ios::binary)
      .write(reinterpret_cast<const char*>(small.data()), static_cast<std::streamsize>(small.size()));
  const json bomb = run({"inspect", bombs.path().string(), "--json", "--host-bytes-max", "20MiB"}).json();
  ASSERT_EQ(bomb.at("large_pictures").at("over_budget").size(), 1U);
  EXPECT_EQ(bomb["large_pictures"]["over_budget"][0].at("sample"), 0);

  // A terminal is told how far it is: each of these takes more than the status line waits for.
  const photo_folder many;
  for (int i = 0; i < 4; ++i) {
    std::filesystem::copy_file(large, many.files().front().parent_path() / (std::to_string(i) + ".jpg"));
  }
  const ended watched = command({"inspect", many.path().string(), "--host-bytes-max", "20MiB"},
                                command::streams::terminal, {"TERM=xterm", "NO_COLOR=1"})
                            .wait();
  EXPECT_THAT(watched.out, HasSubstr("looking at samples: "));

  const auto epoch = [&](const std::string& budget) {
    return run({"epoch", folder, "--batch-size", "4", "--on-corrupt", "skip", "--host-bytes-max", budget});
  };
  const ended without = epoch("20MiB");
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("over budget"));
  const ended enough = epoch(found.at("host_bytes_enough").dump());
  EXPECT_EQ(enough.exit_code, 0) << enough.err;
}

TEST(inspect, damage_is_named) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string shard = (directory.path() / "p.tar").string();
  ASSERT_EQ(run({"pack", photos.path().string(), shard}).exit_code, 0);
  // In the middle of some member.
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) / 2);
  const ended process = run({"inspect", shard, "--json"});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  const json found = process.json();
  ASSERT_EQ(found.at("defects").size(), 1U) << found;
  EXPECT_FALSE(found["defects"][0].at("reason").get<std::string>().empty());
  const std::string page = run({"inspect", shard}).out;
  EXPECT_THAT(page, HasSubstr("1 damaged sample"));
  EXPECT_THAT(page, HasSubstr("what is in them was not decoded"));
  EXPECT_EQ(found.at("defects_looked_for").at("samples"), found.at("samples"));
  EXPECT_THAT(run({"inspect", photos.path().string()}).out,
              HasSubstr("no damage seen\n  looked at: where all samples"));
}

TEST(inspect, decode_names_what_is_damaged_anywhere) {
  const photo_folder photos;
  const ended whole = run({"inspect", photos.path().string(), "--decode"});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("12 samples decoded whole, none damaged"));

  const std::filesystem::path cut = photos.files()[2];
  const std::filesystem::path ends_early = photos.files()[7];
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 20);
  std::fstream file(ends_early, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(ends_early) - 100));
  file << "\xFF\xD9";
  file.close();
  const ended found = run({"inspect", photos.path().string(), "--decode", "--json"});
  EXPECT_EQ(found.exit_code, 1);
  const json decoded = found.json().at("decoded");
  EXPECT_EQ(decoded.at("looked_at"), 12);
  ASSERT_EQ(decoded.at("damaged").size(), 2U) << decoded;
  EXPECT_THAT(decoded["damaged"][0].at("name").get<std::string>(), HasSubstr(cut.filename().string()));
  EXPECT_THAT(decoded["damaged"][1].at("name").get<std::string>(), HasSubstr(ends_early.filename().string()));
  for (const json& each : decoded["damaged"]) {
    EXPECT_EQ(each.at("field"), "jpg");
    EXPECT_EQ(each.at("kind"), "damaged");
    EXPECT_THAT(each.at("reason").get<std::string>(), HasSubstr("JPEG: "));
  }
  EXPECT_THAT(run({"inspect", photos.path().string(), "--decode"}).out,
              HasSubstr("12 samples decoded whole: 2 damaged"));
}

// Formats by content, whatever the names say, and what is left out beside.
TEST(inspect, what_photo_packs_would_gain_is_measured) {
  const photo_folder photos;
  const json gain = run({"inspect", photos.path().string(), "--json"}).json().at("jpegs").at("as_photo_packs");
  EXPECT_GE(gain.at("measured"), 4);
  EXPECT_GT(gain.at("bytes"), 1.0);
  EXPECT_LT(gain.at("bytes"), 1.6);
  EXPECT_GT(gain.at("speed_up"), 0.5);
  EXPECT_LT(gain.at("speed_up"), 10.0);
}

TEST(inspect, pictures_are_counted_by_their_content) {
  const photo_folder photos;
  const auto write = [](const std::filesystem::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  };
  const std::filesystem::path one_class = photos.files().front().parent_path();
  using namespace std::string_literals;
  write(one_class / "page.jpg", "8BPS, or so it says"s);
  write(one_class / "scan.png", "\0\0\1\0 and so on"s);
  write(one_class / "old.webp", "BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"s);
  write(one_class / "none.png", "<html>not found</html>"s);
  write(one_class / "phone.heic", "left out"s);
  write(one_class / "xray.png", "\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x10\0\0\0\0"s);
  write(photos.path() / "loose.jpg", "left out"s);
  const json found = run({"inspect", photos.path().string(), "--json"}).json();
  const json expected = {
      {"looked_at", 17},
      {"formats", {{"unknown", 1}, {"JPEG", 12}, {"PNG", 1}, {"BMP", 1}, {"ICO", 1}, {"Photoshop", 1}}},
      {"refused", 3},
      {"grey_of_16_bits", 1},
      {"palettes", 0}};
  EXPECT_EQ(found.at("pictures"), expected);
  ASSERT_EQ(found.at("notes").size(), 2U);
  EXPECT_THAT(found["notes"][0].get<std::string>(), HasSubstr("1 picture beside the class folders"));
  EXPECT_THAT(found["notes"][1].get<std::string>(), HasSubstr("1 .heic"));

  const ended page = run({"inspect", photos.path().string()});
  EXPECT_THAT(page.out, HasSubstr("12 JPEG, 1 PNG, 1 BMP\n"));
  EXPECT_THAT(page.out, HasSubstr("1 PNG is of 16-bit grey: the upper byte of each pixel is taken; a mask (--mask)"));
  EXPECT_THAT(page.out,
              HasSubstr("not read: 1 of no known format, 1 ICO, 1 Photoshop: corrupt samples when they are loaded"));
  EXPECT_THAT(page.out, HasSubstr("loose.jpg"));

  // Members of shards likewise.
  const temporary_directory directory;
  const std::string shard = (directory.path() / "p.tar").string();
  ASSERT_EQ(run({"pack", photos.path().string(), shard}).exit_code, 0);
  EXPECT_EQ(run({"inspect", shard, "--json"}).json().at("pictures"), expected);

  // Those of a table are what they are expanded.
  for (const char* name : {"bare", "packed"}) {
    const std::string table = std::string(LEAT_TEST_DATA) + "/parquet/pictures-" + name + ".parquet";
    EXPECT_EQ(
        run({"inspect", table, "--json"}).json().at("pictures"),
        json({{"looked_at", 20}, {"formats", {{"JPEG", 20}}}, {"refused", 0}, {"grey_of_16_bits", 0}, {"palettes", 0}}))
        << name;
  }
}

// What a batch gets, and not what is left of it on the drive.
TEST(inspect, sizes_are_of_values_and_not_of_what_they_are_packed_in) {
  const std::string data = LEAT_TEST_DATA;
  for (const char* codec : {"snappy", "zstd", "gzip", "lz4"}) {
    const json packed = run({"inspect", data + "/parquet/packed-" + codec + ".parquet", "--json"}).json();
    const json& text = named(packed.at("fields"), "text");
    EXPECT_EQ(text.at("bytes"), text.at("bytes_mean").get<double>() * text.at("samples").get<double>());
    EXPECT_GE(text.at("bytes_max"), text.at("bytes_mean")) << codec;
    EXPECT_GT(text.at("stored_bytes"), 0) << codec;
  }
  const json one = run({"inspect", data + "/parquet/packed-zstd.parquet", "--json"}).json();
  const json other = run({"inspect", data + "/parquet/packed-gzip.parquet", "--json"}).json();
  EXPECT_EQ(one.at("sample_bytes"), other.at("sample_bytes")) << "the same values";
}

TEST(inspect, a_field_within_a_record_has_no_size_of_its_own) {
  const temporary_directory root;
  const std::string path = root.path() / "a.jsonl";
  std::ofstream(path) << "{\"t\": \"first\", \"n\": 7}\n{\"t\": \"and another\", \"n\": 8}\n";
  const json found = run({"inspect", path, "--json"}).json();
  for (const json& field : found.at("fields")) {
    EXPECT_FALSE(field.contains("bytes")) << field;
    EXPECT_EQ(field.at("record_bytes_max"), 28);
  }
  EXPECT_EQ(found.at("sample_bytes").at("max"), 28) << "the record once";
  EXPECT_THAT(run({"inspect", path}).out, HasSubstr("within records of at most 28 B"));
}

TEST(inspect, labels_of_arrays_and_tables_have_their_classes) {
  const temporary_directory root;
  const std::string arrays =
      write_file(root.path() / "set.npz",
                 zip_text({{"x.npy", npy_text(npy_dict("<f4", "6,"), bytes_of<float>({1, 2, 3, 4, 5, 6}))},
                           {"y.npy", npy_text(npy_dict("<i8", "6,"), bytes_of<std::int64_t>({0, 1, 1, 2, 2, 2}))}}));
  const json found = run({"inspect", arrays, "--json"}).json();
  EXPECT_EQ(found.at("class_label"), "y");
  ASSERT_EQ(found.at("classes").size(), 3U) << found.at("classes");
  for (std::size_t number = 0; number < 3; ++number) EXPECT_EQ(found["classes"][number].at("samples"), number + 1);

  // The only number of a record, and another one in each: an id, say.
  const std::string ids = write_file(root.path() / "ids.jsonl",
                                     "{\"t\": \"a\", \"n\": 7}\n{\"t\": \"b\", \"n\": 8}\n{\"t\": \"c\", \"n\": 9}\n");
  EXPECT_TRUE(run({"inspect", ids, "--json"}).json().at("classes").empty());

  const json hub = run({"inspect", std::string(LEAT_TEST_DATA) + "/parquet/hub.parquet", "--json"}).json();
  EXPECT_EQ(hub.at("class_label"), "label");
  EXPECT_EQ(hub.at("classes_looked_at"), hub.at("samples"));
  std::uint64_t labelled = 0;
  for (const json& each : hub.at("classes")) labelled += each.at("samples").get<std::uint64_t>();
  EXPECT_EQ(labelled, hub.at("samples"));
}

TEST(inspect, blocks_of_no_bytes_have_no_share_of_a_sample) {
  const json found = run({"inspect", std::string(LEAT_TEST_DATA) + "/arrow/empty-column.arrow", "--json"}).json();
  EXPECT_EQ(found.at("samples"), 2);
  EXPECT_LT(found.at("sample_bytes").at("max"), 1000);
}

TEST(inspect, a_packed_table_of_texts_is_to_be_packed_as_shards) {
  const ended page = run({"inspect", std::string(LEAT_TEST_DATA) + "/parquet/packed-zstd.parquet"});
  EXPECT_THAT(page.out, HasSubstr("`leat pack SOURCE 'OUT-%06d.tar'` leaves nothing to expand"));
  EXPECT_THAT(page.out, Not(HasSubstr("--to npy")));
}

// Of each format of tables: how a field lies, what is done to what is read, and the first value.
TEST(inspect, tables_say_how_each_field_lies_and_show_its_first_value) {
  const temporary_directory root;
  const auto put = [&](const char* name, const char* content) {
    const std::string path = (root.path() / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  };
  const std::string data = LEAT_TEST_DATA;
  struct expected {
    std::string path, field, mode, how, shows;
  };
  const std::string record = "picked out of a record";
  const expected all[] = {
      {data + "/parquet/pictures-bare.parquet", "image", "extents", "", "JPEG, 24 x 20"},
      {data + "/parquet/pictures-packed.parquet", "image", "blocks", "snappy, dictionary", "JPEG, 24 x 20"},
      {data + "/parquet/hub.parquet", "ids", "blocks", "lists, snappy, dictionary", "i32 [0]"},
      {data + "/arrow/file.arrow", "vector", "extents", "", "f32 [3]: 0.0, 1.0, 2.0"},
      {data + "/arrow/lz4.arrow", "text", "blocks", "lz4", "'text 0'"},
      {data + "/lmdb/ocr.mdb", "label", "extents", "", "'word 1'"},
      {data + "/lmdb/msgpack.mdb", "meta.id", "extents", record, "'key 0'"},
      {data + "/tfrecord/examples.tfrecord", "label", "extents", record, "-5"},
      {data + "/mds/plain", "drawn", "extents", "", "PNG, 8 x 8"},
      {data + "/mds/plain", "f16", "extents", "decoded", "0"},
      {put("a.jsonl", "{\"t\": \"first\", \"n\": 7}\n"), "t", "extents", record, "'first'"},
      {put("a.csv", "n,t\n7,\"a \"\"b\"\"\"\n"), "t", "extents", record, "'a \"b\"'"},
  };
  for (const expected& each : all) {
    const json found = run({"inspect", each.path, "--json"}).json();
    const json& field = named(found.at("fields"), each.field);
    EXPECT_EQ(field.at("mode"), each.mode) << each.path;
    EXPECT_EQ(field.value("how", ""), each.how) << each.path;
    EXPECT_EQ(field.at("first").at("shows"), each.shows) << each.path;
    EXPECT_EQ(field.at("first").at("failure"), "") << each.path;
  }
  const ended page = run({"inspect", data + "/parquet/hub.parquet"});
  EXPECT_THAT(page.out, HasSubstr("  text     blocks   snappy, dictionary         'text 0'\n"));
  EXPECT_THAT(page.out, HasSubstr("not decoded: JPEG ends inside its headers"));
  // Two fields of one record are its bytes once.
  EXPECT_EQ(run({"inspect", put("b.jsonl", "{\"t\": 1, \"n\": 7}\n"), "--json"}).json().at("bytes"), 16);
}

TEST(inspect, what_is_refused_is_named_with_what_to_do) {
  const temporary_directory root;
  const auto put = [&](const char* name, std::string_view content) {
    const std::string path = (root.path() / name).string();
    std::ofstream(path, std::ios::binary) << content << std::string(600, 'x');
    return path;
  };
  using std::string_view_literals::operator""sv;
  for (const char* subcommand : {"inspect", "epoch"}) {
    for (const char* name : {"x.jsonl.gz", "x.csv.gz"}) {
      const ended process = run({subcommand, put(name, "\x1f\x8b\x08\0"sv)});
      EXPECT_EQ(process.exit_code, 1);
      EXPECT_THAT(process.err, HasSubstr(std::string(name) + ": offset 15: damaged gzip data"));
    }
    const ended unnamed = run({subcommand, put("x.jsonl", "\x1f\x8b\x08\0"sv)});
    EXPECT_EQ(unnamed.exit_code, 2);
    EXPECT_THAT(unnamed.err, AllOf(HasSubstr("x.jsonl: this is gzip"), HasSubstr("rename it"), HasSubstr("(gzip -dc")));
    const ended other = run({subcommand, put("x.jsonl.bz2", "BZh91AY"sv)});
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.err, AllOf(HasSubstr("x.jsonl.bz2: this is bzip2; decompress it first (bzip2 -dc")));
  }
  const std::string records =
      put("x.array_record", "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0"sv);
  const ended process = run({"epoch", records});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.err, HasSubstr("ArrayRecord"));
  EXPECT_THAT(process.err, HasSubstr("TFRecordWriter"));
}

TEST(inspect, a_person_gets_a_page_without_colours_off_a_terminal) {
  const photo_folder photos;
  const ended process = run({"inspect", photos.path().string()});
  EXPECT_EQ(process.exit_code, 0);
  EXPECT_THAT(process.out, HasSubstr("12 samples"));
  EXPECT_THAT(process.out, HasSubstr("sizes of samples"));
  EXPECT_THAT(process.out, HasSubstr("3 classes"));
  EXPECT_THAT(process.out, Not(HasSubstr("\x1b")));
  const ended coloured =
      command({"inspect", photos.path().string()}, command::streams::terminal, {"TERM=xterm", "NO_COLOR="}).wait();
  EXPECT_THAT(coloured.out, HasSubstr("\x1b["));
  const ended plain =
      command({"inspect", photos.path().string()}, command::streams::terminal, {"TERM=xterm", "NO_COLOR=1"}).wait();
  EXPECT_THAT(plain.out, Not(HasSubstr("\x1b[1m")));
}

TEST(inspect, a_source_that_is_not_there_is_named) {
  const ended process = run({"inspect", "/no/such/shard-{0..3}.tar"});
  EXPECT_EQ(process.exit_code, 2);
  expect_one_line(process, "leat inspect: /no/such/shard-");
}

}  // namespace
}  // namespace leat::testing
