#include "base/errno_table.hpp"

#include <cerrno>

namespace leat {
namespace {

using enum errno_step;
constexpr auto sample = errno_fault::sample;
constexpr auto unreadable = errno_fault::unreadable;
constexpr auto environment = errno_fault::environment;
constexpr option_id none = option_id::none;

constexpr const char* policy = ", perhaps since a policy (seccomp) forbids it now";
constexpr const char* seccomp =
    "a container's seccomp profile forbids it; with Docker try `--security-opt seccomp=unconfined`";

// Every errno that open(2), read(2), io_uring_enter(2) and statx(2) name for files, and what usually stands behind it.
constexpr errno_meaning all[] = {
    // The sample's
    {ENODATA, errc::io, sample, fail, "the file ends before that", "was it cut or replaced since it was opened?"},
    {EFBIG, errc::io, sample, fail, "the file goes on after its end", "was it replaced since it was opened?"},
    {EBADMSG, errc::io, sample, fail, "a checksum does not match (bad message)",
     "the file system found the file damaged"},
    {EUCLEAN, errc::io, sample, fail, "the file system needs checking", "unmount it and run fsck"},
    {EILSEQ, errc::io, sample},

    // One file's: its bytes, its path, or a folder above it that has become something else
    {EIO, errc::io, unreadable, fail, "the device or file system failed",
     "look at dmesg: a disk may be failing, or a network mount gone"},
    {EREMOTEIO, errc::io, unreadable, fail, "the device reports an error", "look at dmesg"},
    {ENOENT, errc::not_found, unreadable, fail, "no such file", "check the path, or whether it was moved or deleted"},
    {ENOTDIR, errc::not_found, unreadable, fail, "a part of the path is not a directory", "check the path"},
    {EISDIR, errc::format, unreadable, fail, "is a directory", "give the files in it"},
    {ESPIPE, errc::unsupported, unreadable, fail, "is a pipe, a socket or a device without offsets",
     "copy what it gives to a file"},
    {ELOOP, errc::not_found, unreadable, fail, "too many symbolic links", "one of them may lead back to itself"},
    {ENAMETOOLONG, errc::not_found, unreadable, fail, "the path is too long",
     "mount or link the data nearer to the root"},

    // The environment's
    {EACCES,
     errc::permission,
     environment,
     fail,
     "no permission to read",
     "check the owner and mode of it and of its directories",
     none,
     "",
     {.cause = policy, .hint = seccomp}},
    {EPERM,
     errc::permission,
     environment,
     fail,
     "not permitted",
     "a security policy (seccomp, SELinux, fs-verity) may forbid it",
     none,
     "",
     {.cause = policy, .hint = seccomp}},
    {EMFILE,
     errc::limit,
     environment,
     wait_for_descriptors,
     "too many open files in this process",
     "other parts of it hold them all; try `ulimit -n 65536`",
     none,
     "",
     {.threads_help = false, .hint = "this process has no file descriptor left; try `ulimit -n 65536`"}},
    {ENFILE,
     errc::limit,
     environment,
     wait_for_descriptors,
     "too many open files on this machine",
     "raise the sysctl fs.file-max",
     none,
     "",
     {.threads_help = false}},
    {ENOMEM,
     errc::limit,
     environment,
     fail,
     "the kernel has no memory for the read",
     "if registered buffers were asked for, RLIMIT_MEMLOCK may be too small: try `ulimit -l unlimited`, or leave them "
     "automatic",
     none,
     "",
     {.cause = ", since the machine or its control group is out of memory",
      .hint = "the user's rings together take more memory than RLIMIT_MEMLOCK allows; try `ulimit -l unlimited`"}},
    {EAGAIN,
     errc::io,
     environment,
     try_again,
     "the kernel says 'try again', and did so too often",
     "is the machine out of memory or requests?",
     none,
     "",
     {.comes_round_again = true, .cause = ", after two seconds of trying"}},
    {EINTR,
     errc::io,
     environment,
     try_again,
     "interrupted too often",
     "what sends this process so many signals?",
     none,
     "",
     {.comes_round_again = true, .cause = ", after two seconds of trying"}},
    // Of a read that nobody has cancelled: the kernel's own doing, where a worker of it ends.
    {ECANCELED,
     errc::cancelled,
     environment,
     try_again,
     "cancelled",
     "",
     none,
     "",
     {.hint = "the kernel could not start a thread of its own for it; try `ulimit -u unlimited`"}},
    {EBUSY,
     errc::io,
     environment,
     fail,
     nullptr,
     "",
     none,
     "",
     {.comes_round_again = true, .cause = ", after two seconds of trying"}},
    {ENOSYS,
     errc::io,
     environment,
     fail,
     nullptr,
     "",
     none,
     "",
     {.cause = policy, .hint = "this kernel or sandbox has no io_uring; Linux 5.11 has what is needed"}},
    {EBADR,
     errc::io,
     environment,
     fail,
     nullptr,
     "",
     none,
     "",
     {.cause = ", since the kernel has lost completions for want of memory"}},
    {ETIMEDOUT, errc::io, environment, fail, "no answer", "it may lie on a dead mount: check it with `ls`"},
    {ESTALE, errc::io, environment, fail, "the network file system forgot the file",
     "it was replaced on the server: open the data again"},
    {ENOTCONN, errc::io, environment, fail, "the file system's server is gone",
     "a mount of FUSE or a network has died: mount it again"},
    {ENODEV, errc::io, environment, fail, "the device is gone", "was a disk or a mount removed?"},
    {ENXIO, errc::io, environment, fail, "the device is gone", "was a disk or a mount removed?"},
    {EINVAL, errc::unsupported, environment, read_buffered, "the file system refuses such a read",
     "with O_DIRECT it may want a larger alignment than 4096, or have none: try ", option_id::direct, "automatic"},
    {EOPNOTSUPP, errc::unsupported, environment, read_buffered, "the file system has no O_DIRECT", "use ",
     option_id::direct, "automatic"},
    {EOVERFLOW, errc::unsupported, environment, fail, "the file is too large for this interface", "use a 64-bit build"},
    {EFAULT, errc::io, environment, fail, "the memory to read into is not there",
     "was it unmapped while a read was under way?"},
};
constexpr errno_meaning unknown{};

}  // namespace

const errno_meaning& meaning_of(int failure) noexcept {
  for (const errno_meaning& known : all) {
    if (known.code == failure) return known;
  }
  return unknown;
}

}  // namespace leat
