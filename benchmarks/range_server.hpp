// A store for measurements: files of a folder by ranges over HTTP, from a process of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace leat::benchmarks {

/// "/after-30-ms/train-000.tar" is the file train-000.tar, 30 ms after it was asked for. One thread, sendfile(2); it waits for no request
/// while it answers others.
class range_server {
 public:
  /// Forks: no thread of this process may hold a lock meanwhile, so before any is started.
  ///   throws   std::system_error
  explicit range_server(std::string folder);
  range_server(const range_server&) = delete;
  range_server& operator=(const range_server&) = delete;
  ~range_server();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// "http://127.0.0.1:40001"
  [[nodiscard]] std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  std::uint16_t port_ = 0;
  pid_t child_ = -1;
};

/// Asks a server on this machine for records of one object, and receives them: one thread, sockets, epoll, and nothing else.
///   stride, bytes   the i-th record begins at (i % records) * stride
///   count           of all requests
///   throws          error{errc::io}, std::system_error
void ask_bare(std::uint16_t port, const std::string& target, std::uint64_t stride, std::uint64_t bytes,
              std::uint64_t records, std::uint64_t count, std::uint32_t connections);

}  // namespace leat::benchmarks
