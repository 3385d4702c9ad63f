// Each option changed alone: a run is refused by its name, or the option decides nothing and is listed as such.
#include "stages/plan/describe_run.hpp"

#include "stages/plan/run_spec.hpp"
#include "tests/support/in_blocks.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>
#include <leat/loading.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tokens.hpp>
#include <leat/own_samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace leat::stages {
namespace {

using ::testing::HasSubstr;

dataset pictures() {
  const dataset made = from_function(100, [](std::uint64_t) { return std::vector<std::byte>(1); },
                                     {.field = "jpg",
                                      .bytes_max = 1,
                                      .columns = {{"cls", std::vector<std::int64_t>(100, 1)}},
                                      .described_as = "none"});
  return testing::in_blocks(made, {100, 8});
}

std::shared_ptr<const state_descriptions> described(const loader_options& options, const std::vector<field>& fields,
                                                    const dataset& of = pictures()) {
  const run_spec run(of, fields, options);
  return describe_run(options, {.global_batch_size = global_batch_size(options), .world_size = options.world.size},
                      run.samples(), fields, run.order());
}

// What refuses to go on; empty: nothing does.
std::string refusal(const std::shared_ptr<const state_descriptions>& before,
                    const std::shared_ptr<const state_descriptions>& now) {
  loader_state state;
  state.descriptions = before;
  try {
    check_resumes(loader_state::from_bytes(state.bytes(), "run.state"), *now);
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.code(), errc::usage);
    return thrown.what();
  }
  return {};
}

struct option {
  const char* name;
  std::function<void(loader_options&)> change;
  const char* refused_with = nullptr;  // Null: it decides nothing.
};

std::vector<option> all_options() {
  return {
      {"batch_size", [](loader_options& o) { o.batch_size = 9; }, "global_batch_size is 9, and was 8 in run.state"},
      {"global_batch_size", [](loader_options& o) { o.global_batch_size = 9; },
       "global_batch_size is 9, and was 8 in run.state"},
      {"world",
       [](loader_options& o) {
         o.world = {.rank = 1, .size = 2};
         o.global_batch_size = 8;
       },
       "mix.world_size is 2, and was 1"},
      {"seed", [](loader_options& o) { o.seed = 8; }, "seed is 8, and was 7 in run.state"},
      {"shuffle", [](loader_options& o) { o.shuffle = false; }, "the order's order is sequential, and was shuffled"},
      {"drop_last", [](loader_options& o) { o.drop_last = true; }, "the order's last is drop, and was keep"},
      {"last", [](loader_options& o) { o.last = last_batch::pad; }, "the order's last is pad, and was keep"},
      {"order", [](loader_options& o) { o.order = sequential(); }, "the order's order is sequential, and was shuffled"},
      {"shuffle_blocks", [](loader_options& o) { o.shuffle_blocks = 4; },
       "the order's order is shuffled_blocks, and was shuffled"},
      {"batches_max", [](loader_options& o) { o.batches_max = 5; }, "batches_max is 5, and was 0"},
      {"on_corrupt", [](loader_options& o) { o.on_corrupt = corrupt_policy::substitute; },
       "on_corrupt is substitute, and was skip"},
      {"mix", [](loader_options& o) { o.mix = mixup(0.3); }, "mix.alpha is 0.3, and was 0.2"},
      {"epochs", [](loader_options& o) { o.epochs = 90; }},
      {"resume", [](loader_options& o) { o.resume = loader_state{.epoch = 3}; }},
      {"decode_threads", [](loader_options& o) { o.decode_threads = 3; }},
      {"cores_max", [](loader_options& o) { o.cores_max = 3; }},
      {"tune", [](loader_options& o) { o.tune = tuning::on; }},
      {"host_bytes_max", [](loader_options& o) { o.host_bytes_max = std::size_t{1} << 30; }},
      {"prefetch_batches", [](loader_options& o) { o.prefetch_batches = 3; }},
      {"timeline", [](loader_options& o) { o.timeline.bytes = 1 << 20; }},
      {"numa", [](loader_options& o) { o.numa = numa_node(0); }},
      {"held_patience", [](loader_options& o) { o.held_patience = std::chrono::minutes(1); }},
      {"reader", [](loader_options& o) { o.reader.queue_depth = 3; }},
      {"corrupt_max", [](loader_options& o) { o.corrupt_max.count = 3; }},
      {"unreadable_max", [](loader_options& o) { o.unreadable_max = 3; }},
      {"journal", [](loader_options& o) { o.journal = "journal.jsonl"; }},
      {"receipts", [](loader_options& o) { o.receipts = "run.receipt"; }},
      {"record", [](loader_options& o) { o.record = "run.rec"; }},
      {"digests", [](loader_options& o) { o.digests = true; }},
      {"names", [](loader_options& o) { o.names = true; }},
      {"device", [](loader_options& o) { o.device = cuda(0); }},
      {"device_required", [](loader_options& o) { o.device_required = true; }},
      {"device_batches", [](loader_options& o) { o.device_batches = 5; }},
      {"device_bytes_max", [](loader_options& o) { o.device_bytes_max = 1 << 20; }},
      {"device_cache", [](loader_options& o) { o.device_cache = 1 << 20; }},
      {"pinned", [](loader_options& o) { o.pinned = true; }},
      {"finish_on_device", [](loader_options& o) { o.finish_on_device = false; }},
      {"decode_on", [](loader_options& o) { o.decode_on = decode_on::automatic; }},
  };
}

