#include "base/errno_words.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

namespace leat {
namespace {

struct meaning {
  int code;
  errc kind;
  const char* what;    // in place of strerror's words, where ours say more
  const char* remedy;  // after "; "
};

// Every errno that open(2), read(2), io_uring_enter(2) and statx(2) name for files, and what usually stands behind it.
constexpr meaning meanings[] = {
    {EIO, errc::io, "the device or file system failed",
     "look at dmesg: a disk may be failing, or a network mount gone"},
    {ENOENT, errc::not_found, "no such file", "check the path, or whether it was moved or deleted"},
    {ENOTDIR, errc::not_found, "a part of the path is not a directory", "check the path"},
    {ELOOP, errc::not_found, "too many symbolic links", "one of them may lead back to itself"},
    {ENAMETOOLONG, errc::not_found, "the path is too long", "mount or link the data nearer to the root"},
    {EACCES, errc::permission, "no permission to read", "check the owner and mode of it and of its directories"},
    {EPERM, errc::permission, "not permitted", "a security policy (seccomp, SELinux, fs-verity) may forbid it"},
    {EISDIR, errc::format, "is a directory", "give the files in it"},
    {EMFILE, errc::limit, "too many open files in this process",
     "other parts of it hold them all; try `ulimit -n 65536`"},
    {ENFILE, errc::limit, "too many open files on this machine", "raise the sysctl fs.file-max"},
    {ENOMEM, errc::limit, "the kernel has no memory for the read",
     "if registered buffers were asked for, RLIMIT_MEMLOCK may be too small: try `ulimit -l unlimited`, or leave them "
     "automatic"},
    {EAGAIN, errc::io, "the kernel says 'try again', and did so too often",
     "is the machine out of memory or requests?"},
    {EINTR, errc::io, "interrupted too often", "what sends this process so many signals?"},
    {ESTALE, errc::io, "the network file system forgot the file", "it was replaced on the server: open the data again"},
    {ENOTCONN, errc::io, "the file system's server is gone", "a mount of FUSE or a network has died: mount it again"},
    {ENODEV, errc::io, "the device is gone", "was a disk or a mount removed?"},
    {ENXIO, errc::io, "the device is gone", "was a disk or a mount removed?"},
    {EREMOTEIO, errc::io, "the device reports an error", "look at dmesg"},
    {EBADMSG, errc::io, "a checksum does not match (bad message)", "the file system found the file damaged"},
    {EUCLEAN, errc::io, "the file system needs checking", "unmount it and run fsck"},
    {EINVAL, errc::unsupported, "the file system refuses such a read",
     "with direct = on it may want a larger alignment than 4096, or have no O_DIRECT: try direct = auto"},
    {EOPNOTSUPP, errc::unsupported, "the file system has no O_DIRECT", "use direct = auto or off"},
    {ESPIPE, errc::unsupported, "is a pipe, a socket or a device without offsets", "copy what it gives to a file"},
    {EOVERFLOW, errc::unsupported, "the file is too large for this interface", "use a 64-bit build"},
    {EFAULT, errc::io, "the memory to read into is not there", "was it unmapped while a read was under way?"},
    {ECANCELED, errc::cancelled, "cancelled", ""},
};

const meaning* find(int code) {
  for (const meaning& known : meanings) {
    if (known.code == code) return &known;
  }
  return nullptr;
}

}  // namespace

std::string errno_name(int code) {
#ifdef __GLIBC__
  if (const char* const name = ::strerrorname_np(code)) return name;
#endif
  return str_cat("errno ", code);
}

errc kind_of(int failure) noexcept {
  const meaning* const known = find(failure);
  return known != nullptr ? known->kind : errc::io;
}

std::string errno_words(int failure) {
  const meaning* const known = find(failure);
  std::string text = str_cat(known != nullptr ? known->what : std::strerror(failure), " (", errno_name(failure), ")");
  if (known != nullptr && *known->remedy != '\0') str_append(text, "; ", known->remedy);
  return text;
}

error explain_write(std::string_view what, int failure, const write_remedies& remedies) {
  const auto because = [&](errc kind, std::string_view remedy) {
    return error(kind, str_cat(what, ": ", std::generic_category().message(failure), "; ", remedy));
  };
  switch (failure) {
    case ENOSPC:
    case EDQUOT:
      return because(errc::limit, remedies.no_room);
    case EFBIG:
      return because(errc::limit, remedies.too_large);
    case ENOENT:
    case ENOTDIR:
      return because(errc::not_found, remedies.no_folder);
    case EACCES:
    case EPERM:
    case EROFS:
      return because(errc::permission, remedies.not_allowed);
    case EISDIR:
    case EEXIST:
    case ELOOP:
      return because(errc::usage, remedies.taken);
    case EWOULDBLOCK:
      return because(errc::usage, remedies.busy);
    default:
      return because(errc::io, remedies.other);
  }
}

}  // namespace leat
