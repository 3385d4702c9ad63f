#include "stages/run/concurrency_limits.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <string_view>

namespace leat::stages {

depth_control::depth_control(const memory_plan& memory, const first& begin, io::lease_pool& batch_pool,
                             io::io_threads& loops, reader_stage& reads, decode_stage& rows)
    : memory_(memory), batch_pool_(batch_pool), loops_(loops), reads_(reads), rows_(rows) {
  now_ = most();
  now_.queue_depth = begin.queue_depth;
  now_.io_threads = std::min(now_.io_threads, begin.io_threads);
  reads_.set_loops(now_.io_threads);
  if (begin.connections == 0 || now_.connections == 0) return;
  now_.connections = std::min(now_.connections, begin.connections);
  reads_.set_connections(now_.connections);
}

concurrency_limits depth_control::most() const noexcept {
  return {.batches = memory_.batches,
          .queue_depth = loops_.queue_depth_max(),
          .decode_threads = memory_.decode_threads,
          .io_threads = static_cast<std::uint32_t>(reads_.loops_max()),
          .connections = reads_.connections_max()};
}

concurrency_limits depth_control::now() const {
  const mutex_lock lock(mutex_);
  return now_;
}

void depth_control::set(const concurrency_limits& wanted) {
  const auto check = [](std::string_view what, std::uint32_t value, std::uint32_t least, std::uint32_t largest) {
    if (value >= least && value <= largest) return;
    throw error(errc::usage, str_cat("concurrency_limits::", what, " is ", value, "; give ", least, " to ", largest,
                                     ", which is what this loader has planned for"));
  };
  const concurrency_limits largest = most();
  check("batches", wanted.batches, 1, largest.batches);
  check("queue_depth", wanted.queue_depth, 0, largest.queue_depth);
  check("decode_threads", wanted.decode_threads, 1, largest.decode_threads);
  check("io_threads", wanted.io_threads, 1, largest.io_threads);
  check("connections", wanted.connections, std::min(largest.connections, 1U), largest.connections);
  const mutex_lock lock(mutex_);
  batch_pool_.set_limit(memory_.batch_bytes / memory_.batches * wanted.batches);
  loops_.set_queue_depth(wanted.queue_depth);
  rows_.set_decode_threads(wanted.decode_threads);
  reads_.set_loops(wanted.io_threads);
  if (wanted.connections != now_.connections) reads_.set_connections(wanted.connections);
  now_ = wanted;
}

}  // namespace leat::stages
