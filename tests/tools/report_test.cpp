// leat report: what a run comes to, its page and its limits.
#include "base/crc32c.hpp"
#include "base/gzip.hpp"
#include "stages/observe/timeline.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/page_xml.hpp"
#include "tools/joined_traces.hpp"
#include "tools/recorded_run.hpp"
#include "tools/report_page.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using tools::limit_outcome;
using tools::parse_run;
using tools::recorded_run;

// Two seconds: 100 samples and a fifth of a second of waiting, then 50 and half a second.
std::string two_seconds() {
  return R"({"t_s":1,"seconds":1,"samples":100,"stalled_s":0.2,"step_s":0.8,"cpu_s":2,"rss_bytes":1048576,)"
         R"("bytes_from_files":1000000,"bytes_from_network":0,"bytes_from_cache":0,"verdict":{"who":"consumer"},)"
         R"("waits_ms":{"p50":1,"p99":200,"max":200,"epoch":0,"batch":0},"threads":{"io-0":0.25,"decode-0":1},)"
         R"("run":{"cores":4,"started":"2026-11-29T07:00:00Z"},"next_wait_ms":{"p50":1,"p90":2,"p99":3,"max":200}})"
         "\n"
         R"({"t_s":2,"seconds":1,"samples":50,"quarantined":3,"stalled_s":0.5,"step_s":0.5,"cpu_s":4,"rss_bytes":2097152,)"
         R"("bytes_from_files":3000000,"bytes_from_network":0,"bytes_from_cache":0,"verdict":{"who":"decode"},)"
         R"("waits_ms":{"p50":2,"p99":300,"max":400,"epoch":1,"batch":7},"threads":{"io-0":0.25,"decode-0":0.5},)"
         R"("next_wait_ms":{"p50":1.5,"p90":5,"p99":9,"max":400}})"
         "\n";
}

std::map<std::string, double> values_of(const recorded_run& run, const tools::measure_options& options = {}) {
  std::map<std::string, double> values;
  for (const tools::run_measure& each : measures_of(run, options)) {
    if (each.value) values[std::string(each.name)] = *each.value;
  }
  return values;
}

tools::run_report report_of(const std::vector<std::string>& texts, std::string_view limits = {}) {
  tools::run_report report;
  for (const std::string& text : texts) {
    report.runs.push_back(parse_run("run.jsonl", text));
    report.measures.push_back(measures_of(report.runs.back(), {}));
  }
  report.limits = hold(tools::parse_limits(limits), report.measures.front());
  return report;
}

TEST(report, adds_up_what_a_run_came_to) {
  const recorded_run run = parse_run("run.jsonl", two_seconds());
  const auto values = values_of(run, {.disk_peak = 4e6});
  EXPECT_DOUBLE_EQ(values.at("samples_per_s"), 75);
  EXPECT_DOUBLE_EQ(values.at("stall"), 0.35);
  EXPECT_DOUBLE_EQ(values.at("au"), 1.3 / (1.3 + 0.7)) << "the wait for the first batch is in no stalled_s";
  EXPECT_DOUBLE_EQ(values.at("next_p50_ms"), 1.5) << "of the whole run, which the last line has";
  EXPECT_DOUBLE_EQ(values.at("next_p99_ms"), 9);
  EXPECT_DOUBLE_EQ(values.at("next_max_ms"), 400);
  EXPECT_DOUBLE_EQ(values.at("cpu"), 6.0 / 8) << "of 4 cores for 2 s";
  EXPECT_DOUBLE_EQ(values.at("cpu_ms_per_sample"), 40);
  EXPECT_DOUBLE_EQ(values.at("disk"), 0.5);
  EXPECT_DOUBLE_EQ(values.at("rss_bytes"), 2097152);
  EXPECT_DOUBLE_EQ(values.at("quarantined"), 3);
  EXPECT_EQ(values.count("cache_hit"), 0) << "nothing came from an address";
  EXPECT_EQ(values.count("sm"), 0);
}

// Lines of a second, each with what it says of the GPU.
std::string lines_with_gpu(const std::vector<std::string>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += "{\"t_s\":" + std::to_string(i + 1) + ",\"seconds\":1,\"samples\":10,\"gpu\":" + all[i] + "}\n";
  }
  return text;
}

