#include "base/cores_quota.hpp"

#include "base/control_groups.hpp"
#include "base/usable_cores.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace leat {
namespace {

double number_in(const std::string& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number ? number : 0;
}

}  // namespace

std::optional<double> find_cores_quota(const std::string& root) {
  std::optional<double> least;
  const auto tighten = [&](double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least.value_or(quota / period), quota / period);
  };
  for (const control_group& group : control_groups(root, "cpu")) {
    std::ifstream limit(group.directory + "/cpu.max");
    std::string quota;
    double period = 0;
    if (limit >> quota >> period && quota != "max") tighten(std::strtod(quota.c_str(), nullptr), period);
    tighten(number_in(group.directory + "/cpu.cfs_quota_us"), number_in(group.directory + "/cpu.cfs_period_us"));
  }
  return least;
}

std::uint32_t cores_within(std::optional<double> quota, std::uint32_t usable) noexcept {
  if (!quota || *quota >= usable) return usable;
  return std::max(1U, static_cast<std::uint32_t>(*quota));
}

std::uint32_t working_cores() { return cores_within(find_cores_quota(), usable_cores()); }

std::uint32_t cores_of_local_rank(std::uint32_t local_ranks) {
  if (local_ranks <= 1) return working_cores();
  const std::uint32_t own = usable_cores();
  const bool bound = own < usable_cores(::getppid());
  std::optional<double> quota = find_cores_quota();
  if (quota) *quota /= local_ranks;
  return cores_within(quota, bound ? own : std::max(1U, own / local_ranks));
}

}  // namespace leat
