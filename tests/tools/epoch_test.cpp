// leat epoch, as a person or a script runs it.
#include "tests/datasets/archive.hpp"
#include "tests/support/held_file.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/tools/command.hpp"

#include <leat/batch.hpp>
#include <leat/field.hpp>
#include <leat/loader.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/order.hpp>
#include <leat/tokenizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

// Small pictures at a small size: an epoch of 12 takes milliseconds.
std::vector<std::string> epoch(const photo_folder& photos, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"epoch", photos.path().string(), "--size", "32", "--batch-size", "5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

json run_json(const photo_folder& photos, std::vector<std::string> more = {}) {
  more.emplace_back("--json");
  const ended process = run(epoch(photos, more));
  EXPECT_EQ(process.exit_code, 0) << process.err;
  return process.json();
}

std::string digest_of(const photo_folder& photos, const std::vector<std::string>& more = {}) {
  return run_json(photos, more).value("digest", "none");
}

// A file that begins as a JPEG and ends soon after.
void cut(const std::filesystem::path& file) {
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 4);
}

std::vector<json> json_lines(const std::string& path) {
  std::vector<json> lines;
  for (const std::string& line : lines_of(text_of(path))) lines.push_back(json::parse(line));
  return lines;
}

TEST(epoch, gives_one_json_object_with_all_that_was_promised) {
  const photo_folder photos;
  const json object = run_json(photos);
  for (const char* name : {"planned", "samples", "batches", "quarantined", "substituted", "epochs", "bytes_read",
                           "bytes_from_files", "bytes_copied", "rss_bytes_max", "host_bytes_max", "arena_bytes"}) {
    ASSERT_TRUE(object.contains(name)) << name;
    EXPECT_TRUE(object[name].is_number_unsigned()) << name << " is " << object[name];
  }
  for (const char* name :
       {"seconds", "samples_per_s", "cpu_s", "cpu_s_per_1000_samples", "digest_cpu_s", "first_batch_ms"}) {
    ASSERT_TRUE(object.contains(name)) << name;
    EXPECT_TRUE(object[name].is_number()) << name << " is " << object[name];
  }
  EXPECT_THAT(object.at("digest").get<std::string>(), MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(object.at("bottleneck").get<std::string>(),
              MatchesRegex("read|decode|transfer|consumer|variance|unclear|unknown"));
  const json verdict = object.at("verdict");
  EXPECT_EQ(verdict.at("who"), object.at("bottleneck"));
  for (const char* name : {"also", "next", "if_free_per_s", "samples_per_s", "stall_share", "window_s", "why"}) {
    EXPECT_TRUE(verdict.contains(name)) << name;
  }
  for (const char* part : {"read", "decode", "transfer", "consumer"}) {
    const json& per_s = verdict.at("capacities").at(part).at("per_s");
    EXPECT_TRUE(per_s.is_null() || per_s > 0) << part << ": " << per_s;
    EXPECT_TRUE(verdict.at("capacities").at(part).at("at_least").is_boolean()) << part;
  }
  for (const char* queue : {"decode", "ready", "out"}) EXPECT_TRUE(object.at("queues").at(queue).is_number()) << queue;
  for (const char* thread : {"io-0", "decode-0"}) {
    for (const char* name : {"busy_s", "idle_s", "cpu_s"}) {
      EXPECT_TRUE(object.at("threads").at(thread).at(name).is_number()) << thread << "." << name;
    }
  }
  const json device = object.at("device");
  EXPECT_EQ(device.at("use"), "host");
  EXPECT_EQ(device.at("why"), "asked for");
  const json reader = object.at("reader");
  for (const char* name : {"backend", "registered_buffers", "direct", "huge_pages", "why"}) {
    ASSERT_TRUE(reader.contains(name)) << name;
    EXPECT_TRUE(reader[name].is_string()) << name;
  }
  for (const char* stage : {"read", "decode", "collate", "transfer", "next"}) {
    ASSERT_TRUE(object.at("stages").contains(stage)) << stage;
    for (const char* name : {"count", "busy_s", "wait_s", "p50_ms", "p90_ms", "p99_ms", "max_ms"}) {
      EXPECT_TRUE(object["stages"][stage].at(name).is_number()) << stage << "." << name;
    }
  }
}

TEST(epoch, counts_samples_batches_and_epochs) {
  const photo_folder photos;
  const json once = run_json(photos);
  EXPECT_EQ(once["planned"], 12);
  EXPECT_EQ(once["samples"], 12);
  EXPECT_EQ(once["batches"], 3);
  EXPECT_EQ(once["epochs"], 1);
  EXPECT_EQ(once["quarantined"], 0);
  EXPECT_EQ(once["interrupted"], false);
  EXPECT_GT(once["host_bytes_max"], 0);
  EXPECT_LE(once["host_bytes_max"], 512 << 20) << "less on a machine that has less than 1 GiB left";
  EXPECT_GT(once["samples_per_s"], 0);
  EXPECT_GT(once["cpu_s"], 0);
  EXPECT_GT(once["first_batch_ms"], 0);
  EXPECT_EQ(once["stages"]["decode"]["count"], 12);

  const json twice = run_json(photos, {"--epochs", "2", "--drop-last"});
  EXPECT_EQ(twice["samples"], 20);
  EXPECT_EQ(twice["batches"], 4);
  EXPECT_EQ(twice["epochs"], 2);

  const json limited = run_json(photos, {"--limit", "1", "--epochs", "2"});
  EXPECT_EQ(limited["batches"], 2);
  EXPECT_EQ(limited["samples"], 10);
}

TEST(epoch, digest_does_not_depend_on_the_machinery) {
  const photo_folder photos;
  const std::string digest = digest_of(photos);
  const std::vector<std::vector<std::string>> ways = {
      {"--threads", "1"},          {"--threads", "4"},
      {"--queue-depth", "1"},      {"--queue-depth", "128"},
      {"--reader", "preadv"},      {"--direct", "off"},
      {"--io-threads", "2"},       {"--host-bytes-max", "64MiB"},
      {"--prefetch-batches", "1"}, {"--threads", "3", "--reader", "preadv", "--queue-depth", "2", "--direct", "off"}};
  for (const std::vector<std::string>& way : ways) EXPECT_EQ(digest_of(photos, way), digest) << way[0] << " " << way[1];
}

TEST(epoch, digest_depends_on_what_a_batch_holds) {
  const photo_folder photos;
  const std::vector<std::vector<std::string>> contents = {{},
                                                          {"--seed", "1"},
                                                          {"--no-shuffle"},
                                                          {"--transform", "eval"},
                                                          {"--transform", "eval", "--shuffle"},
                                                          {"--dtype", "u8"},
                                                          {"--dtype", "f16"},
                                                          {"--dtype", "bf16"},
                                                          {"--layout", "nhwc"},
                                                          {"--size", "48"},
                                                          {"--batch-size", "6"},
                                                          {"--epochs", "2"},
                                                          {"--mixup", "0.2"},
                                                          {"--mixup", "0.4"},
                                                          {"--cutmix", "1"},
                                                          {"--mosaic", "1"},
                                                          {"--mosaic", "0.5"},
                                                          {"--drop-last"}};
  std::set<std::string> digests;
  for (const std::vector<std::string>& content : contents) {
    // The last of an option counts, as in `alias`es.
    std::vector<std::string> arguments{"epoch", photos.path().string(), "--json"};
    const auto has = [&](const char* name) { return !content.empty() && content[0] == name; };
    if (!has("--size")) arguments.insert(arguments.end(), {"--size", "32"});
    if (!has("--batch-size")) arguments.insert(arguments.end(), {"--batch-size", "5"});
    arguments.insert(arguments.end(), content.begin(), content.end());
    const std::string digest = run(arguments).json().value("digest", "none");
    EXPECT_TRUE(digests.insert(digest).second)
        << (content.empty() ? "plain" : content[0]) << " gives a digest seen before";
  }
}

TEST(epoch, without_digests_there_is_none) {
  const photo_folder photos;
  const json object = run_json(photos, {"--digest", "off"});
  EXPECT_FALSE(object.contains("digest"));
  EXPECT_EQ(object["digest_cpu_s"], 0);
}

TEST(epoch, writes_a_line_per_batch_with_ids_labels_and_digests) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string file = (directory.path() / "batches").string();
  const json object = run_json(photos, {"--batches", file, "--rows", "--epochs", "2"});
  const std::vector<json> lines = json_lines(file);
  ASSERT_EQ(lines.size(), 6U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const json& line = lines[i];
    EXPECT_EQ(line.at("epoch"), i / 3);
    EXPECT_EQ(line.at("batch"), i % 3);
    const std::size_t rows = i % 3 == 2 ? 2 : 5;
    EXPECT_EQ(line.at("ids").size(), rows);
    EXPECT_EQ(line.at("rows").size(), rows);
    ASSERT_EQ(line.at("labels").size(), rows);
    EXPECT_THAT(line.at("digest").get<std::string>(), MatchesRegex("[0-9a-f]{32}"));
    // 4 pictures in each of 3 classes, sorted by class.
    for (std::size_t row = 0; row < rows; ++row) EXPECT_EQ(line["labels"][row], line["ids"][row].get<int>() / 4);
  }
  std::set<int> ids;
  for (std::size_t i = 0; i < 3; ++i) ids.insert(lines[i]["ids"].begin(), lines[i]["ids"].end());
  EXPECT_EQ(ids.size(), 12U);
  EXPECT_NE(lines[0]["ids"], lines[3]["ids"]) << "both epochs have one order";
}

