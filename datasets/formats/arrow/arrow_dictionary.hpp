// Columns of Arrow whose values are numbers of a dictionary's: expanded a batch at a time.
#pragma once

#include "datasets/formats/arrow/arrow_file.hpp"
#include "datasets/model/value_blocks.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// The values of a dictionary, one after another.
class arrow_values {
 public:
  ///   value    nullopt: a null
  ///   offset   in the file, where it lies there as it is
  void add(std::optional<std::string_view> value, std::uint64_t offset);

  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] bool is_there(std::size_t number) const noexcept { return is_there_[number]; }
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t number) const noexcept {
    const std::uint64_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::span(bytes_).subspan(begin, ends_[number] - begin);
  }
  [[nodiscard]] std::string_view text(std::size_t number) const noexcept {
    const std::span<const std::byte> value = (*this)[number];
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }
  [[nodiscard]] std::uint64_t offset(std::size_t number) const noexcept { return offsets_[number]; }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint64_t> offsets_;
  std::vector<bool> is_there_;
};

/// The number at a place among a buffer's: of a row that is there, else of any bits.
[[nodiscard]] std::int64_t arrow_index(std::span<const std::byte> indices, dtype type, std::uint64_t row);

/// Writes the values that a batch's numbers mean. What is read of a block are the numbers, which may be packed.
class arrow_dictionary_expander final : public block_expander {
 public:
  ///   bytes   that the buffer of numbers becomes
  struct numbers {
    arrow_codec codec = arrow_codec::none;
    std::uint64_t bytes = 0;
    std::shared_ptr<const arrow_values> values;
  };
  arrow_dictionary_expander(std::vector<numbers> blocks, dtype type) : blocks_(std::move(blocks)), type_(type) {}

  std::optional<std::string> expand(std::size_t block, std::span<const std::byte> stored,
                                    std::span<const std::uint32_t> ends, std::span<std::byte> decoded) const override;

 private:
  std::vector<numbers> blocks_;
  dtype type_;
};

}  // namespace leat::datasets
