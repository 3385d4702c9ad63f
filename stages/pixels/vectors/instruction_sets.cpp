#include "stages/pixels/vectors/instruction_sets.hpp"

namespace leat::pixels {

#if HWY_ARCH_X86

std::int64_t instruction_sets() noexcept {
  std::int64_t found = HWY_SCALAR | HWY_EMU128;
#if defined(HWY_SSE2)  // since Highway 1.0.4
  found |= HWY_SSE2;
#endif
  if (!__builtin_cpu_supports("ssse3")) return found;
  found |= HWY_SSSE3;
  if (!__builtin_cpu_supports("sse4.1") || !__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul") ||
      !__builtin_cpu_supports("aes")) {
    return found;
  }
  found |= HWY_SSE4;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
      !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("lzcnt") || !__builtin_cpu_supports("f16c")) {
    return found;
  }
  found |= HWY_AVX2;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd")) {
    return found;
  }
  found |= HWY_AVX3;
  if (!__builtin_cpu_supports("vpclmulqdq") || !__builtin_cpu_supports("avx512vbmi") ||
      !__builtin_cpu_supports("avx512vbmi2") || !__builtin_cpu_supports("vaes") ||
      !__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512bitalg") ||
      !__builtin_cpu_supports("avx512vpopcntdq") || !__builtin_cpu_supports("gfni")) {
    return found;
  }
  return found | HWY_AVX3_DL;
}

hwy::ChosenTarget& instruction_sets_in_use() noexcept {
  static hwy::ChosenTarget chosen;
  [[maybe_unused]] static const bool once = (chosen.Update(instruction_sets()), true);
  return chosen;
}

void use_instruction_sets(std::int64_t some) noexcept {
  instruction_sets_in_use().Update(some != 0 ? some : instruction_sets());
}

#else

std::int64_t instruction_sets() noexcept { return hwy::SupportedTargets(); }
hwy::ChosenTarget& instruction_sets_in_use() noexcept { return hwy::GetChosenTarget(); }
void use_instruction_sets(std::int64_t some) noexcept { hwy::SetSupportedTargetsForTest(some); }

#endif

}  // namespace leat::pixels
