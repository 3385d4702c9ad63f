// Shards for tests in one row of calls, and cut and damaged as no writer would write them. The blocks are tar_writer's.
#pragma once

#include "tests/support/tar_writer.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::testing {

class archive {
 public:
  archive& file(std::string name, std::string_view text) {
    return add({.name = std::move(name), .contents = bytes_of_text(text)});
  }
  archive& add(const tar_entry& entry, tar_dialect dialect = tar_dialect::gnu) {
    tar_writer one(dialect);
    one.add(entry);
    return raw(one);
  }
  archive& global_pax(const std::vector<std::pair<std::string, std::string>>& records) {
    tar_writer one(tar_dialect::pax);
    one.add_global_pax(records);
    return raw(one);
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
  archive& raw(const tar_writer& one) {
    return raw(std::string_view(reinterpret_cast<const char*>(one.bytes().data()), one.bytes().size()));
  }

  std::string bytes_;
};

}  // namespace leat::testing
