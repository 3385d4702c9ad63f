// Several fields of one member: each has its own output, and the member is read, made and decoded once.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/verbatim_field.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_records.hpp>
#include <leat/own_samples.hpp>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using testing::fake_dataset;
using testing::fake_layout;
using testing::fake_sample;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::row_of;
using testing::small_options;

const std::vector<fake_sample>& samples() {
  static const std::vector<fake_sample> made = testing::make_samples(9, 45);
  return made;
}

loader_options one_epoch() {
  loader_options options = small_options();
  options.epochs = 1;
  return options;
}

image train_picture(const std::string& name, const std::string& member = "jpg") {
  return image(name).from(member).random_resized_crop(12).random_flip().normalize(imagenet);
}

std::uint64_t sum_of(std::span<const std::byte> bytes) {
  std::uint64_t sum = bytes.size();
  for (const std::byte each : bytes) sum = sum * 31 + std::to_integer<std::uint64_t>(each);
  return sum;
}

/// A field of one's own: a number that the member's bytes give.
custom sum_field(const std::string& name) {
  return custom(name, dtype::u64, {},
                [](std::span<const std::byte> encoded, const sample_context&, std::span<std::byte> row) {
                  const std::uint64_t sum = sum_of(encoded);
                  std::memcpy(row.data(), &sum, sizeof sum);
                  return std::string();
                });
}

/// An output's rows by sample.
std::map<std::uint64_t, std::vector<std::byte>> rows_of(const dataset& from, const loader_options& options,
                                                        const std::vector<field>& fields, std::string_view output) {
  std::map<std::uint64_t, std::vector<std::byte>> rows;
  loader train(from, options, fields);
  for (const batch& got : train.blocking()) {
    static_cast<void>(testing::look_at(got));
    for (std::size_t r = 0; r < got.valid_rows(); ++r) rows[got.ids()[r]] = row_of(got, output, r);
  }
  return rows;
}

TEST(views, of_one_picture_are_drawn_apart_and_the_first_as_it_is_alone) {
  const testing::watchdog dog("views");
  const fake_dataset set(samples());
  const loader_options options = one_epoch();
  const std::vector<field> both{train_picture("view1"), train_picture("view2")};
  const auto alone = rows_of(set, options, {train_picture("jpg")}, "jpg");
  const auto first = rows_of(set, options, both, "view1");
  const auto second = rows_of(set, options, both, "view2");
  EXPECT_EQ(alone.size(), samples().size());
  EXPECT_EQ(first, alone);
  for (const auto& [sample, row] : second) EXPECT_NE(row, first.at(sample)) << "sample " << sample;
  EXPECT_EQ(rows_of(set, options, both, "view2"), second) << "a function of seed, epoch and sample";
}

// What is fixed draws nothing, and is no view: a picture as it is beside the augmented one changes no crop.
TEST(views, are_counted_among_those_that_draw_anything) {
  const testing::watchdog dog("views");
  const fake_dataset set(samples());
  const loader_options options = one_epoch();
  const auto alone = rows_of(set, options, {train_picture("jpg")}, "jpg");
  const field fixed = image("small").from("jpg").resize(8, 8);
  EXPECT_EQ(rows_of(set, options, {fixed, train_picture("jpg")}, "jpg"), alone);
  EXPECT_EQ(rows_of(set, options, {train_picture("jpg"), fixed}, "small"), rows_of(set, options, {fixed}, "small"));
}

TEST(views, of_two_members_match_view_by_view) {
  const testing::watchdog dog("masks");
  std::vector<fake_sample> with_masks = samples();
  for (fake_sample& each : with_masks) {
    const auto* const picture = each.find("jpg") != nullptr ? each.find("jpg") : each.find("png");
    const std::vector<std::byte> bytes = picture->bytes;
    each.members.push_back({"mask", bytes});
  }
  const fake_dataset set(with_masks);
  const std::vector<field> fields{train_picture("a"), train_picture("mask.a", "mask"), train_picture("b"),
                                  train_picture("mask.b", "mask")};
  const auto a = rows_of(set, one_epoch(), fields, "a");
  const auto b = rows_of(set, one_epoch(), fields, "b");
  EXPECT_EQ(rows_of(set, one_epoch(), fields, "mask.a"), a);
  EXPECT_EQ(rows_of(set, one_epoch(), fields, "mask.b"), b);
  EXPECT_NE(a, b);
}

