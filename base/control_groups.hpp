// The control groups that this process lives in, and those above them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leat {

///   name        "/" is the root of its mount
///   directory   where its files are
struct control_group {
  std::string name;
  std::string directory;
  bool is_of_version_1 = false;
};

/// Those that may limit what `controller` ("cpu", "memory") gives out. In a container a path may be that of the host and not exist here:
/// then the mount's root is the container's own group.
///   root   where /proc and /sys are looked for; another one in tests
[[nodiscard]] std::vector<control_group> control_groups(const std::string& root, std::string_view controller);

}  // namespace leat