TEST(epoch, lines_have_no_rows_unless_asked_and_no_digest_without_one) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string file = (directory.path() / "batches").string();
  run_json(photos, {"--batches", file});
  EXPECT_FALSE(json_lines(file).at(0).contains("rows"));
  run_json(photos, {"--batches", file, "--digest", "off"});
  ASSERT_EQ(json_lines(file).size(), 3U) << "the file was begun anew";
  EXPECT_FALSE(json_lines(file).at(0).contains("digest"));
}

TEST(epoch, lines_go_to_standard_output_and_the_table_beside_them) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string file = (directory.path() / "batches").string();
  run_json(photos, {"--batches", file});
  const ended process = run(epoch(photos, {"--batches", "-", "--plan"}));
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_EQ(process.out, text_of(file));
  EXPECT_THAT(process.err, HasSubstr("12 samples in 3 batches"));
  EXPECT_THAT(process.err, HasSubstr("read buffers"));
  const ended full = run_into("/dev/full", epoch(photos, {"--batches", "-"}));
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("\nleat epoch: cannot write standard output: No space left on device; "));
}

TEST(epoch, ctrl_c_does_not_wait_for_a_reader_of_its_lines) {
  const photo_folder photos;
  // The pipe is full long before, and the test reads it only when the process is told to stop.
  command process(epoch(photos, {"--epochs", "1000000", "--batches", "-", "--rows"}));
  process.read_until("\"batch\":1");
  process.signal(SIGINT);
  const ended result = process.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.err, HasSubstr("leat epoch: stopped by Ctrl-C after "));
}

TEST(epoch, ctrl_c_leaves_no_half_tensor) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::filesystem::path npy = directory.path() / "npy";
  command process({"epoch", photos.path().string(), "--batch-size", "5", "--epochs", "1000", "--npy", npy.string()});
  while (!std::filesystem::exists(npy / "0-1-jpg.npy")) std::this_thread::yield();
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 130);
  for (const auto& entry : std::filesystem::directory_iterator(npy)) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(entry.path().extension(), ".npy") << name;
    if (name.find("jpg") == std::string::npos) continue;
    // Batches of 5, 5 and 2 pictures, and a header of 128 bytes.
    EXPECT_THAT(entry.file_size(), AnyOf(128U + 5U * 3 * 224 * 224 * 4, 128U + 2U * 3 * 224 * 224 * 4)) << name;
  }
}

TEST(epoch, writes_tensors_that_python_reads) {
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "there is no python3 here";
  const photo_folder photos;
  const temporary_directory directory;
  const std::string npy = (directory.path() / "deep" / "npy").string();
  run_json(photos, {"--npy", npy, "--dtype", "u8", "--layout", "nhwc", "--no-shuffle"});
  // With nothing but the standard library: the format is that simple.
  const std::string script = (directory.path() / "read.py").string();
  std::ofstream(script) << R"(
import ast, struct, sys
def load(path):
    with open(path, 'rb') as f:
        assert f.read(8) == b'\x93NUMPY\x01\x00', path
        header = ast.literal_eval(f.read(struct.unpack('<H', f.read(2))[0]).decode())
        assert f.tell() % 64 == 0 and not header['fortran_order']
        return header['descr'], header['shape'], f.read()
d = sys.argv[1]
for batch, rows in ((0, 5), (1, 5), (2, 2)):
    descr, shape, data = load(f'{d}/0-{batch}-jpg.npy')
    assert (descr, shape) == ('|u1', (rows, 32, 32, 3)), (descr, shape)
    assert len(data) == rows * 32 * 32 * 3 and len(set(data)) > 16
    descr, shape, data = load(f'{d}/0-{batch}-cls.npy')
    assert (descr, shape) == ('<i8', (rows,)), (descr, shape)
    assert list(struct.unpack(f'<{rows}q', data)) == [i // 4 for i in range(5 * batch, 5 * batch + rows)]
)";
  EXPECT_EQ(std::system(("python3 '" + script + "' '" + npy + "'").c_str()), 0);
}

