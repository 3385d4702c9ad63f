#include "datasets/tables/each_value.hpp"

#include "base/cores_quota.hpp"
#include "base/excluded_kind.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

/// One thread's: what it reads with, and what it gives that to.
class value_walk {
 public:
  value_walk(const dataset_model& model, std::span<const std::uint16_t> fields, value_use use)
      : model_(model), fields_(fields), use_(std::move(use)) {
    for (const std::uint16_t field : fields) needs_.push_back({.field = field});
  }

  void at(std::uint64_t sample) {
    value_.clear();
    try {
      use_(sample, read(sample) ? std::optional<std::span<const std::byte>>(value_) : std::nullopt);
    } catch (const error& why) {
      if (why.code() != errc::corrupt) throw;
      use_(sample, std::nullopt);
    }
  }

 private:
  [[nodiscard]] bool read(std::uint64_t sample) {
    if (model_.defects() != 0) {
      // What is excluded is there, and its number moves no other sample's.
      const std::optional<defect> found = model_.defect_of(sample);
      if (found && found->kind != corrupt_kinds::excluded) return false;
    }
    parts_.clear();
    model_.parts(sample, needs_, parts_);
    for (const std::uint16_t field : fields_) {
      if (std::none_of(parts_.begin(), parts_.end(), [field](const part& each) { return each.field == field; }))
        continue;
      append_field(model_, sample, field, parts_, sources_, value_);
      return true;
    }
    return false;
  }

  const dataset_model& model_;
  std::span<const std::uint16_t> fields_;
  value_use use_;
  std::vector<need> needs_;
  part_list parts_;
  blocking_sources sources_;
  std::vector<std::byte> value_;
};

}  // namespace

void for_each_value(const dataset_model& model, std::span<const std::uint16_t> fields,
                    const std::function<value_use()>& make) {
  // Neighbours share blocks, so a thread takes many at once; and all cores have something to do though samples be few and long.
  constexpr std::uint64_t samples_at_once_max = 4096;
  const std::uint32_t threads = working_cores();
  const std::uint64_t samples = model.size();
  const std::uint64_t at_once = std::clamp<std::uint64_t>(samples / (threads * 8U), 1, samples_at_once_max);
  std::mutex mutex;
  std::vector<std::unique_ptr<value_walk>> idle;
  for_each_parallel((samples + at_once - 1) / at_once, threads, [&](std::size_t span) {
    std::unique_ptr<value_walk> walk;
    {
      const std::lock_guard lock(mutex);
      if (idle.empty()) {
        walk = std::make_unique<value_walk>(model, fields, make());
      } else {
        walk = std::move(idle.back());
        idle.pop_back();
      }
    }
    const std::uint64_t end = std::min(samples, (span + 1) * at_once);
    for (std::uint64_t sample = span * at_once; sample < end; ++sample) walk->at(sample);
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(walk));
  });
}

}  // namespace leat::datasets
