#include "benchmarks/range_server.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace leat::benchmarks {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto answers = asio::as_tuple(asio::use_awaitable);

std::uint64_t number_at(std::string_view text, std::size_t at) {
  std::uint64_t value = 0;
  if (at < text.size()) std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

class folder_over_http {
 public:
  folder_over_http(asio::io_context& context, tcp::acceptor listener, std::string folder)
      : context_(context), listener_(std::move(listener)), folder_(std::move(folder)) {}

  asio::awaitable<void> accept() {
    for (;;) {
      auto [failure, socket] = co_await listener_.async_accept(answers);
      if (!failure) asio::co_spawn(context_, serve(std::move(socket)), asio::detached);
    }
  }

 private:
  struct file {
    int descriptor = -1;
    std::uint64_t bytes = 0;
  };
  // Opened once. None: a descriptor below 0.
  file find(const std::string& name) {
    if (const auto found = files_.find(name); found != files_.end()) return found->second;
    file made{.descriptor = ::open((folder_ + "/" + name).c_str(), O_RDONLY | O_CLOEXEC)};
    struct stat about{};
    if (made.descriptor >= 0 && ::fstat(made.descriptor, &about) == 0)
      made.bytes = static_cast<std::uint64_t>(about.st_size);
    return files_[name] = made;
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.native_non_blocking(true, ignored);
    asio::steady_timer timer(context_);
    std::string received;
    for (;;) {
      std::size_t end = received.find("\r\n\r\n");
      while (end == std::string::npos) {
        char some[4'096];
        const auto [failure, bytes] = co_await socket.async_read_some(asio::buffer(some), answers);
        if (failure) co_return;
        received.append(some, bytes);
        end = received.find("\r\n\r\n");
      }
      const std::string request = received.substr(0, end + 2);
      received.erase(0, end + 4);
      constexpr std::string_view wait_before = "/after-";
      if (const std::size_t at = request.find(wait_before); at != std::string::npos) {
        timer.expires_after(std::chrono::milliseconds(number_at(request, at + wait_before.size())));
        if (timer.expiry() > std::chrono::steady_clock::now()) co_await timer.async_wait(answers);
      }
      if (!co_await answer(socket, request)) co_return;
    }
  }

  asio::awaitable<bool> answer(tcp::socket& socket, const std::string& request) {
    const std::size_t target_end = request.find(" HTTP/1.1");
    const std::size_t name = request.rfind('/', target_end) + 1;
    const file sent = find(request.substr(name, target_end - name));
    constexpr std::string_view range = "\r\nRange: bytes=";
    const std::size_t at = request.find(range);
    const std::size_t dash = at == std::string::npos ? at : request.find('-', at);
    const bool is_whole = at == std::string::npos;
    if (sent.descriptor < 0 || (!is_whole && dash == std::string::npos)) {
      constexpr std::string_view none = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
      co_return co_await send(socket, none);
    }
    const std::uint64_t first = is_whole ? 0 : number_at(request, at + range.size());
    const std::uint64_t end = is_whole ? sent.bytes : std::min(number_at(request, dash + 1) + 1, sent.bytes);
    if (!is_whole && first >= end) {
      const std::string beyond = str_cat(
          "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nContent-Range: bytes */", sent.bytes, "\r\n\r\n");
      co_return co_await send(socket, beyond);
    }
    const std::string head =
        str_cat(is_whole ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 206 Partial Content\r\n", "Content-Length: ", end - first,
                is_whole ? "" : str_cat("\r\nContent-Range: bytes ", first, "-", end - 1, "/", sent.bytes),
                "\r\nETag: \"", sent.bytes, "\"\r\n\r\n");
    if (!co_await send(socket, head, MSG_MORE)) co_return false;
    auto offset = static_cast<off_t>(first);
    while (offset < static_cast<off_t>(end)) {
      const ssize_t some =
          ::sendfile(socket.native_handle(), sent.descriptor, &offset, end - static_cast<std::uint64_t>(offset));
      if (some == 0 || (some < 0 && errno != EAGAIN && errno != EINTR)) co_return false;
      if (some < 0) {
        const auto [failure] = co_await socket.async_wait(tcp::socket::wait_write, answers);
        if (failure) co_return false;
      }
    }
    co_return true;
  }
  static asio::awaitable<bool> send(tcp::socket& socket, std::string_view text, int flags = 0) {
    while (!text.empty()) {
      const ssize_t some = ::send(socket.native_handle(), text.data(), text.size(), flags | MSG_NOSIGNAL);
      if (some > 0) text.remove_prefix(static_cast<std::size_t>(some));
      if (some < 0 && errno != EAGAIN && errno != EINTR) co_return false;
      if (some < 0) {
        const auto [failure] = co_await socket.async_wait(tcp::socket::wait_write, answers);
        if (failure) co_return false;
      }
    }
    co_return true;
  }

  asio::io_context& context_;
  tcp::acceptor listener_;
  const std::string folder_;
  std::map<std::string, file> files_;
};

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

/// One of the bare sockets.
struct bare_connection {
  int descriptor = -1;
  std::uint64_t wanted = 0;    // of the body; 0: the head has not ended
  std::uint64_t received = 0;  // of both
  std::vector<char> memory;
};

}  // namespace

range_server::range_server(std::string folder) {
  asio::io_context context(1);
  tcp::acceptor listener(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  port_ = listener.local_endpoint().port();
  const pid_t parent = ::getpid();
  context.notify_fork(asio::io_context::fork_prepare);
  child_ = ::fork();
  if (child_ < 0) fail("fork");
  context.notify_fork(child_ == 0 ? asio::io_context::fork_child : asio::io_context::fork_parent);
  if (child_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::signal(SIGPIPE, SIG_IGN);
  try {
    folder_over_http served(context, std::move(listener), std::move(folder));
    asio::co_spawn(context, served.accept(), asio::detached);
    context.run();
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

range_server::~range_server() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

void ask_bare(std::uint16_t port, const std::string& target, std::uint64_t stride, std::uint64_t bytes,
              std::uint64_t records, std::uint64_t count, std::uint32_t connections) {
  const int events = ::epoll_create1(EPOLL_CLOEXEC);
  if (events < 0) fail("epoll_create1");
  constexpr std::size_t head_bytes_max = 4'096;
  std::vector<bare_connection> all(connections);
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
  const auto ask = [&](bare_connection& by) {
    if (asked == count) return;
    const std::uint64_t first = (asked++ % records) * stride;
    const std::string text = str_cat("GET ", target, " HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=", first, "-",
                                     first + bytes - 1, "\r\n\r\n");
    if (::send(by.descriptor, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
      fail("send");
    by.wanted = by.received = 0;
  };
  const auto close_all = [&] {
    for (const bare_connection& each : all) {
      if (each.descriptor >= 0) ::close(each.descriptor);
    }
    ::close(events);
  };
  try {
    for (bare_connection& each : all) {
      each.memory.resize(head_bytes_max + bytes);
      each.descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(port);
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (each.descriptor < 0 || ::connect(each.descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
        fail("connect");
      }
      epoll_event wanted{};
      wanted.events = EPOLLIN;
      wanted.data.ptr = &each;
      if (::epoll_ctl(events, EPOLL_CTL_ADD, each.descriptor, &wanted) != 0) fail("epoll_ctl");
      ask(each);
    }
    while (answered < count) {
      epoll_event ready[64];
      const int some = ::epoll_wait(events, ready, std::size(ready), 10'000);
      if (some <= 0 && errno != EINTR) throw error(errc::io, "the server does not answer");
      for (int i = 0; i < some; ++i) {
        auto& each = *static_cast<bare_connection*>(ready[i].data.ptr);
        const ssize_t got = ::recv(each.descriptor, each.memory.data() + each.received,
                                   each.memory.size() - each.received, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) continue;
        if (got <= 0) throw error(errc::io, "the server closes a connection");
        each.received += static_cast<std::uint64_t>(got);
        if (each.wanted == 0) {
          const std::string_view text(each.memory.data(), std::min<std::uint64_t>(each.received, head_bytes_max));
          const std::size_t end = text.find("\r\n\r\n");
          if (end == std::string_view::npos) continue;
          if (!text.starts_with("HTTP/1.1 206")) throw error(errc::io, str_cat("the server says ", text.substr(0, 40)));
          each.wanted = end + 4 + bytes;
        }
        if (each.received < each.wanted) continue;
        ++answered;
        ask(each);
      }
    }
  } catch (...) {
    close_all();
    throw;
  }
  close_all();
}

}  // namespace leat::benchmarks
