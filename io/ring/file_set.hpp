// A table of files as a loop reads it: what the ring and its preadv twin have in common.
#pragma once

#include "io/files/direct_policy.hpp"
#include "io/files/file_table.hpp"
#include "io/files/source.hpp"
#include "io/ring/io_loop.hpp"

#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace leat::io {

/// How often a read or an open is tried again that EINTR or EAGAIN ended.
inline constexpr unsigned tries_max = 16;

/// A connected source's part in its loop. `files` outlives it.
struct file_set {
  file_set(const file_table& table, direct_policy& policy);

  const file_table* files;
  file_modes modes;
  const std::uint64_t id;        ///< 32 bits of it, of the process
  std::uint64_t operations = 0;  ///< taken and not done; loop thread
  /// For a file system without non-blocking reads: there, io_uring's reads of a file that was opened with O_NONBLOCK end with
  /// EAGAIN. Loop thread.
  bool opens_without_nonblock = false;

  /// A file's key among those of all sets.
  [[nodiscard]] std::uint64_t key_of(std::uint32_t file) const noexcept { return id << 32 | file; }
};

/// What a loop reads of a file for an operation.
///   is_whole   all of the file, as large as an earlier run has seen it: if there is more, it is another file. Where this run has looked
///              itself, nothing is asked beyond the end: after a short read io_uring asks the file system again (2.9 us a file)
struct file_range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool is_whole = false;
};
///   unit   the alignment, a power of two
[[nodiscard]] inline file_range range_of(const file_set& set, const read_operation& asked,
                                         std::uint64_t unit) noexcept {
  const std::uint64_t wanted_end = asked.offset + asked.bytes;
  file_range range{.begin = asked.offset & ~(unit - 1), .end = (wanted_end + unit - 1) & ~(unit - 1)};
  range.is_whole = set.files->is_kept() && asked.offset == 0 && asked.bytes == set.files->size_bytes(asked.file);
  // Never more than `into` has room for: past the end of a file the kernel clears memory.
  if (range.is_whole && range.end == wanted_end && range.end + unit <= asked.into.bytes.size()) range.end += unit;
  return range;
}

// The failed operation in words, and its place among those that the kernel has had for too long.
[[nodiscard]] error explain(const file_set& set, const read_operation& failed, const io_context& context);
[[nodiscard]] error explain(const file_set& set, const open_operation& failed, const io_context& context);
///   offset   where the kernel is at, in the file
[[nodiscard]] overdue_list::entry add_overdue(const file_set& set, const read_operation& late, std::uint64_t offset,
                                              io_context& context);

/// Descriptors this process may have: the soft RLIMIT_NOFILE, 2^20 at the most.
[[nodiscard]] unsigned descriptors_allowed() noexcept;

/// A source of files on a loop: the handle that its users hold.
///   Loop   start(file_set&, ...), cancel(read_operation&), retire_set(unique_ptr<file_set>), context()
template <class Loop>
class file_source final : public source {
 public:
  file_source(Loop& loop, std::unique_ptr<file_set> set) : loop_(loop), set_(std::move(set)) {}
  ~file_source() override {
    assert(set_->operations == 0 && "a source is destroyed while operations are under way");
    loop_.retire_set(std::move(set_));
  }

  void start(std::span<read_operation* const> operations) override { loop_.start(*set_, operations); }
  void start(open_operation& operation) override { loop_.start(*set_, operation); }
  void cancel(read_operation& operation) override { loop_.cancel(operation); }

  [[nodiscard]] error explain(const read_operation& failed) const override {
    return io::explain(*set_, failed, loop_.context());
  }
  [[nodiscard]] error explain(const open_operation& failed) const override {
    return io::explain(*set_, failed, loop_.context());
  }

 private:
  Loop& loop_;
  std::unique_ptr<file_set> set_;
};

}  // namespace leat::io
