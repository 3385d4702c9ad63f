// Files of tokens, told apart by what is in them and beside them.
#include "datasets/model/model.hpp"
#include "tests/datasets/programs.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_tokens.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using testing::bytes_of;
using testing::counting;
using ::testing::HasSubstr;
using testing::llmc_text;
using testing::megatron_index;
using testing::message_of;
using testing::npy_dict;
using testing::npy_text;
using testing::temporary_directory;
using testing::write_file;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(token_files, of_nanogpt_are_what_the_caller_says) {
  const temporary_directory root;
  const std::string path = write_file(root.path() / "train.bin", bytes_of(counting<std::uint16_t>(10)));
  const dataset narrow = open_tokens(path);
  ASSERT_EQ(narrow.size(), 1U);
  EXPECT_EQ(narrow.fields()[0].name, "tokens");
  EXPECT_EQ(narrow.fields()[0].kind, field_kind::tokens);
  EXPECT_EQ(narrow.fields()[0].type, dtype::u16);
  EXPECT_EQ(narrow.fields()[0].bytes_total, 20U);
  EXPECT_EQ(open_tokens(path, {.type = dtype::u32}).fields()[0].type, dtype::u32);
  message_of(errc::usage, [&] { static_cast<void>(open_tokens(path, {.type = dtype::f32})); });
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_tokens(path, {.type = dtype::i64})); }),
              HasSubstr("20 bytes"));
  message_of(errc::not_found, [&] { static_cast<void>(open_tokens((root.path() / "no.bin").string())); });
}

// As u16 every other token would be 0.
TEST(token_files, of_u32_without_a_type_are_asked_about) {
  const temporary_directory root;
  std::vector<std::uint32_t> wide(3000);
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<std::uint32_t>(i * 40503 % 150'000);
  const std::string path = write_file(root.path() / "train.bin", bytes_of(wide));
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open_tokens(path)); }),
              AllOf(HasSubstr("train.bin"), HasSubstr("u32"), HasSubstr("token_options::type")));
  EXPECT_EQ(open_tokens(path, {.type = dtype::u32}).fields()[0].type, dtype::u32);
  EXPECT_EQ(open_tokens(path, {.type = dtype::u16}).fields()[0].type, dtype::u16);
  // Padding is of either.
  EXPECT_EQ(open_tokens(write_file(root.path() / "zeros.bin", std::string(8192, '\0'))).fields()[0].type, dtype::u16);
}

TEST(token_files, of_llm_c_have_a_header_that_is_checked) {
  const temporary_directory root;
  const auto open_text = [&](const std::string& text) { return open_tokens(write_file(root.path() / "f.bin", text)); };
  const std::string narrow = llmc_text(counting<std::uint16_t>(9));
  EXPECT_EQ(open_text(narrow).fields()[0].type, dtype::u16);
  EXPECT_EQ(text_of(open_text(narrow).read(0)), bytes_of(counting<std::uint16_t>(9)));
  const std::string wide = llmc_text(counting<std::uint32_t>(9));
  EXPECT_EQ(open_text(wide).fields()[0].type, dtype::u32);
  EXPECT_EQ(open(write_file(root.path() / "f.bin", wide)).fields()[0].kind, field_kind::tokens);

  const auto with = [&](std::size_t at, std::int32_t value) {
    std::string changed = narrow;
    changed.replace(at * 4, 4, testing::little(value));
    return changed;
  };
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open_text(with(1, 2))); }),
              AllOf(HasSubstr("version 2"), HasSubstr("f.bin")));
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_text(with(2, 10))); }),
              AllOf(HasSubstr("18 bytes"), HasSubstr("10 tokens")));
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_text(with(2, -1))); }), HasSubstr("tokens"));
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open_text(with(0, 20240522))); }),
              HasSubstr("multiple-choice"));
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_text(narrow.substr(0, 1000))); }),
              HasSubstr("within llm.c's header"));
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_text(narrow.substr(0, narrow.size() - 2))); }),
              HasSubstr("16 bytes"));
}

