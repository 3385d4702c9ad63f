// The steps of picture_program.hpp that look at the whole picture, by a team of threads that meet at barriers. Compiled by nvcc for the
// device, and by the host's compiler as its twin. The same bits as pixels/colour makes; sums are of integers.
//
//   Team   run(f): f(thread, threads) for each thread. barrier(): what threads wrote before it is seen behind it. add(to, what): to a number of
//          the memory that all share
#pragma once

#include "stages/device/noise_threads.hpp"
#include "stages/device/picture_threads.hpp"
#include "stages/device/prepare_pictures.hpp"
#include "stages/device/warp_threads.hpp"

#include <cstdint>

namespace leat::stages::picture_threads {

/// What the threads of a team share: counts of values, in as many parts as keep threads from waiting for one another; sums; or some lines.
union picture_memory {
  static constexpr std::uint32_t parts = 8;
  static constexpr std::uint32_t sum_count = 256;
  static constexpr std::uint32_t line_bytes = parts * program_tables_bytes * 4;

  std::uint32_t counts[parts][3][256];
  std::uint32_t sums[sum_count];
  std::uint8_t lines[line_bytes];
};

/// One row. All but `from` is of this row alone.
///   from       u8 [height, width, 3]
///   record     a copy of the host's, of `tables` bytes, and behind it program_tables_bytes for each autocontrast and equalize
///   bytes      of both
///   made       as `from`: the picture, where steps look at neighbours or warp it
///   between    [height, width, 3] of 16 bits, likewise
struct picture_work {
  const std::uint8_t* from;
  std::uint8_t* record;
  std::uint32_t tables;
  std::uint32_t bytes;
  std::uint8_t* made;
  std::uint16_t* between;
  std::uint32_t height;
  std::uint32_t width;
};

LEAT_OF_PICTURES void load_pixels(const std::uint8_t* from, std::uint32_t at, pixel (&to)[1]) {
  const std::uint8_t* const bytes = from + std::uint64_t{at} * 3;
  for (std::uint32_t c = 0; c < 3; ++c) to[0].c[c] = static_cast<float>(bytes[c]);
}
LEAT_OF_PICTURES void load_pixels(const std::uint8_t* from, std::uint32_t at, pixel (&to)[4]) {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(from) + std::uint64_t{at} / 4 * 3;
  LEAT_OF_PICTURES_UNROLLED
  for (std::uint32_t i = 0; i < 12; ++i) to[i / 3].c[i % 3] = static_cast<float>(words[i / 4] >> i % 4 * 8 & 0xFFU);
}
LEAT_OF_PICTURES void store_pixels(const pixel (&of)[1], std::uint8_t* to, std::uint32_t at) {
  std::uint8_t* const bytes = to + std::uint64_t{at} * 3;
  for (std::uint32_t c = 0; c < 3; ++c) bytes[c] = static_cast<std::uint8_t>(index_of(of[0].c[c]));
}
LEAT_OF_PICTURES void store_pixels(const pixel (&of)[4], std::uint8_t* to, std::uint32_t at) {
  auto* const words = reinterpret_cast<std::uint32_t*>(to) + std::uint64_t{at} / 4 * 3;
  LEAT_OF_PICTURES_UNROLLED
  for (std::uint32_t w = 0; w < 3; ++w) {
    std::uint32_t word = 0;
    LEAT_OF_PICTURES_UNROLLED
    for (std::uint32_t i = w * 4; i < w * 4 + 4; ++i) word |= index_of(of[i / 3].c[i % 3]) << i % 4 * 8;
    words[w] = word;
  }
}

/// Steps first .. end - 1 of all pixels. f(pixels, where the first is): four of them by words, or, where a picture's rows do not begin at
/// words, one.
template <class F>
LEAT_OF_PICTURES void for_pixels_after(const picture_work& work, const std::uint8_t* from, std::uint32_t first,
                                       std::uint32_t end, std::uint32_t thread, std::uint32_t threads, const F& f) {
  const std::uint32_t pixels = work.height * work.width;
  if (pixels % 4 == 0) {
    for (std::uint32_t i = thread * 4; i < pixels; i += threads * 4) {
      pixel all[4];
      load_pixels(from, i, all);
      run_steps(work.record, work.bytes, first, end, all);
      f(all, i);
    }
    return;
  }
  for (std::uint32_t i = thread; i < pixels; i += threads) {
    pixel all[1];
    load_pixels(from, i, all);
    run_steps(work.record, work.bytes, first, end, all);
    f(all, i);
  }
}

/// Where the mirror image of a line of `size` values has value i.
LEAT_OF_PICTURES std::uint32_t mirrored(std::int32_t i, std::uint32_t size) {
  const auto last = static_cast<std::int32_t>(size) - 1;
  return static_cast<std::uint32_t>(i < 0 ? -i : i > last ? 2 * last - i : i);
}

/// value * 255 / (most - least), truncated, as tables.cpp's autocontrast_curve().
LEAT_OF_PICTURES std::uint8_t stretched(std::int32_t value, std::int32_t least, std::int32_t most) {
  if (least >= most) return static_cast<std::uint8_t>(value);
  const float scale = times(static_cast<float>(most - least), static_cast<float>(1.0 / 255.0));
  return static_cast<std::uint8_t>(index_of(as_value(divided(static_cast<float>(value - least), scale))));
}

/// As tables.cpp's equalize_curve().
LEAT_OF_PICTURES std::uint8_t equalized(std::uint32_t value, const std::uint32_t* counts, std::uint64_t all) {
  std::uint64_t largest = 0;
  for (std::uint32_t v = 256; v > 0 && largest == 0; --v) largest = counts[v - 1];
  const std::uint64_t step = (all - largest) / 255;
  if (step == 0) return static_cast<std::uint8_t>(value);
  if (value == 0) return 0;
  std::uint64_t below = step / 2;
  for (std::uint32_t v = 0; v < value; ++v) below += counts[v];
  const std::uint64_t made = below / step;
  return static_cast<std::uint8_t>(made < 255 ? made : 255);
}

/// The table of step `number`, of what is counted in the first part, becomes part of the record.
template <class Team>
LEAT_OF_PICTURES void make_tables(Team& team, picture_memory* memory, const picture_work& work, std::uint32_t number,
                                  std::uint32_t at) {
  const bool equalizes = step_of(work.record, number).what == step_kind::equalize;
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    for (std::uint32_t i = thread; i < program_tables_bytes; i += threads) {
      const std::uint32_t* const counts = memory->counts[0][i / 256];
      const std::uint32_t value = i % 256;
      std::uint8_t made = 0;
      if (equalizes) {
        made = equalized(value, counts, std::uint64_t{work.height} * work.width);
      } else {
        std::int32_t least = 0;
        std::int32_t most = 255;
        while (least < 255 && counts[least] == 0) ++least;
        while (most > 0 && counts[most] == 0) --most;
        // Values that do not occur are nobody's.
        made = stretched(static_cast<std::int32_t>(value), least, most);
      }
      work.record[at + i] = made;
    }
  });
  team.barrier();
  team.run([=](std::uint32_t thread, std::uint32_t) {
    if (thread != 0) return;
    auto& step = reinterpret_cast<program_step*>(work.record + program_head_bytes)[number];
    step = {.what = step_kind::map, .number = 0, .apart = 256, .at = at, .a = 0, .b = 0};
  });
  team.barrier();
}

