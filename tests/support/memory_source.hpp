// A source that is no files of a disk: objects in memory.
#pragma once

#include "io/files/source.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {

/// Filled before it is connected.
class memory_source final : public io::source_description {
 public:
  /// Returns the object's number.
  std::uint32_t add(std::string name, std::vector<std::byte> content);
  std::uint32_t add(std::string name, std::string_view content);

  [[nodiscard]] std::unique_ptr<io::source> connect(io::connector& loop) const override;
  [[nodiscard]] std::uint32_t files() const override { return static_cast<std::uint32_t>(objects_.size()); }
  [[nodiscard]] std::string file_name(std::uint32_t file) const override { return objects_[file].name; }

 private:
  friend class connected_memory;
  struct object {
    std::string name;
    std::vector<std::byte> content;
  };
  std::vector<object> objects_;
};

}  // namespace leat::testing