TEST(token_files, that_begin_almost_as_those_of_llm_c_are_refused_unless_their_type_is_given) {
  const temporary_directory root;
  const auto with = [&](std::int32_t magic, std::int32_t version, std::int32_t count, std::int32_t other = 0) {
    std::string text = llmc_text(counting<std::uint16_t>(9));
    text.replace(0, 16, bytes_of(std::vector<std::int32_t>{magic, version, count, other}));
    return write_file(root.path() / "f.bin", text);
  };
  for (const auto& [magic, version] : {std::pair(20240521, 1), std::pair(20991231, 255), std::pair(20200101, 0)}) {
    const std::string path = with(magic, version, 9);
    const std::string found = std::to_string(magic) + ", version " + std::to_string(version);
    EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open_tokens(path)); }),
                AllOf(HasSubstr(found), HasSubstr("20240520"), HasSubstr("(token_options::type)")));
    EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open(path)); }), HasSubstr(found));
    const dataset insisted = open_tokens(path, {.type = dtype::u16});
    EXPECT_EQ(insisted.fields()[0].bytes_total, 1024U + 18);
  }
  // Tokens: no date, no small number, more than there is room for, something where zeros would be.
  EXPECT_EQ(open_tokens(with(20191231, 1, 9)).size(), 1U);
  EXPECT_EQ(open_tokens(with(21000101, 1, 9)).size(), 1U);
  EXPECT_EQ(open_tokens(with(20240521, 256, 9)).size(), 1U);
  EXPECT_EQ(open_tokens(with(20240521, 1, 10)).size(), 1U);
  EXPECT_EQ(open_tokens(with(20240521, 1, 9, 1)).size(), 1U);
}

TEST(token_files, are_no_folders_pictures_or_texts) {
  const temporary_directory root;
  const auto said = [&](const std::string& path) {
    return message_of(errc::usage, [&] { static_cast<void>(open_tokens(path)); });
  };
  EXPECT_THAT(said(root.path().string()),
              AllOf(HasSubstr("tokens are files, and this is a folder"), HasSubstr("without a .bin or .npy")));
  write_file(root.path() / "a.bin", bytes_of(counting<std::uint16_t>(10)));
  EXPECT_THAT(said(root.path().string()), HasSubstr("1 file *.bin: give '" + root.path().string() + "/*.bin'"));
  EXPECT_THAT(said(write_file(root.path() / "p.jpg", "\xff\xd8\xff\xe0 and so on")), HasSubstr("this is a JPEG"));
  const std::string text = write_file(root.path() / "input.txt", "First Citizen:\nBefore we proceed any further");
  EXPECT_THAT(said(text), AllOf(HasSubstr("text, 'First Citizen:...'"), HasSubstr("tokenizer")));
  EXPECT_EQ(open_tokens(text, {.type = dtype::u8}).fields()[0].type, dtype::u8);
}

TEST(token_files, without_a_token_have_no_sample) {
  const temporary_directory root;
  EXPECT_EQ(open_tokens(write_file(root.path() / "a.bin", "")).size(), 0U);
  EXPECT_EQ(open_tokens(write_file(root.path() / "b.bin", llmc_text(std::vector<std::uint16_t>()))).size(), 0U);
  write_file(root.path() / "c.bin", "abcd");
  EXPECT_EQ(open_tokens((root.path() / "?.bin").string()).size(), 1U);
}

TEST(token_files, of_numpy_are_one_dimensional) {
  const temporary_directory root;
  const std::string path =
      write_file(root.path() / "t.npy", npy_text(npy_dict("<u2", "5,"), bytes_of(counting<std::uint16_t>(5))));
  EXPECT_EQ(text_of(open_tokens(path).read(0)), bytes_of(counting<std::uint16_t>(5)));
  message_of(errc::usage, [&] {
    static_cast<void>(open_tokens(write_file(root.path() / "t.npy", npy_text(npy_dict("<f4", "1,"), "abcd"))));
  });
}

