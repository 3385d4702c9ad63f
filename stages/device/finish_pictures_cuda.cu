// finish_pictures() on the GPU: one launch, stores of 16 bytes (of 8 where a line is no multiple of 16), and bytes loaded four at
// a time, mirrored or not. It is bound by memory: a pixel is 3 bytes in and 6 or 12 out, and a handful of instructions. Only
// pictures whose lines are no multiple of 4 elements are read and written one by one.
#include "stages/device/finish_elements.cuh"
#include "stages/device/finish_pictures.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace leat::stages {
namespace {

/// How pictures lie in memory, and what is done to them.
struct source {
  const std::uint8_t* from;
  const std::uint8_t* flips;
  const mix_row* mixed;
  unsigned rows;
  unsigned plane;
  unsigned width;

  [[nodiscard]] __device__ bool mirrored(unsigned row) const { return flips != nullptr && flips[row] != 0; }
  [[nodiscard]] __device__ unsigned partner(unsigned row) const { return row + 1 == rows ? 0 : row + 1; }
};

/// Pixels side by side, as many as one store holds of a plane, for all three planes. A plane's width is a multiple of that, so that they
/// lie in one line, mirrored or not.
template <class As, unsigned pixels>
class run_of_pixels {
 public:
  static constexpr unsigned store_count = 3;
  using store = store_of<As, pixels>;
  struct bytes {
    std::uint32_t words[pixels * 3 / 4];
    bool mirrored;
  };

  [[nodiscard]] static __device__ bool is_inside(const source& pictures, unsigned thread) {
    return thread * pixels < pictures.plane;
  }
  __device__ run_of_pixels(const source& pictures, unsigned thread, const channels& how)
      : first_(thread * pixels),
        y_(first_ / pictures.width),
        x_(first_ - y_ * pictures.width),
        mirror_first_(first_ - x_ + (pictures.width - pixels - x_)),
        how_(how) {}

  [[nodiscard]] __device__ bytes load(const source& pictures, unsigned row) const {
    bytes loaded;
    loaded.mirrored = pictures.mirrored(row);
    const unsigned at = loaded.mirrored ? mirror_first_ : first_;
    const auto* const packed =
        reinterpret_cast<const std::uint32_t*>(pictures.from + std::size_t{row} * pictures.plane * 3) + at / 4 * 3;
#pragma unroll
    for (unsigned i = 0; i < pixels * 3 / 4; ++i) loaded.words[i] = packed[i];
    return loaded;
  }

  __device__ void finish(bytes loaded, store (&made)[3]) const {
    if (loaded.mirrored) {
#pragma unroll
      for (unsigned i = 0; i < pixels / 4; ++i) turn(loaded.words + i * 3);
    }
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) {
      made[c].fill([&](unsigned i) {
        // Groups of four pixels, of which the last one comes first.
        const unsigned group = i / 4;
        const std::uint32_t* const ahead = loaded.words + group * 3;
        const std::uint32_t* const behind = loaded.words + (pixels / 4 - 1 - group) * 3;
        std::uint32_t three[3];
#pragma unroll
        for (unsigned k = 0; k < 3; ++k) three[k] = loaded.mirrored ? behind[k] : ahead[k];
        return finished(byte_of(three, i % 4 * 3 + c), how_.scale[c], how_.bias[c]);
      });
    }
  }

  [[nodiscard]] __device__ bool meets(const mix_row& how) const { return meets_box(how, x_, pixels, y_); }
  [[nodiscard]] __device__ bool meets(const mix_row& how, unsigned i) const { return meets_box(how, x_ + i, 1, y_); }

  __device__ void put(const source& pictures, typename As::element* to, unsigned row, const store (&made)[3]) const {
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) {
      auto* const at = to + (std::size_t{row} * 3 + c) * pictures.plane + first_;
      store_streaming(reinterpret_cast<store*>(at), made[c]);
    }
  }

 private:
  unsigned first_;
  unsigned y_;
  unsigned x_;
  unsigned mirror_first_;
  const channels& how_;
};

/// Elements side by side, as many as one store holds. A line is a multiple of that, and so of words. A thread that stored a
/// whole run of pixels, as above, would leave 32 bytes between its stores, and each sector of memory would be
/// written twice by half: here the stores of a warp lie side by side, mirrored or not.
template <class As, unsigned elements>
class run_of_elements {
 public:
  static constexpr unsigned store_count = 1;
  using store = store_of<As, elements>;
  static constexpr unsigned word_count = elements / 4;
  static constexpr unsigned turned_count = word_count + 1;  // all of the pixels that `elements` may touch
  struct bytes {
    std::uint32_t words[turned_count + 1];  // of a mirrored run as they were loaded
    bool mirrored;
  };

