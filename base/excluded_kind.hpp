// The kind of a sample that its user has excluded: a header of its own, since few ask for it.
#pragma once

#include "base/corrupt_kind.hpp"

namespace leat::corrupt_kinds {
inline constexpr corrupt_kind excluded{"excluded"};  ///< not wanted, whatever is in it
}  // namespace leat::corrupt_kinds
