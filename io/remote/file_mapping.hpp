// A file in memory that may lose its pages under whoever reads them.
#pragma once

#include <cstddef>

namespace leat::io {

/// Mapped shared, to be written too. Pages that the file no longer has (somebody truncated it, or the drive cannot read them) are zeros from the
/// next access on, this process's own, where SIGBUS would have ended it. For that the first mapping installs a handler, which passes on all that
/// is not about mappings of this kind.
class file_mapping {
 public:
  file_mapping() = default;
  file_mapping(const file_mapping&) = delete;
  file_mapping& operator=(const file_mapping&) = delete;
  ~file_mapping();

  /// Once.
  ///   returns   0 or an errno
  [[nodiscard]] int open(int file, std::size_t bytes);
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace leat::io
