// A batch as a trainer sees it, and its digest taken from the bytes that lie there: what content_digest() promises.
#pragma once

#include "stages/state/digest.hpp"

#include <leat/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

/// Pointers and shapes, good until the batch's memory is written again.
class batch_view {
 public:
  explicit batch_view(const batch& from) : epoch_(from.epoch()), index_(from.index()), rows_(from.valid_rows()) {
    ids_.assign(from.ids().begin(), from.ids().end());
    const auto names = from.outputs();
    for (std::size_t i = 0; i < names.size(); ++i) {
      output seen{.name = names[i], .values = from[names[i]], .offsets = nullptr};
      if (i + 1 < names.size() && names[i + 1] == names[i] + ".offsets") {
        seen.offsets = static_cast<const std::byte*>(from[names[++i]].data);
      }
      outputs_.push_back(std::move(seen));
    }
    // Rows that are padded: `x` and `x.mask`, beside `x.length`.
    for (output& each : outputs_) {
      const std::string of = each.name.substr(0, each.name.rfind(".mask")) + ".length";
      for (std::size_t i = 0; i < outputs_.size(); ++i) {
        if (outputs_[i].name == of) each.lengths = i;
      }
    }
  }

  /// As content_digest(), from the bytes as they are now. Rows that cannot be right count as empty.
  [[nodiscard]] digest content() const {
    std::vector<digest> rows;
    for (std::uint32_t row = 0; row < rows_; ++row) {
      std::vector<stages::row_output> parts;
      for (const output& each : outputs_) {
        const auto* const data = static_cast<const std::byte*>(each.values.data);
        if (each.offsets != nullptr) {
          std::int64_t bounds[2];
          std::memcpy(bounds, each.offsets + row * sizeof(std::int64_t), sizeof bounds);
          const bool sane = bounds[0] >= 0 && bounds[1] >= bounds[0] && bounds[1] <= each.values.shape[0];
          dimensions shape = each.values.shape;
          shape[0] = 1;
          const std::size_t element_bytes = static_cast<std::size_t>(shape.elements()) * size_bytes(each.values.type);
          const auto begin = sane ? static_cast<std::size_t>(bounds[0]) : 0;
          const auto count = sane ? static_cast<std::size_t>(bounds[1] - bounds[0]) : 0;
          const std::span<const std::byte> bytes(data + begin * element_bytes, count * element_bytes);
          shape[0] = static_cast<std::int64_t>(count);
          parts.push_back({each.name, each.values.type, shape, bytes});
        } else if (each.lengths) {
          std::int64_t count = 0;
          const auto* const lengths = static_cast<const std::byte*>(outputs_[*each.lengths].values.data);
          std::memcpy(&count, lengths + row * sizeof count, sizeof count);
          if (count < 0 || count > each.values.shape[1]) count = 0;
          const std::size_t element_bytes = size_bytes(each.values.type);
          const std::size_t row_bytes = static_cast<std::size_t>(each.values.shape[1]) * element_bytes;
          parts.push_back({each.name,
                           each.values.type,
                           {count},
                           {data + row * row_bytes, static_cast<std::size_t>(count) * element_bytes}});
        } else {
          dimensions shape;
          for (std::size_t axis = 1; axis < each.values.shape.size(); ++axis) shape.push_back(each.values.shape[axis]);
          const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * size_bytes(each.values.type);
          parts.push_back({each.name, each.values.type, shape, {data + row * bytes, bytes}});
        }
      }
      rows.push_back(stages::row_digest(ids_[row], parts));
    }
    return stages::batch_digest(epoch_, index_, rows);
  }

  /// All that it looks at, tensor by tensor: between them lies what nobody may have written.
  [[nodiscard]] std::vector<std::span<const std::byte>> tensors() const {
    std::vector<std::span<const std::byte>> all;
    for (const output& each : outputs_) {
      all.push_back({static_cast<const std::byte*>(each.values.data), each.values.bytes()});
      if (each.offsets != nullptr) all.push_back({each.offsets, (std::size_t{rows_} + 1) * sizeof(std::int64_t)});
    }
    return all;
  }

  /// From the first tensor to the end of the last: one range of the batch's block.
  [[nodiscard]] std::span<const std::byte> bytes() const {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    for (const std::span<const std::byte> each : tensors()) {
      if (begin == nullptr || each.data() < begin) begin = each.data();
      if (end == nullptr || each.data() + each.size() > end) end = each.data() + each.size();
    }
    return {begin, end};
  }

  /// The same view of a copy of bytes() that begins at `copy`.
  [[nodiscard]] batch_view in(const std::byte* copy) const {
    batch_view moved = *this;
    const std::byte* const from = bytes().data();
    for (output& each : moved.outputs_) {
      each.values.data = const_cast<std::byte*>(copy + (static_cast<const std::byte*>(each.values.data) - from));
      each.values.where = host;
      if (each.offsets != nullptr) each.offsets = copy + (each.offsets - from);
    }
    return moved;
  }

 private:
  struct output {
    std::string name;
    tensor values;
    const std::byte* offsets = nullptr;
    std::optional<std::size_t> lengths = {};  // the output that has them
  };
  std::uint32_t epoch_;
  std::uint64_t index_;
  std::uint32_t rows_;
  std::vector<std::uint64_t> ids_;
  std::vector<output> outputs_;
};

}  // namespace leat::testing
