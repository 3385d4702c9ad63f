// What does listing a folder of folders side by side spare, where each answer of the store takes long?
//
// A bucket of folders with objects is listed by list_objects() from a store that gives a thousand names an answer and waits before each: from
// one that knows a delimiter, so that the folders are listed side by side, and from one that knows none, so that one page follows another. The
// store is a thread of this process, and computes little while it waits. Rounds are interleaved, figures are medians with their lowest and
// highest; in both ways the names have to be the same ones.
//
//     listing_benchmark [--rounds 3] [--folders 300] [--objects 200] [--wait-ms 30] [--toy]
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "io/remote/describe_objects.hpp"
#include "tests/support/fault_server.hpp"

#include <leat/error.hpp>
#include <leat/remote.hpp>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leat::benchmarks {
namespace {

struct settings {
  std::uint64_t rounds = 3;
  std::uint64_t folders = 300;
  std::uint64_t objects = 200;
  std::uint32_t wait_ms = 30;
};

struct way {
  const char* name;
  bool knows_delimiter;
  figure seconds = {};
  std::uint64_t requests = 0;  // of the last round
};

void run(const settings& how) {
  constexpr std::size_t names_a_page = 1'000;
  testing::fault_server store;
  for (std::uint64_t folder = 0; folder < how.folders; ++folder) {
    for (std::uint64_t i = 0; i < how.objects; ++i)
      store.put(absl::StrFormat("bucket/train/n%06d/%06d.jpg", folder, i), "x");
  }
  store.set_rule([&how](const testing::served_request&) {
    return testing::http_fault{.what = testing::http_fault::kind::late, .wait = std::chrono::milliseconds(how.wait_ms)};
  });
  const remote_options options{.allow_http = true,
                               .endpoint = store.address(""),
                               .access_key_id = "KEYID",
                               .secret_access_key = "of no use to anybody"};
  way ways[] = {{.name = "one page after another", .knows_delimiter = false},
                {.name = "side by side", .knows_delimiter = true}};
  for (std::uint64_t round = 0; round < how.rounds; ++round) {
    std::vector<io::named_object> first;
    for (way& each : ways) {
      store.set_listing({.names_a_page = names_a_page, .knows_delimiter = each.knows_delimiter});
      const std::uint64_t before = store.requests();
      const double began = wall_s();
      std::vector<io::named_object> all = io::list_objects("s3://bucket/train/", options);
      each.seconds.add(wall_s() - began);
      each.requests = store.requests() - before;
      if (all.size() != how.folders * how.objects)
        throw error(errc::corrupt, str_cat(each.name, ": ", all.size(), " names"));
      if (first.empty()) first = all;
      const bool are_same =
          std::equal(all.begin(), all.end(), first.begin(), first.end(), [](const auto& a, const auto& b) {
            return a.address == b.address && a.size_bytes == b.size_bytes && a.etag == b.etag;
          });
      if (!are_same) throw error(errc::corrupt, str_cat(each.name, ": other names than one page after another"));
    }
  }
  absl::PrintF("%d folders of %d objects, %d ms an answer; medians of interleaved rounds: %d\n\n", how.folders,
               how.objects, how.wait_ms, how.rounds);
  absl::PrintF("%-24s %-24s %9s\n", "", "seconds", "requests");
  for (const way& each : ways) {
    absl::PrintF("%-24s %-24s %9d\n", each.name,
                 absl::StrFormat("%.2f (%.2f to %.2f)", each.seconds.median(), each.seconds.low(), each.seconds.high()),
                 each.requests);
  }
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("listing_benchmark", [&] {
    benchmarks::settings how;
    benchmarks::read_options(count, words,
                             {{"--rounds", how.rounds},
                              {"--folders", how.folders},
                              {"--objects", how.objects},
                              {"--wait-ms", how.wait_ms},
                              {"--toy", [&] {
                                 how.rounds = 1;
                                 how.folders = 40;
                                 how.wait_ms = 2;
                               }}});
    benchmarks::run(how);
  });
}