template <class Team>
LEAT_OF_PICTURES void count_values(Team& team, picture_memory* memory, const picture_work& work,
                                   const std::uint8_t* from, std::uint32_t first, std::uint32_t end) {
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    for (std::uint32_t i = thread; i < picture_memory::parts * program_tables_bytes; i += threads) {
      (&memory->counts[0][0][0])[i] = 0;
    }
  });
  team.barrier();
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    auto& counts = memory->counts[thread / 32 % picture_memory::parts];
    for_pixels_after(work, from, first, end, thread, threads, [&](const auto& all, std::uint32_t) {
      for (const pixel& of : all) {
        for (std::uint32_t c = 0; c < 3; ++c) Team::add(&counts[c][index_of(of.c[c])], 1U);
      }
    });
  });
  team.barrier();
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    for (std::uint32_t i = thread; i < program_tables_bytes; i += threads) {
      std::uint32_t* const all = &memory->counts[0][0][0] + i;
      for (std::uint32_t part = 1; part < picture_memory::parts; ++part) *all += all[part * program_tables_bytes];
    }
  });
  team.barrier();
}

/// Contrast, once the mean is known, is a scale.
template <class Team>
LEAT_OF_PICTURES void measure_grey(Team& team, picture_memory* memory, const picture_work& work,
                                   const std::uint8_t* from, std::uint32_t first, std::uint32_t number) {
  constexpr std::uint32_t share = 1U << 20;
  const std::uint32_t pixels = work.height * work.width;
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    for (std::uint32_t i = thread; i < picture_memory::sum_count; i += threads) memory->sums[i] = 0;
  });
  team.barrier();
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    // After so many pixels, of which a sum of 32 bits holds more, it is another one's turn: also where one thread has all.
    std::uint32_t sum = 0;
    std::uint32_t count = 0;
    std::uint32_t slot = thread;
    for_pixels_after(work, from, first, number, thread, threads, [&](const auto& all, std::uint32_t) {
      for (const pixel& of : all) {
        sum += index_of(floor_of_grey(of));
        ++count;
      }
      if (count < share) return;
      Team::add(&memory->sums[slot++ % picture_memory::sum_count], sum);
      sum = count = 0;
    });
    Team::add(&memory->sums[slot % picture_memory::sum_count], sum);
  });
  team.barrier();
  team.run([=](std::uint32_t thread, std::uint32_t) {
    if (thread != 0) return;
    auto& step = reinterpret_cast<program_step*>(work.record + program_head_bytes)[number];
    std::uint64_t sum = 0;
    for (const std::uint32_t each : memory->sums) sum += each;
    const auto mean = static_cast<float>(static_cast<double>(sum) / static_cast<double>(pixels));
    step.what = step_kind::scale;
    step.b = times(mean, step.b);
  });
  team.barrier();
}