std::string why_no(std::string_view name, const recorded_run& run) {
  for (const tools::run_measure& each : measures_of(run, {})) {
    if (each.name == name) return each.why;
  }
  return "there is no such measure";
}

TEST(report, has_the_gpu_as_it_was_measured_and_never_a_part_of_it_for_all) {
  const std::string measured = R"({"sm":0.9,"sm_occupancy":0.4,"busy":1})";
  const recorded_run whole =
      parse_run("run", lines_with_gpu({measured, R"({"sm":0.7,"sm_occupancy":0.2,"busy":0.5})"}));
  const auto values = values_of(whole);
  EXPECT_DOUBLE_EQ(values.at("sm"), 0.8);
  EXPECT_DOUBLE_EQ(values.at("sm_occupancy"), 0.3);
  EXPECT_DOUBLE_EQ(values.at("gpu_busy"), 0.75);
  EXPECT_TRUE(report_of({lines_with_gpu({measured})}, "sm>=0.8 gpu_busy>=0.9").keeps_limits());
  EXPECT_FALSE(report_of({lines_with_gpu({measured})}, "sm>=0.95").keeps_limits());

  const std::string only_busy = R"({"busy":0.93,"why":"no GPM"})";
  const recorded_run older = parse_run("run", lines_with_gpu({only_busy}));
  EXPECT_EQ(values_of(older).count("sm"), 0U);
  EXPECT_DOUBLE_EQ(values_of(older).at("gpu_busy"), 0.93);
  EXPECT_EQ(why_no("sm", older), "no GPM");
  EXPECT_FALSE(report_of({lines_with_gpu({only_busy})}, "sm>=0").keeps_limits());

  const std::string lost = R"({"why":"GPU is lost"})";
  const recorded_run half = parse_run("run", lines_with_gpu({measured, measured, measured, lost}));
  EXPECT_EQ(values_of(half).count("sm"), 0U);
  EXPECT_EQ(why_no("sm", half), "only in 75 % of the run; else: GPU is lost");
  // Each measure has a reason of its own, and of several the one that held longest is said.
  const std::string no_rates = R"({"sm":0.5,"why_sm_occupancy":"no warps","why_busy":"no rates"})";
  const std::string hasty = R"({"why":"too short","busy":1})";
  const recorded_run mixed = parse_run("run", lines_with_gpu({no_rates, lost, lost, hasty}));
  EXPECT_EQ(why_no("sm", mixed), "only in 25 % of the run; else: GPU is lost");
  EXPECT_EQ(why_no("sm_occupancy", mixed), "GPU is lost");
  EXPECT_EQ(why_no("gpu_busy", parse_run("run", lines_with_gpu({no_rates}))), "no rates");
  EXPECT_EQ(why_no("sm_occupancy", parse_run("run", lines_with_gpu({no_rates}))), "no warps");
  for (const char* const none : {R"({"sm":1.5})", R"({"sm":-1})", R"({"sm":"1"})", "{}", "[]"}) {
    EXPECT_EQ(values_of(parse_run("run", lines_with_gpu({none}))).count("sm"), 0U) << none;
  }
}

TEST(report, lists_what_the_tuner_changed) {
  std::string steps;
  for (int i = 0; i < 70; ++i) {
    steps += std::string(i == 0 ? "" : ",") + "{\"at_s\":" + std::to_string(i) +
             R"(,"setting":"decode_threads","from":4,"to":6,"why":"decode <1>","samples_per_s":1,"stall_share":0.25})";
  }
  const std::string text = R"({"t_s":90,"seconds":90,"samples":10,"tuning":[)" + steps + R"(,{"at_s":1},7]})" + "\n";
  EXPECT_EQ(parse_run("run", text).lines.at(0).steps.size(), 70U);
  const std::string page = report_of({text}).as_html();
  EXPECT_EQ(wrong_with_xml(page), "");
  EXPECT_THAT(page, HasSubstr("<h2>What the tuner changed</h2>"));
  EXPECT_THAT(page, HasSubstr("<td>decode_threads</td><td class=\"n\">4 to 6</td><td>decode &lt;1&gt;"));
  EXPECT_THAT(page, HasSubstr("and 6 more"));
  EXPECT_THAT(report_of({two_seconds()}).as_html(), Not(HasSubstr("tuner")));
}