TEST(epoch, views_are_one_output_with_an_axis) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string npy = (directory.path() / "npy").string();
  run_json(photos, {"--npy", npy, "--dtype", "u8", "--views", "3"});
  EXPECT_THAT(text_of(npy + "/0-0-jpg.npy").substr(0, 128), HasSubstr("(5,3,3,32,32)"));
  EXPECT_NE(digest_of(photos, {"--views", "1"}), digest_of(photos));
}

TEST(epoch, a_corrupt_sample_ends_the_run_unless_told_otherwise) {
  const photo_folder photos;
  cut(photos.files()[7]);
  const ended raised = run(epoch(photos, {"--json"}));
  EXPECT_EQ(raised.exit_code, 1);
  expect_one_line(raised, "leat epoch: ");
  EXPECT_THAT(raised.err, HasSubstr(photos.files()[7].filename().string()));
  EXPECT_THAT(raised.json().value("error", ""), HasSubstr(photos.files()[7].filename().string()));

  const json skipped = run_json(photos, {"--on-corrupt", "skip"});
  EXPECT_EQ(skipped["planned"], 12);
  EXPECT_EQ(skipped["samples"], 11);
  EXPECT_EQ(skipped["quarantined"], 1);
  EXPECT_EQ(skipped["substituted"], 0);

  const json substituted = run_json(photos, {"--on-corrupt", "substitute"});
  EXPECT_EQ(substituted["samples"], 11);
  EXPECT_EQ(substituted["quarantined"], 1);
  EXPECT_EQ(substituted["substituted"], 1);
}

TEST(epoch, says_what_the_quarantined_samples_were) {
  using namespace std::string_literals;
  const photo_folder photos;
  const auto write = [&](std::size_t file, const std::string& content) {
    std::ofstream(photos.files()[file], std::ios::binary | std::ios::trunc) << content;
  };
  EXPECT_EQ(run_json(photos)["quarantined_as"], json::object());
  write(1, "\0\0\1\0 and so on"s);
  write(2, "8BPS and so on"s);
  write(3, "\0\0\1\0 and so on"s);
  write(5, ""s);
  write(6, "<html>not found</html>"s);
  cut(photos.files()[8]);
  const json expected = {{"ICO", 2}, {"Photoshop", 1}, {"damaged", 1}, {"empty", 1}, {"unknown format", 1}};
  const json found = run_json(photos, {"--on-corrupt", "skip"});
  EXPECT_EQ(found["quarantined"], 6);
  EXPECT_EQ(found["quarantined_as"], expected);
  EXPECT_THAT(run(epoch(photos, {"--on-corrupt", "skip"})).out,
              HasSubstr("6 samples, left out: 2 ICO, 1 Photoshop, 1 damaged, 1 empty, 1 unknown format\n"));
}

TEST(epoch, pictures_are_turned_upright_where_that_is_asked_for) {
  const photo_folder photos;
  const std::string before = run_json(photos, {"--transform", "eval"})["digest"];
  const std::string exif = "\xFF\xE1" + std::string(
                                            "\0\x22"
                                            "Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0",
                                            34);
  const std::string photo = text_of(photos.files()[4].string());
  std::ofstream(photos.files()[4], std::ios::binary | std::ios::trunc) << photo.substr(0, 2) << exif << photo.substr(2);
  EXPECT_EQ(run_json(photos, {"--transform", "eval"})["digest"], before);
  EXPECT_NE(run_json(photos, {"--transform", "eval", "--exif-orientation"})["digest"], before);
}

TEST(epoch, takes_jpegs_that_lost_their_ends_where_that_is_asked_for) {
  const photo_folder photos;
  const std::filesystem::path file = photos.files()[4];
  std::filesystem::resize_file(file, std::filesystem::file_size(file) * 3 / 4);
  const json refused = run_json(photos, {"--on-corrupt", "skip", "--epochs", "3"});
  EXPECT_EQ(refused["samples"], 33);
  const json accepted = run_json(photos, {"--truncated", "accept", "--epochs", "3"});
  EXPECT_EQ(accepted["samples"], 36);
  EXPECT_EQ(accepted["digest"], run_json(photos, {"--truncated", "accept", "--epochs", "3"})["digest"]);
}

TEST(epoch, journal_tells_of_each_corrupt_sample_and_is_the_same_at_every_thread_count) {
  const photo_folder photos;
  cut(photos.files()[2]);
  std::ofstream(photos.files()[9], std::ios::trunc).flush();
  const temporary_directory directory;
  const std::string journal = (directory.path() / "journal").string();
  run_json(photos, {"--on-corrupt", "skip", "--journal", journal, "--threads", "1"});
  const std::string text = text_of(journal);
  const std::vector<json> lines = json_lines(journal);
  ASSERT_EQ(lines.size(), 2U) << text;
  std::set<int> samples;
  for (const json& line : lines) {
    samples.insert(line.at("sample").get<int>());
    EXPECT_FALSE(line.at("reason").get<std::string>().empty());
    EXPECT_EQ(line.at("action"), "skipped");
  }
  EXPECT_EQ(samples, (std::set<int>{2, 9}));
  run_json(photos, {"--on-corrupt", "skip", "--journal", journal, "--threads", "4"});
  EXPECT_EQ(text_of(journal), text);
}

TEST(epoch, plan_says_what_the_memory_is_for) {
  const photo_folder photos;
  const ended process = run(epoch(photos, {"--plan", "--host-bytes-max", "100MiB"}));
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_THAT(process.out, HasSubstr("read buffers"));
  EXPECT_THAT(process.out, HasSubstr("decode scratch"));
  const json object = run_json(photos, {"--plan", "--host-bytes-max", "100MiB"});
  EXPECT_EQ(object.at("host_bytes_max"), 100 << 20);
  EXPECT_EQ(object.at("plan").at("host_bytes_max"), 100 << 20);
  std::uint64_t sum = 0;
  for (const json& line : object["plan"]["lines"]) sum += line.at("bytes").get<std::uint64_t>();
  EXPECT_EQ(object["plan"]["bytes_total"], sum);
  EXPECT_LE(sum, std::uint64_t{100} << 20);
}

TEST(epoch, a_budget_too_small_says_what_would_do) {
  const photo_folder photos;
  const ended process = run(epoch(photos, {"--host-bytes-max", "1MiB"}));
  EXPECT_EQ(process.exit_code, 2);
  expect_one_line(process, "leat epoch: --host-bytes-max");
  EXPECT_THAT(process.err, HasSubstr("give at least"));
}