/// The steps before it, to where it can read their pixels.
template <class Team>
LEAT_OF_PICTURES void move_pixels(Team& team, const picture_work& work, const std::uint8_t* from, std::uint32_t first,
                                  std::uint32_t end, std::uint8_t* to) {
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    for_pixels_after(work, from, first, end, thread, threads,
                     [&](const auto& all, std::uint32_t at) { store_pixels(all, to, at); });
  });
  team.barrier();
}

/// Of a blur: as the record has them.
struct blur_weight {
  std::int32_t across;
  std::int32_t down;
};

/// Four sums beside one another, of which a value `apart` from the first has part in each: weights move along with it.
class four_weights {
 public:
  LEAT_OF_PICTURES void move_to(std::int32_t next) {
    w_[3] = w_[2];
    w_[2] = w_[1];
    w_[1] = w_[0];
    w_[0] = next;
  }
  LEAT_OF_PICTURES void add(std::int32_t value, std::int32_t (&sums)[4]) const {
    LEAT_OF_PICTURES_UNROLLED
    for (std::uint32_t o = 0; o < 4; ++o) {
      // A damaged record's weights may be any.
      const std::uint32_t part = static_cast<std::uint32_t>(value) * static_cast<std::uint32_t>(w_[o]);
      sums[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[o]) + part);
    }
  }

 private:
  std::int32_t w_[4] = {0, 0, 0, 0};
};

