#include "datasets/arrays_as_samples.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

// What differs between two arrays that are to be rows of one, if anything does.
std::string_view difference(const chunked_array& a, const chunked_array& b) {
  if (a.type != b.type) return "type";
  if (a.shape != b.shape) return "shape";
  if (a.chunk != b.chunk || a.stored_axes != b.stored_axes) return "shape of chunks";
  if (a.filters != b.filters) return "filters";
  if (a.fill != b.fill) return "fill value";
  if (!a.held.empty() || !b.held.empty()) return "place, within the references themselves,";
  if (a.record_bytes != b.record_bytes || a.record_offset != b.record_offset) return "record";
  return {};
}

std::string shape_text(const chunked_array& array) {
  std::string text;
  for (const std::uint64_t extent : array.shape) str_append(text, text.empty() ? "[" : ", ", extent);
  return str_cat(name(array.type), " ", text.empty() ? "[" : text, "]");
}

chunked_array as_row(chunked_array array, std::string name) {
  array.name = std::move(name);
  array.shape.insert(array.shape.begin(), 1);
  array.chunk.insert(array.chunk.begin(), 1);
  if (!array.stored_axes.empty()) {
    for (std::uint8_t& axis : array.stored_axes) ++axis;
    array.stored_axes.insert(array.stored_axes.begin(), 0);
  }
  return array;
}

}  // namespace

std::vector<chunked_array> arrays_as_samples(std::vector<chunked_array> arrays, const std::string& title) {
  const auto last_of = [](const chunked_array& array) { return array.name.substr(array.name.rfind('/') + 1); };
  absl::flat_hash_map<std::string, std::size_t> times;
  for (const chunked_array& each : arrays) ++times[last_of(each)];
  const bool all_apart = std::all_of(times.begin(), times.end(), [](const auto& each) { return each.second == 1; });

  std::vector<chunked_array> merged;
  std::vector<chunked_array> firsts;  // as they were, to compare with
  absl::flat_hash_map<std::string, std::size_t> place_of;
  for (chunked_array& each : arrays) {
    const std::string name = all_apart ? "array" : last_of(each);
    const auto [known, is_new] = place_of.try_emplace(name, merged.size());
    if (is_new) {
      firsts.push_back(each);
      merged.push_back(as_row(std::move(each), name));
      continue;
    }
    const chunked_array& first = firsts[known->second];
    if (const std::string_view what = difference(first, each); !what.empty()) {
      throw error(errc::usage, str_cat(title, "/", each.name, " (", shape_text(each), ") has another ", what, " than ",
                                       first.name, " (", shape_text(first),
                                       "), and samples are of one; choose those that are alike with fields"));
    }
    chunked_array& to = merged[known->second];
    ++to.shape.front();
    for (chunk_place& place : each.places) {
      if (place.file == chunk_place::held) place.offset += to.held.size();
    }
    if (to.held.empty()) to.held_from = each.held_from;  // all come from one file
    to.held.insert(to.held.end(), each.held.begin(), each.held.end());
    to.places.insert(to.places.end(), each.places.begin(), each.places.end());
  }
  for (const chunked_array& each : merged) {
    if (each.shape.front() == merged.front().shape.front()) continue;
    throw error(errc::usage,
                str_cat(title, ": ", merged.front().shape.front(), " groups have '", merged.front().name, "', and ",
                        each.shape.front(), " have '", each.name, "'; name those that all have, with fields"));
  }
  return merged;
}

}  // namespace leat::datasets
