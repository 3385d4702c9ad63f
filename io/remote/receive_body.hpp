// The bodies of answers: texts of bounded size, and bytes straight to where they are wanted.
#pragma once

#include "io/remote/fetch.hpp"
#include "io/remote/http_connection.hpp"
#include "io/remote/http_head.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <string>

namespace leat::io {

struct received_text {
  std::string text;
  boost::system::error_code broken = {};
  std::string refusal;  ///< not empty: it is no answer, or too long
  bool is_whole = false;
  bool is_reusable = false;  ///< the connection
};

/// What `line` has received, and what comes after it, until `wanted` has ended.
[[nodiscard]] boost::asio::awaitable<received_text> receive_text(const fetch& wanted, http_connection& line,
                                                                 const http_head& head);
/// An error's text, of a length that is said or in chunks. Where neither is, what came with the head: some servers send no text then, and leave
/// the connection open.
///   head_bytes   of what was received
[[nodiscard]] boost::asio::awaitable<received_text> receive_words(const fetch& wanted, http_connection& line,
                                                                  const http_head& head, std::size_t head_bytes);
/// So many bytes behind those that `wanted` has, and never one beyond. They are counted as they come.
[[nodiscard]] boost::asio::awaitable<boost::system::error_code> receive_bytes(fetch& wanted, http_connection& line,
                                                                              std::size_t bytes);

}  // namespace leat::io
