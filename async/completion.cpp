#include "base/thread_number.hpp"

#include <leat/completion.hpp>
#include <leat/operation.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <cstdint>
#include <exception>

namespace leat::detail {

std::uint64_t number_of_this_thread() noexcept { return thread_number(); }

std::exception_ptr operation_aborted() {
  return std::make_exception_ptr(boost::system::system_error(boost::asio::error::operation_aborted));
}

}  // namespace leat::detail
