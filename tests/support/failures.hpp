// What failed, in a word a test can compare.
#pragma once

#include <leat/error.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <gtest/gtest.h>

#include <exception>
#include <optional>
#include <string>

namespace leat::testing {

/// The code of what an exception_ptr holds; nullopt where it is no leat::error.
inline std::optional<errc> code_of(const std::exception_ptr& failure) {
  if (failure == nullptr) return std::nullopt;
  try {
    std::rethrow_exception(failure);
  } catch (const error& known) {
    return known.code();
  } catch (...) {
    return std::nullopt;
  }
}

inline bool is_operation_aborted(const std::exception_ptr& failure) {
  if (failure == nullptr) return false;
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& aborted) {
    return aborted.code() == boost::asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

/// Its words; none where nothing failed.
inline std::string message_of(const std::exception_ptr& failure) {
  if (failure == nullptr) return {};
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& problem) {
    return problem.what();
  }
}

/// What `call` throws, which must be a leat::error of this code; its message.
template <class Call>
std::string message_of(errc code, Call&& call) {
  try {
    call();
  } catch (const error& failure) {
    EXPECT_EQ(static_cast<int>(failure.code()), static_cast<int>(code)) << failure.what();
    return failure.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace leat::testing
