// Objects of a registered store, as a source: each read is a coroutine of the store's.
#pragma once

#include "io/files/source.hpp"

#include <leat/object_store.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::io {

class store_description final : public source_description {
 public:
  ///   throws   error{errc::usage} an address that is not of the first one's store
  explicit store_description(std::span<const std::string> addresses);

  [[nodiscard]] std::unique_ptr<source> connect(connector& loop) const override;
  [[nodiscard]] std::uint32_t files() const override { return static_cast<std::uint32_t>(names_.size()); }
  [[nodiscard]] std::string file_name(std::uint32_t file) const override { return scheme_ + names_[file]; }
  [[nodiscard]] const std::string& name_in_store(std::uint32_t file) const noexcept { return names_[file]; }
  [[nodiscard]] const object_store& store() const noexcept { return *store_; }
  /// What look_at() told last; unknown before it was asked.
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};
  void saw_size(std::uint32_t file, std::uint64_t bytes) const noexcept { sizes_[file].bytes = bytes; }
  [[nodiscard]] std::uint64_t size_bytes(std::uint32_t file) const noexcept { return sizes_[file].bytes; }

 private:
  std::shared_ptr<const object_store> store_;
  std::string scheme_;
  std::vector<std::string> names_;
  struct seen_size {
    std::atomic<std::uint64_t> bytes = unknown;
  };
  std::unique_ptr<seen_size[]> sizes_;
};

}  // namespace leat::io
