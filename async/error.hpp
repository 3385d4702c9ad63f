// The two errors that the primitives of async/ have besides asio::error::operation_aborted, which says "cancelled".
#pragma once

#include <boost/system/error_code.hpp>

#include <type_traits>

namespace leat::async {

enum class async_errc {
  closed = 1,        ///< close() was called: nothing will be granted any more
  over_capacity = 2  ///< asked for more units than the semaphore has in all; waiting would be for ever
};

[[nodiscard]] const boost::system::error_category& async_category() noexcept;

[[nodiscard]] inline boost::system::error_code make_error_code(async_errc code) noexcept {
  return {static_cast<int>(code), async_category()};
}

}  // namespace leat::async

template <>
struct boost::system::is_error_code_enum<leat::async::async_errc> : std::true_type {};
