#include "datasets/tables/sample_families.hpp"

#include "base/hash_map.hpp"
#include "base/text.hpp"
#include "base/words.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::size_t members_min = 4;
constexpr std::size_t members_min_without_sign = 32;  // of three axes or more: pictures, volumes

// Each run of digits is one '#'.
std::string form_of(std::string_view name) {
  std::string form;
  for (const char each : name) {
    if (!is_digit(each)) {
      form += each;
    } else if (!form.ends_with('#')) {
      form += '#';
    }
  }
  return form;
}

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view last_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// A group or an array directly below a group.
//   arrays   itself, or all below it: places in what was given
struct child {
  std::string_view path;
  bool is_group = false;
  std::vector<std::size_t> arrays;
};

// Children of one group whose names have one form.
struct siblings {
  std::string_view group;
  std::string form;
  std::vector<child> members;
};

/// All paths as a tree.
class path_tree {
 public:
  explicit path_tree(std::span<const named_shape> all) : all_(all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::string_view path = all[i].path;
      for (bool is_group = false;; is_group = true) {
        const std::string_view group = path.empty() ? path : parent_of(path);
        add(group, path, is_group, i);
        if (group.empty()) break;
        path = group;
      }
    }
  }

  // Those that may be samples: of the groups nearest to the root.
  ///   unsure   where there are none: arrays that might be, the last of them
  [[nodiscard]] std::vector<siblings> families(siblings& unsure) const {
    std::vector<siblings> found;
    std::vector<std::string_view> groups{""};
    for (std::size_t next = 0; next < groups.size(); ++next) {
      const std::string_view group = groups[next];
      const auto here = children_.find(group);
      if (here == children_.end()) continue;
      siblings most = most_alike(group, here->second);
      const bool is_family = is_of_samples(most);
      for (const child& each : here->second) {
        const bool is_inside = is_family && form_of(last_of(each.path)) == most.form;
        if (each.is_group && !is_inside) groups.push_back(each.path);
      }
      if (is_family) {
        found.push_back(std::move(most));
      } else if (may_be_of_samples(most)) {
        unsure = std::move(most);
      }
    }
    return found;
  }

 private:
  void add(std::string_view group, std::string_view path, bool is_group, std::size_t array) {
    const auto [known, is_new] = places_.try_emplace(path, 0);
    std::vector<child>& here = children_[group];
    if (is_new) {
      known->second = here.size();
      here.push_back({.path = path, .is_group = is_group, .arrays = {}});
    }
    here[known->second].arrays.push_back(array);
  }

  static siblings most_alike(std::string_view group, const std::vector<child>& children) {
    hash_map<std::string, std::vector<const child*>> by_form;
    for (const child& each : children) by_form[form_of(last_of(each.path))].push_back(&each);
    const auto fewer = [](const auto& a, const auto& b) {
      return std::pair(a.second.size(), std::string_view(b.first)) <
             std::pair(b.second.size(), std::string_view(a.first));
    };
    const auto most = std::max_element(by_form.begin(), by_form.end(), fewer);
    siblings alike{.group = group, .form = most->first, .members = {}};
    for (const child* const each : most->second) alike.members.push_back(*each);
    std::sort(alike.members.begin(), alike.members.end(),
              [](const child& a, const child& b) { return is_before(a.path, b.path); });
    return alike;
  }

  // An array outside of them, and with a name of another form, whose first axis has this extent, or any.
  [[nodiscard]] bool has_outside(const siblings& of, std::optional<std::uint64_t> extent) const {
    hash_set<std::size_t> inside;
    for (const child& each : of.members) inside.insert(each.arrays.begin(), each.arrays.end());
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const bool has_it = !all_[i].shape.empty() && (!extent || all_[i].shape.front() == *extent);
      if (has_it && !inside.contains(i) && form_of(last_of(all_[i].path)) != of.form) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_of_samples(const siblings& of) const {
    const std::vector<child>& members = of.members;
    if (of.form.find('#') == std::string::npos || members.size() < members_min) return false;
    const bool are_groups = members.front().is_group;
    if (std::any_of(members.begin(), members.end(), [&](const child& each) { return each.is_group != are_groups; }))
      return false;
    if (are_groups) return true;
    const std::vector<std::uint64_t>& shape = all_[members.front().arrays.front()].shape;
    const bool are_alike = std::all_of(members.begin(), members.end(),
                                       [&](const child& each) { return all_[each.arrays.front()].shape == shape; });
    if (!are_alike) return true;
    if (shape.empty()) return !has_outside(of, std::nullopt) || has_outside(of, members.size());
    if (shape.size() < 2) return false;
    if (has_outside(of, shape.front())) return false;
    return (shape.size() > 2 && members.size() >= members_min_without_sign) || has_outside(of, members.size());
  }

  // Alike, of two axes, and more of them than they have rows: few tables have more columns than rows.
  [[nodiscard]] bool may_be_of_samples(const siblings& of) const {
    const std::vector<child>& members = of.members;
    if (of.form.find('#') == std::string::npos || members.size() < members_min_without_sign) return false;
    const std::vector<std::uint64_t>& shape = all_[members.front().arrays.front()].shape;
    return shape.size() == 2 && shape.front() < members.size() &&
           std::all_of(
               members.begin(), members.end(),
               [&](const child& each) { return !each.is_group && all_[each.arrays.front()].shape == shape; });
  }

  std::span<const named_shape> all_;
  hash_map<std::string_view, std::vector<child>> children_;
  hash_map<std::string_view, std::size_t> places_;  // among the children of their groups
};