/// Lines of which some lie in the memory that all share, and their mirror images on both sides.
///   pixels   of a line that are there at a time, a multiple of 4 but for the last
///   lines    at a time
struct blurred_lines {
  std::uint32_t pixels;
  std::uint32_t lines;
  std::uint32_t bytes;  // of each

  LEAT_OF_PICTURES blurred_lines(std::uint32_t width, std::uint32_t radius) {
    constexpr std::uint32_t pixels_max = 2048;
    pixels = width < pixels_max ? width : pixels_max;
    bytes = (pixels + 2 * radius) * 3;
    lines = picture_memory::line_bytes / bytes;
  }
};

// pixels/colour/kernels.cpp: blur_across. A thread has four pixels beside one another. Behind them, and on the rim, weights are 0.
template <class Team>
LEAT_OF_PICTURES void blur_across(Team& team, picture_memory* memory, const picture_work& work,
                                  const std::uint8_t* from, const blur_weight* weights, std::int32_t radius) {
  const blurred_lines part(work.width, static_cast<std::uint32_t>(radius));
  const std::uint32_t elements = work.width * 3;
  for (std::uint32_t first_y = 0; first_y < work.height; first_y += part.lines) {
    const std::uint32_t lines = work.height - first_y < part.lines ? work.height - first_y : part.lines;
    for (std::uint32_t first_x = 0; first_x < work.width; first_x += part.pixels) {
      const std::uint32_t pixels = work.width - first_x < part.pixels ? work.width - first_x : part.pixels;
      team.run([=](std::uint32_t thread, std::uint32_t threads) {
        const std::uint32_t columns = pixels + 2 * static_cast<std::uint32_t>(radius);
        for (std::uint32_t i = thread; i < lines * columns; i += threads) {
          const std::uint32_t line = i / columns;
          const std::uint32_t column = i - line * columns;
          const std::uint32_t x = mirrored(static_cast<std::int32_t>(first_x + column) - radius, work.width);
          const std::uint8_t* const of = from + std::uint64_t{first_y + line} * elements + x * 3;
          std::uint8_t* const to = memory->lines + line * part.bytes + column * 3;
          for (std::uint32_t c = 0; c < 3; ++c) to[c] = of[c];
        }
      });
      team.barrier();
      team.run([=](std::uint32_t thread, std::uint32_t threads) {
        const std::uint32_t runs = (pixels + 3) / 4;
        for (std::uint32_t i = thread; i < lines * runs; i += threads) {
          const std::uint32_t line = i / runs;
          const std::uint32_t x = (i - line * runs) * 4;
          const std::int32_t count = static_cast<std::int32_t>(pixels - x < 4 ? pixels - x : 4);
          const std::uint8_t* of = memory->lines + line * part.bytes + x * 3;
          std::int32_t sums[3][4] = {};
          four_weights beside;
          const auto add = [&](std::int32_t weight) {
            beside.move_to(weight);
            LEAT_OF_PICTURES_UNROLLED
            for (std::uint32_t c = 0; c < 3; ++c) beside.add(of[c], sums[c]);
            of += 3;
          };
          for (std::int32_t d = radius; d > 0; --d) add(weights[d].across);
          for (std::int32_t d = 0; d <= radius; ++d) add(weights[d].across);
          for (std::int32_t d = 1; d < count; ++d) add(0);
          std::uint16_t* const to = work.between + std::uint64_t{first_y + line} * elements + (first_x + x) * 3;
          LEAT_OF_PICTURES_UNROLLED
          for (std::int32_t o = 0; o < 4; ++o) {
            if (o >= count) continue;
            LEAT_OF_PICTURES_UNROLLED
            for (std::int32_t c = 0; c < 3; ++c) to[o * 3 + c] = static_cast<std::uint16_t>((sums[c][o] + 128) >> 8);
          }
        }
      });
      team.barrier();
    }
  }
}

