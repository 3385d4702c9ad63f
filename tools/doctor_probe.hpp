// Looks at a machine for `leat doctor`: by leat's own ways wherever it has one (a reader that reads, the table of a device's
// calls), so that what is said is what leat will meet.
#pragma once

#include "tools/doctor_facts.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leat::stages {
class device_calls;
}

namespace leat::tools {

/// All of it: some 50 ms, and a second for each GPU.
[[nodiscard]] machine_facts look_at_machine(const std::vector<std::string>& paths);

// --- its parts ----------------------------------------------------------------------------------------------------------
// `root` is where /proc and /sys are looked for; another one in tests.

/// NVIDIA's display and 3D controllers.
[[nodiscard]] std::uint32_t count_gpus_on_the_bus(const std::string& root = "");
/// "580.82.07"; empty where there is no driver.
[[nodiscard]] std::string find_driver_version(const std::string& root = "");
/// Link and NUMA node of the device at gpu.pci_address.
void look_at_link(gpu_facts& gpu, const std::string& root = "");

/// What a reader says after it has read from `path`: a file, or a directory in which one is looked for.
[[nodiscard]] path_facts look_at_path(const std::string& path);

/// Fills in how fast a copy from memory as leat has it is: huge pages, pinned. Leaves the device as it was.
void measure_copies(stages::device_calls& device, gpu_facts& gpu, double seconds = 0.5);

}  // namespace leat::tools