TEST(token_files, of_megatron_are_documents_by_any_of_their_names) {
  const temporary_directory root;
  const auto tokens = counting<std::int32_t>(12);
  write_file(root.path() / "m.bin", bytes_of(tokens));
  // Four documents: sequences 0 and 1; none; 2; 3 of no tokens, and 4.
  write_file(root.path() / "m.idx", megatron_index(4, 4, {3, 2, 4, 0, 3}, {0, 2, 2, 3, 5}));
  for (const char* name : {"m.bin", "m.idx", "m"}) {
    const dataset documents = open_tokens((root.path() / name).string());
    ASSERT_EQ(documents.size(), 3U) << name;
    EXPECT_EQ(documents.fields()[0].type, dtype::i32);
    EXPECT_EQ(text_of(documents.read(0)), bytes_of(std::vector<std::int32_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(text_of(documents.read(1)), bytes_of(std::vector<std::int32_t>{5, 6, 7, 8}));
    EXPECT_EQ(text_of(documents.read(2)), bytes_of(std::vector<std::int32_t>{9, 10, 11}));
    EXPECT_EQ(open((root.path() / name).string()).size(), 3U) << name;
  }
  const std::vector<std::string> both = {(root.path() / "m.bin").string(), (root.path() / "m.idx").string()};
  EXPECT_EQ(open_tokens(both).size(), 3U) << "the two halves are one";
}

TEST(token_files, a_megatron_index_that_does_not_fit_is_refused) {
  const temporary_directory root;
  const std::string data = write_file(root.path() / "m.bin", bytes_of(counting<std::uint16_t>(12)));
  const auto refusal = [&](errc code, const std::string& index) {
    write_file(root.path() / "m.idx", index);
    return message_of(code, [&] { static_cast<void>(open_tokens(data)); });
  };
  EXPECT_THAT(refusal(errc::format, megatron_index(8, 2, {3, 10}, {0, 1, 2})),
              AllOf(HasSubstr("sequence 1"), HasSubstr("m.idx"), HasSubstr("m.bin")));
  EXPECT_THAT(refusal(errc::format, megatron_index(8, 2, {3, 9}, {0, 2, 1})),
              HasSubstr("a document ends at sequence 1"));
  EXPECT_THAT(refusal(errc::format, megatron_index(8, 2, {3, 9}, {0, 3})), HasSubstr("sequence 3 of 2"));
  EXPECT_THAT(refusal(errc::unsupported, megatron_index(7, 4, {3}, {0, 1})), HasSubstr("floats"));
  EXPECT_THAT(refusal(errc::unsupported, megatron_index(9, 4, {3}, {0, 1})), HasSubstr("code 9"));
  EXPECT_THAT(refusal(errc::format, "MMIDIDX"), HasSubstr("m.idx"));
  std::string other = megatron_index(8, 2, {3}, {0, 1});
  other[9] = 2;
  EXPECT_THAT(refusal(errc::unsupported, other), HasSubstr("version 2"));
  const std::string whole = megatron_index(8, 2, {3, 9}, {0, 1, 2});
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) refusal(errc::format, whole.substr(0, bytes));
}

TEST(token_files, survive_every_byte_of_an_index_being_changed) {
  const temporary_directory root;
  const std::string data = write_file(root.path() / "m.bin", bytes_of(counting<std::uint16_t>(12)));
  const std::string whole = megatron_index(8, 2, {3, 2, 4, 3}, {0, 1, 3, 4});
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 2, 0x80, 0xFF}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ change);
      write_file(root.path() / "m.idx", changed);
      try {
        const dataset found = open_tokens(data);
        datasets::part_list parts;
        for (std::uint64_t sample = 0; sample < found.size(); ++sample) found.model()->parts(sample, parts);
        for (const datasets::part& each : parts) EXPECT_LE(each.where.offset + each.where.stored_bytes, 24U);
      } catch (const error& problem) {
        ++refused;
        EXPECT_FALSE(std::string(problem.what()).empty());
      }
    }
  }
  EXPECT_GT(refused, 100U);
}

TEST(token_files, of_different_types_are_no_one_dataset) {
  const temporary_directory root;
  const std::string a = write_file(root.path() / "a.bin", llmc_text(counting<std::uint16_t>(9)));
  const std::string b = write_file(root.path() / "b.bin", llmc_text(counting<std::uint32_t>(9)));
  const std::vector<std::string> both = {a, b};
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open_tokens(both)); }),
              AllOf(HasSubstr("u32"), HasSubstr("u16"), HasSubstr("b.bin")));
}

}  // namespace
}  // namespace leat
