// --where: a run over the samples that a condition holds of.
#include "tests/support/photos.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// 12 photographs in classes a, b and c, four each.
class three_classes {
 public:
  three_classes() {
    for (std::uint64_t i = 0; i < 12; ++i) {
      const std::vector<std::uint8_t> file = photo_jpeg(500 + i, 48, 32);
      write_file(set() + "/" + std::string(1, static_cast<char>('a' + i / 4)) + "/" + std::to_string(i) + ".jpg", file);
    }
  }
  [[nodiscard]] std::string set() const { return beside("set"); }
  [[nodiscard]] std::string beside(const std::string& name) const { return (directory_.path() / name).string(); }

 private:
  temporary_directory directory_;
};

ended epoch_of(const std::string& source, const std::vector<std::string>& more) {
  std::vector<std::string> all{"epoch", source, "--batch-size", "4", "--size", "16", "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return run(all);
}

std::string refused(const ended& process) {
  EXPECT_EQ(process.exit_code, 2) << process.out << process.err;
  return process.err;
}

TEST(where_option, loads_the_samples_that_it_holds_of_and_no_others) {
  const three_classes photos;
  const ended some = epoch_of(photos.set(), {"--where", "class != 'b' and name != 'a/0.jpg'"});
  ASSERT_EQ(some.exit_code, 0) << some.err;
  EXPECT_EQ(some.json().at("samples"), 7);
  EXPECT_EQ(epoch_of(photos.set(), {"--where", "cls in (0, 2) or class == 'b'"}).json().at("samples"), 12);
  const ended looked = run({"inspect", photos.set(), "--where", "cls == 1", "--json"});
  ASSERT_EQ(looked.exit_code, 0) << looked.err;
  EXPECT_EQ(looked.json().at("samples"), 4);
  EXPECT_EQ(run({"check", photos.set(), "--where", "cls > 0", "--json", "-"}).json().at("samples"), 8);
  ASSERT_EQ(run({"pack", photos.set(), photos.beside("some.tar"), "--where", "cls > 0"}).exit_code, 0);
  EXPECT_EQ(run({"inspect", photos.beside("some.tar"), "--json"}).json().at("samples"), 8);
}

TEST(where_option, reads_a_label_that_is_no_column) {
  const three_classes photos;
  const std::string tar = photos.beside("all.tar");
  ASSERT_EQ(run({"pack", photos.set(), tar}).exit_code, 0);
  const ended some = epoch_of(tar, {"--where", "cls != 1"});
  ASSERT_EQ(some.exit_code, 0) << some.err;
  EXPECT_EQ(some.json().at("samples"), 8);
  const json found = run({"check", tar, "--where", "cls != 1", "--json", "-"}).json();
  EXPECT_EQ(found.at("samples"), 8);
  EXPECT_EQ(found.at("classes").size(), 2U);
  EXPECT_EQ(found.at("wrong"), false);
}

TEST(where_option, says_how_a_table_s_field_can_be_compared) {
  const temporary_directory directory;
  const std::string table = (directory.path() / "t.jsonl").string();
  write_file(table, "{\"text\":\"a\",\"r\":0.5}\n{\"text\":\"b\",\"r\":1.5}\n");
  const ended real = run({"inspect", table, "--where", "r > 1"});
  EXPECT_EQ(real.exit_code, 1);
  EXPECT_THAT(real.err, HasSubstr("--where: 'r' is read as whole numbers"));
  EXPECT_THAT(real.err, HasSubstr("name it with --columns"));
  EXPECT_THAT(refused(run({"inspect", table, "--where", "text == 'a'"})), HasSubstr("name it with --columns"));
  EXPECT_EQ(run({"inspect", table, "--columns", "r", "--where", "r > 1", "--json"}).json().at("samples"), 1);
  EXPECT_EQ(run({"inspect", table, "--columns", "text", "--where", "class == 'a'", "--json"}).json().at("samples"), 1);
}

TEST(where_option, takes_no_number_of_a_class_for_one_that_it_is_called_by) {
  const temporary_directory directory;
  const std::string table = (directory.path() / "t.csv").string();
  write_file(table, "price,text\n100,a\nn/a,b\n250,c\n99,d\n");
  for (const char* const condition : {"price < 100", "100 <= price", "price in (100, 250)", "not (price == 100.0)"}) {
    EXPECT_THAT(refused(run({"inspect", table, "--columns", "price", "--where", condition})),
                HasSubstr("the class '100' is number 0; compare names, as class == '100'"))
        << condition;
  }
  EXPECT_EQ(run({"inspect", table, "--columns", "price", "--where", "class == '100'", "--json"}).json().at("samples"),
            1);
  write_file(table, "price,text\n0,a\n1,b\nn/a,c\n");
  EXPECT_EQ(run({"inspect", table, "--columns", "price", "--where", "price >= 1", "--json"}).json().at("samples"), 2);
}

TEST(where_option, knows_the_sizes_of_photo_packs) {
  const three_classes photos;
  const std::vector<std::uint8_t> large = photo_jpeg(600, 96, 64);
  write_file(photos.set() + "/c/large.jpg", large);
  const std::string tar = photos.beside("packs.tar");
  ASSERT_EQ(run({"pack", photos.set(), tar, "--photos", "fast"}).exit_code, 0);
  EXPECT_EQ(epoch_of(tar, {"--where", "width >= 50"}).json().at("samples"), 1);
  EXPECT_EQ(epoch_of(tar, {"--where", "width < 50 and height == 32"}).json().at("samples"), 12);
}

TEST(where_option, reads_the_sizes_of_pictures_in_folders_and_shards) {
  const three_classes photos;
  const std::vector<std::uint8_t> large = photo_jpeg(600, 96, 64);
  write_file(photos.set() + "/c/large.jpg", large);
  write_file(photos.set() + "/c/no.jpg", "no picture");
  const std::string tar = photos.beside("all.tar");
  ASSERT_EQ(run({"pack", photos.set(), tar}).exit_code, 0);
  for (const std::string& source : {photos.set(), tar}) {
    const ended small = epoch_of(source, {"--where", "width < 50 and height == 32 and cls != 0"});
    ASSERT_EQ(small.exit_code, 0) << small.err;
    EXPECT_EQ(small.json().at("samples"), 8);
    EXPECT_THAT(small.err, HasSubstr("warning: where: 1 of 10 pictures has a header that cannot be read"));
    EXPECT_THAT(small.err, HasSubstr("c/no"));
    EXPECT_EQ(run({"inspect", source, "--where", "width >= 50", "--json"}).json().at("samples"), 1);
    EXPECT_EQ(run({"inspect", source, "--where", "width is null", "--json"}).json().at("samples"), 1);
  }
}

TEST(where_option, is_refused_in_words_before_anything_is_opened) {
  const three_classes photos;
  const auto of = [&](const std::string& condition) { return refused(epoch_of(photos.set(), {"--where", condition})); };
  EXPECT_THAT(refused(epoch_of("/not/there", {"--where", "cls = 1"})),
              HasSubstr("--where 'cls = 1': where, letter 5, at =: write =="));
  EXPECT_THAT(of("wide > 3"), HasSubstr("it knows cls, class, name, sample, width, height, jpg.bytes"));
  EXPECT_THAT(of("clas == 3"), HasSubstr("did you mean 'cls'?"));
  EXPECT_THAT(of("cls > 99"), HasSubstr("--where 'cls > 99': it holds of none of 12 samples"));
}

TEST(where_option, is_part_of_a_state_so_that_a_run_goes_on_with_the_same_one_only) {
  const three_classes photos;
  const std::string state = photos.beside("run.state");
  const auto resumed = [&](const std::string& condition, const std::vector<std::string>& more) {
    std::vector<std::string> all{"--where", condition, "--state", state};
    all.insert(all.end(), more.begin(), more.end());
    return epoch_of(photos.set(), all);
  };
  ASSERT_EQ(resumed("cls > 0", {"--limit", "1"}).exit_code, 0);
  const ended other = resumed("cls < 2", {"--limit", "1", "--resume", "always"});
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.err, HasSubstr("where"));
  EXPECT_THAT(other.err, HasSubstr("cls > 0"));
  EXPECT_EQ(resumed("cls>0", {"--limit", "1", "--resume", "always"}).exit_code, 0);
}

