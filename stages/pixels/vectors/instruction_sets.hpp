// Which of a kernel's copies runs, of those that Highway has compiled for each instruction set. On x86 it is chosen here, so that its
// headers are enough: Debian 12's library measures a clock for 3.6 ms whenever a program is loaded that is linked with it.
//
//     LEAT_KERNEL(resample_line);  // as HWY_EXPORT
//     void resample_line(...) { LEAT_BEST(resample_line)(line, table, to); }  // as HWY_DYNAMIC_DISPATCH
//
// To be included behind HWY_ONCE.
#pragma once

#include <hwy/highway.h>

#include <cstdint>

namespace leat::pixels {

/// The instruction sets of this processor that its system lets programs use, as bits of HWY_TARGETS; the loops that need none among them.
///   source   HWY_TARGET_STR_* in hwy/ops/set_macros-inl.h: what each copy may use
[[nodiscard]] std::int64_t instruction_sets() noexcept;

/// For tests: from now on kernels run as if there were these alone; 0: all of instruction_sets().
void use_instruction_sets(std::int64_t some) noexcept;

/// Those in use, by which LEAT_BEST() chooses.
[[nodiscard]] hwy::ChosenTarget& instruction_sets_in_use() noexcept;

}  // namespace leat::pixels

#if HWY_ARCH_X86 && (HWY_TARGETS & (HWY_TARGETS - 1)) != 0
// Highway's tables but for the first entry, which calls the library.
#define LEAT_KERNEL(name)                                                                              \
  static constexpr decltype(&HWY_STATIC_DISPATCH(name)) name##_of_set[HWY_MAX_DYNAMIC_TARGETS + 2] = { \
      nullptr, HWY_CHOOSE_TARGET_LIST(name), HWY_CHOOSE_FALLBACK(name)}
#define LEAT_BEST(name) (*name##_of_set[::leat::pixels::instruction_sets_in_use().GetIndex()])
#else
#define LEAT_KERNEL(name) HWY_EXPORT(name)
#define LEAT_BEST(name) HWY_DYNAMIC_DISPATCH(name)
#endif
