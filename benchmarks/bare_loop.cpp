#include "benchmarks/bare_loop.hpp"

#include "base/text.hpp"
#include "benchmarks/measure.hpp"
#include "stages/state/digest.hpp"

#include <leat/error.hpp>
#include <leat/sampler.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace leat::benchmarks {

std::vector<planned_row> plan_rows(std::uint64_t samples, std::uint32_t epochs, std::uint32_t batch_size,
                                   std::uint64_t seed) {
  const global_sampler sampler(samples, {.shuffle = true, .seed = seed, .batch_size = batch_size});
  std::vector<planned_row> planned;
  std::vector<pick> picks;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::uint64_t batch = 0; batch < sampler.batches(epoch); ++batch) {
      picks.resize(sampler.rows(epoch, batch));
      sampler.picks(epoch, batch, 0, static_cast<std::uint32_t>(picks.size()), picks);
      for (const pick& row : picks) planned.push_back({row.epoch, row.sample});
    }
  }
  return planned;
}

bare_loop::bare_loop(const dataset& photos, std::uint64_t seed, std::uint32_t threads_max, std::uint32_t batch_size,
                     std::uint32_t batches)
    : photos_(photos),
      seed_(seed),
      budget_(std::size_t{threads_max} * (std::size_t{64} << 20)),
      batch_rows_(batches * batch_size * crop_.row_bytes()) {
  for (std::uint64_t sample = 0; sample < photos_.size(); ++sample) encoded_.push_back(photos_.read(sample));
  for (std::uint32_t thread = 0; thread < threads_max; ++thread) {
    decoders_.push_back(std::make_unique<pixels::picture_decoder>(budget_));
    own_rows_.emplace_back(crop_.row_bytes());
  }
}

void bare_loop::decode(pixels::picture_decoder& decoder, const planned_row& row, std::byte* to) const {
  const auto outcome =
      decoder.decode(encoded_[row.sample], crop_.steps, {.seed = seed_, .epoch = row.epoch, .draw = row.sample},
                     crop_.store, crop_.options, to, nullptr);
  if (!outcome) {
    throw error(errc::corrupt, str_cat(photos_.name(row.sample), ": ", outcome.reason(),
                                       "; this benchmark wants photographs that can all be decoded"));
  }
}

bare_loop::result bare_loop::run(std::span<const planned_row> planned, std::uint32_t threads, rows where) {
  std::atomic<std::size_t> next{0};
  std::atomic<double> cpu_s{0};
  double begin_s = 0;
  double end_s = 0;
  std::exception_ptr failure;
  std::once_flag failed;
  std::barrier start(threads, [&]() noexcept { begin_s = wall_s(); });
  std::barrier finish(threads, [&]() noexcept { end_s = wall_s(); });

  const std::size_t rows_in_batches = batch_rows_.size() / crop_.row_bytes();
  const auto work = [&](std::uint32_t thread) {
    start.arrive_and_wait();
    const double cpu_begin_s = thread_cpu_s();
    try {
      for (std::size_t i = next.fetch_add(1); i < planned.size(); i = next.fetch_add(1)) {
        std::byte* const to = where == rows::batches && rows_in_batches != 0
                                  ? batch_rows_.data() + i % rows_in_batches * crop_.row_bytes()
                                  : own_rows_[thread].data();
        decode(*decoders_[thread], planned[i], to);
      }
    } catch (...) {
      std::call_once(failed, [&] { failure = std::current_exception(); });
    }
    cpu_s.fetch_add(thread_cpu_s() - cpu_begin_s);
    finish.arrive_and_wait();
  };
  {
    std::vector<std::jthread> crew;
    for (std::uint32_t thread = 0; thread < threads; ++thread) crew.emplace_back(work, thread);
  }
  if (failure != nullptr) std::rethrow_exception(failure);
  return {.wall_s = end_s - begin_s, .cpu_s = cpu_s.load()};
}

std::vector<digest> bare_loop::digests(std::span<const planned_row> planned) {
  std::vector<digest> all;
  all.reserve(planned.size());
  for (const planned_row& row : planned) {
    decode(*decoders_.front(), row, own_rows_.front().data());
    const std::optional<std::int64_t> label = photos_.classes().empty() ? std::nullopt : photos_.label(row.sample);
    all.push_back(digest_of_row(row.sample, own_rows_.front(), label ? &*label : nullptr));
  }
  return all;
}

digest digest_of_row(std::uint64_t sample, std::span<const std::byte> pixels, const std::int64_t* label) {
  std::vector<stages::row_output> outputs;
  outputs.push_back({"jpg", dtype::f32, {3, training_crop::side, training_crop::side}, pixels});
  if (label != nullptr) outputs.push_back({"cls", dtype::i64, {}, std::as_bytes(std::span(label, 1))});
  return stages::row_digest(sample, outputs);
}

}  // namespace leat::benchmarks