// A control group for the processes that this one starts, where we may make one.
class memory_group {
 public:
  explicit memory_group(std::uint64_t bytes_max) {
    const std::string name = "/leat-test-" + std::to_string(::getpid());
    for (const auto& [mount, limit] :
         {std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}}) {
      const std::filesystem::path made = mount + name;
      std::error_code failure;
      if (!std::filesystem::create_directory(made, failure)) continue;
      made_ = made;
      from_ = std::filesystem::path(mount) / "cgroup.procs";
      entered_ = write(made / limit, bytes_max) && write(made / "cgroup.procs", 0);
      if (entered_) return;
      leave();
    }
  }
  memory_group(const memory_group&) = delete;
  memory_group& operator=(const memory_group&) = delete;
  ~memory_group() { leave(); }
  [[nodiscard]] bool entered() const { return entered_; }

 private:
  static bool write(const std::filesystem::path& file, std::uint64_t number) {
    std::ofstream out(file);
    out << number;
    out.close();
    return !out.fail();
  }
  void leave() {
    if (entered_) write(from_, 0);
    std::error_code failure;
    if (!made_.empty()) std::filesystem::remove(made_, failure);
    made_.clear();
  }

  std::filesystem::path made_, from_;
  bool entered_ = false;
};

TEST(epoch, in_a_control_group_takes_half_of_what_it_leaves_and_warns_of_a_budget_beyond_it) {
  const photo_folder photos;
  const memory_group small(std::uint64_t{400} << 20);
  if (!small.entered()) GTEST_SKIP() << "no control group can be made here";
  const ended usual = run(epoch(photos, {"--plan", "--json"}));
  EXPECT_EQ(usual.exit_code, 0) << usual.err;
  EXPECT_EQ(usual.err, "");
  EXPECT_LE(usual.json().at("host_bytes_max"), 200 << 20);
  const ended beyond = run(epoch(photos, {"--host-bytes-max", "4GiB", "--threads", "64"}));
  EXPECT_EQ(beyond.exit_code, 0) << beyond.err;
  expect_one_line(beyond, "leat epoch: warning: the loader may come to take ");
  EXPECT_THAT(beyond.err, HasSubstr("control group /leat-test-"));
}

TEST(epoch, ends_with_a_table_for_people_and_shows_no_bar_off_a_terminal) {
  const photo_folder photos;
  const ended process = run(epoch(photos));
  EXPECT_EQ(process.exit_code, 0);
  EXPECT_EQ(process.err, "");
  EXPECT_THAT(process.out, HasSubstr("12 samples in 3 batches"));
  EXPECT_THAT(process.out, HasSubstr("samples/s"));
  EXPECT_THAT(process.out, HasSubstr("bottleneck"));
  EXPECT_THAT(process.out, HasSubstr("digest"));
  EXPECT_THAT(process.out, Not(HasSubstr("\r")));
  EXPECT_THAT(process.out, Not(HasSubstr("\x1b")));
}

TEST(epoch, shows_a_bar_on_a_terminal_and_leaves_none_behind) {
  const photo_folder photos;
  command process(epoch(photos, {"--epochs", "100000", "--digest", "off"}), command::streams::terminal,
                  {"TERM=xterm-256color", "LANG=C.UTF-8", "LC_ALL="});
  process.read_until("eta ");
  process.signal(SIGINT);
  const ended seen = process.wait();
  EXPECT_EQ(seen.exit_code, 130);
  EXPECT_THAT(seen.out, HasSubstr("samples/s"));
  EXPECT_THAT(seen.out, HasSubstr("eta "));
  EXPECT_THAT(seen.out, HasSubstr("epoch "));
  EXPECT_THAT(seen.out, HasSubstr("\r\x1b[K")) << "the bar was not taken away";
  EXPECT_THAT(seen.out, HasSubstr("stopped by Ctrl-C"));
}

// --- stopping ---------------------------------------------------------------------------------------------------------

// Returns when the process has written its first batch line: it is in the middle of its work then.
void wait_for_lines(const std::string& path) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < give_up) {
    std::error_code none;
    if (std::filesystem::exists(path, none) && std::filesystem::file_size(path, none) > 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  FAIL() << "no batch within a minute";
}

void expect_stop(int signal, int exit_code, const char* name) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string file = (directory.path() / "batches").string();
  command process(epoch(photos, {"--epochs", "1000000", "--json", "--batches", file}));
  wait_for_lines(file);
  process.signal(signal);
  const ended result = process.wait();
  EXPECT_EQ(result.exit_code, exit_code);
  expect_one_line(result, std::string("leat epoch: stopped by ") + name + " after ");
  const json object = result.json();
  EXPECT_EQ(object.at("interrupted"), true);
  EXPECT_GT(object.at("samples"), 0);
  EXPECT_GE(object.at("batches").get<std::size_t>(), 1U);
  // Every line is whole, and there is one per batch that was handed over (the last may have been on its way).
  const std::size_t lines = json_lines(file).size();
  EXPECT_LE(lines, object["batches"].get<std::size_t>());
  EXPECT_GE(lines + 1, object["batches"].get<std::size_t>());
}

TEST(epoch, ctrl_c_stops_it_in_order_and_says_what_was_done) { expect_stop(SIGINT, 130, "Ctrl-C"); }

TEST(epoch, ctrl_c_names_the_reads_that_the_kernel_does_not_let_go_of_and_waits) {
  const photo_folder photos;
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(photos.path())) {
    if (entry.is_regular_file()) file = entry.path();
  }
  held_file held(file);
  if (!held.held()) GTEST_SKIP() << "no leases on this file system";
  command process(epoch(photos, {"--reader", "preadv"}), command::streams::terminal);
  while (!held.somebody_waits()) std::this_thread::yield();
  process.signal(SIGINT);
  process.read_until("Ctrl-C once more");
  held.let_go();
  const ended result = process.wait();
  EXPECT_EQ(result.exit_code, 130);
  // On a busy machine others are still under way.
  EXPECT_THAT(result.out, ContainsRegex("waiting for (1 read|[0-9]+ reads) that the kernel does not let go of"));
  EXPECT_THAT(result.out, HasSubstr(file.string() + " at offset 0"));
}

TEST(epoch, sigterm_stops_it_likewise) { expect_stop(SIGTERM, 143, "SIGTERM"); }

TEST(epoch, ctrl_c_works_where_a_shell_started_it_in_the_background) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string file = (directory.path() / "batches").string();
  // POSIX shells start background jobs with SIGINT ignored; children inherit that.
  ASSERT_NE(::signal(SIGINT, SIG_IGN), SIG_ERR);
  command process(epoch(photos, {"--epochs", "1000000", "--batches", file}));
  ASSERT_NE(::signal(SIGINT, SIG_DFL), SIG_ERR);
  wait_for_lines(file);
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 130);
}

