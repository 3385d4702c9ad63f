#include "datasets/tables/each_value.hpp"

#include "base/cores_quota.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/tables/joint_reads.hpp"

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
  value_walk(const dataset_model& model, const joint_limits& limits, value_use use)
      : reads_(model, limits), use_(std::move(use)) {}

  void over(std::uint64_t first, std::uint64_t end) {
    while (first < end) {
      for (const joint_reads::one& each : reads_.read_from(first, end)) {
        look_at(each);
        ++first;
      }
    }
    reads_.release();
  }

 private:
  void look_at(const joint_reads::one& of) {
    seen_value seen;
    if (of.parts.empty()) return use_(of.sample, seen);
    seen.is_over = reads_.bytes_over(of, 0).has_value();
    if (seen.is_over) return use_(of.sample, seen);
    try {
      seen.bytes = reads_.field_of(of, 0);
    } catch (const read_failure& why) {
      if (why.whose() == io::fault::environment) throw;
      seen.unreadable = &why;
      return use_(of.sample, seen);
    } catch (const error& why) {
      if (why.code() != errc::corrupt) throw;
    }
    use_(of.sample, seen);
  }

  joint_reads reads_;
  value_use use_;
};

joint_limits limits_of(std::span<const std::uint16_t> fields, std::uint64_t bytes_max, std::uint32_t threads,
                       byte_gate& gate) {
  // What is read together is there twice while it is copied; and expanded blocks beside it.
  const std::uint64_t of_thread = bytes_max / (4 * std::uint64_t{threads});
  joint_limits limits{.fields = {fields.begin(), fields.end()},
                      .first_field = true,
                      .value_bytes_max = bytes_max - bytes_max / 4,
                      .gate = &gate};
  limits.together_bytes = std::min(limits.together_bytes, of_thread / 2);
  limits.blocks_bytes = std::min(limits.blocks_bytes, of_thread);
  return limits;
}

}  // namespace

void for_each_value(const dataset_model& model, std::span<const std::uint16_t> fields, std::uint64_t bytes_max,
                    const std::function<value_use()>& make) {
  // Neighbours share blocks, so a thread takes many at once; and all cores have something to do though samples be few and long.
  constexpr std::uint64_t samples_at_once_max = 4096;
  const std::uint32_t threads = working_cores();
  const std::uint64_t samples = model.size();
  const std::uint64_t at_once = std::clamp<std::uint64_t>(samples / (threads * 8U), 1, samples_at_once_max);
  byte_gate gate(bytes_max / 2);
  const joint_limits limits = limits_of(fields, bytes_max, threads, gate);
  std::mutex mutex;
  std::vector<std::unique_ptr<value_walk>> idle;
  for_each_parallel((samples + at_once - 1) / at_once, threads, [&](std::size_t span) {
    std::unique_ptr<value_walk> walk;
    {
      const std::lock_guard lock(mutex);
      if (idle.empty()) {
        walk = std::make_unique<value_walk>(model, limits, make());
      } else {
        walk = std::move(idle.back());
        idle.pop_back();
      }
    }
    const std::uint64_t first = span * at_once;
    walk->over(first, std::min(samples, first + at_once));
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(walk));
  });
}

}  // namespace leat::datasets
