#include "stages/state/digest.hpp"

#include "base/hasher.hpp"

namespace leat::stages {
digest row_digest(std::uint64_t sample, std::span<const row_output> outputs) noexcept {
  hasher hash;
  hash.add(sample);
  for (const row_output& output : outputs) {
    hash.add(output.name);
    hash.add(name(output.type));
    hash.add(static_cast<std::uint64_t>(output.shape.size()));
    for (const std::int64_t extent : output.shape) hash.add(static_cast<std::uint64_t>(extent));
    hash.add(output.bytes);
  }
  return hash.finish();
}

digest batch_digest(std::uint32_t epoch, std::uint64_t index, std::span<const digest> rows) noexcept {
  hasher hash;
  hash.add(static_cast<std::uint64_t>(epoch));
  hash.add(index);
  hash.add(static_cast<std::uint64_t>(rows.size()));
  for (const digest& row : rows) hash.add(row);
  return hash.finish();
}

digest chain_digest(const digest& previous, const digest& next) noexcept {
  hasher hash;
  hash.add(previous);
  hash.add(next);
  return hash.finish();
}

}  // namespace leat::stages
