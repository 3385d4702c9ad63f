// What an answer means for the range that was asked for. Without a connection and without a clock.
#pragma once

#include "io/remote/fetch.hpp"
#include "io/remote/http_head.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace leat::io {

/// What follows a try.
enum class next_step : std::uint8_t {
  over,         ///< the fetch has its outcome
  again_now,    ///< elsewhere, or since an idle connection was closed meanwhile
  again_later,  ///< `why` says it
  lacks_room,   ///< likewise, and the store has no part in it: the process has no descriptor left
  await_keys,   ///< likewise
  give_up       ///< likewise
};

struct http_verdict {
  /// Of an answer with bytes `over` is that they are to be received; of one without, with `end`, that the fetch has ended.
  next_step next = next_step::over;
  fetch_end end = fetch_end::pending;
  std::string why = {};
  std::optional<object_facts> seen = {};
  bool is_redirect = false;  ///< to be followed
  bool is_refusal = false;   ///< the store asks for fewer requests
  std::uint64_t wait_at_least_ns = 0;
};

/// Of an answer without bytes.
///   code       of a store: "AccessDenied"; may be empty
///   at         that it was asked for at
///   expected   null where the object may be any
[[nodiscard]] http_verdict judge_error(const fetch& wanted, const http_head& head, const std::string& code,
                                       const address& at, const object_facts* expected);

/// Of the head of an answer with bytes: whether they are the range that is missing, of the object that is expected.
///   came   of its bytes, those that were received with the head
[[nodiscard]] http_verdict judge_body(const fetch& wanted, const http_head& head, std::size_t came,
                                      const object_facts* expected);

/// What a store says beside the code of a refusal; nothing of what was sent, which may hold a key or a signature.
///   returns   to be added to why; may be empty
[[nodiscard]] std::string words_of_store(const std::string& answer, const std::string& request);

/// What to do about a 407.
inline constexpr const char* words_of_user = "; give the proxy's user, as http://user:password@host:port";

}  // namespace leat::io
