// Two datasets, paired by a key: subsets of both, side by side.
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "base/xxh64.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/read_part.hpp"
#include "datasets/views/defective_view.hpp"
#include "datasets/views/renamed.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/join.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace datasets {
namespace {

constexpr std::uint64_t keys_at_once = 1 << 14;
constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

std::string_view without_ending(std::string_view name) {
  const std::size_t slash = name.rfind('/') + 1;  // npos + 1 is 0.
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot <= slash ? name : name.substr(0, dot);
}

std::string_view stem_of(std::string_view name) {
  name = without_ending(name);
  return name.substr(name.rfind('/') + 1);
}

// What a side's samples are found by.
class side_keys {
 public:
  side_keys(const dataset& samples, std::string_view side, std::string name)
      : model_(*samples.model()), name_(std::move(name)), column_(model_.find_column(name_)) {
    if (!column_) field_ = model_.find_field(name_);
    if (column_ || field_ || name_ == "stem" || name_ == "path" || name_ == "name") return;
    std::vector<std::string> there{"stem", "path", "name"};
    for (const field_info& each : samples.fields()) there.push_back(each.name);
    throw error(errc::usage, str_cat("join: the ", side, " side has no column or field '", name_, "'; it has ",
                                     joined(there, ", "), did_you_mean(name_, there)));
  }

  [[nodiscard]] const dataset_model& model() const noexcept { return model_; }
  /// Sources for fields that are read, for each thread.
  [[nodiscard]] std::unique_ptr<blocking_sources> make_sources() const {
    return field_ ? std::make_unique<blocking_sources>() : nullptr;
  }

  /// Writes the key; false where the sample has none.
  bool read(std::uint64_t sample, blocking_sources* sources, std::string& key) const {
    if (column_) {
      const std::optional<column_value> value = model_.column(sample, *column_);
      if (!value) return false;
      key = text_of(*value);
      return true;
    }
    if (field_) return read_field(sample, *sources, key);
    const std::string name = model_.name(sample);
    key = name_ == "name" ? std::string_view(name) : name_ == "path" ? without_ending(name) : stem_of(name);
    return true;
  }

 private:
  bool read_field(std::uint64_t sample, blocking_sources& sources, std::string& key) const {
    part_list parts;
    const need wanted{.field = *field_};
    model_.parts(sample, {&wanted, 1}, parts);
    if (parts.empty()) return false;
    std::vector<std::byte> bytes;
    append_field(model_, sample, *field_, {parts.data(), parts.size()}, sources, bytes);
    key.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();  // of a member of a shard
    return !key.empty();
  }

  const dataset_model& model_;
  std::string name_;
  std::optional<std::size_t> column_;
  std::optional<std::uint16_t> field_;
};

struct hashed_sample {
  std::uint64_t hash = 0;
  std::uint64_t sample = none;  // none: it has no key

  friend bool operator<(const hashed_sample& a, const hashed_sample& b) noexcept {
    return a.hash != b.hash ? a.hash < b.hash : a.sample < b.sample;
  }
};

// The samples that have a key, sorted by its hash.
std::vector<hashed_sample> hashes_of(const side_keys& side) {
  std::vector<hashed_sample> all(side.model().size());
  struct own_memory {
    std::unique_ptr<blocking_sources> sources;
    std::string key;
  };
  const std::uint64_t chunks = (all.size() + keys_at_once - 1) / keys_at_once;
  for_each_parallel_with(
      chunks, threads_for_walking(0), [&] { return std::make_unique<own_memory>(own_memory{side.make_sources(), {}}); },
      [&](std::size_t chunk, own_memory& own) {
        const std::uint64_t end = std::min<std::uint64_t>(all.size(), (chunk + 1) * keys_at_once);
        for (std::uint64_t sample = chunk * keys_at_once; sample < end; ++sample) {
          if (!side.read(sample, own.sources.get(), own.key)) continue;
          xxh64 hash;
          hash.add(std::as_bytes(std::span(own.key)));
          all[sample] = {hash.value(), sample};
        }
      });
  std::erase_if(all, [](const hashed_sample& each) { return each.sample == none; });
  std::sort(all.begin(), all.end());
  return all;
}

// Finds the partner of each sample of the left side.
class pairing {
 public:
  pairing(const side_keys& left, const side_keys& right)
      : left_(left),
        right_(right),
        left_sources_(left.make_sources()),
        right_sources_(right.make_sources()),
        partners_(left.model().size(), none) {
    const std::vector<hashed_sample> of_left = hashes_of(left);
    const std::vector<hashed_sample> of_right = hashes_of(right);
    auto r = of_right.begin();
    for (auto l = of_left.begin(); l != of_left.end();) {
      const auto l_end = end_of(l, of_left.end());
      check_single(left_, left_sources_.get(), "left", l, l_end);
      while (r != of_right.end() && r->hash < l->hash) r = pass(r, of_right.end());
      const auto r_end = r != of_right.end() && r->hash == l->hash ? pass(r, of_right.end()) : r;
      for (; l != l_end; ++l) match(*l, r, r_end);
      r = r_end;
    }
    while (r != of_right.end()) r = pass(r, of_right.end());
    // Those of the right side that were not taken, a few of them by name.
    std::vector<std::uint64_t> taken(partners_);
    std::sort(taken.begin(), taken.end());
    for (std::uint64_t sample = 0, at = 0; sample < right_.model().size() && lonely_.size() < named_max; ++sample) {
      if (at < taken.size() && taken[at] == sample) {
        ++at;
      } else {
        lonely_.push_back(sample);
      }
    }
  }