TEST(where_option, goes_together_with_a_list_of_all_samples_or_of_its_own) {
  const three_classes photos;
  const std::vector<std::uint8_t> twice = photo_jpeg(511, 48, 32);
  write_file(photos.set() + "/c/twice.jpg", twice);  // as c/11.jpg
  const std::string whole = photos.beside("whole.ids");
  const std::string own = photos.beside("own.ids");
  ASSERT_EQ(run({"check", photos.set(), "--ids", whole}).exit_code, 0);
  ASSERT_EQ(run({"check", photos.set(), "--where", "cls > 0", "--ids", own}).exit_code, 0);
  for (const std::string& ids : {whole, own}) {
    const ended process = epoch_of(photos.set(), {"--where", "cls > 0", "--exclude", ids, "--on-corrupt", "skip"});
    ASSERT_EQ(process.exit_code, 0) << process.err;
    EXPECT_EQ(process.json().at("samples"), 8) << ids;
  }
  EXPECT_THAT(refused(epoch_of(photos.set(), {"--where", "cls > 1", "--exclude", own, "--on-corrupt", "skip"})),
              HasSubstr("was made of"));
}

// Rows in which an epoch has the sample, by what it wrote of its batches: epoch, batch, row.
std::vector<std::vector<std::uint64_t>> seen_in(const std::string& lines, std::uint64_t sample) {
  std::vector<std::vector<std::uint64_t>> rows;
  for (const std::string& line : lines_of(text_of(lines))) {
    const json batch = json::parse(line);
    for (std::uint64_t row = 0; row < batch.at("ids").size(); ++row) {
      if (batch["ids"][row] == sample) rows.push_back({batch.at("epoch"), batch.at("batch"), row});
    }
  }
  return rows;
}

