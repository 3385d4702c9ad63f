#include "stages/order/places_sampler.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/order/order_error.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>

#include <cassert>

namespace leat::stages {

places_sampler::places_sampler(std::string_view order, std::uint64_t places, const order_context& context)
    : order_(order), places_(places), context_(context), cut_(places, context.batch_size, context.last) {
  if (places > draws_end) {
    throw order_error(order, "an epoch of ", places, " samples; it may have up to ", draws_end, " (2^48)");
  }
}

void places_sampler::describe(description& out) const {
  describe_order(out, order_, context_);
  out.add("samples_per_epoch", places_);
}

void places_sampler::picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin,
                           [[maybe_unused]] std::uint32_t row_end, std::span<pick> out) const {
  assert(row_begin <= row_end && row_end <= cut_.rows(batch));
  assert(out.size() == row_end - row_begin);
  cut_.for_places(batch, row_begin, out, [&](std::uint64_t first, std::span<pick> some) { at(epoch, first, some); });
}

pick places_sampler::substitute(std::uint32_t epoch, std::uint64_t /*batch*/, std::uint64_t n) const {
  pick found;
  at(epoch, n, {&found, 1});
  return found;
}

}  // namespace leat::stages