TEST(report, draws_of_the_gpu_what_was_measured) {
  const std::string page = report_of({lines_with_gpu({R"({"sm":0.9,"busy":1})"})}).as_html();
  EXPECT_THAT(page, HasSubstr("<h2>The GPU</h2>"));
  EXPECT_THAT(page, HasSubstr("SMs that were busy"));
  const tools::run_report busy = report_of({lines_with_gpu({R"({"busy":0.5,"why":"no <GPM>"})"})}, "sm>=0.8");
  EXPECT_THAT(busy.as_html(), HasSubstr("<h2>The GPU: time with a kernel on it</h2>"));
  EXPECT_THAT(busy.as_html(), Not(HasSubstr("SMs that were busy")));
  EXPECT_THAT(busy.as_html(), HasSubstr("not measured: no &lt;GPM&gt;"));
  EXPECT_EQ(wrong_with_xml(busy.as_html()), "");
  EXPECT_THAT(busy.as_text(tools::terminal()), HasSubstr("gpu         a kernel on it 0.5 of the time"));
  EXPECT_THAT(report_of({two_seconds()}).as_html(), Not(HasSubstr("The GPU")));
}

TEST(report, tells_nothing_of_what_an_older_file_lacks) {
  const auto values = values_of(parse_run("old", "{\"t_s\":2,\"seconds\":2,\"samples\":10,\"stalled_s\":1}\n"));
  EXPECT_EQ(values, (std::map<std::string, double>{{"samples_per_s", 5}, {"stall", 0.5}, {"quarantined", 0}}));
}

TEST(report, passes_over_lines_that_are_none_and_counts_them) {
  const std::string text = "nonsense\n" + two_seconds() + "{\"t_s\":3,\"sec";
  const recorded_run run = parse_run("run.jsonl", text);
  EXPECT_EQ(run.lines.size(), 2);
  EXPECT_EQ(run.unreadable, 2);
  for (const std::string& none : {std::string(), std::string("[1]\n{}\n"), std::string(5000, '[')}) {
    try {
      static_cast<void>(parse_run("run.jsonl", none));
      ADD_FAILURE() << none;
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::format);
      EXPECT_THAT(refused.what(), HasSubstr("leat epoch SOURCE --progress run.jsonl"));
    }
  }
  try {
    static_cast<void>(parse_run("run.jsonl", two_seconds() + two_seconds()));
    ADD_FAILURE();
  } catch (const error& refused) {
    EXPECT_STREQ(refused.what(),
                 "run.jsonl: line 3 is earlier than the one before: two runs are in one file; give each its own");
  }
}

TEST(report, holds_limits_and_what_was_not_measured_keeps_none) {
  const tools::run_report report = report_of({two_seconds()}, "next_p99_ms<=9, cpu<=0.7\tau>=0.65  sm>=0.8");
  std::vector<limit_outcome> outcomes;
  for (const tools::held_limit& each : report.limits) outcomes.push_back(each.outcome);
  EXPECT_THAT(outcomes, ElementsAre(limit_outcome::kept, limit_outcome::broken, limit_outcome::kept,
                                    limit_outcome::not_measured));
  EXPECT_FALSE(report.keeps_limits());
  EXPECT_TRUE(report_of({two_seconds()}, "cpu<=0.75 samples_per_s>=75").keeps_limits());
  EXPECT_FALSE(report_of({two_seconds()}, "sm>=0").keeps_limits());
  for (const auto& [text, said] : std::map<std::string, std::string>{
           {"speed>=3", "no measure is called 'speed'; they are samples_per_s, stall, au"},
           {"cpu<0.7", "is no limit; write cpu<=NUMBER or cpu>=NUMBER"},
           {"cpu<=", "is no limit"},
           {"cpu <= 1", "'cpu' is no limit"},
           {"cpu<=nan", "is no limit"},
           {" , ", "has no limit"}}) {
    try {
      static_cast<void>(tools::parse_limits(text));
      ADD_FAILURE() << text;
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::usage);
      EXPECT_THAT(refused.what(), HasSubstr(said));
    }
  }
}

