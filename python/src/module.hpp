// What the parts of the module share: who owns what, and how values of Python become leat's.
#pragma once

#include <leat/batch.hpp>
#include <leat/field.hpp>
#include <leat/loading.hpp>
#include <leat/order.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>
#include <leat/tensor.hpp>

#include <nanobind/nanobind.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyleat {

namespace nb = nanobind;

/// An output of a batch, which keeps the batch.
struct held_tensor {
  std::shared_ptr<leat::batch> of;
  leat::batch_tensor view;
};

/// "f32", NumPy's "float32", and a dtype of NumPy's or PyTorch's, by its name.
[[nodiscard]] leat::dtype to_dtype(nb::handle given);
[[nodiscard]] leat::source_names to_sources(nb::handle given);
/// A field of any kind.
[[nodiscard]] leat::field to_field(nb::handle given);
/// Sets options by their names in loader_options.
///   throws   nb::type_error for a name that is none, with the nearest, and for a value that it does not take
void set_options(leat::loader_options& to, const nb::kwargs& given);

/// One of these words, in the order of the enum.
template <class Enum, std::size_t Count>
[[nodiscard]] Enum to_enum(nb::handle given, const char* what, const std::array<std::string_view, Count>& words) {
  std::string text;
  if (nb::try_cast(given, text)) {
    for (std::size_t i = 0; i < Count; ++i) {
      if (words[i] == text) return static_cast<Enum>(i);
    }
  }
  std::string message = std::string(what) + " is one of ";
  for (std::size_t i = 0; i < Count; ++i) message += (i == 0 ? "'" : ", '") + std::string(words[i]) + "'";
  message += ", and not " + std::string(nb::repr(given).c_str());
  throw nb::value_error(message.c_str());
}

void add_errors(nb::module_& to);
void add_dataset(nb::module_& to);
void add_fields(nb::module_& to);
void add_orders(nb::module_& to);
void add_batch(nb::module_& to);
void add_loader(nb::module_& to);

}  // namespace pyleat
