#include "stages/verdict.hpp"

namespace leat::stages {
namespace {

// Of the time: a consumer that waits less than that is the slowest itself; decoders that work more than that are.
constexpr double little = 0.1;
constexpr double nearly_all = 0.8;

}  // namespace

bottleneck slowest_of(const line_snapshot& seen) noexcept {
  if (seen.next_wait_s < little * seen.elapsed_s) return bottleneck::consumer;
  if (seen.decode_busy_s > nearly_all * seen.elapsed_s * static_cast<double>(seen.decode_threads)) {
    return bottleneck::decode;
  }
  if (seen.transferred < seen.collated) return bottleneck::transfer;
  return seen.decode_busy_s > seen.decode_wait_s ? bottleneck::decode : bottleneck::read;
}

}  // namespace leat::stages
