#include "tests/device/emulated_photos.hpp"

#include "stages/device/photo_threads.hpp"

#include <array>
#include <functional>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using stages::photo_threads::lane_state;
using stages::photo_threads::lanes;
using stages::photo_threads::row_memory;
using states = std::array<lane_state, lanes>;

std::set<int>& passed() {
  static std::set<int> lines;
  return lines;
}

// Every number below `count` once, or 32 at a time for lanes.
class shuffle {
 public:
  std::uint32_t operator()(thread_order order, std::uint32_t i, std::uint32_t count) {
    switch (order) {
      case thread_order::descending:
        return count - 1 - i;
      case thread_order::shuffled:
        if (i == 0) first_ = (first_ * 1664525 + 1013904223) % 65536;
        return (i * 5 + first_) % count;  // count: no multiple of 5
      default:
        return i;
    }
  }

 private:
  std::uint32_t first_ = 1;
};

// What run() is given between two barriers is written down. Where a barrier is left out it is undone, and half of the lanes do
// it again and go on to the next barrier; then the others do all of it.
class emulated_warp {
 public:
  emulated_warp(row_memory& memory, thread_order order, int without)
      : memory_(memory), order_(order), without_(without) {
    begin_segment();
  }
  emulated_warp(const emulated_warp&) = delete;
  emulated_warp& operator=(const emulated_warp&) = delete;
  ~emulated_warp() { catch_up(); }

  template <class F>
  void run(const F& f) {
    const auto of_lane = [f](std::uint32_t lane, const lane_state& my) { f(lane, my); };
    each([&](std::uint32_t lane) {
      if (!half_ahead_ || is_ahead(lane)) of_lane(lane, states_[lane]);
    });
    if (without_ != 0) steps_.push_back({of_lane, states_});
  }

  void barrier(int line = __builtin_LINE()) {
    passed().insert(line);
    if (half_ahead_ || line != without_) {
      catch_up();
      begin_segment();
      return;
    }
    half_ahead_ = true;
    memory_ = before_;
    for (const step& each_step : steps_) {
      each([&](std::uint32_t lane) {
        if (is_ahead(lane)) each_step.what(lane, each_step.with[lane]);
      });
    }
  }

  template <class F>
  std::uint32_t ballot(const F& f) {
    std::uint32_t bits = 0;
    each([&](std::uint32_t lane) { bits |= std::uint32_t{f(lane, states_[lane])} << lane; });
    return bits;
  }
  template <class F>
  std::uint32_t sum(const F& f) {
    std::uint32_t all = 0;
    each([&](std::uint32_t lane) { all += f(lane, states_[lane]); });
    return all;
  }
  template <class F>
  std::uint32_t scan(const F& f) {
    std::array<std::uint32_t, lanes> own;
    each([&](std::uint32_t lane) { own[lane] = f(lane, states_[lane]); });
    std::uint32_t all = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      states_[lane].before = all;
      all += own[lane];
    }
    return all;
  }

 private:
  struct step {
    std::function<void(std::uint32_t, const lane_state&)> what;
    states with;
  };

  static bool is_ahead(std::uint32_t lane) { return lane % 2 == 0; }

  template <class F>
  void each(const F& f) {
    for (std::uint32_t i = 0; i < lanes; ++i) f(shuffled_(order_, i, lanes));
  }

  void begin_segment() {
    steps_.clear();
    if (without_ != 0) before_ = memory_;
  }

  void catch_up() {
    if (!std::exchange(half_ahead_, false)) return;
    for (const step& each_step : steps_) {
      each([&](std::uint32_t lane) {
        if (!is_ahead(lane)) each_step.what(lane, each_step.with[lane]);
      });
    }
  }

  row_memory& memory_;
  const thread_order order_;
  const int without_;
  shuffle shuffled_;
  states states_;
  std::vector<step> steps_;  // since the last barrier
  row_memory before_{};      // at the last barrier
  bool half_ahead_ = false;
};

}  // namespace

void emulate_photos(const stages::photo_batch& photos, thread_order order, int without) {
  // What a warp finds in its memory is nothing that it can use.
  row_memory memory;
  for (std::uint64_t& map : memory.maps) map = ~std::uint64_t{0};
  for (std::int16_t& value : memory.values) value = 0x5A5A;
  for (std::uint16_t& first : memory.first_value) first = 0;
  for (std::int16_t& dc : memory.dc) dc = 0x5A5A;
  for (auto& slot : memory.work) {
    for (auto& line : slot) {
      for (std::int16_t& value : line) value = 0x5A5A;
    }
  }
  for (auto& slot : memory.has_ac) {
    for (std::uint8_t& has : slot) has = 1;
  }
  shuffle shuffled;
  constexpr std::uint32_t threads = 97;  // no multiple of 5
  {
    emulated_warp warp(memory, order, without);
    for (std::uint32_t i = 0; i < photos.photo_count; ++i) {
      const std::uint32_t number = order == thread_order::descending ? photos.photo_count - 1 - i : i;
      const stages::photo_slot& slot = stages::photo_threads::slot_of(photos, number);
      const std::uint32_t rows = slot.is_pack != 0 ? slot.row_count : 0;
      for (std::uint32_t k = 0; k < rows; ++k) {
        const std::uint32_t row = order == thread_order::ascending ? k : rows - 1 - k;
        stages::photo_threads::decode_row(warp, &memory, photos, number, row);
      }
    }
  }
  for (std::uint32_t number = 0; number < photos.photo_count; ++number) {
    const auto by_all_threads = [&](const auto& what) {
      for (std::uint32_t i = 0; i < threads; ++i) what(shuffled(order, i, threads));
    };
    by_all_threads([&](auto thread) { stages::photo_threads::colour_pixels(photos, number, thread, threads); });
    by_all_threads([&](auto thread) { stages::photo_threads::resample_once(photos, number, thread, threads); });
    by_all_threads([&](auto thread) { stages::photo_threads::make_row(photos, number, thread, threads); });
  }
}

const std::set<int>& barriers_passed() { return passed(); }

}  // namespace leat::testing
