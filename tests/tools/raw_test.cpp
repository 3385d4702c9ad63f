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

TEST(raw_sources, of_tokens_without_a_length_say_what_to_give) {
  const temporary_directory root;
  const ended plain = run({"epoch", write_file(root.path() / "train.bin", token_bytes(1001))});
  EXPECT_EQ(plain.exit_code, 2);
  EXPECT_THAT(plain.err, AllOf(HasSubstr("--tokens LENGTH"), HasSubstr("train.json")));
  const ended known = run({"epoch", write_file(root.path() / "f.bin", llmc_text(std::vector<std::uint16_t>(50)))});
  EXPECT_EQ(known.exit_code, 2);
  EXPECT_THAT(known.err, HasSubstr("--tokens LENGTH"));
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
  EXPECT_THAT(run({"show", header, "-o", page}).err, HasSubstr("leat inspect"));
}

}  // namespace
}  // namespace leat::testing