// pixels/colour/kernels.cpp: blur_down. A thread has four lines of one element.
template <class Team>
LEAT_OF_PICTURES void blur_down(Team& team, const picture_work& work, const blur_weight* weights, std::int32_t radius) {
  const std::uint32_t elements = work.width * 3;
  const std::uint32_t runs = (work.height + 3) / 4;
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    for (std::uint32_t i = thread; i < runs * elements; i += threads) {
      const std::uint32_t run = i / elements;
      const std::uint32_t element = i - run * elements;
      const std::uint32_t y = run * 4;
      const std::int32_t count = static_cast<std::int32_t>(work.height - y < 4 ? work.height - y : 4);
      std::int32_t sums[4] = {1 << 22, 1 << 22, 1 << 22, 1 << 22};
      four_weights below;
      const auto first = static_cast<std::int32_t>(y) - radius;
      const std::int32_t end = static_cast<std::int32_t>(y) + count + radius;
      const std::uint16_t* const column = work.between + element;
      if (first >= 0 && end <= static_cast<std::int32_t>(work.height)) {
        const std::uint16_t* of = column + static_cast<std::uint32_t>(first) * elements;
        const auto add = [&](std::int32_t weight) {
          below.move_to(weight);
          below.add(*of, sums);
          of += elements;
        };
        for (std::int32_t d = radius; d > 0; --d) add(weights[d].down);
        for (std::int32_t d = 0; d <= radius; ++d) add(weights[d].down);
        for (std::int32_t d = 1; d < count; ++d) add(0);
      } else {
        for (std::int32_t d = -radius; d < count + radius; ++d) {
          below.move_to(d <= radius ? weights[d < 0 ? -d : d].down : 0);
          below.add(column[mirrored(static_cast<std::int32_t>(y) + d, work.height) * elements], sums);
        }
      }
      LEAT_OF_PICTURES_UNROLLED
      for (std::int32_t o = 0; o < 4; ++o) {
        if (o >= count) continue;
        const std::int32_t value = sums[o] >> 23;
        work.made[std::uint64_t{y + static_cast<std::uint32_t>(o)} * elements + element] =
            static_cast<std::uint8_t>(value < 0     ? 0
                                      : value > 255 ? 255
                                                    : value);
      }
    }
  });
  team.barrier();
}

template <class Team>
LEAT_OF_PICTURES void blur(Team& team, picture_memory* memory, const picture_work& work, const std::uint8_t* from,
                           const program_step& step) {
  const auto* const weights = reinterpret_cast<const blur_weight*>(work.record + step.at);
  blur_across(team, memory, work, from, weights, step.number);
  blur_down(team, work, weights, step.number);
}

// pixels/colour/kernels.cpp: sharpen_inner. Pixels on the rim stay as they are.
template <class Team>
LEAT_OF_PICTURES void sharpen(Team& team, const picture_work& work, const std::uint8_t* from, float rest) {
  const std::uint32_t elements = work.width * 3;
  const std::uint32_t count = work.height * elements;
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    for (std::uint32_t i = thread; i < count; i += threads) {
      const std::uint32_t y = i / elements;
      const std::uint32_t x = (i - y * elements) / 3;
      const std::int32_t own = from[i];
      if (y == 0 || y + 1 == work.height || x == 0 || x + 1 == work.width) {
        work.made[i] = static_cast<std::uint8_t>(own);
        continue;
      }
      const std::uint8_t* const up = from + i - elements;
      const std::uint8_t* const at = from + i;
      const std::uint8_t* const down = from + i + elements;
      std::int32_t sum = up[-3] + up[0] + up[3] + down[-3] + down[0] + down[3] + at[-3] + at[3] + 5 * own;
      sum = ((sum + 6) * 5042) >> 16;  // / 13
      work.made[i] = static_cast<std::uint8_t>(
          index_of(as_value(plus(static_cast<float>(own), times(static_cast<float>(sum - own), rest)))));
    }
  });
  team.barrier();
}

