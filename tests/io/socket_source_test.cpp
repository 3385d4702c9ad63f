// The source contract on a source that is no files: it talks to a server over a local socket, by Asio, on the loop that it was connected
// to. What an object store's source needs of a connector is its executor.
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "io/files/read_error.hpp"
#include "io/ring/make_ring_loop.hpp"
#include "io/ring/preadv_loop.hpp"
#include "tests/io/loop_subject.hpp"
#include "tests/io/source_contract.hpp"
#include "tests/support/seeded_random.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

namespace asio = boost::asio;

/// Bytes of a file; or, where `bytes` is size_only, its size and version.
struct wire_request {
  static constexpr std::uint64_t size_only = ~std::uint64_t{0};
  std::uint64_t tag = 0;
  std::uint64_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// So many bytes follow it.
struct wire_reply {
  std::uint64_t tag = 0;
  std::uint64_t failure = 0;
  std::uint64_t bytes = 0;
  std::uint64_t size = 0;
  std::uint64_t version = 0;
};

/// Answers on a thread of its own, in any order, until the other end is closed.
class file_server {
 public:
  file_server() {
    int ends[2] = {};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no socketpair");
    own_ = ends[0];
    client_ = ends[1];
    thread_ = std::thread([this] { serve(); });
  }
  file_server(const file_server&) = delete;
  file_server& operator=(const file_server&) = delete;
  ~file_server() {
    if (client_ >= 0) ::close(client_);
    thread_.join();
    ::close(own_);
  }

  std::uint32_t add(std::vector<std::byte> contents) {
    const mutex_lock lock(mutex_);
    const std::uint64_t size = contents.size();
    files_.push_back({std::move(contents), 1, true, size});
    return static_cast<std::uint32_t>(files_.size() - 1);
  }
  std::uint32_t add_missing() {
    const mutex_lock lock(mutex_);
    files_.push_back({{}, 0, false, 0});
    return static_cast<std::uint32_t>(files_.size() - 1);
  }
  void replace(std::uint32_t file, std::vector<std::byte> contents) {
    const mutex_lock lock(mutex_);
    files_[file].contents = std::move(contents);
    ++files_[file].version;
  }
  /// The socket to talk to it; given once, to who closes it.
  [[nodiscard]] int client() noexcept { return std::exchange(client_, -1); }

 private:
  struct served_file {
    std::vector<std::byte> contents;
    std::uint64_t version = 0;
    bool there = false;
    std::uint64_t known_bytes = 0;  // when it was added
  };

  void serve() {
    std::vector<wire_request> asked;
    while (take(asked)) {
      for (; !asked.empty(); asked.pop_back()) {
        std::swap(asked.back(), asked[random_.below(asked.size())]);
        if (!answer(asked.back())) return;
      }
    }
  }
  // One request, and others that are there already.
  bool take(std::vector<wire_request>& asked) const {
    pollfd more{own_, POLLIN, 0};
    do {
      wire_request one;
      if (::recv(own_, &one, sizeof one, MSG_WAITALL) != static_cast<ssize_t>(sizeof one)) return false;
      asked.push_back(one);
    } while (asked.size() < 16 && ::poll(&more, 1, 0) > 0);
    return true;
  }
  bool answer(const wire_request& asked) {
    wire_reply reply{.tag = asked.tag};
    std::vector<std::byte> content;
    {
      const mutex_lock lock(mutex_);
      const served_file& file = files_[asked.file];
      reply.size = file.contents.size();
      reply.version = file.version;
      if (!file.there) {
        reply.failure = ENOENT;
      } else if (asked.bytes != wire_request::size_only) {
        const std::uint64_t begin = std::min<std::uint64_t>(asked.offset, reply.size);
        reply.bytes = std::min(asked.bytes, reply.size - begin);
        if (reply.bytes < asked.bytes) reply.failure = ENODATA;
        if (asked.offset == 0 && asked.bytes == file.known_bytes && reply.size > asked.bytes) {
          reply.failure = EFBIG;
          reply.bytes = 0;
        }
        const auto first = file.contents.begin() + static_cast<std::ptrdiff_t>(begin);
        content.assign(first, first + static_cast<std::ptrdiff_t>(reply.bytes));
      }
    }
    return send(&reply, sizeof reply) && send(content.data(), content.size());
  }
  [[nodiscard]] bool send(const void* data, std::size_t bytes) const {
    const auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t sent = ::send(own_, at, bytes, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    }
    return true;
  }

