#include "datasets/tables/arrays_as_samples.hpp"

#include "base/hash_map.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <span>
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

void append_row(chunked_array& to, chunked_array& row) {
  ++to.shape.front();
  for (chunk_place& place : row.places) {
    if (place.file == chunk_place::held) place.offset += to.held.size();
  }
  if (to.held.empty()) to.held_from = row.held_from;  // all come from one file
  to.held.insert(to.held.end(), row.held.begin(), row.held.end());
  to.places.insert(to.places.end(), row.places.begin(), row.places.end());
}

// An array that lies in its file as it is, in one piece.
bool is_as_stored(const chunked_array& array) {
  const bool is_one = array.places.size() == 1 && array.filters.empty() && array.record_bytes == 0;
  return is_one && array.stored_axes.empty() && (array.places.front().is_in_file() || array.places.front().bytes == 0);
}

struct joined {
  std::vector<chunked_array> arrays;
  std::vector<placed_values> values;
};

/// Adds one field of a family, if it can be joined; else says why not.
class family_joiner {
 public:
  family_joiner(std::vector<chunked_array>& arrays, std::vector<placed_values>& values)
      : arrays_(arrays), values_(values) {}

  [[nodiscard]] std::string add(const family_field& field, joined& to) {
    const bool are_values = field.arrays.front() >= arrays_.size();
    for (const std::size_t each : field.arrays) {
      if ((each >= arrays_.size()) != are_values) return "some are of variable length, and some are not";
    }
    return are_values ? add_values(field, to) : add_arrays(field, to);
  }

 private:
  std::string add_values(const family_field& field, joined& to) {
    const placed_values& first = values_[field.arrays.front() - arrays_.size()];
    placed_values all{.name = field.name, .kind = first.kind, .rows = {}, .file = first.file};
    for (const std::size_t each : field.arrays) {
      const placed_values& one = values_[each - arrays_.size()];
      if (!one.is_single) return "each has rows of variable length itself";
      if (one.file != first.file) return "they lie in several files";
      if (one.kind != first.kind) all.kind = field_kind::bytes;
      all.rows.push_back(one.rows.front());
    }
    to.values.push_back(std::move(all));
    return {};
  }

  std::string add_arrays(const family_field& field, joined& to) {
    const chunked_array first = arrays_[field.arrays.front()];
    std::string_view what;
    for (const std::size_t each : field.arrays) {
      if (what.empty()) what = difference(first, arrays_[each]);
    }
    if (!what.empty()) return add_unequal(field, what, to);
    chunked_array all = as_row(std::move(arrays_[field.arrays.front()]), field.name);
    for (const std::size_t each : std::span(field.arrays).subspan(1)) append_row(all, arrays_[each]);
    all.is_single = false;
    to.arrays.push_back(std::move(all));
    return {};
  }

  std::string add_unequal(const family_field& field, std::string_view what, joined& to) const {
    const chunked_array& first = arrays_[field.arrays.front()];
    placed_values all{.name = field.name, .kind = field_kind::bytes, .rows = {}, .file = 0, .type = first.type};
    bool has_file = false;
    for (const std::size_t number : field.arrays) {
      const chunked_array& each = arrays_[number];
      if (each.type != first.type) return "they differ in type";
      if (!is_as_stored(each)) {
        return str_cat("they differ in ", what,
                       " and are packed or in chunks; leat reads such as are stored in one piece");
      }
      const chunk_place& place = each.places.front();
      if (place.bytes == 0) {
        all.rows.push_back({});
        continue;
      }
      if (has_file && place.file != all.file) return str_cat("they differ in ", what, " and lie in several files");
      has_file = true;
      all.file = place.file;
      all.rows.push_back({.offset = place.offset, .bytes = place.bytes});
    }
    to.values.push_back(std::move(all));
    return {};
  }

  std::vector<chunked_array>& arrays_;
  std::vector<placed_values>& values_;
};

}  // namespace

void keep_family(std::vector<chunked_array>& arrays, std::vector<placed_values>& values, const sample_family& family,
                 const std::string& title, std::vector<std::string>& notes) {
  joined kept;
  family_joiner joiner(arrays, values);
  std::string why;
  for (const family_field& each : family.fields) {
    const std::string reason = joiner.add(each, kept);
    if (reason.empty()) continue;
    why = str_cat(title, ": '", each.name, "' of the samples ", family.form, ": ", reason);
    notes.push_back("left out: " + why);
  }
  if (kept.arrays.empty() && kept.values.empty()) {
    throw error(errc::usage,
                str_cat(why, "; where the rows of one array are the samples, ask for rows (",
                        spelled(option_id::array_samples, "row"), ")"),
                option_id::array_samples);
  }
  for (const std::size_t each : family.parallel) {
    if (each < arrays.size()) {
      kept.arrays.push_back(std::move(arrays[each]));
    } else {
      kept.values.push_back(std::move(values[each - arrays.size()]));
    }
  }
  arrays = std::move(kept.arrays);
  values = std::move(kept.values);
}

std::vector<chunked_array> arrays_as_samples(std::vector<chunked_array> arrays, const std::string& title,
                                             sample_objects* objects) {
  std::sort(arrays.begin(), arrays.end(),
            [](const chunked_array& a, const chunked_array& b) { return is_before(a.name, b.name); });
  const auto last_of = [](const chunked_array& array) { return array.name.substr(array.name.rfind('/') + 1); };
  hash_map<std::string, std::size_t> times;
  for (const chunked_array& each : arrays) ++times[last_of(each)];
  const bool all_apart = std::all_of(times.begin(), times.end(), [](const auto& each) { return each.second == 1; });

  std::vector<chunked_array> merged;
  std::vector<chunked_array> firsts;  // as they were, to compare with
  hash_map<std::string, std::size_t> place_of;
  for (chunked_array& each : arrays) {
    const std::string name = all_apart ? "array" : last_of(each);
    const auto [known, is_new] = place_of.try_emplace(name, merged.size());
    if (objects != nullptr) {
      if (is_new) objects->fields.push_back({name, {}});
      objects->fields[known->second].second.push_back(each.name);
      const std::size_t slash = all_apart ? std::string::npos : each.name.rfind('/');
      if (known->second == 0) objects->paths.push_back(each.name.substr(0, slash));
    }
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
    append_row(merged[known->second], each);
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
