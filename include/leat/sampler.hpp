// Which samples make up a batch. The order of an epoch is a function, asked in rows of batches: nobody walks to a place.
#pragma once

#include <cstdint>
#include <span>

namespace leat {

class description;

/// What becomes of the last batch of an epoch where its rows do not fill it.
enum class last_batch : std::uint8_t {
  keep,  ///< it is smaller
  drop,  ///< it is left out
  pad    ///< it is filled with the first rows of its own epoch, again and again where the epoch is smaller than a batch
};

struct sampler_options {
  bool shuffle = true;
  std::uint64_t seed = 0;
  std::uint32_t batch_size = 64;
  last_batch last = last_batch::keep;
};

/// One row of an order: which sample, and what keys its randomness.
///   draw, epoch   key, with the seed, all that is drawn for the row: crops, windows of tokens, mixing, a substitute. A sample that
///                 comes twice with two draws is drawn twice. draw < 2^48
struct pick {
  std::uint64_t sample = 0;
  std::uint64_t draw = 0;
  std::uint32_t epoch = 0;

  friend bool operator==(const pick&, const pick&) = default;
};

/// The order of a dataset's samples, as the global batches of each epoch: those of all ranks together, numbered from 0.
/// A rank of many takes its rows of each global batch; a single process takes them all.
///
/// A function of its arguments: it answers the same however often, in whatever order and on whatever machine it is asked.
/// Thread: const calls from any number of threads.
class sampler {
 public:
  sampler() = default;
  sampler(const sampler&) = delete;
  sampler& operator=(const sampler&) = delete;
  virtual ~sampler() = default;

  /// Names what decides the order: a run is resumed only in the order that it was begun in (<leat/description.hpp>).
  ///   default   nothing has a name: the run can be run, and neither saved nor resumed
  virtual void describe(description& out) const;

  /// Global batches of this epoch. An order has batches in every epoch, or in none.
  [[nodiscard]] virtual std::uint64_t batches(std::uint32_t epoch) const = 0;

  /// Rows of one global batch: at least 1. `batch` < batches(epoch).
  [[nodiscard]] virtual std::uint32_t rows(std::uint32_t epoch, std::uint64_t batch) const = 0;

  /// The most rows that a batch of any epoch has. Memory is planned for so many.
  [[nodiscard]] virtual std::uint32_t rows_max() const = 0;

  /// What lies in rows row_begin..row_end-1 of one global batch.
  ///   row_begin, row_end   row_begin <= row_end <= rows(epoch, batch)
  ///   out                  row_end - row_begin elements; all are written
  virtual void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
                     std::span<pick> out) const = 0;

  /// How many rows at the end of a batch are there only to fill it (last_batch::pad): they come a second time in this epoch, as they
  /// came before, and do not count.
  ///   default   0
  [[nodiscard]] virtual std::uint32_t padded(std::uint32_t epoch, std::uint64_t batch) const;

  /// Whether a sample may come more than once in a batch. Where it does not, ragged rows take less memory: a batch is at most as
  /// large as its number of largest samples. A batch that is larger than that ends the run.
  [[nodiscard]] virtual bool repeats() const { return true; }

  /// Whether rows follow one another as their samples do in the dataset, mostly: those of neighbours are then read together.
  [[nodiscard]] virtual bool in_order() const { return false; }

  /// How many of the blocks that samples share (chunks of HDF5 and Zarr) the rows of neighbouring batches come from: so many are worth
  /// keeping once they are expanded.
  ///   default   1 in order; else 0: any
  [[nodiscard]] virtual std::uint64_t blocks_near() const { return in_order() ? 1 : 0; }

  /// Into how many parts of equal length the rows of each batch are divided, of which each has samples of its own (sticky()). Its
  /// substitutes() are as many for each part, those of one part after the other's.
  ///   default   1
  [[nodiscard]] virtual std::uint32_t nodes() const { return 1; }

  /// Rows of all batches of this epoch, padded ones among them.
  ///   default   the sum of rows(), which asks for each batch
  [[nodiscard]] virtual std::uint64_t samples(std::uint32_t epoch) const;

  /// Of what a substitute for a corrupt sample of this batch is drawn: how many picks, and number n of them. What a rank or a bucket
  /// must not get is not among them.
  ///   default   the picks of this epoch; finding one asks for the rows of the batches before it
  [[nodiscard]] virtual std::uint64_t substitutes(std::uint32_t epoch, std::uint64_t batch) const;
  [[nodiscard]] virtual pick substitute(std::uint32_t epoch, std::uint64_t batch, std::uint64_t n) const;
};

/// Every sample once per epoch: in the dataset's order, or in one drawn exactly and globally from (seed, epoch).
///   cost     constant, wherever the batch lies: about 0.3 us per call and 30 ns per row; no memory per sample
///   source   stages/order/permutation.hpp
class global_sampler final : public sampler {
 public:
  /// Throws error{errc::usage} for a batch size of 0, or for more than 2^48 samples.
  global_sampler(std::uint64_t samples, const sampler_options& options);

  void describe(description& out) const override;
  [[nodiscard]] std::uint64_t batches(std::uint32_t epoch) const override;
  [[nodiscard]] std::uint32_t rows(std::uint32_t epoch, std::uint64_t batch) const override;
  [[nodiscard]] std::uint32_t rows_max() const override;
  /// draw is the sample, and epoch the one that is asked for.
  void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
             std::span<pick> out) const override;
  [[nodiscard]] std::uint32_t padded(std::uint32_t epoch, std::uint64_t batch) const override;
  /// With last_batch::pad, where the dataset is smaller than a batch.
  [[nodiscard]] bool repeats() const override { return samples_ != 0 && rows_max() > samples_; }
  [[nodiscard]] bool in_order() const override { return !options_.shuffle; }
  [[nodiscard]] std::uint64_t samples(std::uint32_t epoch) const override;
  /// Any sample of the dataset, those that last_batch::drop leaves out as well.
  [[nodiscard]] std::uint64_t substitutes(std::uint32_t, std::uint64_t) const override { return samples_; }
  [[nodiscard]] pick substitute(std::uint32_t epoch, std::uint64_t, std::uint64_t n) const override {
    return {.sample = n, .draw = n, .epoch = epoch};
  }

 private:
  std::uint64_t samples_;
  sampler_options options_;
};

}  // namespace leat
