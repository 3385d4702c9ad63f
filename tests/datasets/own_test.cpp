// Tables, functions, coroutines and tensors of one's own; and open(), which looks what is there.
#include "datasets/model/model.hpp"
#include "datasets/write/pack.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_records.hpp>
#include <leat/open_tar.hpp>
#include <leat/open_tokens.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace leat {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::archive;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::temporary_directory;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void put(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << content;
}

TEST(from_extents, reads_what_the_table_says) {
  const temporary_directory root;
  put(root.path() / "a.bin", "0123456789");
  put(root.path() / "b.bin", "abcdef");
  extent_list table;
  table.files = {(root.path() / "a.bin").string(), (root.path() / "b.bin").string()};
  table.fields = {{"txt", {extent{0, 0, 2, 3, 0}, extent{0, 1, 0, 6, 0}}},
                  {"head", {extent{0, 0, 0, 1, 0}, extent{0, 0, extent_list::missing, 0, 0}}}};
  table.columns = {{"cls", {4, 5}}, {"length", {1LL << 40, -1}}};
  table.classes = {"z"};
  const dataset own = from_extents(table);
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(text_of(own.read(0, "txt")), "234");
  EXPECT_EQ(text_of(own.read(0, "head")), "0");
  EXPECT_EQ(text_of(own.read(1, "txt")), "abcdef");
  message_of(errc::not_found, [&] { static_cast<void>(own.read(1, "head")); });
  EXPECT_EQ(own.label(1), 5);
  EXPECT_EQ(own.column(0, "length"), 1LL << 40);
  EXPECT_EQ(own.column(0, "nothing"), std::nullopt);
  EXPECT_EQ(own.fields()[1].samples, 1U);
  EXPECT_THAT(own.name(0), HasSubstr("a.bin@0"));
  // In the file's order, the head before the text.
  datasets::part_list parts;
  own.model()->parts(0, parts);
  EXPECT_EQ(parts[0].where, (extent{0, 0, 0, 1, 1}));
  EXPECT_EQ(parts[1].where, (extent{0, 0, 2, 3, 3}));
}

TEST(from_extents, refuses_extents_that_would_have_to_be_expanded_where_no_codec_says_how) {
  const temporary_directory root;
  put(root.path() / "a.bin", std::string(100, 'x'));
  const auto with = [&](extent where) {
    return from_extents({.files = {(root.path() / "a.bin").string()}, .fields = {{"x", {where}}}});
  };
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(with({0, 0, 0, 100, 1000})); }),
              AllOf(HasSubstr("sample 0, field 'x'"), HasSubstr("100 stored bytes"), HasSubstr("1000 when decoded"),
                    HasSubstr("codec")));
  message_of(errc::unsupported, [&] { static_cast<void>(with({0, 0, 0, 100, 99})); });
  EXPECT_EQ(with({0, 0, 0, 100, 100}).size(), 1U);
  EXPECT_EQ(with({0, 0, 0, 100, 0}).read(0).size(), 100U) << "0: as many as are stored";
}

// What `printf 'rows of text, rows of text' | gzip -n` and Python's zlib.compress() wrote of the same bytes.
constexpr std::string_view packed_text = "rows of text, rows of text";

struct packed_sample {
  std::string codec;
  std::string stored;
};

std::vector<packed_sample> packed_samples() {
  const auto bytes = [](std::initializer_list<int> numbers) { return std::string(numbers.begin(), numbers.end()); };
  const std::string bare = bytes({0x2b, 0xca, 0x2f, 0x2f, 0x56, 0xc8, 0x4f, 0x53, 0x28, 0x49, 0xad, 0x28, 0xd1, 0x51,
                                  0x28, 0x42, 0xe2, 0x01, 0x00});
  return {{"deflate", bare},
          {"zlib", bytes({0x78, 0x9c}) + bare + bytes({0x81, 0xa4, 0x09, 0x97})},
          {"gzip", bytes({0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03}) + bare +
                       bytes({0x3a, 0x7b, 0x9e, 0x18, 0x1a, 0x00, 0x00, 0x00})}};
}

