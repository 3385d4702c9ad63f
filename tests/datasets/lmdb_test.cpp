// LMDB databases that py-lmdb wrote (tests/data/lmdb/make.py): every value is known from its key.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/wire/serialized_value.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/datasets/value_reader.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::message_of;

std::string database_of(const std::string& name) { return std::string(LEAT_TEST_DATA) + "/lmdb/" + name; }

std::string value_of(std::uint64_t number) {
  std::string text;
  for (std::uint64_t i = 0; i < number * 37 % 101 * (number % 10 == 0 ? 30 : 1); ++i) text += std::to_string(number);
  return text;
}

std::vector<std::string> names_of(const dataset& samples) {
  std::vector<std::string> names;
  for (const field_info& each : samples.fields()) names.push_back(each.name);
  return names;
}

TEST(lmdb, values_lie_in_leaves_and_on_pages_of_their_own_in_the_order_of_their_keys) {
  const dataset samples = open(database_of("folder.lmdb"));
  ASSERT_EQ(samples.size(), 180U);
  EXPECT_THAT(names_of(samples), ElementsAre("value"));
  testing::value_reader values(samples);
  for (std::uint64_t i = 0; i < samples.size(); ++i) ASSERT_EQ(values.text(i, "value"), value_of(i)) << i;
  EXPECT_THAT(samples.name(17), EndsWith("folder.lmdb/data.mdb/00017"));
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("__len__")));
  EXPECT_LE(samples.memory().extents, 24U * 180 + 24);
}

TEST(lmdb, keys_that_name_fields_and_numbers_are_samples_with_these_fields) {
  const dataset samples = open(database_of("ocr.mdb"));
  ASSERT_EQ(samples.size(), 30U);
  EXPECT_THAT(names_of(samples), ElementsAre("image", "label"));
  EXPECT_EQ(samples.fields()[0].kind, field_kind::picture);
  EXPECT_EQ(samples.fields()[1].kind, field_kind::text);
  EXPECT_EQ(samples.fields()[1].samples, 29U);
  testing::value_reader values(samples);
  for (std::uint64_t i = 0; i < 30; ++i) {
    ASSERT_EQ(values.text(i, "image"), "\xff\xd8\xff\xe0" + value_of(i + 1));
    if (i != 6) ASSERT_EQ(values.text(i, "label"), str_cat("word ", i + 1));
  }
  EXPECT_THROW(static_cast<void>(samples.read(6, "label")), error);
  const dataset pictures = open(database_of("sizes.mdb"));
  ASSERT_EQ(pictures.size(), 12U);
  EXPECT_THAT(names_of(pictures), ElementsAre("64"));
  EXPECT_EQ(pictures.fields()[0].kind, field_kind::picture);
}

TEST(lmdb, named_databases_are_asked_for_and_what_is_not_read_is_named) {
  EXPECT_THAT(message_of(errc::usage, [] { static_cast<void>(open(database_of("named.mdb"))); }),
              HasSubstr("first, second"));
  const dataset second = open_lmdb(database_of("named.mdb"), {.database = "second"});
  ASSERT_EQ(second.size(), 5U);
  EXPECT_EQ(testing::value_reader(second).text(3, "value"), "second3");
  EXPECT_THAT(message_of(errc::not_found,
                         [] { static_cast<void>(open_lmdb(database_of("named.mdb"), {.database = "secnd"})); }),
              HasSubstr("did you mean 'second'"));
  EXPECT_THAT(message_of(errc::unsupported, [] { static_cast<void>(open(database_of("duplicates.mdb"))); }),
              HasSubstr("DUPSORT"));
  EXPECT_EQ(open(database_of("empty.mdb")).size(), 0U);
  EXPECT_EQ(open({database_of("ocr.mdb"), database_of("ocr.mdb")}).size(), 60U);
}

