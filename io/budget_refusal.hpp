// Something that was asked for and cannot be had within a limit that was given as well: a mistake of whoever gave both, where a
// limit of the machine is none.
#pragma once

#include <leat/error.hpp>

#include <string>

namespace leat::io {

/// error{errc::limit}: the options do not fit one another. The message says what would do.
class budget_refusal : public error {
 public:
  explicit budget_refusal(const std::string& message) : error(errc::limit, message) {}
};

}  // namespace leat::io
