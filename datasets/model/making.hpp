// Values that nobody reads: a function or a coroutine makes them, or they lie in memory.
#pragma once

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::datasets {

/// It has one of them, or both.
class making_facet {
 public:
  /// Bytes of a `produced` part: either a view of memory that lives as long as the model, or `scratch`, which
  /// the call has resized and filled. Thread: decode threads, several at once. Whatever it throws concerns this sample.
  [[nodiscard]] virtual std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                                           std::vector<std::byte>& scratch) const;
  /// Bytes of `awaited` parts of a sample, in the order of `fields`, all of one fetch_group(). Thread: I/O thread.
  /// Cancellation: as the coroutine honours it.
  [[nodiscard]] virtual boost::asio::awaitable<std::vector<std::vector<std::byte>>> fetch(
      std::uint64_t sample, std::vector<std::uint16_t> fields) const;
  /// Which fields of a sample one call of fetch() gives: those of one group, which has the number of one of them.
  ///   default   each field is a group
  [[nodiscard]] virtual std::uint16_t fetch_group(std::uint64_t sample, std::uint16_t field) const;

 protected:
  ~making_facet() = default;
};

}  // namespace leat::datasets
