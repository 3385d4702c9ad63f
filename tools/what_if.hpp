// How a recorded run would have been on another drive, or with other settings: a line of reads, decode threads, copies and a consumer in
// virtual time.
#pragma once

#include "stages/observe/read_record.hpp"

#include <leat/verdict.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace leat::tools {

/// A drive: each read takes a latency, and then has the drive's path for its bytes, one read after the other.
///   latency_ns    of the n-th read of the run; begun again where there are fewer. Not empty
///   bytes_per_s   0: without limit
///   is_least      it may be faster: it was never seen at its limit
///   in_order      no read is answered before one that was given to it earlier
struct what_if_drive {
  std::vector<std::uint32_t> latency_ns;
  double bytes_per_s = 0;
  bool is_least = false;
  bool in_order = false;
};

/// The drive that the run had, as its reads tell: where they took longer the more were under way, it was at its limit.
[[nodiscard]] what_if_drive drive_of(const stages::read_record& record);

/// What the line works with.
///   batches       that there may be at a time, with the consumer's
///   queue_depth   reads that each I/O thread gives the drive at a time; 0: as many as it is given
///   by_bytes      queue_depth says nothing: by bytes, as the loader
///   read_bytes    of the read buffers; 0: without limit
///   step_s        of the consumer, for each batch; none: as recorded
struct what_if_settings {
  std::uint32_t io_threads = 1;
  std::uint32_t decode_threads = 1;
  std::uint32_t batches = 1;
  std::uint32_t queue_depth = 0;
  bool by_bytes = false;
  std::uint64_t read_bytes = 0;
  std::optional<double> step_s;
};

/// Those of the run.
[[nodiscard]] what_if_settings settings_of(const stages::read_record& record);

/// From the first batch that is handed out to the last one.
///   wait_p50_s, wait_p99_s   of next()
///   bound                    what the others waited for; of a recorded run unknown
struct what_if_result {
  double samples_per_s = 0;
  double bytes_per_s = 0;
  double stall_share = 0;
  double wait_p50_s = 0;
  double wait_p99_s = 0;
  double step_s = 0;  ///< the mean
  verdict bound;
};

/// What the run was.
[[nodiscard]] what_if_result measured(const stages::read_record& record);
/// What it would have been. The same every time.
///   record   has a batch at least
[[nodiscard]] what_if_result simulate(const stages::read_record& record, const what_if_settings& with,
                                      const what_if_drive& drive);

}  // namespace leat::tools
