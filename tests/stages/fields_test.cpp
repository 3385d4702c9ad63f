// What a sample's encoded parts become: labels, texts, bytes, one's own; and which members a field finds.
#include "stages/batch/batch_layout.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/widen.hpp"
#include "stages/pixels/scratch.hpp"
#include "tests/support/bound_field.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

using testing::fake_dataset;
using testing::fake_sample;

// One sample, one field, one row.
class decoded {
 public:
  decoded(const field& what, const std::string& member, std::string_view encoded, std::uint64_t sample = 0)
      : set_(std::vector<fake_sample>{
            {.members = {{member, testing::to_bytes(encoded)}}, .cls_column = std::nullopt, .defect = ""}}),
        program_(testing::bound(what, *set_.get().model())),
        budget_(std::size_t{16} << 20) {
    const output_spec& spec = program_->outputs().front();
    row_.assign(spec.ragged ? encoded.size() : spec.row_bytes(), std::byte{0xEE});
    row_target target{.bytes = row_};
    const auto scratch = program_->make_scratch(budget_);
    const decode_input input{.sample = sample,
                             .draw = sample,
                             .epoch = 0,
                             .seed = 0,
                             .dataset = set_.get().model().get(),
                             .encoded = std::as_bytes(std::span(encoded)),
                             .present = true,
                             .stop = nullptr};
    const outcome<void> result = program_->decode(*scratch, input, {&target, 1});
    if (!result) reason_ = result.reason();
    used_ = target.used;
  }

  [[nodiscard]] const std::string& reason() const { return reason_; }
  template <class T>
  [[nodiscard]] std::vector<T> as() const {
    EXPECT_EQ(reason_, "");
    std::vector<T> values(row_.size() / sizeof(T));
    std::memcpy(values.data(), row_.data(), row_.size());
    return values;
  }
  [[nodiscard]] std::string text() const {
    EXPECT_EQ(reason_, "");
    return std::string(testing::as_text(std::span(row_).first(used_)));
  }

 private:
  fake_dataset set_;
  std::unique_ptr<field_program> program_;
  pixels::scratch_budget budget_;
  std::vector<std::byte> row_;
  std::size_t used_ = 0;
  std::string reason_;
};

template <class T = std::int64_t>
T number(const label& how, std::string_view text) {
  return decoded(how, how.get().name, text).as<T>().at(0);
}
std::string refused(const label& how, std::string_view text) { return decoded(how, how.get().name, text).reason(); }

