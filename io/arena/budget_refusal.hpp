// The error for options that contradict one another: a limit, and a wish that does not fit in it. It is a mistake of the caller,
// unlike a limit of the machine.
#pragma once

#include <leat/error.hpp>

#include <string>

namespace leat::io {

/// error{errc::limit}: the options do not fit one another. The message says what would do.
class budget_refusal : public error {
 public:
  explicit budget_refusal(const std::string& message, option_id about = option_id::host_bytes_max)
      : error(errc::limit, message, about) {}
};

}  // namespace leat::io
