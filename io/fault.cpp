#include "io/fault.hpp"

#include <cerrno>

namespace leat::io {

fault fault_of(int failure) noexcept {
  switch (failure) {
    case ENODATA:  // the file ends before the sample does
    case EFBIG:    // the file is the sample, and does not end where it does
    case EBADMSG:  // a checksum of the file system
    case EUCLEAN:
    case EILSEQ:
      return fault::sample;
    case EIO:
    case EREMOTEIO:
    case ENOENT:
    // The path, or a folder above it, has become something else.
    case ENOTDIR:
    case EISDIR:
    case ESPIPE:
    case ELOOP:
    case ENAMETOOLONG:
      return fault::unreadable;
    default:
      return fault::environment;
  }
}

}  // namespace leat::io