TEST(label, reads_integers_with_blanks_around_them) {
  EXPECT_EQ(number(label(), "7"), 7);
  EXPECT_EQ(number(label(), " -12\r\n"), -12);
  EXPECT_EQ(number(label(), "+3"), 3);
  EXPECT_EQ(number(label(), "0007"), 7);
  EXPECT_EQ(number(label(), "3.0"), 3);
  EXPECT_EQ(number(label(), "9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(number(label(), "-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(number<std::uint64_t>(label().as(dtype::u64), "18446744073709551615"),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(number<std::uint8_t>(label().as(dtype::u8), "255"), 255);
  EXPECT_EQ(number<std::int8_t>(label().as(dtype::i8), "-128"), -128);
  EXPECT_EQ(number<std::uint16_t>(label().as(dtype::u16), "65535"), 65535);
  EXPECT_EQ(number<std::int16_t>(label().as(dtype::i16), "-32768"), -32768);
  EXPECT_EQ(number<std::uint32_t>(label().as(dtype::u32), "4294967295"), 4294967295U);
  EXPECT_EQ(number<std::int32_t>(label().as(dtype::i32), "-2147483648"), std::numeric_limits<std::int32_t>::min());
}

TEST(label, refuses_integers_that_do_not_fit_and_never_wraps_them) {
  const std::pair<dtype, const char*> cases[] = {{dtype::u8, "256"},
                                                 {dtype::u8, "-1"},
                                                 {dtype::i8, "128"},
                                                 {dtype::i8, "-129"},
                                                 {dtype::u16, "65536"},
                                                 {dtype::i16, "32768"},
                                                 {dtype::u32, "4294967296"},
                                                 {dtype::i32, "2147483648"},
                                                 {dtype::u64, "-1"},
                                                 {dtype::u64, "18446744073709551616"},
                                                 {dtype::i64, "9223372036854775808"},
                                                 {dtype::i64, "-9223372036854775809"}};
  for (const auto& [type, text] : cases) {
    EXPECT_NE(refused(label().as(type), text).find("does not fit"), std::string::npos)
        << name(type) << " " << text << ": " << refused(label().as(type), text);
    EXPECT_NE(refused(label().as(type).key("k"), std::string("{\"k\": ") + text + "}").find("does not fit"),
              std::string::npos)
        << name(type) << " JSON " << text;
  }
}

TEST(label, reads_floats_and_refuses_them_where_integers_are_wanted) {
  EXPECT_EQ(number<float>(label().as(dtype::f32), "0.1"), 0.1F);
  EXPECT_EQ(number<double>(label().as(dtype::f64), "-2.5e-3\n"), -2.5e-3);
  EXPECT_EQ(number<float>(label().as(dtype::f32), "3"), 3.0F);
  EXPECT_TRUE(std::signbit(number<float>(label().as(dtype::f32), "-0.0")));
  EXPECT_EQ(number<double>(label().as(dtype::f64), "9007199254740993"), 9007199254740992.0);
  EXPECT_NE(refused(label(), "2.5").find("no whole number"), std::string::npos) << refused(label(), "2.5");
  EXPECT_NE(refused(label().as(dtype::f32), "1e39").find("does not fit"), std::string::npos);
  EXPECT_NE(refused(label().as(dtype::f64), "1e400").find("does not fit"), std::string::npos);
  EXPECT_EQ(number<float>(label().as(dtype::f32), "1e-60"), 0.0F);
  EXPECT_EQ(number<float>(label().as(dtype::f32), "inf"), std::numeric_limits<float>::infinity());
}

TEST(label, reads_vectors_of_a_given_length) {
  const label three = label("box").as(dtype::f32).vector(3);
  for (const char* const text : {"1 2 3.5", "1,2,3.5", "[1, 2, 3.5]\n", "1\t2\n3.5", "1;2;3.5"}) {
    EXPECT_EQ(decoded(three, "box", text).as<float>(), (std::vector<float>{1, 2, 3.5})) << text;
  }
  EXPECT_NE(refused(three, "1 2").find("holds 2 numbers where 3 are wanted"), std::string::npos);
  EXPECT_NE(refused(three, "1 2 3 4").find("holds 4"), std::string::npos);
  EXPECT_NE(refused(label(), "1 2").find("holds 2"), std::string::npos);
}

TEST(label, refuses_junk_and_quotes_it) {
  EXPECT_NE(refused(label(), "cat").find("'cat' is no number"), std::string::npos);
  EXPECT_NE(refused(label(), "").find("holds 0"), std::string::npos);
  EXPECT_NE(refused(label(), "12x").find("no number"), std::string::npos);
  EXPECT_NE(refused(label(), "0x10").find("no number"), std::string::npos);
  const std::string_view binary(
      "1\0"
      "2",
      3);
  EXPECT_NE(refused(label(), binary).find("'1.2'"), std::string::npos) << refused(label(), binary);
  const std::string shown = refused(label(), std::string(5000, 'y'));
  EXPECT_LT(shown.size(), 100U);
}

TEST(label, finds_a_member_of_a_json_object) {
  const label id = label("json").key("id");
  EXPECT_EQ(number(id, "{\"x\": 1, \"id\": 42}"), 42);
  EXPECT_EQ(number(id, "{\"id\": true}"), 1);
  EXPECT_EQ(number<double>(label("json").key("s").as(dtype::f64), "{\"s\": 0.25}"), 0.25);
  EXPECT_EQ(decoded(label("json").key("box").as(dtype::f32).vector(2), "json", "{\"box\": [1, 2.5]}").as<float>(),
            (std::vector<float>{1, 2.5}));
  EXPECT_EQ(number<std::uint64_t>(label("json").key("id").as(dtype::u64), "{\"id\": 18446744073709551615}"),
            std::numeric_limits<std::uint64_t>::max());
}

TEST(label, refuses_json_that_is_none_or_lacks_the_member) {
  const label id = label("json").key("id");
  EXPECT_NE(refused(id, "{\"id\": ").find("no JSON: line 1, column 8: unexpected end of input"), std::string::npos);
  EXPECT_NE(refused(id, "[1]").find("no member 'id'"), std::string::npos);
  EXPECT_NE(refused(id, "{\"ID\": 1}").find("no member 'id'"), std::string::npos);
  EXPECT_NE(refused(id, "{\"id\": \"7\"}").find("string"), std::string::npos);
  EXPECT_NE(refused(id, "{\"id\": [7]}").find("array"), std::string::npos);
  EXPECT_NE(refused(id, "{\"id\": null}").find("null"), std::string::npos);
  EXPECT_NE(refused(id, "{\"id\": 1.5}").find("no whole number"), std::string::npos);
  EXPECT_NE(refused(label("json").key("b").vector(2), "{\"b\": [1]}").find("array of 1"), std::string::npos);
  EXPECT_NE(refused(label("json").key("b").vector(1), "{\"b\": [\"x\"]}").find("string"), std::string::npos);
  // Deep nesting is an attack on the parser's stack; it must not end the process.
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_FALSE(refused(id, deep).empty());
}

TEST(label, of_a_type_that_labels_do_not_have_is_refused_when_the_field_is_made) {
  for (const dtype type : {dtype::f16, dtype::bf16, dtype::boolean})
    EXPECT_THROW(static_cast<void>(field(label().as(type))), error);
  EXPECT_THROW(static_cast<void>(field(label().vector(0))), error);
  EXPECT_THROW(static_cast<void>(field(label().vector(-3))), error);
}

TEST(label, comes_from_the_column_where_a_sample_has_no_member) {
  std::vector<fake_sample> samples(3);
  samples[0].cls_column = 5;
  samples[1].members = {{"cls", testing::to_bytes("6")}};
  const fake_dataset set(samples);
  const auto program = testing::bound(label(), *set.get().model());
  EXPECT_FALSE(program->required());
  std::int64_t row = 0;
  row_target target{.bytes = std::as_writable_bytes(std::span(&row, 1))};
  pixels::scratch_budget budget(1 << 20);
  const auto scratch = program->make_scratch(budget);
  decode_input input{.dataset = set.get().model().get(), .encoded = {}, .present = false};
  EXPECT_TRUE(program->decode(*scratch, input, {&target, 1}));
  EXPECT_EQ(row, 5);
  input.sample = 2;
  const auto nothing = program->decode(*scratch, input, {&target, 1});
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.reason().find("no class"), std::string::npos);
}

TEST(text, is_what_is_utf8) {
  const field what = text("txt");
  for (const std::string_view good :
       {"", "plain", "\xC3\xA4\xC3\xB6", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xF4\x8F\xBF\xBF", "\xE0\xA0\x80", "\xF0\x90\x80\x80", "\x7F"}) {
    EXPECT_EQ(decoded(what, "txt", good).text(), good);
  }
  const std::pair<std::string_view, int> bad[] = {{"ab\xFF", 2},            // no such byte
                                                  {"\x80", 0},              // a byte that only continues
                                                  {"\xC3", 0},              // cut off
                                                  {"a\xE2\x82", 1},         // cut off
                                                  {"\xC0\xAF", 0},          // overlong '/'
                                                  {"\xC1\xBF", 0},          // overlong
                                                  {"\xE0\x9F\xBF", 0},      // overlong
                                                  {"\xF0\x8F\xBF\xBF", 0},  // overlong
                                                  {"\xED\xA0\x80", 0},      // a surrogate
                                                  {"\xF4\x90\x80\x80", 0},  // beyond U+10FFFF
                                                  {"\xF5\x80\x80\x80", 0},  // likewise
                                                  {"ok\xE2\x28\xA1", 2},    // a continuation that is none
                                                  {"\xF0\x9F\x98\x80\xF0\x9F\x98", 4}};
  for (const auto& [bytes_of, at] : bad) {
    EXPECT_EQ(decoded(what, "txt", bytes_of).reason(), "is not UTF-8 at byte " + std::to_string(at));
  }
}

TEST(bytes, are_what_they_are) {
  const std::string all("\0\xFF{}\n", 5);
  EXPECT_EQ(decoded(bytes("json"), "json", all).text(), all);
  EXPECT_EQ(decoded(bytes("json"), "json", "").text(), "");
}

TEST(custom, is_told_its_sample_and_says_what_is_wrong) {
  const field what =
      custom("x", dtype::u16, {2},
             [](std::span<const std::byte> encoded, const sample_context& context, std::span<std::byte> row) {
               if (encoded.size() != 3) return std::string("not three bytes");
               EXPECT_EQ(row.size(), 4U);
               const std::uint16_t values[2] = {static_cast<std::uint16_t>(context.sample), 9};
               std::memcpy(row.data(), values, sizeof values);
               return std::string();
             });
  EXPECT_EQ(decoded(what, "x", "abc", 77).as<std::uint16_t>(), (std::vector<std::uint16_t>{77, 9}));
  EXPECT_EQ(decoded(what, "x", "ab").reason(), "not three bytes");
}

TEST(custom, without_a_function_or_with_an_empty_axis_is_refused) {
  EXPECT_THROW(custom("x", dtype::u8, {1}, nullptr), error);
  EXPECT_THROW(
      custom("x", dtype::u8, {3, 0},
             [](std::span<const std::byte>, const sample_context&, std::span<std::byte>) { return std::string(); }),
      error);
}

TEST(image, called_jpg_finds_pictures_under_any_name_and_any_content) {
  const testing::rgb_picture picture = testing::make_texture(1, 9, 7);
  testing::rgb_picture seen;
  const auto jpeg = testing::make_jpeg(picture, {});
  const auto png = testing::make_png(picture, {}, seen);
  const field what = image("jpg").as(dtype::u8).as(layout::nhwc).resize(7, 9);
  // A PNG's pixels come back exactly, whatever its member is called.
  for (const char* const member : {"jpg", "jpeg", "png"}) {
    const auto got = decoded(what, member, testing::as_text(png)).as<std::uint8_t>();
    EXPECT_EQ(got, picture.pixels) << member;
    EXPECT_EQ(decoded(what, member, testing::as_text(jpeg)).reason(), "");
  }
}

TEST(image, of_another_name_finds_that_one_only) {
  const fake_dataset set(
      std::vector<fake_sample>{{.members = {{"jpg", testing::to_bytes("x")}, {"seg.png", testing::to_bytes("y")}},
                                .cls_column = {},
                                .defect = ""}});
  const auto program = testing::bound(image("seg.png").resize(4, 4), *set.get().model());
  ASSERT_EQ(program->reads().size(), 1U);
  EXPECT_EQ(set.get().model()->fields()[program->reads()[0]].name, "seg.png");
  EXPECT_EQ(program->outputs()[0].row_shape, (dimensions{3, 4, 4}));
}

TEST(image, of_more_pixels_than_a_picture_may_have_is_refused_wherever_it_is_finished) {
  const fake_dataset set(std::vector<fake_sample>{
      {.members = {{"jpg", testing::to_bytes("x")}}, .cls_column = std::nullopt, .defect = ""}});
  for (const finished_by where : {finished_by::host, finished_by::device}) {
    for (const dtype type : {dtype::u8, dtype::f32}) {
      const image giant = image("jpg").resize(65'535, 65'535).as(type);
      try {
        static_cast<void>(testing::bound(giant, *set.get().model(), where));
        FAIL();
      } catch (const error& refused) {
        EXPECT_EQ(refused.code(), errc::limit);
        EXPECT_NE(std::string(refused.what()).find("65535 x 65535"), std::string::npos) << refused.what();
      }
    }
  }
}

TEST(batch_layout, of_more_bytes_than_can_be_addressed_is_refused_and_not_taken_for_few) {
  // 2^32 rows of 2^32 bytes are 0 in 64 bits.
  const output_spec wide{.name = "x", .type = dtype::u8, .row_shape = {std::int64_t{1} << 32}};
  EXPECT_THROW(batch_layout({wide}, 4'294'967'295U), error);
  EXPECT_THROW(batch_layout({wide, {.name = "y", .type = dtype::u8, .row_shape = {1}}}, 1U << 16), error);
}

TEST(fields, that_the_dataset_lacks_are_refused_naming_those_it_has) {
  std::vector<fake_sample> samples(1);
  samples[0].members = {{"jpg", testing::to_bytes("x")}, {"txt", testing::to_bytes("y")}};
  samples[0].cls_column = 1;
  const fake_dataset set(samples);
  for (const field& what : {field(bytes("png")), field(text("caption")), field(image("mask")), field(label("id"))}) {
    try {
      static_cast<void>(testing::bound(what, *set.get().model()));
      ADD_FAILURE() << what.name();
    } catch (const error& wrong) {
      EXPECT_EQ(wrong.code(), errc::usage);
      EXPECT_EQ(std::string(wrong.what()),
                "the dataset has no field '" + what.name() +
                    "'; it has jpg, txt, cls (a column); .from(\"jpg\") reads one under a name of your own");
    }
  }
}

template <class From, class To>
void expect_widened(dtype from, dtype to) {
  const widen_function widen = widening(from, to);
  ASSERT_NE(widen, nullptr);
  std::vector<std::byte> stored(80 * sizeof(From) + 3);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::byte>(37 * i + 150);
  for (std::size_t count = 0; count <= 80; ++count) {
    for (std::size_t offset = 0; offset < 4; ++offset) {
      std::vector<std::byte> made((count + 2) * sizeof(To), std::byte{0xEE});
      std::vector<std::byte> wanted = made;
      bool fits = true;
      for (std::size_t i = 0; i < count; ++i) {
        From value;
        std::memcpy(&value, stored.data() + offset + i * sizeof value, sizeof value);
        const auto wide = static_cast<To>(value);
        fits = fits && std::in_range<To>(value);
        std::memcpy(wanted.data() + sizeof wide + i * sizeof wide, &wide, sizeof wide);
      }
      ASSERT_EQ(widen(stored.data() + offset, made.data() + sizeof(To), count), fits) << count << " from " << offset;
      ASSERT_EQ(made, wanted) << count << " from " << offset;
    }
  }
}

TEST(widening, gives_each_number_at_every_length_and_alignment_and_writes_no_other) {
  expect_widened<std::uint8_t, std::int32_t>(dtype::u8, dtype::i32);
  expect_widened<std::int8_t, std::int32_t>(dtype::i8, dtype::i32);
  expect_widened<std::uint16_t, std::int32_t>(dtype::u16, dtype::i32);
  expect_widened<std::int16_t, std::int32_t>(dtype::i16, dtype::i32);
  expect_widened<std::uint32_t, std::int32_t>(dtype::u32, dtype::i32);
  expect_widened<std::uint8_t, std::int64_t>(dtype::u8, dtype::i64);
  expect_widened<std::int8_t, std::int64_t>(dtype::i8, dtype::i64);
  expect_widened<std::uint16_t, std::int64_t>(dtype::u16, dtype::i64);
  expect_widened<std::int16_t, std::int64_t>(dtype::i16, dtype::i64);
  expect_widened<std::uint32_t, std::int64_t>(dtype::u32, dtype::i64);
  expect_widened<std::int32_t, std::int64_t>(dtype::i32, dtype::i64);
}

}  // namespace
}  // namespace leat::stages
