// dataset::where() stands here, since the stages know formats of pictures.
#include "datasets/views/where.hpp"

#include "stages/pixels/picture_info.hpp"

#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace leat {
namespace {

stages::outcome<datasets::picture_size> size_in_begin(std::span<const std::byte> begin) {
  const pixels::outcome<pixels::picture_info> found = pixels::peek(begin, pixels::look_for::begin_size);
  if (!found) return found.error();
  return datasets::picture_size{static_cast<std::uint32_t>(found->width), static_cast<std::uint32_t>(found->height)};
}

}  // namespace

dataset dataset::where(std::string_view condition) const {
  return datasets::samples_where(*this, condition, size_in_begin);
}

}  // namespace leat