loader_options usual() {
  loader_options options;
  options.batch_size = 8;
  options.seed = 7;
  options.on_corrupt = corrupt_policy::skip;
  options.mix = mixup(0.2);
  return options;
}

TEST(each_option_of_a_loader, changed_alone_is_refused_by_name_or_decides_nothing) {
  const std::vector<field> fields = {image("jpg").random_resized_crop(8), label("cls")};
  const auto before = described(usual(), fields);
  EXPECT_EQ(refusal(before, described(usual(), fields)), "");
  for (const option& each : all_options()) {
    loader_options changed = usual();
    each.change(changed);
    const std::string told = refusal(before, described(changed, fields));
    if (each.refused_with == nullptr) {
      EXPECT_EQ(told, "") << each.name;
    } else {
      EXPECT_THAT(told, HasSubstr(each.refused_with)) << each.name;
    }
  }
}

std::string source_of(const char* path) {
  std::ostringstream text;
  text << std::ifstream(std::filesystem::path(std::getenv("LEAT_SOURCES")) / path).rdbuf();
  EXPECT_FALSE(text.str().empty()) << path << " of the sources cannot be read";
  return text.str();
}

// Whoever adds an option says here, and in docs/guides/ranks-and-resume.md, whether it decides bytes.
TEST(each_option_of_a_loader, is_tried_here_and_listed_in_the_docs) {
  if (std::getenv("LEAT_SOURCES") == nullptr) GTEST_SKIP() << "LEAT_SOURCES is not set: ctest sets it to the sources";
  const std::string header = source_of("include/leat/loading.hpp");
  const std::string page = source_of("docs/guides/ranks-and-resume.md");
  const std::size_t heading = page.find("### What may change");
  ASSERT_NE(heading, std::string::npos);
  const std::string docs = page.substr(heading, page.find("\n## ", heading) - heading);
  const std::size_t begin = header.find("struct loader_options {");
  ASSERT_NE(begin, std::string::npos);
  const std::string body = header.substr(begin, header.find("\n};", begin) - begin);
  std::set<std::string> tried;
  for (const option& each : all_options()) tried.insert(each.name);
  const std::regex member(R"(\n  [A-Za-z][^/\n]*? ([a-z_]+)( = [^;\n]*)?;)");
  std::size_t members = 0;
  for (std::sregex_iterator at(body.begin(), body.end(), member), end; at != end; ++at) {
    const std::string name = (*at)[1];
    ++members;
    EXPECT_TRUE(tried.contains(name)) << "loader_options::" << name << " is new: does it decide bytes?";
    EXPECT_NE(docs.find("`" + name + "`"), std::string::npos)
        << "docs/guides/ranks-and-resume.md, section What may change, names each option; it lacks " << name;
  }
  EXPECT_EQ(members, tried.size());
}