TEST(from_extents, expands_what_its_codec_packed) {
  const temporary_directory root;
  for (const packed_sample& each : packed_samples()) {
    SCOPED_TRACE(each.codec);
    const std::string file = (root.path() / each.codec).string();
    put(file, "before" + each.stored + "behind");
    const auto with = [&](std::uint64_t stored, std::uint64_t decoded) {
      return from_extents({.files = {file}, .fields = {{"txt", {extent{0, 0, 6, stored, decoded}}, each.codec}}});
    };
    const std::uint64_t bytes = each.stored.size();
    const dataset own = with(bytes, packed_text.size());
    EXPECT_EQ(text_of(own.read(0, "txt")), packed_text);
    EXPECT_EQ(text_of(own.subset({0}).read(0, "txt")), packed_text);
    EXPECT_EQ(text_of(own.with_column("cls", {1}).read(0, "txt")), packed_text);
    const dataset stored = from_extents({.files = {file}, .fields = {{"txt", {extent{0, 0, 0, 6, 0}}}}});
    const dataset both = concat({stored, own});
    EXPECT_EQ(text_of(both.read(0, "txt")), "before");
    EXPECT_EQ(text_of(both.read(1, "txt")), packed_text);
    for (const dataset& all : {own, own.subset({0}), both}) {
      const field_info field = all.fields().front();
      EXPECT_EQ(field.bytes_max, packed_text.size());
      EXPECT_EQ(field.stored_block_bytes_max, bytes);
      EXPECT_EQ(field.decoded_block_bytes_max, packed_text.size());
    }
    const std::string shard = (root.path() / (each.codec + ".tar")).string();
    datasets::pack(both, shard, {});
    EXPECT_EQ(text_of(open_tar(shard).read(0, "txt")), "before");
    EXPECT_EQ(text_of(open_tar(shard).read(1, "txt")), packed_text);
    // Exactly as many bytes as the table says.
    const auto wrong = [&](std::uint64_t taken, std::uint64_t decoded) {
      return message_of(errc::corrupt, [&] { static_cast<void>(with(taken, decoded).read(0)); });
    };
    EXPECT_THAT(wrong(bytes, packed_text.size() - 1), AllOf(HasSubstr("more than the 25 bytes"), HasSubstr(file)));
    EXPECT_THAT(wrong(bytes, packed_text.size() + 1), AllOf(HasSubstr("26 bytes"), HasSubstr("27 were expected")));
    EXPECT_THAT(wrong(bytes - 3, packed_text.size()), AllOf(HasSubstr("damaged"), HasSubstr("field 'txt'")));
    EXPECT_THAT(wrong(0, packed_text.size()), HasSubstr("no " + each.codec + " data"));
  }
  EXPECT_THAT(message_of(errc::unsupported,
                         [&] {
                           static_cast<void>(from_extents({.files = {(root.path() / "gzip").string()},
                                                           .fields = {{"x", {extent{0, 0, 0, 4, 9}}, "brotli"}}}));
                         }),
              AllOf(HasSubstr("'brotli'"), HasSubstr("gzip, zlib and deflate")));
}

TEST(from_extents, refuses_tables_that_cannot_be_right) {
  const temporary_directory root;
  put(root.path() / "a.bin", "0123456789");
  const std::string file = (root.path() / "a.bin").string();
  const auto with = [&](extent where) { return extent_list{.files = {file}, .fields = {{"x", {where}}}}; };
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(from_extents(with({0, 0, 8, 3, 0}))); }),
              AllOf(HasSubstr("sample 0"), HasSubstr("ends at 10"), HasSubstr("a.bin")));
  message_of(errc::format, [&] { static_cast<void>(from_extents(with({0, 0, ~std::uint64_t{0} - 1, 3, 0}))); });
  message_of(errc::usage, [&] { static_cast<void>(from_extents(with({0, 1, 0, 1, 0}))); });
  message_of(errc::usage, [&] { static_cast<void>(from_extents(with({1, 0, 0, 1, 0}))); });
  message_of(errc::not_found, [&] { static_cast<void>(from_extents({.files = {file + "x"}})); });
  message_of(errc::usage, [&] {
    static_cast<void>(from_extents({.files = {file}, .fields = {{"x", {extent{}}}}, .columns = {{"cls", {1, 2}}}}));
  });
  message_of(errc::usage, [&] {
    static_cast<void>(from_extents({.files = {file}, .fields = {{"x", {extent{}}}, {"x", {extent{}}}}}));
  });
}

