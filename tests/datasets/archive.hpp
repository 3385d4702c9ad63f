// Archives block by block, for shards that no writer would write.
#pragma once

#include "datasets/tar_header.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {

class archive {
 public:
  /// What stands in a header; `size` is written as it is, true or not.
  struct header {
    std::string name;
    char type = '0';
    std::uint64_t size = 0;
    std::string prefix = {};
    std::string link = {};
    bool gnu = false;
    bool base256 = false;
  };

  archive& add(const header& h) {
    std::string block(512, '\0');
    const auto put = [&](std::size_t at, std::string_view text) {
      std::copy(text.begin(), text.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
    };
    put(0, std::string_view(h.name).substr(0, 100));
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    if (h.base256) {
      block[124] = '\x80';
      for (std::size_t i = 0; i < 8; ++i) block[135 - i] = static_cast<char>(h.size >> (8 * i));
    } else {
      char digits[16];
      std::snprintf(digits, sizeof digits, "%011llo", static_cast<unsigned long long>(h.size));
      put(124, std::string_view(digits, 11));
    }
    put(136, "00000000000");
    block[156] = h.type;
    put(157, h.link);
    put(257, h.gnu ? std::string_view("ustar  \0", 8)
                   : std::string_view("ustar\0"
                                      "00",
                                      8));
    put(345, h.prefix);
    put(148, "        ");
    unsigned sum = 0;
    for (const char value : block) sum += static_cast<unsigned char>(value);
    char digits[16];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    put(148, std::string_view(digits, 7));  // With the NUL; the blank behind it is there.
    bytes_ += block;
    return *this;
  }

  archive& content(std::string_view text) {
    bytes_ += text;
    bytes_.resize(datasets::tar_padded(bytes_.size()), '\0');
    return *this;
  }

  archive& file(const std::string& name, std::string_view text) {
    return add({.name = name, .size = text.size()}).content(text);
  }

  /// A GNU long name, or a pax header, for what follows.
  archive& extension(char type, std::string_view text) {
    return add({.name = "extension", .type = type, .size = text.size()}).content(text);
  }
  archive& long_name(const std::string& name) {
    return extension('L', std::string_view(name.c_str(), name.size() + 1));
  }
  archive& pax(std::initializer_list<std::pair<std::string, std::string>> records, char type = 'x') {
    std::string text;
    for (const auto& [key, value] : records) {
      const std::size_t rest = key.size() + value.size() + 3;
      std::size_t length = rest + 1;
      while (rest + std::to_string(length).size() != length) length = rest + std::to_string(length).size();
      text += std::to_string(length) + " " + key + "=" + value + "\n";
    }
    return extension(type, text);
  }

  archive& end() {
    bytes_.append(1024, '\0');
    return *this;
  }
  archive& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  archive& cut_to(std::size_t bytes) {
    bytes_.resize(bytes);
    return *this;
  }

  [[nodiscard]] std::string& bytes() noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }

  /// Writes it and returns the path.
  std::string save(const std::filesystem::path& path) const {
    std::ofstream out(path, std::ios::binary);
    out << bytes_;
    return path.string();
  }

 private:
  std::string bytes_;
};

}  // namespace leat::testing