std::vector<std::vector<std::uint64_t>> found_in(const json& where) {
  std::vector<std::vector<std::uint64_t>> rows;
  for (const json& each : where.at("rows")) rows.push_back({each.at("epoch"), each.at("batch"), each.at("row")});
  return rows;
}

TEST(where_command, says_in_which_rows_a_run_has_a_sample) {
  const three_classes photos;
  const std::string lines = photos.beside("lines");
  const std::vector<std::string> orders[] = {{},
                                             {"--transform", "eval"},
                                             {"--order", "repeated:3"},
                                             {"--order", "balanced:cls"},
                                             {"--last", "pad"},
                                             {"--drop-last"}};
  for (const std::vector<std::string>& more : orders) {
    SCOPED_TRACE(more.empty() ? "shuffled" : more.back());
    std::vector<std::string> options{"--batch-size", "5", "--seed", "7", "--size", "16", "--epochs", "4"};
    options.insert(options.end(), more.begin(), more.end());
    std::vector<std::string> epoch{"epoch", photos.set(), "--batches", lines};
    epoch.insert(epoch.end(), options.begin(), options.end());
    ASSERT_EQ(run(epoch).exit_code, 0);
    for (const std::uint64_t sample : {0U, 7U, 11U}) {
      std::vector<std::string> where{"where", photos.set(), std::to_string(sample), "--json"};
      where.insert(where.end(), options.begin(), options.end());
      const ended process = run(where);
      ASSERT_EQ(process.exit_code, 0) << process.err;
      EXPECT_EQ(found_in(process.json()), seen_in(lines, sample)) << sample;
    }
  }
}

