#include "datasets/member_key.hpp"

#include <algorithm>
#include <cstddef>

namespace leat::datasets {

std::string encode_key(std::string_view stem) {
  const std::size_t base = stem.rfind('/') + 1;  // npos + 1 is 0.
  std::string key;
  key.reserve(stem.size() + 8);
  for (std::size_t i = 0; i < stem.size(); ++i) {
    if (stem[i] == '%') {
      key += "%25";
    } else if (stem[i] == '.' && i >= base) {
      key += "%2E";
    } else {
      key += stem[i];
    }
  }
  if (base == stem.size()) key += '%';
  return key;
}

std::string number_key(std::string_view key, std::uint64_t n) {
  std::string numbered(key);
  if (n > 0) numbered += "%~" + std::to_string(n);
  return numbered;
}

std::string decode_key(std::string_view key) {
  if (const std::size_t mark = key.rfind("%~"); mark != std::string_view::npos && mark + 2 < key.size()) {
    const std::string_view digits = key.substr(mark + 2);
    if (std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
      key = key.substr(0, mark);
  }
  std::string stem;
  stem.reserve(key.size());
  for (std::size_t i = 0; i < key.size(); ++i) {
    const std::string_view escape = key.substr(i, 3);
    if (escape == "%2E" || escape == "%25") {
      stem += escape == "%2E" ? '.' : '%';
      i += 2;
    } else if (key[i] == '%' && i + 1 == key.size() && (i == 0 || key[i - 1] == '/')) {
      continue;
    } else {
      stem += key[i];
    }
  }
  return stem;
}

}  // namespace leat::datasets
