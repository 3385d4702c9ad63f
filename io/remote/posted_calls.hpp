// Calls for the thread that runs a context, from any other.
#pragma once

#include "base/mutex.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <vector>

namespace leat::io {

/// asio::post() of another thread wakes by a descriptor of which Asio does not look whether epoll has taken it: where the system had no memory
/// for that, what was posted lies until something else happens. With one of its own a context needs no timer that looks for what lies there.
class posted_calls {
 public:
  using call = std::function<void()>;

  ///   throws   boost::system::system_error: no descriptor, or no memory of epoll for it
  explicit posted_calls(boost::asio::io_context& context);
  posted_calls(const posted_calls&) = delete;
  posted_calls& operator=(const posted_calls&) = delete;

  /// Thread: any.
  void post(call what);
  /// Calls them, in their order, for as long as the context runs. Outlived by this.
  [[nodiscard]] boost::asio::awaitable<void> run();

 private:
  boost::asio::posix::stream_descriptor bell_;
  mutex mutex_;
  std::vector<call> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::io