// A bound that no picture meets keeps a field out of the others' decode, and changes nothing else.
TEST(views, hold_the_same_bytes_decoded_together_and_each_by_itself) {
  testing::for_each_seed(6, [](std::uint64_t seed) {
    const testing::watchdog dog("one decode");
    const std::vector<fake_sample> some = testing::make_samples(seed, 40);
    const auto fields = [](bool together) {
      std::vector<field> all;
      for (int view = 0; view < 4; ++view) {
        image each = image("v" + std::to_string(view)).from("jpg");
        each = view == 3 ? each.resize(9).center_crop(8) : each.random_resized_crop(4 + 3 * view).random_flip();
        if (view % 2 == 0) each = each.as(dtype::u8);
        all.emplace_back(together ? each : each.pixels_max(1'000'000 + view));
      }
      all.emplace_back(label("cls"));
      return all;
    };
    loader_options options = one_epoch();
    options.seed = seed;
    const testing::seen_run together = testing::run_all(fake_dataset(some), options, fields(true));
    const testing::seen_run apart = testing::run_all(fake_dataset(some), options, fields(false));
    EXPECT_FALSE(together.failed) << together.message;
    EXPECT_EQ(together.batches, apart.batches);
    EXPECT_EQ(together.stats.bytes_read, apart.stats.bytes_read);
  });
}

TEST(views, of_damaged_pictures_are_corrupt_for_the_same_reasons_as_each_by_itself) {
  testing::for_each_seed(6, [](std::uint64_t seed) {
    const testing::watchdog dog("damaged views");
    std::vector<fake_sample> some = testing::make_samples(seed, 40);
    testing::seeded_random random(seed);
    for (std::size_t i = 0; i < some.size(); i += 3) {
      fake_sample::member* const picture = some[i].find("jpg");
      if (picture == nullptr) continue;
      for (int flips = 0; flips < 4; ++flips) {
        picture->bytes[picture->bytes.size() / 3 + random.below(picture->bytes.size() / 2)] ^= std::byte{0x20};
      }
    }
    const auto run = [&](bool together) {
      loader_options options = one_epoch();
      options.on_corrupt = corrupt_policy::skip;
      const testing::temporary_directory root;
      options.journal = root.path() / "journal";
      const image second = train_picture("b");
      const testing::seen_run seen = testing::run_all(
          fake_dataset(some), options, {train_picture("a"), together ? second : second.pixels_max(1'000'000)});
      EXPECT_FALSE(seen.failed) << seen.message;
      return std::pair(seen.batches, testing::whole_file(options.journal));
    };
    EXPECT_EQ(run(true), run(false));
  });
}

TEST(views, are_mixed_alike) {
  const testing::watchdog dog("mixed views");
  const fake_dataset set(samples());
  loader_options options = one_epoch();
  const std::vector<field> fields{train_picture("a"), train_picture("b"), label("cls")};
  const auto plain = rows_of(set, options, fields, "b");
  for (const batch_mix how : {mixup(0.8), cutmix()}) {
    options.mix = how;
    loader train(set, options, fields);
    for (const batch& got : train.blocking()) {
      static_cast<void>(testing::look_at(got));
      const auto weights = testing::values_of<float>(got, "mix.weight");
      for (std::size_t r = 0; r < got.valid_rows(); ++r) {
        const auto floats = [](const std::vector<std::byte>& bytes) {
          std::vector<float> values(bytes.size() / sizeof(float));
          std::memcpy(values.data(), bytes.data(), bytes.size());
          return values;
        };
        const std::vector<float> mixed = floats(row_of(got, "b", r));
        const std::vector<float> own = floats(plain.at(got.ids()[r]));
        const std::vector<float> partner = floats(plain.at(got.ids()[(r + 1) % got.valid_rows()]));
        for (std::size_t i = 0; i < mixed.size(); ++i) {
          if (how.what == batch_mix::kind::mixup) {
            const float first = weights[r] * own[i];
            const float second = (1.0F - weights[r]) * partner[i];
            ASSERT_EQ(mixed[i], first + second);
          } else {
            ASSERT_TRUE(mixed[i] == own[i] || mixed[i] == partner[i]);
          }
        }
      }
    }
  }
}

