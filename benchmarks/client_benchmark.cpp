// What does it cost a client to fetch ranges over HTTP, beside libcurl?
//
// One object is asked for by ranges, so many in flight, over connections that are kept, into memory of each request's own: by the client that
// objects of a store are read with, and by libcurl's multi interface on one thread, with a receive buffer as large as it takes (512 KiB) and
// with the one that it has by itself (16 KiB). Rounds are interleaved; figures are medians with their lowest and highest. CPU is this process's,
// the kernel's share of receiving included; the server's is another process's. Where libcurl was not there to build with, its lines are left out.
//
//     client_benchmark URL [--ca-file FILE] [--range-bytes 1048576] [--in-flight 16] [--requests 2048] [--rounds 5]
//     client_benchmark --toy      of a server of its own
//
// A server to ask, for example:
//
//     printf 'daemon off; pid nginx.pid; events {} http { access_log off; server { listen 127.0.0.1:8080; root %s; keepalive_requests 100000000; } }' \
//       "$PWD" >nginx.conf && nginx -p "$PWD" -c nginx.conf -e stderr
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "benchmarks/range_server.hpp"
#include "io/remote/address.hpp"
#include "io/remote/http_client.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/remote.hpp>

#include <absl/strings/str_format.h>

#ifdef LEAT_HAVE_CURL
#include <curl/curl.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::benchmarks {
namespace {

struct settings {
  std::string url;
  std::string ca_file;
  std::uint64_t range_bytes = std::uint64_t{1} << 20;
  std::uint32_t in_flight = 16;
  std::uint64_t requests = 2048;
  std::uint64_t rounds = 5;
};

/// The ranges that are asked for, one after the other, around the object's end.
class ranges {
 public:
  ranges(const settings& how, std::uint64_t object_bytes)
      : bytes_(how.range_bytes), count_(how.requests), there_(object_bytes / how.range_bytes) {
    if (there_ == 0)
      throw error(errc::usage, str_cat(how.url, ": it has ", object_bytes, " bytes, and a range ", bytes_));
  }

  /// Where the next one begins.
  [[nodiscard]] std::optional<std::uint64_t> next() noexcept {
    if (begun_ == count_) return std::nullopt;
    return begun_++ % there_ * bytes_;
  }

 private:
  const std::uint64_t bytes_;
  const std::uint64_t count_;
  const std::uint64_t there_;
  std::uint64_t begun_ = 0;
};

/// leat's client: what comes next is asked for when one has ended, on the client's thread.
class by_leat {
 public:
  explicit by_leat(const settings& how) : how_(how), where_(io::parse_address(how.url)), client_(options_of(how)) {}

  [[nodiscard]] std::uint64_t object_bytes() {
    std::byte one{};
    const auto looked = std::make_shared<io::fetch>();
    looked->where = &where_;
    looked->into = {&one, 1};
    client_.fetch_now(looked);
    if (looked->end != io::fetch_end::whole) throw failure_of(*looked);
    if (!looked->seen) throw error(errc::unsupported, str_cat(how_.url, ": the server has no ranges"));
    return looked->seen->size_bytes;
  }

  void fetch_all(ranges of) {
    of_.emplace(of);
    left_ = how_.in_flight;
    over_ = {};
    memory_.resize(how_.in_flight * how_.range_bytes);
    std::vector<std::shared_ptr<io::fetch>> first;
    for (std::uint32_t i = 0; i < how_.in_flight; ++i) {
      if (auto made = next(std::span(memory_).subspan(i * how_.range_bytes, how_.range_bytes))) {
        first.push_back(std::move(made));
      } else {
        --left_;
      }
    }
    client_.start(std::move(first));
    over_.get_future().wait();
    if (failed_) throw error(*failed_);
  }

