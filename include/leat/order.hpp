// Orders: which samples a loader takes, and in which order. An order is a value; the loader binds it to its dataset, as
// a field.
#pragma once

#include <leat/compiler.hpp>
#include <leat/sampler.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <functional>
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

///   length   a column with the length of each sample; or a tokenize field of the loader, whose tokens are counted, on all
///            cores; or a field of the dataset, whose values are measured in bytes. Values inside records are read once for it
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

/// How packed() puts samples into its rows.
enum class packed_by : std::uint8_t {
  stream,    ///< end to end, cut where a row ends: all rows are full but the last
  best_fit,  ///< whole, of a pool of samples: the longest first, each where it leaves the least
  first_fit  ///< whole, as they come: each into the first row of the pool that has room
};

/// What becomes of a sample that is longer than a row and may not be cut where one ends.
enum class longer_samples : std::uint8_t {
  cut,    ///< its first tokens fill a row; the others are left out
  split,  ///< it is several, each as long as a row but the last
  skip    ///< it is left out
};

///   by        stream (default), best_fit or first_fit
///   longer    with best_fit and first_fit. Default: cut
///   pool      with best_fit and first_fit: as many samples are put into rows together. Rows that they fill badly are taken
///             apart, and their samples go to the next pool. Default: 4096
///   shuffle   the samples are shuffled in each epoch (default), or in the dataset's order
///   pad       the number that stands where no token is. Default: 0
struct packed_options {
  packed_by by = packed_by::stream;
  longer_samples longer = longer_samples::cut;
  std::uint32_t pool = 4096;
  bool shuffle = true;
  std::int64_t pad = 0;
};

/// Rows of `length` tokens that hold several samples. The loader has a tokenize field, which makes their tokens, or a
/// sequence::packed(); batch_size counts packed rows. A row of the batch's ids, names and digests, and of other fields, is a *piece*: what one sample has in one row.
///
///     loader train{texts, {.batch_size = 8, .order = packed(2048)}, tokenize("text", words).eos()};
///
///   outputs   `name`: [rows, length]. `name`.positions: i32 [rows, length], from 0 in each piece; 0 where no token is.
///             `name`.documents: i32 [rows, length], the piece's number in its row, from 0; -1 where no token is.
///             `name`.cu_seqlens: i32, where pieces begin in all rows together, and their end, as flash attention's calls for sequences
///             of several lengths take it; what no token fills is a sequence. `name`.max_seqlen: i32 [1], the longest of them
///   memory    4 bytes a sample. For each epoch that is kept, mostly three, 0.125 bytes a sample more; with best_fit and first_fit 4
///             bytes (8 above 2^32), and 8 bytes a row
///   time      tokens of all samples are counted when the loader is built, on all cores; of a sequence their numbers are known, unless it
///             is of text
///   throws    when the loader is built, error{errc::usage}: no such field, or several whose lengths differ; tokenize::pad(); last_batch::pad;
///             corrupt_policy::substitute; mixing; a batch of more than 2^31 tokens
[[nodiscard]] order packed(std::uint32_t length, packed_options how = {});

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

///   cost     of a sequence of so many tokens, finite and at least 0. Default: length x length, as attention has it
///   name     of `cost`, if one is given: a run without it can neither be saved nor resumed
///   length   of an order that does not pack: the length of each sample, as bucket_options::length. Of packed rows it is empty, and the
///            cost of a row is that of its pieces together
struct cost_options {
  std::function<double(std::uint64_t length)> cost = {};
  std::string name = {};
  std::string length = {};
};

/// The order `of`, whose rows of each global batch are dealt to ranks so that the sums of their costs differ least. Each rank has as many
/// rows as before, and a global batch has the same rows in every world. plan().notes say the cost of the slowest rank over the mean.
///
///     options.order = balanced_cost(packed(4096, {.by = packed_by::best_fit}));
///
///   cost     each rank looks at the lengths of a whole global batch
///   throws   when the loader is built, error{errc::usage}: last_batch::pad; node_local(); lengths of a packed order, or none of another
[[nodiscard]] order balanced_cost(order of, cost_options how = {});

/// An order of your own. The sampler makes its batches itself: batch_size is ignored, and `last` must be
/// last_batch::keep.
///   throws   error{errc::usage} for none; when the loader is built, if its rows_max() is 0
[[nodiscard]] order sampled_by(std::shared_ptr<const sampler> own);

}  // namespace leat
#pragma GCC visibility pop
