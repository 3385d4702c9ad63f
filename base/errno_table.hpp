// What each errno of a file or of the ring means, in one table: its words, whose fault it is, and what is done about it.
#pragma once

#include <leat/error.hpp>
#include <leat/option.hpp>

#include <cstdint>

namespace leat {

/// Whose fault a failed operation of a source is: what the loader does about it depends on that.
enum class errno_fault : std::uint8_t {
  sample,  ///< the bytes: the file is shorter or longer than it was, or damaged. The sample is corrupt
  unreadable,  ///< one file: it is missing, or has a bad sector. The sample is corrupt, up to loader_options::unreadable_max of them
  environment  ///< the machine, the mount, the network, permissions: ends the run, since retrying or skipping would hide it
};

/// What is done about a read or an open that ended so.
enum class errno_step : std::uint8_t {
  fail,
  try_again,            ///< a bounded number of times
  read_buffered,        ///< if it was O_DIRECT: the file system has none
  wait_for_descriptors  ///< an open, until another file is closed
};

/// Of io_uring_setup(2) and io_uring_enter(2).
struct ring_meaning {
  bool comes_round_again = false;  ///< the call is made again, for two seconds
  bool threads_help = true;        ///< reading with threads would work
  const char* cause = "";          ///< of a ring that fails in its work: ", since ..."
  const char* hint = "";           ///< for a ring that cannot be set up
};

/// One errno. `what` stands in place of strerror's words, where ours say more; null: these. `remedy` stands after "; ", and after it the
/// setting of `option`, in the caller's words.
struct errno_meaning {
  int code = 0;
  errc kind = errc::io;
  errno_fault whose = errno_fault::environment;
  errno_step step = errno_step::fail;
  const char* what = nullptr;
  const char* remedy = "";
  option_id option = option_id::none;
  const char* value = "";
  ring_meaning ring = {};
};

/// Of an errno that the table does not know: errc::io, the environment's, and nothing is done about it.
[[nodiscard]] const errno_meaning& meaning_of(int failure) noexcept;

[[nodiscard]] inline bool is_tried_again(int failure) noexcept {
  return meaning_of(failure).step == errno_step::try_again;
}
[[nodiscard]] inline bool refuses_direct(int failure) noexcept {
  return meaning_of(failure).step == errno_step::read_buffered;
}
[[nodiscard]] inline bool lacks_descriptors(int failure) noexcept {
  return meaning_of(failure).step == errno_step::wait_for_descriptors;
}

}  // namespace leat
