// The drive that a recorded run is replayed on: as it is described, or as another one answers the recorded reads.
#pragma once

#include "stages/observe/read_record.hpp"
#include "tools/bench_read.hpp"
#include "tools/what_if.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tools {

/// "latency=90us,rate=6GB/s"; without a rate there is no limit.
///   throws   by refuse(): it is not like that
[[nodiscard]] what_if_drive parse_disk(const std::string& option, std::string_view given);

/// The recorded reads with their sizes, in the order in which they were asked for: all files of the run lie one behind the other, and that
/// is scaled to `file_bytes`.
///   throws   error{errc::usage}: a read is larger than that
[[nodiscard]] std::vector<read_places::place> places_within(const stages::read_record& record,
                                                            std::uint64_t file_bytes);

/// How the drive answers them: one at a time, and as many as the line gives it. It is only read.
///   throws   refused_name: no such file, or none to read from; as measure_reads()
[[nodiscard]] what_if_drive measured_drive(const stages::read_record& record, const std::string& path,
                                           const what_if_settings& with);

}  // namespace leat::tools