TEST(where_command, says_which_rank_has_the_row_and_what_is_seen_of_the_picture) {
  const three_classes photos;
  const std::string steps = photos.beside("steps.html");
  const ended process = run({"where", photos.set(), "b/6.jpg", "--batch-size", "2", "--world", "3", "--rank", "0",
                             "--seed", "7", "--epochs", "5", "--json"});
  ASSERT_EQ(process.exit_code, 0) << process.err;
  const json found = process.json();
  EXPECT_EQ(found.at("sample"), 6);
  EXPECT_EQ(found.at("name"), "b/6.jpg");
  ASSERT_EQ(found.at("rows").size(), 5U);
  bool differ = false;
  for (const json& row : found["rows"]) {
    EXPECT_EQ(row.at("rank").get<int>() * 2 + row.at("row_of_rank").get<int>(), row.at("row").get<int>());
    const json& crop = row.at("crops").at(0);
    EXPECT_GE(crop.at("x").get<int>(), 0);
    EXPECT_LE(crop.at("x").get<int>() + crop.at("width").get<int>(), 48);
    EXPECT_LE(crop.at("y").get<int>() + crop.at("height").get<int>(), 32);
    differ = differ || crop != found["rows"][0]["crops"][0];
    // The row of that rank is the sample's, as replay says.
    const json batch =
        run({"replay", photos.set(), "--batch-size", "2", "--world", "3", "--rank",
             std::to_string(row["rank"].get<int>()), "--seed", "7", "--epoch", std::to_string(row["epoch"].get<int>()),
             "--batch", std::to_string(row["batch"].get<int>()), "--json"})
            .json();
    EXPECT_EQ(batch.at("rows").at(row["row_of_rank"].get<std::size_t>()).at("sample"), 6);
  }
  EXPECT_TRUE(differ) << "each epoch draws another crop";
  const ended text = run({"where", photos.set(), "6.jpg", "--seed", "7", "--epochs", "2"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("2 rows in 2 epochs"));
}

TEST(where_command, says_which_mosaics_have_a_tile_of_a_sample) {
  const three_classes photos;
  bool some = false;
  bool not_all = false;
  for (const std::string rank : {"0", "1"}) {
    const std::vector<std::string> options{"--batch-size", "6",  "--world",     "2",    "--rank",   rank, "--seed", "5",
                                           "--size",       "16", "--transform", "eval", "--mosaic", "0.6"};
    const auto json_of = [&](std::vector<std::string> command) {
      command.insert(command.end(), options.begin(), options.end());
      command.emplace_back("--json");
      const ended process = run(command);
      EXPECT_EQ(process.exit_code, 0) << process.err;
      return process.json();
    };
    const json where = json_of({"where", photos.set(), "3", "--epochs", "8"});
    for (const json& at : where.at("rows")) {
      if (std::to_string(at.at("rank").get<int>()) != rank) continue;
      const json batch = json_of({"replay", photos.set(), "--epoch", std::to_string(at.at("epoch").get<int>())});
      std::vector<std::uint32_t> expected;
      for (std::uint32_t row = 0; row < batch.at("rows").size(); ++row) {
        const json& tiles = batch.at("rows").at(row).at("tiles");
        EXPECT_EQ(tiles.at(0), row);
        EXPECT_EQ(batch.at("rows").at(row).at("center").size(), 2U);
        const bool has_one = std::find(tiles.begin(), tiles.end(), at.at("row_of_rank")) != tiles.end();
        if (has_one && row != at.at("row_of_rank")) expected.push_back(row);
      }
      EXPECT_EQ(at.at("tiles_in").get<std::vector<std::uint32_t>>(), expected) << at;
      some = some || !expected.empty();
      not_all = not_all || expected.size() < 3;
    }
  }
  EXPECT_TRUE(some && not_all);
  const std::vector<std::string> all{"--seed", "7", "--size", "16", "--mosaic", "1"};
  std::vector<std::string> where{"where", photos.set(), "3"};
  std::vector<std::string> replay{"replay", photos.set()};
  where.insert(where.end(), all.begin(), all.end());
  replay.insert(replay.end(), all.begin(), all.end());
  EXPECT_THAT(run(where).out, HasSubstr("  tiles in rows "));
  EXPECT_THAT(run(replay).out, HasSubstr("tiles of rows 0, "));
}

TEST(where_command, says_what_is_wrong_with_a_sample) {
  const three_classes photos;
  EXPECT_THAT(refused(run({"where", photos.set(), "12"})), HasSubstr("SAMPLE 12: the run has 12 samples"));
  EXPECT_THAT(refused(run({"where", photos.set(), "x.jpg"})), HasSubstr("no sample of the run has this name"));
  EXPECT_THAT(refused(run({"where", photos.set()})), HasSubstr("SOURCE and SAMPLE are both needed"));
  const std::string ids = photos.beside("ids");
  write_file(ids, "3\n");
  const ended out = run({"where", photos.set(), "3", "--exclude", ids, "--on-corrupt", "skip"});
  EXPECT_EQ(out.exit_code, 0) << out.err;
  EXPECT_THAT(out.out, HasSubstr("it is excluded"));
  EXPECT_THAT(out.out,
              HasSubstr("rows as planned: behind a row that the run leaves out, the others of its batch move up"));
  EXPECT_EQ(run({"where", photos.set(), "3", "--json"}).json().at("moved"), nullptr);
  EXPECT_THAT(
      run({"where", photos.set(), "3", "--on-corrupt", "substitute", "--json"}).json().at("moved").get<std::string>(),
      HasSubstr("samples that the run leaves out, too"));
  EXPECT_EQ(found_in(run({"where", photos.set(), "3", "--where", "cls > 0", "--json"}).json()).size(), 1U);
}

}  // namespace
}  // namespace leat::testing
