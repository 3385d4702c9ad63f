#include "io/read_error.hpp"

#include "io/text.hpp"

#include <cerrno>
#include <cstring>

namespace leat::io {
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

error compose(int failure, const std::string& where) {
  const meaning* const known = find(failure);
  return {known != nullptr ? known->kind : errc::io, str_cat(where, ": ", words_of(failure))};
}

}  // namespace

std::string errno_name(int code) {
#ifdef __GLIBC__
  if (const char* const name = ::strerrorname_np(code)) return name;
#endif
  return str_cat("errno ", code);
}

std::string words_of(int failure) {
  const meaning* const known = find(failure);
  std::string text = str_cat(known != nullptr ? known->what : std::strerror(failure), " (", errno_name(failure), ")");
  if (known != nullptr && *known->remedy != '\0') str_append(text, "; ", known->remedy);
  return text;
}

error explain_read(const failed_read& read) {
  if (read.failure == ENODATA) {
    return {errc::io,
            str_cat(read.path, ": the file ends at ", read.offset + read.data_bytes, ", and bytes up to ",
                    read.offset + read.bytes, " were expected (ENODATA); was it cut or replaced since it was opened?")};
  }
  const std::string where = str_cat(read.path, " at offset ", read.offset, ", ", read.bytes, " bytes");
  if (read.failure == ETIMEDOUT) {
    return {errc::io, str_cat(where, ": no answer in ", read.timeout_s,
                              " s (ETIMEDOUT); it may lie on a dead mount: check it with `ls`, or raise read_timeout")};
  }
  return compose(read.failure, where);
}

error explain_open(int failure, std::string_view path) {
  if (failure == ETIMEDOUT) {
    return {errc::io, str_cat(path, ": no answer to opening it (ETIMEDOUT); it may lie on a dead mount")};
  }
  return compose(failure, std::string(path));
}

}  // namespace leat::io
