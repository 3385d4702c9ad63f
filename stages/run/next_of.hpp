// A call that waits for several loaders.
#pragma once

#include "base/mutex.hpp"
#include "stages/run/delivery.hpp"

#include <leat/operation.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace leat::stages {

/// One call to each of several deliveries. The first that has something is taken from; the others give theirs up, and have lost nothing.
/// Thread: one call, from its begin until it is taken or given up; what deliveries tell comes from any.
class next_of final : public detail::turn_giver, public std::enable_shared_from_this<next_of> {
 public:
  struct taken {
    std::size_t index = 0;
    delivery::taken from;
  };

  explicit next_of(std::vector<std::shared_ptr<delivery>> of);

  ///   executors   of the deliveries: where they tell
  ///   returns     whether it waits while the consumer holds all batches that there may be, of every one of them
  bool begin(detail::wait_completion done, const std::vector<boost::asio::any_io_executor>& executors);
  /// Ends a call that waits so, with an error that names what is held. Thread: any.
  void refuse_if_held_all();
  [[nodiscard]] bool begin_if_ready();
  [[nodiscard]] taken take();
  void give_up(std::uint64_t call) noexcept override;

 private:
  struct each {
    std::shared_ptr<delivery> of;
    std::uint64_t call = 0;
  };

  void tell(std::exception_ptr failure);
  void give_up_all() noexcept;
  [[nodiscard]] std::vector<std::size_t> in_order_of_arrival() const;

  mutex mutex_;
  std::vector<each> all_;
  detail::wait_completion waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::stages
