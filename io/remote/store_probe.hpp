// What reading an object at an address is like: who may read it, how long an answer takes, how fast it comes. There in every build.
#pragma once

#include <leat/error.hpp>
#include <leat/remote.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace leat::io {

/// Fetches of one size over so many connections.
struct measured_rate {
  std::uint32_t connections = 0;
  std::uint64_t bytes_each = 0;
  std::uint64_t fetches = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;

  [[nodiscard]] double bytes_per_s() const noexcept { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
  [[nodiscard]] double fetches_per_s() const noexcept {
    return seconds > 0 ? static_cast<double>(fetches) / seconds : 0;
  }
};

/// What was found. Where something failed, `failure` says it and what follows from there on is not known.
struct store_facts {
  std::string address;  ///< as it may be shown
  std::string failure = {};
  errc failure_kind = errc::io;
  std::string keys_from = {};  ///< of s3://, in words and never their values: "AWS_ACCESS_KEY_ID"; "none: ..." without
  std::string region = {};     ///< of s3://
  std::string server = {};     ///< "https://host:9000"
  std::uint64_t size_bytes = 0;
  bool is_versioned = false;             ///< a change would be noticed: it has a tag, or a time that is old enough
  double first_s = 0;                    ///< the first answer: name, connection and TLS too
  std::vector<double> latencies_s = {};  ///< of small ranges on one connection, sorted
  std::vector<measured_rate> by_blocks = {};
  measured_rate by_samples = {};  ///< of as many connections as the last of `by_blocks`
  std::uint64_t bytes = 0;        ///< that all of this has fetched
};

/// How much is fetched; tests want less.
struct probe_effort {
  std::uint32_t latencies = 30;
  std::uint64_t latency_bytes = 4 << 10;
  std::vector<std::uint32_t> connections = {1, 4, 16};
  std::uint64_t block_bytes = 4 << 20;
  std::uint64_t sample_bytes = 100 << 10;
  std::chrono::milliseconds time_each = std::chrono::milliseconds(600);  ///< for latencies, and for each rate
  std::uint64_t bytes_each = 256 << 20;                                  ///< of each rate
};

/// Blocks for some three seconds. What fails is in the facts.
///   address   of one object
///   throws    error{errc::unsupported} in a build without this part
[[nodiscard]] store_facts look_at_store(const std::string& address, const remote_options& options,
                                        const probe_effort& effort = {});

}  // namespace leat::io