TEST(shared_members, are_read_once_for_fields_of_every_kind) {
  const testing::watchdog dog("every kind");
  std::vector<fake_sample> some = samples();
  for (fake_sample& each : some) {
    if (each.find("png") != nullptr) each.find("png")->field = "jpg";
  }
  for (const fake_layout layout : {fake_layout::shards, fake_layout::file_per_member, fake_layout::columns}) {
    for (const bool shuffle : {true, false}) {
      loader_options options = one_epoch();
      options.shuffle = shuffle;
      const fake_dataset set(some, {.layout = layout, .disk = {}});
      const auto once = testing::run_all(set, options, {image("jpg").resize(8, 8), label("cls"), text("txt")});
      loader train(set, options, train_picture("view1"), train_picture("view2"), bytes("file").from("jpg"),
                   sum_field("sum").from("jpg"), label("y").from("cls"), text("caption").from("txt"),
                   bytes("caption.bytes").from("txt"), label("cls").as(dtype::f32));
      std::size_t seen = 0;
      for (const batch& got : train.blocking()) {
        static_cast<void>(testing::look_at(got));
        const auto sums = testing::values_of<std::uint64_t>(got, "sum");
        const auto classes = testing::values_of<std::int64_t>(got, "y");
        const auto floats = testing::values_of<float>(got, "cls");
        for (std::size_t r = 0; r < got.valid_rows(); ++r, ++seen) {
          const fake_sample& sample = some[got.ids()[r]];
          EXPECT_EQ(row_of(got, "file", r), sample.find("jpg")->bytes);
          EXPECT_EQ(sums[r], sum_of(sample.find("jpg")->bytes));
          EXPECT_EQ(row_of(got, "caption", r), sample.find("txt")->bytes);
          EXPECT_EQ(row_of(got, "caption.bytes", r), sample.find("txt")->bytes);
          EXPECT_EQ(classes[r], 1000 + static_cast<std::int64_t>(got.ids()[r]));
          EXPECT_EQ(floats[r], static_cast<float>(classes[r]));
        }
      }
      EXPECT_EQ(seen, some.size());
      EXPECT_EQ(train.stats().bytes_read, once.stats.bytes_read);
      EXPECT_EQ(train.stats().read.count, once.stats.read.count);
    }
  }
}

// A row that its bytes are read to is what the member's other fields are made of.
TEST(shared_members, that_are_read_direct_to_row_a_row_serve_others_from_there) {
  const testing::watchdog dog("straight and shared");
  std::vector<fake_sample> some;
  for (std::size_t i = 0; i < 75; ++i) {
    testing::seeded_random random(i);
    std::vector<std::byte> content(8192);
    for (std::byte& each : content) each = static_cast<std::byte>(random.below(256));
    some.push_back({.members = {{"bin", std::move(content)}}, .cls_column = std::nullopt, .defect = ""});
  }
  for (const bool shuffle : {true, false}) {
    for (const bool digests : {true, false}) {
      fake_dataset set(some, {.layout = fake_layout::columns, .disk = {}});
      set.damage(11, "bin", EIO);
      loader_options options = one_epoch();
      options.shuffle = shuffle;
      options.digests = digests;
      options.on_corrupt = corrupt_policy::skip;
      loader alone(set, options, testing::verbatim("bin"));
      for (const batch& got : alone.blocking()) static_cast<void>(testing::look_at(got));
      loader train(set, options, bytes("first").from("bin"), testing::verbatim("bin"), sum_field("sum").from("bin"));
      std::size_t seen = 0;
      for (const batch& got : train.blocking()) {
        static_cast<void>(testing::look_at(got));
        const auto sums = testing::values_of<std::uint64_t>(got, "sum");
        for (std::size_t r = 0; r < got.valid_rows(); ++r, ++seen) {
          const std::vector<std::byte>& expected = some[got.ids()[r]].members[0].bytes;
          EXPECT_EQ(row_of(got, "bin", r), expected);
          EXPECT_EQ(row_of(got, "first", r), expected);
          EXPECT_EQ(sums[r], sum_of(expected));
        }
      }
      EXPECT_EQ(seen, some.size() - 1);
      EXPECT_EQ(train.stats().quarantined, 1U);
      EXPECT_EQ(train.stats().bytes_read, alone.stats().bytes_read);
      EXPECT_EQ(train.stats().read.count, alone.stats().read.count);
      EXPECT_EQ(train.stats().bytes_copied, seen * 8192) << "`first`; the rows of `bin` were read to their places";
    }
  }
}

