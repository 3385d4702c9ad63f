#include "io/remote/receive_body.hpp"

#include "io/remote/ran_clock.hpp"

#include <boost/asio/buffer.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace leat::io {
namespace {

namespace asio = boost::asio;

constexpr std::size_t text_read_bytes = std::size_t{64} << 10;
constexpr std::size_t words_read_bytes = std::size_t{4} << 10;
// Of an answer that is an error: read, so that the connection can be used again.
constexpr std::size_t words_bytes_max = std::size_t{16} << 10;

asio::awaitable<boost::system::error_code> feed_rest(const fetch& wanted, http_connection& line, http_text& text,
                                                     http_text::state& now, std::size_t at_once) {
  std::vector<char> more(at_once);
  while (now == http_text::state::more) {
    const auto [broken, bytes] = co_await line.read_some(asio::buffer(more), true);
    line.silent_since_ns = ran_ns();
    if (wanted.end != fetch_end::pending || broken) co_return broken;
    now = text.feed({more.data(), bytes});
  }
  co_return boost::system::error_code();
}

received_text taken(http_text& text, http_text::state now, const http_head& head) {
  received_text made;
  if (now == http_text::state::refused) {
    made.refusal = text.refusal();
    return made;
  }
  made.is_whole = now == http_text::state::whole;
  made.is_reusable = made.is_whole && head.keeps_alive && !text.has_excess();
  made.text = text.take();
  return made;
}

}  // namespace

asio::awaitable<received_text> receive_text(const fetch& wanted, http_connection& line, const http_head& head) {
  http_text text(wanted.whole_bytes_max);
  http_text::state now = text.feed(line.received);
  const boost::system::error_code broken = co_await feed_rest(wanted, line, text, now, text_read_bytes);
  received_text made = taken(text, now, head);
  made.broken = broken;
  co_return made;
}

asio::awaitable<received_text> receive_words(const fetch& wanted, http_connection& line, const http_head& head,
                                             std::size_t head_bytes) {
  http_text text(words_bytes_max);
  http_text::state now = text.feed(line.received);
  if (head.is_chunked || head.content_bytes)
    static_cast<void>(co_await feed_rest(wanted, line, text, now, words_read_bytes));
  received_text made = taken(text, now, head);
  if (!made.refusal.empty()) made.text = line.received.substr(head_bytes);
  co_return made;
}

asio::awaitable<boost::system::error_code> receive_bytes(fetch& wanted, http_connection& line, std::size_t bytes) {
  boost::system::error_code failure;
  // Not asio::async_read, which asks for 64 KiB at most: 2.2 times the CPU for reads of a MiB.
  while (bytes > 0 && !failure) {
    const auto [broken, some] =
        co_await line.read_some(asio::buffer(wanted.into.data() + wanted.bytes_received, bytes), true);
    wanted.bytes_received += some;
    bytes -= some;
    failure = broken;
    line.silent_since_ns = ran_ns();
    line.wake_at(bytes);
  }
  co_return failure;
}

}  // namespace leat::io
