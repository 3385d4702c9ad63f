// How this folder's coroutines await Asio: an error is a value of the answer, and nothing is thrown.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace leat::io {

inline constexpr auto answers = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace leat::io
