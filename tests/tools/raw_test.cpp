// Arrays, records and tokens by the command.
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string token_bytes(std::size_t count) {
  std::vector<std::uint16_t> values(count);
  std::iota(values.begin(), values.end(), std::uint16_t{0});
  return bytes_of(values);
}

nlohmann::json run_json(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const ended process = run(arguments);
  EXPECT_EQ(process.exit_code, 0) << process.err;
  return process.json();
}

TEST(raw_sources, of_tokens_are_loaded_as_windows) {
  const temporary_directory root;
  const std::string path = write_file(root.path() / "train.bin", token_bytes(1025));
  const nlohmann::json tiled = run_json({"epoch", path, "--tokens", "16", "--windows", "tiled"});
  EXPECT_EQ(tiled.at("samples"), 64);
  EXPECT_EQ(tiled.at("bytes_delivered"), 64 * 16 * 16);
  EXPECT_EQ(run_json({"epoch", path, "--tokens", "16"}).at("samples"), 63);
  EXPECT_EQ(
      run_json({"epoch", path, "--tokens", "16", "--windows", "random", "--tokens-as", "stored"}).at("bytes_delivered"),
      64 * 16 * 4);
  EXPECT_EQ(run_json({"epoch", path, "--tokens", "16", "--tokens-as", "i32", "--seed", "1"}).at("digest"),
            run_json({"epoch", path, "--tokens", "16", "--tokens-as", "i32", "--seed", "1", "--threads", "4",
                      "--reader", "preadv"})
                .at("digest"));
}

TEST(raw_sources, records_with_a_wrong_checksum_are_corrupt_where_checksums_are_asked_for) {
  const temporary_directory root;
  std::string content = text_of(std::string(LEAT_TEST_DATA) + "/same/set.tfrecord");
  content[content.find("picture 13")] = 'P';
  const std::string path = write_file(root.path() / "x.tfrecord", content);
  const std::vector<std::string> epoch = {"epoch", path, "--fields", "label", "--on-corrupt", "skip"};
  EXPECT_EQ(run_json(epoch).at("quarantined"), 0);
  std::vector<std::string> verified = epoch;
  verified.emplace_back("--checksums");
  EXPECT_EQ(run_json(verified).at("quarantined"), 1);
  const ended lines = run({"epoch", write_file(root.path() / "x.jsonl", "{}\n"), "--checksums"});
  EXPECT_EQ(lines.exit_code, 2);
  EXPECT_THAT(lines.err,
              AllOf(HasSubstr("x.jsonl"), HasSubstr("--checksums is of Parquet, TFRecord and MDS, and this is JSONL")));
}

TEST(raw_sources, tables_name_their_paths_folders_and_columns) {
  const temporary_directory root;
  const std::string table = write_file(root.path() / "labels.csv", "name,score\na.bin,1\nb.bin,2.5\n");
  std::filesystem::create_directory(root.path() / "files");
  for (const char* name : {"a.bin", "b.bin"}) write_file(root.path() / "files" / name, std::string(10, name[0]));
  const std::string files = (root.path() / "files").string();
  const nlohmann::json followed =
      run_json({"epoch", table, "--path-column", "name", "--root", files, "--fields", "file"});
  EXPECT_EQ(followed.at("bytes_delivered"), 2 * 10 + 3 * 8) << "their bytes, and file.offsets";
  const ended elsewhere = run({"epoch", table, "--path-column", "name"});
  EXPECT_EQ(elsewhere.exit_code, 2);
  EXPECT_THAT(elsewhere.err, HasSubstr("a.bin"));
  EXPECT_EQ(run({"inspect", table, "--columns", "score"}).exit_code, 0);
  const ended unknown = run({"inspect", table, "--columns", "scores"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("'scores'"), HasSubstr("did you mean 'score'")));
  const auto bytes_as = [&](const char* types) {
    return run_json({"epoch", table, "--fields", "score", "--types", types}).at("bytes_delivered");
  };
  EXPECT_EQ(bytes_as("score=f32"), 2 * 4);
  EXPECT_EQ(bytes_as("score=f64"), 2 * 8);
  for (const char* const types : {"score", "score=u8", "=f32"}) {
    EXPECT_THAT(run({"epoch", table, "--types", types}).err, HasSubstr("is no NAME=TYPE")) << types;
  }
  // Whatever takes no such option says so.
  const ended passed_over =
      run({"epoch", std::string(LEAT_TEST_DATA) + "/same/bare.parquet", "--path-column", "image"});
  EXPECT_EQ(passed_over.exit_code, 2);
  EXPECT_THAT(passed_over.err, HasSubstr("--path-column is of JSONL and CSV, and this is Parquet"));
}

