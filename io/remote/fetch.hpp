// One range of an object that is wanted, and what has become of it.
#pragma once

#include "io/remote/address.hpp"
#include "io/remote/networked.hpp"
#include "io/remote/object_facts.hpp"
#include "io/remote/sigv4.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::io {

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
  request_times times;  ///< of the last try

  // The client's own.
  struct progress;
  std::shared_ptr<progress> state;
};

}  // namespace leat::io
