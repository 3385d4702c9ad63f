// leat::error as exceptions of Python: one class for each errc, which is also the builtin that it resembles.
#include "module.hpp"

#include <leat/error.hpp>

#include <exception>

namespace pyleat {
namespace {

// In the order of errc. Their classes are made in pyleat/_errors.py, where several bases are a line.
constexpr std::array<const char*, 12> classes = {
    "UsageError",       "NotFoundError", "PermissionDeniedError", "ReadError",    "LimitError",    "FormatError",
    "UnsupportedError", "DeviceError",   "CorruptError",          "ChangedError", "CallbackError", "CancelledError"};

// Messages spell an option loader_options::batch_size, or table_options::root; here it is a keyword, batch_size=, root=.
std::string in_python(std::string text) {
  constexpr std::string_view options = "_options::";
  const auto is_of_name = [](char each) { return each == '_' || (each >= 'a' && each <= 'z'); };
  for (std::size_t at = text.find(options); at != std::string::npos; at = text.find(options, at)) {
    std::size_t begin = at;
    while (begin > 0 && is_of_name(text[begin - 1])) --begin;
    // Those of a timeline are keywords of the loader: timeline_bytes=.
    const bool of_timeline = text.compare(begin, at - begin, "timeline") == 0;
    text.erase(begin, at + options.size() - begin);
    if (of_timeline) text.insert(begin, "timeline_");
    at = begin;
    while (at < text.size() && is_of_name(text[at])) ++at;
    // "on_corrupt = skip"
    if (text.compare(at, 3, " = ") == 0) text.erase(at, 3);
    text.insert(at, "=");
  }
  return text;
}

void translate(const std::exception_ptr& failure, void*) {
  try {
    std::rethrow_exception(failure);
  } catch (const leat::error& wrong) {
    const auto number = static_cast<std::size_t>(wrong.code());
    const nb::object classes_of_python = nb::module_::import_("pyleat._errors");
    const nb::object type = classes_of_python.attr(number < classes.size() ? classes[number] : "Error");
    PyErr_SetString(type.ptr(), in_python(wrong.what()).c_str());
  }
}

}  // namespace

void add_errors(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace pyleat
