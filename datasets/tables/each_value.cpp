#include "datasets/tables/each_value.hpp"

#include "base/cores_quota.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/tables/joint_reads.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <memory>
#include <utility>

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

}  // namespace

void for_each_value(const dataset_model& model, std::span<const std::uint16_t> fields, std::uint64_t bytes_max,
                    const std::function<value_use()>& make) {
  // Neighbours share blocks, so a thread takes many at once; and all cores have something to do though samples be few and long.
  constexpr std::uint64_t samples_at_once_max = 4096;
  const std::uint32_t threads = working_cores();
  const std::uint64_t samples = model.size();
  const std::uint64_t at_once = std::clamp<std::uint64_t>(samples / (threads * 8U), 1, samples_at_once_max);
  byte_gate gate(bytes_max / 2);
  const joint_limits limits = limits_within(bytes_max, threads, fields, gate);
  for_each_parallel_with((samples + at_once - 1) / at_once, threads,
                         [&] { return std::make_unique<value_walk>(model, limits, make()); },
                         [&](std::size_t span, value_walk& walk) {
                           const std::uint64_t first = span * at_once;
                           walk.over(first, std::min(samples, first + at_once));
                         });
}

}  // namespace leat::datasets
