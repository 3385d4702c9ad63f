#include "stages/order/sample_places.hpp"

#include "stages/order/packing.hpp"
#include "stages/order/permutation.hpp"

#include <leat/world.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <span>

namespace leat::stages {
namespace {

using found_places = std::vector<sample_place>;

// Of the rows from `begin` on.
void look_at_rows(const sampler& order, std::uint32_t epoch, std::uint64_t batch, std::uint32_t begin,
                  std::uint64_t sample, std::vector<pick>& rows, found_places& found) {
  const std::uint32_t end = order.rows(epoch, batch);
  const std::uint32_t own = end - std::min(order.padded(epoch, batch), end);
  if (begin >= end) return;
  rows.resize(end - begin);
  order.picks(epoch, batch, begin, end, rows);
  for (std::uint32_t row = begin; row < end; ++row) {
    const pick& each = rows[row - begin];
    if (each.sample == sample) found.push_back({.batch = batch, .row = row, .padded = row >= own, .of = each});
  }
}

found_places pieces_of(const packing& packed, std::uint32_t epoch, std::uint64_t batches, std::uint64_t sample) {
  found_places found;
  std::vector<packed_piece> pieces;
  for (std::uint64_t batch = 0; batch < batches; ++batch) {
    pieces.clear();
    const std::uint64_t first = packed.first_row(epoch, batch);
    packed.pieces(epoch, first, first + packed.packed_rows(epoch, batch), pieces);
    for (const packed_piece& each : pieces) {
      if (each.of.sample != sample) continue;
      found.push_back(
          {.batch = batch, .row = static_cast<std::uint32_t>(each.row - first), .padded = false, .of = each.of});
    }
  }
  return found;
}

// All batches of these orders are of one size, but the last.
found_places by_inverse(const sampler& order, std::span<const std::uint64_t> places, std::uint32_t epoch,
                        std::uint64_t batches, std::uint64_t sample) {
  found_places found;
  const std::uint64_t of_all = order.batches(epoch);
  if (of_all == 0) return found;
  const std::uint32_t size = order.rows(epoch, 0);
  for (const std::uint64_t place : places) {
    const std::uint64_t batch = place / size;
    const auto row = static_cast<std::uint32_t>(place % size);
    if (batch >= std::min(of_all, batches) || row >= order.rows(epoch, batch)) continue;  // That batch was dropped.
    sample_place there{.batch = batch, .row = row, .padded = false, .of = {}};
    order.picks(epoch, batch, row, row + 1, {&there.of, 1});
    assert(there.of.sample == sample);
    found.push_back(there);
  }
  std::sort(found.begin(), found.end(), [](const sample_place& a, const sample_place& b) {
    return a.batch != b.batch ? a.batch < b.batch : a.row < b.row;
  });
  const std::uint64_t last = of_all - 1;
  if (last >= batches) return found;
  std::vector<pick> rows;
  look_at_rows(order, epoch, last, order.rows(epoch, last) - order.padded(epoch, last), sample, rows, found);
  return found;
}

}  // namespace

bool finds_places(const sampler& order) noexcept {
  return dynamic_cast<const global_sampler*>(&order) != nullptr || dynamic_cast<const invertible*>(&order) != nullptr;
}

std::vector<sample_place> places_of(const sampler& order, std::uint64_t samples, std::uint64_t seed,
                                    std::uint32_t epoch, std::uint64_t batches, std::uint64_t sample) {
  assert(sample < samples);
  if (const auto* const packed = dynamic_cast<const packing*>(&order)) {
    return pieces_of(*packed, epoch, std::min(batches, order.batches(epoch)), sample);
  }
  std::vector<std::uint64_t> places;
  if (dynamic_cast<const global_sampler*>(&order) != nullptr) {
    places.push_back(order.in_order() ? sample : permutation(samples, seed, epoch).place_of(sample));
    return by_inverse(order, places, epoch, batches, sample);
  }
  if (const auto* const inverse = dynamic_cast<const invertible*>(&order)) {
    inverse->places_of(epoch, sample, places);
    return by_inverse(order, places, epoch, batches, sample);
  }
  found_places found;
  std::vector<pick> rows;
  for (std::uint64_t batch = 0; batch < std::min(batches, order.batches(epoch)); ++batch) {
    look_at_rows(order, epoch, batch, 0, sample, rows, found);
  }
  return found;
}

std::uint32_t rank_of_row(std::uint32_t row, std::uint32_t rows, std::uint32_t world_size) noexcept {
  assert(row < rows);
  // Rank r has rows floor(r rows / size) and on (leat::world).
  world each{.rank = static_cast<std::uint32_t>(std::uint64_t{row} * world_size / rows), .size = world_size};
  while (row >= each.row_end(rows)) ++each.rank;
  return each.rank;
}

}  // namespace leat::stages
