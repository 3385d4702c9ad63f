// --state FILE: where a run stands, after each batch, so that another process can go on with it.
#pragma once

#include "stages/state/state_file.hpp"

#include <leat/loader_state.hpp>
#include <leat/world.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace leat::tools {

enum class resume_when : std::uint8_t {
  never,      ///< --resume was not given
  automatic,  ///< from the state if there is one, else from the beginning
  always      ///< there has to be one
};

///   path   of the state; empty: none is written
///   name   the path as it was given, with %r for the rank
///   journal, receipts, lines
///          other files of the run, empty where there are none. They are synced before the state that counts them
struct state_writer_options {
  std::string path;
  std::string name;
  leat::world here;
  resume_when resume = resume_when::never;
  std::string journal;
  std::string receipts;
  std::string lines;
};

/// The state to go on from; nothing for a run from its beginning.
///   throws   error{errc::io}: a file that cannot be looked at. error{errc::usage}: a state without --resume, --resume without what it needs; states of another world that are not of one
///            place, or one of it that this rank lacks; lines of another rank. As loader_state::load()
[[nodiscard]] std::optional<loader_state> state_to_resume(const state_writer_options& options);

/// Writes states over one another. Each is in the kernel's hands at once, and once a second on the disk, after the lines that it
/// counts.
class state_writer {
 public:
  /// Locks the state that is there: of another process, or where none can be written, it is refused before anything of the run is touched.
  ///   throws   as loader_state::save()
  explicit state_writer(state_writer_options options);

  /// As state_to_resume(). What that state counts of a file that this process does not write stays.
  [[nodiscard]] std::optional<loader_state> resumed();

  [[nodiscard]] bool on() const noexcept { return !options_.path.empty(); }
  ///   lines_bytes   of --batches, with the line of the last batch that the state counts
  ///   throws        as loader_state::save()
  void write(loader_state state, std::uint64_t lines_bytes);
  /// The last one, too, is on the disk.
  void finish();

 private:
  void sync_lines() const;

  static constexpr std::chrono::seconds interval{1};
  struct counted {
    std::uint64_t journal_bytes = 0;
    std::uint64_t lines_bytes = 0;
  };
  state_writer_options options_;
  counted before_;
  stages::state_file file_;
  bool synced_last_ = true;
  std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
};

}  // namespace leat::tools
