#include "base/random.hpp"

#include <leat/draws.hpp>

#include <cstring>
#include <type_traits>

namespace leat {
namespace {

// Runs `use` on the random_draws whose bytes these are, and keeps what has become of it.
template <class Use>
auto with_state(std::array<unsigned char, 64>& bytes, Use&& use) noexcept {
  random_draws state(0, 0, 0, "");
  std::memcpy(&state, bytes.data(), sizeof state);
  const auto drawn = use(state);
  std::memcpy(bytes.data(), &state, sizeof state);
  return drawn;
}

}  // namespace

draws as_draws(const random_draws& from) noexcept {
  static_assert(sizeof(random_draws) <= 64 && std::is_trivially_copyable_v<random_draws>);
  draws made;
  std::memcpy(made.state_.data(), &from, sizeof from);
  return made;
}

draws::draws() noexcept {
  const random_draws none(0, 0, 0, "");
  std::memcpy(state_.data(), &none, sizeof none);
}

std::uint32_t draws::bits() noexcept {
  return with_state(state_, [](random_draws& state) { return state.bits(); });
}
double draws::uniform() noexcept {
  return with_state(state_, [](random_draws& state) { return state.uniform(); });
}
std::uint64_t draws::below(std::uint64_t n) noexcept {
  return with_state(state_, [n](random_draws& state) { return state.below(n); });
}

}  // namespace leat
