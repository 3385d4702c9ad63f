#include "tests/loader/running.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>

namespace leat::testing {

void read_from_simulated_device(batch& from, std::span<std::byte> copy, std::span<const std::byte> whole,
                                const std::vector<std::span<const std::byte>>& tensors) {
  simulated_device* const device = simulated_device::holding(whole.data());
  if (device == nullptr) {
    ADD_FAILURE() << "a batch that lies on no device that is there";
    return;
  }
  // None of the streams of the suites' own steps, which are not to be waited for with it.
  const stream reads = device->consumer_beside();
  from.wait_on(reads);
  for (const auto& each : tensors) {
    std::byte* const to = copy.data() + (each.data() - whole.data());
    device->launch(reads, [to, each] { std::copy(each.begin(), each.end(), to); });
  }
  device->finish_all(reads);
}

std::vector<std::byte> read_of(const batch& from, std::span<const std::byte> whole,
                               const std::vector<std::span<const std::byte>>& tensors) {
  std::vector<std::byte> copy(whole.size());
  const auto place_of = [&](std::span<const std::byte> part) { return copy.data() + (part.data() - whole.data()); };
  if (from[from.outputs().front()].where == host) {
    for (const auto& each : tensors) std::copy(each.begin(), each.end(), place_of(each));
  } else {
    auto& waits = const_cast<batch&>(from);  // Of whoever holds it: to wait for it changes nothing of it.
    read_from_device(waits, copy, whole, tensors);
  }
  return copy;
}

std::vector<std::byte> row_of(const batch& from, std::string_view output, std::size_t row) {
  const std::vector<std::byte> all = values_of<std::byte>(from, output);
  const auto names = from.outputs();
  const std::string offsets = std::string(output) + ".offsets";
  std::size_t begin = all.size() / from.valid_rows() * row;
  std::size_t end = all.size() / from.valid_rows() * (row + 1);
  if (std::find(names.begin(), names.end(), offsets) != names.end()) {
    const std::vector<std::int64_t> bounds = values_of<std::int64_t>(from, offsets);
    const std::size_t element_bytes = size_bytes(from[output].type);
    begin = static_cast<std::size_t>(bounds.at(row)) * element_bytes;
    end = static_cast<std::size_t>(bounds.at(row + 1)) * element_bytes;
  }
  if (begin > end || end > all.size()) {
    ADD_FAILURE() << "row " << row << " of '" << output << "' is from " << begin << " to " << end << " of "
                  << all.size();
    return {};
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::ostream& operator<<(std::ostream& out, const seen_batch& seen) {
  out << "epoch " << seen.epoch << " batch " << seen.index << " ids";
  for (const std::uint64_t id : seen.ids) out << ' ' << id;
  return out << " digest " << seen.content;
}

seen_batch look_at(const batch& delivered) {
  seen_batch seen;
  seen.epoch = delivered.epoch();
  seen.index = delivered.index();
  seen.ids.assign(delivered.ids().begin(), delivered.ids().end());
  if (const auto content = delivered.content_digest()) seen.content = content->hex();
  seen.step = std::make_shared<step_that_looks>(delivered);
  if (simulated_device* const device = seen.step->where()) {
    const_cast<batch&>(delivered).wait_on(stream());  // Of whoever holds it: to wait for it changes nothing of it.
    device->launch(stream(), [step = seen.step] { step->take(); });
    if (delivered.index() % 4 == 3) device->finish_all(stream());
  } else {
    const batch_view& there = seen.step->view();
    seen.step->take_from_copy(read_of(delivered, there.bytes(), there.tensors()).data());
  }
  return seen;
}

std::vector<seen_batch> run_epochs(leat::loader& from, std::uint32_t epochs) {
  std::vector<seen_batch> seen;
  for (std::uint32_t e = 0; e < epochs; ++e) {
    for (const batch& delivered : from.blocking()) seen.push_back(look_at(delivered));
  }
  return seen;
}

seen_run run_all(const dataset& samples, const loader_options& options, std::vector<field> fields) {
  seen_run run;
  std::optional<loader> train;
  try {
    train.emplace(samples, options, std::move(fields));
    for (std::uint32_t e = 0; e < options.epochs; ++e) {
      while (std::optional<batch> delivered = train->next_blocking()) run.batches.push_back(look_at(*delivered));
    }
  } catch (const error& failure) {
    run.failed = failure.code();
    run.message = failure.what();
  }
  if (train) run.stats = train->stats();
  return run;
}

void trainer::turn() {
  context_.restart();
  context_.poll();
}

void trainer::wait() {
  context_.restart();
  context_.run();
}

std::shared_ptr<trainer::result> trainer::ask(boost::asio::cancellation_slot slot) {
  auto into = std::make_shared<result>();
  from_.next(boost::asio::bind_cancellation_slot(
      slot, boost::asio::bind_executor(context_, [into](std::exception_ptr failure, std::optional<batch> got) {
        into->completed = true;
        into->failure = std::move(failure);
        into->got = std::move(got);
      })));
  return into;
}

}  // namespace leat::testing
