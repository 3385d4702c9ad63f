// finish_pictures() on the GPU where rows have programs: steps of colour on pixels in registers, between the load and the store. All threads
// of a block have the same row, and so take the same branches.
#include "stages/device/finish_elements.cuh"
#include "stages/device/finish_pictures.hpp"
#include "stages/device/noise_threads.hpp"
#include "stages/device/picture_threads.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace leat::stages {
namespace {

using picture_threads::pixel;

/// Of a multiprocessor: what bounds the registers of a thread. Compute capability 10.0 and later would spill.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
template <bool mixed>
constexpr unsigned program_blocks_at_once = mixed ? 3 : 4;
#else
template <bool mixed>
constexpr unsigned program_blocks_at_once = mixed ? 4 : 6;
#endif
/// Pixels of a thread: three words of bytes, and three stores.
constexpr unsigned pixels_in_run = 4;

/// How pictures lie in memory, and what is done to them.
struct programmed_source {
  const std::uint8_t* from;
  const std::uint8_t* moved;
  const std::uint8_t* programs;
  const mix_row* mixed;
  const float* noise;
  unsigned program_bytes;
  unsigned noise_values;
  unsigned rows;
  unsigned plane;
  unsigned width;
  float erased[3];

  [[nodiscard]] __device__ unsigned partner(unsigned row) const { return row + 1 == rows ? 0 : row + 1; }
};

/// A row and its record.
struct programmed_row {
  __device__ programmed_row(const programmed_source& pictures, unsigned row)
      : record(pictures.programs + std::size_t{row} * pictures.program_bytes) {
    // By one load: all that is read of the head but the box.
    const std::uint64_t bits = *reinterpret_cast<const std::uint64_t*>(record);
    memcpy(&head, &bits, sizeof bits);
    from = (head.moved != 0 ? pictures.moved : pictures.from) + std::size_t{row} * pictures.plane * 3;
  }

  template <std::uint32_t count>
  __device__ void run(unsigned record_bytes, pixel (&all)[count]) const {
    picture_threads::run_steps(record, record_bytes, head.first, picture_threads::step_count_of(head, record_bytes),
                               all);
  }
  [[nodiscard]] __device__ bool meets_erased(unsigned x, unsigned count, unsigned y) const {
    if (head.erases == 0) return false;
    const erased_part& part = reinterpret_cast<const picture_program*>(record)->erased;
    return x + count > part.left && x < part.right && y >= part.top && y < part.bottom;
  }

  /// Of a pixel within the box.
  [[nodiscard]] __device__ float erased(const programmed_source& pictures, unsigned c, unsigned x, unsigned y) const {
    if (head.erases != 2) return pictures.erased[c];
    const std::size_t row = static_cast<std::size_t>(record - pictures.programs) / pictures.program_bytes;
    const erased_part& part = reinterpret_cast<const picture_program*>(record)->erased;
    return pictures.noise[row * pictures.noise_values + picture_threads::noise_at(part, c, x, y)];
  }

  const std::uint8_t* record;
  const std::uint8_t* from;
  picture_program head;  // without its box
};

/// Pixels side by side, in one line. Of planes a store has a channel; else what lies side by side.
template <class As, bool planes>
class programmed_run {
 public:
  using store = store_of<As, pixels_in_run>;
  struct loaded {
    programmed_row of;
    std::uint32_t words[3];
  };

  __device__ programmed_run(const programmed_source& pictures, unsigned thread, const channels& how)
      : first_(thread * pixels_in_run),
        y_(first_ / pictures.width),
        x_(first_ - y_ * pictures.width),
        mirror_first_(first_ - x_ + (pictures.width - pixels_in_run - x_)),
        pictures_(pictures),
        how_(how) {}

  [[nodiscard]] __device__ loaded load(unsigned row) const {
    loaded made{programmed_row(pictures_, row), {}};
    const auto* const packed = reinterpret_cast<const std::uint32_t*>(made.of.from) +
                               (made.of.head.flip != 0 ? mirror_first_ : first_) / 4 * 3;
#pragma unroll
    for (unsigned i = 0; i < 3; ++i) made.words[i] = packed[i];
    return made;
  }