TEST(another_batch_size, is_told_once) {
  loader_options before;
  before.batch_size = 8;
  loader_options changed = before;
  changed.batch_size = 9;
  const std::string told = refusal(described(before, {label("cls")}), described(changed, {label("cls")}));
  EXPECT_THAT(told, ::testing::StartsWith("loader_options::global_batch_size is 9, and was 8 in run.state: "));
}

TEST(a_world_of_another_size, is_refused_only_where_rows_of_a_rank_are_mixed) {
  const std::vector<field> fields = {image("jpg").random_resized_crop(8)};
  loader_options options = usual();
  const auto of_two = [&](std::uint32_t world) {
    loader_options changed = options;
    changed.batch_size = 8 / world;
    const run_spec run(pictures(), fields, options);
    return describe_run(changed, {.global_batch_size = 8, .world_size = world}, run.samples(), fields, run.order());
  };
  EXPECT_THAT(refusal(of_two(2), of_two(4)), HasSubstr("mix.world_size is 4, and was 2"));
  options.mix = {};
  EXPECT_EQ(refusal(of_two(2), of_two(4)), "");
}

std::string refused(const dataset& of, const field& before, const field& now) {
  loader_options options;
  return refusal(described(options, {before}, of), described(options, {now}, of));
}

TEST(each_option_of_a_picture, changed_alone_is_refused_by_name) {
  const image before = image("jpg").random_resized_crop(8).random_flip().normalize(imagenet);
  const auto with = [](const image& now) {
    return refused(pictures(), image("jpg").random_resized_crop(8).random_flip().normalize(imagenet), now);
  };
  EXPECT_EQ(with(before), "");
  EXPECT_EQ(with(before.decimate(true)), "") << "as it is where a transform is random";
  EXPECT_EQ(with(before.rounding(pixel_rounding::exact)), "") << "as it is";
  EXPECT_THAT(with(before.rounding(pixel_rounding::fused)),
              HasSubstr("field jpg.rounding is fused, and run.state has none"));
  EXPECT_THAT(with(before.decimate(false)), HasSubstr("field jpg.decimate is false, and was true"));
  EXPECT_EQ(with(before.decoder(jpeg_decoder::turbo)), "");
  EXPECT_THAT(with(before.decoder(jpeg_decoder::nvjpeg)),
              HasSubstr("field jpg.decoder is nvjpeg, and run.state has none"));
  EXPECT_THAT(refused(pictures(), before.decoder(jpeg_decoder::nvjpeg), before), HasSubstr("field jpg.decoder"));
  EXPECT_THAT(with(before.as(dtype::f16)), HasSubstr("field jpg.type is f16, and was f32"));
  EXPECT_THAT(with(before.as(layout::nhwc)), HasSubstr("field jpg.layout is nhwc, and was nchw"));
  EXPECT_THAT(with(before.exif_orientation()), HasSubstr("field jpg.exif_orientation is true, and was false"));
  EXPECT_THAT(with(before.background(9, 8, 7)), HasSubstr("background"));
  EXPECT_THAT(with(before.pixels_max(1000)), HasSubstr("field jpg.pixels_max is 1000, and was 178956970"));
  EXPECT_THAT(with(before.normalize({.mean = {0.5, 0.456, 0.406}, .deviation = imagenet.deviation})),
              HasSubstr("field jpg.mean is 0.5, and was 0.485"));
  EXPECT_THAT(with(before.normalize({.mean = imagenet.mean, .deviation = {0.229, 0.224, 1}})),
              HasSubstr("field jpg.deviation.3 is 1, and was 0.225"));
  const auto after_flip = [](const image& step) { return step.random_flip().normalize(imagenet); };
  EXPECT_THAT(with(after_flip(image("jpg").random_resized_crop(9))), HasSubstr("step 1"));
  EXPECT_THAT(with(after_flip(image("jpg").random_resized_crop(8, {0.25, 1}))), HasSubstr("scale 0.25 to 1"));
  EXPECT_THAT(with(after_flip(image("jpg").random_resized_crop(8, {0.08, 1}, {1, 1}))), HasSubstr("ratio 1 to 1"));
  EXPECT_THAT(with(after_flip(image("jpg").random_resized_crop(8, {0.08, 1}, {3.0 / 4, 4.0 / 3}, filter::bicubic))),
              HasSubstr("bicubic"));
  EXPECT_THAT(with(image("jpg").random_resized_crop(8).random_flip(0.25).normalize(imagenet)),
              HasSubstr("probability 0.25"));
  EXPECT_THAT(with(image("jpg").random_resized_crop(8).normalize(imagenet)), HasSubstr("step 2 was random_flip"));
  EXPECT_THAT(with(after_flip(image("view").from("jpg").random_resized_crop(8))), HasSubstr("view.kind is image"));
  for (const image& step :
       {image("jpg").resize(10).center_crop(8), image("jpg").resize(8, 8), image("jpg").random_crop(8, 1),
        image("jpg").random_crop(8, 2), image("jpg").center_crop(8)}) {
    for (const image& other :
         {image("jpg").resize(10, filter::nearest).center_crop(8), image("jpg").resize(11).center_crop(8),
          image("jpg").resize(8, 8, filter::bicubic), image("jpg").random_crop(8, 3), image("jpg").center_crop(9)}) {
      EXPECT_THAT(refused(pictures(), step, other), HasSubstr("step 1"));
    }
    EXPECT_EQ(refused(pictures(), step, step), "");
  }
}

