#include "datasets/files/file_window.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace leat::datasets {

void file_window::fill(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t size = file_.size();
  if (offset > size || bytes > size - offset) {
    fail_at(file_.path(), offset, str_cat(bytes, " bytes are expected here, and the file ends at ", size));
  }
  bytes_.resize(std::min(std::max(bytes, ahead_bytes_), size - offset));
  begin_ = offset;
  bytes_.resize(file_.read(offset, bytes_));
  if (bytes_.size() < bytes)
    fail_at(file_.path(), offset, str_cat("the file ends within ", bytes, " bytes that begin here"));
}

}  // namespace leat::datasets
