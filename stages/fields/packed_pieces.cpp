#include "stages/fields/packed_pieces.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

namespace leat::stages {
namespace {

std::int32_t* places_in(finished_rows& all, std::size_t output) {
  return reinterpret_cast<std::int32_t*>(all.room(output).data());
}

/// Where the tokens of a batch lie, said from its first row on.
///   said   so many tokens
struct token_places {
  std::int32_t* positions = nullptr;
  std::int32_t* documents = nullptr;
  std::int32_t* cu_seqlens = nullptr;
  std::size_t said = 0;
  std::size_t sequences = 0;
  std::int32_t longest = 0;

  void end_sequence(std::size_t end) {
    longest = std::max(longest, static_cast<std::int32_t>(end - said));
    said = end;
    cu_seqlens[sequences++] = static_cast<std::int32_t>(end);
  }
  /// What no token fills, up to a place: of each row a sequence.
  void end_gap(std::size_t end, std::size_t length) {
    while (said < end) {
      const std::size_t until = std::min(end, (said / length + 1) * length);
      std::fill(positions + said, positions + until, 0);
      std::fill(documents + said, documents + until, -1);
      end_sequence(until);
    }
  }
  void end_piece(const placed_piece& each) {
    std::iota(positions + each.begin, positions + each.begin + each.count, 0);
    std::fill_n(documents + each.begin, each.count, static_cast<std::int32_t>(each.document));
    end_sequence(each.begin + each.count);
  }
};

}  // namespace

packed_pieces::packed_pieces(const rank_packing& by, const std::string& what, std::string name, dtype type,
                             std::optional<std::int64_t> fill)
    : of_(&by), name_(std::move(name)), type_(type), fill_(fill.value_or(by.of().pad())) {
  const std::size_t length = by.of().row_tokens();
  const std::uint64_t tokens = std::uint64_t{by.rows_max()} * length;
  if (tokens > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    throw error(errc::usage,
                str_cat(what, ": ", by.rows_max(), " packed rows of ", length,
                        " tokens in a batch, whose places are i32; lower ", spelled(option_id::batch_size)),
                option_id::batch_size);
  }
  tokens_max_ = static_cast<std::size_t>(tokens);
  if (type_ == dtype::i32 && !std::in_range<std::int32_t>(fill_)) {
    throw error(errc::usage, str_cat(what, ": ", fill ? "the value " : "the order's pad ", fill_, " is no i32"));
  }
}

void packed_pieces::add_outputs(std::vector<output_spec>& to, bool with_places) const {
  const std::size_t length = of_->of().row_tokens();
  to.push_back({.name = name_,
                .type = type_,
                .ragged = true,
                .of_batch_bytes = tokens_max_ * size_bytes(type_),
                .packed_tokens = length});
  if (!with_places) return;
  // Each piece is a sequence, and so is what lies between two, or behind the last of a row.
  const std::size_t sequences = std::min(2 * std::size_t{of_->pieces_max()} + of_->rows_max(), tokens_max_);
  const auto add = [&](std::string_view name, std::size_t elements) {
    to.push_back({.name = str_cat(name_, name),
                  .type = dtype::i32,
                  .ragged = true,
                  .of_batch = true,
                  .of_batch_bytes = elements * sizeof(std::int32_t)});
  };
  add(".positions", tokens_max_);
  add(".documents", tokens_max_);
  add(".cu_seqlens", sequences + 1);
  add(".max_seqlen", 1);
}

void packed_pieces::add_output_of_batch(std::vector<output_spec>& to, std::string name) const {
  to.push_back({.name = std::move(name),
                .type = type_,
                .ragged = true,
                .of_batch = true,
                .of_batch_bytes = tokens_max_ * size_bytes(type_)});
}

outcome<void> packed_pieces::write(std::span<const std::uint32_t> all, const decode_input& input,
                                   row_target& to) const {
  const packing& by = of_->of();
  const std::uint32_t counted = by.tokens_of(input.sample);
  if (all.size() != counted) {
    return corrupt(str_cat("has ", all.size(), " tokens, and had ", counted,
                           " when they were counted: the samples have changed since, or were damaged"));
  }
  const std::size_t count = to.bytes.size() / size_bytes(type_);
  // Of a whole sample nothing has to be found.
  const std::uint64_t first =
      count == counted ? 0 : by.piece_of({.sample = input.sample, .draw = input.draw, .epoch = input.epoch}).first;
  assert(first + count <= all.size());
  std::byte* at = to.bytes.data();
  for (const std::uint32_t token : all.subspan(first, count)) at = put(at, static_cast<std::int32_t>(token));
  to.used = to.bytes.size();
  return {};
}

void packed_pieces::finish(finished_rows& all, bool with_places) const {
  const std::size_t end = tokens(all);
  const std::span<std::byte> ids = all.room(0);
  std::size_t filled = 0;
  const auto fill_to = [&](std::size_t place) {
    std::byte* at = ids.data() + filled * size_bytes(type_);
    for (std::size_t i = filled; i < place; ++i) at = put(at, fill_);
  };
  for (const placed_piece& each : all.pieces()) {
    fill_to(each.begin);
    filled = each.begin + each.count;
  }
  fill_to(end);
  all.made(0, shape(all));
  if (!with_places) return;

  const std::size_t length = of_->of().row_tokens();
  token_places to{.positions = places_in(all, 1), .documents = places_in(all, 2), .cu_seqlens = places_in(all, 3)};
  to.cu_seqlens[to.sequences++] = 0;
  for (const placed_piece& each : all.pieces()) {
    to.end_gap(each.begin, length);
    to.end_piece(each);
  }
  to.end_gap(end, length);
  *places_in(all, 4) = to.longest;
  all.made(1, shape(all));
  all.made(2, shape(all));
  all.made(3, {static_cast<std::int64_t>(to.sequences)});
  all.made(4, {1});
}

std::byte* packed_pieces::put(std::byte* at, std::int64_t value) const {
  const auto narrow = static_cast<std::int32_t>(value);
  type_ == dtype::i64 ? std::memcpy(at, &value, sizeof value) : std::memcpy(at, &narrow, sizeof narrow);
  return at + size_bytes(type_);
}

}  // namespace leat::stages
