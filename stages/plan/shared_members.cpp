#include "stages/plan/shared_members.hpp"

#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "stages/pixels/iou_crop.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <map>
#include <numeric>

namespace leat::stages {
namespace {

// "jpg, clip, clip[1] to clip[15]"
std::string list_pictures(std::span<const std::unique_ptr<field_program>> programs) {
  const auto is_slot = [&](std::size_t p) {
    return programs[p]->facets().leading != nullptr && programs[p]->outputs().front().is_slot();
  };
  std::string text;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    if (programs[p]->facets().leading == nullptr) continue;
    str_append(text, text.empty() ? "" : ", ", shown_name(*programs[p]));
    const std::size_t first = p;
    while (is_slot(first) && p + 1 < programs.size() && is_slot(p + 1)) ++p;
    if (p != first) str_append(text, " to ", shown_name(*programs[p]));
  }
  return text;
}

}  // namespace

const std::string& shown_name(const field_program& program) {
  const auto shown = std::find_if(program.outputs().begin(), program.outputs().end(),
                                  [](const output_spec& each) { return !each.hidden; });
  return (shown != program.outputs().end() ? *shown : program.outputs().front()).name;
}

void number_views(std::span<const std::unique_ptr<field_program>> programs) {
  std::map<std::uint16_t, std::uint32_t> views;
  struct group {
    const field_program* first = nullptr;
    std::vector<double> probes;  // of the first, once there is another
  };
  std::map<std::string_view, group> groups;
  for (const auto& program : programs) {
    if (!program->random() || program->reads().empty()) continue;
    drawing_facet& drawing = *program->facets().drawing;
    if (drawing.group().empty()) {
      drawing.set_view(++views[program->reads().front()]);
      continue;
    }
    if (program->outputs().front().lies_apart) continue;
    group& all = groups[drawing.group()];
    if (all.first == nullptr) {
      all.first = program.get();
      continue;
    }
    if (all.probes.empty()) all.probes = all.first->facets().drawing->geometry_probes();
    if (all.probes == drawing.geometry_probes()) continue;
    throw error(errc::usage, str_cat("'", all.first->outputs().front().name, "' and '", program->outputs().front().name,
                                     "' are together as '", drawing.group(),
                                     "', and crop, scale, flip or warp differently; give both the same steps"));
  }
}

std::vector<std::uint16_t> decode_leaders(std::span<const std::unique_ptr<field_program>> programs) {
  std::vector<std::uint16_t> leaders;
  const auto leads = [&](std::uint16_t leader, std::uint16_t p) {
    return leaders[leader] == leader && programs[leader]->facets().sharing != nullptr &&
           programs[p]->decodes_with(*programs[leader]);
  };
  for (std::uint16_t p = 0; p < programs.size(); ++p) {
    std::uint16_t leader = 0;
    while (leader < p && !leads(leader, p)) ++leader;
    leaders.push_back(leader);
  }
  return leaders;
}

void follow_pictures(std::span<const std::unique_ptr<field_program>> programs) {
  for (const auto& program : programs) {
    if (program->facets().following == nullptr) continue;
    const std::string& leader = program->facets().following->leader();
    const std::string at = str_cat("field '", shown_name(*program), "'");
    if (leader.empty()) {
      throw error(errc::usage, str_cat(at, " follows no picture; say which field it belongs to: .follows(\"jpg\")"));
    }
    if (leader == shown_name(*program))
      throw error(errc::usage, str_cat(at, " follows itself; name the picture's field"));
    std::vector<std::string> pictures;
    for (const auto& each : programs) {
      if (each->facets().leading != nullptr) pictures.push_back(shown_name(*each));
    }
    const auto found =
        std::find_if(programs.begin(), programs.end(), [&](const auto& each) { return shown_name(*each) == leader; });
    const std::string there =
        pictures.empty() ? "the loader has no picture" : str_cat("pictures are ", list_pictures(programs));
    if (found == programs.end()) {
      throw error(errc::usage, str_cat(at, " follows '", leader, "', and the loader has no such field; ", there,
                                       did_you_mean(leader, pictures)));
    }
    if ((*found)->facets().leading == nullptr) {
      throw error(errc::usage, str_cat(at, " follows '", leader, "', which makes no pictures; ", there));
    }
    program->facets().following->follow(*(*found)->facets().leading);
  }
}

std::vector<std::uint16_t> pictures_followed(std::span<const std::unique_ptr<field_program>> programs) {
  std::vector<std::uint16_t> followed;
  for (std::uint16_t p = 0; p < programs.size(); ++p) {
    followed.push_back(p);
    const following_facet* const following = programs[p]->facets().following;
    for (std::uint16_t q = 0; q < programs.size() && following != nullptr; ++q) {
      if (shown_name(*programs[q]) == following->leader()) followed.back() = q;
    }
  }
  return followed;
}

