// What a client knows of one fetch while it is under way.
#pragma once

#include "io/remote/fetch.hpp"
#include "io/remote/http_connection.hpp"
#include "io/remote/object_sum.hpp"
#include "io/remote/redirects.hpp"
#include "io/remote/request_patience.hpp"
#include "io/remote/request_writer.hpp"
#include "io/remote/retry_rules.hpp"
#include "io/remote/shared_store.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace leat::io {

struct fetch::progress {
  route way;
  request_signature signature;
  http_connection* in_use = nullptr;
  bool is_asked_twice = false;
  http_connection* second = nullptr;
  std::unique_ptr<http_connection>
      took_over;                   // the second one, whose answer has begun before the first one's has ended
  std::size_t took_over_head = 0;  // of it: where the header ends
  std::size_t took_over_from = 0;  // bytes_received when it was asked
  bool writes = false;             // the memory may be written to
  std::optional<object_sum> sum;   // of the whole object, which is wanted
  std::uint32_t mismatches = 0;    // with it
  bool is_cancelled = false;
  std::uint32_t tries = 0;  // without a byte between them
  std::uint32_t tries_all = 0;
  std::uint64_t wanted_ns = 0;
  std::uint64_t began_ns = 0;
  std::uint64_t opened_ns = 0;    // of the last try: of a new connection, or 0
  std::uint64_t asked_ns = 0;     // likewise; 0: it has not come to that
  std::uint64_t answered_ns = 0;  // likewise
  request_patience patience{0};
  bool was_slow_store = false;  // of the last try: it was silent, as the store was with others
  std::uint64_t wait_at_least_ns = 0;
  admission admitted;
  std::uint32_t lane = 0;  // of the store_state, by where it is asked for
  told_by_try told = told_by_try::nothing;
  std::uint64_t keys_since_ns = 0;  // since when its keys are refused as expired; 0: they are not
};

}  // namespace leat::io
