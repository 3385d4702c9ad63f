// leat::error as exceptions of Python: one class for each errc, which is also the builtin that it resembles.
#include "module.hpp"

#include <leat/error.hpp>

#include <array>
#include <exception>
#include <string_view>

namespace pyleat {
namespace {

// In the order of errc. Their classes are made in pyleat/_errors.py, where several bases are a line.
constexpr std::array<const char*, 12> classes = {
    "UsageError",       "NotFoundError", "PermissionDeniedError", "ReadError",    "LimitError",    "FormatError",
    "UnsupportedError", "DeviceError",   "CorruptError",          "ChangedError", "CallbackError", "CancelledError"};

void translate(const std::exception_ptr& failure, void*) {
  try {
    std::rethrow_exception(failure);
  } catch (const leat::error& wrong) {
    const auto number = static_cast<std::size_t>(wrong.code());
    const nb::object classes_of_python = nb::module_::import_("pyleat._errors");
    const nb::object type = classes_of_python.attr(number < classes.size() ? classes[number] : "Error");
    // Names of files need not be UTF-8.
    const std::string_view text = wrong.what();
    const nb::object words =
        nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    PyErr_SetObject(type.ptr(), classes_of_python.attr("in_python")(words).ptr());
  }
}

}  // namespace

void add_errors(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace pyleat
