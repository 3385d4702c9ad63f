#include "tests/support/line_of_parts.hpp"

#include "base/clock.hpp"
#include "stages/device/device_transfer.hpp"
#include "stages/run/loader_parts.hpp"
#include "tests/support/timed_device.hpp"

#include <leat/loading.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

std::uint64_t in_ns(std::chrono::microseconds time) { return static_cast<std::uint64_t>(time.count()) * 1000; }

// Of the window that the verdict is of, the last one that has ended, or else the open one: from when its first batch came to when the
// one behind its last did.
double rate_of_last(std::vector<loader_window> windows, const std::vector<std::uint64_t>& came_ns) {
  if (windows.size() > 1) windows.pop_back();
  std::uint64_t end = 0;
  for (const loader_window& each : windows) end += each.batches;
  const std::uint64_t begin = std::max<std::uint64_t>(end - windows.back().batches, 1);
  if (end <= begin) return 0;
  const double seconds = static_cast<double>(came_ns.at(end - 1) - came_ns.at(begin - 1)) * 1e-9;
  return static_cast<double>((end - begin) * line_of_parts::batch_size) / seconds;
}

}  // namespace

line_of_parts with_slow(bottleneck part, double times, passing how, bool on_device) {
  const auto time = [&](bottleneck of, int us) {
    return std::chrono::microseconds(static_cast<int>(of == part ? us * times : us));
  };
  return {.read = time(bottleneck::read, 500),
          .decode = time(bottleneck::decode, 1000),
          .transfer = time(bottleneck::transfer, 4000),
          .step = time(bottleneck::consumer, 4000),
          .how = how,
          .slow = part,
          .on_device = on_device};
}

line_of_parts without_slow(line_of_parts parts) {
  std::chrono::microseconds* const times[] = {&parts.read, &parts.decode, &parts.transfer, &parts.step};
  *times[static_cast<std::size_t>(parts.slow)] = std::chrono::microseconds(0);
  return parts;
}

run_of_parts run(const line_of_parts& parts, std::uint64_t batches, const stages::window_options& windows) {
  const auto how_of = [&](bottleneck part) { return part == parts.slow ? parts.how : passing::asleep; };
  loader_options options;
  options.batch_size = line_of_parts::batch_size;
  options.seed = 7;
  options.epochs = 1;
  options.decode_threads = 2;
  options.prefetch_batches = parts.prefetch_batches;
  options.host_bytes_max = std::size_t{40} << 20;
  options.device = leat::host;
  stages::loader_parts with{.windows = windows};
  std::shared_ptr<timed_device> device;
  std::optional<slow_transfer> copies;
  if (parts.on_device) {
    device = std::make_shared<timed_device>(timed_device_options{.ns_per_copy = in_ns(parts.transfer)});
    with.transfer = std::make_shared<stages::device_transfer>(device, stages::device_transfer_options{});
  } else if (parts.transfer.count() != 0) {
    with.transfer = copies.emplace(parts.transfer, how_of(bottleneck::transfer)).events();
  }
  loader train =
      stages::make_loader(on_slow_disk(line_of_parts::batch_size * batches, parts.read, how_of(bottleneck::read)),
                          std::move(options), {slow_field(parts.decode, how_of(bottleneck::decode))}, std::move(with));

  stream steps;
  if (device) device->make_stream(steps);
  std::vector<std::uint64_t> came_ns;
  came_ns.reserve(batches);
  for (batch& got : train.blocking()) {
    came_ns.push_back(now_ns());
    if (device) {
      got.wait_on(steps);
      device->step(steps, in_ns(parts.step));
      got.release_on(steps);
    } else if (parts.step.count() != 0) {
      pass(parts.step, how_of(bottleneck::consumer));
    }
  }
  return {train.stats(), rate_of_last(train.windows(), came_ns)};
}

}  // namespace leat::testing
