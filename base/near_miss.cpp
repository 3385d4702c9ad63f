#include "base/near_miss.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace leat {
namespace {

// The Damerau-Levenshtein distance: letters missing, wrong, too many or exchanged with their neighbour.
std::size_t slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  std::iota(cost[0].begin(), cost[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] =
          std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view given, std::span<const std::string> known) {
  return nearest_name(given, known, 1 + given.size() / 4);
}

std::string nearest_name(std::string_view given, std::span<const std::string> known, std::size_t slips_max) {
  std::string best;
  std::size_t best_slips = slips_max;
  for (const std::string& name : known) {
    const std::size_t wrong = slips(given, name);
    if (wrong > best_slips || (wrong == best_slips && !best.empty())) continue;
    best = name;
    best_slips = wrong;
  }
  return best;
}

std::string did_you_mean(std::string_view given, std::span<const std::string> known) {
  // Every short name is near to a name of one or two letters.
  const std::string meant = given.size() < 2 ? "" : nearest_name(given, known);
  return meant.empty() ? meant : str_cat("; did you mean '", meant, "'?");
}

}  // namespace leat