TEST(from_function, calls_for_each_sample_and_passes_its_failures_on) {
  const dataset made = from_function(3,
                                     [](std::uint64_t i) {
                                       if (i == 2) throw std::runtime_error("no third");
                                       return std::vector<std::byte>(i + 1, std::byte{7});
                                     },
                                     {.field = "x", .bytes_max = 2, .columns = {{"cls", {1, 2, 3}}}});
  EXPECT_EQ(made.model()->forms(0), datasets::part_form::produced);
  EXPECT_EQ(made.read(1).size(), 2U);
  EXPECT_EQ(made.label(2), 3);
  EXPECT_THROW(static_cast<void>(made.read(2)), std::runtime_error);
  EXPECT_TRUE(made.model()->sources().empty());
}

TEST(from_function, more_bytes_than_promised_are_an_error_and_no_promise_is_one_too) {
  const auto ten = [](std::uint64_t) { return std::vector<std::byte>(10); };
  const dataset made = from_function(1, ten, {.bytes_max = 9});
  EXPECT_THAT(message_of(errc::limit, [&] { static_cast<void>(made.read(0)); }),
              AllOf(HasSubstr("10 bytes"), HasSubstr("9")));
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(from_function(1, ten, {})); }), HasSubstr("bytes_max"));
}

TEST(from_coroutine, is_awaited) {
  const dataset fetched = from_coroutine(2,
                                         [](std::uint64_t i) -> asio::awaitable<std::vector<std::byte>> {
                                           co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
                                           co_return std::vector<std::byte>(i + 5);
                                         },
                                         {.field = "x", .bytes_max = 6});
  EXPECT_EQ(fetched.model()->forms(0), datasets::part_form::awaited);
  EXPECT_EQ(fetched.read(0).size(), 5U);
  EXPECT_EQ(fetched.subset({1}).read(0).size(), 6U);
}

TEST(from_tensors, rows_are_samples_and_integers_are_columns) {
  static std::array<float, 6> pixels = {1, 2, 3, 4, 5, 6};
  static std::array<std::int32_t, 3> labels = {7, -8, 9};
  const dataset rows = from_tensors({{"x", tensor{dtype::f32, {3, 2}, {2, 1}, pixels.data(), host}},
                                     {"cls", tensor{dtype::i32, {3}, {1}, labels.data(), host}}},
                                    nullptr);
  ASSERT_EQ(rows.size(), 3U);
  const field_info field = rows.fields()[0];
  EXPECT_EQ(field.kind, field_kind::tensor);
  EXPECT_EQ(field.type, dtype::f32);
  EXPECT_EQ(field.shape, dimensions({2}));
  EXPECT_EQ(field.bytes_max, 8U);
  EXPECT_EQ(rows.label(1), -8);
  std::vector<std::byte> scratch;
  const std::span<const std::byte> row = rows.model()->produce(1, 0, scratch);
  EXPECT_EQ(static_cast<const void*>(row.data()), &pixels[2]);
  EXPECT_TRUE(scratch.empty());
}

