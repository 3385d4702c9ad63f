// The state of a run: with it a new process goes on with the next batch, and knows that it is the same run.
#pragma once

#include <leat/compiler.hpp>
#include <leat/description.hpp>
#include <leat/digest.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// The version of what batches hold. It rises when equal options give other bytes than before: another crop, rounding,
/// order or draw. A state of another version is refused. The golden digests of tests/loader/golden_digests_test.cpp
/// fail when it has to rise.
inline constexpr std::uint32_t content_version = 2;

/// A description of what decides the bytes of a run, in four parts. Made once for a loader and shared by all of its
/// states.
///
/// Thread: const calls from any number of threads.
class state_descriptions {
 public:
  enum class part : std::uint8_t { options, dataset, fields, order };
  static constexpr std::size_t part_count = 4;
  static constexpr std::size_t json_bytes_max = std::size_t{60} << 10;

  state_descriptions() : state_descriptions({}, {}, {}, {}) {}
  state_descriptions(description options, description dataset, description fields, description order);

  [[nodiscard]] const description& of(part which) const noexcept {
    return parts_[static_cast<std::size_t>(which)].what;
  }
  [[nodiscard]] const leat::digest& digest_of(part which) const noexcept {
    return parts_[static_cast<std::size_t>(which)].sum;
  }
  /// Whether the entries are known. If descriptions are too long for the file of a state, some parts are kept as their
  /// digest only.
  [[nodiscard]] bool has_entries(part which) const noexcept {
    return !parts_[static_cast<std::size_t>(which)].digest_only;
  }

  /// Throws error{errc::usage}, with what to do, if something that decides bytes has no name.
  void check_named() const;

  /// {"options":{"seed":"7"},"dataset":{...},"fields":{...},"order":{...}}, at most json_bytes_max bytes. A part that
  /// does not fit is replaced by its digest.
  [[nodiscard]] const std::string& json() const noexcept { return json_; }

 private:
  friend struct loader_state;
  struct described {
    description what;
    leat::digest sum;
    bool digest_only = false;
  };
  std::array<described, part_count> parts_;
  std::string json_;
};

/// Counts since the run began, in all of its processes.
///   epoch_corrupt, epoch_unreadable   in the epoch that has begun: corrupt_max and unreadable_max go on from there
struct state_counters {
  std::uint64_t planned = 0;
  std::uint64_t samples = 0;
  std::uint64_t quarantined = 0;
  std::uint64_t substituted = 0;
  std::uint64_t bytes = 0;
  std::uint64_t batches = 0;
  std::uint64_t epochs_finished = 0;
  std::uint64_t epoch_corrupt = 0;
  std::uint64_t epoch_unreadable = 0;

  friend bool operator==(const state_counters&, const state_counters&) = default;
};

/// Which samples of a run take too much memory. If corrupt samples do not end the run, these decide which are corrupt
/// ("over budget"), so that a resumed run keeps them, whatever its own budget.
///   scratch_bytes   of memory that decoding a sample may take
///   value_bytes     of a value; none: all are loaded
struct sample_limits {
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::uint64_t scratch_bytes = none;
  std::uint64_t value_bytes = none;

  friend bool operator==(const sample_limits&, const sample_limits&) = default;
};

/// The place of a run between two batches, as loader::state() gives it. Cheap to make and copy: states share their
/// descriptions.
///
///   epoch, batch     the next batch. If batch is the number of batches of the epoch, the end of the epoch comes next
///   rank, world      of the process that made it; another world may resume it
///   global_batch_size, batch_size
///                    rows of a full batch of all ranks, and loader_options::batch_size as it was given. A resumed run
///                    with the same batch_size keeps the global batch in any world
///   run_digest       of all batches so far; not set if it is not known (no digests, another world, moved by at())
///   journal_bytes, lines_bytes
///                    sizes of the journal and of the command's lines (--batches) at this place: a resumed run cuts
///                    off the rest. 0: no file
///   limits           of the run so far; not set in states of older versions
///   descriptions     null only in an empty state
struct loader_state {
  static constexpr std::size_t core_bytes = 256;

  std::uint32_t epoch = 0;
  std::uint64_t batch = 0;
  std::uint64_t seed = 0;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint64_t global_batch_size = 0;
  std::uint32_t batch_size = 0;
  state_counters counted = {};
  std::optional<digest> run_digest = {};
  std::uint64_t journal_bytes = 0;
  std::uint64_t lines_bytes = 0;
  std::optional<sample_limits> limits = {};
  std::shared_ptr<const state_descriptions> descriptions = {};
  std::string file = {};  ///< the file that load() read, for messages

  /// The same run at another place: to repeat an epoch, or to leave out batches that caused a loss spike. The digest of
  /// the run is then not known; counts stay.
  [[nodiscard]] loader_state at(std::uint32_t other_epoch, std::uint64_t other_batch) const;

  /// Writes the state atomically: after a crash the file holds the old state or the new one, whole. (It is written
  /// beside `path`, synced and renamed, and the folder is synced.)
  ///   throws   error{errc::usage} if something that decides bytes has no name; error not_found, permission, limit (a
  ///            full disk), io, with path and what to do. The old file is then unchanged
  void save(const std::string& path) const;
  /// Reads a state.
  ///   throws   error with the path: not_found, permission, io; format: damaged, or no state; unsupported: made by a
  ///            newer leat, or by one whose batches hold other bytes
  [[nodiscard]] static loader_state load(const std::string& path);

  /// The bytes of its file (docs/internals/orders.md): 256 bytes, and at most 64 KiB more.
  [[nodiscard]] std::vector<std::byte> bytes() const;
  ///   name     the name of the state in messages
  ///   throws   as load()
  [[nodiscard]] static loader_state from_bytes(std::span<const std::byte> bytes, std::string_view name = "the state");
};

/// A key that differs between two descriptions; an empty optional means that one has no such key.
struct description_difference {
  state_descriptions::part where = state_descriptions::part::options;
  std::string key;
  std::optional<std::string> now;
  std::optional<std::string> before;
};
/// All differences, in the order options, dataset, fields, order; within a part in the order of `now`, then keys that
/// only `before` has. A part that one of them knows only by its digest is one difference.
[[nodiscard]] std::vector<description_difference> differences(const state_descriptions& now,
                                                              const state_descriptions& before);

/// Throws error{errc::usage} if these descriptions are of another run than the state: "seed is 8, and was 7 in
/// run.state".
void check_resumes(const loader_state& state, const state_descriptions& now);

}  // namespace leat
#pragma GCC visibility pop