  mutex mutex_;
  std::vector<served_file> files_ ABSL_GUARDED_BY(mutex_);
  seeded_random random_{1};  // its thread's
  int own_ = -1;
  int client_ = -1;
  std::thread thread_;
};

/// What its coroutines share with a source. Loop thread.
class conversation : public std::enable_shared_from_this<conversation> {
 public:
  conversation(async::loop::executor_type on, int socket)
      : executor_(on), socket_(on, asio::local::stream_protocol(), socket) {}

  void listen() { spawn(&conversation::receive); }
  void close() { socket_.close(); }

  void ask(io::read_operation& operation) {
    operation.started_ns = now_ns();
    operation.failure = 0;
    operation.data = {};
    reads_[++last_tag_] = &operation;
    operation.state = tag_as_state(last_tag_);
    send({.tag = last_tag_, .file = operation.file, .offset = operation.offset, .bytes = operation.bytes});
  }
  void ask(io::open_operation& operation) {
    opens_[++last_tag_] = &operation;
    send({.tag = last_tag_, .file = operation.file, .bytes = wire_request::size_only});
  }
  void cancel(io::read_operation& operation) {
    const auto found = reads_.find(reinterpret_cast<std::uintptr_t>(operation.state));
    // One whose bytes are on their way into its memory ends when they are there.
    if (found == reads_.end() || found->second != &operation) return;
    reads_.erase(found);
    asio::post(executor_, [self = shared_from_this(), &operation] {
      operation.failure = ECANCELED;
      operation.done(operation);
    });
  }

 private:
  static void* tag_as_state(std::uint64_t tag) noexcept { return reinterpret_cast<void*>(tag); }

  void spawn(asio::awaitable<void> (conversation::*work)()) {
    asio::co_spawn(
        executor_, [self = shared_from_this(), work]() -> asio::awaitable<void> { co_await ((*self).*work)(); },
        asio::detached);
  }
  void send(const wire_request& what) {
    to_send_.push_back(what);
    if (!std::exchange(sending_, true)) spawn(&conversation::send_all);
  }
  asio::awaitable<void> send_all() {
    while (!to_send_.empty()) {
      const std::vector<wire_request> some = std::exchange(to_send_, {});
      const auto [failure, bytes] =
          co_await asio::async_write(socket_, asio::buffer(some), asio::as_tuple(asio::use_awaitable));
      if (failure) break;
    }
    sending_ = false;
  }
  asio::awaitable<void> receive() {
    std::vector<std::byte> ignored;
    for (;;) {
      wire_reply reply;
      if (!co_await fill(asio::buffer(&reply, sizeof reply))) co_return;
      if (const auto found = opens_.find(reply.tag); found != opens_.end()) {
        io::open_operation& opened = *found->second;
        opens_.erase(found);
        opened.size_bytes = reply.size;
        opened.version = reply.version;
        opened.failure = static_cast<int>(reply.failure);
        opened.done(opened);
        continue;
      }
      const auto found = reads_.find(reply.tag);
      if (found == reads_.end()) {  // It was cancelled.
        ignored.resize(reply.bytes);
        if (!co_await fill(asio::buffer(ignored))) co_return;
        continue;
      }
      io::read_operation& read = *found->second;
      reads_.erase(found);
      const std::span<std::byte> into = read.into.bytes.first(reply.bytes);
      if (!co_await fill(asio::buffer(into.data(), into.size()))) co_return;
      read.data = into;
      read.failure = static_cast<int>(reply.failure);
      read.done(read);
    }
  }
  asio::awaitable<bool> fill(asio::mutable_buffer into) {
    const auto [failure, bytes] = co_await asio::async_read(socket_, into, asio::as_tuple(asio::use_awaitable));
    co_return !failure;
  }