/// All steps up to the last that looks at the picture. What is left is of pixels by themselves.
template <class Team>
LEAT_OF_PICTURES void prepare_picture(Team& team, picture_memory* memory, const picture_work& work) {
  const auto* const program = reinterpret_cast<const picture_program*>(work.record);
  const std::uint32_t count = step_count_of(*program, work.tables);
  const std::uint8_t* from = work.from;
  std::uint32_t first = 0;
  std::uint32_t done = 0;
  std::uint32_t tables = work.tables;
  for (std::uint32_t number = 0; number < count; ++number) {
    const program_step step = step_of(work.record, number);
    if (!is_inside(step, work.bytes)) continue;
    switch (step.what) {
      case step_kind::contrast:
        measure_grey(team, memory, work, from, first, number);
        break;
      case step_kind::autocontrast:
      case step_kind::equalize:
        if (work.bytes - tables < program_tables_bytes) break;
        count_values(team, memory, work, from, first, number);
        make_tables(team, memory, work, number, tables);
        tables += program_tables_bytes;
        break;
      case step_kind::blur:
      case step_kind::sharpen:
      case step_kind::warp: {
        if (work.made == nullptr) break;
        if (step.number >= work.height || step.number >= work.width) break;  // The mirror image has no more.
        const bool blurs = step.what == step_kind::blur;
        // A blur reads all before it writes; what is sharpened or warped lies elsewhere.
        std::uint8_t* const room = blurs ? work.made : reinterpret_cast<std::uint8_t*>(work.between);
        if (first != number || (!blurs && from == work.made)) {
          move_pixels(team, work, from, first, number, room);
          from = room;
        }
        if (blurs) {
          blur(team, memory, work, from, step);
        } else if (step.what == step_kind::warp) {
          const auto* const how = reinterpret_cast<const program_warp*>(work.record + step.at);
          look_up_pixels(team, from, work.height, work.width, how, work.made);
        } else {
          sharpen(team, work, from, step.b);
        }
        from = work.made;
        done = first = number + 1;
        break;
      }
      default:
        break;
    }
  }
  team.run([=](std::uint32_t thread, std::uint32_t) {
    if (thread != 0) return;
    auto* const result = reinterpret_cast<picture_program*>(work.record);
    result->first = static_cast<std::uint8_t>(done);
    result->moved = done != 0 ? 1 : 0;
  });
}

template <class Team>
LEAT_OF_PICTURES void prepare_row(Team& team, picture_memory* memory, const picture_preparation& pictures,
                                  std::uint32_t row) {
  const std::uint64_t elements = std::uint64_t{pictures.height} * pictures.width * 3;
  const picture_work work{.from = pictures.from + row * elements,
                          .record = pictures.records + std::uint64_t{row} * pictures.record_bytes,
                          .tables = pictures.program_bytes,
                          .bytes = pictures.record_bytes,
                          .made = pictures.made == nullptr ? nullptr : pictures.made + row * elements,
                          .between = pictures.between == nullptr ? nullptr : pictures.between + row * elements,
                          .height = pictures.height,
                          .width = pictures.width};
  const std::uint8_t* const program = pictures.programs + std::uint64_t{row} * pictures.program_bytes;
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    const auto* const from = reinterpret_cast<const std::uint32_t*>(program);
    auto* const to = reinterpret_cast<std::uint32_t*>(work.record);
    for (std::uint32_t i = thread; i < work.tables / 4; i += threads) to[i] = from[i];
  });
  team.barrier();
  prepare_picture(team, memory, work);
  const auto* const head = reinterpret_cast<const picture_program*>(program);
  if (pictures.noise != nullptr && head->erases == 2) {
    make_noise(team, head, pictures.noise + std::uint64_t{row} * pictures.noise_values, pictures.noise_values);
  }
}

}  // namespace leat::stages::picture_threads
