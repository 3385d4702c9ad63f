// Rows of one length, in which samples lie end to end: cut where a row ends, or whole. It is arithmetic over lengths: any batch of any
// epoch is known before a byte of a sample is read.
#include "base/hasher.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/order/batch_cut.hpp"
#include "stages/order/made_ahead.hpp"
#include "stages/order/order_error.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/packing.hpp"
#include "stages/order/permutation.hpp"
#include "stages/order/sample_numbers.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

using piece_use = std::function<bool(const packed_piece&)>;

/// What all epochs share.
///   length   of a row, in tokens
struct packed_samples {
  std::shared_ptr<const row_counts> counts;
  std::uint32_t length = 0;
  packed_options how;
  std::uint64_t seed = 0;

  [[nodiscard]] std::uint32_t operator[](std::uint64_t sample) const noexcept { return (*counts)[sample]; }
  /// Calls use(sample) for the samples at `count` places of the epoch, from `first` on.
  template <class Use>
  void for_places(std::uint32_t epoch, std::uint64_t first, std::uint64_t count, const Use& use) const {
    if (!how.shuffle) {
      for (std::uint64_t place = first; place < first + count; ++place) use(place);
      return;
    }
    permutation(counts->size(), seed, epoch).for_each(first, count, [&](std::size_t, std::uint64_t sample) {
      use(sample);
    });
  }
};

/// Where the samples of one epoch lie.
class packed_epoch {
 public:
  packed_epoch() = default;
  packed_epoch(const packed_epoch&) = delete;
  packed_epoch& operator=(const packed_epoch&) = delete;
  virtual ~packed_epoch() = default;

  [[nodiscard]] virtual std::uint64_t rows() const noexcept = 0;
  /// Pieces of the first rows.
  [[nodiscard]] virtual std::uint64_t pieces_before(std::uint64_t row) const = 0;
  /// Calls `use` for the pieces from a place of the epoch on, in tokens, until it says false.
  virtual void walk(std::uint64_t from, std::uint64_t end, const piece_use& use) const = 0;
};

/// Samples end to end, cut where a row ends. Of the sums of lengths only some are kept.
class stream_epoch final : public packed_epoch {
 public:
  stream_epoch(const packed_samples& samples, std::uint32_t epoch, const std::stop_token& stop)
      : samples_(samples), epoch_(epoch) {
    const std::uint64_t n = samples.length;
    const std::uint64_t all = samples.counts->size();
    for (std::uint64_t first = 0; first < all && !stop.stop_requested(); first += samples_between) {
      anchors_.push_back({tokens_, pieces_});
      samples.for_places(epoch, first, std::min<std::uint64_t>(samples_between, all - first),
                         [&](std::uint64_t sample) {
                           const std::uint64_t count = samples[sample];
                           if (count != 0) pieces_ += (tokens_ + count - 1) / n - tokens_ / n + 1;
                           tokens_ += count;
                         });
    }
  }

  std::uint64_t rows() const noexcept override { return (tokens_ + samples_.length - 1) / samples_.length; }
  std::uint64_t pieces_before(std::uint64_t row) const override {
    if (row >= rows()) return pieces_;
    const std::uint64_t end = row * samples_.length;
    const auto from = anchor_of(end);
    std::uint64_t pieces = from->pieces;
    walk(from->tokens, end, [&](const packed_piece&) {
      ++pieces;
      return true;
    });
    return pieces;
  }
  void walk(std::uint64_t from, std::uint64_t end, const piece_use& use) const override {
    end = std::min(end, tokens_);
    if (from >= end) return;
    const auto anchor = anchor_of(from);
    std::uint64_t at = anchor->tokens;
    const std::uint64_t n = samples_.length;
    const std::uint64_t all = samples_.counts->size();
    bool goes_on = true;
    for (std::uint64_t first = static_cast<std::uint64_t>(anchor - anchors_.begin()) * samples_between;
         first < all && at < end && goes_on; first += samples_between) {
      samples_.for_places(epoch_, first, std::min<std::uint64_t>(samples_between, all - first),
                          [&](std::uint64_t sample) {
                            const std::uint64_t begin = at;
                            at += samples_[sample];
                            for (std::uint64_t here = std::max(begin, from); goes_on && here < std::min(at, end);) {
                              const std::uint64_t row = here / n;
                              const std::uint64_t until = std::min(at, (row + 1) * n);
                              goes_on = use({.of = {.sample = sample, .draw = here, .epoch = epoch_},
                                             .row = row,
                                             .offset = static_cast<std::uint32_t>(here - row * n),
                                             .first = here - begin,
                                             .count = static_cast<std::uint32_t>(until - here)});
                              here = until;
                            }
                          });
    }
  }