namespace {

// Whether boxes of one are boxes of the other: pictures of one member, and of one group.
bool are_of_one_picture(const field_program& a, const field_program& b) {
  if (&a == &b || (!a.reads().empty() && !b.reads().empty() && a.reads().front() == b.reads().front())) return true;
  const auto group = [](const field_program& of) {
    return of.facets().drawing != nullptr ? of.facets().drawing->group() : std::string_view();
  };
  return !group(a).empty() && group(a) == group(b);
}

}  // namespace

std::vector<std::uint16_t> boxes_looked_at(std::span<const std::unique_ptr<field_program>> programs) {
  std::vector<std::uint16_t> found;
  for (std::uint16_t p = 0; p < programs.size(); ++p) {
    found.push_back(p);
    const looking_facet* const looking = programs[p]->facets().looking;
    if (looking == nullptr) continue;
    const std::string& name = looking->boxes_field();
    const std::string at = str_cat("image '", shown_name(*programs[p]), "': random_iou_crop looks at ");
    std::vector<std::string> all;
    for (std::uint16_t q = 0; q < programs.size(); ++q) {
      if (programs[q]->facets().boxing == nullptr) continue;
      all.push_back(shown_name(*programs[q]));
      const bool is_own = programs[q]->facets().following->leader() == shown_name(*programs[p]);
      if (name.empty() ? !is_own : name != all.back()) continue;
      if (found.back() != p) {
        throw error(errc::usage, str_cat(at, "boxes, and '", shown_name(*programs[found.back()]), "' and '", all.back(),
                                         "' follow it; say which: {.boxes = \"", all.back(), "\"}"));
      }
      found.back() = q;
    }
    if (found.back() == p && name.empty() && !all.empty() && programs[p]->outputs().front().is_slot()) {
      throw error(errc::usage, str_cat(at,
                                       "boxes, and none follow this one of several pictures; name boxes for all of "
                                       "them: {.boxes = \"",
                                       all.front(), "\"}"));
    }
    if (found.back() == p && name.empty()) {
      throw error(errc::usage, str_cat(at, "boxes first, and none follow it; give the loader boxes{...}.follows(\"",
                                       shown_name(*programs[p]), "\"), or take random_resized_crop"));
    }
    if (found.back() == p) {
      throw error(errc::usage, str_cat(at, "the boxes '", name, "', and the loader has no such field of boxes",
                                       did_you_mean(name, all)));
    }
    const std::string& leader = programs[found.back()]->facets().following->leader();
    const auto of =
        std::find_if(programs.begin(), programs.end(), [&](const auto& each) { return shown_name(*each) == leader; });
    if (of != programs.end() && are_of_one_picture(**of, *programs[p])) continue;
    throw error(errc::usage, str_cat(at, "the boxes '", name, "', which follow '", leader,
                                     "', a picture of another member; name boxes of this one"));
  }
  return found;
}

std::vector<std::uint16_t> scratch_owners(std::span<const std::unique_ptr<field_program>> programs) {
  std::vector<std::uint16_t> owners = decode_leaders(programs);
  for (std::uint16_t p = 0; p < owners.size(); ++p) {
    owners[p] = owners[p] != p ? owners[owners[p]] : programs[p]->facts().scratch_of_previous ? owners[p - 1] : p;
  }
  return owners;
}

std::size_t scratch_bytes_of(std::span<const std::unique_ptr<field_program>> programs) {
  const std::vector<std::uint16_t> leaders = decode_leaders(programs);
  const std::vector<std::uint16_t> owners = scratch_owners(programs);
  const std::vector<std::uint16_t> boxed_by = boxes_looked_at(programs);
  std::size_t bytes = 0;
  std::vector<std::size_t> beside(programs.size(), 0);  // of each decode
  for (std::size_t p = 0; p < programs.size(); ++p) {
    if (leaders[p] == p) {
      bytes += programs[p]->facts().scratch_bytes;
    } else {
      beside[leaders[p]] += programs[p]->facets().sharing->scratch_bytes_beside();
    }
    if (boxed_by[p] != p) bytes += pixels::boxes_seen_max * sizeof(pixels::box);
  }
  // Decodes with one scratch come one after the other: frames of two clips.
  std::vector<std::size_t> most(programs.size(), 0);
  for (std::size_t p = 0; p < programs.size(); ++p) most[owners[p]] = std::max(most[owners[p]], beside[p]);
  return std::accumulate(most.begin(), most.end(), bytes);
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
