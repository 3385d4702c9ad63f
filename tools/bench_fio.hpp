// fio beside us: the same reads, by the tool that storage people trust.
#pragma once

#include "tools/bench_read.hpp"
#include "tools/child.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tools {

/// fio with the settings of a row that was measured: block, depth, threads, pattern, O_DIRECT; registered files and fixed
/// buffers, handed over in quarters of the depth.
///   huge   its buffers in huge pages that the machine has reserved
[[nodiscard]] std::vector<std::string> fio_arguments(const std::vector<std::string>& paths, const read_row& like,
                                                     bool huge);

/// Huge pages of 2 MiB that fio would need for such a row.
[[nodiscard]] std::uint64_t fio_huge_pages(const read_row& like) noexcept;

/// Those that the machine has reserved and not given away.
[[nodiscard]] std::uint64_t free_huge_pages();

/// The figures in fio's JSON.
///   throws   error{errc::io}: it is not what fio says
[[nodiscard]] fio_figures parse_fio(std::string_view output);

/// Runs it.
///   running   its process group while it runs, else 0: for who has to end it
///   throws    error: not_found (no fio; how to get it), io (it failed; its command line)
[[nodiscard]] fio_figures run_fio(const std::vector<std::string>& arguments, std::atomic<int>& running);

}  // namespace leat::tools
