#include "stages/permutation.hpp"

#include <leat/error.hpp>
#include <leat/sampler.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <string>

namespace leat {
namespace {

constexpr std::uint64_t samples_max = std::uint64_t{1} << 48;

}  // namespace

std::uint64_t sampler::samples(std::uint32_t epoch) const {
  std::uint64_t sum = 0;
  const std::uint64_t all = batches(epoch);
  for (std::uint64_t batch = 0; batch < all; ++batch) sum += rows(epoch, batch);
  return sum;
}

std::uint64_t sampler::substitutes(std::uint32_t epoch, std::uint64_t /*batch*/) const { return samples(epoch); }

pick sampler::substitute(std::uint32_t epoch, std::uint64_t /*batch*/, std::uint64_t n) const {
  std::uint64_t from = 0;
  std::uint64_t left = n;
  for (std::uint32_t here = rows(epoch, from); left >= here; here = rows(epoch, from)) {
    left -= here;
    ++from;
  }
  pick found;
  const auto row = static_cast<std::uint32_t>(left);
  picks(epoch, from, row, row + 1, {&found, 1});
  return found;
}

global_sampler::global_sampler(std::uint64_t samples, const sampler_options& options)
    : samples_(samples), options_(options) {
  if (options.batch_size == 0) throw error(errc::usage, "batch_size is 0; a batch has at least 1 row");
  if (samples > samples_max)
    throw error(errc::usage, "the dataset has " + std::to_string(samples) + " samples; an epoch may have up to " +
                                 std::to_string(samples_max) + " (2^48)");
}

std::uint64_t global_sampler::batches(std::uint32_t /*epoch*/) const {
  const std::uint64_t full = samples_ / options_.batch_size;
  return full + (!options_.drop_last && samples_ % options_.batch_size != 0 ? 1 : 0);
}

std::uint32_t global_sampler::rows([[maybe_unused]] std::uint32_t epoch, std::uint64_t batch) const {
  assert(batch < batches(epoch));
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(options_.batch_size, samples_ - batch * options_.batch_size));
}

std::uint32_t global_sampler::rows_max() const {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(options_.batch_size, std::max<std::uint64_t>(samples_, 1)));
}

std::uint64_t global_sampler::samples(std::uint32_t epoch) const {
  return options_.drop_last ? batches(epoch) * options_.batch_size : samples_;
}

void global_sampler::picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin,
                           [[maybe_unused]] std::uint32_t row_end, std::span<pick> out) const {
  assert(row_begin <= row_end && row_end <= rows(epoch, batch));
  assert(out.size() == row_end - row_begin);
  const std::uint64_t first = batch * options_.batch_size + row_begin;
  if (!options_.shuffle) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = {.sample = first + i, .draw = first + i, .epoch = epoch};
    return;
  }
  // Set up anew for each call: it costs as much as ten rows, and a kept one would have to be shared between threads.
  const stages::permutation order(samples_, options_.seed, epoch);
  // Some at a time: the numbers stay in the core's cache.
  std::array<std::uint64_t, 256> numbers;
  for (std::size_t begin = 0; begin < out.size(); begin += numbers.size()) {
    const std::size_t count = std::min(numbers.size(), out.size() - begin);
    order(first + begin, std::span(numbers).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      out[begin + i] = {.sample = numbers[i], .draw = numbers[i], .epoch = epoch};
    }
  }
}

}  // namespace leat