// Every value of every sample, of pickles of three protocols and of msgpack, is a field or a reason.
TEST(lmdb, dicts_of_pickle_and_msgpack_are_fields) {
  for (const char* name : {"pickled.mdb", "msgpack.mdb"}) {
    const dataset samples = open(database_of(name));
    ASSERT_EQ(samples.size(), 12U);
    EXPECT_THAT(names_of(samples),
                ElementsAre("image", "label", "meta.id", "meta.again", "box", "seen", "nothing", "long"));
    EXPECT_EQ(samples.fields()[0].kind, field_kind::picture);
    EXPECT_EQ(samples.fields()[1].kind, field_kind::label);
    EXPECT_EQ(samples.fields()[2].kind, field_kind::text);
    testing::value_reader values(samples);
    for (std::uint64_t i = 0; i < 12; ++i) {
      SCOPED_TRACE(str_cat(name, " ", i));
      EXPECT_EQ(values.text(i, "image"), "\xff\xd8\xff\xe0" + value_of(i));
      EXPECT_EQ(values.text(i, "label"), std::to_string(static_cast<std::int64_t>(i) * 1000 - 5000));
      EXPECT_EQ(values.text(i, "meta.id"), str_cat("key ", i));
      EXPECT_EQ(values.text(i, "meta.again"), str_cat("key ", i));
      EXPECT_EQ(values.text(i, "box"), i == 0 ? "0 0 0.5" : str_cat(i, " -", i, " ", i, ".5"));
      EXPECT_EQ(values.text(i, "seen"), i % 2 == 0 ? "1" : "0");
      EXPECT_EQ(values.text(i, "long"), std::string(300, 'x'));
    }
    EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(2, "nothing")); }),
                HasSubstr("is None here"));
    EXPECT_TRUE(samples.read(3, "nothing").empty());
  }
  const dataset tuples = open(database_of("tuples.mdb"));
  EXPECT_THAT(names_of(tuples), ElementsAre("0", "1"));
  testing::value_reader values(tuples);
  for (std::uint64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(values.text(i, "0"), "\xff\xd8\xff\xe0" + value_of(i));
    EXPECT_EQ(values.text(i, "1"), std::to_string(static_cast<std::int64_t>(i) - 6));
  }
  // What makes objects stays bytes, which say how they may become more.
  const dataset objects = open(database_of("objects.mdb"));
  EXPECT_THAT(names_of(objects), ElementsAre("value"));
  EXPECT_THAT(objects.notes(), Contains(AllOf(HasSubstr("the opcode 0x93"), HasSubstr("msgpack.packb"))));
}

std::vector<std::byte> record_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(lmdb, records_that_are_damaged_or_hostile_are_refused) {
  using datasets::serialization;
  using namespace std::string_view_literals;
  const auto refused = [](errc code, serialization how, std::string_view text) {
    const std::vector<std::byte> record = record_of(text);
    return message_of(code, [&] { static_cast<void>(datasets::read_serialized(how, record)); });
  };
  // A dict that has itself; dicts of dicts, each twice.
  EXPECT_THAT(refused(errc::limit, serialization::pickle, "\x80\x04}\x94\x8c\x01kh\0s."sv), HasSubstr("deep"));
  std::string nested = "\x80\x04K\x01";
  for (char i = 0; i < 40; ++i) {
    nested += std::string("\x94}(\x8c\x01") + "ah" + i + "\x8c\x01" + "bh" + i + "u";
  }
  EXPECT_THAT(refused(errc::limit, serialization::pickle, nested + "."), HasSubstr("256 fields"));
  EXPECT_THAT(refused(errc::limit, serialization::msgpack, std::string(100, '\x91')), HasSubstr("deep"));
  // 300 values named by their memo, in 300 tuples each.
  std::string named = "\x80\x04K\x01\x94";
  for (int i = 0; i < 300; ++i) {
    named += "(";
    for (int k = 0; k < 300; ++k) named += std::string("h\0", 2);
    named += "t";
  }
  EXPECT_THAT(refused(errc::limit, serialization::pickle, named + "."), HasSubstr("65536 values"));
  // A dict of 300 keys; and one key within another, each of 200 bytes.
  std::string wide = "\xde\x01\x2c";
  for (int i = 100; i < 400; ++i) wide += "\xa3" + std::to_string(i) + "\xa1x";
  EXPECT_THAT(refused(errc::limit, serialization::msgpack, wide), HasSubstr("256 fields"));
  std::string long_path;
  for (int i = 0; i < 8; ++i) long_path += "\x81\xd9\xc8" + std::string(200, 'k');
  EXPECT_THAT(refused(errc::limit, serialization::msgpack, long_path + "\xa1x"), HasSubstr("1024 bytes"));
  // An empty list is one of numbers; one of texts is no field for each.
  const auto lists = datasets::read_serialized(serialization::msgpack, record_of("\x82\xa1"
                                                                                 "a\x90\xa1"
                                                                                 "b\x92\xa1x\xa1y"));
  ASSERT_EQ(lists.size(), 2U);
  EXPECT_EQ(lists[0].holds, datasets::serialized_member::content::numbers);
  EXPECT_EQ(lists[1].holds, datasets::serialized_member::content::other);
  EXPECT_THAT(refused(errc::format, serialization::msgpack, "\xdd\xff\xff\xff\xff\x01"),
              HasSubstr("more values than the record has bytes"));
  EXPECT_THAT(refused(errc::unsupported, serialization::pickle,
                      "\x80\x04"
                      "cos\nsystem\n."),
              HasSubstr("opcode 0x63"));
  EXPECT_THAT(refused(errc::unsupported, serialization::msgpack, "\x91\xd4\x01\x01"), HasSubstr("extension"));
  EXPECT_THAT(refused(errc::format, serialization::pickle, "\x80\x04\x86."), HasSubstr("not there"));
  EXPECT_THAT(refused(errc::format, serialization::pickle, "\x80\x04h\x05."), HasSubstr("memo"));
  // Cut anywhere or changed anywhere, a record comes to an end, and a value is no longer than what it lies in.
  std::mt19937_64 random(6);
  for (const char* name : {"pickled.mdb", "msgpack.mdb"}) {
    const dataset samples = open(database_of(name));
    datasets::part_list parts;
    samples.model()->parts(1, parts);
    std::ifstream from(database_of(name), std::ios::binary);
    from.seekg(static_cast<std::streamoff>(parts.front().where.offset));
    std::string whole(parts.front().where.stored_bytes, '\0');
    from.read(whole.data(), static_cast<std::streamsize>(whole.size()));
    const serialization how = *datasets::serialization_of(record_of(whole));
    for (std::size_t end = 0; end < whole.size(); ++end) {
      EXPECT_THROW(static_cast<void>(datasets::read_serialized(how, record_of(whole.substr(0, end)))), error) << end;
    }
    for (int i = 0; i < 2000; ++i) {
      std::string changed = whole;
      changed[random() % changed.size()] = static_cast<char>(random());
      const std::vector<std::byte> record = record_of(changed);
      for (const auto& [path, holds] : {std::pair{"image", datasets::serialized_member::content::bytes},
                                        {"label", datasets::serialized_member::content::number},
                                        {"box", datasets::serialized_member::content::numbers}}) {
        const auto picker = datasets::pick_member(how, path, holds);
        std::vector<std::byte> room(picker->room(record.size()));
        std::span<std::byte> into(room);
        if (const auto reason = picker->pick(record, into)) {
          EXPECT_FALSE(reason->reason.empty());
        } else {
          EXPECT_LE(into.size(), room.size());
        }
      }
    }
  }
}

