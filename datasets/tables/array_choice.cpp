#include "datasets/tables/array_choice.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>
#include <leat/open_arrays.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

// What choose_arrays() has to know of an array, or of values of variable length.
struct candidate {
  const std::string* name;
  std::optional<std::uint64_t> rows;  // none: a single number
  double bytes = 0;                   // of all its elements
};

double bytes_of(const chunked_array& array) {
  double bytes = static_cast<double>(size_bytes(array.type));
  for (const std::uint64_t extent : array.shape) bytes *= static_cast<double>(extent);
  return bytes;
}

double bytes_of(const placed_values& values) {
  double bytes = 0;
  for (const value_place& each : values.rows) bytes += static_cast<double>(each.bytes);
  return bytes;
}

std::vector<candidate> candidates_of(const std::vector<chunked_array>& arrays,
                                     const std::vector<placed_values>& values) {
  std::vector<candidate> all;
  for (const chunked_array& each : arrays) {
    const bool has_rows = !each.shape.empty() && !each.is_single;
    all.push_back({&each.name, has_rows ? std::optional(each.shape.front()) : std::nullopt, bytes_of(each)});
  }
  for (const placed_values& each : values) {
    all.push_back(
        {&each.name, each.is_single ? std::nullopt : std::optional<std::uint64_t>(each.rows.size()), bytes_of(each)});
  }
  return all;
}

std::string names_of(const std::vector<candidate>& all) {
  constexpr std::size_t named_max = 12;
  std::string names;
  for (std::size_t i = 0; i < std::min(all.size(), named_max); ++i) {
    str_append(names, i == 0 ? "" : ", ", *all[i].name);
  }
  if (all.size() > named_max) str_append(names, " and ", all.size() - named_max, " more");
  return names;
}

// Which of them become fields.
std::vector<bool> chosen_of(const std::vector<candidate>& all, const std::vector<std::string>& wanted,
                            const std::string& title, std::vector<std::string>& notes) {
  std::vector<bool> chosen(all.size(), false);
  for (const std::string& name : wanted) {
    bool found = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string& its = *all[i].name;
      if (!is_named_by(its, name)) continue;
      if (!all[i].rows && is_pattern(name)) continue;
      if (!all[i].rows) {
        throw error(errc::usage,
                    str_cat(title, "/", its, ": a single number or text, without an axis of samples; leave it out"));
      }
      chosen[i] = true;
      found = true;
    }
    if (!found) throw error(errc::not_found, str_cat(title, ": no array '", name, "'; it has ", names_of(all)));
  }
  if (!wanted.empty()) return chosen;

  // The commonest length; of those that are as common the one with most bytes: a grid of coordinates beside one array is not meant.
  std::map<std::uint64_t, std::pair<std::size_t, double>> lengths;
  for (const candidate& each : all) {
    if (!each.rows) continue;
    auto& [count, bytes] = lengths[*each.rows];
    ++count;
    bytes += each.bytes;
  }
  std::pair<std::size_t, double> most;
  std::uint64_t rows = 0;
  for (const auto& [length, of_length] : lengths) {
    if (of_length <= most) continue;
    most = of_length;
    rows = length;
  }
  std::vector<candidate> rest;
  for (std::size_t i = 0; i < all.size(); ++i) {
    chosen[i] = all[i].rows == rows && most.first > 0;
    if (!chosen[i]) rest.push_back(all[i]);
  }
  if (most.first == 0) {
    throw error(errc::usage, str_cat(title, ": single numbers only, without an axis of samples: ", names_of(rest)));
  }
  if (!rest.empty()) {
    notes.push_back(str_cat(title, ": left out, since their first axis is not ", rows, " long: ", names_of(rest)));
  }
  return chosen;
}

// Keeps the chosen ones of `of`, whose choices begin at `first`.
template <typename T>
void keep_chosen(std::vector<T>& of, const std::vector<bool>& chosen, std::size_t first) {
  std::vector<T> kept;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (chosen[first + i]) kept.push_back(std::move(of[i]));
  }
  of = std::move(kept);
}

// The arrays whose path, or its last part, is wanted; all if nothing is.
std::vector<chunked_array> those_named(std::vector<chunked_array> arrays, const std::vector<std::string>& wanted,
                                       const std::string& title) {
  for (const std::string& name : wanted) {
    const auto is_named = [&](const chunked_array& each) {
      return is_named_by(each.name, name) || each.name.ends_with("/" + name);
    };
    if (std::any_of(arrays.begin(), arrays.end(), is_named)) continue;
    throw error(errc::not_found,
                str_cat(title, ": no array '", name, "'; it has ", names_of(candidates_of(arrays, {}))));
  }
  if (wanted.empty()) return arrays;
  std::erase_if(arrays, [&](const chunked_array& each) {
    return std::none_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
      return is_named_by(each.name, name) || each.name.ends_with("/" + name);
    });
  });
  return arrays;
}

