// A disk with the latency and the rate of a real one. It has the bytes of files that lie in the page cache, or no data: then what is read
// is what the memory held.
#pragma once

#include "io/files/source.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace leat::benchmarks {

///   latency_ns    of each read, however many are under way
///   bytes_per_s   of all together: a read begins to be transferred when the one before it is through
///   sector_bytes  whole sectors are transferred
///   paths         of the files; none: one file without data
struct timed_disk_options {
  std::uint64_t file_bytes = 0;
  std::uint64_t latency_ns = 0;
  double bytes_per_s = 0;
  std::uint64_t sector_bytes = 1;
  std::vector<std::string> paths = {};
};

/// The device is a thread ("disk-N") that sleeps until the next read is due and wakes the loop as an interrupt
/// would: its CPU is not the line's.
class timed_disk final : public io::source_description {
 public:
  explicit timed_disk(const timed_disk_options& options) : options_(options) {}

  [[nodiscard]] std::unique_ptr<io::source> connect(io::connector& loop) const override;
  [[nodiscard]] std::uint32_t files() const override {
    return options_.paths.empty() ? 1 : static_cast<std::uint32_t>(options_.paths.size());
  }
  /// With data it is a drive.
  [[nodiscard]] bool is_read_by_the_loop() const noexcept override { return !options_.paths.empty(); }
  [[nodiscard]] std::string file_name(std::uint32_t file) const override;

 private:
  const timed_disk_options options_;
};

}  // namespace leat::benchmarks