 private:
  // 16 bytes for so many samples; a place is found among no more of them.
  static constexpr std::uint64_t samples_between = 128;
  struct anchor {
    std::uint64_t tokens;
    std::uint64_t pieces;
  };
  [[nodiscard]] std::vector<anchor>::const_iterator anchor_of(std::uint64_t token) const {
    return std::prev(std::upper_bound(anchors_.begin(), anchors_.end(), token,
                                      [](std::uint64_t wanted, const anchor& each) { return wanted < each.tokens; }));
  }

  const packed_samples samples_;
  const std::uint32_t epoch_;
  std::vector<anchor> anchors_;
  std::uint64_t tokens_ = 0;
  std::uint64_t pieces_ = 0;
};

/// Whole samples, a pool of them at a time; what fills its rows badly goes to the next pool.
class fitted_epoch final : public packed_epoch {
 public:
  fitted_epoch(const packed_samples& samples, std::uint32_t epoch, const std::stop_token& stop)
      : samples_(samples), epoch_(epoch) {
    std::vector<std::uint64_t> pool;
    const std::uint64_t all = samples.counts->size();
    const std::uint64_t at_once = samples.how.pool;
    std::uint64_t parts_max = 1;
    for (const std::uint32_t count : *samples.counts) parts_max = std::max(parts_max, parts_of(count));
    items_ = sample_numbers(items_of_epoch(), std::max<std::uint64_t>(all, 1) * parts_max);
    for (std::uint64_t first = 0; first < all && !stop.stop_requested(); first += at_once) {
      const std::uint64_t some = std::min(at_once, all - first);
      samples.for_places(epoch, first, some, [&](std::uint64_t sample) {
        for (std::uint64_t part = 0; part < parts_of(samples[sample]); ++part) pool.push_back(part * all + sample);
      });
      fit(pool, first + some == all, first / at_once);
    }
    row_begins_.push_back(placed_);
  }

  std::uint64_t rows() const noexcept override { return row_begins_.size() - 1; }
  std::uint64_t pieces_before(std::uint64_t row) const override { return row_begins_[std::min(row, rows())]; }
  void walk(std::uint64_t from, std::uint64_t end, const piece_use& use) const override {
    const std::uint64_t n = samples_.length;
    for (std::uint64_t row = from / n; row < rows() && row * n < end; ++row) {
      std::uint64_t at = row * n;
      for (std::uint64_t i = row_begins_[row]; i < row_begins_[row + 1]; ++i) {
        const std::uint64_t item = items_[i];
        const std::uint32_t count = tokens_of(item);
        if (at >= from && at < end &&
            !use({.of = {.sample = sample_of(item), .draw = at, .epoch = epoch_},
                  .row = row,
                  .offset = static_cast<std::uint32_t>(at - row * n),
                  .first = item / samples_.counts->size() * n,
                  .count = count})) {
          return;
        }
        at += count;
      }
    }
  }

 private:
  struct bin {
    std::uint32_t left;
    std::vector<std::uint64_t> items;
  };

