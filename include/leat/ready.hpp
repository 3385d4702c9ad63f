// batch::ready(): apart from <leat/batch.hpp>, which needs nothing of Asio.
#pragma once

#include <leat/batch.hpp>
#include <leat/compiler.hpp>
#include <leat/completion.hpp>

#include <boost/asio/async_result.hpp>

#include <exception>
#include <utility>

#pragma GCC visibility push(default)
namespace leat {

template <class Token>
auto batch::ready(Token&& token) {
  return boost::asio::async_initiate<Token, void(std::exception_ptr)>(
      [](auto handler, batch* self) { self->start_ready(ready_completion(std::move(handler))); }, token, this);
}

}  // namespace leat
#pragma GCC visibility pop
