// Names of servers, looked up in one place: once for all who ask, side by side, and kept for a while.
#pragma once

#include "base/hash_map.hpp"
#include "base/mutex.hpp"

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat::io {

/// What is known of a name.
struct name_answer {
  enum class kind : std::uint8_t { pending, found, failed };
  kind what = kind::pending;
  std::vector<boost::asio::ip::address> addresses = {};  ///< in the order to try them in
  std::string why = {};                                  ///< of one that failed
  bool is_unknown = false;                               ///< whoever was asked says that there is no such name
};

/// Thread: any. Times are those of one clock.
///
/// The system does not tell how long an answer is good: it is kept for a minute, and while it is asked for again. A name that failed is asked for
/// again after a second; one that was found before keeps its addresses meanwhile.
class name_answers {
 public:
  /// Asks the system. Blocks, for as long as it likes.
  using lookup = std::function<name_answer(const std::string& name)>;

  static constexpr std::uint64_t found_ns = 60'000'000'000;
  static constexpr std::uint64_t failed_ns = 1'000'000'000;
  static constexpr std::uint64_t dead_ns = 60'000'000'000;

  explicit name_answers(lookup how) : known_(std::make_shared<known>(std::move(how))) {}

  /// What is known; where that is nothing, a thread asks, and the answer is pending until it comes. Nobody waits for this thread, which may hang
  /// for as long as a name server is silent.
  [[nodiscard]] name_answer ask(const std::string& name, std::uint64_t now_ns);
  /// This address of a server was silent: it is tried last, for a minute.
  void is_dead(const boost::asio::ip::address& where, std::uint64_t now_ns);
  /// None of its addresses would do: the name is asked for anew.
  void forget(const std::string& name, std::uint64_t now_ns);

 private:
  struct entry {
    name_answer last;  // found, or failed where it never was found
    std::uint64_t good_until_ns = 0;
    bool is_asked = false;
  };
  // What the threads share.
  struct known {
    explicit known(lookup asks) : how(std::move(asks)) {}
    const lookup how;
    mutex guard;
    hash_map<std::string, entry> names ABSL_GUARDED_BY(guard);
    hash_map<std::string, std::uint64_t> dead_until_ns ABSL_GUARDED_BY(guard);
  };
  static void start_asking(const std::shared_ptr<known>& all, const std::string& name, entry& of, std::uint64_t now_ns);
  static void take(known& all, const std::string& name, name_answer answer, std::uint64_t now_ns);

  const std::shared_ptr<known> known_;
};

/// This process's, by getaddrinfo(3).
[[nodiscard]] name_answers& names_of_process();

/// Addresses of both families in turns, the first one's family first (RFC 8305).
[[nodiscard]] std::vector<boost::asio::ip::address> in_turns(const std::vector<boost::asio::ip::address>& addresses);

}  // namespace leat::io
