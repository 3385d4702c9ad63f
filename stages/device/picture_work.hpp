// The steps of picture_program.hpp that look at the whole picture, by a team of threads that meet at barriers. Compiled by nvcc for the
// device, and by the host's compiler as its twin. The same bits as pixels/colour makes; sums are of integers.
//
//   Team   run(f): f(thread, threads) for each thread. barrier(): what threads wrote before it is seen behind it. add(to, what): to a number of
//          the memory that all share
#pragma once

#include "stages/device/picture_threads.hpp"
#include "stages/device/prepare_pictures.hpp"

#include <cstdint>

namespace leat::stages::picture_threads {

/// Counts of values, in as many parts as keep threads from waiting for one another; or sums.
struct picture_memory {
  static constexpr std::uint32_t parts = 8;
  static constexpr std::uint32_t sum_count = 256;

  std::uint32_t counts[parts][3][256];
  std::uint32_t sums[sum_count];
};

/// One row. All but `from` is of this row alone.
///   from       u8 [height, width, 3]
///   record     a copy of the host's, of `tables` bytes, and behind it program_tables_bytes for each autocontrast and equalize
///   bytes      of both
///   made       as `from`: the picture, where steps look at neighbours
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

LEAT_OF_PICTURES pixel load_pixel(const std::uint8_t* from, std::uint32_t at) {
  const std::uint8_t* const bytes = from + std::uint64_t{at} * 3;
  return {{bytes[0], bytes[1], bytes[2]}};
}
LEAT_OF_PICTURES void store_pixel(const pixel& of, std::uint8_t* to, std::uint32_t at) {
  std::uint8_t* const bytes = to + std::uint64_t{at} * 3;
  for (std::uint32_t c = 0; c < 3; ++c) bytes[c] = static_cast<std::uint8_t>(of.c[c]);
}
LEAT_OF_PICTURES pixel pixel_after(const picture_work& work, const std::uint8_t* from, std::uint32_t at,
                                   std::uint32_t first, std::uint32_t end) {
  pixel all[1] = {load_pixel(from, at)};
  run_steps(work.record, work.bytes, first, end, all);
  return all[0];
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
  return static_cast<std::uint8_t>(as_value(divided(static_cast<float>(value - least), scale)));
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
  const std::uint32_t pixels = work.height * work.width;
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    for (std::uint32_t i = thread; i < picture_memory::parts * program_tables_bytes; i += threads) {
      (&memory->counts[0][0][0])[i] = 0;
    }
  });
  team.barrier();
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    auto& counts = memory->counts[thread / 32 % picture_memory::parts];
    for (std::uint32_t i = thread; i < pixels; i += threads) {
      const pixel of = pixel_after(work, from, i, first, end);
      for (std::uint32_t c = 0; c < 3; ++c) Team::add(&counts[c][of.c[c]], 1U);
    }
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
    // Shares of so few pixels that a sum of 32 bits holds them, also where one thread has all: picture_elements_max.
    for (std::uint32_t begin = thread; begin < pixels; begin += threads * share) {
      std::uint32_t sum = 0;
      const std::uint32_t end = pixels - begin < threads * share ? pixels : begin + threads * share;
      for (std::uint32_t i = begin; i < end; i += threads) {
        sum += static_cast<std::uint32_t>(floor_of_grey(pixel_after(work, from, i, first, number)));
      }
      Team::add(&memory->sums[(thread + begin / (threads * share)) % picture_memory::sum_count], sum);
    }
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
  const std::uint32_t pixels = work.height * work.width;
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    for (std::uint32_t i = thread; i < pixels; i += threads) store_pixel(pixel_after(work, from, i, first, end), to, i);
  });
  team.barrier();
}

// pixels/colour/kernels.cpp: blur_across, blur_down. Sums are of integers there, too.
template <class Team>
LEAT_OF_PICTURES void blur(Team& team, const picture_work& work, const std::uint8_t* from, const program_step& step) {
  struct weight {
    float across;
    std::int32_t down;
  };
  const std::uint8_t* const record = work.record;
  const std::uint32_t elements = work.width * 3;
  const std::uint32_t count = work.height * elements;
  const std::int32_t radius = step.number;
  const std::uint32_t at = step.at;
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    const auto* const weights = reinterpret_cast<const weight*>(record + at);
    for (std::uint32_t i = thread; i < count; i += threads) {
      const std::uint32_t y = i / elements;
      const std::uint32_t in_line = i - y * elements;
      const auto x = static_cast<std::int32_t>(in_line / 3);
      const std::uint32_t c = in_line - static_cast<std::uint32_t>(x) * 3;
      const std::uint8_t* const line = from + std::uint64_t{y} * elements + c;
      std::int32_t sum = line[x * 3] * static_cast<std::int32_t>(weights[0].across);
      for (std::int32_t j = 1; j <= radius; ++j) {
        const std::int32_t both = line[mirrored(x - j, work.width) * 3] + line[mirrored(x + j, work.width) * 3];
        sum += both * static_cast<std::int32_t>(weights[j].across);
      }
      work.between[i] = static_cast<std::uint16_t>((sum + 128) >> 8);
    }
  });
  team.barrier();
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    const auto* const weights = reinterpret_cast<const weight*>(record + at);
    for (std::uint32_t i = thread; i < count; i += threads) {
      const auto y = static_cast<std::int32_t>(i / elements);
      const std::uint16_t* const column = work.between + (i - static_cast<std::uint32_t>(y) * elements);
      std::int32_t sum = (1 << 22) + work.between[i] * weights[0].down;
      for (std::int32_t j = 1; j <= radius; ++j) {
        const std::int32_t both = column[std::uint64_t{mirrored(y - j, work.height)} * elements] +
                                  column[std::uint64_t{mirrored(y + j, work.height)} * elements];
        sum += both * weights[j].down;
      }
      work.made[i] = static_cast<std::uint8_t>(clamped(sum >> 23));
    }
  });
  team.barrier();
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
          as_value(plus(static_cast<float>(own), times(static_cast<float>(sum - own), rest))));
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
      case step_kind::sharpen: {
        if (work.made == nullptr) break;
        if (step.number >= work.height || step.number >= work.width) break;  // The mirror image has no more.
        const bool blurs = step.what == step_kind::blur;
        // A blur reads all before it writes; what is sharpened lies elsewhere.
        std::uint8_t* const room = blurs ? work.made : reinterpret_cast<std::uint8_t*>(work.between);
        if (first != number || (!blurs && from == work.made)) {
          move_pixels(team, work, from, first, number, room);
          from = room;
        }
        if (blurs) {
          blur(team, work, from, step);
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
}

}  // namespace leat::stages::picture_threads