TEST(raw_sources, of_tokens_without_a_length_say_what_to_give) {
  const temporary_directory root;
  const ended plain = run({"epoch", write_file(root.path() / "train.bin", token_bytes(1001))});
  EXPECT_EQ(plain.exit_code, 2);
  EXPECT_THAT(plain.err, AllOf(HasSubstr("--tokens LENGTH"), HasSubstr("train.json")));
  const ended known = run({"epoch", write_file(root.path() / "f.bin", llmc_text(std::vector<std::uint16_t>(50)))});
  EXPECT_EQ(known.exit_code, 2);
  EXPECT_THAT(known.err, HasSubstr("--tokens LENGTH"));
}

TEST(raw_sources, of_tokens_are_told_what_the_command_at_hand_can_do) {
  const temporary_directory root;
  const std::string narrow = write_file(root.path() / "train.bin", token_bytes(1001));
  const std::string wide = write_file(root.path() / "wide.bin", bytes_of(std::vector<std::uint32_t>(1000, 7)));
  const std::string out = (root.path() / "x.tar").string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> hints = {
      {{"inspect", narrow}, "--token-type u16"},
      {{"inspect", wide}, "--token-type u32"},
      {{"bench", "read", narrow, "--pattern", "extents"}, "--tokens LENGTH"},
      {{"epoch", wide}, "--tokens 1024 --token-type u32"},
      {{"pack", narrow, out}, "copy them"},
      {{"show", narrow, "-o", "s.html"}, "--tokens LENGTH"}};
  for (const auto& [arguments, hint] : hints) {
    const ended process = run(arguments);
    EXPECT_EQ(process.exit_code, 2);
    EXPECT_THAT(process.err, HasSubstr(hint));
    if (arguments.front() == "inspect") EXPECT_THAT(process.err, ::testing::Not(HasSubstr("--tokens")));
  }
  EXPECT_EQ(run({"inspect", narrow, "--token-type", "u16"}).exit_code, 0);
}

TEST(raw_sources, options_that_would_do_nothing_are_mistakes) {
  const temporary_directory root;
  const std::string rows = write_file(root.path() / "rows.npy", npy_text(npy_dict("<f4", "3, 2"), std::string(24, 0)));
  write_file(root.path() / "r.json", R"({"fields": [{"name": "x", "dtype": "u8", "shape": [100]}]})");
  const std::string records = write_file(root.path() / "r.bin", std::string(1000, 'r'));
  write_file(root.path() / "m.bin", token_bytes(100));
  write_file(root.path() / "m.idx", megatron_index(8, 2, {60, 40}, {0, 1, 2}));
  const std::string mega = (root.path() / "m").string();
  const std::string several = (root.path() / "x-{0..3}.npy").string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"epoch", rows, "--windows", "random"}, "--windows requires --tokens"},
      {{"epoch", rows, "--documents", "mark"}, "--documents requires --tokens"},
      {{"epoch", records, "--tokens-as", "i32"}, "--tokens-as requires --tokens"},
      {{"epoch", records, "--token-type", "u16"}, "--token-type requires --tokens"},
      {{"epoch", records, "--tokens", "8"}, "r.json says; leave --tokens out"},
      {{"epoch", mega, "--tokens", "8", "--token-type", "u32"}, "--token-type u32: the files say themselves"},
      {{"inspect", mega, "--token-type", "i32"}, "hold u16; leave it out"},
      {{"pack", rows, several, "--to", "npy"}, "names several files"},
      {{"pack", rows, (root.path() / "x-%06d.bin").string(), "--to", "records"}, "names several files"},
      {{"bench", "read", records, "--tokens", "8"}, "--pattern extents"},
      {{"bench", "read", records, "--no-shuffle"}, "--pattern extents"}};
  for (const auto& [arguments, part] : mistakes) {
    const ended process = run(arguments);
    EXPECT_EQ(process.exit_code, 2) << part;
    EXPECT_THAT(process.err, HasSubstr(part));
    expect_one_line(process, "leat ");
  }
  EXPECT_FALSE(std::filesystem::exists(several));
  EXPECT_EQ(run({"epoch", mega, "--tokens", "8", "--token-type", "u16"}).exit_code, 0) << "it says the same";
  EXPECT_EQ(run({"epoch", records, "--tokens", "8", "--token-type", "u16"}).exit_code, 0) << "insisted";
}

