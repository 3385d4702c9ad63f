// Compressed shards and tables as their openers see them: whole, cut, damaged, and with something behind them.
#include "datasets/files/coded_file.hpp"
#include "datasets/files/decoded_blocks.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/model/model.hpp"
#include "datasets/model/sample_blocks.hpp"
#include "datasets/write/pack.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/datasets/value_reader.hpp"
#include "tests/support/coded_forms.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/open.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace {

using datasets::coded_file;
using datasets::packing;
using datasets::stream_coding;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;

constexpr std::size_t mib = std::size_t{1} << 20;

class coded_files : public ::testing::Test {
 protected:
  std::string put(const std::string& name, std::string_view content) const {
    const std::string path = (root_.path() / name).string();
    testing::put(path, content);
    return path;
  }
  static std::string text_of(const dataset& samples, std::uint64_t sample, const std::string& field) {
    const std::vector<std::byte> bytes = samples.read(sample, field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::string key(unsigned i) { return "key-" + std::to_string(100 + i); }
  /// Two samples of 300 KB a MiB.
  static std::string shard(unsigned samples, bool has_end = true) {
    testing::archive all;
    for (unsigned i = 0; i < samples; ++i) {
      all.file(key(i) + ".txt", testing::some_text(300'000, i)).file(key(i) + ".cls", std::to_string(i));
    }
    if (has_end) all.end();
    return all.bytes();
  }

 private:
  testing::temporary_directory root_;
};

TEST_F(coded_files, are_read_at_any_place_as_what_they_become) {
  const std::string text = testing::some_text(5 * mib + 17, 1);
  for (const packing how : {packing::gzip, packing::zstd}) {
    const stream_coding coding = how == packing::gzip ? stream_coding::gzip : stream_coding::zstd;
    for (const std::size_t part : {text.size(), 3 * mib / 2, std::size_t{70'000}}) {
      const std::string path = put("x", testing::coded_in_parts(how, text, part));
      std::string seen;
      const auto index = std::make_shared<const coded_file>(
          datasets::local_file(path), coding, 0, [&](std::span<const std::byte> piece) {
            seen.append(reinterpret_cast<const char*>(piece.data()), piece.size());
          });
      EXPECT_TRUE(seen == text);
      EXPECT_EQ(index->bytes(), text.size());
      EXPECT_EQ(index->note(), "");
      if (how == packing::gzip || part < text.size()) EXPECT_GT(index->points().size(), 3U);
      const datasets::decoded_file file(std::make_unique<datasets::local_file>(path), index);
      for (const std::size_t at : {4 * mib + 5, std::size_t{0}, 3 * mib, 3 * mib + 10, mib - 1, text.size() - 5}) {
        const std::vector<std::byte> bytes = file.read(at, 1000);
        EXPECT_TRUE(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) ==
                    std::string_view(text).substr(at, 1000))
            << at << " of parts of " << part;
      }
    }
  }
}

TEST_F(coded_files, give_single_samples_with_their_names) {
  for (const char* name : {"s.tar.gz", "s.tgz"}) {
    const dataset samples = open(put(name, testing::coded(packing::gzip, shard(12))));
    ASSERT_EQ(samples.size(), 12U);
    EXPECT_GT(samples.model()->blocks().size(), 2U);
    EXPECT_TRUE(samples.fields()[0].chunked);
    for (const std::uint64_t i : {7U, 11U, 0U}) {
      EXPECT_THAT(samples.name(i), HasSubstr(std::string(name) + "/" + key(static_cast<unsigned>(i))));
      EXPECT_TRUE(text_of(samples, i, "txt") == testing::some_text(300'000, static_cast<unsigned>(i)));
      EXPECT_EQ(text_of(samples, i, "cls"), std::to_string(i));
    }
  }
  const dataset rows = open(put("t.csv.gz", testing::coded(packing::gzip, "a,b\n1,x\n\n2,\"y \"\"z\"\"\"\n")));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(text_of(rows, 1, "b"), "y \"z\"");
  const dataset tabs = open(put("t.tsv.zst", testing::coded(packing::zstd, "a,b\tc\n1\t2\n")));
  EXPECT_EQ(tabs.fields()[0].name, "a,b");
}

/// Counts what is expanded.
class counted final : public datasets::dataset_model, datasets::expanding_facet {
 public:
  explicit counted(const dataset& of) : of_(of.model()) {
    begin_as(*of_);
    facets_.expanding = this;
  }
  std::uint64_t size() const noexcept override { return of_->size(); }
  void parts(std::uint64_t sample, std::span<const datasets::need> needs, datasets::part_list& out) const override {
    of_->parts(sample, needs, out);
  }
  std::optional<value_fault> expand(std::uint64_t sample, const datasets::part& of, std::span<const std::byte> stored,
                                    std::span<std::byte>& decoded) const override {
    ++expansions;
    return of_->expand(sample, of, stored, decoded);
  }
  void copy_box(std::uint64_t sample, const datasets::part& of, const datasets::box* within,
                std::span<const std::byte> decoded, std::span<std::byte> bytes) const override {
    of_->copy_box(sample, of, within, decoded, bytes);
  }
  std::optional<value_fault> take_value(std::uint64_t sample, const datasets::part& of,
                                        std::span<const std::byte> decoded,
                                        std::span<std::byte>& bytes) const override {
    return of_->take_value(sample, of, decoded, bytes);
  }
  std::string name(std::uint64_t sample) const override { return of_->name(sample); }
  dataset_memory memory() const override { return of_->memory(); }
  mutable std::uint64_t expansions = 0;

 private:
  std::shared_ptr<const datasets::dataset_model> of_;
};

TEST_F(coded_files, expand_each_block_once_for_who_reads_sample_after_sample) {
  std::string lines;
  for (unsigned i = 0; i < 3000; ++i) {
    lines += R"({"n": )" + std::to_string(i) + R"(, "text": ")" + testing::some_text(1000, i) + "\"}\n";
  }
  for (const std::string& path : {put("s.tar.gz", testing::coded(packing::gzip, shard(12))),
                                  put("s.tar.zst", testing::coded_in_parts(packing::zstd, shard(12), mib)),
                                  put("t.jsonl.zst", testing::coded_in_parts(packing::zstd, lines, mib))}) {
    const auto samples = std::make_shared<counted>(open(path));
    const std::uint64_t blocks = open(path).model()->blocks().size();
    ASSERT_GT(blocks, 2U);
    testing::value_reader reader{dataset(samples)};
    for (std::uint64_t i = 0; i < samples->size(); ++i) {
      for (const field_info& field : samples->fields()) static_cast<void>(reader.read(i, field.name));
    }
    EXPECT_EQ(std::exchange(samples->expansions, 0), blocks) << path;
    datasets::pack(dataset(samples), path + ".packed.tar", {});
    EXPECT_EQ(samples->expansions, blocks) << path;
  }
}

TEST_F(coded_files, are_kept_as_blocks_within_a_bound) {
  datasets::decoded_blocks kept(100);
  const auto key = [](std::uint64_t number) { return datasets::block_key{nullptr, {}, 0, number}; };
  const auto add = [&](std::uint64_t number, std::uint64_t bytes) {
    std::vector<std::byte> block = kept.make_room(bytes);
    block.front() = std::byte(number);
    static_cast<void>(kept.add(key(number), std::move(block)));
  };
  add(1, 40);
  add(2, 40);
  EXPECT_EQ(kept.find(key(1)).value().front(), std::byte{1});
  add(3, 40);
  EXPECT_FALSE(kept.find(key(2)));
  EXPECT_TRUE(kept.find(key(1)));
  add(4, 1000);
  EXPECT_FALSE(kept.find(key(1)));
  EXPECT_FALSE(kept.find(key(3)));
  EXPECT_EQ(kept.find(key(4)).value().size(), 1000U);
}

TEST_F(coded_files, lie_beside_others) {
  const std::string plain = put("a.tar", shard(2));
  const std::string coded = put("b.tar.gz", testing::coded(packing::gzip, shard(3)));
  const std::string frames = put("c.tar.zst", testing::coded(packing::zstd, shard(1)));
  const dataset all = open({plain, coded, frames, plain});
  ASSERT_EQ(all.size(), 8U);
  EXPECT_TRUE(text_of(all, 4, "txt") == testing::some_text(300'000, 2));
  EXPECT_EQ(text_of(all, 5, "cls"), "0");
  EXPECT_EQ(text_of(all, 7, "cls"), "1");
}

TEST_F(coded_files, make_a_folder_of_shards) {
  const std::string first = put("train-0.tar.gz", testing::coded(packing::gzip, shard(2)));
  put("train-1.tar.gz", testing::coded(packing::gzip, shard(3)));
  EXPECT_EQ(open(first.substr(0, first.rfind('/'))).size(), 5U);
}

TEST_F(coded_files, are_read_through_once_where_an_index_is_kept) {
  for (const char* name : {"kept.tar.gz", "kept.tar.zst"}) {
    const packing how = std::string_view(name).ends_with(".gz") ? packing::gzip : packing::zstd;
    const std::string path = put(name, testing::coded_in_parts(how, shard(9), mib));
    const auto make_old = [&] {
      std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    };
    make_old();
    std::vector<index_report::outcome> outcomes;
    tar_options options;
    options.index = {.use = index_use::check,
                     .directory = path + ".indexes",
                     .on_report = [&](const index_report& report) { outcomes.push_back(report.what); }};
    const dataset first = open_tar(path, options);
    const dataset again = open_tar(path, options);
    EXPECT_THAT(outcomes, ElementsAre(index_report::outcome::written, index_report::outcome::used));
    ASSERT_EQ(again.size(), 9U);
    EXPECT_EQ(again.model()->blocks().size(), first.model()->blocks().size());
    for (std::size_t i = 0; i < first.fields().size(); ++i) {
      EXPECT_EQ(again.fields()[i].bytes_total, first.fields()[i].bytes_total);
      EXPECT_EQ(again.fields()[i].stored_block_bytes_max, first.fields()[i].stored_block_bytes_max);
    }
    EXPECT_TRUE(text_of(again, 7, "txt") == testing::some_text(300'000, 7));
    EXPECT_EQ(again.name(7), first.name(7));
    put(name, testing::coded(how, shard(8)));
    make_old();
    EXPECT_EQ(open_tar(path, options).size(), 8U);
    EXPECT_EQ(outcomes.back(), index_report::outcome::written);
  }
}

// Counts what is read of files.
class counted_files final : public datasets::input_files {
 public:
  explicit counted_files(std::string path) : of_(datasets::files_on_disk({std::move(path)})) {}
  const std::vector<std::string>& names() const noexcept override { return of_->names(); }
  bool has(const std::string& name) const override { return of_->has(name); }
  std::unique_ptr<datasets::file_bytes> open(const std::string& name) const override {
    return std::make_unique<file>(of_->open(name), bytes);
  }
  datasets::placed_files place(std::span<const datasets::sized_file> files) const override { return of_->place(files); }
  mutable std::atomic<std::uint64_t> bytes{0};

 private:
  class file final : public datasets::file_bytes {
   public:
    file(std::unique_ptr<datasets::file_bytes> of, std::atomic<std::uint64_t>& bytes)
        : file_bytes(of->path()), of_(std::move(of)), bytes_(bytes) {
      set_size(of_->size());
    }
    std::uint64_t version() const override { return of_->version(); }
    using file_bytes::read;
    std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override {
      const std::size_t got = of_->read(offset, into);
      bytes_ += got;
      return got;
    }

   private:
    const std::unique_ptr<datasets::file_bytes> of_;
    std::atomic<std::uint64_t>& bytes_;
  };
  const std::unique_ptr<datasets::input_files> of_;
};

TEST_F(coded_files, of_lines_are_read_through_once_and_with_an_index_cache_not_at_all) {
  std::string lines;
  std::string rows = "\xEF\xBB\xBFn,text\r\n";
  for (unsigned i = 0; i < 12'000; ++i) {
    const std::string text = testing::some_text(500, i);
    lines += R"({"n": )" + std::to_string(i) + R"(, "text": ")" + text + "\"}\n";
    rows += std::to_string(i) + ",\"" + text + (i % 2 == 0 ? "\"\r\n" : " \r\n\"\r");
  }
  const auto try_with = [&](const std::string& name, const std::string& content, auto open_files) {
    const packing how = name.ends_with(".gz") ? packing::gzip : packing::zstd;
    const std::string path = put(name, testing::coded_in_parts(how, content, mib));
    const auto make_old = [&] {
      std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    };
    make_old();
    const std::uint64_t stored = std::filesystem::file_size(path);
    std::vector<index_report::outcome> outcomes;
    table_options options;
    options.index = {.use = index_use::check,
                     .directory = path + ".indexes",
                     .on_report = [&](const index_report& report) { outcomes.push_back(report.what); }};
    const counted_files files(path);
    const dataset first = open_files(files, options);
    EXPECT_LT(files.bytes.exchange(0), stored + stored / 2) << name;
    const dataset again = open_files(files, options);
    EXPECT_LT(files.bytes.exchange(0), stored / 2) << name;
    EXPECT_THAT(outcomes, ElementsAre(index_report::outcome::written, index_report::outcome::used)) << name;
    for (const dataset& each : {first, again}) {
      ASSERT_EQ(each.size(), 12'000U) << name;
      EXPECT_EQ(each.model()->blocks().size(), first.model()->blocks().size());
      for (const unsigned i : {0U, 5777U, 11'999U}) {
        EXPECT_EQ(text_of(each, i, "n"), std::to_string(i)) << name;
        EXPECT_EQ(text_of(each, i, "text").substr(0, 500), testing::some_text(500, i)) << name;
      }
    }
    put(name, testing::coded(how, content));
    make_old();
    EXPECT_EQ(open_files(counted_files(path), options).size(), 12'000U) << name;
    EXPECT_EQ(outcomes.back(), index_report::outcome::written) << name;
  };
  try_with("a.jsonl.gz", lines, datasets::open_jsonl_files);
  try_with("b.jsonl.zst", lines, datasets::open_jsonl_files);
  try_with("c.csv.gz", rows, datasets::open_csv_files);
}

TEST_F(coded_files, that_were_cut_lose_what_is_missing_and_say_so) {
  const std::string whole = testing::coded(packing::gzip, shard(12));
  const dataset cut = open(put("cut.tar.gz", std::string_view(whole).substr(0, whole.size() / 2)));
  EXPECT_GT(cut.size(), 4U);
  EXPECT_LT(cut.size(), 8U);
  EXPECT_EQ(cut.model()->defects(), 1U);
  ASSERT_TRUE(cut.model()->defect_of(cut.size() - 1));
  EXPECT_THAT(cut.notes(), ::testing::Contains(AllOf(HasSubstr("cut.tar.gz"), HasSubstr("gzip data end early"))));
  EXPECT_TRUE(text_of(cut, 3, "txt") == testing::some_text(300'000, 3));
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += R"({"n": )" + std::to_string(i) + "}\n";
  const std::string table = testing::coded(packing::zstd, lines) + testing::coded(packing::zstd, lines);
  const dataset rows = open(put("cut.jsonl.zst", std::string_view(table).substr(0, table.size() - 9)));
  EXPECT_GE(rows.size(), 1000U);
  EXPECT_THAT(rows.notes(), ::testing::Contains(HasSubstr("zstd data end early")));
}

TEST_F(coded_files, that_are_damaged_are_refused_with_the_offset) {
  std::string whole = testing::coded(packing::gzip, shard(6));
  std::string wrong_sum = whole;
  wrong_sum[wrong_sum.size() - 6] = static_cast<char>(wrong_sum[wrong_sum.size() - 6] ^ 1);
  EXPECT_THAT(
      message_of(errc::format, [&] { static_cast<void>(open(put("sum.tar.gz", wrong_sum))); }),
      AllOf(HasSubstr("sum.tar.gz: offset "), HasSubstr("damaged gzip data"), HasSubstr("incorrect data check")));
  whole[whole.size() / 2] = static_cast<char>(whole[whole.size() / 2] ^ 0x10);
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open(put("bit.tar.gz", whole))); }),
              AllOf(HasSubstr("bit.tar.gz, decompressed: offset "), HasSubstr("a tar header was expected")));
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(put("none.tar.gz", shard(1)))); }),
              HasSubstr("no gzip, as its name says"));
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(put("pk.jsonl.gz", "PK\3\4 and so on"))); }),
              AllOf(HasSubstr("no gzip"), HasSubstr("a zip archive")));
  EXPECT_THAT(
      message_of(errc::format, [&] { static_cast<void>(open(put("no.tar.gz", testing::coded(packing::gzip, "")))); }),
      HasSubstr("becomes no bytes"));
}

TEST_F(coded_files, may_have_something_behind_their_end) {
  const dataset samples = open(put("more.tar.gz", testing::coded(packing::gzip, shard(3)) + "and more"));
  EXPECT_EQ(samples.size(), 3U);
  EXPECT_THAT(samples.notes(), ElementsAre(HasSubstr("8 bytes after the end of its gzip data are not read")));
  const dataset rows = open(put("more.jsonl.zst", testing::coded(packing::zstd, "{\"a\": 1}\n") + "and more"));
  EXPECT_EQ(rows.size(), 1U);
  EXPECT_THAT(rows.notes(), ElementsAre(HasSubstr("8 bytes after the end of its zstd data are not read")));
}

TEST_F(coded_files, of_a_large_frame_are_refused_with_what_to_do) {
  const std::string zeros(coded_file::frame_bytes_max + 1, '\n');
  EXPECT_THAT(message_of(errc::unsupported,
                         [&] { static_cast<void>(open(put("big.jsonl.zst", testing::coded(packing::zstd, zeros)))); }),
              AllOf(HasSubstr("big.jsonl.zst"), HasSubstr("more than 256 MiB"), HasSubstr("pzstd")));
}

TEST_F(coded_files, cut_anywhere_come_to_an_end) {
  const std::string text = testing::some_text(3000, 1);
  for (const packing how : {packing::gzip, packing::zstd}) {
    const stream_coding coding = how == packing::gzip ? stream_coding::gzip : stream_coding::zstd;
    const std::string whole = testing::coded_in_parts(how, text, 1000);
    for (std::size_t bytes = 4; bytes < whole.size(); bytes += 67) {
      const std::string path = put("x", std::string_view(whole).substr(0, bytes));
      std::uint64_t seen = 0;
      const coded_file index(datasets::local_file(path), coding, 0,
                             [&](std::span<const std::byte> piece) { seen += piece.size(); });
      EXPECT_EQ(index.bytes(), seen);
      EXPECT_LE(seen, text.size());
    }
  }
}

}  // namespace
}  // namespace leat
