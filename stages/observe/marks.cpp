#include "stages/observe/marks.hpp"

#include <algorithm>

namespace leat::stages {
namespace {

// Not in the middle of a letter.
std::string_view cut(std::string_view name) {
  if (name.size() <= marks::name_bytes_max) return name;
  std::size_t bytes = marks::name_bytes_max;
  while (bytes > 0 && (static_cast<unsigned char>(name[bytes]) & 0xc0U) == 0x80U) --bytes;
  return name.substr(0, bytes);
}

}  // namespace

// A trainer has a few names: looking through them is faster than a table.
std::uint32_t marks::number_of(std::string_view name) {
  const std::string_view kept = cut(name);
  const mutex_lock lock(mutex_);
  const auto found = std::find(names_.begin(), names_.end(), kept);
  const auto number = static_cast<std::uint32_t>(found - names_.begin());
  if (found == names_.end() && number <= names_max) names_.emplace_back(number < names_max ? kept : other_names);
  return std::min<std::uint32_t>(number, names_max);
}

void marks::add(std::uint32_t name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
  const mutex_lock lock(mutex_);
  track_.add({.of = activity::mark, .begin_ns = begin_ns, .end_ns = end_ns, .row = name});
}

std::vector<std::string> marks::names() const {
  const mutex_lock lock(mutex_);
  return names_;
}

}  // namespace leat::stages