TEST(each_option_of_other_fields, changed_alone_is_refused_by_name) {
  const dataset of = pictures();
  EXPECT_THAT(refused(of, label("cls"), label("cls").as(dtype::f32)), HasSubstr("field cls.type is f32, and was i64"));
  const leat::testing::temporary_directory root;
  const dataset texts =
      open_jsonl(leat::testing::write_file(root.path() / "t.jsonl", "{\"one\": \"a 1\", \"two\": \"a 2\"}\n"));
  EXPECT_THAT(refused(texts, label("x").from("one"), label("x").from("two")),
              HasSubstr("field x.member is two, and was one"));
  EXPECT_THAT(refused(texts, label("one").key("a"), label("one").key("b")), HasSubstr("field one.key is b, and was a"));
  EXPECT_THAT(refused(texts, label("one").vector(2), label("one").vector(3)),
              HasSubstr("field one.vector is 3, and was 2"));
  EXPECT_THAT(refused(texts, text("one"), bytes("one")), HasSubstr("field one.kind is bytes, and was text"));
  const auto own = [](const char* name, std::int64_t axis = 2) {
    return custom("jpg", dtype::u8, {axis}, [](auto, const auto&, auto) { return std::string(); }).described_as(name);
  };
  EXPECT_EQ(refused(of, own("v1"), own("v1")), "");
  EXPECT_THAT(refused(of, own("v1"), own("v2")), HasSubstr("field jpg.function is v2, and was v1"));
  EXPECT_THAT(refused(of, own("v1"), own("v1", 3)), HasSubstr("field jpg.axis is 3, and was 2"));
  loader_options options;
  try {
    described(options, {own("")}, of)->check_named();
    ADD_FAILURE() << "a function without a name was accepted";
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.code(), errc::usage);
    EXPECT_THAT(thrown.what(), HasSubstr(".described_as("));
  }
}

