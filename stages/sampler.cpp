#include "stages/permutation.hpp"

#include <leat/error.hpp>
#include <leat/sampler.hpp>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <string>

namespace leat {
namespace {

constexpr std::uint64_t samples_max = std::uint64_t{1} << 48;

}  // namespace

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

void global_sampler::ids(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
                         std::span<std::uint64_t> out) const {
  assert(row_begin <= row_end && row_end <= rows(epoch, batch));
  assert(out.size() == row_end - row_begin);
  const std::uint64_t first = batch * options_.batch_size + row_begin;
  if (!options_.shuffle) {
    std::iota(out.begin(), out.end(), first);
    return;
  }
  // Set up anew for each call: it costs as much as ten rows, and a kept one would have to be shared between threads.
  const stages::permutation order(samples_, options_.seed, epoch);
  order(first, out.first(row_end - row_begin));
}

}  // namespace leat
