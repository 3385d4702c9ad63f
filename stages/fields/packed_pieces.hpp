// What fields share whose rows are pieces of packed rows: their outputs, and what lies in a piece.
#pragma once

#include "stages/batch/field_program.hpp"
#include "stages/fields/long_texts.hpp"
#include "stages/order/packing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

/// A token as i32 has it, in the bits of a u32.
using token_list = std::vector<std::uint32_t>;

/// Thread: const calls from any number of threads.
class packed_pieces {
 public:
  ///   by     lives as long as this
  ///   what   "tokenize 'text'", for errors
  ///   type   i32 or i64
  ///   fill   what stands where no token is; without it the order's pad
  ///   throws   error{errc::usage}: a batch of more tokens than places can say, a fill that is no i32
  packed_pieces(const rank_packing& by, const std::string& what, std::string name, dtype type,
                std::optional<std::int64_t> fill = {});

  /// The tensor of tokens; and where they lie, which is said by one field of a loader.
  void add_outputs(std::vector<output_spec>& to, bool with_places) const;
  /// One more number for each token, which finish() leaves to the field.
  void add_output_of_batch(std::vector<output_spec>& to, std::string name) const;

  /// Of a sample that lies in a row or two, what is read with its neighbours costs less than what is kept for all its rows.
  [[nodiscard]] bool fetches(std::uint64_t sample) const {
    return of_->of().cuts_or_splits() &&
           of_->of().tokens_of(sample) > std::max<std::uint64_t>(2 * of_->of().row_tokens(), long_tokens);
  }
  [[nodiscard]] bool may_fetch() const noexcept { return of_->of().cuts_or_splits(); }

  /// Those of a sample's tokens that are the piece's.
  ///   all   of the sample
  [[nodiscard]] outcome<void> write(std::span<const std::uint32_t> all, const decode_input& input,
                                    row_target& to) const;
  /// Fills what no token fills, and makes the outputs that say where tokens lie, if they are there.
  void finish(finished_rows& all, bool with_places) const;
  [[nodiscard]] std::size_t tokens(const finished_rows& all) const noexcept {
    return std::size_t{all.packed_rows()} * of_->of().row_tokens();
  }
  [[nodiscard]] dimensions shape(const finished_rows& all) const {
    return {std::int64_t{all.packed_rows()}, std::int64_t{of_->of().row_tokens()}};
  }
  /// Writes one of the outputs' type; returns where the next one goes.
  std::byte* put(std::byte* at, std::int64_t value) const;

 private:
  // A shorter one is made once a row.
  static constexpr std::uint64_t long_tokens = 4096;

  const rank_packing* of_;
  std::string name_;
  dtype type_;
  std::int64_t fill_;
  std::size_t tokens_max_ = 0;  // of a batch
};

}  // namespace leat::stages