  async::loop::executor_type executor_;
  asio::local::stream_protocol::socket socket_;
  std::unordered_map<std::uint64_t, io::read_operation*> reads_;
  std::unordered_map<std::uint64_t, io::open_operation*> opens_;
  std::vector<wire_request> to_send_;
  std::uint64_t last_tag_ = 0;
  bool sending_ = false;
};

class socket_source final : public io::source {
 public:
  socket_source(io::connector& loop, int socket) : talk_(std::make_shared<conversation>(loop.executor(), socket)) {
    talk_->listen();
  }
  ~socket_source() override { talk_->close(); }

  void start(std::span<io::read_operation* const> operations) override {
    for (io::read_operation* each : operations) talk_->ask(*each);
  }
  void start(io::open_operation& operation) override { talk_->ask(operation); }
  void cancel(io::read_operation& operation) override { talk_->cancel(operation); }
  [[nodiscard]] error explain(const io::read_operation& operation) const override {
    return io::explain_read({.failure = operation.failure,
                             .path = "the server's file",
                             .offset = operation.offset,
                             .bytes = operation.bytes,
                             .data_bytes = operation.data.size()});
  }
  [[nodiscard]] error explain(const io::open_operation& operation) const override {
    return io::explain_open(operation.failure, "the server's file");
  }

 private:
  std::shared_ptr<conversation> talk_;
};

class socket_subject final : public source_subject {
 public:
  socket_subject(std::shared_ptr<io::arena> memory, const running_loop::maker& make)
      : running_({}, std::move(memory), make) {}
  ~socket_subject() override {
    running_.call([this] { source_.reset(); });
  }

  std::uint32_t add_file(const std::vector<std::byte>& contents) override { return server_.add(contents); }
  std::uint32_t add_missing_file() override { return server_.add_missing(); }
  void replace_file(std::uint32_t file, const std::vector<std::byte>& contents) override {
    server_.replace(file, contents);
  }
  void connect() override {
    running_.call([this] { source_ = std::make_unique<socket_source>(running_.loop(), server_.client()); });
  }
  [[nodiscard]] io::source& source() override { return *source_; }
  void call(const std::function<void()>& function) override { running_.call(function); }
  void run_until_zero(std::atomic<std::size_t>& left) override {
    for (std::size_t now = left.load(); now != 0; now = left.load()) left.wait(now);
  }

 private:
  file_server server_;
  running_loop running_;
  std::unique_ptr<io::source> source_;
};

source_maker socket_on(std::string name, const running_loop::maker& make) {
  return {std::move(name), [make](std::shared_ptr<io::arena> memory) {
            return std::make_unique<socket_subject>(std::move(memory), make);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    socket, source_contract,
    ::testing::Values(socket_on("on_the_ring", [](io::io_context& context) { return io::make_ring_loop(context, {}); }),
                      socket_on("on_preadv",
                                [](io::io_context& context) { return io::make_preadv_loop(context, "asked for"); })),
    name_of_maker);

TEST(connector, runs_a_source_s_handlers_on_the_loop_s_thread) {
  const auto memory = std::make_shared<io::arena>(io::arena_options{.bytes_max = std::size_t{1} << 20});
  running_loop running({}, memory, [](io::io_context& context) { return io::make_preadv_loop(context, "asked for"); });
  std::thread::id loop_thread;
  running.call([&] { loop_thread = std::this_thread::get_id(); });
  std::promise<std::thread::id> seen;
  asio::post(running.loop().executor(), [&] { seen.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(seen.get_future().get(), loop_thread);
}

}  // namespace
}  // namespace leat::testing
