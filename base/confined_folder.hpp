// A folder in which names that a stranger chose become files: a symbolic link that lies in it leads no name out of it.
#pragma once

#include "base/descriptor.hpp"

#include <optional>
#include <string>

namespace leat {

/// Thread: any, once it is open.
class confined_folder {
 public:
  ///   follows   the kernel can tell where links lead
  explicit confined_folder(bool follows = true) noexcept : follows_(follows) {}

  /// Makes it, and what it lies in. Returns 0 or the errno.
  [[nodiscard]] int open(const std::string& path);
  /// Opens a folder below it, which is made where it is not there. Links are followed that stay below (openat2(2), RESOLVE_BENEATH); where
  /// the kernel cannot tell, none is.
  ///   path      relative, without ".."; "" is the folder itself
  ///   returns   the descriptor, for openat() and the like; or the errno, negative: -EXDEV or -ELOOP of a link
  [[nodiscard]] int open_below(const std::string& path) const;

 private:
  const bool follows_;
  std::optional<descriptor> folder_;
};

}  // namespace leat