TEST(shared_members, rows_of_arrays_have_any_number_of_outputs) {
  const testing::watchdog dog("arrays");
  const testing::temporary_directory root;
  testing::write_file(root.path() / "r.json",
                      R"({"fields": [{"name": "x", "dtype": "u8", "shape": [4096]}], "header_bytes": 0})");
  std::string content;
  for (char i = 0; i < 20; ++i) content.append(4096, i);
  const dataset set = open_records(testing::write_file(root.path() / "r.bin", content));
  loader train(set, one_epoch(), array("x"), array("again").from("x"), sum_field("sum").from("x"));
  std::size_t seen = 0;
  for (const batch& got : train.blocking()) {
    for (std::size_t r = 0; r < got.valid_rows(); ++r, ++seen) {
      const std::vector<std::byte> expected(4096, static_cast<std::byte>(got.ids()[r]));
      EXPECT_EQ(row_of(got, "x", r), expected);
      EXPECT_EQ(row_of(got, "again", r), expected);
    }
  }
  EXPECT_EQ(seen, 20U);
  EXPECT_EQ(train.stats().bytes_read, 20U * 4096);
}

TEST(shared_members, that_a_function_makes_are_made_once) {
  const testing::watchdog dog("made once");
  std::atomic<int> calls{0};
  const auto content = [](std::uint64_t sample) { return testing::to_bytes("sample " + std::to_string(sample)); };
  const dataset made = from_function(30,
                                     [&](std::uint64_t sample) {
                                       ++calls;
                                       return content(sample);
                                     },
                                     {.field = "txt", .bytes_max = 64});
  const dataset fetched = from_coroutine(30,
                                         [&](std::uint64_t sample) -> boost::asio::awaitable<std::vector<std::byte>> {
                                           ++calls;
                                           co_return content(sample);
                                         },
                                         {.field = "txt", .bytes_max = 64});
  for (const dataset& each : {made, fetched}) {
    calls = 0;
    loader train(each, one_epoch(), text("txt"), sum_field("sum").from("txt"), bytes("same").from("txt"));
    for (const batch& got : train.blocking()) {
      const auto sums = testing::values_of<std::uint64_t>(got, "sum");
      for (std::size_t r = 0; r < got.valid_rows(); ++r) {
        EXPECT_EQ(row_of(got, "txt", r), content(got.ids()[r]));
        EXPECT_EQ(row_of(got, "same", r), content(got.ids()[r]));
        EXPECT_EQ(sums[r], sum_of(content(got.ids()[r])));
      }
    }
    EXPECT_EQ(calls, 30);
  }
}

TEST(shared_members, plan_says_which_outputs_one_decode_makes) {
  const testing::watchdog dog("plan");
  const fake_dataset set(samples());
  const auto notes = [&](std::vector<field> fields) {
    return loader(set, one_epoch(), std::move(fields)).plan().notes;
  };
  EXPECT_TRUE(notes({image("jpg").resize(8, 8), label("cls")}).empty());
  EXPECT_THAT(notes({train_picture("a"), label("cls"), train_picture("b"), sum_field("sum").from("jpg")}),
              ElementsAre(HasSubstr("a, b: one decode")));
  EXPECT_THAT(notes({train_picture("a"), train_picture("b").exif_orientation()}),
              ElementsAre(HasSubstr("a, b: a decode for each")));
  const loader two(set, one_epoch(), train_picture("a"), train_picture("b"));
  EXPECT_THAT(two.plan().to_string(), HasSubstr("a, b: one decode"));
}

TEST(shared_members, errors_about_names_lead_to_from) {
  const testing::watchdog dog("names");
  const fake_dataset set(samples());
  const auto refused = [&](std::vector<field> fields) {
    try {
      const loader never(set, one_epoch(), std::move(fields));
    } catch (const error& said) {
      EXPECT_EQ(said.code(), errc::usage);
      return std::string(said.what());
    }
    return std::string("not refused");
  };
  EXPECT_THAT(refused({train_picture("jpg"), sum_field("jpg")}), HasSubstr(".from(member)"));
  EXPECT_THAT(refused({image("view1").random_resized_crop(12)}), HasSubstr(".from(\"jpg\")"));
  EXPECT_THAT(refused({sum_field("sum")}), HasSubstr(".from(\"jpg\")"));
  EXPECT_THAT(refused({train_picture("view1", "picture")}), HasSubstr("no field 'picture'; it has"));
}

}  // namespace
}  // namespace leat
