#include "tools/check_findings.hpp"

#include "tools/class_counts.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

namespace leat::tools {
namespace {

/// Samples are in order by content, and then by what is beside it.
auto place_of(const checked_sample& of) noexcept { return std::tie(of.content.bytes, of.rest); }

/// Samples that may be compared, in that order and then by number.
std::vector<std::uint64_t> sorted_by_content(const checked_samples& set) {
  std::vector<std::uint64_t> sorted;
  for (std::uint64_t sample = 0; sample < set.all.size(); ++sample) {
    if (set.all[sample].is_read) sorted.push_back(sample);
  }
  std::sort(sorted.begin(), sorted.end(), [&](std::uint64_t a, std::uint64_t b) {
    return std::pair(place_of(set.all[a]), a) < std::pair(place_of(set.all[b]), b);
  });
  return sorted;
}

bool labels_differ(const checked_sample& a, const checked_sample& b) noexcept {
  return a.has_class && b.has_class && a.cls != b.cls;
}

bool have_several_classes(const checked_samples& set, std::span<const std::uint64_t> samples) {
  std::optional<std::int64_t> cls;
  for (const std::uint64_t sample : samples) {
    const checked_sample& each = set.all[sample];
    if (each.has_class && cls.value_or(each.cls) != each.cls) return true;
    if (each.has_class) cls = each.cls;
  }
  return false;
}

// What equal samples share beside their content. A class is a number, however it is written.
std::tuple<std::uint64_t, bool, std::uint64_t> beside_content(const checked_sample& of) noexcept {
  return {of.rest, of.has_class, of.has_class ? static_cast<std::uint64_t>(of.cls) : of.label};
}

same_content group_of(const checked_samples& set, std::span<const std::uint64_t> samples) {
  same_content group{set.all[samples.front()].content, {samples.begin(), samples.end()}};
  std::sort(group.samples.begin(), group.samples.end());
  return group;
}

// Of one content.
void tell_apart(const checked_samples& set, std::span<std::uint64_t> samples, check_findings& found) {
  const auto beside = [&](std::uint64_t sample) { return beside_content(set.all[sample]); };
  std::sort(samples.begin(), samples.end(),
            [&](std::uint64_t a, std::uint64_t b) { return std::tuple(beside(a), a) < std::tuple(beside(b), b); });
  // A picture of two classes is wrong whatever is said of it. A word in two rows is not, where their numbers differ.
  if (set.all[samples.front()].has_picture && have_several_classes(set, samples)) {
    found.two_labels.push_back(group_of(set, samples));
    return;
  }
  std::vector<std::uint64_t> firsts;
  for (std::size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    const std::uint64_t rest = set.all[samples[begin]].rest;
    while (end < samples.size() && set.all[samples[end]].rest == rest) ++end;
    const std::span<const std::uint64_t> alike = samples.subspan(begin, end - begin);
    if (have_several_classes(set, alike)) {
      found.two_labels.push_back(group_of(set, alike));
      firsts.push_back(found.two_labels.back().samples.front());
      continue;
    }
    for (std::size_t from = 0, to = 0; from < alike.size(); from = to) {
      while (to < alike.size() && beside(alike[to]) == beside(alike[from])) ++to;
      firsts.push_back(alike[from]);
      if (to - from > 1) found.duplicates.push_back(group_of(set, alike.subspan(from, to - from)));
    }
  }
  if (firsts.size() > 1) found.other_fields.push_back(group_of(set, firsts));
}

// The first sample of each content, in order; `found` gets what there is several times.
std::vector<std::uint64_t> find_same(const checked_samples& set, check_findings& found) {
  std::vector<std::uint64_t> sorted = sorted_by_content(set);
  std::vector<std::uint64_t> firsts;
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    const digest& content = set.all[sorted[begin]].content;
    while (end < sorted.size() && set.all[sorted[end]].content == content) ++end;
    const std::span<std::uint64_t> same = std::span(sorted).subspan(begin, end - begin);
    firsts.push_back(*std::min_element(same.begin(), same.end()));
    if (same.size() > 1) tell_apart(set, same, found);
  }
  for (std::vector<same_content>* const groups : {&found.duplicates, &found.two_labels, &found.other_fields}) {
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
    const auto find = [&](const checked_sample& wanted) {
      const auto at =
          std::lower_bound(sorted.begin(), sorted.end(), wanted, [&](std::uint64_t number, const checked_sample& than) {
            return place_of(other.all[number]) < place_of(than);
          });
      return at != sorted.end() && other.all[*at].content == one.content ? std::optional(*at) : std::nullopt;
    };
    std::optional<std::uint64_t> same = find(one);
    const bool rest_differs = !same || other.all[*same].rest != one.rest;
    if (rest_differs) {
      checked_sample least = one;
      least.rest = 0;
      same = find(least);
    }
    if (same) {
      found.same.push_back({sample, *same, 0, differ(one, other.all[*same]), rest_differs && !one.has_picture});
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
  spread_of spread{numbers.front(), at(5), at(50), at(95), at(99), numbers.back()};
  for (const std::uint64_t number : numbers) {
    // The upper three bits.
    const unsigned below = number < 8 ? 0 : static_cast<unsigned>(std::bit_width(number)) - 3;
    ++spread.histogram[number >> below << below];
  }
  return spread;
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
    for (const similar_sample& each : found.shared->same) {
      if (!each.rest_differs) all.push_back(each.sample);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool is_wrong(const checked_samples& set, const check_findings& found) {
  return !set.faults.empty() || !found.two_labels.empty() || (found.shared && !found.shared->same.empty());
}

}  // namespace leat::tools
