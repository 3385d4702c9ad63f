// The connections of a client: those that are idle, those that are used, and which of these are silent for too long.
#pragma once

#include "io/remote/http_connection.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace leat::io {

/// Without a clock: times are those of ran_ns(), and of connections that are idle those of now_ns(). Thread: one.
class connection_pool {
 public:
  static constexpr auto idle_time_max = std::chrono::seconds(20);

  explicit connection_pool(std::size_t idle_max) : idle_max_(idle_max) {}

  /// Null: there is none to this server.
  [[nodiscard]] std::unique_ptr<http_connection> take_idle(const address& to);
  void keep(std::unique_ptr<http_connection> used, std::uint64_t now_ns);
  /// Those that nobody has used for idle_time_max: servers close them.
  void close_old(std::uint64_t now_ns);
  ///   returns   whether there were any
  bool close_idle();

  /// One that is in use, as long as this lives.
  class place {
   public:
    place(connection_pool& all, http_connection& used) : all_(all), used_(used) { all_.active_.push_back(&used_); }
    ~place() { std::erase(all_.active_, &used_); }
    place(const place&) = delete;
    place& operator=(const place&) = delete;

   private:
    connection_pool& all_;
    http_connection& used_;
  };
  [[nodiscard]] std::size_t active() const noexcept { return active_.size(); }
  [[nodiscard]] bool is_empty() const noexcept { return active_.empty() && idle_.empty(); }
  [[nodiscard]] bool has_open() const;

  /// Closes those that are too late, which `late` is told before; `others` gets the rest, and may add to them.
  void watch(std::uint64_t ran_ns, const std::function<void(http_connection&)>& late,
             const std::function<void(http_connection&)>& others);

  struct silence {
    const http_connection* asked = nullptr;  ///< one that waits for an answer; null: none does
    std::uint64_t heard_ns = 0;              ///< when the last of them has sent anything
  };
  [[nodiscard]] silence of(const known_server& server) const;
  /// Those of a server that have been silent for so long.
  void close_silent(const known_server& server, std::uint64_t ran_ns, std::uint64_t silent_ns);

 private:
  const std::size_t idle_max_;
  std::vector<std::unique_ptr<http_connection>> idle_;
  std::vector<http_connection*> active_;
};

}  // namespace leat::io