std::vector<named_shape> shapes_of(const std::vector<chunked_array>& arrays, const std::vector<placed_values>& values) {
  std::vector<named_shape> all;
  for (const chunked_array& each : arrays) {
    all.push_back({.path = each.name, .shape = each.is_single ? std::vector<std::uint64_t>() : each.shape});
  }
  for (const placed_values& each : values) {
    all.push_back({.path = each.name, .shape = {}});
    if (!each.is_single) all.back().shape.push_back(each.rows.size());
  }
  return all;
}

// Joins what has names of one form, if anything has. Says so.
bool take_family(std::vector<chunked_array>& arrays, std::vector<placed_values>& values, bool is_asked_for,
                 const std::string& title, std::vector<std::string>& notes, sample_objects* objects) {
  const sample_family family = find_sample_family(shapes_of(arrays, values));
  if (!family.apart.empty() && !is_asked_for) {
    std::string groups;
    for (const std::string& each : family.apart) str_append(groups, groups.empty() ? "'" : ", '", each, "'");
    throw error(errc::usage,
                str_cat(title, ": several groups have samples of their own: ", groups,
                        "; name one, and ask for arrays as samples (", spelled(option_id::array_fields), ", ",
                        spelled(option_id::array_samples, "array"), "), or ask for rows (",
                        spelled(option_id::array_samples, "row"), ")"),
                option_id::array_samples);
  }
  if (!family.found()) {
    if (family.unsure != 0 && !is_asked_for) {
      notes.push_back(
          str_cat(title, ": the ", family.unsure, " '", family.form,
                  "' are taken for fields, each with a row for a sample; where each is a sample, ask for arrays (",
                  spelled(option_id::array_samples, "array"), ")"));
    }
    return false;
  }
  std::vector<candidate> rest;
  const std::vector<candidate> all = candidates_of(arrays, values);
  for (const std::size_t each : family.rest) rest.push_back(all[each]);
  if (!is_asked_for) {
    notes.push_back(str_cat(title, ": each of the ", family.samples(), " '", family.form,
                            "' is a sample; where the rows of one array are, ask for rows (",
                            spelled(option_id::array_samples, "row"), ")"));
  }
  if (!rest.empty()) notes.push_back(str_cat(title, ": left out, since not each sample has one: ", names_of(rest)));
  if (objects != nullptr) {
    objects->paths = family.objects;
    for (const family_field& each : family.fields) {
      objects->fields.push_back({each.name, {}});
      for (const std::size_t number : each.arrays) objects->fields.back().second.push_back(*all[number].name);
    }
  }
  keep_family(arrays, values, family, title, notes);
  return true;
}

}  // namespace

bool is_pattern(const std::string& wanted) noexcept { return wanted.find_first_of("*?[") != std::string::npos; }

bool is_named_by(const std::string& name, const std::string& wanted) {
  if (name == wanted || name.starts_with(wanted + "/")) return true;
  return is_pattern(wanted) && ::fnmatch(wanted.c_str(), name.c_str(), 0) == 0;
}

std::span<const std::string> wanted_by_path(const array_options& options) noexcept {
  const bool may_be_parts = options.samples == array_options::sample::array ||
                            std::any_of(options.fields.begin(), options.fields.end(), is_pattern);
  return may_be_parts ? std::span<const std::string>() : options.fields;
}

void choose_arrays(std::vector<chunked_array>& arrays, std::vector<placed_values>& values, const array_options& options,
                   const std::string& title, std::vector<std::string>& notes, sample_objects* objects) {
  const bool by_array = options.samples == array_options::sample::array;
  const bool by_rows = options.samples == array_options::sample::row || options.window != 0 || options.stride != 1;
  if (options.fields.empty() && !by_rows && take_family(arrays, values, by_array, title, notes, objects)) return;
  const bool has_values = !by_array && options.window == 0;
  if (!has_values && !values.empty()) {
    notes.push_back(
        str_cat(title, ": left out, since values of variable length have no ",
                options.window != 0 ? "windows: " : "samples of their own: ", names_of(candidates_of({}, values))));
    values.clear();
  }
  if (arrays.empty() && values.empty()) {
    throw error(errc::usage,
                str_cat(title, ": it has no array that leat reads", notes.empty() ? "" : "; " + notes.front()));
  }
  if (by_array) {
    arrays = arrays_as_samples(those_named(std::move(arrays), options.fields, title), title, objects);
    return;
  }
  const std::vector<candidate> all = candidates_of(arrays, values);
  const std::vector<bool> chosen = chosen_of(all, options.fields, title, notes);
  const candidate* first = nullptr;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!chosen[i]) continue;
    if (first == nullptr) first = &all[i];
    if (all[i].rows == first->rows) continue;
    throw error(errc::usage, str_cat(title, "/", *all[i].name, " has ", *all[i].rows, " rows where ", *first->name,
                                     " has ", *first->rows, "; open them apart"));
  }
  const std::size_t array_count = arrays.size();
  keep_chosen(values, chosen, array_count);
  keep_chosen(arrays, chosen, 0);
}

}  // namespace leat::datasets
