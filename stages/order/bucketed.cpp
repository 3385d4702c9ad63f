// Like lengths together: buckets of neighbouring lengths, whose batches are drawn as the samples of an epoch are.
#include "base/hasher.hpp"
#include "base/option_words.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/order/batch_cut.hpp"
#include "stages/order/columns.hpp"
#include "stages/order/order_error.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/permutation.hpp"
#include "stages/order/sample_numbers.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

class bucketed_sampler final : public sampler {
 public:
  ///   lengths   none above tokens_max
  bucketed_sampler(std::span<const std::uint64_t> lengths, std::uint64_t tokens_max, std::uint32_t rows_max,
                   const order_context& context)
      : context_(context), tokens_max_(tokens_max), rows_asked_(rows_max), samples_(lengths.size(), lengths.size()) {
    hasher hash;
    hash.add(std::as_bytes(lengths));
    lengths_ = hash.finish();
    std::vector<std::uint64_t> sorted(lengths.size());
    std::iota(sorted.begin(), sorted.end(), std::uint64_t{0});
    std::sort(sorted.begin(), sorted.end(), [&](std::uint64_t a, std::uint64_t b) {
      return lengths[a] != lengths[b] ? lengths[a] < lengths[b] : a < b;
    });
    for (std::uint64_t at = 0; at < sorted.size(); ++at) samples_.set(at, sorted[at]);
    const auto rows_of = [&](std::uint64_t longest) {
      return static_cast<std::uint32_t>(
          std::min<std::uint64_t>(rows_max, longest == 0 ? rows_max : tokens_max / longest));
    };
    std::uint64_t begin = 0;
    while (begin < sorted.size()) {
      const std::uint64_t shortest = lengths[sorted[begin]];
      std::uint64_t end = begin + 1;
      // What is within an eighth, and as much more as fills some batches: with fewer the same samples would always meet.
      while (end < sorted.size()) {
        const std::uint64_t next = lengths[sorted[end]];
        const bool alike = next <= shortest + shortest / 8;
        if (!alike && end - begin >= std::uint64_t{batches_least} * rows_of(lengths[sorted[end - 1]])) break;
        ++end;
      }
      // A rest that fills no batches of its own goes along.
      if (sorted.size() - end < std::uint64_t{batches_least} * rows_of(lengths[sorted.back()])) end = sorted.size();
      add_bucket(begin, end, rows_of(lengths[sorted[end - 1]]));
      begin = end;
    }
  }

  void describe(description& out) const override {
    describe_order(out, "bucketed", context_);
    out.add("tokens_max", tokens_max_);
    out.add("rows_max", rows_asked_);
    out.add("lengths", lengths_);
  }

  std::uint64_t batches(std::uint32_t /*epoch*/) const override {
    return buckets_.empty() ? 0 : buckets_.back().batches_end;
  }
  std::uint32_t rows(std::uint32_t epoch, std::uint64_t batch) const override {
    const place at = find(epoch, batch);
    return cut_of(*at.of).rows(at.batch);
  }
  std::uint32_t rows_max() const override { return rows_max_; }
  std::uint32_t padded(std::uint32_t epoch, std::uint64_t batch) const override {
    const place at = find(epoch, batch);
    return cut_of(*at.of).padded(at.batch);
  }
  bool repeats() const override { return repeats_; }
  std::uint64_t samples(std::uint32_t /*epoch*/) const override { return samples_per_epoch_; }

