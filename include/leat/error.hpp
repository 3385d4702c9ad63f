// What leat throws. A bug is an assert, bad data is a value (see stats and the journal); what is left, a failing
// environment and a wrong call, is an error: one line that says what, where and what to do.
#pragma once

#include <leat/compiler.hpp>
#include <leat/option.hpp>

#include <stdexcept>
#include <string>

#pragma GCC visibility push(default)
namespace leat {

/// The kinds of failure a caller may want to tell apart.
enum class errc {
  usage,        ///< the call cannot be right: options that contradict, a field that is not there, use after fork()
  not_found,    ///< a file, field or member that is not there: the message names the nearest one
  permission,   ///< the user of the process may not read the file
  io,           ///< a read, open or write failed, or took too long: a dead mount, a bad disk, a store that is away
  limit,        ///< memory budget, memlock, open files: the message says what would do
  format,       ///< bytes that are not what they should be, as of a file that was cut while it was copied
  unsupported,  ///< well-formed, and not for this build or machine: a codec that leat lacks, no GPU
  device,       ///< a call of the GPU's runtime failed: the message names call and device; the loader is over
  corrupt,      ///< a corrupt sample under the policy `raise` (mend it, or use skip), or more than corrupt_max
  changed,      ///< files were written or replaced since the dataset was opened: open it again
  callback,     ///< a function of yours (leat::custom) threw; its exception is nested in the error
  cancelled     ///< the caller, or stop(), asked for it
};

/// An error with its kind. what() is one line: what happened, where, what to do. If another exception caused it, that one is
/// nested: std::rethrow_if_nested(error) throws it.
class error : public std::runtime_error {
 public:
  error(errc code, const std::string& message, option_id about = option_id::none)
      : std::runtime_error(message), code_(code), option_(about) {}

  [[nodiscard]] errc code() const noexcept { return code_; }
  /// The option that cannot be as it is, or that would help; option_id::none where there is no single one.
  [[nodiscard]] option_id option() const noexcept { return option_; }

 private:
  errc code_;
  option_id option_;
};

}  // namespace leat
#pragma GCC visibility pop