 private:
  static remote_options options_of(const settings& how) {
    remote_options options;
    options.allow_http = true;
    options.ca_file = how.ca_file;
    options.connections_max = how.in_flight;
    return options;
  }
  [[nodiscard]] error failure_of(const io::fetch& ended) const {
    return {errc::io, str_cat(how_.url, ": ", ended.why)};
  }
  std::shared_ptr<io::fetch> next(std::span<std::byte> into) {
    const std::optional<std::uint64_t> offset = of_->next();
    if (!offset) return nullptr;
    auto made = std::make_shared<io::fetch>();
    made->where = &where_;
    made->offset = *offset;
    made->into = into;
    made->owner = this;
    made->ended = [](io::fetch& ended) noexcept { static_cast<by_leat*>(ended.owner)->have(ended); };
    return made;
  }
  void have(io::fetch& ended) {
    if (ended.end != io::fetch_end::whole && !failed_) failed_ = failure_of(ended);
    std::shared_ptr<io::fetch> another = failed_ ? nullptr : next(ended.into);
    if (another != nullptr) return client_.start({std::move(another)});
    if (--left_ == 0) over_.set_value();
  }

  const settings& how_;
  const io::address where_;
  std::optional<ranges> of_;
  std::vector<std::byte> memory_;
  std::uint32_t left_ = 0;
  std::optional<error> failed_;
  std::promise<void> over_;
  io::http_client client_;
};

#ifdef LEAT_HAVE_CURL
class by_curl {
 public:
  by_curl(const settings& how, long buffer_bytes) : how_(how), all_(curl_multi_init()) {
    memory_.resize(how.in_flight * how.range_bytes);
    for (std::uint32_t i = 0; i < how.in_flight; ++i) {
      transfer& each = *transfers_.emplace_back(std::make_unique<transfer>());
      each.into = std::span(memory_).subspan(i * how.range_bytes, how.range_bytes);
      each.easy = curl_easy_init();
      curl_easy_setopt(each.easy, CURLOPT_URL, how.url.c_str());
      curl_easy_setopt(each.easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
      curl_easy_setopt(each.easy, CURLOPT_FAILONERROR, 1L);
      if (buffer_bytes != 0) curl_easy_setopt(each.easy, CURLOPT_BUFFERSIZE, buffer_bytes);
      if (!how.ca_file.empty()) curl_easy_setopt(each.easy, CURLOPT_CAINFO, how.ca_file.c_str());
      curl_easy_setopt(each.easy, CURLOPT_PRIVATE, &each);
      curl_easy_setopt(each.easy, CURLOPT_WRITEDATA, &each);
      curl_easy_setopt(each.easy, CURLOPT_WRITEFUNCTION, &by_curl::take);
    }
  }
  by_curl(const by_curl&) = delete;
  by_curl& operator=(const by_curl&) = delete;
  ~by_curl() {
    for (const auto& each : transfers_) curl_easy_cleanup(each->easy);
    curl_multi_cleanup(all_);
  }

  void fetch_all(ranges of) {
    std::uint32_t under_way = 0;
    for (const auto& each : transfers_) under_way += begin(*each, of) ? 1 : 0;
    while (under_way != 0) {
      int running = 0;
      curl_multi_perform(all_, &running);
      int more = 0;
      while (const CURLMsg* const told = curl_multi_info_read(all_, &more)) {
        if (told->msg != CURLMSG_DONE) continue;
        const CURLcode result = told->data.result;
        char* of_handle = nullptr;
        curl_easy_getinfo(told->easy_handle, CURLINFO_PRIVATE, &of_handle);
        transfer& ended = *reinterpret_cast<transfer*>(of_handle);
        if (result != CURLE_OK || ended.received != how_.range_bytes)
          throw error(errc::io, str_cat(how_.url, ": libcurl: ", curl_easy_strerror(result)));
        curl_multi_remove_handle(all_, ended.easy);
        if (!begin(ended, of)) --under_way;
      }
      if (running != 0) curl_multi_poll(all_, nullptr, 0, 1000, nullptr);
    }
  }

 private:
  struct transfer {
    CURL* easy = nullptr;
    std::span<std::byte> into;
    std::size_t received = 0;
  };

  static std::size_t take(char* bytes, std::size_t one, std::size_t count, void* owner) {
    transfer& to = *static_cast<transfer*>(owner);
    if (count > to.into.size() - to.received) return 0;
    std::memcpy(to.into.data() + to.received, bytes, count);
    to.received += count;
    return one * count;
  }
  bool begin(transfer& with, ranges& of) {
    const std::optional<std::uint64_t> offset = of.next();
    if (!offset) return false;
    with.received = 0;
    curl_easy_setopt(with.easy, CURLOPT_RANGE, str_cat(*offset, "-", *offset + how_.range_bytes - 1).c_str());
    curl_multi_add_handle(all_, with.easy);
    return true;
  }

  const settings& how_;
  CURLM* const all_;
  std::vector<std::byte> memory_;
  std::vector<std::unique_ptr<transfer>> transfers_;
};
#endif

struct line {
  const char* name;
  figure cpu_s_per_gib = {};
  figure gib_per_s = {};
};

void run(const settings& how) {
  by_leat leat(how);
  const ranges all(how, leat.object_bytes());
  line leats{.name = "leat"};
#ifdef LEAT_HAVE_CURL
  by_curl curl(how, 512L << 10);
  by_curl curl_as_it_is(how, 0);
  line curls{.name = "libcurl multi, buffers of 512 KiB"};
  line curls_as_it_is{.name = "libcurl multi, buffers of 16 KiB"};
#endif
  const double gib = static_cast<double>(how.requests * how.range_bytes) / (1U << 30);
  const auto measure = [&](line& to, auto& client) {
    const double began_s = wall_s();
    const double began_cpu_s = process_cpu_s();
    client.fetch_all(all);
    to.cpu_s_per_gib.add((process_cpu_s() - began_cpu_s) / gib);
    to.gib_per_s.add(gib / (wall_s() - began_s));
  };
  for (std::uint64_t round = 0; round < how.rounds; ++round) {
    measure(leats, leat);
#ifdef LEAT_HAVE_CURL
    measure(curls, curl);
    measure(curls_as_it_is, curl_as_it_is);
#endif
  }
  absl::PrintF("%d ranges of %d bytes, %d in flight, %s\n%-36s %-24s %s\n", how.requests, how.range_bytes,
               how.in_flight, io::parse_address(how.url).shown, "", "CPU-s per GiB", "GiB/s");
  const auto print = [](const line& each) {
    const auto text = [](const figure& of) {
      return absl::StrFormat("%.3f (%.3f to %.3f)", of.median(), of.low(), of.high());
    };
    absl::PrintF("%-36s %-24s %s\n", each.name, text(each.cpu_s_per_gib), text(each.gib_per_s));
  };
  print(leats);
#ifdef LEAT_HAVE_CURL
  print(curls);
  print(curls_as_it_is);
#endif
}

void run_toy(settings how) {
  const testing::temporary_directory folder;
  std::ofstream(folder.path() / "a.bin", std::ios::binary) << std::string(200'000, 'a');
  const range_server server(folder.path().string());  // before any thread
  how.url = server.address() + "/after-0-ms/a.bin";
  how.range_bytes = 10'000;
  how.in_flight = 4;
  how.requests = 100;
  how.rounds = 1;
  run(how);
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("client_benchmark", [&] {
    benchmarks::settings how;
    bool is_toy = false;
    benchmarks::read_options(count, words,
                             {{"URL", how.url},
                              {"--ca-file", how.ca_file},
                              {"--range-bytes", how.range_bytes},
                              {"--in-flight", how.in_flight},
                              {"--requests", how.requests},
                              {"--rounds", how.rounds},
                              {"--toy", is_toy}});
    if (is_toy) return benchmarks::run_toy(how);
    if (how.url.empty()) throw leat::error(leat::errc::usage, "there is no URL; name an object to fetch ranges of");
    benchmarks::run(how);
  });
}
