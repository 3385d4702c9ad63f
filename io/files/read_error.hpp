// An errno of a read or an open in words: what, where and what to do.
#pragma once

#include <leat/error.hpp>

#include <cstdint>
#include <string_view>

namespace leat::io {

/// What is known of a failed read.
///   data_bytes   how much of it was there (for ENODATA: where the file ends)
///   timeout_s    of the reader (for ETIMEDOUT)
struct failed_read {
  int failure = 0;
  std::string_view path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t data_bytes = 0;
  double timeout_s = 0;
};

[[nodiscard]] error explain_read(const failed_read& read);
[[nodiscard]] error explain_open(int failure, std::string_view path);

}  // namespace leat::io