// One rule for all of them.
TEST(raw_sources, without_a_sample_are_an_error) {
  const temporary_directory root;
  std::filesystem::create_directories(root.path() / "folder");
  write_file(root.path() / "r.json", R"({"fields": [{"name": "x", "dtype": "u8"}], "records": 0})");
  const std::string rows = npy_text(npy_dict("<f4", "0, 4"), "");
  const std::vector<std::vector<std::string>> sources = {
      {(root.path() / "folder").string()},
      {write_file(root.path() / "e.tar", std::string(10240, '\0'))},
      {write_file(root.path() / "e.npy", rows)},
      {write_file(root.path() / "c.npy", npy_text(npy_dict("<i8", "0,"), ""))},
      {write_file(root.path() / "e.npz", zip_text({{"x.npy", rows}}))},
      {write_file(root.path() / "r.bin", std::string(100, 'r'))},
      {write_file(root.path() / "t.bin", ""), "--tokens", "4"}};
  for (const std::vector<std::string>& source : sources) {
    std::vector<std::string> arguments = {"epoch"};
    arguments.insert(arguments.end(), source.begin(), source.end());
    const ended process = run(arguments);
    EXPECT_EQ(process.exit_code, 2) << source.front();
    EXPECT_THAT(process.err, AllOf(HasSubstr(source.front()), ::testing::ContainsRegex("no (sample|picture) in it")));
    EXPECT_EQ(process.out, "");
  }
}

TEST(raw_sources, that_are_named_by_what_lies_beside_or_around_them_say_what_to_give) {
  const temporary_directory root;
  const std::string description =
      write_file(root.path() / "r.json", R"({"fields": [{"name": "x", "dtype": "u8", "shape": [100]}]})");
  ended process = run({"epoch", description});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.err, HasSubstr("there is no "));
  const std::string data = write_file(root.path() / "r.bin", std::string(1000, 'r'));
  process = run({"epoch", description});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.err, HasSubstr("what the records in " + data + " are; give that one"));
  const std::string folder = (root.path() / "arrays").string();
  for (const char* name : {"arrays/a.npy", "arrays/b.npy"}) {
    write_file(root.path() / name, npy_text(npy_dict("<f4", "3, 2"), std::string(24, 0)));
  }
  process = run({"epoch", folder});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.err, HasSubstr("it has 2 files *.npy: give '" + folder + "/*.npy'"));
}

TEST(raw_sources, what_cannot_be_is_a_usage_error_and_said_once) {
  const temporary_directory root;
  const std::string rows = write_file(root.path() / "rows.npy", npy_text(npy_dict("<f4", "3, 2"), std::string(24, 0)));
  const std::string both =
      write_file(root.path() / "a.npz", zip_text({{"x.npy", npy_text(npy_dict("|u1", "3, 2"), "abcdef")},
                                                  {"y.npy", npy_text(npy_dict("|u1", "3, 2"), "abcdef")}}));
  const std::string folder = (root.path() / "photos").string();
  write_file(root.path() / "photos" / "a.jpg", "no picture");
  const std::string out = (root.path() / "x.npy").string();
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"epoch", rows, "--host-bytes-max", "1K"},
                                                    {"pack", folder, out, "--to", "npy"},
                                                    {"pack", both, out, "--to", "npy"},
                                                    {"pack", rows, (root.path() / "x.tar").string()}}) {
    const ended process = run(arguments);
    EXPECT_EQ(process.exit_code, 2) << process.err;
    EXPECT_THAT(process.err, ::testing::Not(HasSubstr("pack: pack")));
    std::vector<std::string> lines = lines_of(process.err);
    std::erase_if(lines, [](const std::string& line) { return line.find(": warning: ") != std::string::npos; });
    ASSERT_EQ(lines.size(), 1U) << process.err;
    EXPECT_THAT(lines[0], ::testing::StartsWith("leat " + arguments.front() + ": "));
  }
}

