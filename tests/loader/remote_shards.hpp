// Shards on a disk and the same ones at a server.
#pragma once

#include "tests/datasets/archive.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/samples.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

/// 20 samples of up to 30 kB.
inline std::string shard_of(int number) {
  archive made;
  for (int i = 0; i < 20; ++i) {
    seeded_random random(static_cast<std::uint64_t>(100 * number + i));
    std::vector<std::byte> content(1 + random.below(30'000));
    fill_seeded(static_cast<std::uint64_t>(100 * number + i), 0, content);
    const std::string key = std::to_string(1'000 * number + i);
    made.file(key + ".bin", {reinterpret_cast<const char*>(content.data()), content.size()});
    made.file(key + ".cls", std::to_string(i % 10));
  }
  return std::move(made.end().bytes());
}

class remote_shards : public ::testing::Test {
 protected:
  static constexpr int shards = 3;

  remote_shards() {
    for (int i = 0; i < shards; ++i) put("train-" + std::to_string(i) + ".tar", shard_of(i));
  }
  void put(const std::string& name, const std::string& content) {
    server_.put(name, content);
    write_file(folder_.path() / name, content);
  }
  [[nodiscard]] dataset here(const std::string& name) const { return open((folder_.path() / name).string()); }
  [[nodiscard]] dataset there(const std::string& name, const remote_options& options = {.allow_http = true}) const {
    return open(server_.address(name), {.remote = options});
  }
  static std::vector<field> fields() { return {bytes("bin"), label("cls")}; }

  const temporary_directory folder_;
  fault_server server_;
};

}  // namespace leat::testing
