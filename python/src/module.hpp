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
#include <nanobind/stl/string.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
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
/// A Dataset, or what open() makes of it.
[[nodiscard]] leat::dataset to_dataset(nb::handle given);
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

/// A keyword argument that sets a member of options.
///   takes   what its value is, in words
template <class Options>
struct keyword {
  std::string_view name;
  const char* takes;
  void (*set)(Options& to, nb::handle value);
};

///   whose        the function, in messages
///   explain      what else is to be said of a name that is none
///   throws       nb::type_error for a name that is none, with the nearest, and for a value that it does not take
template <class Options, std::size_t Count, class Explain>
void set_keywords(const char* whose, Options& to, const nb::kwargs& given, const keyword<Options> (&keywords)[Count],
                  const Explain& explain) {
  for (const auto& [name, value] : given) {
    const std::string text = nb::cast<std::string>(name);
    const keyword<Options>* found = nullptr;
    for (const keyword<Options>& each : keywords) {
      if (each.name == text) found = &each;
    }
    if (found == nullptr) {
      std::string message = std::string(whose) + " has no option " + text + "=";
      nb::list names;
      for (const keyword<Options>& each : keywords) names.append(std::string(each.name));
      for (const nb::handle near : nb::module_::import_("difflib").attr("get_close_matches")(text, names, 1)) {
        message += "; did you mean " + nb::cast<std::string>(near) + "=?";
      }
      message += explain(text);
      throw nb::type_error(message.c_str());
    }
    try {
      found->set(to, value);
    } catch (const nb::cast_error&) {
      throw nb::type_error((text + "= takes " + found->takes + ", and not " + nb::repr(value).c_str()).c_str());
    }
  }
}

/// What waits for a disk or a store lets other threads of Python run.
template <class Call>
auto unlocked(const Call& call) {
  const nb::gil_scoped_release released;
  return call();
}

/// A text, bytes or a path of pathlib, as the system has its name.
[[nodiscard]] inline std::string to_path(nb::handle given) {
  const auto name = nb::cast<nb::bytes>(nb::module_::import_("os").attr("fsencode")(given));
  std::string path(name.c_str(), name.size());
  if (path.find('\0') != std::string::npos)
    throw nb::value_error("a path has a zero byte, where the system would end it");
  return path;
}
/// The name of a file as Python has it: not each is UTF-8.
[[nodiscard]] inline nb::str name_of(std::string_view name) {
  return nb::steal<nb::str>(PyUnicode_DecodeFSDefaultAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
}
/// Texts with such names in them.
[[nodiscard]] inline nb::typed<nb::list, nb::str> names_of(std::span<const std::string> names) {
  nb::typed<nb::list, nb::str> all;
  for (const std::string& each : names) all.append(name_of(each));
  return all;
}
[[nodiscard]] inline std::chrono::milliseconds to_duration(nb::handle seconds) {
  constexpr double countable = 100.0 * 365 * 24 * 3600;
  const auto given = nb::cast<double>(seconds);
  if (!(given >= 0 && given <= countable)) throw nb::cast_error();
  return std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(given));
}

void add_errors(nb::module_& to);
void add_dataset(nb::module_& to);
void add_joins(nb::module_& to);
void add_fields(nb::module_& to);
void add_targets(nb::module_& to);
void add_orders(nb::module_& to);
void add_batch(nb::module_& to);
void add_loader(nb::module_& to);
void add_command(nb::module_& to);

}  // namespace pyleat
