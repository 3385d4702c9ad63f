#include "stages/run/next_of.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace leat::stages {

next_of::next_of(std::vector<std::shared_ptr<delivery>> of) {
  all_.reserve(of.size());
  for (std::shared_ptr<delivery>& one : of) {
    const std::uint64_t call = one->new_call();
    all_.push_back({.of = std::move(one), .call = call});
  }
}

std::vector<std::size_t> next_of::in_order_of_arrival() const {
  std::vector<std::pair<std::uint64_t, std::size_t>> since;
  for (std::size_t index = 0; index < all_.size(); ++index) {
    since.emplace_back(all_[index].of->ready_since_ns(), index);
  }
  std::sort(since.begin(), since.end());
  std::vector<std::size_t> order;
  for (const auto& [ns, index] : since) order.push_back(index);
  return order;
}

bool next_of::begin_if_ready() {
  for (const std::size_t index : in_order_of_arrival()) {
    if (all_[index].of->begin_if_ready(all_[index].call)) return true;
  }
  return false;
}

bool next_of::begin(detail::wait_completion done, const std::vector<boost::asio::any_io_executor>& executors) {
  // What is told meanwhile, on other threads, waits until all have begun.
  const mutex_lock lock(mutex_);
  done.on_cancel([self = weak_from_this()](boost::asio::cancellation_type) {
    if (const std::shared_ptr<next_of> here = self.lock()) here->give_up(0);
  });
  waiting_ = std::move(done);
  bool waits_for_consumer = true;
  for (std::size_t index = 0; index < all_.size(); ++index) {
    const auto told = [self = shared_from_this()](std::exception_ptr failure) { self->tell(std::move(failure)); };
    const bool held = all_[index].of->begin(all_[index].call, detail::wait_completion(told, executors[index]));
    waits_for_consumer = waits_for_consumer && held;
  }
  return waits_for_consumer;
}

void next_of::refuse_if_held_all() {
  if (!std::all_of(all_.begin(), all_.end(), [](const each& one) { return one.of->holds_all(); })) return;
  if (all_.size() == 1) return tell(std::make_exception_ptr(all_.front().of->held_all_error()));
  std::string which;
  for (std::size_t index = 0; index < all_.size(); ++index) {
    str_append(which, index > 0 ? "; " : "", "of loader ", index, ": ", all_[index].of->held_all_error().what());
  }
  tell(std::make_exception_ptr(error(errc::usage, which)));
}

void next_of::tell(std::exception_ptr failure) {
  detail::wait_completion told;
  {
    const mutex_lock lock(mutex_);
    told = std::move(waiting_);
  }
  if (!told) return;  // Those that were given up say that they were aborted, to nobody.
  if (failure != nullptr) give_up_all();
  told.complete(std::move(failure));
}

next_of::taken next_of::take() {
  const std::vector<std::size_t> order = in_order_of_arrival();
  const auto first = std::find_if(order.begin(), order.end(),
                                  [&](std::size_t index) { return all_[index].of->is_served(all_[index].call); });
  assert(first != order.end());
  taken made{.index = *first, .from = all_[*first].of->take(all_[*first].call)};
  give_up_all();
  return made;
}

// But for the one that was taken, whose call has ended.
void next_of::give_up_all() noexcept {
  for (const each& one : all_) one.of->give_up(one.call);
}

void next_of::give_up(std::uint64_t /*call*/) noexcept {
  detail::wait_completion told;
  {
    const mutex_lock lock(mutex_);
    told = std::move(waiting_);
  }
  give_up_all();
  if (told) told.complete(detail::operation_aborted());
}

}  // namespace leat::stages