  /// By sample of the left side; none: it has no partner.
  [[nodiscard]] const std::vector<std::uint64_t>& partners() const noexcept { return partners_; }
  [[nodiscard]] std::uint64_t pairs() const noexcept { return pairs_; }
  /// The first samples of the right side without a partner.
  [[nodiscard]] const std::vector<std::uint64_t>& lonely() const noexcept { return lonely_; }
  static constexpr std::size_t named_max = 3;

 private:
  using iterator = std::vector<hashed_sample>::const_iterator;

  static iterator end_of(iterator first, iterator end) {
    const std::uint64_t hash = first->hash;
    while (first != end && first->hash == hash) ++first;
    return first;
  }
  iterator pass(iterator first, iterator end) const {
    const auto behind = end_of(first, end);
    check_single(right_, right_sources_.get(), "right", first, behind);
    return behind;
  }
  // Of one hash, and hardly ever more than one.
  static void check_single(const side_keys& side, blocking_sources* sources, std::string_view name, iterator first,
                           iterator end) {
    if (end - first < 2) return;
    std::vector<std::pair<std::string, std::uint64_t>> keys;
    for (; first != end; ++first) {
      std::string key;
      static_cast<void>(side.read(first->sample, sources, key));
      keys.emplace_back(std::move(key), first->sample);
    }
    std::sort(keys.begin(), keys.end());
    const auto twice =
        std::adjacent_find(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice == keys.end()) return;
    throw error(errc::usage,
                str_cat("join: two samples of the ", name, " side have the key '", twice->first,
                        "': ", side.model().name(twice->second), " and ", side.model().name((twice + 1)->second),
                        "; join by what tells them apart (by(\"path\") has folders too), or take a subset()"));
  }
  void match(const hashed_sample& left, iterator first, iterator end) {
    if (first == end) return;
    static_cast<void>(left_.read(left.sample, left_sources_.get(), left_key_));
    for (; first != end; ++first) {
      static_cast<void>(right_.read(first->sample, right_sources_.get(), right_key_));
      if (left_key_ != right_key_) continue;
      partners_[left.sample] = first->sample;
      ++pairs_;
      return;
    }
  }

  const side_keys& left_;
  const side_keys& right_;
  std::unique_ptr<blocking_sources> left_sources_;
  std::unique_ptr<blocking_sources> right_sources_;
  std::string left_key_;
  std::string right_key_;
  std::vector<std::uint64_t> partners_;
  std::vector<std::uint64_t> lonely_;
  std::uint64_t pairs_ = 0;
};

// What is said about the pairs, and samples that have none, over the two sides side by side.
class join_model final : public defective_view, columns_facet {
 public:
  ///   left_columns   of all columns the first ones, which samples without a partner have, too
  ///   lacking        samples without a partner, ascending
  join_model(std::shared_ptr<const dataset_model> whole, const join_key& key, std::size_t left_columns,
             std::vector<std::string> notes, std::vector<std::uint64_t> lacking)
      : defective_view(std::move(whole), std::move(lacking)), key_(key), left_columns_(left_columns) {
    for (std::string& each : notes) notes_.push_back(std::move(each));
    if (!defective().empty()) facets_.columns = this;
  }

