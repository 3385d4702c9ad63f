// A thread for functions that may take as long as they like.
#pragma once

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <string>
#include <thread>

namespace leat::async {

/// Runs what is posted to its executor, one after the other. Ends when all of it has run: on the thread itself, it is left to end by
/// itself.
class own_thread {
 public:
  ///   name   shown by top -H and debuggers: 15 characters at most
  /// Throws error{errc::limit} where no thread can be had.
  explicit own_thread(std::string name);
  own_thread(const own_thread&) = delete;
  own_thread& operator=(const own_thread&) = delete;
  ~own_thread();

  [[nodiscard]] boost::asio::any_io_executor executor() const;

 private:
  struct work;
  std::shared_ptr<work> work_;
  std::thread thread_;
};

}  // namespace leat::async