  /// Of rows that are not mixed noise is put afterwards: there are not the registers for it here.
  template <bool mixed>
  __device__ void finish(loaded& from, store (&made)[3]) const {
    if (from.of.head.flip != 0) turn(from.words);
    pixel all[pixels_in_run];
#pragma unroll
    for (unsigned i = 0; i < pixels_in_run * 3; ++i) all[i / 3].c[i % 3] = byte_of(from.words, i);
    from.of.run(pictures_.program_bytes, all);
    const bool erases = (mixed || from.of.head.erases != 2) && from.of.meets_erased(x_, pixels_in_run, y_);
#pragma unroll
    for (unsigned s = 0; s < 3; ++s) {
      made[s].fill([&](unsigned i) {
        const unsigned c = planes ? s : (s * pixels_in_run + i) % 3;
        return finished(all[pixel_of(s, i)].c[c], how_.scale[c], how_.bias[c]);
      });
    }
    if (erases) erase<mixed>(from.of, made);
  }

  __device__ void mix(const mix_row& how, store (&own)[3], const store (&partner)[3]) const {
    if (is_blended(how)) {
#pragma unroll
      for (unsigned s = 0; s < 3; ++s) blend<As>(how, own[s], partner[s]);
    }
    if (!meets_box(how, x_, pixels_in_run, y_)) return;
    replace(
        own, [&](unsigned pixel) { return meets_box(how, x_ + pixel, 1, y_); },
        [&](unsigned s, unsigned w) { return partner[s].words[w]; });
  }

  __device__ void put(typename As::element* to, unsigned row, const store (&made)[3]) const {
    typename As::element* const picture = to + std::size_t{row} * 3 * pictures_.plane;
#pragma unroll
    for (unsigned s = 0; s < 3; ++s) {
      auto* const at = planes ? picture + std::size_t{s} * pictures_.plane + first_
                              : picture + std::size_t{first_} * 3 + s * pixels_in_run;
      store_streaming(reinterpret_cast<store*>(at), made[s]);
    }
  }

  /// Over what was put there.
  __device__ void put_noise(typename As::element* to, unsigned row, const programmed_row& of) const {
    if (of.head.erases != 2 || !of.meets_erased(x_, pixels_in_run, y_)) return;
    typename As::element* const picture = to + std::size_t{row} * 3 * pictures_.plane;
    for (unsigned pixel = 0; pixel < pixels_in_run; ++pixel) {
      if (!of.meets_erased(x_ + pixel, 1, y_)) continue;
      for (unsigned c = 0; c < 3; ++c) {
        picture[planes ? std::size_t{c} * pictures_.plane + first_ + pixel : (std::size_t{first_} + pixel) * 3 + c] =
            As::from(of.erased(pictures_, c, x_ + pixel, y_));
      }
    }
  }

 private:
  [[nodiscard]] static __device__ constexpr unsigned pixel_of(unsigned s, unsigned i) {
    return planes ? i : (s * pixels_in_run + i) / 3;
  }

  template <bool mixed>
  __device__ void erase(const programmed_row& of, store (&made)[3]) const {
    const auto inside = [&](unsigned pixel) { return of.meets_erased(x_ + pixel, 1, y_); };
    replace(made, inside, [&](unsigned s, unsigned w) {
      float values[As::per_word];
#pragma unroll
      for (unsigned k = 0; k < As::per_word; ++k) {
        const unsigned i = w * As::per_word + k;
        const unsigned c = planes ? s : (s * pixels_in_run + i) % 3;
        if constexpr (mixed) {
          values[k] = inside(pixel_of(s, i)) ? of.erased(pictures_, c, x_ + pixel_of(s, i), y_) : 0;
        } else {
          values[k] = pictures_.erased[c];
        }
      }
      return As::packed(values);
    });
  }

