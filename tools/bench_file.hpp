// A file to read from, for who has none at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

namespace leat::tools {

/// What there is to tell of a file that is being made.
///   removed    it was begun and is gone, since it was to stop; and how many bytes the file system has still to free: a drive
///              that is told of each block freed (mount option `discard`) makes whoever closes the file wait for it
///   replaced   another one was begun before, and its maker was killed
struct bench_file_news {
  std::function<void(std::uint64_t bytes)> removed = {};
  std::function<void()> replaced = {};
};

/// Lays out a file of `bytes`, a multiple of 4096: random data that no drive can compress, past the page cache. One that
/// this made before, of the same size, is used again; any other is left alone, and an error. It is written as PATH.partial
/// and has its name when it is whole; what is not finished is removed, and what a kill has left is replaced.
///   returns   whether it was written now
///   throws    error: usage (a size that is no multiple of 4096; a file that is there and not ours, or that somebody is
///             making now), limit (no room), permission, io; cancelled on stop
bool create_bench_file(const std::string& path, std::uint64_t bytes, const std::stop_token& stop,
                       const bench_file_news& news = {});

/// Whether such a file is what is there: some pages of it are looked at.
[[nodiscard]] bool is_bench_file(const std::string& path);

/// The first byte, counted from the file's begin, that is not what such a file has at `offset`.
[[nodiscard]] std::optional<std::uint64_t> first_wrong_byte(std::span<const std::byte> read, std::uint64_t offset);

}  // namespace leat::tools
