// Attributes of HDF5's objects: one number or one text each, by the names that are wanted.
#pragma once

#include "base/hash_map.hpp"
#include "datasets/formats/hdf5/hdf5_objects.hpp"
#include "datasets/formats/hdf5/hdf5_values.hpp"

#include <leat/tensor.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leat::datasets {

using attribute_value = std::variant<std::int64_t, double, std::string>;

/// Takes attributes as objects are come to. Memory is for those that are wanted.
class hdf5_attributes {
 public:
  ///   names   of attributes
  explicit hdf5_attributes(std::vector<std::string> names) : names_(std::move(names)) {}

  [[nodiscard]] bool wants_any() const noexcept { return !names_.empty(); }
  ///   message   an attribute
  ///   fetch     a message that is kept elsewhere
  ///   throws    error{errc::unsupported} a wanted one that is no number and no text
  void take(hdf5_bytes& file, const std::string& path, const hdf5_message& message,
            const std::function<hdf5_message(const hdf5_message&)>& fetch);
  /// After the last one: reads texts of variable length.
  void finish(hdf5_bytes& file);

  /// By the object's path and the attribute's name; null where it has none.
  [[nodiscard]] const attribute_value* find(const std::string& path, const std::string& name) const;

 private:
  void keep(const std::string& path, std::size_t name, attribute_value value);

  std::vector<std::string> names_;
  hash_map<std::pair<std::string, std::size_t>, attribute_value> values_;
  // Texts of variable length, and where they lie.
  std::vector<std::pair<std::string, std::size_t>> texts_;
  std::vector<hdf5_reference> places_;
};

}  // namespace leat::datasets
