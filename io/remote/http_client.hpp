// Ranges of objects over HTTP/1.1, with or without TLS, straight into the memory they are for. One thread of its own talks to the
// servers: a loop of io/ has no reactor for sockets, and what TLS takes is not to hold up the loop.
#pragma once

#include "io/remote/fetch.hpp"
#include "io/remote/retry_rules.hpp"
#include "io/remote/s3.hpp"
#include "io/remote/transfer_counts.hpp"

#include <leat/remote.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace leat::io {

class http_client {
 public:
  /// Starts the thread.
  ///   throws   error{errc::usage} a ca_file that cannot be read or has no certificate; error{errc::limit} no thread to be had
  ///   store    whose requests are signed, where it has keys; null: none
  ///   counts   outlives this; null: nobody asks
  explicit http_client(const remote_options& options, const retry_options& retries = {},
                       const s3_access* store = nullptr, transfer_counts* counts = nullptr);
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;
  /// Joins the thread. Every fetch has ended before.
  ~http_client();

  // Thread: any.
  void start(std::vector<std::shared_ptr<fetch>> wanted);
  /// The same of one, whose `owner` and `ended` are this call's, and waits for its end. Not on the client's thread.
  void fetch_now(const std::shared_ptr<fetch>& wanted);
  /// It ends soon, cancelled or with the outcome that was faster.
  void cancel(std::shared_ptr<fetch> wanted);
  /// As connection_limit::set_most().
  ///   connections   no more than remote_options::connections_max
  void set_connections(std::uint32_t connections);

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace leat::io
