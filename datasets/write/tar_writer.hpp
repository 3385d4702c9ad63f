// Writes a tar archive that is there whole or not at all.
#pragma once

#include "base/unfinished_file.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// Bytes that a member takes in an archive: its headers and its padded content.
[[nodiscard]] std::uint64_t tar_member_bytes(std::string_view name, std::uint64_t size_bytes);

struct tar_writer_options {
  bool overwrite = false;     ///< a file of that name is replaced, when this one is whole; else it is an error
  std::stop_token stop = {};  ///< asked between pieces that the disk takes at once
};

/// The message about a shard that exists already.
[[nodiscard]] std::string shard_exists(std::string_view path);

/// One shard. It is an unfinished_file until finish(): whatever happens before, no file of that name is touched, and what was
/// written is removed when the writer ends. Members have mode 0644 and no owner or time of their own, so that
/// the same samples give the same bytes.
///
/// Thread: one at a time.
class tar_writer {
 public:
  ///   throws   error{errc::not_found} no such directory; error{errc::permission}; error{errc::usage} where another
  ///            process is writing the same shard, where `path` is there already and `overwrite` is not set, or is no
  ///            regular file
  explicit tar_writer(std::string path, tar_writer_options options = {});
  tar_writer(const tar_writer&) = delete;
  tar_writer& operator=(const tar_writer&) = delete;

  /// Begins a member; exactly `size_bytes` of content follow.
  void begin(std::string_view name, std::uint64_t size_bytes);
  /// A part of its content.
  ///   throws   error{errc::io}, with path and what to do; error{errc::limit} on a full disk; error{errc::cancelled}
  void write(std::span<const std::byte> content);

  /// Ends the archive, makes it durable and gives it its name: fsync, rename, fsync of the directory.
  ///   throws   as write(); error{errc::usage} if a file of that name has appeared meanwhile and `overwrite` is not set
  void finish();

  /// The length of the file so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  void append(std::span<const std::byte> bytes);
  void append_zeros(std::uint64_t bytes);
  void flush();
  void write_back(std::uint64_t up_to);
  void sync();
  void check_stop() const;
  void write_out(std::span<const std::byte> bytes);
  [[noreturn]] void fail(int failure, std::string_view what) const;

  std::string path_;
  tar_writer_options options_;
  unfinished_file file_;
  std::uint64_t bytes_ = 0;
  std::uint64_t written_ = 0;  // Of them, handed to the kernel.
  std::uint64_t begun_ = 0;    // Being written to the disk, or on it.
  std::uint64_t on_disk_ = 0;  // On the disk.
  std::uint64_t dropped_ = 0;  // No longer in the page cache.
  std::uint64_t content_left_ = 0;
  std::uint64_t padding_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace leat::datasets