TEST(raw_sources, of_which_files_give_more_than_samples_hold_say_so) {
  const temporary_directory root;
  const std::string path = write_file(root.path() / "train.bin", token_bytes(60000));
  const std::vector<std::string> arguments = {"epoch",       path,     "--tokens", "100",
                                              "--tokens-as", "stored", "--direct", "on"};
  const ended process = run(arguments);
  if (process.exit_code == 1) GTEST_SKIP() << "no O_DIRECT here: " << process.err;
  const nlohmann::json told = run_json(arguments);
  EXPECT_GT(told.at("bytes_from_files"), told.at("bytes_read"));
  EXPECT_EQ(told.at("bytes_copied"), told.at("samples").get<std::uint64_t>() * 2 * 200) << "x and y";
  EXPECT_THAT(process.out, HasSubstr("times the"));
  const ended buffered = run({"epoch", path, "--tokens", "100", "--direct", "off"});
  EXPECT_THAT(buffered.out, ::testing::Not(HasSubstr("from files")));
}

TEST(raw_sources, of_arrays_are_loaded_each_or_by_rows) {
  const temporary_directory root;
  for (int k = 0; k < 5; ++k) {
    write_file(root.path() / (std::to_string(k) + ".npy"), npy_text(npy_dict("<f4", "3, 2"), std::string(24, '\1')));
  }
  EXPECT_EQ(run_json({"epoch", (root.path() / "*.npy").string()}).at("samples"), 5);
  EXPECT_EQ(run_json({"epoch", (root.path() / "0.npy").string()}).at("samples"), 3);
  EXPECT_EQ(run_json({"epoch", (root.path() / "0.npy").string(), (root.path() / "1.npy").string()}).at("samples"), 2);
  EXPECT_EQ(run_json({"epoch", (root.path() / "*.npy").string(), "--arrays", "rows"}).at("samples"), 15);
  EXPECT_EQ(run_json({"epoch", (root.path() / "0.npy").string(), "--arrays", "files"}).at("samples"), 1);
  EXPECT_EQ(run({"epoch", (root.path() / "0.npy").string(), "--arrays", "rows", "--tokens", "5"}).exit_code, 2);
}

TEST(raw_sources, of_records_are_loaded_and_looked_at) {
  const temporary_directory root;
  write_file(root.path() / "r.json",
             R"({"fields": [{"name": "x", "dtype": "f32", "shape": [3, 4]}, {"name": "y", "dtype": "i64"}]})");
  const std::string path = write_file(root.path() / "r.bin", std::string(std::size_t{56} * 10, '\2'));
  EXPECT_EQ(run_json({"epoch", path}).at("samples"), 10);
  const nlohmann::json found = run_json({"inspect", path});
  EXPECT_EQ(found.at("samples"), 10);
  EXPECT_EQ(found.at("fields").at(0).at("kind"), "tensor");
}

TEST(raw_sources, of_arrays_and_records_are_packed_as_rows_and_come_back) {
  const temporary_directory root;
  for (int k = 0; k < 5; ++k) {
    write_file(root.path() / (std::to_string(k) + ".npy"),
               npy_text(npy_dict("<f4", "3, 2"), bytes_of(std::vector<float>(6, static_cast<float>(k)))));
  }
  const std::string source = (root.path() / "?.npy").string();
  const std::string all = (root.path() / "all.npy").string();
  ended process = run({"pack", source, all, "--to", "npy"});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_THAT(process.out, HasSubstr("5 samples in 1 file"));
  EXPECT_EQ(std::filesystem::file_size(all), 4096U + 5 * 24) << "rows of whole pages would lie on pages";
  const std::string digest = run_json({"epoch", source, "--no-shuffle"}).at("digest");
  EXPECT_EQ(run_json({"epoch", all, "--no-shuffle"}).at("digest"), digest);
  const std::string records = (root.path() / "all.bin").string();
  EXPECT_EQ(run({"pack", all, records, "--to", "records"}).exit_code, 0);
  EXPECT_EQ(run_json({"epoch", records, "--no-shuffle"}).at("digest"), digest);
  EXPECT_EQ(nlohmann::json::parse(text_of((root.path() / "all.json").string())).at("records"), 5);
  // Another order is another file, and a file that is there stays.
  process = run({"pack", all, records, "--to", "records", "--shuffle"});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.err, HasSubstr("all.bin is there already"));
  EXPECT_EQ(run({"pack", all, records, "--to", "records", "--shuffle", "--overwrite"}).exit_code, 0);
  EXPECT_NE(run_json({"epoch", records, "--no-shuffle"}).at("digest"), digest);
}

