// What a packed order knows beside its picks. Its batches are packed rows: rows of one length, in which pieces of samples lie end to
// end. A pick is one piece; it is found again from its draw, which is its place in the epoch, in tokens.
#pragma once

#include "stages/batch/packed_piece.hpp"

#include <leat/sampler.hpp>
#include <leat/world.hpp>

#include <cstdint>
#include <vector>

namespace leat::stages {

/// Thread: const calls from any number of threads.
class packing {
 public:
  /// Of each row.
  [[nodiscard]] virtual std::uint32_t row_tokens() const noexcept = 0;
  /// What stands where no token is.
  [[nodiscard]] virtual std::int64_t pad() const noexcept = 0;
  /// Of a global batch: how many rows, and the epoch's number of the first.
  [[nodiscard]] virtual std::uint32_t packed_rows(std::uint32_t epoch, std::uint64_t batch) const = 0;
  [[nodiscard]] virtual std::uint64_t first_row(std::uint32_t epoch, std::uint64_t batch) const = 0;
  [[nodiscard]] virtual std::uint32_t packed_rows_max() const noexcept = 0;
  /// The most pieces of so many rows that follow one another.
  [[nodiscard]] virtual std::uint32_t pieces_max(std::uint32_t rows) const = 0;
  /// Appends the pieces of the epoch's rows [first, end), as they lie there.
  virtual void pieces(std::uint32_t epoch, std::uint64_t first, std::uint64_t end,
                      std::vector<packed_piece>& out) const = 0;
  ///   chosen   by pieces()
  [[nodiscard]] virtual packed_piece piece_of(const pick& chosen) const = 0;
  /// That were counted of a sample.
  [[nodiscard]] virtual std::uint32_t tokens_of(std::uint64_t sample) const noexcept = 0;
  /// Whether one that is longer than a row lies in as many rows as it takes.
  [[nodiscard]] virtual bool cuts_or_splits() const noexcept = 0;

 protected:
  ~packing() = default;
};

/// A rank's share: global batches are cut between rows.
class rank_packing {
 public:
  rank_packing(const packing& of, const leat::world& world) noexcept : of_(&of), world_(world) {}

  [[nodiscard]] const packing& of() const noexcept { return *of_; }
  /// Its rows of a batch.
  [[nodiscard]] std::uint32_t rows(std::uint32_t epoch, std::uint64_t batch) const {
    const std::uint32_t all = of_->packed_rows(epoch, batch);
    return world_.row_end(all) - world_.row_begin(all);
  }
  [[nodiscard]] std::uint32_t rows_max() const noexcept { return world_.rows_max(of_->packed_rows_max()); }
  [[nodiscard]] std::uint32_t pieces_max() const { return of_->pieces_max(rows_max()); }
  /// Those of its rows of a batch, numbered from 0. Replaces `out`.
  void pieces(std::uint32_t epoch, std::uint64_t batch, std::vector<packed_piece>& out) const {
    const std::uint32_t all = of_->packed_rows(epoch, batch);
    const std::uint64_t first = of_->first_row(epoch, batch) + world_.row_begin(all);
    out.clear();
    of_->pieces(epoch, first, first + rows(epoch, batch), out);
    for (packed_piece& each : out) each.row -= first;
  }

 private:
  const packing* of_;
  leat::world world_;
};

}  // namespace leat::stages
