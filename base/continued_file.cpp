#include "base/continued_file.hpp"

#include "base/descriptor.hpp"
#include "base/errno_words.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <fcntl.h>

#include <cerrno>
#include <string_view>

namespace leat {

int continue_lines(const std::string& path, std::uint64_t bytes, const std::string& what) {
  const auto refuse = [&](std::string_view why) {
    throw error(errc::usage, str_cat(what, " ", why, ", and the state to resume from counts its first ", bytes,
                                     " bytes; name the file that this run has written"));
  };
  descriptor file(::open(path.c_str(), O_RDWR | O_APPEND | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) refuse("is not there");
  struct stat status{};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) throw explain_write(str_cat("cannot write ", what), errno);
  if (!S_ISREG(status.st_mode)) refuse("is no regular file");
  if (static_cast<std::uint64_t>(status.st_size) < bytes) refuse(str_cat("has ", status.st_size, " bytes"));
  char last = 0;
  if (::pread(file.get(), &last, 1, static_cast<off_t>(bytes) - 1) != 1 || last != '\n') {
    refuse("has no end of a line there");
  }
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    throw explain_write(str_cat("cannot cut off what ", what, " has behind its first ", bytes, " bytes"), errno);
  }
  return file.release();
}

}  // namespace leat
