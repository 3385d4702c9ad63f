// Shards that an earlier run has finished, which a run that goes on where it stopped leaves as they are (pack_options::keep_finished).
#pragma once

#include "datasets/write/pack.hpp"
#include "datasets/write/sample_members.hpp"
#include "datasets/write/shard_plan.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leat::datasets {

/// Those from the first of this process on, up to the first that is missing. Refers to the plan and the options. Thread: one at a time.
class kept_shards {
 public:
  ///   throws   error{errc::usage} where a shard lies behind one that is missing
  kept_shards(const shard_plan& plan, const pack_options& options);

  /// Whether the next sample, in the order of packing, lies in one of them. Its members' names and sizes are compared, the names only as
  /// far as their sample's key where members are rewritten; of a shard's first sample also the bytes.
  ///   written   the sample as it would be written, read and rewritten
  ///   throws    error{errc::usage} for a shard that holds something else, or another number of samples than it would get
  [[nodiscard]] bool hold(const sample_members& next, const std::function<sample_members()>& written);
  /// After the last sample: the shards that have none.
  ///   throws    as hold()
  void finish();

  /// Those that were gone through.
  [[nodiscard]] const std::vector<packed_shard>& shards() const noexcept { return shards_; }

 private:
  struct opened_shard {
    opened_shard(const std::string& path, const pack_options& options);

    dataset samples;
    sample_reader reader;
    std::uint64_t next = 0;  // of its samples
  };

  [[nodiscard]] bool open_next();
  void close();
  [[noreturn]] void refuse(const std::string& why) const;

  const shard_plan& plan_;
  const pack_options& options_;
  std::uint64_t there_ = 0;  // shards that are kept, if they hold what they should
  std::unique_ptr<opened_shard> open_;
  std::vector<packed_shard> shards_;
};

}  // namespace leat::datasets
