// Pictures that are no photographs and cost a decoder what photographs cost: textures, edges, shadows and a little noise,
// in the proportions in which photographs have them. Made from numbers alone, the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace leat::tools {

/// 8-bit RGB, rows from the top, no padding.
struct canvas {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> rgb;
};

/// What a class looks like and what it is called: "autumn", "coral", ..., "slate", then "autumn-2" and so on.
[[nodiscard]] std::string paint_class_name(std::uint32_t class_index);

/// Paints pictures. A picture is a function of (seed, class, index, width, height): the numbers are integers, or floats
/// that are only added, multiplied, divided and rooted, which IEEE 754 rounds in one way; no libm, no fused multiply-add.
///
/// A class prefers some colours, shapes and textures, so that it can be learnt, from its colours by a linear model too;
/// every picture has its own subset of them and foreign ones besides, so that it is not learnt at once.
///
///   source   the "dead leaves" model: photographs are objects that hide one another, whose sizes follow r^-3
///            (Lee, Mumford and Huang, "Occlusion models for natural images", IJCV 2001), and textures of 1/f noise
///            (Field, "Relations between the statistics of natural images", JOSA A 1987)
///
/// Thread: const calls from any number of threads, each with its own canvas and scratch.
class painter {
 public:
  /// Draws the textures: 20 ms, 1 MiB. `stop` is looked at between them.
  ///   throws   error{errc::cancelled} on stop
  explicit painter(const std::stop_token& stop = {});

  /// What paint() works in; keep it from picture to picture.
  struct scratch {
    std::vector<std::uint16_t> leaf_of_pixel;
    std::vector<std::uint8_t> light_of_pixel;
    std::vector<float> colour;
    std::vector<float> blurred;
  };

  /// Paints into `out`, whose width and height say how large; 5 ms for 500 x 400. `stop` is looked at
  /// between rows.
  ///   throws   error{errc::cancelled} on stop
  void paint(std::uint64_t seed, std::uint32_t class_index, std::uint32_t index, canvas& out, scratch& work,
             const std::stop_token& stop = {}) const;

 private:
  std::vector<std::vector<std::int16_t>> textures_;
  std::vector<std::int8_t> grain_;
};

/// One for the whole process, drawn at the first call: tests make many small sets, and in a debug build the textures take
/// longer than they do. A call that `stop` ended leaves it to the next.
[[nodiscard]] const painter& shared_painter(const std::stop_token& stop = {});

}  // namespace leat::tools
