// An epoch of so many rows, cut into batches of one size: which places of the epoch are whose rows.
#pragma once

#include <leat/sampler.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace leat::stages {

/// As --last has it, and descriptions.
[[nodiscard]] constexpr std::string_view name_of(last_batch last) noexcept {
  constexpr std::string_view names[] = {"keep", "drop", "pad"};
  return names[static_cast<std::size_t>(last)];
}

class batch_cut {
 public:
  batch_cut(std::uint64_t places, std::uint32_t batch_size, last_batch last) noexcept
      : places_(places), batch_size_(batch_size), last_(last) {}

  [[nodiscard]] std::uint64_t batches() const noexcept {
    return places_ / batch_size_ + (last_ != last_batch::drop && places_ % batch_size_ != 0 ? 1 : 0);
  }
  [[nodiscard]] std::uint32_t rows(std::uint64_t batch) const noexcept {
    assert(batch < batches());
    return last_ == last_batch::pad ? batch_size_ : of_its_own(batch);
  }
  [[nodiscard]] std::uint32_t padded(std::uint64_t batch) const noexcept { return rows(batch) - of_its_own(batch); }
  /// At least 1, though there be no batch.
  [[nodiscard]] std::uint32_t rows_max() const noexcept {
    if (last_ == last_batch::pad && places_ != 0) return batch_size_;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(batch_size_, std::max<std::uint64_t>(places_, 1)));
  }
  /// Of all batches, padded ones among them.
  [[nodiscard]] std::uint64_t rows_of_all() const noexcept {
    return last_ == last_batch::keep ? places_ : batches() * batch_size_;
  }
  /// Places that are rows of some batch.
  [[nodiscard]] std::uint64_t places_used() const noexcept {
    return last_ == last_batch::drop ? batches() * batch_size_ : places_;
  }

  /// Calls of(first place, their part of `out`) for each run of neighbouring places that rows row_begin and so on of the batch are.
  template <class Row, class Of>
  void for_places(std::uint64_t batch, std::uint32_t row_begin, std::span<Row> out, const Of& of) const {
    std::uint64_t place = batch * batch_size_ + row_begin;
    if (place >= places_ && places_ != 0) place %= places_;  // Padded rows: from the epoch's beginning.
    while (!out.empty()) {
      const auto run = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), places_ - place));
      of(place, out.first(run));
      out = out.subspan(run);
      place = 0;
    }
  }

 private:
  [[nodiscard]] std::uint32_t of_its_own(std::uint64_t batch) const noexcept {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(batch_size_, places_ - batch * batch_size_));
  }

  std::uint64_t places_;
  std::uint32_t batch_size_;
  last_batch last_;
};

}  // namespace leat::stages
