// In which order a loader takes the samples of its dataset. An order is a value; the loader binds it to its dataset, as a field.
#pragma once

#include <leat/dataset.hpp>
#include <leat/sampler.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

namespace stages {
class order_model;  // stages/order/order_model.hpp: what an order becomes inside the loader
}

/// Any order, as loader_options::order takes it. docs/order.md has what each guarantees and what it costs.
class order {
 public:
  explicit order(std::shared_ptr<const stages::order_model> model);
  /// "shuffled", "weighted"
  [[nodiscard]] std::string_view name() const noexcept;
  [[nodiscard]] const stages::order_model& model() const noexcept { return *model_; }

 private:
  std::shared_ptr<const stages::order_model> model_;  // Immutable, and shared by the copies of this value.
};

/// Each sample once per epoch, in the dataset's order.
[[nodiscard]] order sequential();

/// Each sample once per epoch, in an order drawn exactly and globally from (seed, epoch).
[[nodiscard]] order shuffled();

/// Each sample once per epoch. The blocks that samples share (the chunks of HDF5 and Zarr) stand in an order that is drawn; each
/// `pool_blocks` of them in a row are a pool, whose samples stand in an order that is drawn. A batch needs the blocks of one pool or two,
/// and not one for nearly every row, as in shuffled(); a sample meets those of its pool's blocks and no others.
///   memory   8 bytes a block, and 8 a pool for each of the epochs that are kept, three mostly
///   throws   error{errc::usage} for pool_blocks = 0; when the loader is built, for a dataset whose samples share no blocks
[[nodiscard]] order shuffled_blocks(std::uint32_t pool_blocks);

/// `n` draws of each sample side by side, the samples shuffled: repeated augmentation. An epoch has n times as many rows as the
/// dataset has samples; each row of a sample has a draw of its own.
///   throws   error{errc::usage} for n = 0; when the loader is built, for more than 2^48 rows
[[nodiscard]] order repeated(std::uint32_t n);

enum class replacement : std::uint8_t {
  yes,  ///< each row is drawn for itself
  no    ///< a sample comes once per epoch at most; what is heavy comes early
};

/// Rows drawn by weight: torch's WeightedRandomSampler.
///   weights             one per sample, of any sum; 0 never comes
///   samples_per_epoch   0: as many as there are weights; without replacement, as there are above 0
///   memory              8 bytes a sample, the weights. With replacement 12 bytes a sample more (16 above 2^32 samples). Without, 4
///                       bytes (8) for each row of the epochs that are kept, three mostly, and 16 bytes a sample while one is made
///   time                without replacement an epoch is sorted by who asks for it first; the one after it on a thread of its own,
///                       from then on
///   throws              when the loader is built, error{errc::usage}: weights negative, NaN, infinite, all 0, fewer or more than
///                       samples; without replacement, more samples_per_epoch than weights above 0
[[nodiscard]] order weighted(std::vector<double> weights, std::uint64_t samples_per_epoch = 0,
                             replacement how = replacement::yes);

/// Equal shares for all values of a column of whole numbers ("cls", or one that dataset::with_column() has added): of as many rows as there
/// are values, one after the other, each value has one, in an order that is drawn. The samples of a value are shuffled and come all
/// before one comes again: each value counts its own epochs, which key its draws.
///   samples_per_epoch   0: as many as the dataset has
///   memory              4 bytes a sample (8 above 2^32), 8 bytes a value
///   throws              when the loader is built, error{errc::usage}: no such column, or a sample without a value in it
[[nodiscard]] order balanced(std::string column, std::uint64_t samples_per_epoch = 0);

///   length       a column, or a field whose stored bytes are the length
///   tokens_max   a batch's rows, each as long as the longest of its bucket, are no more than this together
///   rows_max     of a batch; 0: batch_size
struct bucket_options {
  std::string length;
  std::uint64_t tokens_max = 0;
  std::uint32_t rows_max = 0;
};

/// Like lengths together. Samples are sorted by length once, when the loader is built, and divided into buckets: lengths that differ by
/// an eighth, or more where there are few. How many rows a bucket's batches have follows from its longest sample. In each epoch the
/// samples of a bucket are shuffled, and the batches of all buckets. tokens_max and rows_max are those of a global batch. The last batch
/// of each bucket is kept, dropped, or padded from its own bucket.
///   memory   4 bytes a sample (8 above 2^32)
///   throws   when the loader is built, error{errc::usage}: tokens_max of 0, neither a column nor a field of this name, a sample without
///            a length, one with a negative length, one that is longer than tokens_max
[[nodiscard]] order bucketed(bucket_options how);

/// The parts of a concat() by shares, whatever their sizes: after any number of rows each part has within 1 of its share of them. The
/// samples of a part are shuffled and come all before one comes again: each part counts its own epochs, which key its draws (and, for
/// windows of tokens, their offset).
///   shares              one for each part, of any sum; each at least a millionth of it
///   samples_per_epoch   0: as many as the dataset has
///   memory              none a sample; 64 bytes a part
///   throws              when the loader is built, error{errc::usage}: shares negative, NaN, infinite or too small; fewer or more than
///                       the dataset has parts; a part without samples
[[nodiscard]] order mixed_by(std::vector<double> shares, std::uint64_t samples_per_epoch = 0);

/// Datasets with their shares, as a dataset and as the order over it:
///
///     const tokens how{.length = 1024};
///     const mixture mixed({{cut_windows(web, how), 0.7}, {cut_windows(books, how), 0.3}});
///     options.order = mixed;
///     loader train{mixed, options, how};
class mixture {
 public:
  struct part {
    dataset samples;
    double share = 1;
  };
  ///   throws   as concat()
  explicit mixture(std::span<const part> parts, std::uint64_t samples_per_epoch = 0);
  mixture(std::initializer_list<part> parts, std::uint64_t samples_per_epoch = 0);

  [[nodiscard]] const dataset& samples() const noexcept { return samples_; }
  [[nodiscard]] const order& by_shares() const noexcept { return order_; }
  operator dataset() const { return samples_; }    // NOLINT: it is a dataset
  operator leat::order() const { return order_; }  // NOLINT: and an order.

 private:
  dataset samples_;
  order order_;
};

/// An order in which each node of several reads samples of its own share of the dataset, in all epochs: its cache has to hold this share
/// only. The ranks of a node, which follow one another in the world, have its rows of each batch. Shares are neighbouring samples, as even
/// as whole blocks (dataset shards, chunks) allow; in each epoch `of` is the order of each. Rows are the same in every world.
///   price    a node's rows never have samples of the others' shares, as shuffled() would give them. All shares have as many rows in an
///            epoch as the smallest one; what others have more is left out, in each epoch other samples (of sequential() the same)
///   of       sequential(), shuffled() or shuffled_blocks()
///   nodes    0: as many as world.size / world.local_size
///   throws   when the loader is built, error{errc::usage}: another order, last_batch::pad, a global batch that is no multiple of
///            `nodes`, fewer blocks (or samples, where they share none) than nodes, windows that are drawn from anywhere in the dataset, a
///            world in which ranks would have rows of one node and part of another's
[[nodiscard]] order sticky(order of, std::uint32_t nodes = 0);

/// One's own. batch_size says nothing then, and `last` has to be last_batch::keep: the sampler cuts its batches itself.
///   throws   error{errc::usage} for none; when the loader is built, if its rows_max() is 0
[[nodiscard]] order sampled_by(std::shared_ptr<const sampler> own);

}  // namespace leat