TEST(lmdb, files_that_were_cut_or_changed_come_to_an_end) {
  const testing::temporary_directory root;
  const std::string path = (root.path() / "changed.mdb").string();
  std::mt19937_64 random(5);
  for (const char* name : {"folder.lmdb/data.mdb", "ocr.mdb", "named.mdb"}) {
    std::ifstream from(database_of(name), std::ios::binary);
    const std::string whole(std::istreambuf_iterator<char>(from), {});
    int refused = 0;
    for (int i = 0; i < 120; ++i) {
      std::string content = whole;
      for (std::uint64_t k = 0; k <= random() % 8; ++k) {
        // Headers and the first nodes of pages.
        const std::size_t at = random() % (content.size() / 4096) * 4096 + random() % 64;
        content[at] = static_cast<char>(random());
      }
      if (i % 10 == 9) content.resize(random() % content.size());
      std::ofstream(path, std::ios::binary) << content;
      try {
        const dataset samples = open_lmdb(path, {.threads = 1});
        for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
          datasets::part_list parts;
          samples.model()->parts(sample, parts);
          for (const datasets::part& each : parts)
            ASSERT_LE(each.where.offset + each.where.stored_bytes, content.size());
        }
      } catch (const error& said) {
        ++refused;
        ASSERT_THAT(said.what(), HasSubstr("changed.mdb"));
      }
    }
    EXPECT_GT(refused, 20) << name;
  }
}

// A page of 4 KiB would otherwise have names of 2 MiB.
TEST(lmdb, keys_that_lie_over_one_another_are_refused) {
  const testing::temporary_directory root;
  const std::string path = (root.path() / "over.mdb").string();
  std::ifstream from(database_of("folder.lmdb/data.mdb"), std::ios::binary);
  std::string content(std::istreambuf_iterator<char>(from), {});
  const auto number = [&](std::size_t at) {
    std::uint16_t value = 0;
    std::memcpy(&value, content.data() + at, sizeof value);
    return value;
  };
  const auto put = [&](std::size_t at, std::uint16_t value) { std::memcpy(content.data() + at, &value, sizeof value); };
  constexpr std::uint16_t leaf = 2;
  constexpr std::size_t header_bytes = 16;
  for (std::size_t page = 0; page + 4096 <= content.size(); page += 4096) {
    const std::uint16_t lower = number(page + 12);
    const std::uint16_t upper = number(page + 14);
    if (number(page + 10) != leaf || lower < header_bytes + 20 || upper > 3500) continue;
    for (std::size_t at = header_bytes; at < lower; at += 2) put(page + at, upper);
    put(page + upper + 6, 500);  // bytes of the key
  }
  std::ofstream(path, std::ios::binary) << content;
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open(path)); }),
              AllOf(HasSubstr("over.mdb"), HasSubstr("keys that lie over one another")));
}

TEST(lmdb, a_file_of_another_version_is_refused_by_name) {
  const testing::temporary_directory root;
  const std::string path = (root.path() / "newer.mdb").string();
  std::ifstream from(database_of("ocr.mdb"), std::ios::binary);
  std::string content(std::istreambuf_iterator<char>(from), {});
  content[20] = 2;
  std::ofstream(path, std::ios::binary) << content;
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(path)); }),
              AllOf(HasSubstr("version 2"), HasSubstr("mdb_dump")));
  // Of liblmdb 1.0.2, which lays its pages out otherwise.
  EXPECT_THAT(message_of(errc::unsupported, [] { static_cast<void>(open(database_of("newer.mdb"))); }),
              AllOf(HasSubstr("newer.mdb: LMDB data of version 3"), HasSubstr("mdb_dump")));
}

}  // namespace
}  // namespace leat
