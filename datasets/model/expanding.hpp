// How the bytes of a part become the sample's value, where they are not the value itself.
#pragma once

#include "base/corrupt_kind.hpp"
#include "datasets/model/part.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace leat::datasets {

/// Thread-safe: several decode threads call it at once, and so do readers of single samples.
class expanding_facet {
 public:
  /// Expands a part. Damaged bytes concern only the samples that use them.
  ///   sample    that the part is of: views find the part's dataset by it
  ///   stored    the bytes of the part, as they were read: part.where.stored_bytes of them
  ///   decoded   part.where.decoded_bytes bytes; all are written, or there is a reason. Of a `coded` part there may be fewer:
  ///             then it is shortened to those
  ///   returns   the reason for a failure; nothing on success
  [[nodiscard]] virtual std::optional<value_fault> expand(std::uint64_t sample, const part& of,
                                                          std::span<const std::byte> stored,
                                                          std::span<std::byte>& decoded) const = 0;

  /// Copies the sample's elements from an expanded block to their places in `bytes`.
  ///   of        a part that lies in a block
  ///   within    need::within, as given to parts()
  ///   decoded   what expand() made
  ///   bytes     all that is wanted of the sample, dense. Bytes of other parts are left alone
  ///   default   never called for a model without blocks
  virtual void copy_box(std::uint64_t sample, const part& of, const box* within, std::span<const std::byte> decoded,
                        std::span<std::byte> bytes) const;

  /// Takes the sample's value out of an expanded block.
  ///   of        a `value`
  ///   bytes     part.value_bytes of them; shortened where the value is picked out of a record
  ///   returns   the reason why there is none
  ///   default   copy_box()
  [[nodiscard]] virtual std::optional<value_fault> take_value(std::uint64_t sample, const part& of,
                                                              std::span<const std::byte> decoded,
                                                              std::span<std::byte>& bytes) const;

 protected:
  ~expanding_facet() = default;
};

}  // namespace leat::datasets
