// Spans come out as they went in, the latest of them, and whole while somebody writes; the file is one that viewers of traces read.
#include "stages/observe/timeline.hpp"

#include "base/clock.hpp"
#include "stages/observe/marks.hpp"
#include "stages/observe/stall_trigger.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A span of which each part says the others.
timeline_span span_of(std::uint64_t number) {
  return {.of = static_cast<activity>(number % 10),
          .begin_ns = number,
          .end_ns = number * 2,
          .epoch = static_cast<std::uint32_t>(number * 3),
          .batch = number * 5,
          .row = static_cast<std::uint32_t>(number * 7) % timeline_span::no_row};
}

TEST(timeline_track, gives_back_what_was_added_in_its_order) {
  timeline_track track("decode 0", 4);
  EXPECT_THAT(track.spans(), IsEmpty());
  for (std::uint64_t i = 0; i < 3; ++i) track.add(span_of(i));
  EXPECT_THAT(track.spans(), ElementsAre(span_of(0), span_of(1), span_of(2)));
}

TEST(timeline_track, keeps_the_latest) {
  timeline_track track("decode 0", 4);
  for (std::uint64_t i = 0; i < 11; ++i) track.add(span_of(i));
  EXPECT_THAT(track.spans(), ElementsAre(span_of(7), span_of(8), span_of(9), span_of(10)));
}

TEST(timeline_track, tells_no_row_that_is_too_large_for_its_place) {
  timeline_track track("decode 0", 1);
  track.add({.begin_ns = 1, .end_ns = 2, .epoch = ~std::uint32_t{0}, .batch = 3, .row = 1U << 25});
  EXPECT_EQ(track.spans().front().row, timeline_span::no_row);
  EXPECT_EQ(track.spans().front().epoch, ~std::uint32_t{0});
}

TEST(timeline_track, gives_whole_spans_while_another_thread_writes) {
  timeline_track track("decode 0", 16);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) track.add(span_of(i));
  });
  std::uint64_t seen = 0;
  while (seen < 20'000) {
    const std::vector<timeline_span> spans = track.spans();
    ASSERT_LE(spans.size(), 16U);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      ASSERT_EQ(spans[i], span_of(spans[i].begin_ns));
      if (i != 0) ASSERT_EQ(spans[i].begin_ns, spans[i - 1].begin_ns + 1);
    }
    seen += spans.size();
    std::this_thread::yield();
  }
  stop.store(true);
  writer.join();
}

