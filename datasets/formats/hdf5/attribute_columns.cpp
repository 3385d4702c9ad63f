#include "datasets/formats/hdf5/attribute_columns.hpp"

#include "base/text.hpp"
#include "datasets/tables/record_columns.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace leat::datasets {
namespace {

using path_of_sample = std::function<std::string(std::size_t)>;

std::vector<path_of_sample> places_of(const sample_objects& objects, const std::string& column) {
  const std::size_t slash = column.rfind('/');
  std::vector<path_of_sample> places;
  if (slash == std::string::npos) {
    places.emplace_back([&](std::size_t i) { return objects.paths[i]; });
    for (const auto& each : objects.fields) places.emplace_back([&](std::size_t i) { return each.second[i]; });
    return places;
  }
  const std::string part = column.substr(0, slash);
  places.emplace_back([&objects, part](std::size_t i) { return str_cat(objects.paths[i], "/", part); });
  for (const auto& each : objects.fields) {
    if (each.first == part) places.emplace_back([&](std::size_t i) { return each.second[i]; });
  }
  return places;
}

// The one that has it of the first sample.
path_of_sample place_of(const sample_objects& objects, const hdf5_attributes& attributes, const std::string& column,
                        const std::string& title) {
  const std::string name = attribute_of(column);
  std::vector<path_of_sample> places = places_of(objects, column);
  std::erase_if(places, [&](const path_of_sample& each) { return attributes.find(each(0), name) == nullptr; });
  if (places.empty()) {
    throw error(errc::not_found, str_cat(title, "/", objects.paths.front(), ": it has no attribute '", column,
                                         "', and no array in it has; check the name, as h5dump -A shows it"));
  }
  const std::string first = places.front()(0);
  const auto other =
      std::find_if(places.begin(), places.end(), [&](const path_of_sample& each) { return each(0) != first; });
  if (other != places.end() && first != objects.paths.front()) {
    throw error(errc::usage,
                str_cat(title, ": ", first, " and ", (*other)(0), " have an attribute '", name,
                        "' each; name the array too, as '", first.substr(first.rfind('/') + 1), "/", name, "'"));
  }
  return places.front();
}

bool is_text(const attribute_value& value) { return std::holds_alternative<std::string>(value); }

chunked_array in_memory(const std::string& name, dtype type, std::vector<std::byte> bytes) {
  const std::uint64_t rows = bytes.size() / size_bytes(type);
  chunked_array array;
  array.name = name;
  array.type = type;
  array.shape = {rows};
  array.chunk = {std::max<std::uint64_t>(rows, 1)};
  if (rows != 0) array.places = {{.offset = 0, .bytes = bytes.size(), .file = chunk_place::held}};
  array.held = std::move(bytes);
  return array;
}

template <class Number>
chunked_array numbers_of(const attribute_column& column, dtype type,
                         const std::function<Number(const attribute_value&)>& of) {
  std::vector<std::byte> bytes(column.values.size() * sizeof(Number));
  for (std::size_t i = 0; i < column.values.size(); ++i) {
    const Number value = of(column.values[i]);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return in_memory(column.name, type, std::move(bytes));
}

std::int64_t class_of(const attribute_value& value, const std::vector<std::string>& classes) {
  return std::lower_bound(classes.begin(), classes.end(), std::get<std::string>(value)) - classes.begin();
}

double real_number(const attribute_value& value) {
  const auto* const whole = std::get_if<std::int64_t>(&value);
  return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
}

}  // namespace

std::string attribute_of(const std::string& column) { return column.substr(column.rfind('/') + 1); }

std::vector<attribute_column> attribute_columns(const sample_objects& objects, const hdf5_attributes& attributes,
                                                std::span<const std::string> wanted, const std::string& title) {
  std::vector<attribute_column> columns;
  if (wanted.empty()) return columns;
  if (objects.paths.empty()) {
    throw error(errc::usage, str_cat(title, ": the column '", wanted.front(),
                                     "' would be an attribute of samples that are arrays or groups, and here rows of "
                                     "arrays are; leave it out"));
  }
  for (const std::string& column : wanted) {
    const path_of_sample place = place_of(objects, attributes, column, title);
    attribute_column& made = columns.emplace_back(attribute_column{.name = column, .values = {}});
    made.values.reserve(objects.paths.size());
    for (std::size_t i = 0; i < objects.paths.size(); ++i) {
      const attribute_value* const value = attributes.find(place(i), attribute_of(column));
      if (value == nullptr) {
        throw error(errc::not_found, str_cat(title, "/", place(i), ": it has no attribute '", attribute_of(column),
                                             "', and ", place(0), " has; write it, or leave the column out"));
      }
      made.values.push_back(*value);
    }
  }
  return columns;
}

joined_column join_columns(std::span<const attribute_column* const> of, std::span<const std::string> titles) {
  bool any_text = false;
  bool any_real = false;
  bool any_number = false;
  few_texts texts;
  for (std::size_t file = 0; file < of.size(); ++file) {
    for (const attribute_value& each : of[file]->values) {
      any_text = any_text || is_text(each);
      any_number = any_number || !is_text(each);
      any_real = any_real || std::holds_alternative<double>(each);
      if (any_text && any_number) {
        throw error(errc::format, str_cat(titles[file], ": the attribute '", of[file]->name,
                                          "' is a number of some samples and a text of others; write one kind"));
      }
      if (is_text(each) && !texts.add(std::get<std::string>(each))) refuse_texts(of[file]->name, titles[file]);
    }
  }
  joined_column joined;
  const few_texts* const all[] = {&texts};
  if (any_text) joined.classes = sorted_texts(all, of.front()->name, titles.front());
  for (const attribute_column* const each : of) {
    if (any_real) {
      joined.arrays.push_back(numbers_of<double>(*each, dtype::f64, real_number));
      continue;
    }
    joined.arrays.push_back(numbers_of<std::int64_t>(*each, dtype::i64, [&](const attribute_value& value) {
      return any_text ? class_of(value, joined.classes) : std::get<std::int64_t>(value);
    }));
  }
  return joined;
}

}  // namespace leat::datasets
