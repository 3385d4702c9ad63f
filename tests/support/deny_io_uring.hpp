// Makes io_uring and mbind answer as they do in a container: for the rest of this process's life, so call it in a child.
#pragma once

namespace leat::testing {

/// From now on io_uring_setup(2), io_uring_enter(2) and io_uring_register(2) fail with `code` in the calling thread and
/// those it starts: a raw seccomp filter, as Docker's default profile has one. Needs no privilege.
///   returns   false where the kernel has no seccomp filters
[[nodiscard]] bool deny_io_uring(int code);
/// The same of mbind(2), which that profile allows with CAP_SYS_NICE alone.
[[nodiscard]] bool deny_mbind(int code);

}  // namespace leat::testing