  std::span<const std::string> column_names() const noexcept override { return whole().columns(); }
  // Where there is no partner another sample stands in its place, whose numbers these are not.
  std::optional<column_value> column(std::uint64_t sample, std::size_t column) const override {
    if (column >= left_columns_ && is_defective(sample)) return std::nullopt;
    return whole().column(sample, column);
  }
  dtype column_type(std::size_t column) const override { return whole().column_type(column); }
  std::uint64_t column_gaps(std::size_t column) const override {
    if (column < left_columns_) return whole().column_gaps(column);
    std::uint64_t gaps = whole().column_gaps(column) + defective().size();
    for (const std::uint64_t each : defective()) gaps -= whole().column(each, column) ? 0 : 1;
    return gaps;
  }
  void describe(description& out) const override {
    out.add("join", str_cat(key_.left, " = ", key_.right));
    whole().describe(out);
    if (!defective().empty()) out.add("without partner", which());
  }

 private:
  defect wrong_with(std::uint64_t) const override {
    return {.source = no_source,
            .file = 0,
            .offset = 0,
            .reason = str_cat("no partner by ", key_.left, " in the joined dataset"),
            .kind = corrupt_kinds::incomplete};
  }

  join_key key_;
  std::size_t left_columns_;
};

std::string note_of(std::string_view side, std::uint64_t count, const dataset& samples,
                    const std::vector<std::uint64_t>& first) {
  std::string names;
  for (const std::uint64_t each : first) str_append(names, names.empty() ? "" : ", ", samples.name(each));
  const std::string more = count > first.size() ? str_cat(" and ", count - first.size(), " more") : std::string();
  return str_cat("join: ", count, " of ", samples.size(), " samples of the ", side, " side without a partner: ", names,
                 more);
}

void check_names(const dataset& left, const dataset& right) {
  const auto check = [&](const std::string& name) {
    if (!left.model()->find_field(name) && !left.model()->find_column(name)) return;
    throw error(errc::usage, str_cat("join: both sides have '", name,
                                     "'; join_options::rename gives that of the right "
                                     "side another name, {{\"",
                                     name, "\", \"another\"}}, or with_fields() leaves one out"));
  };
  for (const field_info& each : right.fields()) check(each.name);
}

}  // namespace
}  // namespace datasets

dataset join(const dataset& left, const dataset& right, const join_key& key, const join_options& options) {
  const datasets::side_keys left_keys(left, "left", key.left);
  const datasets::side_keys right_keys(right, "right", key.right);
  const dataset other = datasets::renamed(right, options.rename);
  datasets::check_names(left, other);
  if (left.size() == 0 || right.size() == 0) {
    throw error(errc::not_found, str_cat("join: the ", left.size() == 0 ? "left" : "right", " side has no sample"));
  }

  std::vector<std::uint64_t> taken;
  std::vector<std::uint64_t> partners;
  std::vector<std::uint64_t> lacking;
  std::vector<std::string> notes;
  {
    const datasets::pairing found(left_keys, right_keys);
    if (found.pairs() == 0) {
      std::string left_key;
      std::string right_key;
      static_cast<void>(left_keys.read(0, left_keys.make_sources().get(), left_key));
      static_cast<void>(right_keys.read(0, right_keys.make_sources().get(), right_key));
      throw error(errc::not_found,
                  str_cat("join: no sample has a partner: by ", key.left, " the first of the left side is '", left_key,
                          "', and by ", key.right, " that of the right side '", right_key, "'"));
    }
    const bool keeps_all = options.missing == without_partner::corrupt;
    const std::uint64_t rows = keeps_all ? left.size() : found.pairs();
    taken.reserve(rows);
    partners.reserve(rows);
    std::vector<std::uint64_t> first;
    for (std::uint64_t sample = 0; sample < left.size(); ++sample) {
      const std::uint64_t partner = found.partners()[sample];
      if (partner == datasets::none) {
        if (first.size() < datasets::pairing::named_max) first.push_back(sample);
        if (!keeps_all) continue;
        lacking.push_back(taken.size());
      }
      taken.push_back(sample);
      partners.push_back(partner == datasets::none ? 0 : partner);
    }
    const std::uint64_t without = left.size() - found.pairs();
    if (without > 0) notes.push_back(datasets::note_of("left", without, left, first));
    const std::uint64_t right_without = right.size() - found.pairs();
    if (right_without > 0) notes.push_back(datasets::note_of("right", right_without, right, found.lonely()));
  }
  const dataset both = zip({left.subset(taken), other.subset(partners)});
  return dataset(std::make_shared<datasets::join_model>(both.model(), key, left.model()->columns().size(),
                                                        std::move(notes), std::move(lacking)));
}

}  // namespace leat