TEST(span_sampler, takes_all_rows_that_are_long_and_few_that_are_short) {
  const auto taken = [](std::uint64_t ns) {
    span_sampler rows;
    int count = 0;
    for (int i = 0; i < 1'300; ++i) {
      if (!rows.is_due()) continue;
      ++count;
      rows.took(ns);
    }
    return count;
  };
  EXPECT_EQ(taken(1'000'000), 1'300);
  EXPECT_EQ(taken(12'000), 1'300);
  EXPECT_NEAR(taken(1'000), 110, 15);
  EXPECT_LE(taken(0), 2);
}

TEST(read_track, has_all_reads_that_are_far_apart_and_counts_those_that_are_not) {
  read_track far("reads", 1'000);
  for (std::uint64_t i = 1; i <= 100; ++i) far.ended(activity::read, i * 20'000 + 1, i * 20'000 + 900, 0, i);
  EXPECT_THAT(far.track().spans(), SizeIs(100));

  read_track near("reads", 10'000);
  constexpr std::uint64_t reads = 20'000;
  for (std::uint64_t i = 0; i < reads; ++i) near.ended(activity::read, i * 1'000, 90'000 + i * 1'000, 0, 0);
  const std::vector<timeline_span> spans = near.track().spans();
  EXPECT_NEAR(static_cast<double>(spans.size()), 20'000 / 12.0, 2);
  std::uint64_t counted = 0;
  for (const timeline_span& each : spans) counted += each.row;
  EXPECT_LE(counted, reads);
  EXPECT_GE(counted, reads - 12);
}

TEST(read_track, has_each_read_that_took_long) {
  read_track seen("reads", 1'000);
  seen.ended(activity::read, 20'000'000, 20'050'000, 0, 0);
  seen.ended(activity::read, 20'000'100, 20'050'100, 0, 1);
  seen.ended(activity::read, 9'000'000, 20'050'200, 0, 2);  // 11 ms, beside the others
  const std::vector<timeline_span> spans = seen.track().spans();
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_EQ(spans[1].batch, 2U);
  EXPECT_EQ(spans[1].row, 2U) << "it stands for the one before, too";
}

// The spans of each line of the picture by its name.
std::map<std::string, std::vector<nlohmann::json>> lines_of(const nlohmann::json& file) {
  std::map<int, std::string> names;
  std::map<std::string, std::vector<nlohmann::json>> lines;
  for (const nlohmann::json& each : file["traceEvents"]) {
    if (each["name"] == "thread_name") names[each["tid"].get<int>()] = each["args"]["name"].get<std::string>();
  }
  for (const nlohmann::json& each : file["traceEvents"]) {
    if (each["ph"] == "X") lines[names.at(each["tid"].get<int>())].push_back(each);
  }
  return lines;
}

TEST(timeline, shows_reads_that_overlap_on_several_lines) {
  const timeline seen(std::size_t{1} << 20, 2, 2, 1);
  // Four at a time, each 400 us long.
  for (std::uint64_t i = 0; i < 40; ++i) {
    seen.reads(1)->ended(i % 2 == 0 ? activity::read : activity::fetch, i * 100'000, i * 100'000 + 400'000, 3, i);
  }
  const auto lines = lines_of(nlohmann::json::parse(seen.to_json(0)));
  ASSERT_EQ(lines.size(), 4U);
  std::size_t spans = 0;
  for (const char* name :
       {"reads of I/O thread 1", "reads of I/O thread 1, 2", "reads of I/O thread 1, 3", "reads of I/O thread 1, 4"}) {
    ASSERT_TRUE(lines.contains(name)) << name;
    double end = 0;
    for (const nlohmann::json& each : lines.at(name)) {
      EXPECT_GE(each["ts"].get<double>(), end);
      end = each["ts"].get<double>() + each["dur"].get<double>() - 0.001;
      EXPECT_EQ(each["name"], each["args"]["batch"].get<int>() % 2 == 0 ? "read" : "fetch");
      EXPECT_EQ(each["args"]["reads"], 1);
      EXPECT_EQ(each["args"]["epoch"], 3);
      ++spans;
    }
  }
  EXPECT_EQ(spans, 40U);
}

TEST(timeline, shows_requests_with_their_parts_inside_and_ties_them_to_their_batch) {
  const timeline seen(std::size_t{1} << 20, 1, 1, 1);
  seen.batch(0)->add({.of = activity::rows, .begin_ns = 1'000, .end_ns = 9'000'000, .epoch = 1, .batch = 7});
  // Two at a time: one on a new connection, one on an old one that had no answer; and one of a batch that is not known.
  const io::request_times opened{
      .wanted_ns = 100'000, .opened_ns = 200'000, .asked_ns = 500'000, .answered_ns = 1'500'000, .ended_ns = 2'000'000};
  const io::request_times unanswered{.wanted_ns = 150'000, .asked_ns = 300'000, .ended_ns = 2'100'000};
  seen.reads(0)->ended(activity::fetch, 90'000, 2'050'000, 1, 7, &opened);
  seen.reads(0)->ended(activity::fetch, 90'000, 2'150'000, 1, 7, &unanswered);
  const io::request_times later{.wanted_ns = 3'000'000, .ended_ns = 4'000'000};
  seen.reads(0)->ended(activity::fetch, 3'000'000, 4'100'000, 1, 8, &later);
  const nlohmann::json file = nlohmann::json::parse(seen.to_json(0));
  const auto lines = lines_of(file);
  using span_text = std::pair<std::string, double>;  // name and microseconds
  const auto shown = [&](const std::string& line) {
    std::vector<span_text> all;
    if (!lines.contains(line)) return all;
    for (const nlohmann::json& each : lines.at(line)) all.emplace_back(each["name"], each["dur"].get<double>());
    return all;
  };
  EXPECT_THAT(shown("reads of I/O thread 0"), SizeIs(2));
  EXPECT_THAT(shown("reads of I/O thread 0, 2"), SizeIs(1));
  EXPECT_THAT(shown("requests of I/O thread 0"), ElementsAre(span_text("request", 1'900), span_text("connect", 300),
                                                             span_text("wait for the answer", 1'000),
                                                             span_text("receive", 500), span_text("request", 1'000)));
  EXPECT_THAT(shown("requests of I/O thread 0, 2"),
              ElementsAre(span_text("request", 1'950), span_text("wait for the answer", 1'800)));
  std::map<std::string, std::vector<std::string>> arrows;  // by identity: what begins and ends
  for (const nlohmann::json& each : file["traceEvents"]) {
    if (each["ph"] == "s" || each["ph"] == "f") arrows[each["id"].get<std::string>()].push_back(each["ph"]);
  }
  EXPECT_THAT(arrows, SizeIs(2)) << "the third one's batch is not there";
  for (const auto& [id, ends] : arrows) {
    EXPECT_THAT(ends, ElementsAre("s", "f"));
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  }
}

TEST(timeline, shows_blocks_that_were_fetched_into_the_cache_with_their_writing_inside) {
  const timeline seen(std::size_t{1} << 20, 1, 1, 1);
  const io::request_times first{
      .wanted_ns = 100'000, .asked_ns = 300'000, .answered_ns = 900'000, .ended_ns = 1'000'000};
  const io::request_times other{.wanted_ns = 200'000, .asked_ns = 400'000, .ended_ns = 2'000'000};
  seen.blocks()->have_fetched(
      {.request = first, .write_ns = 1'100'000, .written_ns = 1'500'000, .bytes = 4096, .block = 3});
  seen.blocks()->have_fetched({.request = other, .bytes = 512, .block = 4});  // no answer: nothing to write
  const auto lines = lines_of(nlohmann::json::parse(seen.to_json(0)));
  ASSERT_TRUE(lines.contains("cache"));
  ASSERT_TRUE(lines.contains("cache, 2")) << "they overlap";
  using span_text = std::pair<std::string, double>;  // name and microseconds
  const auto shown = [&](const std::string& line) {
    std::vector<span_text> all;
    for (const nlohmann::json& each : lines.at(line)) all.emplace_back(each["name"], each["dur"].get<double>());
    return all;
  };
  EXPECT_THAT(shown("cache"),
              ElementsAre(span_text("block into the cache", 1'400), span_text("wait for the answer", 600),
                          span_text("receive", 100), span_text("write to the cache", 400)));
  EXPECT_THAT(shown("cache, 2"),
              ElementsAre(span_text("block into the cache", 1'800), span_text("wait for the answer", 1'600)));
  EXPECT_EQ(lines.at("cache")[0]["args"], (nlohmann::json{{"bytes", 4096}, {"block", 3}}));
  EXPECT_FALSE(lines.at("cache")[1].contains("args"));
}

TEST(timeline, shows_what_the_tuner_changed_on_a_line_of_its_own) {
  timeline seen(std::size_t{1} << 20, 1, 1, 1);
  seen.trainer()->add({.of = activity::wait, .begin_ns = 1'000'000, .end_ns = 2'000'000});
  EXPECT_EQ(nlohmann::json::parse(seen.to_json(0)).dump().find("tuner"), std::string::npos) << "nothing was changed";
  for (std::uint32_t i = 0; i < 103; ++i) {
    seen.note(2'000'000 + i * 1'000'000, {.setting = "decode_threads",
                                          .from = i,
                                          .to = i + 1,
                                          .why = "decode",
                                          .samples_per_s = 12.5,
                                          .stall_share = 0.25});
  }
  const auto file = nlohmann::json::parse(seen.to_json(3));
  int tuner = -1;
  double wait_ends = 0;
  std::vector<nlohmann::json> steps;
  for (const nlohmann::json& each : file["traceEvents"]) {
    if (each["name"] == "thread_name" && each["args"]["name"] == "tuner") tuner = each["tid"];
    if (each["name"] == "next()") wait_ends = each["ts"].get<double>() + each["dur"].get<double>();
    if (each["ph"] == "i") steps.push_back(each);
  }
  ASSERT_EQ(steps.size(), 100U) << "the last ones";
  EXPECT_EQ(steps[0]["tid"], tuner);
  EXPECT_EQ(steps[0]["pid"], 3);
  EXPECT_EQ(steps[0]["name"], "decode_threads 3 to 4");
  EXPECT_EQ(steps[0]["args"], (nlohmann::json{{"setting", "decode_threads"},
                                              {"from", 3},
                                              {"to", 4},
                                              {"why", "decode"},
                                              {"samples_per_s", 12.5},
                                              {"stall_share", 0.25}}));
  EXPECT_NEAR(steps[0]["ts"].get<double>() - wait_ends, 3'000, 0.5);
  timeline off(0, 1, 1, 1);
  off.note(1, {.setting = "batches", .from = 1, .to = 2, .why = "read"});
  EXPECT_EQ(off.to_json(0).find("tuner"), std::string::npos);
}

TEST(timeline, leaves_out_parts_whose_request_its_ring_has_lost) {
  timeline_track ring("reads", 2);
  ring.add({.of = activity::request, .begin_ns = 1, .end_ns = 9});
  ring.add({.of = activity::answer, .begin_ns = 2, .end_ns = 3});
  ring.add({.of = activity::receive, .begin_ns = 3, .end_ns = 9});
  ASSERT_THAT(ring.spans(), SizeIs(2));
  EXPECT_TRUE(is_part(ring.spans().front().of));
  const timeline seen(timeline_track::span_bytes * 16, 1, 1, 1);  // its reads have a ring of three
  const io::request_times times{
      .wanted_ns = 1'000, .opened_ns = 1'500, .asked_ns = 2'000, .answered_ns = 3'000, .ended_ns = 9'000};
  seen.reads(0)->ended(activity::fetch, 1'000, 20'000'000, 0, 0, &times);
  EXPECT_THAT(seen.reads(0)->track().spans(), SizeIs(3));
  EXPECT_THAT(lines_of(nlohmann::json::parse(seen.to_json(0))), IsEmpty());
}

TEST(timeline, has_lengths_of_queues_as_counters) {
  const timeline seen(std::size_t{64} << 10, 2, 1, 1);
  seen.note(line_queue::ready, 1'000'000, 3);
  seen.note(line_queue::decode, 1'000'000, 70);
  seen.note(line_queue::ready, 6'000'000, 0);
  std::map<std::string, std::vector<int>> lengths;
  std::vector<double> at;
  const nlohmann::json file = nlohmann::json::parse(seen.to_json(2));
  for (const nlohmann::json& each : file["traceEvents"]) {
    if (each["ph"] != "C") continue;
    EXPECT_EQ(each["pid"], 2);
    lengths[each["name"].get<std::string>()].push_back(each["args"]["length"].get<int>());
    at.push_back(each["ts"].get<double>());
  }
  EXPECT_THAT(lengths["batches ready"], ElementsAre(3, 0));
  EXPECT_THAT(lengths["samples that wait for a decode thread"], ElementsAre(70));
  ASSERT_THAT(at, SizeIs(3));
  EXPECT_NEAR(at[2] - at[0], 5'000, 0.25);
}

TEST(timeline, without_memory_has_no_tracks) {
  const timeline none(0, 4, 1, 2);
  EXPECT_FALSE(none.on());
  EXPECT_EQ(none.trainer(), nullptr);
  EXPECT_EQ(none.batch(0), nullptr);
  EXPECT_EQ(none.decode_thread(0), nullptr);
  EXPECT_EQ(none.reads(0), nullptr);
  EXPECT_EQ(none.device(), nullptr);
  none.note(line_queue::ready, 1, 1);
  EXPECT_EQ(nlohmann::json::parse(none.to_json(0))["traceEvents"][0]["name"], "process_name");
}

TEST(marks, have_the_names_that_the_trainer_gave_whatever_is_in_them) {
  const timeline seen(std::size_t{64} << 10, 2, 1, 1);
  const std::vector<std::string> given = {"forward", "a \"quoted\"\n name", "not \xff UTF-8", ""};
  for (std::size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(seen.marks()->number_of(given[i]), i);
    EXPECT_EQ(seen.marks()->number_of(given[i]), i);
    seen.marks()->add(static_cast<std::uint32_t>(i), 1'000 * i, 1'000 * i + 500);
  }
  const nlohmann::json file = nlohmann::json::parse(seen.to_json(0));
  std::vector<std::string> shown;
  for (const nlohmann::json& each : file["traceEvents"]) {
    if (each["ph"] == "X") shown.push_back(each["name"].get<std::string>());
  }
  EXPECT_THAT(shown, ElementsAre("forward", given[1], "not \uFFFD UTF-8", ""));
}

TEST(marks, take_no_memory_for_names_without_end) {
  marks seen(8);
  for (std::uint32_t i = 0; i < marks::names_max; ++i) EXPECT_EQ(seen.number_of(std::to_string(i)), i);
  EXPECT_EQ(seen.number_of("63"), 63U);
  for (int i = 1'000; i < 2'000; ++i) EXPECT_EQ(seen.number_of(std::to_string(i)), marks::names_max);
  EXPECT_THAT(seen.names(), SizeIs(marks::names_max + 1));
  EXPECT_EQ(seen.names().back(), marks::other_names);
}

TEST(marks, cut_long_names_between_two_letters) {
  marks seen(8);
  const std::string letters(marks::name_bytes_max - 1, 'a');
  static_cast<void>(seen.number_of(letters + "\u00e9"));  // its second byte is one too many
  EXPECT_EQ(seen.number_of(letters + "\u00e9 and more"), 0U);
  EXPECT_THAT(seen.names(), ElementsAre(letters));
}

TEST(stall_trigger, is_due_once_for_each_wait_that_has_ended) {
  stall_trigger files(1'000, 100);
  EXPECT_FALSE(files.is_due(0, 0));
  EXPECT_FALSE(files.is_due(0, 9'000)) << "it may end soon, and then the file has what held it up";
  EXPECT_TRUE(files.is_due(1, 0));
  EXPECT_FALSE(files.is_due(1, 0));
  EXPECT_TRUE(files.is_due(4, 0)) << "several between two looks are one file";
  EXPECT_FALSE(files.is_due(4, 0));
}

TEST(stall_trigger, is_due_while_a_wait_lasts_ten_times_too_long_and_not_again_when_that_ends) {
  stall_trigger files(1'000, 100);
  EXPECT_FALSE(files.is_due(0, 10'000));
  EXPECT_TRUE(files.is_due(0, 10'001));
  EXPECT_FALSE(files.is_due(0, 50'000));
  EXPECT_FALSE(files.is_due(1, 0));
  EXPECT_TRUE(files.is_due(2, 0));
  EXPECT_TRUE(files.is_due(2, 10'001));
  EXPECT_TRUE(files.is_due(4, 0)) << "that one, and another";
}

TEST(stall_trigger, is_due_for_so_many_files_and_no_more) {
  stall_trigger files(1'000, 2);
  EXPECT_TRUE(files.is_due(1, 0));
  EXPECT_TRUE(files.is_due(2, 0));
  EXPECT_FALSE(files.is_due(3, 0));
  EXPECT_FALSE(files.is_due(3, 1'000'000));
}

TEST(timeline, ties_a_batch_to_the_call_that_got_it) {
  const timeline seen(std::size_t{64} << 10, 2, 1, 1);
  ASSERT_TRUE(seen.on());
  seen.batch(1)->add({.of = activity::transfer, .begin_ns = 5'000, .end_ns = 6'500, .epoch = 2, .batch = 9});
  seen.trainer()->add({.of = activity::wait, .begin_ns = 4'000, .end_ns = 7'001, .epoch = 2, .batch = 9});
  seen.trainer()->add({.of = activity::wait, .begin_ns = 8'000, .end_ns = 8'001});
  seen.decode_thread(0)->add(
      {.of = activity::decode, .begin_ns = 4'500, .end_ns = 5'000, .epoch = 2, .batch = 9, .row = 3});

  const nlohmann::json file = nlohmann::json::parse(seen.to_json(7));
  std::map<std::string, std::vector<nlohmann::json>> by_kind;
  std::map<int, std::string> tracks;
  for (const nlohmann::json& each : file["traceEvents"]) {
    EXPECT_EQ(each["pid"], 7);
    by_kind[each["ph"].get<std::string>()].push_back(each);
    if (each["name"] == "thread_name") tracks[each["tid"].get<int>()] = each["args"]["name"].get<std::string>();
  }
  EXPECT_THAT(tracks, SizeIs(6)) << "nothing was read, and there is no device";
  ASSERT_THAT(by_kind["X"], SizeIs(4));
  ASSERT_THAT(by_kind["s"], SizeIs(1));
  ASSERT_THAT(by_kind["f"], SizeIs(1));
  for (const char* same : {"id", "cat", "name"}) EXPECT_EQ(by_kind["s"][0][same], by_kind["f"][0][same]) << same;
  // What else there is in it, Perfetto takes for no number, and draws no arrow.
  EXPECT_EQ(by_kind["s"][0]["id"].get<std::string>().find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(by_kind["s"][0]["cat"], "rank 7");
  EXPECT_EQ(tracks[by_kind["s"][0]["tid"].get<int>()], "batch in flight 1");
  EXPECT_EQ(tracks[by_kind["f"][0]["tid"].get<int>()], "trainer");
  constexpr double eighth = 0.126;
  const double first = by_kind["X"][0]["ts"].get<double>();
  EXPECT_NEAR(by_kind["s"][0]["ts"].get<double>() - first, 2.5, eighth);
  EXPECT_NEAR(by_kind["f"][0]["ts"].get<double>() - first, 3.001, eighth);
  for (const nlohmann::json& each : by_kind["X"]) {
    if (each["name"] != "decode") continue;
    EXPECT_NEAR(each["ts"].get<double>() - first, 0.5, eighth);
    EXPECT_EQ(each["dur"].get<double>(), 0.5);
    EXPECT_EQ(each["args"], nlohmann::json({{"epoch", 2}, {"batch", 9}, {"row", 3}}));
  }
}

TEST(timeline, has_the_base_of_the_profiler_and_times_that_are_the_same_as_doubles) {
  const timeline seen(std::size_t{64} << 10, 2, 1, 1);
  std::uint64_t at = now_ns();
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::uint64_t end = at + 1 + i * i * 37;
    seen.decode_thread(0)->add({.of = activity::decode, .begin_ns = at, .end_ns = end, .batch = i, .row = 0});
    at = end;
  }
  const nlohmann::json file = nlohmann::json::parse(seen.to_json(0));
  constexpr std::uint64_t quarter_ns = std::uint64_t{7'889'238} * 1'000'000'000;
  const auto now =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
  const auto base = file["baseTimeNanoseconds"].get<std::uint64_t>();
  EXPECT_EQ(base % quarter_ns, 0U);
  EXPECT_LE(base, now);
  EXPECT_LE(now - base, quarter_ns);
  // As Perfetto reads them: where one ends the next begins, and not a nanosecond before.
  std::optional<std::int64_t> before;
  for (const nlohmann::json& each : file["traceEvents"]) {
    if (each["ph"] != "X") continue;
    const auto begin = static_cast<std::int64_t>(each["ts"].get<double>() * 1000.0);
    if (before) EXPECT_EQ(begin, *before) << each;
    before = begin + static_cast<std::int64_t>(each["dur"].get<double>() * 1000.0);
  }
  EXPECT_TRUE(before);
}

}  // namespace
}  // namespace leat::stages
