// Goes through the order some way ahead of the batches that are started, and says what their reads will ask for, so that a source that
// fetches in large blocks has them when they are asked for.
#pragma once

#include "stages/plan/run_spec.hpp"
#include "stages/run/read.hpp"

#include <leat/extent.hpp>
#include <leat/sampler.hpp>

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <deque>
#include <vector>

namespace leat::stages {

/// Refers to its arguments, which the loader keeps. Thread: the first I/O thread.
class readahead {
 public:
  /// A batch that is about to be started.
  ///   sequence   of deliveries, which ends of epochs are among
  struct place {
    std::uint32_t epoch = 0;
    std::uint64_t batch = 0;
    std::uint64_t sequence = 0;

    friend bool operator==(const place&, const place&) = default;
  };

  ///   to            rows that it holds are not read
  ///   epochs        0: endless
  ///   batches_max   of the whole run; 0: all of each epoch
  readahead(const run_spec& run, reader_stage& reads, transfer& to, std::uint32_t epochs, std::uint64_t batches_max);

  /// Whether go_on() has something to do: a source wants to know, and the run has not been gone through.
  [[nodiscard]] bool is_wanted() const noexcept { return !is_over_; }
  /// Goes on from where it is until it is as far ahead as the sources want: reader_stage::ahead_bytes(), and two batches at least; not
  /// beyond some ten thousands of rows, nor beyond the epoch that comes next. The loop has turns meanwhile. Only where
  /// is_wanted().
  boost::asio::awaitable<void> go_on(place now);

 private:
  struct hinted {
    place at;
    std::uint64_t bytes = 0;
    std::uint64_t rows = 0;
  };
  void start_from(place now);
  [[nodiscard]] bool is_far_enough() const noexcept;
  [[nodiscard]] bool find_next(place now);
  [[nodiscard]] boost::asio::awaitable<hinted> hint_next();

  const run_spec& run_;
  reader_stage& reads_;
  transfer& transfer_;
  const std::uint32_t epochs_;
  std::uint64_t batches_left_;
  bool is_over_ = false;
  place next_;
  std::deque<hinted> ahead_;  // of batches that are not started
  std::uint64_t ahead_bytes_ = 0;
  std::uint64_t ahead_rows_ = 0;
  std::vector<pick> picks_;
  std::vector<const held_row*> held_;
  std::vector<extent> places_;
};

}  // namespace leat::stages
