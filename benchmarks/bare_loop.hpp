// The baseline of the loader: the same photographs, in memory, through the same decoder, on as many threads, and nothing
// else. No files, no queues, no hand-over.
#pragma once

#include "stages/pixels/picture_decoder.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/store.hpp"

#include <leat/batch.hpp>
#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace leat::benchmarks {

/// The training transform that everybody measures with: 224 x 224 crops, flipped, normalised, f32 NCHW.
struct training_crop {
  static constexpr int side = 224;

  pixels::pipeline steps{{transforms::random_resized_crop{.height = side, .width = side}, transforms::random_flip{}}};
  pixels::store store = pixels::store::from(dtype::f32, layout::nchw, imagenet);
  pixels::decode_options options{.decimate = true};

  [[nodiscard]] std::size_t row_bytes() const noexcept { return store.row_bytes(side, side); }
};

/// One decode: the row of a batch.
struct planned_row {
  std::uint32_t epoch = 0;
  std::uint64_t sample = 0;
};

/// The rows of `epochs` epochs, in the order in which a loader with this seed delivers them.
[[nodiscard]] std::vector<planned_row> plan_rows(std::uint64_t samples, std::uint32_t epochs, std::uint32_t batch_size,
                                                 std::uint64_t seed);

class bare_loop {
 public:
  /// Where the pixels go.
  enum class rows : std::uint8_t {
    one_per_thread,  ///< over and over into the same row, which never leaves the core's cache
    batches          ///< into batch after batch, as a loader must: each row goes out to memory
  };

  struct result {
    double wall_s = 0;  ///< from the first decode to the last
    double cpu_s = 0;   ///< of the decoding threads
  };

  /// Reads all photographs. Keeps the decoders, so that only the first run warms them up.
  ///   batches   rows::batches writes into so many in turn; 0 where it is not asked for
  bare_loop(const dataset& photos, std::uint64_t seed, std::uint32_t threads_max, std::uint32_t batch_size,
            std::uint32_t batches);

  /// Throws error where a photograph cannot be decoded.
  result run(std::span<const planned_row> planned, std::uint32_t threads, rows where);

  /// The digests of these rows as a loader with an image and (in a dataset of classes) a label field has them. Slow.
  [[nodiscard]] std::vector<digest> digests(std::span<const planned_row> planned);

 private:
  void decode(pixels::picture_decoder& decoder, const planned_row& row, std::byte* to) const;

  const dataset photos_;
  const std::uint64_t seed_;
  const training_crop crop_;
  std::vector<std::vector<std::byte>> encoded_;
  pixels::scratch_budget budget_;
  std::vector<std::unique_ptr<pixels::picture_decoder>> decoders_;
  std::vector<std::vector<std::byte>> own_rows_;  // one per thread
  std::vector<std::byte> batch_rows_;
};

/// The digest of one row as the loader makes it.
[[nodiscard]] digest digest_of_row(std::uint64_t sample, std::span<const std::byte> pixels, const std::int64_t* label);

}  // namespace leat::benchmarks
