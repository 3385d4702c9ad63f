// A source whose reads block: for opening shards, looking at single samples, and packing.
#pragma once

#include "datasets/files/decoded_blocks.hpp"
#include "io/files/fault.hpp"
#include "io/reader/source_set.hpp"

#include <leat/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <variant>
#include <vector>

namespace leat::datasets {

/// One or several loops, each with its own thread, for as long as something is opened or looked at.
class opening_loop {
 public:
  enum class traffic : std::uint8_t {
    few,  ///< one thread that reads: for a handful of reads, ready in 0.1 ms
    many  ///< the reader's best backend: for the headers of many shards
  };
  ///   throws   as io::io_threads
  explicit opening_loop(traffic expected, std::uint32_t loops = 1);
  opening_loop(const opening_loop&) = delete;
  opening_loop& operator=(const opening_loop&) = delete;
  /// Joins the threads. Every source connected to it must be gone before.
  ~opening_loop();

  [[nodiscard]] io::connector& connector() noexcept { return *connectors().front(); }
  /// One for each loop.
  [[nodiscard]] std::span<io::connector* const> connectors() const noexcept { return connectors_; }

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
  std::vector<io::connector*> connectors_;
};

/// Whether a file that could not be opened is not there, or is not for this reader.
[[nodiscard]] inline bool is_not_there(const error& why) noexcept {
  return why.code() == errc::not_found || why.code() == errc::permission;
}

/// A read that failed, and whose fault it is.
class read_failure : public error {
 public:
  read_failure(const error& why, io::fault whose) : error(why), whose_(whose) {}
  [[nodiscard]] io::fault whose() const noexcept { return whose_; }

 private:
  io::fault whose_;
};

/// A source whose reads are waited for. Thread: one at a time.
class blocking_source {
 public:
  ///   number   the source's in `all`, which outlives this and is on one loop
  blocking_source(io::source_set& all, std::uint32_t number) noexcept : all_(all), number_(number) {}
  blocking_source(const blocking_source&) = delete;
  blocking_source& operator=(const blocking_source&) = delete;

  struct request {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    std::span<std::byte> into;  ///< as many bytes as it is long; any alignment
  };
  /// Reads all of them, together.
  ///   throws         read_failure: of the first of them that failed
  ///   cancellation   by `stop`: throws error{errc::cancelled} as soon as the kernel has let go of the memory
  void read(std::span<const request> requests, const std::stop_token& stop = {});

  /// As io::open_operation says.
  struct file_look {
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 0;  ///< 0: a change would not be seen
  };
  /// Opens a file.
  ///   throws    the error of opening it
  [[nodiscard]] file_look look_at(std::uint32_t file);
  /// Opens all of the source's files, together.
  ///   files     how many it has
  ///   throws    the error of the first of them that failed
  [[nodiscard]] std::vector<file_look> look_at_all(std::uint32_t files);
  /// Opens those of these files that are there, together. What may not be read is not there: of a signed address the one beside it is
  /// not signed.
  ///   throws    the error of the first of them that failed otherwise
  [[nodiscard]] std::vector<std::optional<file_look>> look_for(std::span<const std::uint32_t> files);
  /// Opens these files, together: of each what was seen, or why it could not be opened.
  [[nodiscard]] std::vector<std::variant<file_look, error>> try_to_look(std::span<const std::uint32_t> files);

  /// Bytes of a file of `file_bytes` bytes, through a buffer that moves on with requests in file order: for headers, which
  /// are many and small. Valid until the next call.
  [[nodiscard]] std::span<const std::byte> view(std::uint32_t file, std::uint64_t offset, std::uint64_t bytes,
                                                std::uint64_t file_bytes);

 private:
  struct opening;

  io::source_set& all_;
  const std::uint32_t number_;
  std::uint32_t buffer_file_ = 0;
  std::uint64_t buffer_offset_ = 0;
  std::vector<std::byte> buffer_;
};

/// The sources of a dataset, all on one loop, each connected at its first read. Exists while somebody looks at samples.
/// Thread: one at a time.
class blocking_sources {
 public:
  ///   blocks_bytes   of what blocks() keeps
  explicit blocking_sources(opening_loop::traffic expected = opening_loop::traffic::few,
                            std::uint64_t blocks_bytes = decoded_blocks::bytes_max_usual)
      : loop_(expected), all_(std::array{&loop_.connector()}), blocks_(blocks_bytes) {}

  /// `description` outlives this.
  [[nodiscard]] blocking_source& of(const io::source_description& description);
  /// What was read from them and expanded.
  [[nodiscard]] decoded_blocks& blocks() noexcept { return blocks_; }

 private:
  opening_loop loop_;
  io::source_set all_;
  std::vector<const io::source_description*> known_;  // by number
  std::deque<blocking_source> sources_;               // likewise; they never move
  decoded_blocks blocks_;
};

}  // namespace leat::datasets