std::vector<std::string_view> names_of(const siblings& of) {
  std::vector<std::string_view> names;
  for (const child& each : of.members) names.push_back(last_of(each.path));
  return names;
}

// Of groups: what all of them have is a field, by its last name or, where two share that, by its path in the group.
void add_fields_of_groups(std::span<const named_shape> all, const siblings& of, sample_family& family) {
  std::vector<std::pair<std::string_view, std::vector<std::size_t>>> fields;
  hash_map<std::string_view, std::size_t> places;
  hash_map<std::string_view, std::size_t> times;
  for (const child& each : of.members) {
    for (const std::size_t array : each.arrays) {
      const std::string_view inside = std::string_view(all[array].path).substr(each.path.size() + 1);
      const auto [known, is_new] = places.try_emplace(inside, fields.size());
      if (is_new) {
        fields.push_back({inside, {}});
        ++times[last_of(inside)];
      }
      fields[known->second].second.push_back(array);
    }
  }
  for (auto& [inside, arrays] : fields) {
    if (arrays.size() != of.members.size()) continue;
    family.fields.push_back({std::string(times[last_of(inside)] == 1 ? last_of(inside) : inside), std::move(arrays)});
  }
}

void add_field_of_arrays(const siblings& of, sample_family& family) {
  family_field field{.name = std::string(of.group.empty() ? "array" : last_of(of.group)), .arrays = {}};
  for (const child& each : of.members) field.arrays.push_back(each.arrays.front());
  family.fields.push_back(std::move(field));
}

}  // namespace

bool is_before(std::string_view a, std::string_view b) noexcept {
  const auto digits_at = [&](std::string_view text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    return text.substr(at, end - at);
  };
  const auto without_zeros = [](std::string_view digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  };
  std::size_t i = 0;
  std::size_t k = 0;
  while (i < a.size() && k < b.size()) {
    if (is_digit(a[i]) && is_digit(b[k])) {
      const std::string_view of_a = digits_at(a, i);
      const std::string_view of_b = digits_at(b, k);
      const std::string_view value_a = without_zeros(of_a);
      const std::string_view value_b = without_zeros(of_b);
      if (value_a.size() != value_b.size()) return value_a.size() < value_b.size();
      if (value_a != value_b) return value_a < value_b;
      i += of_a.size();
      k += of_b.size();
    } else if (a[i] != b[k]) {
      return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[k]);
    } else {
      ++i;
      ++k;
    }
  }
  if (a.size() - i != b.size() - k) return a.size() - i < b.size() - k;
  return a < b;
}

sample_family find_sample_family(std::span<const named_shape> all) {
  sample_family family;
  const path_tree tree(all);
  siblings unsure;
  const std::vector<siblings> found = tree.families(unsure);
  if (found.empty()) {
    family.unsure = unsure.members.size();
    family.form = unsure.group.empty() ? unsure.form : str_cat(unsure.group, "/", unsure.form);
    return family;
  }
  const std::vector<std::string_view> names = names_of(found.front());
  const bool of_one = std::all_of(found.begin() + 1, found.end(), [&](const siblings& each) {
    return !each.members.front().is_group && !found.front().members.front().is_group && names_of(each) == names;
  });
  if (!of_one) {
    for (const siblings& each : found) family.apart.emplace_back(each.group);
    return family;
  }
  for (const siblings& each : found) {
    if (each.members.front().is_group) {
      add_fields_of_groups(all, each, family);
    } else {
      add_field_of_arrays(each, family);
    }
  }
  const siblings& first = found.front();
  for (const child& each : first.members) family.objects.emplace_back(each.path);
  family.form = first.group.empty() ? first.form : str_cat(first.group, "/", first.form);
  hash_set<std::size_t> taken;
  for (const family_field& each : family.fields) taken.insert(each.arrays.begin(), each.arrays.end());
  for (std::size_t i = 0; i < all.size() && family.found(); ++i) {
    if (taken.contains(i)) continue;
    const bool counts_them = !all[i].shape.empty() && all[i].shape.front() == family.samples();
    (counts_them ? family.parallel : family.rest).push_back(i);
  }
  if (family.fields.size() == 1 && family.parallel.empty() && !first.members.front().is_group) {
    family.fields.front().name = "array";
  }
  return family;
}

}  // namespace leat::datasets