  [[nodiscard]] static __device__ bool is_inside(const source& pictures, unsigned thread) {
    return thread * elements < pictures.plane * 3;
  }
  __device__ run_of_elements(const source& pictures, unsigned thread, const channels& how) : first_(thread * elements) {
    const unsigned pixel = first_ / 3;
    channel_ = first_ - pixel * 3;
    y_ = pixel / pictures.width;
    x_ = pixel - y_ * pictures.width;
    how_ = how.beginning_with(channel_);
    // Mirrored, the pixels wanted lie before this byte, the last of them first.
    const unsigned end = (y_ * pictures.width + pictures.width - x_) * 3;
    end_word_ = (end + 3) / 4;
    shift_ = (end + 3) % 4 + 1;
  }

  [[nodiscard]] __device__ bytes load(const source& pictures, unsigned row) const {
    const auto* const picture =
        reinterpret_cast<const std::uint32_t*>(pictures.from + std::size_t{row} * pictures.plane * 3);
    bytes loaded;
    loaded.mirrored = pictures.mirrored(row);
    if (!loaded.mirrored) {
#pragma unroll
      for (unsigned i = 0; i < word_count; ++i) loaded.words[i] = picture[first_ / 4 + i];
    } else {
#pragma unroll
      for (unsigned i = 0; i <= turned_count; ++i) {
        const unsigned at = end_word_ + i;  // The first may lie before the picture, and is not looked at then.
        loaded.words[i] = picture[at > turned_count ? at - (turned_count + 1) : 0];
      }
    }
    return loaded;
  }

  __device__ void finish(bytes loaded, store (&made)[1]) const {
    if (loaded.mirrored) {
      std::uint32_t ahead[turned_count];
#pragma unroll
      for (unsigned i = 0; i < turned_count; ++i) {
        ahead[i] = four_bytes(loaded.words[i], loaded.words[i + 1], shift_);
      }
      if constexpr (turned_count == 3) {
        turn(ahead);
#pragma unroll
        for (unsigned i = 0; i < word_count; ++i) loaded.words[i] = four_bytes(ahead[i], ahead[i + 1], channel_);
      } else {
        // Two pixels at the end of 8 bytes: of the last one from this channel on, and then of the other one.
        loaded.words[0] = __byte_perm(ahead[0], ahead[1], channel_ == 0 ? 0x2765U : channel_ == 1 ? 0x3276U : 0x4327U);
      }
    }
    made[0].fill([&](unsigned i) { return finished(byte_of(loaded.words, i), how_.scale[i % 3], how_.bias[i % 3]); });
  }

  [[nodiscard]] __device__ bool meets(const mix_row& how) const {
    return meets_box(how, x_, (channel_ + elements + 2) / 3, y_);
  }
  [[nodiscard]] __device__ bool meets(const mix_row& how, unsigned i) const {
    return meets_box(how, x_ + (channel_ + i) / 3, 1, y_);
  }

  __device__ void put(const source& pictures, typename As::element* to, unsigned row, const store (&made)[1]) const {
    store_streaming(reinterpret_cast<store*>(to + std::size_t{row} * pictures.plane * 3 + first_), made[0]);
  }

 private:
  unsigned first_;
  unsigned channel_;
  unsigned y_;
  unsigned x_;
  unsigned end_word_;
  unsigned shift_;
  channels how_;  // beginning with the first element's
};

/// One thread: the same run in `together` rows, one behind the other. The next row is loaded while one is finished; and where rows are mixed,
/// a row's partner, which is the next, is finished once for both.
template <class As, class Run, bool mixed>
__global__ void __launch_bounds__(threads_per_block, blocks_at_once<mixed>)
    in_turn(source pictures, typename As::element* to, channels how, unsigned together) {
  const unsigned thread = blockIdx.x * threads_per_block + threadIdx.x;
  if (!Run::is_inside(pictures, thread)) return;
  const Run run(pictures, thread, how);
  const unsigned first = blockIdx.y * together;
  const unsigned end = together < pictures.rows - first ? first + together : pictures.rows;
  typename Run::store made[Run::store_count];
  unsigned to_load = first;
  if constexpr (mixed) {
    run.finish(run.load(pictures, first), made);
    to_load = pictures.partner(first);
  }
  typename Run::bytes next = run.load(pictures, to_load);
  for (unsigned row = first; row < end; ++row) {
    const typename Run::bytes now = next;
    if (row + 1 < end) next = run.load(pictures, mixed ? pictures.partner(row + 1) : row + 1);
    if constexpr (mixed) {
      typename Run::store partner[Run::store_count];
      run.finish(now, partner);
      mix<As>(run, pictures.mixed[row], made, partner);
      run.put(pictures, to, row, made);
#pragma unroll
      for (unsigned c = 0; c < Run::store_count; ++c) made[c] = partner[c];
    } else {
      run.finish(now, made);
      run.put(pictures, to, row, made);
    }
  }
}

