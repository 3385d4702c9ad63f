// Samplers: which samples make up a batch. A sampler is a function of epoch, batch and row, so that any batch is found
// directly.
#pragma once

#include <leat/compiler.hpp>

#include <cstdint>
#include <span>

#pragma GCC visibility push(default)
namespace leat {

class description;

/// What happens to the last batch of an epoch if its rows do not fill it.
enum class last_batch : std::uint8_t {
  keep,  ///< it is smaller
  drop,  ///< it is left out, as with drop_last=True
  pad    ///< it is filled with the first rows of its own epoch, several times if the epoch is smaller than a batch
};

/// Options of global_sampler, with the meaning that they have in loader_options.
struct sampler_options {
  bool shuffle = true;                 ///< true (default): a new random order in each epoch; false: that of the dataset
  std::uint64_t seed = 0;              ///< decides the random order. Default: 0
  std::uint32_t batch_size = 64;       ///< rows of a global batch. Default: 64
  last_batch last = last_batch::keep;  ///< what happens to a last batch that is not full
};

/// One row of an order: its sample, and the key of its random numbers.
///   draw, epoch   with the seed, the key of all that is random in the row: crops, windows of tokens, mixing, a
///                 substitute. A sample that comes twice with two draws gets two crops. draw < 2^48
struct pick {
  std::uint64_t sample = 0;
  std::uint64_t draw = 0;
  std::uint32_t epoch = 0;

  friend bool operator==(const pick&, const pick&) = default;
};

/// The order of a dataset, as the global batches of each epoch, numbered from 0. A rank takes its rows of each global
/// batch; a single process takes them all.
///
/// The answers depend on the arguments alone: not on time, on the machine, or on what was asked before.
/// Thread: const calls from any number of threads.
class sampler {
 public:
  sampler() = default;
  sampler(const sampler&) = delete;
  sampler& operator=(const sampler&) = delete;
  virtual ~sampler() = default;

  /// Names what decides the order (<leat/description.hpp>): a run is resumed only with the same order.
  ///   default   no name: the run can neither be saved nor resumed
  virtual void describe(description& out) const;

  /// Global batches of this epoch. An order has batches in every epoch, or in none.
  [[nodiscard]] virtual std::uint64_t batches(std::uint32_t epoch) const = 0;

  /// Rows of one global batch: at least 1. `batch` < batches(epoch).
  [[nodiscard]] virtual std::uint32_t rows(std::uint32_t epoch, std::uint64_t batch) const = 0;

  /// The most rows of a batch of any epoch. Memory is planned for this many.
  [[nodiscard]] virtual std::uint32_t rows_max() const = 0;

  /// The picks of rows row_begin to row_end - 1 of one global batch.
  ///   row_begin, row_end   row_begin <= row_end <= rows(epoch, batch)
  ///   out                  row_end - row_begin elements; writes all of them
  virtual void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
                     std::span<pick> out) const = 0;

  /// How many rows at the end of a batch only fill it (last_batch::pad). They came before in this epoch, and do not
  /// count.
  ///   default   0
  [[nodiscard]] virtual std::uint32_t padded(std::uint32_t epoch, std::uint64_t batch) const;

  /// Whether a sample may come more than once in a batch. If not, rows of different length take less memory: a batch is
  /// planned for its number of largest samples, and a batch that is larger ends the run.
  [[nodiscard]] virtual bool repeats() const { return true; }

  /// Whether rows follow mostly the order of the dataset: neighbouring samples are then read together.
  [[nodiscard]] virtual bool in_order() const { return false; }

  /// How many of the blocks that samples share (chunks of HDF5 and Zarr) neighbouring batches take their rows from. So
  /// many expanded blocks are kept.
  ///   default   1 in order; else 0: any
  [[nodiscard]] virtual std::uint64_t blocks_near() const { return in_order() ? 1 : 0; }

  /// The number of equal parts of each batch whose rows have samples of their own (node_local()). substitutes() are then
  /// divided in the same way, one part after another.
  ///   default   1
  [[nodiscard]] virtual std::uint32_t nodes() const { return 1; }

  /// Rows of all batches of this epoch, with the padded ones.
  ///   default   the sum of rows(), which asks for each batch
  [[nodiscard]] virtual std::uint64_t samples(std::uint32_t epoch) const;

  /// The candidates that may replace a corrupt sample of this batch: how many there are, and the n-th. Samples that a
  /// rank or a bucket must not get are not among them.
  ///   default   the picks of this epoch; finding one asks for the rows of the batches before it
  [[nodiscard]] virtual std::uint64_t substitutes(std::uint32_t epoch, std::uint64_t batch) const;
  [[nodiscard]] virtual pick substitute(std::uint32_t epoch, std::uint64_t batch, std::uint64_t n) const;
};

/// Every sample once per epoch, in the order of the dataset, or in a random order of the whole dataset, drawn from
/// (seed, epoch).
///   cost     the same for every batch: about 0.3 us per call and 30 ns per row; no memory per sample
///   source   stages/order/permutation.hpp
class global_sampler final : public sampler {
 public:
  /// Throws error{errc::usage} for a batch size of 0, or for more than 2^48 samples.
  global_sampler(std::uint64_t samples, const sampler_options& options);

  void describe(description& out) const override;
  [[nodiscard]] std::uint64_t batches(std::uint32_t epoch) const override;
  [[nodiscard]] std::uint32_t rows(std::uint32_t epoch, std::uint64_t batch) const override;
  [[nodiscard]] std::uint32_t rows_max() const override;
  /// In each pick, draw is the sample, and epoch the argument.
  void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
             std::span<pick> out) const override;
  [[nodiscard]] std::uint32_t padded(std::uint32_t epoch, std::uint64_t batch) const override;
  /// Only with last_batch::pad, if the dataset is smaller than a batch.
  [[nodiscard]] bool repeats() const override { return samples_ != 0 && rows_max() > samples_; }
  [[nodiscard]] bool in_order() const override { return !options_.shuffle; }
  [[nodiscard]] std::uint64_t samples(std::uint32_t epoch) const override;
  /// All samples of the dataset, also those that last_batch::drop leaves out.
  [[nodiscard]] std::uint64_t substitutes(std::uint32_t, std::uint64_t) const override { return samples_; }
  [[nodiscard]] pick substitute(std::uint32_t epoch, std::uint64_t, std::uint64_t n) const override {
    return {.sample = n, .draw = n, .epoch = epoch};
  }

 private:
  std::uint64_t samples_;
  sampler_options options_;
};

}  // namespace leat
#pragma GCC visibility pop
