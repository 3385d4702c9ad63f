// Takes one value out of a record that has several: a key of a line of JSON, a column of a line of CSV, a feature of an Example.
#pragma once

#include "base/corrupt_kind.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::datasets {

class value_picker {
 public:
  value_picker() = default;
  value_picker(const value_picker&) = delete;
  value_picker& operator=(const value_picker&) = delete;
  virtual ~value_picker() = default;

  /// The most bytes that a value of such a record may have.
  [[nodiscard]] virtual std::uint64_t room(std::uint64_t record_bytes) const noexcept { return record_bytes; }

  /// Thread-safe. Numbers become text, as leat::label reads them.
  ///   into      has room() bytes; shortened to what was written
  ///   returns   the reason why there is none
  [[nodiscard]] virtual std::optional<value_fault> pick(std::span<const std::byte> record,
                                                        std::span<std::byte>& into) const = 0;

  /// What it picks, for dataset_model::describe().
  [[nodiscard]] virtual std::string what() const = 0;
};

}  // namespace leat::datasets