TEST(report, makes_a_page_that_is_whole_and_has_nothing_from_elsewhere) {
  const std::string page = report_of({two_seconds(), two_seconds()}, "cpu<=1").as_html();
  EXPECT_EQ(wrong_with_xml(page), "");
  for (const char* const foreign : {"http:", "https:", "<script", "url(", "src=", "href=", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(foreign)));
  }
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  // 100 and 50 of 100 at the middle and the right end, of each run.
  EXPECT_THAT(page, HasSubstr("class=\"line \" d=\"M500.0 0.0L1000.0 50.0\""));
  EXPECT_THAT(page, HasSubstr("class=\"line second\" d=\"M500.0 0.0L1000.0 50.0\""));
  EXPECT_THAT(page, HasSubstr("<rect class=\"consumer\" x=\"0.0\" y=\"0\" width=\"500.0\""));
  EXPECT_THAT(page, HasSubstr("<rect class=\"decode\" x=\"500.0\" y=\"0\" width=\"500.0\""));
  EXPECT_THAT(page, HasSubstr("<td class=\"n\">1</td><td class=\"n\">7</td><td class=\"n\">400 ms</td>"))
      << "the slowest batch";
}

TEST(report, escapes_every_name_and_cuts_long_ones) {
  const std::string evil = "<script>alert(1)</script>\\\"'&";
  std::string line =
      R"({"t_s":1,"seconds":1,"samples":1,"verdict":{"who":"EVIL"},"threads":{"EVIL":1},"settings":{"EVIL":"EVIL"},)"
      R"("run":{"EVIL":["EVIL",{"EVIL":1}],"long":"LONG"},"waits_ms":{"max":1}})"
      "\n";
  for (std::size_t at = line.find("EVIL"); at != std::string::npos; at = line.find("EVIL", at + evil.size())) {
    line.replace(at, 4, evil);
  }
  line.replace(line.find("LONG"), 4, std::string(1'000'000, 'x'));
  tools::run_report report = report_of({line});
  ASSERT_EQ(report.runs[0].lines[0].threads.size(), 1);
  report.runs[0].path = "<script>\xff";
  const std::string page = report.as_html();
  EXPECT_EQ(wrong_with_xml(page), "");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_LT(page.size(), 40'000);
}

TEST(report, of_a_week_is_less_than_300_kb) {
  std::string text;
  std::string threads;
  for (int i = 0; i < 128; ++i) threads += (i > 0 ? ",\"decode-" : "\"decode-") + std::to_string(i) + "\":0.5";
  // Each line is 10 s.
  for (int i = 1; i <= 60'480; ++i) {
    text += "{\"t_s\":" + std::to_string(i * 10) + ",\"seconds\":10,\"samples\":" + std::to_string(i * 7919 % 1000) +
            ",\"stalled_s\":" + std::to_string(i % 7) + ",\"cpu_s\":" + std::to_string(i % 5) +
            ",\"rss_bytes\":1e9,\"arena_bytes\":5e8,\"waits_ms\":{\"p99\":" + std::to_string(i % 100) +
            ",\"max\":200},\"verdict\":{\"who\":\"" + (i % 3 == 0 ? "read" : "decode") + "\"}" +
            (i % 6000 == 0 ? ",\"threads\":{" + threads + "}" : "") + "}\n";
  }
  const std::string page = report_of({text, text}).as_html();
  EXPECT_LT(page.size(), 300'000);
  EXPECT_EQ(wrong_with_xml(page), "");
}

TEST(report, is_fifteen_lines_in_a_terminal) {
  tools::run_report report = report_of({two_seconds()}, "cpu<=0.7");
  report.price_per_hour = 36;
  const std::string text = report.as_text({});
  EXPECT_LE(lines_of(text).size(), 15);
  EXPECT_THAT(text, HasSubstr("75 samples/s"));
  EXPECT_THAT(text, HasSubstr("consumer 50 %, decode 50 %"));
  EXPECT_THAT(text, HasSubstr("0.02, of it 0.007 of waits"));
  EXPECT_THAT(text, HasSubstr("broken: cpu <= 0.7, it was 0.75"));
  EXPECT_THAT(text, HasSubstr("batch 7 of epoch 1, after 400 ms"));
}

// What TensorFlow's reader checks of each record: both sums.
TEST(report, writes_events_that_tensorboard_reads) {
  const std::string file = tools::tensorboard_events(parse_run("run.jsonl", two_seconds()));
  std::vector<std::string> events;
  const auto masked = [](std::string_view bytes) {
    const std::uint32_t sum = crc32c(std::as_bytes(std::span(bytes)));
    return (sum >> 15 | sum << 17) + 0xa282ead8U;
  };
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
  };
  for (std::size_t at = 0; at < file.size();) {
    ASSERT_LE(at + 16, file.size());
    const std::size_t bytes = word(at);
    EXPECT_EQ(word(at + 8), masked(std::string_view(file).substr(at, 8)));
    events.push_back(file.substr(at + 12, bytes));
    EXPECT_EQ(word(at + 12 + bytes), masked(events.back()));
    at += 16 + bytes;
  }
  ASSERT_EQ(events.size(), 3);
  EXPECT_THAT(events[0], HasSubstr("brain.Event:2"));
  double wall_s = 0;
  std::memcpy(&wall_s, events[2].data() + 1, sizeof wall_s);
  EXPECT_EQ(wall_s, 1795935602) << "07:00:02 of 29 November 2026";
  const std::string tag = "leat/samples_per_s";
  const std::size_t at = events[2].find(tag);
  ASSERT_NE(at, std::string::npos);
  float value = 0;
  std::memcpy(&value, events[2].data() + at + tag.size() + 1, sizeof value);
  EXPECT_EQ(value, 50);
}

TEST(report, tells_tensorboard_all_that_was_measured_of_the_gpu) {
  const std::string file =
      tools::tensorboard_events(parse_run("run.jsonl", lines_with_gpu({R"({"sm":0.9,"sm_occupancy":0.4,"busy":1})"})));
  for (const char* const tag : {"leat/gpu_sm", "leat/gpu_sm_occupancy", "leat/gpu_busy"}) {
    EXPECT_THAT(file, HasSubstr(tag));
  }
}

TEST(report, of_a_real_run_has_its_samples_and_its_exit_status_is_of_the_limits) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string lines = (directory.path() / "run.jsonl").string();
  const std::string page = (directory.path() / "run.html").string();
  ASSERT_EQ(run({"epoch", photos.path().string(), "--size", "32", "--batch-size", "2", "--progress", lines}).exit_code,
            0);
  const recorded_run read = parse_run(lines, text_of(lines));
  EXPECT_EQ(read.samples(), 12);
  EXPECT_GT(read.cores(), 0);
  ASSERT_TRUE(read.lines.back().waited);
  EXPECT_GT(read.lines.back().waited->max_ms, 0);
  EXPECT_FALSE(read.lines.back().threads.empty());
  ASSERT_TRUE(read.settings.is_object());
  EXPECT_GT(read.settings.at("decode threads"), 0);

  const ended kept = run({"report", lines, "-o", page, "--limits", "samples_per_s>=0.001", "--tensorboard",
                          (directory.path() / "tb").string()});
  EXPECT_EQ(kept.exit_code, 0) << kept.err;
  EXPECT_THAT(kept.out, HasSubstr("kept: samples_per_s >= 0.001"));
  EXPECT_EQ(wrong_with_xml(text_of(page)), "");
  EXPECT_THAT(text_of((directory.path() / "tb/events.out.tfevents.0.leat").string()), HasSubstr("brain.Event:2"));
  EXPECT_EQ(run({"report", lines, "--limits", "samples_per_s>=1e12"}).exit_code, 1);
  EXPECT_EQ(run({"report", lines, lines, "-o", "-"}).exit_code, 0);

  const auto refused = [&](const std::vector<std::string>& more, const std::string& said) {
    std::vector<std::string> all{"report"};
    all.insert(all.end(), more.begin(), more.end());
    const ended process = run(all);
    EXPECT_EQ(process.exit_code, 2);
    EXPECT_THAT(process.err, HasSubstr(said));
  };
  refused({lines, "-o", lines}, "is the run itself");
  refused({lines, "--limits", "x<=1"}, "no measure is called 'x'");
  refused({lines, "--disk-peak", "fast"}, "is no rate");
  refused({lines, "--price-per-hour", "cheap"}, "is no price");
  refused({lines, lines, lines}, "give the two to compare");
  refused({(directory.path() / "none").string()}, "No such file");
}

