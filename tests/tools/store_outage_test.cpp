// The command beside a store that is another process, and is killed, stopped or asks for less while an epoch runs: one digest, and an end at once.
#include "tests/datasets/archive.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

namespace fs = std::filesystem;
using steady = std::chrono::steady_clock;
using wrong = http_fault::kind;

double seconds_since(steady::time_point began) { return std::chrono::duration<double>(steady::now() - began).count(); }

/// Looks each millisecond whether it is so; false after 20 s.
bool comes_true(const std::function<bool()>& is_so) {
  for (const auto began = steady::now(); !is_so();) {
    if (seconds_since(began) > 20) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// A server of objects in a process of its own, at one port for good. The test's process has no other thread when it is started.
class store_process {
 public:
  /// What both processes see.
  struct shared_state {
    std::atomic<std::uint64_t> requests{0};
    std::atomic<std::uint16_t> port{0};
    std::atomic<bool> is_up{false};
    std::atomic<bool> refuses{false};
    std::atomic<bool> stalls{false};
  };

  explicit store_process(std::map<std::string, std::string> objects) : objects_(std::move(objects)) {
    void* const memory =
        ::mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    shared_ = new (memory) shared_state;
    start();
  }
  store_process(const store_process&) = delete;
  store_process& operator=(const store_process&) = delete;
  ~store_process() {
    kill();
    ::munmap(shared_, sizeof *shared_);
  }

  void start() {
    shared_->is_up = false;
    pid_ = ::fork();
    if (pid_ == 0) serve();
    if (pid_ < 0 || !comes_true([&] { return shared_->is_up.load(); })) throw std::runtime_error("no store");
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  void signal(int number) const { ::kill(pid_, number); }
  [[nodiscard]] shared_state& shared() const noexcept { return *shared_; }
  [[nodiscard]] std::string address(const std::string& name) const {
    return "http://127.0.0.1:" + std::to_string(shared_->port) + "/" + name;
  }

 private:
  [[noreturn]] void serve() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      fault_server server(fault_server::transport::plain, shared_->port, objects_);
      server.set_rule([this](const served_request& asked) {
        ++shared_->requests;
        if (shared_->refuses) return http_fault{.what = wrong::status, .status = 503};
        if (shared_->stalls && asked.value("Range") != "bytes=0-0")
          return http_fault{.what = wrong::stall, .bytes = 10};
        return http_fault();
      });
      shared_->port = server.port();
      shared_->is_up = true;
      for (;;) ::pause();
    } catch (const std::exception& failure) {
      std::cerr << "the store: " << failure.what() << "\n";
    }
    std::_Exit(1);
  }

  const std::map<std::string, std::string> objects_;
  shared_state* shared_ = nullptr;
  pid_t pid_ = -1;
};

/// 4,000 samples in two shards, and 200 photographs in a folder.
class store_outage : public ::testing::Test {
 protected:
  static constexpr int samples_each = 2'000;

  store_outage() {
    for (int s = 0; s < 2; ++s) {
      archive made;
      for (int i = 0; i < samples_each; ++i) {
        std::vector<std::byte> content(700);
        fill_seeded(static_cast<std::uint64_t>(s * samples_each + i), 0, content);
        made.file(std::to_string(i) + ".bin", {reinterpret_cast<const char*>(content.data()), content.size()});
      }
      const std::string name = "train-" + std::to_string(s) + ".tar";
      const std::string bytes = made.end().bytes();
      write_file(folder_.path() / name, bytes);
      objects_.emplace("bucket/" + name, bytes);
    }
    for (const fs::path& each : photos_.files())
      objects_.emplace("bucket/photos/" + fs::relative(each, photos_.path()).string(), text_of(each.string()));
    store_ = std::make_unique<store_process>(objects_);
  }
  static tools::make_photos_options many() {
    tools::make_photos_options made = photo_folder::small();
    made.count = 200;
    return made;
  }

  using arguments = std::vector<std::string>;
  [[nodiscard]] arguments epoch_of(const std::string& source, const arguments& more = {}) const {
    arguments all = {"epoch", source, "--batch-size", "8", "--json", "--index", (folder_.path() / "index").string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] arguments epoch_of_store(const std::string& name, arguments more = {}) const {
    more.insert(more.end(), {"--allow-http", "--endpoint", store_->address(""), "--anonymous"});
    return epoch_of("s3://bucket/" + name, more);
  }
  [[nodiscard]] arguments cached() {
    return {"--cache",
            (folder_.path() / ("cache-" + std::to_string(caches_++))).string(),
            "--cache-bytes",
            "1GiB",
            "--cache-block-bytes",
            "4KiB"};
  }
  static std::string digest_of(const ended& run) {
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.exit_code == 0 ? run.json().at("digest").get<std::string>() : run.err;
  }
  [[nodiscard]] bool has_asked(std::uint64_t since, std::uint64_t requests) const {
    return comes_true([&] { return store_->shared().requests >= since + requests; });
  }

  const temporary_directory folder_;
  const photo_folder photos_{many()};
  std::map<std::string, std::string> objects_;
  std::unique_ptr<store_process> store_;
  int caches_ = 0;
};

struct outage {
  std::string what;
  double seconds = 1;
  const char* source = "";
  bool is_cached = false;
};

/// A few of one and three seconds. $LEAT_OUTAGE_S, if set, is how long each kind of each source lasts, and $LEAT_OUTAGE names the one kind that is wanted.
std::vector<outage> outages() {
  constexpr const char* shards = "train-{0..1}.tar";
  constexpr const char* photos = "photos/";
  const auto asked_s = number_from_environment<double>("LEAT_OUTAGE_S", 0);
  if (asked_s == 0) {
    return {{"killed", 1, shards, false},  {"silent", 1, photos, false}, {"refusing", 1, shards, true},
            {"refusing", 3, photos, true}, {"killed", 1, photos, true},  {"silent", 1, shards, false}};
  }
  const char* const only = std::getenv("LEAT_OUTAGE");
  std::vector<outage> all;
  for (const char* const what : {"killed", "silent", "refusing"}) {
    if (only != nullptr && std::string(what) != only) continue;
    for (const char* const source : {shards, photos}) {
      for (const bool is_cached : {false, true}) all.push_back({what, asked_s, source, is_cached});
    }
  }
  return all;
}

TEST_F(store_outage, costs_the_time_that_it_lasts_and_two_seconds_at_the_most) {
  // Exact figures are printed: beside busy neighbours a run takes longer by itself.
  constexpr double of_a_busy_machine = 10;
  for (const auto& [what, away_s, source, is_cached] : outages()) {
    const auto epoch = [&] { return epoch_of_store(source, is_cached ? cached() : arguments{}); };
    const auto undisturbed_began = steady::now();
    const std::string digest = digest_of(run(epoch()));
    const double undisturbed_s = seconds_since(undisturbed_began);

    const std::uint64_t before = store_->shared().requests;
    const auto began = steady::now();
    command reads(epoch());
    ASSERT_TRUE(has_asked(before, 60));
    if (what == "killed") store_->kill();
    if (what == "silent") store_->signal(SIGSTOP);
    if (what == "refusing") store_->shared().refuses = true;
    std::this_thread::sleep_for(std::chrono::duration<double>(away_s));
    if (what == "killed") store_->start();
    if (what == "silent") store_->signal(SIGCONT);
    store_->shared().refuses = false;
    EXPECT_EQ(digest_of(reads.wait()), digest) << what;
    const double seconds = seconds_since(began);
    std::cout << what << " for " << away_s << " s, " << source << (is_cached ? " with" : " without")
              << " a cache: " << seconds << " s, undisturbed " << undisturbed_s << " s\n";
    EXPECT_LE(seconds, undisturbed_s + away_s + 2 + of_a_busy_machine) << what;
  }
}

// Deadlines count the time that a process ran.
TEST_F(store_outage, apart_a_run_that_is_stopped_for_longer_than_its_patience_goes_on) {
  const std::string files = digest_of(run(epoch_of((folder_.path() / "train-{0..1}.tar").string())));
  const std::uint64_t before = store_->shared().requests;
  command reads(epoch_of_store("train-{0..1}.tar", {"--patience", "1"}));
  ASSERT_TRUE(has_asked(before, 60));
  reads.signal(SIGSTOP);
  int how = 0;
  ASSERT_EQ(::waitpid(reads.pid(), &how, WUNTRACED), reads.pid());
  ASSERT_TRUE(WIFSTOPPED(how)) << "it had ended before";
  // The connections that it waits for break meanwhile.
  store_->kill();
  std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  store_->start();
  reads.signal(SIGCONT);
  EXPECT_EQ(digest_of(reads.wait()), files);
}

/// The least seconds from SIGTERM to the end of the command, of five runs or of fewer where one was soon enough.
double seconds_to_end(const std::vector<std::string>& arguments, const std::function<bool(const command&)>& hangs) {
  double least = 1e9;
  for (int tries = 0; tries < 5 && least > 0.2; ++tries) {
    command reads(arguments);
    EXPECT_TRUE(hangs(reads));
    const auto began = steady::now();
    reads.signal(SIGTERM);
    const ended ended = reads.wait();
    least = std::min(least, seconds_since(began));
    EXPECT_EQ(ended.exit_code, 143) << ended.err;
  }
  return least;
}

TEST_F(store_outage, of_a_store_whose_bodies_stall_holds_the_end_of_a_run_up_for_no_time) {
  // From then on they are opened by their index, and it is samples that stall.
  static_cast<void>(digest_of(run(epoch_of_store("train-{0..1}.tar"))));
  store_->shared().stalls = true;
  for (const bool is_cached : {false, true}) {
    std::uint64_t before = store_->shared().requests;
    const double seconds =
        seconds_to_end(epoch_of_store("train-{0..1}.tar", is_cached ? cached() : arguments{}), [&](const command&) {
          // A listing, the first bytes of two shards, and samples.
          return has_asked(std::exchange(before, store_->shared().requests.load()), 8);
        });
    EXPECT_LE(seconds, 0.2);
    std::cout << "ended after " << seconds << " s\n";
  }
}

/// A socket that listens, and is never accepted from.
class mute_listener {
 public:
  ///   room   for connections that wait to be accepted
  mute_listener(const char* numbers, int room) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    where_.sin_family = AF_INET;
    ::inet_pton(AF_INET, numbers, &where_.sin_addr);
    socklen_t bytes = sizeof where_;
    auto* const any = reinterpret_cast<sockaddr*>(&where_);
    if (::bind(socket_, any, sizeof where_) != 0 || ::listen(socket_, room) != 0 ||
        ::getsockname(socket_, any, &bytes) != 0) {
      throw std::runtime_error("no listener");
    }
  }
  mute_listener(const mute_listener&) = delete;
  mute_listener& operator=(const mute_listener&) = delete;
  ~mute_listener() {
    for (const int each : waiting_) ::close(each);
    ::close(socket_);
  }
  /// From here on no connection comes about.
  void fill() {
    for (int i = 0; i < 4; ++i) {
      waiting_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      static_cast<void>(::connect(waiting_.back(), reinterpret_cast<const sockaddr*>(&where_), sizeof where_));
    }
  }
  [[nodiscard]] std::string address() const {
    char numbers[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &where_.sin_addr, numbers, sizeof numbers);
    return std::string("https://") + numbers + ":" + std::to_string(ntohs(where_.sin_port)) + "/a.tar";
  }

 private:
  const int socket_;
  sockaddr_in where_{};
  std::vector<int> waiting_;
};

/// Whether its thread that talks to servers is there.
bool has_network_thread(pid_t process) {
  std::error_code gone;
  for (const auto& each : fs::directory_iterator("/proc/" + std::to_string(process) + "/task", gone)) {
    std::ifstream name(each.path() / "comm");
    if (std::string text; std::getline(name, text) && text == "leat-net") return true;
  }
  return false;
}

TEST(command_beside_a_store, that_hangs_in_a_name_a_connection_or_tls_ends_at_once) {
  mute_listener without_tls("127.0.0.1", 16);
  mute_listener full("127.0.0.3", 0);
  full.fill();
  for (const std::string& each : {without_tls.address(), full.address(), std::string("https://store.invalid/a.tar")}) {
    const double seconds = seconds_to_end({"epoch", each, "--batch-size", "4"}, [](const command& reads) {
      return comes_true([&] { return has_network_thread(reads.pid()); });
    });
    std::cout << each << ": ended after " << seconds << " s\n";
    EXPECT_LE(seconds, 0.2) << each;
  }
}

}  // namespace
}  // namespace leat::testing
