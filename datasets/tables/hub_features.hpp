// What the Hugging Face Hub's metadata say of a table's columns: which are pictures, and which are classes and what these are called.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

struct hub_features {
  struct class_names {
    std::string path;
    std::vector<std::string> names;
  };
  std::vector<std::string> pictures;  ///< paths of structs {bytes, path}
  std::vector<class_names> labels;

  [[nodiscard]] bool is_picture(std::string_view path) const noexcept;
  [[nodiscard]] const class_names* labels_of(std::string_view path) const noexcept;
};

/// Metadata of another form say nothing.
///   json     {"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
///   source   github.com/huggingface/datasets: features/features.py
[[nodiscard]] hub_features read_hub_features(std::string_view json);

}  // namespace leat::datasets
