// dataset::where() stands here, since the stages know formats of pictures.
#include "stages/fields/where.hpp"

#include "base/hasher.hpp"
#include "datasets/views/where.hpp"
#include "stages/fields/kept_counts.hpp"
#include "stages/pixels/picture_info.hpp"

#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace {

stages::outcome<datasets::picture_size> size_in_begin(std::span<const std::byte> begin) {
  const pixels::outcome<pixels::picture_info> found = pixels::peek(begin, pixels::look_for::begin_size);
  if (!found) return found.error();
  return datasets::picture_size{static_cast<std::uint32_t>(found->width), static_cast<std::uint32_t>(found->height)};
}

datasets::measured_pictures measure(const datasets::dataset_model& model,
                                    std::span<const datasets::asked_picture> asked) {
  return datasets::measure_pictures(model, asked, size_in_begin);
}

// Sizes that were kept. What could not be read has none, and is read anew: it may be whole now, and else the reason is told.
datasets::measured_pictures measured_again(const datasets::dataset_model& model,
                                           std::span<const datasets::asked_picture> asked,
                                           std::span<const std::uint32_t> numbers) {
  datasets::measured_pictures found;
  std::vector<std::size_t> places;
  std::vector<datasets::asked_picture> open;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    found.sizes.push_back({numbers[2 * i], numbers[2 * i + 1]});
    if (found.sizes.back() != datasets::picture_size()) continue;
    places.push_back(i);
    open.push_back(asked[i]);
  }
  if (open.empty()) return found;
  datasets::measured_pictures again = measure(model, open);
  for (std::size_t i = 0; i < places.size(); ++i) found.sizes[places[i]] = again.sizes[i];
  found.unreadable = again.unreadable;
  found.first = places[again.first];
  found.why = std::move(again.why);
  return found;
}

}  // namespace

dataset dataset::where(std::string_view condition) const { return datasets::samples_where(*this, condition, measure); }

dataset stages::samples_where(const dataset& samples, std::string_view condition, const index_options& index) {
  const auto measure_once = [&](const datasets::dataset_model& model, std::span<const datasets::asked_picture> asked) {
    hasher how;
    how.add("sizes of pictures, 1");
    for (const datasets::asked_picture& each : asked) {
      how.add(each.sample);
      how.add(std::uint64_t{each.field});
    }
    std::optional<datasets::measured_pictures> measured;
    const auto find = [&] {
      measured = measure(model, asked);
      kept_numbers found;
      found.numbers.reserve(2 * asked.size());
      for (const datasets::picture_size& each : measured->sizes) {
        found.numbers.push_back(each.width);
        found.numbers.push_back(each.height);
      }
      return found;
    };
    const kept_numbers kept =
        keep_numbers(model, index, "sizes of pictures", how.finish(),
                     {.samples = asked.size(), .numbers = 2 * asked.size(), .asked = asked}, find);
    return measured ? *std::move(measured) : measured_again(model, asked, kept.numbers);
  };
  return datasets::samples_where(samples, condition, measure_once);
}

}  // namespace leat