  // An item is a part of a sample: part * samples + sample.
  [[nodiscard]] std::uint64_t sample_of(std::uint64_t item) const noexcept { return item % samples_.counts->size(); }
  [[nodiscard]] std::uint32_t tokens_of(std::uint64_t item) const noexcept {
    const std::uint64_t first = item / samples_.counts->size() * samples_.length;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(samples_.length, samples_[sample_of(item)] - first));
  }
  [[nodiscard]] std::uint64_t parts_of(std::uint64_t count) const noexcept {
    const std::uint64_t n = samples_.length;
    if (count == 0 || (count > n && samples_.how.longer == longer_samples::skip)) return 0;
    return samples_.how.longer == longer_samples::split ? (count + n - 1) / n : 1;
  }
  [[nodiscard]] std::uint64_t items_of_epoch() const {
    return std::accumulate(samples_.counts->begin(), samples_.counts->end(), std::uint64_t{0},
                           [&](std::uint64_t sum, std::uint32_t count) { return sum + parts_of(count); });
  }

  // Its rows go to the end of the epoch's. What it keeps stays in the pool.
  void fit(std::vector<std::uint64_t>& pool, bool is_last, std::uint64_t number) {
    std::vector<bin> bins = samples_.how.by == packed_by::best_fit ? best_fit(pool) : first_fit(pool);
    std::vector<std::uint32_t> order(bins.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return bins[a].left != bins[b].left ? bins[a].left < bins[b].left : a < b;
    });
    // The fullest, as long as they are nearly full, or too much would be kept.
    const std::uint32_t little = samples_.length / 128;
    std::uint64_t kept = pool.size();
    std::size_t taken = 0;
    while (taken < order.size() && (is_last || bins[order[taken]].left <= little || kept > samples_.how.pool)) {
      kept -= bins[order[taken++]].items.size();
    }
    pool.clear();
    for (std::size_t i = taken; i < order.size(); ++i) {
      pool.insert(pool.end(), bins[order[i]].items.begin(), bins[order[i]].items.end());
    }
    order.resize(taken);
    std::sort(order.begin(), order.end());
    if (order.empty()) return;
    // By length they would come one like the other.
    const permutation mixed(order.size(), random_draws(samples_.seed, epoch_, number, "packed rows"));
    for (std::size_t i = 0; i < order.size(); ++i) {
      row_begins_.push_back(placed_);
      for (const std::uint64_t item : bins[order[samples_.how.shuffle ? mixed(i) : i]].items) {
        items_.set(placed_++, item);
      }
    }
  }

  // Decreasing: the longest first, each to the row that it leaves the least of.
  [[nodiscard]] std::vector<bin> best_fit(const std::vector<std::uint64_t>& pool) const {
    std::vector<std::pair<std::uint32_t, std::size_t>> longest_first;  // how long, and where in the pool
    for (std::size_t at = 0; at < pool.size(); ++at) longest_first.emplace_back(tokens_of(pool[at]), at);
    std::sort(longest_first.begin(), longest_first.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::vector<bin> bins;
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_left;
    for (const auto& [count, at] : longest_first) {
      const std::uint64_t item = pool[at];
      const auto found = by_left.lower_bound(count);
      auto to = static_cast<std::uint32_t>(bins.size());
      if (found == by_left.end()) {
        bins.push_back({.left = samples_.length, .items = {}});
      } else {
        to = found->second.back();
        found->second.pop_back();
        if (found->second.empty()) by_left.erase(found);
      }
      bins[to].items.push_back(item);
      bins[to].left -= count;
      if (bins[to].left != 0) by_left[bins[to].left].push_back(to);
    }
    return bins;
  }

  // As they come, each to the first row that has room.
  [[nodiscard]] std::vector<bin> first_fit(const std::vector<std::uint64_t>& pool) const {
    std::vector<bin> bins;
    std::size_t leaves = 1;
    while (leaves < pool.size()) leaves *= 2;
    std::vector<std::uint32_t> most(2 * leaves, samples_.length);  // room, of each part of the rows: a heap
    for (const std::uint64_t item : pool) {
      const std::uint32_t count = tokens_of(item);
      std::size_t node = 1;
      while (node < leaves) node = most[2 * node] >= count ? 2 * node : 2 * node + 1;
      const std::size_t to = node - leaves;
      if (to >= bins.size()) bins.resize(to + 1, {.left = samples_.length, .items = {}});
      bins[to].items.push_back(item);
      bins[to].left -= count;
      most[node] = bins[to].left;
      while ((node /= 2) != 0) most[node] = std::max(most[2 * node], most[2 * node + 1]);
    }
    return bins;
  }

  const packed_samples samples_;
  const std::uint32_t epoch_;
  sample_numbers items_;
  std::vector<std::uint64_t> row_begins_;  // in items_, and where the last one ends
  std::uint64_t placed_ = 0;
};

class packed_sampler final : public sampler, public packing {
 public:
  packed_sampler(packed_samples samples, const order_context& context)
      : samples_(std::move(samples)),
        batch_size_(context.batch_size),
        last_(context.last),
        epochs_([this](std::uint32_t epoch, const std::stop_token& stop) { return make(epoch, stop); }) {
    if (!samples_.how.shuffle) only_ = make(0, {});
    hasher hash;
    hash.add(std::as_bytes(std::span(*samples_.counts)));
    counts_ = hash.finish();
    const std::uint32_t longest = std::min(samples_.length, lengths_told_apart);
    shortest_.resize(longest + std::size_t{1});
    const bool is_split = samples_.how.by != packed_by::stream && samples_.how.longer == longer_samples::split;
    for (const std::uint32_t count : *samples_.counts) {
      // What is left of a text that is split may be shorter than any text.
      const std::uint32_t rest = is_split ? count % samples_.length : count;
      if (is_split) shortest_[longest] += count / samples_.length;
      if (rest != 0) ++shortest_[std::min(rest, longest)];
    }
  }