std::string trace_of(std::uint32_t rank, std::uint64_t spans) {
  const stages::timeline seen(std::size_t{1} << 16, 1, 1, 1);
  for (std::uint64_t i = 0; i < spans; ++i) {
    seen.decode_thread(0)->add({.of = stages::activity::decode, .begin_ns = i * 10'000, .end_ns = i * 10'000 + 500});
  }
  return seen.to_json(rank);
}

TEST(joined_traces, have_the_events_of_all_ranks) {
  const std::vector<tools::trace_file> files = {{"a.json", trace_of(0, 3)}, {"b.json", trace_of(1, 5)}};
  const nlohmann::json all = nlohmann::json::parse(tools::join_traces(files));
  std::map<int, int> spans;
  std::size_t events = 0;
  for (const nlohmann::json& each : all.at("traceEvents")) {
    ++events;
    if (each.at("ph") == "X") ++spans[each.at("pid").get<int>()];
  }
  EXPECT_EQ(spans, (std::map<int, int>{{0, 3}, {1, 5}}));
  const nlohmann::json first = nlohmann::json::parse(files[0].text);
  EXPECT_EQ(events, first.at("traceEvents").size() + nlohmann::json::parse(files[1].text).at("traceEvents").size());
  EXPECT_EQ(all.at("baseTimeNanoseconds"), first.at("baseTimeNanoseconds"));
}

