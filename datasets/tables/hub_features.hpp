// What the Hugging Face Hub's metadata say of a table's columns: which are pictures, which are arrays and of which
// shape, and which are classes and what these are called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

struct hub_features {
  struct class_names {
    std::string path;
    std::vector<std::string> names;
  };
  struct array {
    std::string path;
    std::size_t axes = 0;
    std::string shape;                       ///< in words: "2 x 3", or "any x 3"
    std::vector<std::int64_t> extents = {};  ///< of all axes; none where rows choose one
  };
  std::vector<array> arrays;          ///< Array2D to Array5D
  std::vector<std::string> pictures;  ///< paths of structs {bytes, path}
  std::vector<class_names> labels;

  [[nodiscard]] bool is_picture(std::string_view path) const noexcept;
  [[nodiscard]] const array* array_of(std::string_view path) const noexcept;
  [[nodiscard]] const class_names* labels_of(std::string_view path) const noexcept;
};

/// Metadata of another form say nothing.
///   json     {"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
///   source   github.com/huggingface/datasets: features/features.py
[[nodiscard]] hub_features read_hub_features(std::string_view json);

}  // namespace leat::datasets
