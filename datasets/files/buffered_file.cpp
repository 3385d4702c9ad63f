#include "datasets/files/buffered_file.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace leat::datasets {

void buffered_file::fill(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t size = file_.size();
  if (offset > size || bytes > size - offset) {
    fail_at(file_.path(), offset, str_cat(bytes, " bytes are expected here, and the file ends at ", size));
  }
  // What is here already is not read again: going back is dear in a compressed file.
  const bool is_begun = offset >= begin_ && offset - begin_ <= bytes_.size();
  bytes_.erase(bytes_.begin(), is_begun ? bytes_.begin() + static_cast<std::ptrdiff_t>(offset - begin_) : bytes_.end());
  begin_ = offset;
  const std::size_t here = bytes_.size();
  bytes_.resize(std::min(std::max(bytes, ahead_bytes_), size - offset));
  bytes_.resize(here + file_.read(offset + here, std::span(bytes_).subspan(here)));
  if (bytes_.size() < bytes)
    fail_at(file_.path(), offset, str_cat("the file ends within ", bytes, " bytes that begin here"));
}

}  // namespace leat::datasets