  /// Elements of the pixels that are inside become those of word_of(store, word).
  template <class Inside, class Word>
  __device__ void replace(store (&made)[3], const Inside& inside, const Word& word) const {
    constexpr unsigned element_bits = 32 / As::per_word;
    constexpr std::uint32_t whole_element = As::per_word == 1 ? ~std::uint32_t{0} : (1U << element_bits % 32) - 1;
    bool is_inside[pixels_in_run];
#pragma unroll
    for (unsigned pixel = 0; pixel < pixels_in_run; ++pixel) is_inside[pixel] = inside(pixel);
#pragma unroll
    for (unsigned s = 0; s < 3; ++s) {
#pragma unroll
      for (unsigned w = 0; w < store::word_count; ++w) {
        std::uint32_t mask = 0;
#pragma unroll
        for (unsigned k = 0; k < As::per_word; ++k) {
          if (is_inside[pixel_of(s, w * As::per_word + k)]) mask |= whole_element << k * element_bits;
        }
        made[s].words[w] = (made[s].words[w] & ~mask) | (word(s, w) & mask);
      }
    }
  }

  unsigned first_;
  unsigned y_;
  unsigned x_;
  unsigned mirror_first_;
  const programmed_source& pictures_;
  const channels& how_;
};

/// One thread: the same run in `together` rows, one behind the other. The next row is loaded while one is finished. Where rows are mixed, a
/// row's partner, which is the next, is finished once for both.
template <class As, bool planes, bool mixed>
__global__ void __launch_bounds__(threads_per_block, program_blocks_at_once<mixed>)
    programs_in_turn(const __grid_constant__ programmed_source pictures, typename As::element* to,
                     const __grid_constant__ channels how, unsigned together) {
  const unsigned thread = blockIdx.x * threads_per_block + threadIdx.x;
  if (thread * pixels_in_run >= pictures.plane) return;
  using run_type = programmed_run<As, planes>;
  const run_type run(pictures, thread, how);
  const unsigned first = blockIdx.y * together;
  const unsigned end = together < pictures.rows - first ? first + together : pictures.rows;
  typename run_type::store made[3];
  unsigned to_load = first;
  if constexpr (mixed) {
    typename run_type::loaded own = run.load(first);
    run.template finish<mixed>(own, made);
    to_load = pictures.partner(first);
  }
  typename run_type::loaded next = run.load(to_load);
  for (unsigned row = first; row < end; ++row) {
    typename run_type::loaded now = next;
    if (row + 1 < end) next = run.load(mixed ? pictures.partner(row + 1) : row + 1);
    if constexpr (mixed) {
      typename run_type::store partner[3];
      run.template finish<mixed>(now, partner);
      run.mix(pictures.mixed[row], made, partner);
      run.put(to, row, made);
#pragma unroll
      for (unsigned s = 0; s < 3; ++s) made[s] = partner[s];
    } else {
      run.template finish<mixed>(now, made);
      run.put(to, row, made);
      run.put_noise(to, row, now.of);
    }
  }
}

/// One thread, one pixel: pictures whose lines are no multiple of a run.
template <class As, bool mixed>
__global__ void __launch_bounds__(threads_per_block)
    programs_one_by_one(const __grid_constant__ programmed_source pictures, typename As::element* to, bool planes,
                        const __grid_constant__ channels how) {
  const unsigned at = blockIdx.x * threads_per_block + threadIdx.x;
  if (at >= pictures.plane) return;
  const unsigned y = at / pictures.width;
  const unsigned x = at - y * pictures.width;
  const auto finish = [&](unsigned row, typename As::element(&made)[3]) {
    const programmed_row of(pictures, row);
    const std::uint8_t* const from =
        of.from + (std::size_t{at} - x + (of.head.flip != 0 ? pictures.width - 1 - x : x)) * 3;
    pixel all[1];
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) all[0].c[c] = static_cast<float>(from[c]);
    of.run(pictures.program_bytes, all);
    const bool erases = of.meets_erased(x, 1, y);
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) {
      made[c] = As::from(erases ? of.erased(pictures, c, x, y) : finished(all[0].c[c], how.scale[c], how.bias[c]));
    }
  };
  for (unsigned row = blockIdx.y; row < pictures.rows; row += gridDim.y) {
    typename As::element* const picture = to + std::size_t{row} * pictures.plane * 3;
    typename As::element made[3];
    finish(row, made);
    if constexpr (mixed) {
      typename As::element other[3];
      finish(pictures.partner(row), other);
      const mix_row mix = pictures.mixed[row];
#pragma unroll
      for (unsigned c = 0; c < 3; ++c) {
        if (is_blended(mix)) made[c] = As::from(blended(mix, As::value_of(made[c]), As::value_of(other[c])));
        if (meets_box(mix, x, 1, y)) made[c] = other[c];
      }
    }
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) {
      picture[planes ? std::size_t{c} * pictures.plane + at : std::size_t{at} * 3 + c] = made[c];
    }
  }
}

