#pragma once

// A directory of a test's own, gone when the test is.

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace leat::testing {

class temporary_directory {
 public:
  /// Under `parent`: $TMPDIR, or /tmp. Throws std::system_error.
  explicit temporary_directory(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "leat-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
    path_ = name;
  }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace leat::testing
