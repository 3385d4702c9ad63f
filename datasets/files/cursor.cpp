#include "datasets/files/cursor.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

namespace leat::datasets {

void fail_at(const std::string& path, std::uint64_t offset, std::string_view what) {
  throw error(errc::format, str_cat(path, ": at offset ", offset, ": ", what, "; is the file damaged, or cut?"));
}

void cursor::fail(std::string_view what) const { fail_at(*path_, offset(), what); }

void cursor::fail_short(std::uint64_t bytes) const {
  fail(str_cat("ends ", left(), " bytes further on, within ", bytes, " bytes of it"));
}

}  // namespace leat::datasets