  void describe(description& out) const override {
    constexpr std::string_view ways[] = {"stream", "best_fit", "first_fit"};
    constexpr std::string_view longer[] = {"cut", "split", "skip"};
    describe_order(out, "packed", {.seed = samples_.seed, .batch_size = batch_size_, .last = last_});
    out.add("length", std::uint64_t{samples_.length});
    out.add("by", ways[static_cast<std::size_t>(samples_.how.by)]);
    if (samples_.how.by != packed_by::stream) {
      out.add("longer", longer[static_cast<std::size_t>(samples_.how.longer)]);
      out.add("pool", std::uint64_t{samples_.how.pool});
    }
    out.add("shuffle", samples_.how.shuffle);
    out.add("pad", str_cat(samples_.how.pad));
    out.add("lengths", counts_);
  }

  std::uint64_t batches(std::uint32_t epoch) const override { return cut_of(epoch).batches(); }
  std::uint32_t rows(std::uint32_t epoch, std::uint64_t batch) const override {
    const std::shared_ptr<const packed_epoch> of = epoch_of(epoch);
    const std::uint64_t first = first_row(epoch, batch);
    return static_cast<std::uint32_t>(of->pieces_before(first + packed_rows(epoch, batch)) - of->pieces_before(first));
  }
  std::uint32_t rows_max() const override { return pieces_max(packed_rows_max()); }
  bool in_order() const override { return !samples_.how.shuffle && samples_.how.by == packed_by::stream; }
  std::uint64_t samples(std::uint32_t epoch) const override {
    return epoch_of(epoch)->pieces_before(cut_of(epoch).places_used());
  }
  void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
             std::span<pick> out) const override {
    std::vector<packed_piece> all;
    const std::uint64_t first = first_row(epoch, batch);
    pieces(epoch, first, first + packed_rows(epoch, batch), all);
    assert(row_begin <= row_end && row_end <= all.size());
    for (std::uint32_t row = row_begin; row < row_end; ++row) out[row - row_begin] = all[row].of;
  }

  std::uint32_t row_tokens() const noexcept override { return samples_.length; }
  std::int64_t pad() const noexcept override { return samples_.how.pad; }
  std::uint32_t packed_rows(std::uint32_t epoch, std::uint64_t batch) const override {
    return cut_of(epoch).rows(batch);
  }
  std::uint64_t first_row(std::uint32_t /*epoch*/, std::uint64_t batch) const override { return batch * batch_size_; }
  std::uint32_t packed_rows_max() const noexcept override { return batch_size_; }
  // The shortest samples, all together. One more is cut where the rows begin, one where they end, and one where each row does.
  std::uint32_t pieces_max(std::uint32_t rows) const override {
    const std::uint64_t room = std::uint64_t{rows} * samples_.length;
    std::uint64_t left = room;
    std::uint64_t whole = 0;
    for (std::uint64_t length = 1; length < shortest_.size() && left >= length; ++length) {
      const std::uint64_t some = std::min(shortest_[length], left / length);
      whole += some;
      left -= some * length;
    }
    return static_cast<std::uint32_t>(
        std::min({room, whole + rows + 1, std::uint64_t{std::numeric_limits<std::uint32_t>::max()}}));
  }
  void pieces(std::uint32_t epoch, std::uint64_t first, std::uint64_t end,
              std::vector<packed_piece>& out) const override {
    epoch_of(epoch)->walk(first * samples_.length, end * samples_.length, [&](const packed_piece& each) {
      out.push_back(of_epoch(each, epoch));
      return true;
    });
  }
  packed_piece piece_of(const pick& chosen) const override {
    packed_piece found;
    const std::uint64_t row_end = (chosen.draw / samples_.length + 1) * samples_.length;
    epoch_of(chosen.epoch)->walk(chosen.draw, row_end, [&](const packed_piece& each) {
      found = of_epoch(each, chosen.epoch);
      return false;
    });
    assert(found.of == chosen);
    return found;
  }
  std::uint32_t tokens_of(std::uint64_t sample) const noexcept override { return samples_[sample]; }
  bool cuts_or_splits() const noexcept override {
    return samples_.how.by == packed_by::stream || samples_.how.longer == longer_samples::split;
  }

 private:
  // Longer samples count as long as that where only the most pieces of a batch are asked for.
  static constexpr std::uint32_t lengths_told_apart = 1U << 16;
  using epoch_pointer = std::shared_ptr<const packed_epoch>;

  [[nodiscard]] static packed_piece of_epoch(packed_piece piece, std::uint32_t epoch) noexcept {
    piece.of.epoch = epoch;
    return piece;
  }
  [[nodiscard]] epoch_pointer make(std::uint32_t epoch, const std::stop_token& stop) const {
    if (samples_.how.by == packed_by::stream) return std::make_shared<stream_epoch>(samples_, epoch, stop);
    return std::make_shared<fitted_epoch>(samples_, epoch, stop);
  }
  [[nodiscard]] epoch_pointer epoch_of(std::uint32_t epoch) const {
    return samples_.how.shuffle ? *epochs_.of(epoch) : only_;
  }
  [[nodiscard]] batch_cut cut_of(std::uint32_t epoch) const { return {epoch_of(epoch)->rows(), batch_size_, last_}; }

  const packed_samples samples_;
  const std::uint32_t batch_size_;
  const last_batch last_;
  digest counts_;
  std::vector<std::uint64_t> shortest_;  // samples, or parts of them, of each length; the last has those of more, too
  epoch_pointer only_;                   // where all are the same
  mutable made_ahead<epoch_pointer> epochs_;  // Last: its threads refer to what is above.
};

