#include "io/ring/file_set.hpp"

#include "base/text.hpp"
#include "io/files/read_error.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>

namespace leat::io {
namespace {

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> made{0};
  return made.fetch_add(1, std::memory_order_relaxed) & 0xFFFFFFFFU;
}

failed_read described(const read_operation& read, int failure, std::string_view path, const io_context& context) {
  return {.failure = failure,
          .path = path,
          .offset = read.offset,
          .bytes = read.bytes,
          .data_bytes = read.data.size(),
          .timeout_s = std::chrono::duration<double>(context.options.read_timeout).count()};
}

}  // namespace

file_set::file_set(const file_table& table, direct_policy& policy) : files(&table), modes(policy), id(next_id()) {}

error explain(const file_set& set, const read_operation& failed, const io_context& context) {
  if (const std::optional<error> why = context.failure.get(); why && failed.failure == loop_failed) return *why;
  const std::string path = set.files->path(failed.file);
  return explain_read(described(failed, failed.failure, path, context));
}

error explain(const file_set& set, const open_operation& failed, const io_context& context) {
  if (const std::optional<error> why = context.failure.get(); why && failed.failure == loop_failed) return *why;
  return explain_open(failed.failure, set.files->path(failed.file));
}

overdue_list::entry add_overdue(const file_set& set, const read_operation& late, std::uint64_t offset,
                                io_context& context) {
  const std::string path = set.files->path(late.file);
  return context.overdue.add(str_cat(path, " at offset ", offset),
                             explain_read(described(late, ETIMEDOUT, path, context)));
}

unsigned descriptors_allowed() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  return static_cast<unsigned>(std::min<rlim_t>(limit.rlim_cur, 1U << 20));
}

}  // namespace leat::io
