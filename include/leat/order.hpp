// Orders: which samples a loader takes, and in which order. An order is a value; the loader binds it to its dataset, as
// a field.
#pragma once

#include <leat/compiler.hpp>
#include <leat/sampler.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::stages {
class order_model;  // stages/order/order_model.hpp: what an order becomes inside the loader
}

#pragma GCC visibility push(default)
namespace leat {

/// Any order, for loader_options::order. docs/guides/ranks-and-resume.md helps to choose one.
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

/// Each sample once per epoch, in a random order of the whole dataset, drawn from (seed, epoch): the default.
[[nodiscard]] order shuffled();

/// Each sample once per epoch. The blocks that samples share (chunks of HDF5 and Zarr, row groups, shards) are
/// shuffled. Each `pool_blocks` of them are a pool, and the samples of a pool are shuffled. A batch then needs the
/// blocks of one or two pools, and not one block for nearly every row as with shuffled(). Only samples of the same pool
/// come near each other.
///   memory   8 bytes a block, and 8 a pool for each epoch that is kept, mostly three
///   throws   error{errc::usage} for pool_blocks = 0; when the loader is built, for a dataset whose samples share no
///            blocks
[[nodiscard]] order shuffled_blocks(std::uint32_t pool_blocks);

/// Repeated augmentation: each sample `n` times in a row with different draws, the samples shuffled. An epoch has n
/// times as many rows as the dataset has samples.
///   throws   error{errc::usage} for n = 0; when the loader is built, for more than 2^48 rows
[[nodiscard]] order repeated(std::uint32_t n);

enum class replacement : std::uint8_t {
  yes,  ///< a sample may come several times in an epoch
  no    ///< a sample comes at most once in an epoch; heavy ones come early
};

/// Rows drawn by weight, as torch's WeightedRandomSampler.
///   weights             one for each sample, of any sum; a sample of weight 0 never comes
///   samples_per_epoch   0 (default): as many as there are weights; without replacement, as there are weights above 0
///   memory              8 bytes a sample. With replacement 12 bytes a sample more (16 above 2^32 samples). Without, 4
///                       bytes (8) for each row of the epochs that are kept, mostly three, and 16 bytes a sample while
///                       an epoch is made
///   time                without replacement, the first thread that asks for an epoch sorts it; later epochs are sorted
///                       ahead, on a thread of their own
///   throws              when the loader is built, error{errc::usage}: weights negative, NaN, infinite, all 0, fewer or
///                       more than samples; without replacement, more samples_per_epoch than weights above 0
[[nodiscard]] order weighted(std::vector<double> weights, std::uint64_t samples_per_epoch = 0,
                             replacement how = replacement::yes);

/// Balanced classes: each value of a column of whole numbers ("cls", or a column of dataset::with_column()) gets as
/// many rows. Rows come in rounds, in which each value has one row, in a random order. The samples of a value are
/// shuffled, and all of them come before one comes again: each value counts its own epochs, which key its draws.
///   samples_per_epoch   0 (default): as many as the dataset has
///   memory              4 bytes a sample (8 above 2^32), 8 bytes a value
///   throws              when the loader is built, error{errc::usage}: no such column, or a sample without a value in
///                       it
[[nodiscard]] order balanced(std::string column, std::uint64_t samples_per_epoch = 0);

///   length   a column with the length of each sample, or a field, whose values are measured in bytes. Values inside
///            records are read once for it
///   tokens_max   the most elements of a batch after padding: rows x the longest sample of the bucket. Must be set
///   rows_max     the most rows of a batch. 0 (default): batch_size
struct bucket_options {
  std::string length;
  std::uint64_t tokens_max = 0;
  std::uint32_t rows_max = 0;
};

/// Batches of samples of similar length, as group_by_length. When the loader is built, samples are sorted by length and
/// divided into buckets, in which lengths differ by an eighth, or more if samples are few. The longest sample of a
/// bucket decides how many rows its batches have. In each epoch the samples of each bucket are shuffled, and so are the
/// batches of all buckets. tokens_max and rows_max apply to global batches. The last batch of each bucket is kept,
/// dropped, or padded from its own bucket.
///   memory   4 bytes a sample (8 above 2^32)
///   throws   when the loader is built, error{errc::usage}: tokens_max of 0, neither a column nor a field of this name,
///            a sample without a length, one with a negative length, one that is longer than tokens_max
[[nodiscard]] order bucketed(bucket_options how);

/// The parts of a concat() by shares, independent of their sizes: after any number of rows each part has its share of
/// them, within one row. The samples of a part are shuffled, and all of them come before one comes again: each part
/// counts its own epochs. They key its draws and the offset of windows of tokens.
///   shares              one for each part, of any sum; each at least a millionth of it
///   samples_per_epoch   0 (default): as many as the dataset has
///   memory              none a sample; 64 bytes a part
///   throws              when the loader is built, error{errc::usage}: shares negative, NaN, infinite or too small;
///                       fewer or more than the dataset has parts; a part without samples
[[nodiscard]] order mixed_by(std::vector<double> shares, std::uint64_t samples_per_epoch = 0);

/// Datasets with their shares: both a dataset, their concat(), and the order over it.
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

/// Each node reads its own share of the dataset in all epochs, so that its cache only has to hold this share. The ranks
/// of a node, which follow one another in the world, have its rows of each batch. Shares are runs of neighbouring
/// samples, as even as whole blocks (shards, chunks) allow. In each epoch `of` is the order of each share. Rows are the
/// same in every world.
///   price    the rows of a node never have samples of other shares. Each share has as many rows in an epoch as the
///            smallest one: what the others have more is left out, other samples in each epoch (with sequential() the
///            same)
///   of       sequential(), shuffled() or shuffled_blocks()
///   nodes    0 (default): world.size / world.local_size
///   throws   when the loader is built, error{errc::usage}: another order; last_batch::pad; a global batch that is no
///            multiple of `nodes`; fewer blocks (or samples, where they share none) than nodes; windows that are drawn
///            from anywhere in the dataset; a world in which ranks would have rows of one node and part of another's
[[nodiscard]] order node_local(order of, std::uint32_t nodes = 0);
/// The name of node_local() before. The next version removes it.
[[deprecated("leat::node_local()")]] [[nodiscard]] inline order sticky(order of, std::uint32_t nodes = 0) {
  return node_local(std::move(of), nodes);
}

/// An order of your own. The sampler makes its batches itself: batch_size is ignored, and `last` must be
/// last_batch::keep.
///   throws   error{errc::usage} for none; when the loader is built, if its rows_max() is 0
[[nodiscard]] order sampled_by(std::shared_ptr<const sampler> own);

}  // namespace leat
#pragma GCC visibility pop
