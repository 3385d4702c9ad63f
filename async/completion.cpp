#include "base/thread_number.hpp"

#include <leat/completion.hpp>

#include <cstdint>

namespace leat::detail {

std::uint64_t number_of_this_thread() noexcept { return thread_number(); }

}  // namespace leat::detail
