// What others see of a run: files and a port.
#include "tools/run_watch.hpp"

#include "stages/device/gpu_activity.hpp"
#include "stages/run/loader_parts.hpp"
#include "tests/support/parse_metrics.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/simulated_nvml.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <leat/error.hpp>
#include <leat/open_folder.hpp>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tools::run_watch;

leat::loader small_loader(const photo_folder& photos) {
  return {open_folder(photos.path()),
          {.batch_size = 4, .epochs = 1, .decode_threads = 1},
          image("jpg").resize(16).center_crop(16)};
}

std::string ask(std::uint16_t port, const std::string& request) {
  asio::io_context context;
  tcp::socket connection(context);
  connection.connect({asio::ip::address_v4::loopback(), port});
  asio::write(connection, asio::buffer(request));
  std::string reply;
  boost::system::error_code ended;
  asio::read(connection, asio::dynamic_buffer(reply), ended);
  return reply;
}

TEST(run_watch, answers_on_loopback_with_metrics_and_nothing_else) {
  const photo_folder photos;
  leat::loader train = small_loader(photos);
  const run_watch watch(train, {.metrics_port = 0, .labels = {{"rank", "3"}}});
  ASSERT_NE(watch.port(), 0);
  while (train.next_blocking()) {
  }
  const std::string reply = ask(watch.port(), "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  const std::string body = reply.substr(reply.find("\r\n\r\n") + 4);
  EXPECT_EQ(parse_metrics(body).value("leat_samples_total{rank=\"3\"}"), 12);
  EXPECT_THAT(ask(watch.port(), "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(watch.port(), "POST /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_EQ(ask(watch.port(), std::string(20'000, 'x')), "") << "too long to be a request";
}

// All of 127.0.0.0/8 is this machine.
TEST(run_watch, answers_at_the_address_it_is_given_and_nowhere_else) {
  const photo_folder photos;
  leat::loader train = small_loader(photos);
  const run_watch watch(train, {.metrics_port = 0, .metrics_address = "127.0.0.2"});
  EXPECT_EQ(watch.url(), "http://127.0.0.2:" + std::to_string(watch.port()) + "/metrics");
  asio::io_context context;
  tcp::socket connection(context);
  boost::system::error_code refused;
  connection.connect({asio::ip::make_address("127.0.0.2"), watch.port()}, refused);
  EXPECT_FALSE(refused) << refused.message();
  tcp::socket elsewhere(context);
  elsewhere.connect({asio::ip::address_v4::loopback(), watch.port()}, refused);
  EXPECT_EQ(refused, asio::error::connection_refused);
}

TEST(epoch_watched, says_what_is_wrong_with_an_address_for_metrics) {
  const photo_folder photos;
  const std::string folder = photos.path().string();
  const ended name = run({"epoch", folder, "--metrics-port", "0", "--metrics-address", "localhost"});
  EXPECT_EQ(name.exit_code, 2);
  expect_one_line(name, "leat epoch: --metrics-address 'localhost' is no address in numbers");
  // TEST-NET-1 (RFC 5737): no machine has it.
  const ended foreign = run({"epoch", folder, "--metrics-port", "0", "--metrics-address", "192.0.2.1"});
  EXPECT_EQ(foreign.exit_code, 1);
  EXPECT_THAT(foreign.err, HasSubstr("give --metrics-address one of this machine's"));
  EXPECT_EQ(run({"epoch", folder, "--metrics-address", "127.0.0.1"}).exit_code, 2) << "there is no port";
  const ended told = run({"epoch", folder, "--metrics-port", "0", "--metrics-address", "127.0.0.2", "--size", "32"});
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_THAT(told.err, HasSubstr("metrics are at http://127.0.0.2:"));
}

TEST(run_watch, serves_the_next_one_when_a_connection_says_nothing) {
  const photo_folder photos;
  leat::loader train = small_loader(photos);
  const run_watch watch(train, {.metrics_port = 0});
  asio::io_context context;
  tcp::socket silent(context);
  silent.connect({asio::ip::address_v4::loopback(), watch.port()});
  EXPECT_THAT(ask(watch.port(), "GET /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(run_watch, refuses_a_port_that_is_taken) {
  const photo_folder photos;
  leat::loader train = small_loader(photos);
  const run_watch watch(train, {.metrics_port = 0});
  try {
    const run_watch again(train, {.metrics_port = watch.port()});
    FAIL() << "two on one port";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::io);
    EXPECT_THAT(refused.what(), HasSubstr("--metrics-port another one"));
  }
}

TEST(epoch_watched, writes_its_metrics_whole_and_a_line_of_what_came) {
  const photo_folder photos;
  const temporary_directory folder;
  const std::string metrics = folder.path() / "leat.prom";
  const std::string windows = folder.path() / "run.jsonl";
  const ended process = run({"epoch", photos.path().string(), "--size", "32", "--batch-size", "5", "--metrics", metrics,
                             "--progress", windows, "--step-ms", "10", "--json"});
  ASSERT_EQ(process.exit_code, 0) << process.err;
  EXPECT_EQ(parse_metrics(text_of(metrics)).value("leat_samples_total"), 12);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2) << "nothing else is left";
  std::uint64_t samples = 0;
  for (const std::string& line : lines_of(text_of(windows))) {
    const json each = json::parse(line);
    samples += each.at("samples").get<std::uint64_t>();
    EXPECT_TRUE(each.at("verdict").at("who").is_string());
  }
  EXPECT_EQ(samples, 12U);
  const double au = process.json().at("au");
  EXPECT_GT(au, 0);
  EXPECT_LE(au, 1);
}

TEST(epoch_watched, of_a_single_step_knows_no_au_and_says_so) {
  const photo_folder photos;
  const std::vector<std::string> one = {"epoch", photos.path().string(), "--size", "32", "--step-ms", "1", "--limit",
                                        "1"};
  std::vector<std::string> in_json = one;
  in_json.emplace_back("--json");
  EXPECT_TRUE(run(in_json).json().at("au").is_null());
  EXPECT_THAT(run(one).out, HasSubstr("no au, which leaves out the first step, and there was no other; it waited "));
}

TEST(epoch_watched, stands_for_a_trainer_of_no_time_as_well) {
  const photo_folder photos;
  const ended process = run({"epoch", photos.path().string(), "--size", "32", "--batch-size", "5", "--step-ms", "0"});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  // The sleep itself takes some microseconds.
  EXPECT_THAT(process.out, ContainsRegex("steps took [0-9]+\\.[0-9] % of its time \\(au\\)"));
}

TEST(epoch_watched, refuses_files_that_it_cannot_write) {
  const photo_folder photos;
  const std::string nowhere = (photos.path() / "there-is-no" / "leat.prom").string();
  for (const char* option : {"--metrics", "--progress"}) {
    const ended process = run({"epoch", photos.path().string(), "--size", "32", option, nowhere});
    EXPECT_NE(process.exit_code, 0) << option;
    EXPECT_THAT(process.err, HasSubstr("cannot write " + nowhere)) << option;
    EXPECT_THAT(process.err, HasSubstr(std::string("give ") + option + " a file")) << option;
  }
}

TEST(epoch_watched, refuses_a_file_for_two_and_standard_output) {
  const photo_folder photos;
  const std::string folder = photos.path().string();
  const ended both = run({"epoch", folder, "--size", "32", "--progress", "/tmp/w", "--metrics", "/tmp/./w"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--progress and --metrics name the same file"));
  const ended journal = run({"epoch", folder, "--size", "32", "--progress", "/tmp/w", "--journal", "/tmp/w"});
  EXPECT_EQ(journal.exit_code, 2);
  EXPECT_THAT(journal.err, HasSubstr("--journal and --progress name the same file"));
  EXPECT_EQ(run({"epoch", folder, "--size", "32", "--metrics", "-"}).exit_code, 2);
}

TEST(run_watch, says_in_each_line_how_busy_the_gpu_is_or_why_that_is_not_known) {
  const photo_folder photos;
  leat::loader train = small_loader(photos);
  const temporary_directory folder;
  const std::string path = folder.path() / "run.jsonl";
  const auto gpu_of_lines = [&](tools::run_watch_options options) {
    options.windows = path;
    tools::watch_gpu_of(train, options);
    {
      const run_watch watch(train, options);
    }
    const std::vector<std::string> lines = lines_of(text_of(path));
    return json::parse(lines.at(0)).at("gpu");
  };
  EXPECT_EQ(gpu_of_lines({}), (json{{"why", "batches stay on the host"}}));
  simulated_nvml& library = simulated_nvml_of(simulated_nvml_library);
  library.sm = 61.5;
  library.occupancy = 25;
  library.percent = 93;
  std::chrono::steady_clock::time_point now;
  const auto gpu = std::make_shared<stages::gpu_activity>("0000:17:00.0", simulated_nvml_library,
                                                          [&] { return now += std::chrono::seconds(1); });
  EXPECT_EQ(gpu_of_lines({.gpu = gpu}), (json{{"sm", 0.615}, {"sm_occupancy", 0.25}, {"busy", 0.93}}));
  library.gpm_supported = 0;
  const auto older = std::make_shared<stages::gpu_activity>("0000:17:00.0", simulated_nvml_library);
  const json told = gpu_of_lines({.gpu = older});
  EXPECT_EQ(told.count("sm"), 0U);
  EXPECT_EQ(told.at("busy"), 0.93);
  EXPECT_THAT(told.at("why").get<std::string>(), HasSubstr("GPM"));
}

TEST(run_watch, has_each_step_of_the_tuner_in_the_line_of_its_time) {
  const photo_folder photos;
  leat::loader train = stages::make_loader(
      open_folder(photos.path()), {.batch_size = 1, .epochs = 20, .decode_threads = 4, .tune = tuning::on},
      {image("jpg").resize(16).center_crop(16)}, {.windows = {.batches = 8, .seconds = 0.02}});
  const temporary_directory folder;
  const std::string path = folder.path() / "run.jsonl";
  {
    const run_watch watch(train, {.windows = path});
    while (!train.finished()) {
      while (train.next_blocking()) std::this_thread::sleep_for(std::chrono::milliseconds(3));  // a trainer's step
    }
  }
  std::vector<json> seen;
  for (const std::string& line : lines_of(text_of(path))) {
    const json each = json::parse(line);
    if (!each.contains("tuning")) continue;
    for (const json& step : each.at("tuning")) {
      EXPECT_LE(step.at("at_s").get<double>(), each.at("t_s").get<double>());
      EXPECT_GE(step.at("at_s").get<double>(), each.at("t_s").get<double>() - each.at("seconds").get<double>() - 0.1);
      seen.push_back(step);
    }
  }
  const std::vector<tuning_step> steps = train.stats().tuned.steps;
  ASSERT_FALSE(steps.empty());
  ASSERT_EQ(seen.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(seen[i].at("setting"), steps[i].setting);
    EXPECT_EQ(seen[i].at("from"), steps[i].from);
    EXPECT_EQ(seen[i].at("to"), steps[i].to);
    EXPECT_EQ(seen[i].at("why"), steps[i].why);
  }
}

// The disk is full from the beginning, or later, or for a while.
TEST(run_watch, tells_once_of_a_disk_that_is_full_for_its_metrics) {
  const photo_folder photos;
  leat::loader train = small_loader(photos);
  const temporary_directory folder;
  const std::string path = folder.path() / "leat.prom";
  for (const std::vector<int>& disk : {std::vector{ENOSPC, ENOSPC}, {0, ENOSPC}, {EDQUOT, 0}, {0, EIO}}) {
    std::size_t written = 0;
    ::testing::internal::CaptureStderr();
    {
      const run_watch watch(train, {.metrics = path, .write = [&](const std::string& to, std::string_view bytes) {
                                      const int failure = disk.at(written++);
                                      return failure != 0 ? failure : tools::write_beside_and_rename(to, bytes);
                                    }});
      while (train.next_blocking()) {
      }
    }
    const std::vector<std::string> told = lines_of(::testing::internal::GetCapturedStderr());
    ASSERT_EQ(written, 2U) << "as it begins and as it ends";
    ASSERT_EQ(told.size(), 1U);
    EXPECT_THAT(told[0], StartsWith("leat epoch: warning: --metrics: cannot write " + path + ": "));
    EXPECT_THAT(told[0], ::testing::EndsWith("; the run goes on without"));
  }
  EXPECT_EQ(parse_metrics(text_of(path)).value("leat_samples_total"), 12) << "what was written while there was room";
  EXPECT_THROW(run_watch(train, {.metrics = path, .write = [](const auto&, auto) { return EACCES; }}), error);
}

// /dev/full takes nothing: what every full disk says.
TEST(epoch_watched, tells_once_of_a_full_disk_and_goes_on) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  const photo_folder photos;
  const ended process = run({"epoch", photos.path().string(), "--size", "32", "--batch-size", "1", "--progress",
                             "/dev/full", "--step-ms", "200"});
  EXPECT_EQ(process.exit_code, 0);
  EXPECT_THAT(process.out, HasSubstr("12 samples in 12 batches"));
  expect_one_line(process, "leat epoch: warning: --progress: cannot write /dev/full: ");
}

}  // namespace
}  // namespace leat::testing
