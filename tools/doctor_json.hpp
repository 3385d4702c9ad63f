// What `leat doctor --json` says.
#pragma once

#include "tools/doctor_advice.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace leat::tools {

[[nodiscard]] nlohmann::ordered_json as_json(const machine_facts& facts, const std::vector<finding>& findings);

}  // namespace leat::tools
