#include "base/hex.hpp"

#include <leat/digest.hpp>

namespace leat {

std::string digest::hex() const { return to_hex(bytes); }

}  // namespace leat
