#include "tools/decoded_samples.hpp"

#include "base/cores_quota.hpp"
#include "base/corrupt_kind.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace leat::tools {
namespace {

// Samples that a thread takes at a time.
constexpr std::uint64_t portion_samples = 16;

// What one thread needs.
class looker {
 public:
  looker(const dataset& samples, std::size_t host_bytes_max) : samples_(samples), pictures_(host_bytes_max) {}

  void look_at(std::uint64_t sample, std::vector<undecoded_sample>& damaged) {
    const datasets::dataset_model& model = *samples_.model();
    const auto add = [&](std::string field, corrupt_kind kind, std::string reason) {
      damaged.push_back({sample, name_of(sample), std::move(field), std::string(kind.name), std::move(reason)});
    };
    if (model.defects() != 0) {
      if (const std::optional<datasets::defect> found = model.defect_of(sample)) {
        return add({}, found->kind, found->reason);
      }
    }
    parts_.clear();
    model.parts(sample, parts_);
    const std::span<const datasets::part> all(parts_.data(), parts_.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::uint16_t number = all[i].field;
      const auto is_same = [&](const datasets::part& each) { return each.field == number; };
      if (std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), is_same)) continue;
      const field_info& field = model.fields()[number];
      try {
        bytes_.clear();
        datasets::append_field(model, sample, number, all, sources_, bytes_);
        if (field.kind != field_kind::picture) continue;
        const stages::outcome<void> decoded = pictures_.decode_whole(bytes_);
        if (!decoded) add(field.name, decoded.error().counted_as(), decoded.reason());
      } catch (const error& failure) {
        add(field.name, failure.code() == errc::corrupt ? corrupt_kinds::damaged : corrupt_kinds::unreadable,
            failure.what());
      }
    }
  }

 private:
  std::string name_of(std::uint64_t sample) const {
    try {
      return samples_.name(sample);
    } catch (const error&) {
      return "sample " + std::to_string(sample);  // The shard that holds its name is damaged too.
    }
  }

  const dataset& samples_;
  picture_check pictures_;
  datasets::blocking_sources sources_{datasets::opening_loop::traffic::many};
  datasets::part_list parts_;
  std::vector<std::byte> bytes_;
};

}  // namespace

decoded_samples decode_all(const dataset& samples, std::size_t host_bytes_max, measuring_progress& so_far) {
  decoded_samples found;
  std::mutex mutex;
  std::atomic<std::uint64_t> next = 0;
  so_far.measured = 0;
  so_far.pictures = samples.size();
  const std::size_t threads = std::min<std::uint64_t>(working_cores(), samples.size() / portion_samples + 1);
  datasets::for_each_parallel(threads, static_cast<unsigned>(threads), [&](std::size_t) {
    looker own(samples, host_bytes_max);
    std::vector<undecoded_sample> damaged;
    for (;;) {
      const std::uint64_t first = next.fetch_add(portion_samples);
      const std::uint64_t end = std::min(first + portion_samples, samples.size());
      for (std::uint64_t sample = first; sample < end; ++sample) own.look_at(sample, damaged);
      if (first >= end) break;
      so_far.measured += end - first;
    }
    const std::lock_guard lock(mutex);
    found.damaged.insert(found.damaged.end(), damaged.begin(), damaged.end());
  });
  found.looked_at = samples.size();
  std::sort(found.damaged.begin(), found.damaged.end(), [](const undecoded_sample& a, const undecoded_sample& b) {
    return std::tie(a.sample, a.field) < std::tie(b.sample, b.field);
  });
  return found;
}

}  // namespace leat::tools