  void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, [[maybe_unused]] std::uint32_t row_end,
             std::span<pick> out) const override {
    assert(out.size() == row_end - row_begin);
    const place at = find(epoch, batch);
    const bucket& of = *at.of;
    const permutation order(
        of.end - of.begin,
        random_draws(context_.seed, epoch, static_cast<std::uint64_t>(at.of - buckets_.data()), "bucket"));
    cut_of(of).for_places(at.batch, row_begin, out, [&](std::uint64_t first, std::span<pick> some) {
      order.for_each(first, some.size(), [&](std::size_t i, std::uint64_t number) {
        some[i] = pick_of(epoch, samples_[of.begin + number]);
      });
    });
  }

  /// What is in the same bucket: another would be longer than the batch has room for.
  std::uint64_t substitutes(std::uint32_t epoch, std::uint64_t batch) const override {
    const bucket& of = *find(epoch, batch).of;
    return of.end - of.begin;
  }
  pick substitute(std::uint32_t epoch, std::uint64_t batch, std::uint64_t n) const override {
    return pick_of(epoch, samples_[find(epoch, batch).of->begin + n]);
  }

 private:
  static constexpr std::uint32_t batches_least = 4;

  struct bucket {
    std::uint64_t begin = 0;        // in samples_
    std::uint64_t end = 0;          //
    std::uint32_t rows = 0;         // of its batches
    std::uint64_t batches_end = 0;  // its own and those of the buckets before it
  };
  struct place {
    const bucket* of;
    std::uint64_t batch;  // of the bucket's
  };

  static pick pick_of(std::uint32_t epoch, std::uint64_t sample) noexcept {
    return {.sample = sample, .draw = sample, .epoch = epoch};
  }
  [[nodiscard]] batch_cut cut_of(const bucket& of) const noexcept {
    return {of.end - of.begin, of.rows, context_.last};
  }

  void add_bucket(std::uint64_t begin, std::uint64_t end, std::uint32_t rows) {
    const batch_cut cut(end - begin, rows, context_.last);
    buckets_.push_back({.begin = begin, .end = end, .rows = rows, .batches_end = batches(0) + cut.batches()});
    samples_per_epoch_ += cut.rows_of_all();
    rows_max_ = std::max(rows_max_, cut.rows_max());
    repeats_ = repeats_ || cut.rows_max() > end - begin;
  }

  [[nodiscard]] place find(std::uint32_t epoch, std::uint64_t batch) const noexcept {
    assert(batch < batches(epoch));
    const std::uint64_t number = permutation(batches(epoch), random_draws(context_.seed, epoch, 0, "buckets"))(batch);
    const auto of =
        std::upper_bound(buckets_.begin(), buckets_.end(), number,
                         [](std::uint64_t wanted, const bucket& each) { return wanted < each.batches_end; });
    return {&*of, number - (of == buckets_.begin() ? 0 : std::prev(of)->batches_end)};
  }

  order_context context_;
  std::uint64_t tokens_max_;
  std::uint32_t rows_asked_;
  digest lengths_;
  sample_numbers samples_;  // By length.
  std::vector<bucket> buckets_;
  std::uint64_t samples_per_epoch_ = 0;
  std::uint32_t rows_max_ = 1;
  bool repeats_ = false;
};

class bucketed_order final : public order_model {
 public:
  explicit bucketed_order(bucket_options how) : how_(std::move(how)) {}

  std::string_view name() const noexcept override { return "bucketed"; }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    const std::vector<std::uint64_t> lengths =
        lengths_of(samples, how_.length, name(), context.fields, context.counting);
    const auto too_long =
        std::find_if(lengths.begin(), lengths.end(), [&](std::uint64_t length) { return length > how_.tokens_max; });
    if (too_long != lengths.end()) {
      throw order_error(option_id::order_bucketed, "the length of sample ", too_long - lengths.begin(), " is ",
                        *too_long, ", above ", spelled(option_id::tokens_max), " = ", how_.tokens_max,
                        "; give a larger one, or leave such samples out (subset())");
    }
    return std::make_shared<bucketed_sampler>(lengths, how_.tokens_max,
                                              how_.rows_max != 0 ? how_.rows_max : context.batch_size, context);
  }

 private:
  bucket_options how_;
};

}  // namespace
}  // namespace stages

order bucketed(bucket_options how) {
  if (how.tokens_max == 0) {
    throw stages::order_error(option_id::order_bucketed, spelled(option_id::tokens_max),
                              " is 0; give what a batch's rows may be long together");
  }
  return order(std::make_shared<stages::bucketed_order>(std::move(how)));
}

}  // namespace leat
