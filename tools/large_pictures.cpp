#include "tools/large_pictures.hpp"

#include "base/cores_quota.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/read_part.hpp"
#include "stages/pixels/picture_format.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace leat::tools {
namespace {

// Of a JPEG, a photo pack or a BMP: the least that a file has for so much memory is a bit for each block of 128 bytes
// (jpeg_claims).
// An interlaced PNG, a WebP or a GIF can take any memory in a few bytes.
constexpr std::size_t memory_of_byte_max = 1024;

// No format takes more for a pixel: 8 bytes of coefficients, of 16 bits a channel, or 4.75 beside the region's 3; and
// lines.
constexpr std::size_t memory_of_pixel_max = 12;

// Headers are in front: nearly always in so many bytes.
constexpr std::uint64_t beginning_bytes = std::uint64_t{64} << 10;

// Files that are looked at together.
constexpr std::size_t files_together = 64;

// At addresses, where each look is a request, so many of the largest.
constexpr std::size_t requests_max = 200;

struct candidate {
  std::uint64_t sample;
  std::uint64_t stored_bytes;
  std::uint16_t field;
};

std::vector<candidate> candidates_of(const dataset& samples) {
  const datasets::dataset_model& model = *samples.model();
  std::vector<candidate> found;
  datasets::part_list parts;
  bool is_near = true;
  for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
    parts.clear();
    model.parts(sample, parts);
    for (const datasets::part& each : parts) {
      if (each.is_made() || model.fields()[each.field].kind != field_kind::picture) continue;
      found.push_back({sample, each.where.stored_bytes, each.field});
      is_near = is_near && model.sources()[each.where.source]->is_read_by_the_loop();
    }
  }
  if (is_near || found.size() <= requests_max) return found;
  std::nth_element(found.begin(), found.begin() + requests_max, found.end(),
                   [](const candidate& a, const candidate& b) { return b.stored_bytes < a.stored_bytes; });
  found.resize(requests_max);
  return found;
}

// What one thread needs.
class measuring {
 public:
  measuring(const dataset& samples, std::size_t host_bytes_max)
      : samples_(samples),
        sample_bytes_max_(pixels::scratch_budget::sample_bytes_max(host_bytes_max)),
        check_(host_bytes_max) {}

  // Adds those of the candidates that take too much.
  void look_at(std::span<const candidate> candidates, std::vector<large_picture>& found) {
    for (const candidate& each : not_cleared(candidates)) {
      try {
        if (const std::optional<std::size_t> bytes = over(each)) {
          found.push_back({each.sample, samples_.name(each.sample), *bytes});
        }
      } catch (const error&) {
        // A sample that cannot be read is reported by who loads it.
      }
    }
  }

 private:
  // The others are cleared by their size and format.
  std::vector<candidate> not_cleared(std::span<const candidate> candidates) {
    struct beginning {
      candidate of;
      datasets::part where;
      std::vector<std::byte> bytes;
    };
    std::vector<candidate> left;
    std::map<std::uint32_t, std::vector<beginning>> small;  // by source
    for (const candidate& each : candidates) {
      const datasets::part where = part_of(each);
      if (where.form != datasets::part_form::stored || each.stored_bytes >= sample_bytes_max_ / memory_of_byte_max) {
        left.push_back(each);
      } else if (each.stored_bytes > 0) {
        const auto bytes = std::min<std::uint64_t>(each.stored_bytes, pixels::format_bytes);
        small[where.where.source].push_back({each, where, std::vector<std::byte>(bytes)});
      }
    }
    for (auto& [source, all] : small) {
      std::vector<datasets::blocking_source::request> requests;
      for (beginning& each : all) requests.push_back({each.where.where.file, each.where.where.offset, each.bytes});
      datasets::blocking_source& from = sources_.of(*samples_.model()->sources()[source]);
      try {
        from.read(requests);
      } catch (const error&) {  // Which one it was is not told.
        for (const beginning& each : all) left.push_back(each.of);
        continue;
      }
      for (const beginning& each : all) {
        if (may_be_all_memory(pixels::format_of(each.bytes))) left.push_back(each.of);
      }
    }
    return left;
  }

  static bool may_be_all_memory(pixels::format what) noexcept {
    return pixels::is_read(what) && what != pixels::format::jpeg && what != pixels::format::photo_pack &&
           what != pixels::format::bmp;
  }

