// Lists of texts and of bytes in an Arrow batch, each as a list of JSON.
#pragma once

#include "datasets/formats/arrow/arrow_file.hpp"
#include "datasets/model/value_blocks.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// What a batch has of such a column.
///   validities   of the structs that it is in, and its own; an empty one says that nothing is null
///   offsets      of lists of any length
///   element_validity, element_offsets, values   of the elements
struct arrow_list_buffers {
  std::vector<std::vector<std::byte>> validities;
  std::vector<std::byte> offsets;
  std::vector<std::byte> element_validity;
  std::vector<std::byte> element_offsets;
  std::vector<std::byte> values;
};

/// Calls row(whether it is there) before each row's pieces, and piece(text) for these.
///   returns   what is damaged
[[nodiscard]] std::optional<std::string> write_lists(const arrow_column& column, std::uint64_t rows,
                                                     const arrow_list_buffers& from,
                                                     const std::function<void(bool)>& row,
                                                     const std::function<void(std::string_view)>& piece);

/// Buffers of a block lie side by side in the file, in the order of arrow_list_buffers.
class arrow_list_expander final : public block_expander {
 public:
  ///   buffers   by their places in the block
  struct lists {
    arrow_codec codec = arrow_codec::none;
    std::uint64_t rows = 0;
    std::vector<arrow_buffer> buffers;
  };
  arrow_list_expander(std::vector<lists> blocks, arrow_column column)
      : blocks_(std::move(blocks)), column_(std::move(column)) {}

  std::optional<std::string> expand(std::size_t block, std::span<const std::byte> stored,
                                    std::span<const std::uint32_t> ends, std::span<std::byte> decoded) const override;

 private:
  std::vector<lists> blocks_;
  arrow_column column_;
};

}  // namespace leat::datasets
