#include "tools/check_findings.hpp"

#include "tools/class_counts.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace leat::tools {
namespace {

bool by_content(const checked_sample& a, const checked_sample& b) noexcept { return a.content.bytes < b.content.bytes; }

/// Samples that may be compared, by content and then by number.
std::vector<std::uint64_t> sorted_by_content(const checked_samples& set) {
  std::vector<std::uint64_t> sorted;
  for (std::uint64_t sample = 0; sample < set.all.size(); ++sample) {
    if (set.all[sample].is_read) sorted.push_back(sample);
  }
  std::sort(sorted.begin(), sorted.end(), [&](std::uint64_t a, std::uint64_t b) {
    return std::tie(set.all[a].content.bytes, a) < std::tie(set.all[b].content.bytes, b);
  });
  return sorted;
}

bool labels_differ(const checked_sample& a, const checked_sample& b) noexcept {
  return a.has_class && b.has_class && a.cls != b.cls;
}

// The first sample of each content, in order; `found` gets what there is several times.
std::vector<std::uint64_t> find_same(const checked_samples& set, check_findings& found) {
  const std::vector<std::uint64_t> sorted = sorted_by_content(set);
  std::vector<std::uint64_t> firsts;
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    const checked_sample& first = set.all[sorted[begin]];
    bool is_one_class = true;
    std::optional<std::int64_t> cls;
    for (end = begin; end < sorted.size() && set.all[sorted[end]].content == first.content; ++end) {
      const checked_sample& each = set.all[sorted[end]];
      if (!each.has_class) continue;
      is_one_class = is_one_class && cls.value_or(each.cls) == each.cls;
      cls = each.cls;
    }
    firsts.push_back(sorted[begin]);
    if (end - begin < 2) continue;
    same_content group{
        first.content,
        {sorted.begin() + static_cast<std::ptrdiff_t>(begin), sorted.begin() + static_cast<std::ptrdiff_t>(end)}};
    (is_one_class ? found.duplicates : found.two_labels).push_back(std::move(group));
  }
  for (std::vector<same_content>* const groups : {&found.duplicates, &found.two_labels}) {
    std::sort(groups->begin(), groups->end(),
              [](const same_content& a, const same_content& b) { return a.samples.front() < b.samples.front(); });
  }
  std::sort(firsts.begin(), firsts.end());
  return firsts;
}

bool has_key(const checked_sample& each) noexcept { return each.is_read && each.has_picture && !each.is_flat; }

void find_similar(const checked_samples& set, const std::vector<std::uint64_t>& firsts, unsigned bits_max,
                  unsigned threads, check_findings& found) {
  std::vector<picture_key> keys;
  std::vector<std::uint64_t> numbers;
  for (const std::uint64_t sample : firsts) {
    if (!has_key(set.all[sample])) continue;
    keys.push_back(set.all[sample].key);
    numbers.push_back(sample);
  }
  for (const near_picture& each : find_near(keys, 0, bits_max, threads)) {
    const std::uint64_t sample = numbers[each.picture];
    const std::uint64_t of = numbers[each.of];
    found.near.push_back({sample, of, each.bits, labels_differ(set.all[sample], set.all[of])});
  }
}

shared_samples find_shared(const checked_samples& set, const checked_samples& other, unsigned bits_max,
                           unsigned threads) {
  // Each set numbers its classes itself.
  const auto differ = [&](const checked_sample& one, const checked_sample& two) {
    return one.has_class && two.has_class && class_name(set.samples, one.cls) != class_name(other.samples, two.cls);
  };
  shared_samples found{.looked_at = other.all.size(), .same = {}, .near = {}};
  const std::vector<std::uint64_t> sorted = sorted_by_content(other);
  std::vector<picture_key> keys;
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t sample = 0; sample < other.all.size(); ++sample) {
    if (!has_key(other.all[sample])) continue;
    keys.push_back(other.all[sample].key);
    numbers.push_back(sample);
  }
  const std::size_t asked_from = keys.size();
  for (std::uint64_t sample = 0; sample < set.all.size(); ++sample) {
    const checked_sample& one = set.all[sample];
    if (!one.is_read) continue;
    const auto same = std::lower_bound(
        sorted.begin(), sorted.end(), one,
        [&](std::uint64_t number, const checked_sample& wanted) { return by_content(other.all[number], wanted); });
    if (same != sorted.end() && other.all[*same].content == one.content) {
      found.same.push_back({sample, *same, 0, differ(one, other.all[*same])});
    } else if (has_key(one)) {
      keys.push_back(one.key);
      numbers.push_back(sample);
    }
  }
  if (asked_from == 0) return found;  // 0 would ask all of them of one another.
  for (const near_picture& each : find_near(keys, asked_from, bits_max, threads)) {
    const std::uint64_t sample = numbers[each.picture];
    const std::uint64_t of = numbers[each.of];
    found.near.push_back({sample, of, each.bits, differ(set.all[sample], other.all[of])});
  }
  return found;
}

}  // namespace

spread_of spread_of::of(std::vector<std::uint64_t> numbers) {
  if (numbers.empty()) return {};
  std::sort(numbers.begin(), numbers.end());
  const auto at = [&](std::uint64_t percent) {
    const std::uint64_t rank = (numbers.size() * percent + 99) / 100;
    return numbers[std::max<std::uint64_t>(rank, 1) - 1];
  };
  return {numbers.front(), at(5), at(50), at(95), at(99), numbers.back()};
}

check_findings find_in(const checked_samples& set, const checked_samples* other, unsigned bits_max, unsigned threads) {
  check_findings found;
  const std::vector<std::uint64_t> firsts = find_same(set, found);
  find_similar(set, firsts, bits_max, threads, found);
  std::vector<std::uint64_t> bytes;
  std::vector<std::uint64_t> widths;
  std::vector<std::uint64_t> heights;
  for (std::uint64_t sample = 0; sample < set.all.size(); ++sample) {
    const checked_sample& each = set.all[sample];
    if (each.has_class) ++found.classes[each.cls];
    if (each.is_read) bytes.push_back(each.bytes);
    if (!each.has_picture) continue;
    widths.push_back(each.width);
    heights.push_back(each.height);
    if (each.is_flat) found.flat.push_back(sample);
  }
  found.pictures = widths.size();
  found.bytes = spread_of::of(std::move(bytes));
  found.widths = spread_of::of(std::move(widths));
  found.heights = spread_of::of(std::move(heights));
  if (other != nullptr) found.shared = find_shared(set, *other, bits_max, threads);
  return found;
}

std::vector<std::uint64_t> to_leave_out(const checked_samples& set, const check_findings& found) {
  std::vector<std::uint64_t> all;
  for (const sample_fault& each : set.faults) all.push_back(each.sample);
  for (const same_content& each : found.duplicates) {
    all.insert(all.end(), each.samples.begin() + 1, each.samples.end());
  }
  for (const same_content& each : found.two_labels) all.insert(all.end(), each.samples.begin(), each.samples.end());
  if (found.shared) {
    for (const similar_sample& each : found.shared->same) all.push_back(each.sample);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool is_wrong(const checked_samples& set, const check_findings& found) {
  return !set.faults.empty() || !found.two_labels.empty() || (found.shared && !found.shared->same.empty());
}

}  // namespace leat::tools
