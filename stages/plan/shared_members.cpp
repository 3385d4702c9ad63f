#include "stages/plan/shared_members.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <map>

namespace leat::stages {

void number_views(std::span<const std::unique_ptr<field_program>> programs) {
  std::map<std::uint16_t, std::uint32_t> views;
  for (const auto& program : programs) {
    if (!program->random() || program->reads().empty()) continue;
    program->facets().drawing->set_view(++views[program->reads().front()]);
  }
}

std::vector<std::uint16_t> decode_leaders(std::span<const std::unique_ptr<field_program>> programs) {
  std::vector<std::uint16_t> leaders;
  for (std::uint16_t p = 0; p < programs.size(); ++p) {
    std::uint16_t leader = 0;
    while (leader < p && (leaders[leader] != leader || !programs[p]->decodes_with(*programs[leader]))) ++leader;
    leaders.push_back(leader);
  }
  return leaders;
}

std::size_t scratch_bytes_of(std::span<const std::unique_ptr<field_program>> programs) {
  const std::vector<std::uint16_t> leaders = decode_leaders(programs);
  std::size_t bytes = 0;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    bytes +=
        leaders[p] == p ? programs[p]->facts().scratch_bytes : programs[p]->facets().sharing->scratch_bytes_beside();
  }
  return bytes;
}

std::vector<std::string> describe_shared_decodes(std::span<const std::unique_ptr<field_program>> programs) {
  const auto name = [&](std::size_t program) -> const std::string& {
    return programs[program]->outputs().front().name;
  };
  const auto is_picture = [&](std::size_t program) { return programs[program]->outputs().front().axes.has_value(); };
  const std::vector<std::uint16_t> leaders = decode_leaders(programs);
  std::vector<std::string> said;
  for (std::size_t leader = 0; leader < programs.size(); ++leader) {
    if (leaders[leader] != leader) continue;
    std::string names = name(leader);
    for (std::size_t p = leader + 1; p < programs.size(); ++p) {
      if (leaders[p] == leader) str_append(names, ", ", name(p));
    }
    if (names != name(leader)) {
      said.push_back(str_cat(
          names, ": one decode of each picture; one for each scale where crops are decimated (image::decimate)"));
    }
    for (std::size_t before = 0; before < leader; ++before) {
      const auto a = programs[before]->reads();
      const auto b = programs[leader]->reads();
      if (leaders[before] != before || !is_picture(before) || !is_picture(leader)) continue;
      if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) continue;
      said.push_back(
          str_cat(name(before), ", ", name(leader),
                  ": a decode for each; their exif_orientation(), pixels_max(), truncated() or background() differ"));
    }
  }
  return said;
}

}  // namespace leat::stages
