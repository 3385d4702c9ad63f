#include "tests/support/virtual_line.hpp"

#include <algorithm>
#include <cmath>

namespace leat::testing {
namespace {

enum kind { read_ended, decode_ended, copy_ended, step_ended };

std::uint64_t to_ns(double seconds) { return static_cast<std::uint64_t>(std::llround(seconds * 1e9)); }

}  // namespace

virtual_line::virtual_line(const virtual_line_options& options)
    : options_(options),
      random_(options.seed),
      channel_free_s_(options.channels, 0.0),
      io_free_s_(options.cores, 0.0) {}

double virtual_line::draw(double mean, double sigma) {
  std::normal_distribution<double> normal(0, 1);
  return mean * std::exp(sigma * normal(random_) - sigma * sigma / 2);
}

void virtual_line::pass_time() {
  const double passed = now_s_ - passed_s_;
  passed_s_ = now_s_;
  const bool wants_more = next_read_ < (consumed_ + options_.batches) * options_.batch;
  if (reading_ >= options_.reads_at_a_time && wants_more && !options_.is_remote) held_back_s_ += passed;
  if (!wants_more) batch_wait_s_ += passed;
  read_s_ += passed * reading_;
  decode_s_ += passed * decoding_;
  decode_cpu_s_ += passed * decoding_ / crowd();
  decode_wait_s_ += passed * static_cast<double>(to_decode_.size());
  ready_s_ += passed * static_cast<double>(ready_.size());
  if (copying_) copy_s_ += passed;
  (stepping_ ? step_s_ : stalled_s_) += passed;
  if (stepping_) step_left_s_ -= options_.step_cores > 0 ? passed / crowd() : passed;
}

// With more threads busy than there are cores, all are slower. A step that computes on none is a thread all the same.
double virtual_line::crowd() const {
  const double of_trainer = options_.step_cores == 0 ? 1 : stepping_ ? options_.step_cores : 0;
  return std::max(1.0, (decoding_ + of_trainer) / options_.cores);
}

// Each time the crowd may be another one.
void virtual_line::end_step_later() {
  const double left_s = std::max(0.0, step_left_s_) * (options_.step_cores > 0 ? crowd() : 1);
  events_.push({now_s_ + left_s, step_ended, ++step_event_});
}

void virtual_line::start_read() {
  const std::size_t lines = options_.is_remote ? options_.reads_at_a_time : channel_free_s_.size();
  const auto channel =
      std::min_element(channel_free_s_.begin(),
                       channel_free_s_.begin() + static_cast<std::ptrdiff_t>(std::min(lines, channel_free_s_.size())));
  const double drift = 1 + options_.read_drift * now_s_;
  *channel = std::max(now_s_, *channel) + draw(options_.read_s, 0.3) * drift;
  const double bus_s = options_.bus_s * drift / (1 - options_.read_others);
  bus_free_s_ = std::max(bus_free_s_, *channel) + bus_s;
  const std::uint64_t batch = next_read_ / options_.batch;
  double& thread_free_s = io_free_s_[batch % options_.io_threads];
  thread_free_s = std::max(thread_free_s, bus_free_s_) + options_.io_s;
  events_.push({thread_free_s, read_ended, next_read_});
  while (consumed_ + missing_.size() <= batch) missing_.push_back(options_.batch);
  ++reading_;
  ++next_read_;
}

void virtual_line::start_decode() {
  const std::uint64_t sample = to_decode_.front();
  to_decode_.pop_front();
  ++decoding_;
  double mean_s = options_.decode_s;
  if (options_.decode_tail > 0) {
    const bool is_long = std::uniform_real_distribution<double>(0, 1)(random_) < options_.decode_tail;
    mean_s *= is_long ? 50 : 1;
  }
  events_.push({now_s_ + draw(mean_s, options_.decode_sigma) * crowd(), decode_ended, sample});
}

void virtual_line::pump() {
  while ((options_.is_remote || reading_ < options_.reads_at_a_time) &&
         next_read_ < (consumed_ + options_.batches) * options_.batch)
    start_read();
  while (decoding_ < options_.decode_threads && !to_decode_.empty()) start_decode();
  if (!copying_ && next_copy_ < consumed_ + missing_.size() && missing_[next_copy_ - consumed_] == 0) {
    copying_ = true;
    events_.push({now_s_ + options_.copy_s, copy_ended, next_copy_});
  }
  if (!stepping_ && !ready_.empty()) {
    ready_.pop_front();
    stepping_ = true;
    step_left_s_ = draw(options_.step_s, 0.05);
    if (options_.burst_s > 0 && consumed_ % 16 == 15) step_left_s_ += options_.burst_s;
    if (options_.step_cores == 0) end_step_later();
  }
  if (stepping_ && options_.step_cores > 0) end_step_later();
}

void virtual_line::handle(const event& now) {
  now_s_ = now.at_s;
  pass_time();
  switch (now.kind) {
    case read_ended:
      --reading_;
      ++reads_;
      io_s_ += options_.io_s;
      to_decode_.push_back(now.id);
      break;
    case decode_ended:
      --decoding_;
      ++decoded_;
      --missing_[now.id / options_.batch - consumed_];
      break;
    case copy_ended:
      copying_ = false;
      ++copied_;
      ++next_copy_;
      ready_.push_back(now.id);
      break;
    default:
      if (now.id != step_event_) return;
      stepping_ = false;
      ++consumed_;
      missing_.pop_front();
  }
  pump();
}

stages::line_counts virtual_line::run(std::uint64_t batches) {
  const auto counts = [this] {
    return stages::line_counts{.time_ns = to_ns(now_s_),
                               .batches = consumed_,
                               .planned = consumed_ * options_.batch,
                               .samples = consumed_ * options_.batch,
                               .reads = reads_,
                               .read_ns = to_ns(read_s_),
                               .rows_read = reads_,
                               .held_back_ns = to_ns(held_back_s_ * options_.io_threads),
                               .io_awake_ns = to_ns(io_s_),
                               .rows_made = decoded_,
                               .decode_ns = to_ns(decode_s_),
                               .decode_wait_ns = to_ns(decode_wait_s_),
                               .batch_wait_ns = to_ns(batch_wait_s_),
                               .transferred_rows = copied_ * options_.batch,
                               .transfer_ns = to_ns(copy_s_),
                               .steps = consumed_,
                               .step_ns = to_ns(step_s_),
                               .stalled_ns = to_ns(stalled_s_),
                               .ready_ns = to_ns(ready_s_)};
  };
  const stages::line_counts before = counts();
  const double decode_s_before = decode_s_;
  const double decode_cpu_s_before = decode_cpu_s_;
  const std::uint64_t end = consumed_ + batches;
  pump();
  while (consumed_ < end) {
    const event next = events_.top();
    events_.pop();
    handle(next);
  }
  decode_on_cores_ =
      decode_s_ > decode_s_before ? (decode_cpu_s_ - decode_cpu_s_before) / (decode_s_ - decode_s_before) : 1;
  return counts() - before;
}

stages::line_setting virtual_line::setting() const {
  return {.decode_threads = options_.decode_threads,
          .io_threads = options_.io_threads,
          .reads_at_a_time = options_.is_remote ? 0 : options_.reads_at_a_time,
          .batches_max = options_.batches};
}

virtual_line_options without(virtual_line_options line, virtual_part part) {
  constexpr double free = 1e-3;
  switch (part) {
    case virtual_part::read:
      line.read_s *= free;
      line.bus_s *= free;
      line.io_s *= free;
      break;
    case virtual_part::decode:
      line.decode_s *= free;
      break;
    case virtual_part::transfer:
      line.copy_s *= free;
      break;
    case virtual_part::consumer:
      line.step_s *= free;
      line.burst_s *= free;
  }
  return line;
}

double throughput_of(const virtual_line_options& options) {
  virtual_line line(options);
  static_cast<void>(line.run(30));
  const stages::line_counts seen = line.run(100);
  return static_cast<double>(seen.planned) / (static_cast<double>(seen.time_ns) * 1e-9);
}

}  // namespace leat::testing