TEST(epoch, ctrl_c_at_any_moment_of_the_start_ends_with_130_or_a_finished_run) {
  const photo_folder photos;
  for (int delay_ms = 0; delay_ms < 60; delay_ms += 4) {
    command process(epoch(photos, {"--epochs", "1000000", "--json"}));
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));  // Any moment is a good one to be tried.
    process.signal(SIGINT);
    const ended result = process.wait();
    EXPECT_EQ(result.exit_code, 130) << "after " << delay_ms << " ms: " << result.err;
    // Before the command has taken over the signal the kernel ends it, and nothing is printed.
    if (!result.out.empty()) EXPECT_EQ(result.json().value("interrupted", false), true);
  }
}

// --- what can go wrong --------------------------------------------------------------------------------------------------

TEST(epoch, a_source_that_is_not_there_is_named) {
  const ended process = run({"epoch", "/no/such/folder"});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_EQ(process.out, "");
  expect_one_line(process, "leat epoch: /no/such/folder: ");
}

TEST(epoch, a_failed_run_is_a_json_object_too) {
  const ended process = run({"epoch", "/no/such/folder", "--json"});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.json().value("error", ""), HasSubstr("/no/such/folder"));
  EXPECT_EQ(process.json().value("samples", -1), 0);
}

TEST(epoch, an_empty_folder_is_an_error) {
  const temporary_directory directory;
  const ended process = run({"epoch", directory.path().string()});
  EXPECT_EQ(process.exit_code, 2);
  expect_one_line(process, "leat epoch: ");
  EXPECT_THAT(process.err, HasSubstr(directory.path().string()));
}

TEST(epoch, a_full_disk_behind_standard_output_is_an_error) {
  const photo_folder photos;
  const ended process = run_into("/dev/full", epoch(photos, {"--json"}));
  EXPECT_EQ(process.exit_code, 1);
  expect_one_line(process, "leat epoch: cannot write to standard output: ");
}

TEST(epoch, a_closed_standard_output_is_an_error_and_takes_no_other_file_for_it) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string err = (directory.path() / "err").string();
  const std::string line =
      "\"$LEAT_COMMAND\" epoch '" + photos.path().string() + "' --size 32 --json >&- 2>'" + err + "'";
  const int status = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(text_of(err),
              StartsWith("leat epoch: cannot write to standard output: Bad file descriptor; it is closed"));
}

TEST(epoch, files_that_cannot_be_written_are_named_with_what_to_do) {
  const photo_folder photos;
  for (const char* option : {"--batches", "--journal", "--npy", "--trace"}) {
    const ended process = run(epoch(photos, {option, "/proc/no/such/place"}));
    EXPECT_EQ(process.exit_code, 1) << option;
    expect_one_line(process, "leat epoch: cannot ");
    EXPECT_THAT(process.err, HasSubstr("/proc/no/such/place")) << option;
  }
  const ended full = run(epoch(photos, {"--batches", "/dev/full"}));
  EXPECT_EQ(full.exit_code, 1);
  expect_one_line(full, "leat epoch: cannot write /dev/full: No space left on device; ");
}

TEST(epoch, a_trace_a_record_and_receipts_replace_their_own_kind_and_no_other_file) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string labels = (directory.path() / "labels.csv").string();
  const std::string packed = (directory.path() / "labels.gz").string();
  write_file(labels, "name,class\n");
  write_file(packed, std::string_view("\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0", 20));
  for (const char* const option : {"--trace", "--record", "--receipts"}) {
    for (const std::string& path : {labels, packed}) {
      const std::string before = text_of(path);
      const ended process = run(epoch(photos, {option, path}));
      EXPECT_EQ(process.exit_code, 2) << option;
      EXPECT_THAT(process.err,
                  AllOf(HasSubstr(path), HasSubstr("would replace a file that is"), HasSubstr("give another name")))
          << option;
      EXPECT_EQ(text_of(path), before) << option;
    }
    for (const char* const name : {"own", "own.gz"}) {
      const std::string own = (directory.path() / (option + std::string(name))).string();
      EXPECT_EQ(run(epoch(photos, {option, own})).exit_code, 0) << option;
      EXPECT_EQ(run(epoch(photos, {option, own})).exit_code, 0) << option << " again";
    }
  }
}

TEST(epoch, sigusr1_writes_the_trace_at_once_and_the_run_goes_on) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string trace = (directory.path() / "t.json").string();
  const std::string progress = (directory.path() / "lines").string();
  command process(epoch(photos, {"--epochs", "1000000", "--digest", "off", "--trace", trace, "--progress", progress}));
  while (!std::filesystem::exists(progress)) std::this_thread::yield();
  process.signal(SIGUSR1);
  for (int i = 0; i < 3; ++i) {
    while (!std::filesystem::exists(trace)) std::this_thread::yield();
    EXPECT_TRUE(json::parse(text_of(trace)).contains("traceEvents"));
    std::filesystem::remove(trace);
    process.signal(SIGUSR1);
  }
  process.signal(SIGINT);
  const ended result = process.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.err, HasSubstr("leat epoch: stopped by Ctrl-C after "));
  EXPECT_TRUE(json::parse(text_of(trace)).contains("traceEvents"));
}

TEST(epoch, sigusr1_ends_a_run_without_a_trace_as_any_program) {
  const photo_folder photos;
  command process(epoch(photos, {"--epochs", "1000000", "--digest", "off"}));
  process.signal(SIGUSR1);
  EXPECT_TRUE(process.wait().killed);
}

TEST(epoch, names_that_would_break_a_line_do_not) {
  const temporary_directory directory;
  const std::filesystem::path folder = directory.path() / "line\nbreak";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a\n.jpg").put('x');
  const ended process = run({"epoch", folder.string()});
  EXPECT_EQ(process.exit_code, 1);
  expect_one_line(process, "leat epoch: ");
}

