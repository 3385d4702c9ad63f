// What leat check has found, as a page: counts, histograms, and pictures of the worst of each kind.
#pragma once

#include "tools/check_report.hpp"

#include <cstddef>
#include <string>

namespace leat::tools {

/// Less than 300 KB whatever there is: of each kind the first few samples, and pictures as long as there is room.
///   host_bytes_max   for their decoding
[[nodiscard]] std::string check_page(const check_report& report, std::size_t host_bytes_max);

}  // namespace leat::tools
