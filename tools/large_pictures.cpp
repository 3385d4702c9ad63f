#include "tools/large_pictures.hpp"

#include "datasets/model.hpp"
#include "stages/pixels/picture_decoder.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

namespace leat::tools {
namespace {

// So many files, and bytes of them, are read: a second or two.
constexpr std::size_t looks_max = 200;
constexpr std::uint64_t bytes_read_max = std::uint64_t{1} << 30;

// The least that a file has for so much memory: a bit for each block of 128 bytes of a progressive JPEG, and as little of
// an interlaced PNG (jpeg_claims, png_data).
constexpr std::size_t memory_of_byte_max = 1024;

struct candidate {
  std::uint64_t stored_bytes;
  std::uint64_t sample;
  std::uint16_t field;
};

std::vector<candidate> candidates_of(const dataset& samples, std::size_t sample_bytes_max) {
  const datasets::dataset_model& model = *samples.model();
  std::vector<candidate> found;
  datasets::part_list parts;
  for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
    parts.clear();
    model.parts(sample, parts);
    for (const datasets::part& each : parts) {
      if (model.fields()[each.field].kind != field_kind::picture) continue;
      if (each.where.stored_bytes >= sample_bytes_max / memory_of_byte_max) {
        found.push_back({each.where.stored_bytes, sample, each.field});
      }
    }
  }
  const auto larger = [](const candidate& a, const candidate& b) {
    return std::tie(b.stored_bytes, a.sample, a.field) < std::tie(a.stored_bytes, b.sample, b.field);
  };
  const std::size_t looks = std::min(looks_max, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(looks), found.end(), larger);
  found.resize(looks);
  return found;
}

bool is_over(std::span<const std::byte> encoded, std::size_t host_bytes_max) {
  const std::size_t most = pixels::scratch_budget::sample_bytes_max(host_bytes_max);
  pixels::scratch_budget budget(most + pixels::scratch_arena::base_bytes, host_bytes_max);
  pixels::picture_decoder decoder(budget);
  const pixels::pipeline steps({transforms::resize{.height = 8, .width = 8}});
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  std::vector<std::byte> row(how.row_bytes(8, 8));
  return decoder.decode(encoded, steps, {}, how, {}, row.data(), nullptr).kind() == stages::outcome_kind::over_budget;
}

}  // namespace

large_pictures find_large_pictures(const dataset& samples, std::size_t host_bytes_max, measuring_progress& so_far) {
  large_pictures found{.host_bytes_max = host_bytes_max, .looked_at = 0, .over = {}, .host_bytes_enough = 0};
  const std::size_t most = pixels::scratch_budget::sample_bytes_max(host_bytes_max);
  pixels::scratch_budget for_headers(pixels::scratch_arena::base_bytes);
  pixels::picture_decoder measuring(for_headers);
  std::uint64_t bytes_read = 0;
  const std::vector<candidate> candidates = candidates_of(samples, most);
  so_far.pictures = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    so_far.measured = i;
    const candidate& each = candidates[i];
    bytes_read += each.stored_bytes;
    if (bytes_read > bytes_read_max) break;
    try {
      const std::vector<std::byte> encoded = samples.read(each.sample, samples.model()->fields()[each.field].name);
      ++found.looked_at;
      const auto bytes = measuring.scratch_bytes_whole(encoded, {});
      if (!bytes || *bytes <= most || !is_over(encoded, host_bytes_max)) continue;
      found.over.push_back({each.sample, samples.name(each.sample), *bytes});
    } catch (const error&) {
      // A sample that cannot be read is reported by who loads it.
    }
  }
  std::sort(found.over.begin(), found.over.end(), [](const large_picture& a, const large_picture& b) {
    return std::tie(b.bytes, a.sample) < std::tie(a.bytes, b.sample);
  });
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  if (!found.over.empty()) {
    // A quarter is for one picture; a MiB more for what the rows besides take.
    found.host_bytes_enough = 4 * ((found.over.front().bytes + mebibyte - 1) / mebibyte + 1) * mebibyte;
  }
  return found;
}

}  // namespace leat::tools