TEST(epoch, one_sample_and_a_batch_larger_than_the_source_are_fine) {
  const temporary_directory directory;
  const std::vector<std::uint8_t> file = photo_jpeg(1, 40, 30);
  std::ofstream(directory.path() / "one.jpg", std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  const ended process = run({"epoch", directory.path().string(), "--json", "--batch-size", "1000"});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_EQ(process.json().value("samples", 0), 1);
  EXPECT_EQ(process.json().value("batches", 0), 1);
}

TEST(epoch, on_a_device_that_is_not_there_stays_on_the_host_and_says_why) {
  const photo_folder photos;
  const std::string expected = digest_of(photos);
  const json object = run_json(photos, {"--device", "auto"});
  const json device = object.at("device");
  if (device.at("use") != "host") GTEST_SKIP() << "there is a GPU here: " << device;
  EXPECT_THAT(device.at("why").get<std::string>(), AnyOf(HasSubstr("no GPU to be had"), HasSubstr("no CUDA")));
  EXPECT_EQ(object.at("digest"), expected);
  const json kept = run_json(photos, {"--device", "auto", "--device-cache", "8MiB"});
  EXPECT_EQ(kept.at("digest"), expected);
  EXPECT_EQ(kept.at("device").at("cache").at("use"), "off");
  EXPECT_EQ(kept.at("device").at("cache").at("why"), "batches stay on the host");
  EXPECT_EQ(kept.at("device").at("cache").at("rows_from_cache"), 0);
  EXPECT_THAT(run(epoch(photos, {"--device", "auto", "--device-cache", "8MiB"})).out,
              HasSubstr("device cache off: batches stay on the host\n"));
  // Who names one wants that one.
  const ended named = run(epoch(photos, {"--device", "cuda:0"}));
  EXPECT_EQ(named.exit_code, 1);
  expect_one_line(named, "leat epoch: batches cannot go to cuda:0: ");
  EXPECT_THAT(named.err, HasSubstr("--device auto"));
}

TEST(epoch, decodes_photo_packs_on_the_host_where_there_is_no_device_and_says_why) {
  const photo_folder photos;
  const std::string expected = digest_of(photos);
  const json chosen = run_json(photos, {"--decode-on", "auto"});
  EXPECT_EQ(chosen.at("digest"), expected);
  EXPECT_EQ(chosen.at("photo_packs").at("use"), "host");
  EXPECT_EQ(chosen.at("photo_packs").at("why"), "batches stay on the host");
  EXPECT_EQ(chosen.at("photo_packs").at("on_device"), 0);
  const ended refused = run(epoch(photos, {"--decode-on", "device"}));
  EXPECT_EQ(refused.exit_code, 1);
  expect_one_line(refused, "leat epoch: photo packs cannot be decoded on a device: --device is the host");
  EXPECT_THAT(refused.err, HasSubstr("--decode-on auto"));
}

TEST(epoch, never_decodes_on_the_host_what_was_to_be_decoded_by_nvjpeg) {
  const photo_folder photos;
  EXPECT_EQ(run_json(photos, {"--jpeg-decoder", "turbo"}).at("digest"), digest_of(photos));
  const ended refused = run(epoch(photos, {"--jpeg-decoder", "nvjpeg", "--digest", "off"}));
  EXPECT_EQ(refused.exit_code, 1);
  expect_one_line(refused, "leat epoch: image 'jpg': --jpeg-decoder nvjpeg decodes on a GPU: --device is the host");
  EXPECT_THAT(refused.err, HasSubstr("--jpeg-decoder turbo"));
}

TEST(epoch, numa_is_auto_off_or_the_number_of_a_node) {
  const photo_folder photos;
  EXPECT_EQ(run_json(photos, {"--numa", "off"}).at("placement"), (json{{"use", "off"}, {"why", "asked for"}}));
  EXPECT_THAT(run(epoch(photos, {"--numa", "near"})).err, HasSubstr("auto, off or the number of a node"));
  const ended refused = run(epoch(photos, {"--numa", "99"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("NUMA node 99"));
  if (!std::filesystem::exists("/sys/devices/system/node/node0")) GTEST_SKIP() << "this kernel lists no NUMA nodes";
  const json bound = run_json(photos, {"--numa", "0"});
  EXPECT_EQ(bound.at("placement").at("use"), "node 0");
  EXPECT_EQ(bound.at("digest"), digest_of(photos));
  EXPECT_THAT(run(epoch(photos, {"--numa", "0"})).out, HasSubstr("node 0: asked for"));
}

TEST(epoch, device_is_auto_host_or_a_gpus_number) {
  const photo_folder photos;
  for (const char* where : {"cuda", "cuda:", "cuda:x", "cuda:-1", "gpu", "cuda:0x"}) {
    const ended process = run(epoch(photos, {"--device", where}));
    EXPECT_EQ(process.exit_code, 2) << where;
    EXPECT_THAT(process.err, HasSubstr("give auto, host or cuda:N")) << where;
  }
  const ended both = run(epoch(photos, {"--device", "auto", "--npy", "/tmp"}));
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--npy and --batches look at batches on the host"));
}

// Two thirds of the samples are of class 0.
std::string shard_of_classes(const std::filesystem::path& path, int samples) {
  archive tar;
  for (int i = 0; i < samples; ++i) {
    const std::vector<std::uint8_t> picture = photo_jpeg(static_cast<std::uint64_t>(i), 40, 30);
    const std::string key = std::to_string(100 + i);
    tar.file(key + ".jpg", {reinterpret_cast<const char*>(picture.data()), picture.size()});
    tar.file(key + ".cls", std::to_string(i < samples * 2 / 3 ? 0 : i % 2 + 1));
  }
  return tar.end().save(path);
}

std::vector<std::uint64_t> ids_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"epoch"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  all.insert(all.end(), {"--size", "32", "--seed", "7", "--rows", "--batches", "-"});
  const ended process = run(all);
  EXPECT_EQ(process.exit_code, 0) << process.err;
  std::vector<std::uint64_t> ids;
  for (const std::string& line : lines_of(process.out)) {
    const json parsed = json::parse(line);
    for (const json& id : parsed.at("ids")) ids.push_back(id.get<std::uint64_t>());
  }
  return ids;
}

TEST(epoch, takes_the_samples_in_the_order_that_is_asked_for) {
  const temporary_directory root;
  const std::string a = shard_of_classes(root.path() / "a.tar", 30);
  const std::string b = shard_of_classes(root.path() / "b.tar", 20);
  ASSERT_EQ(ids_of({a, "--shuffle"}).size(), 30U);
  EXPECT_EQ(ids_of({a, "--order", "shuffled"}), ids_of({a, "--shuffle"}));
  EXPECT_EQ(ids_of({a, "--order", "sequential"}), ids_of({a, "--no-shuffle"}));

  const std::vector<std::uint64_t> repeated = ids_of({a, "--order", "repeated:2"});
  ASSERT_EQ(repeated.size(), 60U);
  for (std::size_t i = 0; i < 60; i += 2) EXPECT_EQ(repeated[i], repeated[i + 1]);

  std::vector<int> of_class(3);
  for (const std::uint64_t id : ids_of({a, "--order", "balanced:cls"})) ++of_class[id < 20 ? 0 : id % 2 + 1];
  EXPECT_EQ(of_class, (std::vector<int>{10, 10, 10})) << "read out of the shard";

  std::size_t of_b = 0;
  const std::vector<std::uint64_t> mixed = ids_of({a, b, "--mixture", "0.7,0.3"});
  ASSERT_EQ(mixed.size(), 50U);
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    of_b += mixed[i] >= 30;
    EXPECT_LT(std::abs(static_cast<double>(of_b) - 0.3 * static_cast<double>(i + 1)), 1.0);
  }
  EXPECT_EQ(ids_of({a, "--order", "bucketed:cls:8"}).size(), 30U);
  EXPECT_EQ(ids_of({a, b, "--shuffle-blocks", "1"}), ids_of({a, b, "--order", "shuffled_blocks:1"}));
  EXPECT_EQ(ids_of({a, "--shuffle", "--fields", "cls"}), ids_of({a, "--shuffle"}));

  const std::vector<std::uint64_t> by_node = ids_of({a, b, "--shuffle", "--node-local", "2", "--batch-size", "8"});
  ASSERT_EQ(by_node.size(), 40U) << "as many of each as the smaller shard has";
  for (std::size_t i = 0; i < by_node.size(); ++i) EXPECT_EQ(by_node[i] >= 30, i % 8 >= 4);
  EXPECT_EQ(ids_of({a, b, "--shuffle", "--sticky", "2", "--batch-size", "8"}), by_node) << "its name before";
  EXPECT_EQ(ids_of({a, b, "--shuffle", "--node-local", "0"}), ids_of({a, b, "--shuffle"}));
  EXPECT_EQ(ids_of({a, b, "--shuffle-blocks", "1", "--node-local", "2"}).size(), 40U);

  const std::vector<std::uint64_t> kept = ids_of({a, "--shuffle", "--batch-size", "8", "--last", "keep"});
  const std::vector<std::uint64_t> padded = ids_of({a, "--shuffle", "--batch-size", "8", "--last", "pad"});
  EXPECT_EQ(kept.size(), 30U);
  ASSERT_EQ(padded.size(), 32U);
  EXPECT_EQ(padded[30], kept[0]);
  EXPECT_EQ(padded[31], kept[1]);
  EXPECT_EQ(ids_of({a, "--shuffle", "--batch-size", "8", "--last", "drop"}).size(), 24U);
}

TEST(epoch, makes_tokens_of_texts) {
  const temporary_directory directory;
  const std::string lines =
      write_file(directory.path() / "a.jsonl", "{\"text\": \"the others\"}\n{\"text\": \"and 12345\"}\n");
  const std::string words = std::string(LEAT_TEST_DATA) + "/tokenizers/gpt2.json";
  const auto digest_of = [&](std::vector<std::string> further) {
    std::vector<std::string> all = {"epoch", lines, "--json"};
    all.insert(all.end(), further.begin(), further.end());
    const ended process = run(all);
    EXPECT_EQ(process.exit_code, 0) << process.err;
    return process.json()["digest"].get<std::string>();
  };
  const std::string as_tokens = digest_of({"--tokenizer", words});
  EXPECT_NE(as_tokens, digest_of({}));
  EXPECT_NE(as_tokens, digest_of({"--tokenizer", words, "--text-tokens", "4"}));
  EXPECT_EQ(as_tokens, digest_of({"--tokenizer", words, "--threads", "1"}));
}

TEST(epoch, packs_texts_and_says_which_share_of_positions_is_tokens) {
  const temporary_directory directory;
  std::string content;
  for (int i = 0; i < 50; ++i) content += "{\"text\": \"the others and 12345\"}\n";
  const std::string lines = write_file(directory.path() / "a.jsonl", content);
  const std::string words = std::string(LEAT_TEST_DATA) + "/tokenizers/gpt2.json";
  const ended by_stream =
      run({"epoch", lines, "--tokenizer", words, "--pack", "64", "--batch-size", "3", "--index-use", "off"});
  EXPECT_EQ(by_stream.exit_code, 0) << by_stream.err;
  EXPECT_THAT(by_stream.out + by_stream.err, HasSubstr("% of positions are tokens"));
  const auto digest_of = [&](const std::string& by) {
    const ended process = run({"epoch", lines, "--tokenizer", words, "--pack", by, "--json", "--index-use", "off"});
    EXPECT_EQ(process.exit_code, 0) << process.err;
    return process.json()["digest"].get<std::string>();
  };
  EXPECT_NE(digest_of("64"), digest_of("64:best_fit"));
  // One rank has all rows, however they are dealt.
  const ended dealt =
      run({"epoch", lines, "--tokenizer", words, "--pack", "64", "--balance-cost", "--json", "--index-use", "off"});
  const ended plain = run({"epoch", lines, "--tokenizer", words, "--pack", "64", "--json", "--index-use", "off"});
  EXPECT_EQ(dealt.json().at("digest"), plain.json().at("digest"));
  const ended undealt = run({"epoch", lines, "--balance-cost"});
  EXPECT_EQ(undealt.exit_code, 2);
  EXPECT_THAT(undealt.err, HasSubstr("give --pack LENGTH"));
  const ended none = run({"epoch", lines, "--tokenizer", words, "--pack", "64:worst_fit"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("packed:LENGTH"));
  const ended without = run({"epoch", lines, "--pack", "64"});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("no field of the loader has tokens"));
  EXPECT_THAT(by_stream.out + by_stream.err, HasSubstr(" pieces in "));
  const ended few = run({"epoch", lines, "--tokenizer", words, "--pack", "64", "--batch-size", "900", "--drop-last"});
  EXPECT_THAT(few.err, HasSubstr("--drop-last leaves out all rows, since a batch has 900"));
  const std::string empty = write_file(directory.path() / "b.jsonl", "{\"text\": \"\"}\n{\"text\": \"\"}\n");
  EXPECT_THAT(run({"epoch", empty, "--tokenizer", words, "--pack", "64"}).err, HasSubstr("no text has a token"));
}

TEST(epoch, makes_chats_to_tokens_and_labels) {
  const temporary_directory directory;
  std::string content;
  for (int i = 0; i < 30; ++i) {
    content += R"({"id": "a", "messages": [{"role": "user", "content": "the others"}, )"
               R"({"role": "assistant", "content": "and 12345"}]})";
    content += "\n";
  }
  const std::string lines = write_file(directory.path() / "chats.jsonl", content);
  const std::string words = std::string(LEAT_TEST_DATA) + "/tokenizers/chat.json";
  const auto epoch_of = [&](std::vector<std::string> further) {
    std::vector<std::string> all = {"epoch",  lines,         "--tokenizer", words,
                                    "--json", "--index-use", "off",         "--no-shuffle"};
    all.insert(all.end(), further.begin(), further.end());
    return run(all);
  };
  const auto digest_of = [&](const std::vector<std::string>& further) {
    const ended process = epoch_of(further);
    EXPECT_EQ(process.exit_code, 0) << process.err;
    return process.json()["digest"].get<std::string>();
  };
  // What a program of the library makes of them.
  const tokenizer known = tokenizer::open(words);
  const auto digest_made = [&](const chat& how, const std::string& template_name, std::optional<order> by = {}) {
    loader_options options;
    options.batch_size = 64;
    options.shuffle = false;
    options.epochs = 1;
    options.digests = true;
    options.order = std::move(by);
    loader train(open(lines), options, text("id"), how.with_template(template_name));
    for (const batch& got : train.blocking()) static_cast<void>(got);
    return train.state().run_digest->hex();
  };
  const chat plain("messages", known);
  EXPECT_EQ(digest_of({"--chat", "llama3"}), digest_made(plain, "llama3"));
  EXPECT_EQ(digest_of({"--chat", "chatml", "--mask-prompt"}), digest_made(plain.mask_prompt(), "chatml"));
  EXPECT_EQ(digest_of({"--chat", "chatml", "--text-tokens", "20"}), digest_made(plain.truncate(20).pad(20), "chatml"));
  EXPECT_EQ(digest_of({"--chat", "chatml", "--mask-prompt", "--pack", "64:best_fit"}),
            digest_made(plain.mask_prompt(), "chatml", packed(64, {.by = packed_by::best_fit, .shuffle = false})));
  const ended unsure = epoch_of({"--chat", "auto"});
  EXPECT_EQ(unsure.exit_code, 2);
  EXPECT_THAT(unsure.err, HasSubstr("name its template"));
  const ended other = epoch_of({"--chat", "alpaca"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("'alpaca' will not do; give auto|chatml|qwen2|qwen2.5|llama2|llama3|llama3.1|"
                                   "mistral|gemma"));
  const std::string unnamed = write_file(directory.path() / "b.jsonl", "{\"a\": \"x\", \"b\": \"y\", \"n\": 1}\n");
  const ended none = run({"epoch", unnamed, "--tokenizer", words, "--chat", "chatml"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("none of the fields is 'messages'; there is a, b"));
}

TEST(epoch, refuses_orders_that_are_none) {
  const temporary_directory root;
  const std::string a = shard_of_classes(root.path() / "a.tar", 30);
  const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
      {{"--order", "random"}, "--order random: give sequential, shuffled, repeated:N"},
      {{"--order", "repeated:0"}, "--order repeated:0: '0' is no number from 1 to 4294967295"},
      {{"--order", "repeated"}, "give sequential, shuffled"},
      {{"--order", "balanced:clas"}, "--order balanced: the dataset has no column 'clas'"},
      {{"--order", "bucketed:cls"}, "give sequential, shuffled"},
      {{"--order", "bucketed:jpg:10"}, "above TOKENS_MAX = 10"},
      {{"--mixture", "0.7,0.3"}, "--mixture 0.7,0.3: 2 shares for 1 source"},
      {{"--mixture", "0.7,-1"}, "'-1' is no share"},
      {{"--mixture", "1", "--order", "shuffled"}, "--mixture"},
      {{"--order", "shuffled", "--no-shuffle"}, "--no-shuffle"},
      {{"--order", "shuffled", "--shuffle-blocks", "4"}, "--shuffle-blocks"},
      {{"--shuffle-blocks", "x"}, "'x' is no number"},
      {{"--node-local", "x"}, "--node-local"},
      {{"--node-local", "3", "--batch-size", "8"},
       "--node-local: a global batch of 8 rows, and 3 nodes; give a --batch-size, or"},
      {{"--node-local", "2", "--mixture", "1"}, "--mixture"},
      {{"--node-local", "2", "--order", "repeated:2"}, "--node-local: repeated cannot be divided by nodes"},
      {{"--fields", "clas"}, "no field 'clas'; there is"},
      {{"--last", "pad", "--drop-last"}, "--drop-last"},
      {{"--last", "never"}, "--last"}};
  for (const auto& [arguments, message] : all) {
    std::vector<std::string> call = {"epoch", a, "--size", "32"};
    call.insert(call.end(), arguments.begin(), arguments.end());
    const ended process = run(call);
    EXPECT_EQ(process.exit_code, 2) << process.err;
    EXPECT_THAT(process.err, HasSubstr(message));
  }
}

// An index of a source that changed a moment ago is not kept.
void let_clock_tick() { std::this_thread::sleep_for(std::chrono::milliseconds(25)); }

TEST(epoch, gives_the_same_digest_with_and_without_an_index) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string shards = (directory.path() / "p-{0..2}.tar").string();
  ASSERT_EQ(run({"pack", photos.path().string(), shards}).exit_code, 0);
  const std::string kept = (directory.path() / "kept").string();
  let_clock_tick();
  for (const std::string& source : {photos.path().string(), shards}) {
    const auto report = [&](const std::string& use) {
      const ended process =
          run({"epoch", source, "--size", "32", "--batch-size", "5", "--json", "--index", kept, "--index-use", use});
      EXPECT_EQ(process.exit_code, 0) << process.err;
      return process.json();
    };
    const nlohmann::json without = report("off");
    EXPECT_EQ(without.at("index").at("use"), "none");
    const auto expect = [&](const std::string& use, const std::string& outcome, const std::string& why) {
      const nlohmann::json seen = report(use);
      EXPECT_EQ(seen.at("index").at("use"), outcome) << use;
      EXPECT_THAT(seen.at("index").at("why").get<std::string>(), ::testing::HasSubstr(why));
      EXPECT_EQ(seen.at("digest"), without.at("digest")) << use;
    };
    expect("check", "written", "there was none");
    expect("check", "used", kept);
    expect("trust", "used", kept);
    expect("rebuild", "written", "anew");
  }
  EXPECT_EQ(run({"epoch", shards, "--index-use", "sometimes"}).exit_code, 2);
}

// A file that is written in place does not change its folder.
TEST(epoch, builds_a_stale_index_anew_and_says_so) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string kept = (directory.path() / "kept").string();
  const std::vector<std::string> words{
      "epoch", photos.path().string(), "--size", "32", "--batch-size", "5", "--json", "--index", kept};
  let_clock_tick();
  ASSERT_EQ(run(words).json().at("index").at("use"), "written");
  std::filesystem::path changed;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(photos.path())) {
    if (entry.is_regular_file()) changed = entry.path();
  }
  const std::uintmax_t size = std::filesystem::file_size(changed);
  ASSERT_NE(size % 4096, 0U) << "one more byte would not be noticed";
  for (const std::uintmax_t other : {size + 1, size + 100'000, size}) {
    SCOPED_TRACE(std::to_string(size) + " bytes became " + std::to_string(other));
    std::filesystem::resize_file(changed, other);
    const ended process = run(words);
    EXPECT_EQ(process.exit_code, 1);
    EXPECT_THAT(process.err, ::testing::AllOf(::testing::HasSubstr(changed.string()),
                                              ::testing::HasSubstr("it has been built anew: run this again")));
    const ended again = run(words);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.json().at("index").at("use"), "used");
  }
  // It is that sample's fault, and may be a disk's: nothing is built anew.
  std::filesystem::resize_file(changed, size + 10);
  std::vector<std::string> skipping = words;
  skipping.insert(skipping.end(), {"--on-corrupt", "skip"});
  const ended without = run(skipping);
  EXPECT_EQ(without.json().at("quarantined"), 1);
  EXPECT_THAT(without.err, ::testing::HasSubstr("the index is stale: --index-use rebuild"));
}

}  // namespace
}  // namespace leat::testing
