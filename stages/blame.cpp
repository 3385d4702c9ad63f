#include "stages/blame.hpp"

#include <cerrno>

namespace leat::stages {

blame blame_of(int failure) noexcept {
  switch (failure) {
    case ENODATA:  // the file ends before the sample does
    case EFBIG:    // the file is the sample, and does not end where it does
    case EBADMSG:  // a checksum of the file system
    case EUCLEAN:
    case EILSEQ:
      return blame::sample;
    case EIO:
    case EREMOTEIO:
    case ENOENT:
    // The path, or a folder above it, has become something else.
    case ENOTDIR:
    case EISDIR:
    case ESPIPE:
    case ELOOP:
    case ENAMETOOLONG:
      return blame::unreadable;
    default:
      return blame::environment;
  }
}

}  // namespace leat::stages
