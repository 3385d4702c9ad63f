// A disk that costs nothing, to measure what the rest of the line costs: every read is there in the next turn.
#pragma once

#include "io/files/source.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace leat::testing {

struct null_disk_options {
  std::uint32_t files = 1;
  std::uint64_t file_bytes = 0;  ///< of each
  bool write_zeros = false;      ///< else the memory keeps what it held
};

/// Reads complete in the order started, all that one turn started in one go, with no allocation per read, no lock and no
/// copy. The contract of io/files/source.hpp otherwise: the past of a file's end is ENODATA, and done() never runs in start().
class null_disk final : public io::source_description {
 public:
  explicit null_disk(const null_disk_options& options) : options_(options) {}

  [[nodiscard]] std::unique_ptr<io::source> connect(io::connector& loop) const override;
  [[nodiscard]] std::uint32_t files() const override { return options_.files; }
  [[nodiscard]] std::string file_name(std::uint32_t file) const override;

 private:
  const null_disk_options options_;
};

}  // namespace leat::testing
