#include "tools/state_writer.hpp"

#include "base/text.hpp"
#include "tools/output.hpp"
#include "tools/ranks.hpp"

#include <leat/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

namespace leat::tools {
namespace {

// What was written to it, by whatever descriptor.
void sync_file(const std::string& path) {
  if (path.empty() || path == "-") return;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fdatasync(fd) == 0;
  const int failure = errno;
  if (fd >= 0) ::close(fd);
  if (synced || failure == EINVAL) return;  // A pipe or a device has nothing to sync.
  throw error(errc::io, str_cat("cannot sync ", path, ": ", std::generic_category().message(failure),
                                "; does the disk still answer?"));
}

// What cannot be looked at may be there: a run that took it for missing would begin anew.
bool is_there(const std::string& path) {
  std::error_code failure;
  const bool found = std::filesystem::exists(path, failure);
  if (!failure) return found;
  throw error(errc::io, str_cat("cannot look at ", path, ": ", failure.message(),
                                "; nothing is begun or resumed before that is mended"));
}

bool is_before(const loader_state& one, const loader_state& other) {
  return std::tie(one.epoch, one.batch) < std::tie(other.epoch, other.batch);
}

std::string of_rank(const loader_state& state) { return str_cat("rank ", state.rank, " of ", state.world); }

// A run that goes on in another world writes states that are further than those of the world before.
[[noreturn]] void refuse_left_behind(const loader_state& old, const std::string& old_path, const loader_state& further,
                                     const std::string& further_path) {
  throw error(errc::usage, str_cat(old_path, " is at batch ", old.batch, " of epoch ", old.epoch, " in a world of ",
                                   old.world, ", and ", further_path, " is further, at batch ", further.batch,
                                   " of epoch ", further.epoch, " in a world of ", further.world,
                                   ": the run has gone on without the first; to go on with all ranks copy one state to "
                                   "the names of all of them"));
}

// A state that a larger world may have left behind: then rank 0, which every world has, is further. (It may have begun in this world
// already: then it is further than the one that all go on from.)
void check_not_left_behind(const state_writer_options& options, const loader_state& own) {
  const std::string path = name_for_rank("--state", options.name, {.rank = 0, .size = own.world});
  if (path == options.path || !is_there(path)) return;
  const loader_state first = loader_state::load(path);
  const bool goes_on_here = own.world != options.here.size && first.world == options.here.size;
  if (first.world == own.world || goes_on_here || !is_before(own, first)) return;
  refuse_left_behind(own, options.path, first, path);
}

// The other ranks' states as far as they are there. Where this run has begun in another world, a rank that is quicker may have
// written its own already: it was read by who needed it, or is of this world.
void check_others(const state_writer_options& options, const loader_state& own) {
  for (std::uint32_t rank = 0; rank < own.world; ++rank) {
    const std::string path = name_for_rank("--state", options.name, {.rank = rank, .size = own.world});
    if (path == options.path || !is_there(path)) continue;
    const loader_state other = loader_state::load(path);
    if (other.world == options.here.size && is_before(other, own)) {
      refuse_left_behind(other, path, own, options.path);
    }
    if (other.world != own.world || (other.epoch == own.epoch && other.batch == own.batch)) continue;
    throw error(errc::usage, str_cat(path, " is at batch ", other.batch, " of epoch ", other.epoch, ", and ",
                                     options.path, " at batch ", own.batch, " of epoch ", own.epoch,
                                     ", both in a world of ", own.world, "; to go on in one of ", options.here.size,
                                     " all ranks need one place: copy one state to the names of all of them"));
  }
}

// Before this rank begins anew because it has none.
void check_first(const state_writer_options& options) {
  if (options.here.size == 1 && options.name.find("%r") == std::string::npos) return;
  const std::string path = name_for_rank("--state", options.name, {.rank = 0, .size = options.here.size});
  if (path == options.path || !is_there(path)) return;
  const loader_state first = loader_state::load(path);
  if (first.world == options.here.size) {
    // Ranks that meet find out together; these may have been killed before their first batch.
    if (first.epoch == 0 && first.batch == 0) return;
    complain("epoch", str_cat("warning: there is no ", options.path, ", so that rank ", options.here.rank,
                              " begins anew, and ", path, " is at batch ", first.batch, " of epoch ", first.epoch,
                              ": if it was lost, stop all ranks and bring it back (--resume always insists on it)"));
    return;
  }
  throw error(errc::usage, str_cat(path, " is of ", of_rank(first), ", and there is no ", options.path, " for rank ",
                                   options.here.rank, " of ", options.here.size,
                                   ": copy the state to go on from to the names of all ranks"));
}

}  // namespace

std::optional<loader_state> state_to_resume(const state_writer_options& options) {
  if (options.path.empty()) {
    if (options.resume == resume_when::never) return std::nullopt;
    throw error(errc::usage, "--resume goes on from a state; give --state FILE as well");
  }
  if (options.resume != resume_when::never && options.lines == "-") {
    throw error(errc::usage,
                "--resume goes on with the lines of --batches, and standard output has none of them; give it a FILE");
  }
  const bool there = is_there(options.path);
  if (there && options.resume == resume_when::never) {
    throw error(errc::usage, str_cat(options.path,
                                     " is there already: --resume auto goes on with that run; to begin "
                                     "a new one remove it or give --state another FILE"));
  }
  if (!there && options.resume != resume_when::always) {
    check_first(options);
    return std::nullopt;
  }
  loader_state state = loader_state::load(options.path);
  check_not_left_behind(options, state);
  if (state.world == options.here.size && state.rank == options.here.rank) return state;
  if (state.world != options.here.size) check_others(options, state);
  if (!options.lines.empty() && is_there(options.lines)) {
    throw error(errc::usage, str_cat(options.lines, " is there already, and ", options.path, " is of ", of_rank(state),
                                     ", not ", options.here.rank, " of ", options.here.size,
                                     ": begin other lines with --batches, or move these away"));
  }
  state.lines_bytes = 0;
  return state;
}

state_writer::state_writer(state_writer_options options) : options_(std::move(options)), file_(options_.path) {
  if (!on()) return;
  static_cast<void>(is_there(options_.path));  // says so where it cannot be looked at
  file_.claim();
}

std::optional<loader_state> state_writer::resumed() {
  std::optional<loader_state> found = state_to_resume(options_);
  if (found) before_ = {.journal_bytes = found->journal_bytes, .lines_bytes = found->lines_bytes};
  return found;
}

void state_writer::write(loader_state state, std::uint64_t lines_bytes) {
  state.lines_bytes = options_.lines.empty() ? before_.lines_bytes : lines_bytes;
  if (options_.journal.empty()) state.journal_bytes = before_.journal_bytes;
  const bool due = std::chrono::steady_clock::now() - synced_ >= interval;
  if (due) sync_lines();
  file_.write(state);
  synced_last_ = due;
  if (!due) return;
  file_.sync();
  synced_ = std::chrono::steady_clock::now();
}

void state_writer::finish() {
  if (synced_last_) return;
  sync_lines();
  file_.sync();
  synced_last_ = true;
}

void state_writer::sync_lines() const {
  sync_file(options_.journal);
  sync_file(options_.receipts);
  sync_file(options_.lines);
}

}  // namespace leat::tools
