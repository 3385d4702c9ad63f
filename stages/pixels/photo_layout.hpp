// How libjpeg-turbo would make pixels of a photo pack: sizes of samples and blocks, its ways of upsampling, tables. For decoders beside it.
#pragma once

#include "stages/pixels/photo_pack_layout.hpp"

#include <array>
#include <cstdint>

namespace leat::pixels {

/// How a component's samples become the picture's, as jdsample.c chooses it.
enum class upsampling_kind : std::uint8_t { replicated, h2v1_fancy, h2v2_fancy, h1v2_fancy };

/// Of one decimation.
///   width, height           of the picture, decimated
///   mcu_width, mcu_height   pixels of an MCU, decimated
///   group_lines             lines of the picture that libjpeg-turbo makes at a time, decimated; behind the last of a row of MCUs it reads on
///   rows_together           rows of MCUs that it reads at a time
///   is_ycbcr                three components that have to be converted; otherwise they are RGB, or one is grey
struct photo_layout {
  /// In samples.
  ///   across, down        blocks in an MCU
  ///   side                of a transformed block: 8, 4, 2, 1
  ///   expand_x, expand_y  pixels that a sample is replicated to
  ///   quantisation        in natural order
  struct component {
    int across = 1;
    int down = 1;
    int side = 8;
    int width = 0;
    int height = 0;
    upsampling_kind how = upsampling_kind::replicated;
    int expand_x = 1;
    int expand_y = 1;
    std::array<std::uint16_t, 64> quantisation = {};
  };

  photo_pack_view pack;
  int width = 0;
  int height = 0;
  int mcu_width = 8;
  int mcu_height = 8;
  int group_lines = 1;
  int rows_together = 1;
  int component_count = 0;
  bool is_ycbcr = false;
  std::array<component, 3> components;
};

}  // namespace leat::pixels