  datasets::part part_of(const candidate& each) {
    parts_.clear();
    samples_.model()->parts(each.sample, parts_);
    return *std::find_if(parts_.begin(), parts_.end(),
                         [&](const datasets::part& part) { return part.field == each.field; });
  }

  // The memory that it takes, where that is too much.
  std::optional<std::size_t> over(const candidate& each) {
    if (part_of(each).form == datasets::part_form::stored && each.stored_bytes > beginning_bytes) {
      datasets::part beginning = part_of(each);
      beginning.where.stored_bytes = beginning.where.decoded_bytes = beginning_bytes;
      if (is_cleared(read(each.sample, beginning))) return std::nullopt;
    }
    const std::span<const std::byte> whole = read_field(each);
    const stages::outcome<std::size_t> bytes = check_.bytes_of(whole);
    if (!bytes || *bytes <= sample_bytes_max_) return std::nullopt;
    // A progressive JPEG may do with less.
    if (check_.decode_whole(whole).kind() != stages::outcome_kind::over_budget) return std::nullopt;
    return *bytes;
  }

  [[nodiscard]] bool is_cleared(std::span<const std::byte> beginning) {
    const auto info = pixels::peek(beginning, pixels::look_for::size);
    if (!info) return false;
    const auto pixels = static_cast<std::size_t>(info->width) * static_cast<std::size_t>(info->height);
    if (pixels <= sample_bytes_max_ / memory_of_pixel_max) return true;
    if (info->what != pixels::format::jpeg) return false;
    const stages::outcome<std::size_t> bytes = check_.bytes_of(beginning);
    return bytes && *bytes <= sample_bytes_max_;
  }

  std::span<const std::byte> read(std::uint64_t sample, const datasets::part& wanted) {
    bytes_.clear();
    datasets::append_part(*samples_.model(), sample, wanted, sources_, bytes_);
    return bytes_;
  }
  std::span<const std::byte> read_field(const candidate& each) {
    parts_.clear();
    samples_.model()->parts(each.sample, parts_);
    bytes_.clear();
    datasets::append_field(*samples_.model(), each.sample, each.field, {parts_.data(), parts_.size()}, sources_,
                           bytes_);
    return bytes_;
  }

  const dataset& samples_;
  const std::size_t sample_bytes_max_;
  picture_check check_;
  datasets::blocking_sources sources_{datasets::opening_loop::traffic::many};
  datasets::part_list parts_;
  std::vector<std::byte> bytes_;
};

}  // namespace

picture_check::picture_check(std::size_t host_bytes_max)
    : budget_(pixels::scratch_budget::sample_bytes_max(host_bytes_max) + pixels::scratch_arena::base_bytes,
              host_bytes_max),
      decoder_(budget_),
      steps_({transforms::resize{.height = 8, .width = 8}}),
      how_(pixels::store::from(dtype::u8, layout::nhwc, std::nullopt)),
      row_(how_.row_bytes(8, 8)) {}

stages::outcome<void> picture_check::decode_whole(std::span<const std::byte> encoded) {
  const auto decoded = decoder_.decode(encoded, steps_, {}, how_, {}, row_.data(), nullptr);
  if (!decoded) return decoded.error();
  return {};
}

stages::outcome<std::size_t> picture_check::bytes_of(std::span<const std::byte> encoded) {
  return decoder_.scratch_bytes_whole(encoded, {.accept_cut = true});
}

large_pictures find_large_pictures(const dataset& samples, std::size_t host_bytes_max, measuring_progress& so_far) {
  large_pictures found{.host_bytes_max = host_bytes_max, .looked_at = 0, .over = {}, .host_bytes_enough = 0};
  const std::vector<candidate> all = candidates_of(samples);
  const std::span<const candidate> candidates(all);
  so_far.pictures = candidates.size();
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  const std::size_t threads = std::min<std::size_t>(working_cores(), candidates.size() / files_together + 1);
  datasets::for_each_parallel(threads, static_cast<unsigned>(threads), [&](std::size_t) {
    measuring own(samples, host_bytes_max);
    std::vector<large_picture> large;
    for (std::size_t begin = 0; (begin = next.fetch_add(files_together)) < candidates.size();) {
      const std::size_t count = std::min(files_together, candidates.size() - begin);
      own.look_at(candidates.subspan(begin, count), large);
      so_far.measured += count;
    }
    const std::lock_guard lock(mutex);
    found.over.insert(found.over.end(), large.begin(), large.end());
  });
  found.looked_at = candidates.size();
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
