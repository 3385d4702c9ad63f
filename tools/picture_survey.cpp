#include "tools/picture_survey.hpp"

#include "datasets/files/blocking_source.hpp"
#include "datasets/model/model.hpp"
#include "stages/pixels/png_reader.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using datasets::blocking_source;

// Each picture that lies packed costs the expansion of all that is packed with it.
constexpr std::uint64_t packed_samples_max = 32;

// Reads that are waited for together.
constexpr std::size_t reads_together = 64;

// Of a PNG: 16 bits of grey, with or without alpha (W3C PNG, section 11.2.1).
bool is_deep_grey(std::span<const std::byte> png) noexcept {
  return png.size() > 25 && png[24] == std::byte{16} && (png[25] == std::byte{0} || png[25] == std::byte{4});
}

/// Beginnings of files, collected and then read together.
class beginnings {
 public:
  beginnings(const datasets::dataset_model& model, picture_survey& found) : model_(model), found_(found) {}

  void add(const extent& where) {
    const std::uint64_t bytes = std::min<std::uint64_t>(where.stored_bytes, pixels::format_bytes);
    std::vector<wanted>& of_source = wanted_[where.source];
    of_source.push_back({where.file, where.offset, std::vector<std::byte>(bytes)});
    if (of_source.size() == reads_together) look(where.source, of_source);
  }

  /// Counts one by its beginning.
  void add(std::span<const std::byte> beginning) {
    ++found_.looked_at;
    const pixels::format what = pixels::format_of(beginning);
    ++found_.count[static_cast<std::size_t>(what)];
    if (what != pixels::format::png) return;
    if (is_deep_grey(beginning)) ++found_.deep_grey;
    if (pixels::samples_of(beginning).is_palette) ++found_.palettes;
  }

  void look_at_the_rest() {
    for (auto& [source, of_source] : wanted_) look(source, of_source);
  }

 private:
  struct wanted {
    std::uint32_t file;
    std::uint64_t offset;
    std::vector<std::byte> bytes;
  };

  void look(std::uint32_t source, std::vector<wanted>& all) {
    std::vector<blocking_source::request> requests;
    for (wanted& each : all) requests.push_back({each.file, each.offset, each.bytes});
    blocking_source& from = sources_.of(*model_.sources()[source]);
    if (!read(from, requests)) {
      // Which one it was is not told: one after the other.
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (!read(from, {&requests[i], 1})) all[i].bytes.clear();
      }
    }
    for (const wanted& each : all) {
      if (!each.bytes.empty()) add(each.bytes);
    }
    all.clear();
  }

  static bool read(blocking_source& from, std::span<const blocking_source::request> requests) {
    try {
      from.read(requests);
      return true;
    } catch (const error&) {
      return false;
    }
  }

  const datasets::dataset_model& model_;
  picture_survey& found_;
  datasets::blocking_sources sources_{datasets::opening_loop::traffic::many};
  std::map<std::uint32_t, std::vector<wanted>> wanted_;
};

}  // namespace

std::uint64_t picture_survey::refused() const noexcept {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < count.size(); ++i) all += pixels::is_read(static_cast<pixels::format>(i)) ? 0 : count[i];
  return all;
}

picture_survey survey_pictures(const dataset& samples, std::uint64_t samples_max) {
  const datasets::dataset_model& model = *samples.model();
  picture_survey found;
  const std::span<const field_info> fields = model.fields();
  const auto is_picture = [](const field_info& each) { return each.kind == field_kind::picture; };
  if (std::none_of(fields.begin(), fields.end(), is_picture)) return found;
  beginnings looks(model, found);
  datasets::part_list parts;
  const auto is_packed = [&](const datasets::part& each) {
    return each.is_expanded() && is_picture(fields[each.field]);
  };
  if (samples.size() != 0) model.parts(0, parts);
  const bool any_packed = std::any_of(parts.begin(), parts.end(), is_packed);
  found.samples = std::min(any_packed ? std::min(samples_max, packed_samples_max) : samples_max, samples.size());
  for (std::uint64_t k = 0; k < found.samples; ++k) {
    const auto sample = static_cast<std::uint64_t>(static_cast<double>(k) * static_cast<double>(samples.size()) /
                                                   static_cast<double>(found.samples));
    parts.clear();
    model.parts(sample, parts);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool first = i == 0 || parts[i].field != parts[i - 1].field;
      if (!first || !is_picture(fields[parts[i].field])) continue;
      if (is_packed(parts[i])) {
        try {
          const std::vector<std::byte> whole = samples.read(sample, fields[parts[i].field].name);
          if (!whole.empty()) looks.add(whole);
        } catch (const error&) {
          // As one that cannot be read: left out.
        }
      } else if (parts[i].where.stored_bytes > 0) {
        looks.add(parts[i].where);
      }
    }
  }
  looks.look_at_the_rest();
  return found;
}

}  // namespace leat::tools
