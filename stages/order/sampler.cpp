#include "base/option_words.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/order/batch_cut.hpp"
#include "stages/order/permutation.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/sampler.hpp>

#include <cassert>
#include <string>
#include <string_view>

namespace leat {

std::uint32_t sampler::padded(std::uint32_t /*epoch*/, std::uint64_t /*batch*/) const { return 0; }

void sampler::describe(description& out) const { out.add_unnamed("sampler", "override sampler::describe()"); }

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
  if (options.batch_size == 0)
    throw error(errc::usage, str_cat(spelled(option_id::batch_size), " is 0; a batch has at least 1 row"),
                option_id::batch_size);
  if (samples > draws_end)
    throw error(errc::usage, "the dataset has " + std::to_string(samples) + " samples; an epoch may have up to " +
                                 std::to_string(draws_end) + " (2^48)");
}

void global_sampler::describe(description& out) const {
  out.add("order", options_.shuffle ? "shuffled" : "sequential");
  out.add("samples", samples_);
  if (options_.shuffle) out.add("seed", options_.seed);
  out.add("batch_size", options_.batch_size);
  out.add("last", stages::name_of(options_.last));
}

std::uint64_t global_sampler::batches(std::uint32_t /*epoch*/) const {
  return stages::batch_cut(samples_, options_.batch_size, options_.last).batches();
}

std::uint32_t global_sampler::rows(std::uint32_t /*epoch*/, std::uint64_t batch) const {
  return stages::batch_cut(samples_, options_.batch_size, options_.last).rows(batch);
}

std::uint32_t global_sampler::rows_max() const {
  return stages::batch_cut(samples_, options_.batch_size, options_.last).rows_max();
}

std::uint32_t global_sampler::padded(std::uint32_t /*epoch*/, std::uint64_t batch) const {
  return stages::batch_cut(samples_, options_.batch_size, options_.last).padded(batch);
}

std::uint64_t global_sampler::samples(std::uint32_t /*epoch*/) const {
  return stages::batch_cut(samples_, options_.batch_size, options_.last).rows_of_all();
}

void global_sampler::picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin,
                           [[maybe_unused]] std::uint32_t row_end, std::span<pick> out) const {
  assert(row_begin <= row_end && row_end <= rows(epoch, batch));
  assert(out.size() == row_end - row_begin);
  const stages::batch_cut cut(samples_, options_.batch_size, options_.last);
  if (!options_.shuffle) {
    cut.for_places(batch, row_begin, out, [&](std::uint64_t first, std::span<pick> some) {
      for (std::size_t i = 0; i < some.size(); ++i) some[i] = {.sample = first + i, .draw = first + i, .epoch = epoch};
    });
    return;
  }
  // Set up anew for each call: it costs as much as ten rows, and a kept one would have to be shared between threads.
  const stages::permutation order(samples_, options_.seed, epoch);
  cut.for_places(batch, row_begin, out, [&](std::uint64_t first, std::span<pick> some) {
    order.for_each(first, some.size(), [&](std::size_t i, std::uint64_t sample) {
      some[i] = {.sample = sample, .draw = sample, .epoch = epoch};
    });
  });
}

}  // namespace leat