TEST(joined_traces, refuse_by_name_what_is_no_trace_of_another_rank_of_the_run) {
  const auto refusal = [](const std::string& second) {
    return message_of(errc::usage, [&] {
      static_cast<void>(
          tools::join_traces(std::vector<tools::trace_file>{{"a.json", trace_of(0, 1)}, {"b.json", second}}));
    });
  };
  EXPECT_THAT(refusal(trace_of(0, 1)), HasSubstr("b.json and a.json are both of rank 0"));
  const std::string trace = trace_of(1, 1);
  EXPECT_THAT(refusal(trace.substr(0, trace.size() - 1)), HasSubstr("b.json is no trace that leat has written"));
  EXPECT_THAT(refusal(""), HasSubstr("b.json is no trace"));
  EXPECT_THAT(refusal("{\"traceEvents\":[]}"), HasSubstr("b.json is no trace"));
  EXPECT_THAT(refusal(trace + trace), HasSubstr("b.json is no trace"));
  EXPECT_THAT(refusal(trace.substr(0, 300) + trace.substr(400)), HasSubstr("b.json is no trace"));
  std::string other = trace;
  other.replace(other.find("Nanoseconds\":") + 13, 1, "2");
  EXPECT_THAT(refusal(other), HasSubstr("count from different moments"));
}

TEST(joined_traces, may_be_packed_by_gzip) {
  std::vector<std::byte> packed;
  const std::string text = trace_of(3, 100);
  gzip(std::as_bytes(std::span(text)), packed);
  std::string bytes(reinterpret_cast<const char*>(packed.data()), packed.size());
  EXPECT_EQ(tools::unpacked("t.json.gz", bytes), text);
  EXPECT_EQ(tools::unpacked("t.json", text), text);
  for (const std::size_t damaged : {std::size_t{10}, bytes.size() / 2, bytes.size() - 1, bytes.size() - 6}) {
    std::string wrong = bytes;
    wrong[damaged] = static_cast<char>(wrong[damaged] ^ 0x55);
    EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(tools::unpacked("t.json.gz", wrong)); }),
                HasSubstr("t.json.gz: this file of gzip is damaged: "))
        << damaged;
  }
  EXPECT_THAT(message_of(errc::usage, [] { static_cast<void>(tools::unpacked("t", "\x1f\x8b")); }),
              HasSubstr("damaged"));
}

TEST(joined_traces, are_written_by_the_command) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string trace = (directory.path() / "t.json.gz").string();
  const std::string all = (directory.path() / "all.json").string();
  ASSERT_EQ(run({"epoch", photos.path().string(), "--size", "32", "--trace", trace}).exit_code, 0);
  EXPECT_THAT(text_of(trace), ::testing::StartsWith("\x1f\x8b"));
  const ended joined = run({"report", "--join-traces", trace, "-o", all});
  EXPECT_EQ(joined.exit_code, 0) << joined.err;
  EXPECT_TRUE(nlohmann::json::parse(text_of(all)).contains("traceEvents"));
  const ended nowhere = run({"report", "--join-traces", trace});
  EXPECT_EQ(nowhere.exit_code, 2);
  expect_one_line(nowhere, "leat report: --join-traces writes one file of several; give it -o FILE");
  const ended limited = run({"report", "--join-traces", trace, "-o", all, "--limits", "au>=0.9"});
  EXPECT_EQ(limited.exit_code, 2);
  expect_one_line(limited, "leat report: --join-traces takes nothing but -o FILE");
}

}  // namespace
}  // namespace leat::testing