TEST(from_tensors, refuses_what_is_not_dense_or_of_unequal_length) {
  static std::array<float, 6> data{};
  const auto one = [&](dimensions shape, dimensions strides) {
    return std::vector<named_tensor>{{"x", tensor{dtype::f32, shape, strides, data.data(), host}}};
  };
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(from_tensors(one({2, 2}, {3, 1}), nullptr)); }),
              HasSubstr("contiguous"));
  message_of(errc::usage, [&] { static_cast<void>(from_tensors({}, nullptr)); });
  message_of(errc::usage, [&] { static_cast<void>(from_tensors(one({}, {}), nullptr)); });
  message_of(errc::usage, [&] {
    static_cast<void>(from_tensors({{"x", tensor{dtype::f32, {2, 2}, {2, 1}, data.data(), host}},
                                    {"y", tensor{dtype::f32, {3, 2}, {2, 1}, data.data(), host}}},
                                   nullptr));
  });
}

TEST(dataset, a_sample_that_is_not_there_is_a_usage_error) {
  const dataset none = from_function(0, [](std::uint64_t) { return std::vector<std::byte>(); }, {.bytes_max = 1});
  message_of(errc::usage, [&] { static_cast<void>(none.read(0)); });
  message_of(errc::usage, [&] { static_cast<void>(none.name(0)); });
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(none.label(5)); }), HasSubstr("sample 5"));
}

TEST(open, tells_folders_shards_and_folders_of_shards_apart) {
  const temporary_directory root;
  put(root.path() / "photos/cat/1.jpg", "1");
  fs::create_directories(root.path() / "shards");
  archive().file("b.jpg", "2").end().save(root.path() / "shards/s-1.tar");
  archive().file("a.jpg", "3").file("a.txt", "t").end().save(root.path() / "shards/s-0.tar");
  const std::string photos = (root.path() / "photos").string();
  const std::string shards = (root.path() / "shards").string();
  EXPECT_THAT(open(photos).classes(), ElementsAre("cat"));
  const dataset both = open(shards);
  EXPECT_EQ(both.size(), 2U);
  EXPECT_THAT(both.name(0), HasSubstr("s-0.tar/a"));
  EXPECT_EQ(open(shards + "/s-{0..1}.tar").size(), 2U);
  EXPECT_EQ(open(shards + "/*-1.tar").size(), 1U);
  const std::vector<std::string> all = {photos, shards + "/s-1.tar", shards + "/s-0.tar"};
  EXPECT_EQ(text_of(open(all).read(2, "jpg")), "3");
}

TEST(open, a_folder_of_classes_and_one_without_are_refused_by_name) {
  const temporary_directory root;
  put(root.path() / "named/cat/1.jpg", "1");
  put(root.path() / "flat/2.jpg", "2");
  const std::vector<std::string> both = {(root.path() / "flat").string(), (root.path() / "named").string()};
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open(both)); }),
              AllOf(HasSubstr(both[0] + " has none"), HasSubstr(both[1] + " has class folders")));
  EXPECT_EQ(concat({open(both[0]), open(both[1])}).size(), 2U);
}

template <class Text>
concept folder_of_two_names = requires(Text name) { open_folder({name, name}); };
static_assert(!folder_of_two_names<const char*>, "std::string would be made of two pointers");
static_assert(requires(const std::string& name) { open_folder(name); });