TEST(raw_sources, columns_are_packed_as_numbers) {
  const temporary_directory root;
  const std::string archive = write_file(
      root.path() / "a.npz",
      zip_text({{"x.npy", npy_text(npy_dict("|u1", "3, 2"), "abcdef")},
                {"cls.npy", npy_text(npy_dict("<i8", "3,"), bytes_of(std::vector<std::int64_t>{7, 8, 9}))}}));
  const std::string records = (root.path() / "r.bin").string();
  EXPECT_EQ(run({"pack", archive, records, "--to", "records"}).exit_code, 0);
  EXPECT_EQ(text_of(records),
            "ab" + little<std::int64_t>(7) + "cd" + little<std::int64_t>(8) + "ef" + little<std::int64_t>(9));
  const ended two = run({"pack", archive, (root.path() / "r.npy").string(), "--to", "npy"});
  EXPECT_THAT(two.err, AllOf(HasSubstr("'x' and 'cls'"), HasSubstr("--to records")));
}

TEST(raw_sources, that_have_no_place_in_a_format_are_refused) {
  const temporary_directory root;
  const std::string array = write_file(root.path() / "x.npy", npy_text(npy_dict("|u1", "3, 2"), "abcdef"));
  const std::string tokens = write_file(root.path() / "f.bin", llmc_text(std::vector<std::uint16_t>(50)));
  EXPECT_THAT(run({"pack", array, (root.path() / "x.tar").string()}).err, HasSubstr("--to records"));
  EXPECT_THAT(run({"pack", tokens, (root.path() / "x.tar").string()}).err, HasSubstr("copy them"));
  EXPECT_THAT(run({"pack", tokens, (root.path() / "x.npy").string(), "--to", "npy"}).err, HasSubstr("copy them"));
  EXPECT_THAT(run({"pack", array, (root.path() / "x.bin").string(), "--to", "npy"}).err, HasSubstr("ends in .npy"));
  const std::string folder = (root.path() / "photos").string();
  write_file(root.path() / "photos" / "a.jpg", "no picture");
  EXPECT_THAT(run({"pack", folder, (root.path() / "y.npy").string(), "--to", "npy"}).err, HasSubstr("'jpg'"));
}

TEST(raw_sources, are_shown_by_their_first_numbers_and_inspected_by_their_types) {
  const temporary_directory root;
  const std::string array = write_file(
      root.path() / "x.npy", npy_text(npy_dict("<i2", "2, 3"), bytes_of(std::vector<std::int16_t>{1, -2, 3, 4, 5, 6})));
  const std::string page = (root.path() / "s.html").string();
  const ended shown = run({"show", array, "-o", page, "--no-shuffle"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(text_of(page), HasSubstr("i16 [3]: 1, -2, 3"));
  EXPECT_THAT(run({"inspect", array}).out, HasSubstr("i16 [3]"));
  const std::string tokens = write_file(root.path() / "train.bin", token_bytes(1001));
  EXPECT_THAT(run({"inspect", tokens, "--token-type", "u16"}).out, HasSubstr("u16, 1,001 tokens"));
  const std::string header = write_file(root.path() / "f.bin", llmc_text(std::vector<std::uint16_t>(50)));
  EXPECT_EQ(run_json({"inspect", header}).at("fields").at(0).at("dtype"), "u16");
  EXPECT_THAT(run({"show", header, "-o", page}).err, HasSubstr("--tokens LENGTH"));
}

}  // namespace
}  // namespace leat::testing