/// One thread, one pixel: pictures whose lines are no multiple of a store.
template <class As, bool mixed>
__global__ void __launch_bounds__(threads_per_block)
    one_by_one(source pictures, typename As::element* to, bool planes, channels how) {
  const unsigned at = blockIdx.x * threads_per_block + threadIdx.x;
  if (at >= pictures.plane) return;
  const unsigned y = at / pictures.width;
  const unsigned x = at - y * pictures.width;
  const auto pixel_of = [&](unsigned row) {
    const unsigned from_x = pictures.mirrored(row) ? pictures.width - 1 - x : x;
    return pictures.from + (std::size_t{row} * pictures.plane + y * pictures.width + from_x) * 3;
  };
  for (unsigned row = blockIdx.y; row < pictures.rows; row += gridDim.y) {
    typename As::element* const picture = to + std::size_t{row} * pictures.plane * 3;
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) {
      const auto finished_of = [&](unsigned which) {
        return As::from(finished(static_cast<float>(pixel_of(which)[c]), how.scale[c], how.bias[c]));
      };
      typename As::element made = finished_of(row);
      if constexpr (mixed) {
        const mix_row mix = pictures.mixed[row];
        const auto other = finished_of(pictures.partner(row));
        if (is_blended(mix)) made = As::from(blended(mix, As::value_of(made), As::value_of(other)));
        if (meets_box(mix, x, 1, y)) made = other;
      }
      picture[planes ? std::size_t{c} * pictures.plane + at : std::size_t{at} * 3 + c] = made;
    }
  }
}

template <class As, class Run, bool mixed>
int launch_in_turn(const source& from, std::size_t threads, typename As::element* to, const channels& how, stream in) {
  const unsigned together = rows_in_turn(from.rows, threads);
  return launch(&in_turn<As, Run, mixed>, threads, (from.rows - 1) / together + 1, in, from, to, how, together);
}

template <class As, bool mixed, unsigned elements>
int launch_in_runs(layout order, const source& from, typename As::element* to, const channels& how, stream in) {
  if (order == layout::nchw) {
    return launch_in_turn<As, run_of_pixels<As, elements>, mixed>(from, from.plane / elements, to, how, in);
  }
  return launch_in_turn<As, run_of_elements<As, elements>, mixed>(from, std::size_t{from.plane} * 3 / elements, to, how,
                                                                  in);
}

template <class As, bool mixed>
int launch_as(const picture_batch& pictures, stream in) {
  const source from{pictures.from, pictures.flips, pictures.mixed, pictures.rows, pictures.height * pictures.width,
                    pictures.width};
  const channels how{{pictures.scale[0], pictures.scale[1], pictures.scale[2]},
                     {pictures.bias[0], pictures.bias[1], pictures.bias[2]}};
  auto* const to = static_cast<typename As::element*>(pictures.to);
  if (pictures.width % elements_per_store<As> == 0) {
    return launch_in_runs<As, mixed, elements_per_store<As>>(pictures.order, from, to, how, in);
  }
  if (pictures.width % elements_per_store_least == 0) {
    return launch_in_runs<As, mixed, elements_per_store_least>(pictures.order, from, to, how, in);
  }
  return launch(&one_by_one<As, mixed>, from.plane, pictures.rows, in, from, to, pictures.order == layout::nchw, how);
}

template <class As>
int launch_as(const picture_batch& pictures, stream in) {
  return pictures.mixed != nullptr ? launch_as<As, true>(pictures, in) : launch_as<As, false>(pictures, in);
}

template <class As, bool mixed, unsigned elements>
cudaError_t load_in_runs() {
  const cudaError_t status = load(&in_turn<As, run_of_pixels<As, elements>, mixed>);
  return status != cudaSuccess ? status : load(&in_turn<As, run_of_elements<As, elements>, mixed>);
}

template <class As, bool mixed>
cudaError_t load_as() {
  cudaError_t status = load_in_runs<As, mixed, elements_per_store<As>>();
  if constexpr (elements_per_store<As> != elements_per_store_least) {
    if (status == cudaSuccess) status = load_in_runs<As, mixed, elements_per_store_least>();
  }
  return status != cudaSuccess ? status : load(&one_by_one<As, mixed>);
}

template <class As>
cudaError_t load_as() {
  const cudaError_t status = load_as<As, false>();
  return status != cudaSuccess ? status : load_as<As, true>();
}

}  // namespace

int load_finish_pictures() noexcept {
  cudaError_t status = load_as<as_f32>();
  if (status == cudaSuccess) status = load_as<as_f16>();
  if (status == cudaSuccess) status = load_as<as_bf16>();
  return status == cudaSuccess ? load_finish_programs() : static_cast<int>(status);
}

int launch_finish_pictures(const picture_batch& pictures, stream in) noexcept {
  if (pictures.rows == 0 || pictures.height == 0 || pictures.width == 0) return 0;
  if (!fits_a_picture(pictures.height, pictures.width)) return static_cast<int>(cudaErrorInvalidValue);
  if (pictures.programs != nullptr) return launch_finish_programs(pictures, in);
  switch (pictures.type) {
    case dtype::f32:
      return launch_as<as_f32>(pictures, in);
    case dtype::f16:
      return launch_as<as_f16>(pictures, in);
    case dtype::bf16:
      return launch_as<as_bf16>(pictures, in);
    default:
      return static_cast<int>(cudaErrorInvalidValue);
  }
}

}  // namespace leat::stages