template <class As, bool planes, bool mixed>
int launch_in_runs(const programmed_source& from, typename As::element* to, const channels& how, stream in) {
  const std::size_t threads = from.plane / pixels_in_run;
  const unsigned together = rows_in_turn(from.rows, threads);
  return launch(&programs_in_turn<As, planes, mixed>, threads, (from.rows - 1) / together + 1, in, from, to, how,
                together);
}

template <class As, bool mixed>
int launch_programs(const picture_batch& pictures, stream in) {
  const programmed_source from{pictures.from,
                               pictures.moved,
                               pictures.programs,
                               pictures.mixed,
                               pictures.noise,
                               pictures.program_bytes,
                               pictures.noise_values,
                               pictures.rows,
                               pictures.height * pictures.width,
                               pictures.width,
                               {pictures.erased[0], pictures.erased[1], pictures.erased[2]}};
  const channels how{{pictures.scale[0], pictures.scale[1], pictures.scale[2]},
                     {pictures.bias[0], pictures.bias[1], pictures.bias[2]}};
  auto* const to = static_cast<typename As::element*>(pictures.to);
  const bool planes = pictures.order == layout::nchw;
  if (pictures.width % pixels_in_run != 0) {
    return launch(&programs_one_by_one<As, mixed>, from.plane, pictures.rows, in, from, to, planes, how);
  }
  return planes ? launch_in_runs<As, true, mixed>(from, to, how, in)
                : launch_in_runs<As, false, mixed>(from, to, how, in);
}

template <class As>
int launch_programs(const picture_batch& pictures, stream in) {
  return pictures.mixed != nullptr ? launch_programs<As, true>(pictures, in) : launch_programs<As, false>(pictures, in);
}

template <class As, bool mixed>
cudaError_t load_programs() {
  cudaError_t status = load(&programs_in_turn<As, true, mixed>);
  if (status == cudaSuccess) status = load(&programs_in_turn<As, false, mixed>);
  return status != cudaSuccess ? status : load(&programs_one_by_one<As, mixed>);
}

}  // namespace

int load_finish_programs() noexcept {
  for (cudaError_t (*const loads)() :
       {&load_programs<as_f32, false>, &load_programs<as_f32, true>, &load_programs<as_f16, false>,
        &load_programs<as_f16, true>, &load_programs<as_bf16, false>, &load_programs<as_bf16, true>,
        &load_programs<as_u8, false>}) {
    if (const cudaError_t status = loads(); status != cudaSuccess) return static_cast<int>(status);
  }
  return 0;
}

int launch_finish_programs(const picture_batch& pictures, stream in) noexcept {
  switch (pictures.type) {
    case dtype::f32:
      return launch_programs<as_f32>(pictures, in);
    case dtype::f16:
      return launch_programs<as_f16>(pictures, in);
    case dtype::bf16:
      return launch_programs<as_bf16>(pictures, in);
    case dtype::u8:
      if (pictures.mixed == nullptr) return launch_programs<as_u8, false>(pictures, in);
      [[fallthrough]];
    default:
      return static_cast<int>(cudaErrorInvalidValue);
  }
}

}  // namespace leat::stages