// Two names as const char* must not become one std::string of a range between unrelated pointers.
TEST(open, takes_one_name_or_several_in_any_form) {
  const temporary_directory root;
  const fs::path first = root.path() / "a.tar";
  const fs::path second = root.path() / "b.tar";
  archive().file("1.jpg", "x").end().save(first);
  archive().file("2.jpg", "x").file("3.jpg", "x").end().save(second);
  const std::string a = first.string();
  const std::string b = second.string();
  EXPECT_EQ(open({a.c_str(), b.c_str()}).size(), 3U);
  EXPECT_EQ(open({b.c_str()}).size(), 2U);
  EXPECT_EQ(open(b.c_str()).size(), 2U);
  EXPECT_EQ(open(b).size(), 2U);
  EXPECT_EQ(open({b}).size(), 2U);
  EXPECT_EQ(open(second).size(), 2U);
  EXPECT_EQ(open({a, b}).size(), 3U);
  EXPECT_EQ(open({std::string_view(a), std::string_view(b)}).size(), 3U);
  EXPECT_EQ(open(std::vector<std::string>{a, b}).size(), 3U);
  EXPECT_EQ(open(std::array<std::string, 2>{a, b}).size(), 3U);
  EXPECT_EQ(open({a, b}, {.tar = {.ignore_zeros = true}}).size(), 3U);
  EXPECT_EQ(open_tar({a.c_str(), b.c_str()}).size(), 3U);
  EXPECT_EQ(open_tar({b.c_str()}, {.shards_in_flight = 1}).size(), 2U);
  EXPECT_EQ(open_tar(second).size(), 2U);
  EXPECT_THAT(message_of(errc::usage, [] { static_cast<void>(open({})); }), HasSubstr("no source"));
  // Each names its second file as missing: two names arrived.
  put(root.path() / "x.npy", testing::npy_text(testing::npy_dict("<f4", "2, 1"), std::string(8, '\0')));
  const std::string array = (root.path() / "x.npy").string();
  const auto missing = [](auto&& call) { return message_of(errc::not_found, call); };
  EXPECT_THAT(missing([&] { static_cast<void>(open_npy({array.c_str(), "/no.npy"})); }), HasSubstr("/no.npy"));
  EXPECT_THAT(missing([&] { static_cast<void>(open_npz({"/no.npz", "/neither.npz"})); }), HasSubstr("/no.npz"));
  EXPECT_THAT(missing([&] { static_cast<void>(open_tokens({"/no.bin", "/neither.bin"})); }), HasSubstr("/no.bin"));
  EXPECT_THAT(missing([&] { static_cast<void>(open_records({"/no.bin", "/neither.bin"})); }), HasSubstr("/no.bin"));
}

TEST(open, says_what_a_file_is_that_it_cannot_open) {
  const temporary_directory root;
  const auto said = [&](errc code, const std::string& name, const std::string& content) {
    put(root.path() / name, content);
    return message_of(code, [&] { static_cast<void>(open((root.path() / name).string())); });
  };
  EXPECT_THAT(said(errc::unsupported, "notes.md", "My notes on the data\n"),
              AllOf(HasSubstr("text, 'My notes on the data...'"), HasSubstr("tar shards"), HasSubstr(".npy"),
                    HasSubstr(".npz"), HasSubstr("records"), HasSubstr("tokens")));
  EXPECT_THAT(said(errc::usage, "a.jpg", "\xff\xd8\xff\xe0"), AllOf(HasSubstr("a JPEG"), HasSubstr("give the folder")));
  EXPECT_THAT(said(errc::unsupported, "a.db", std::string("SQLite format 3\0", 16)),
              AllOf(HasSubstr("an SQLite database"), HasSubstr("convert")));
  EXPECT_THAT(said(errc::format, "a.parquet", "PAR1"), AllOf(HasSubstr("a.parquet"), HasSubstr("too short")));
  EXPECT_THAT(said(errc::format, "a.h5", "\x89HDF\r\n\x1a\n"), AllOf(HasSubstr("a.h5"), HasSubstr("at offset")));
  EXPECT_THAT(said(errc::unsupported, "a.out", "\x7f\x45LF"), AllOf(HasSubstr("a program"), Not(HasSubstr("convert"))));
  EXPECT_THAT(said(errc::format, "a.tgz", "\x1f\x8b\x08" + std::string(600, 'z')), HasSubstr("damaged gzip data"));
  archive().file("1.jpg", "x").end().save(root.path() / "shard.000");
  EXPECT_EQ(open((root.path() / "shard.000").string()).size(), 1U);
}

TEST(open, says_what_it_looked_for) {
  const temporary_directory root;
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open((root.path() / "x").string())); }),
              AllOf(HasSubstr("/x"), HasSubstr("tar shards")));
  message_of(errc::usage, [&] { static_cast<void>(open(std::span<const std::string>())); });
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open("gs://bucket/a.tar")); }), HasSubstr("local"));
}

}  // namespace
}  // namespace leat
