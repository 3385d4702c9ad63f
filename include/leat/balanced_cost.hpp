// Rows of a batch dealt to ranks so that all have as much to compute: who is done first waits for the slowest.
#pragma once

#include <leat/compiler.hpp>
#include <leat/order.hpp>

#include <cstdint>
#include <functional>
#include <string>

#pragma GCC visibility push(default)
namespace leat {

///   cost     of a sequence of so many tokens, finite and at least 0. Default: length x length, as attention has it
///   name     of `cost`, if one is given: a run without it can neither be saved nor resumed
///   length   of an order that does not pack: the length of each sample, as bucket_options::length. Of packed rows it is empty, and the
///            cost of a row is that of its pieces together
struct cost_options {
  std::function<double(std::uint64_t length)> cost = {};
  std::string name = {};
  std::string length = {};
};

/// The order `of`, whose rows of each global batch are dealt to ranks so that the sums of their costs differ least. Each rank has as many
/// rows as before, and a global batch has the same rows in every world. plan().notes say the cost of the slowest rank over the mean.
///
///     options.order = balanced_cost(packed(4096, {.by = packed_by::best_fit}));
///
///   cost     each rank looks at the lengths of a whole global batch
///   throws   when the loader is built, error{errc::usage}: last_batch::pad; node_local(); lengths of a packed order, or none of another
[[nodiscard]] order balanced_cost(order of, cost_options how = {});

}  // namespace leat
#pragma GCC visibility pop
