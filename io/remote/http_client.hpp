// Ranges of objects over HTTP/1.1, with or without TLS, straight into the memory they are for. One thread of its own talks to the
// servers: a loop of io/ has no reactor for sockets, and what TLS takes is not to hold up the loop.
#pragma once

#include "io/remote/address.hpp"
#include "io/remote/s3.hpp"
#include "io/remote/transfer_counts.hpp"

#include <leat/remote.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::io {

class name_answers;

/// What a server says of an object.
struct object_facts {
  std::uint64_t size_bytes = 0;
  std::string etag;
  std::string last_modified;
  std::optional<std::int64_t> told_unix_s = {};  ///< when that was, by the server's clock

  /// Of the address without what signs it, the size and the tag, or the time where there is no tag that is good for each byte. 0 where
  /// these may stay the same though the content changes: the server tells neither, or a time that had not passed when it answered.
  ///   source   RFC 9110 8.8.1: a tag is one resource's, the query included, and a weak one promises no equal bytes
  [[nodiscard]] std::uint64_t version(const address& where) const;
};

enum class fetch_end : std::uint8_t {
  pending,
  whole,     ///< all bytes are there
  short_of,  ///< the object ends before them
  missing,   ///< there is no such object
  changed,   ///< it is another one than was expected
  refused,   ///< by the server, for good: `why` says it
  damaged,   ///< several times what came was not what the store's checksum is of
  failed,    ///< after all tries, or by what a server must not do: `why` says it
  cancelled
};

/// One range that is wanted. Who asks fills the first block and calls http_client::start(); after `ended` the client has let go of it
/// and of its memory.
struct fetch : std::enable_shared_from_this<fetch> {
  const address* where = nullptr;  ///< outlives it
  std::uint64_t offset = 0;
  std::span<std::byte> into;                 ///< as many bytes as are wanted, one at least
  const object_facts* expected = nullptr;    ///< outlives it; null where the object may be any
  void (*ended)(fetch&) noexcept = nullptr;  ///< on the client's thread, once
  void* owner = nullptr;
  /// Where it is not 0: not a range, but the whole answer, a text, goes to `whole`.
  std::size_t whole_bytes_max = 0;
  /// Of a question that is no object: what it asks by, and lines of its own. They follow no redirect to another server.
  std::string method = "GET";
  std::vector<header_line> headers = {};
  bool is_signed = false;  ///< by the client's keys, where it is asked for at `where`

  fetch_end end = fetch_end::pending;
  std::size_t bytes_received = 0;
  std::optional<object_facts> seen;  ///< where a server has said them
  std::string why;                   ///< without the address
  std::string whole;

  // The client's own.
  struct progress;
  std::shared_ptr<progress> state;
};

/// What is tried again and when; tests want to wait for less.
struct retry_options {
  std::uint32_t tries_max = ~std::uint32_t{0};  ///< without a byte between them
  std::chrono::milliseconds wait_first = std::chrono::milliseconds(5);
  std::chrono::milliseconds wait_max = std::chrono::seconds(1);             ///< where the store does not ask for more
  std::chrono::milliseconds unreached_patience = std::chrono::seconds(20);  ///< with a server that never answered
  /// After so long without a byte of a server that is asked, a connection of its own looks whether it is there.
  std::chrono::milliseconds server_silence = std::chrono::seconds(2);
  std::chrono::milliseconds unknown_patience = std::chrono::seconds(5);  ///< where its name is not known either
  name_answers* names = nullptr;  ///< that servers are looked up by; null: the process's
  std::chrono::milliseconds keys_patience = std::chrono::minutes(1);  ///< with a lender of keys, once they have expired
  std::chrono::milliseconds others_patience =
      std::chrono::seconds(10);  ///< with a block of a cache that another one fills
};

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

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace leat::io
