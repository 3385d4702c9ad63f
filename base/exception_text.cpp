#include "base/exception_text.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <typeinfo>

namespace leat {
namespace {

std::string type_of_current() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "an exception of another language";
  struct free_text {
    void operator()(char* text) const noexcept { std::free(text); }
  };
  int failure = 0;
  const std::unique_ptr<char, free_text> readable(abi::__cxa_demangle(type->name(), nullptr, nullptr, &failure));
  return failure == 0 && readable ? readable.get() : type->name();
}

}  // namespace

std::string current_exception_text() {
  std::string text = type_of_current();
  try {
    throw;
  } catch (const std::exception& known) {
    text += ": ";
    text += known.what();
  } catch (...) {  // No words of its own.
  }
  return text;
}

}  // namespace leat
