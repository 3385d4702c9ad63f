// A file to read from, for who has none at hand.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace leat::tools {

/// Lays out a file of `bytes`, a multiple of 4096: random data that no drive can compress, past the page cache. One that
/// this made before, of the same size, is used again; any other is left alone, and an error. What is not finished is
/// removed.
///   removed   told of that, and of how many bytes the file system has still to free: a drive that is told of each
///             block freed (mount option `discard`) makes whoever closes the file wait for it
///   returns   whether it was written now
///   throws    error: usage (a size that is no multiple of 4096; a file that is there and not ours), limit (no room),
///             permission, io; cancelled on stop
bool create_bench_file(const std::string& path, std::uint64_t bytes, const std::stop_token& stop,
                       const std::function<void(std::uint64_t bytes)>& removed = {});

}  // namespace leat::tools