TEST(each_option_of_tokens, changed_alone_is_refused_by_name) {
  const leat::testing::temporary_directory root;
  const dataset of = open_tokens(leat::testing::write_file(
      root.path() / "t.bin", leat::testing::bytes_of(leat::testing::counting<std::uint16_t>(400))));
  const auto with = [&](const tokens& now, const tokens& before) {
    return refusal(described({}, {before}, cut_windows(of, before)), described({}, {now}, cut_windows(of, now)));
  };
  EXPECT_EQ(with({.length = 8}, {.length = 8}), "");
  EXPECT_THAT(with({.length = 9}, {.length = 8}), HasSubstr("windows.length is 9, and was 8"));
  EXPECT_THAT(with({.length = 8, .type = dtype::i32}, {.length = 8}), HasSubstr("tokens.type is i32, and was i64"));
  EXPECT_THAT(with({.length = 8, .windows = window_order::random}, {.length = 8}),
              HasSubstr("windows.order is random"));
  EXPECT_THAT(with({.length = 8, .documents = document_rule::mark}, {.length = 8}),
              HasSubstr("windows.documents is mark"));
  const tokens within{.length = 8, .documents = document_rule::within};
  EXPECT_THAT(with({.length = 8, .documents = document_rule::within, .pad = 3}, within),
              HasSubstr("tokens.pad is 3, and was 0"));
  EXPECT_THAT(with({.length = 8, .documents = document_rule::within, .ignored = -1}, within),
              HasSubstr("tokens.ignored is -1, and was -100"));
}

TEST(the_order_of_fields, is_part_of_a_run) {
  loader_options options;
  EXPECT_THAT(refusal(described(options, {image("jpg").center_crop(8), label("cls")}),
                      described(options, {label("cls"), image("jpg").center_crop(8)})),
              HasSubstr("field sequence of keys"));
}

TEST(each_option_of_an_order, changed_alone_is_refused_by_name) {
  const dataset of = concat({pictures().slice(0, 40), pictures().slice(40, 60)});
  const auto with = [&](const order& now, const order& before) {
    const auto in = [&](const order& how) {
      loader_options options;
      options.order = how;
      return described(options, {label("cls")}, of);
    };
    return refusal(in(before), in(now));
  };
  const std::vector<double> equal(100, 1);
  std::vector<double> other = equal;
  other[57] = std::nextafter(1.0, 2.0);
  const bucket_options buckets{.length = "cls", .tokens_max = 50, .rows_max = 8};
  bucket_options more_tokens = buckets;
  more_tokens.tokens_max = 60;
  bucket_options more_rows = buckets;
  more_rows.rows_max = 9;
  const std::vector<order> all = {shuffled(),
                                  sequential(),
                                  repeated(2),
                                  repeated(3),
                                  weighted(equal),
                                  weighted(other),
                                  weighted(equal, 90),
                                  weighted(equal, 0, replacement::no),
                                  weighted(other, 0, replacement::no),
                                  balanced("cls"),
                                  balanced("cls", 90),
                                  mixed_by({0.7, 0.3}),
                                  mixed_by({0.6, 0.4}),
                                  mixed_by({0.7, 0.3}, 90),
                                  bucketed(buckets),
                                  bucketed(more_tokens),
                                  bucketed(more_rows)};
  for (std::size_t now = 0; now < all.size(); ++now) {
    for (std::size_t before = 0; before < all.size(); ++before) {
      const std::string told = with(all[now], all[before]);
      if (now == before) {
        EXPECT_EQ(told, "") << "order " << now;
      } else {
        EXPECT_THAT(told, HasSubstr("the order's ")) << "orders " << now << " and " << before;
      }
    }
  }
}

class nameless final : public sampler {
 public:
  [[nodiscard]] std::uint64_t batches(std::uint32_t) const override { return 1; }
  [[nodiscard]] std::uint32_t rows(std::uint32_t, std::uint64_t) const override { return 1; }
  [[nodiscard]] std::uint32_t rows_max() const override { return 1; }
  void picks(std::uint32_t, std::uint64_t, std::uint32_t, std::uint32_t, std::span<pick> out) const override {
    for (pick& each : out) each = {};
  }
};

TEST(a_sampler_without_a_description, makes_a_run_that_cannot_be_saved) {
  loader_options options;
  options.order = sampled_by(std::make_shared<nameless>());
  try {
    described(options, {label("cls")})->check_named();
    ADD_FAILURE() << "it was accepted";
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.code(), errc::usage);
    EXPECT_THAT(thrown.what(), HasSubstr("the order's sampler decides what batches hold and has no name"));
    EXPECT_THAT(thrown.what(), HasSubstr("override sampler::describe()"));
  }
}

}  // namespace
}  // namespace leat::stages