class packed_order final : public order_model {
 public:
  packed_order(std::uint32_t length, const packed_options& how) : length_(length), how_(how) {}

  std::string_view name() const noexcept override { return "packed"; }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    if (context.last == last_batch::pad) {
      throw order_error(name(), "a last batch is smaller, or left out: give keep or drop");
    }
    std::shared_ptr<const row_counts> counts;
    const std::string* of = nullptr;
    for (const field& each : context.fields) {
      std::shared_ptr<const row_counts> found = each.model().counts(samples.model(), context.counting);
      if (!found) continue;
      if (counts) {
        check_same(*of, *counts, each.model().name(), *found);
      } else {
        counts = std::move(found);
        of = &each.model().name();
      }
    }
    if (!counts) {
      throw order_error(name(),
                        "no field of the loader has tokens: give it a leat::tokenize(\"text\", words), or of "
                        "tokens that were made before a leat::sequence(\"input_ids\").packed()");
    }
    check_size(*counts);
    if (counts->empty() || std::all_of(counts->begin(), counts->end(), [](std::uint32_t n) { return n == 0; })) {
      return std::make_shared<global_sampler>(0, sampler_options{.batch_size = context.batch_size});
    }
    return std::make_shared<packed_sampler>(
        packed_samples{.counts = std::move(counts), .length = length_, .how = how_, .seed = context.seed}, context);
  }

 private:
  // Fields that are packed lie in the same places.
  void check_same(const std::string& first, const row_counts& of_first, const std::string& other,
                  const row_counts& of_other) const {
    const auto differ = std::mismatch(of_first.begin(), of_first.end(), of_other.begin()).first;
    if (differ == of_first.end()) return;
    const auto sample = static_cast<std::size_t>(differ - of_first.begin());
    throw order_error(name(), "'", first, "' has ", *differ, " tokens in sample ", sample, ", and '", other, "' ",
                      of_other[sample], ": fields that are packed together have the same lengths");
  }
  // The place of each token is a draw.
  void check_size(const row_counts& counts) const {
    std::uint64_t tokens = 0;
    for (const std::uint32_t count : counts) {
      tokens += how_.by == packed_by::stream ? count : (count / std::uint64_t{length_} + 1) * length_;
    }
    if (tokens >= draws_end - length_) {
      throw order_error(name(), "an epoch of ", tokens, " tokens; it may have 2^48");
    }
  }

  std::uint32_t length_;
  packed_options how_;
};

}  // namespace
}  // namespace stages

order packed(std::uint32_t length, packed_options how) {
  if (length == 0 || length > std::uint32_t{1} << 30) {
    throw stages::order_error(std::string_view("packed"), "rows of ", length, " tokens; give 1 to 2^30");
  }
  if (how.pool == 0) throw stages::order_error(std::string_view("packed"), "a pool of no samples; give at least 1");
  return order(std::make_shared<stages::packed_order>(length, how));
}

}  // namespace leat
