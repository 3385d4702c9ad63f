// Where a run stands: what a new process needs to go on with the next batch, and to be sure that it is the same run.
#pragma once

#include <leat/description.hpp>
#include <leat/digest.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

/// Rises when equal options give other bytes than before: another crop, another rounding, another order, another draw. A state of
/// another content version is refused, since its run would go on with other bytes. The golden digests of
/// tests/loader/golden_digests_test.cpp fail where it has to rise.
inline constexpr std::uint32_t content_version = 1;

/// What decides the bytes of a run, in four parts. Made once for a loader and shared by all of its states.
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
  /// Whether the entries are known. In a state whose descriptions were too long for its file some parts are kept as their digest.
  [[nodiscard]] bool has_entries(part which) const noexcept {
    return !parts_[static_cast<std::size_t>(which)].digest_only;
  }

  /// Throws error{errc::usage} where something that decides bytes has no name, with what to do.
  void check_named() const;

  /// {"options":{"seed":"7"},"dataset":{...},"fields":{...},"order":{...}}, of at most json_bytes_max: a part that finds no room is
  /// its digest, as text.
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

/// What has been counted since the run began, in whatever process.
///   epoch_corrupt, epoch_unreadable   of the epoch that has begun: corrupt_max and unreadable_max go on counting there
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

/// The place of a run between two batches. A value, and cheap: a loader that makes one after each batch fills the numbers and
/// shares the descriptions, which asks for no memory:
///
///     loader_state{.epoch = 3, .batch = 417, .seed = 7, .global_batch_size = 256, .descriptions = descriptions_}
///
///   epoch, batch     the batch that is delivered next. batch may be the number of batches of the epoch: its end comes next
///   rank, world      of the process that made it; another world may go on with it
///   global_batch_size, batch_size
///                    rows of a full batch of all ranks, and loader_options::batch_size as it was given: who goes on with the same
///                    one, in whatever world, keeps the global batch
///   run_digest       over all batches so far; nothing where it is not known (no digests, another world, moved by at())
///   journal_bytes, lines_bytes
///                    sizes of the journal and of the command's lines (--batches) that belong to it: a resumed run cuts off what is
///                    beyond. 0: there is no such file
///   descriptions     null only in a state that nobody filled
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
  std::shared_ptr<const state_descriptions> descriptions = {};
  std::string file = {};  ///< that load() read it from, for messages

  /// The same run at another place: to repeat an epoch, or to leave out what a loss spike came from. The run's digest is then not
  /// known, and what was counted stays.
  [[nodiscard]] loader_state at(std::uint32_t other_epoch, std::uint64_t other_batch) const;

  /// Writes it beside `path`, syncs that, gives it its name and syncs the folder: after a crash there is the old state or the new
  /// one, whole.
  ///   throws   error{errc::usage} what decides bytes has no name; errc not_found, permission, limit (a full disk), io with path and
  ///            what to do. The file that was there is then as it was
  void save(const std::filesystem::path& path) const;
  ///   throws   error: not_found, permission, io; format: damaged or no state; unsupported: made by a newer leat, or by one whose
  ///            batches held other bytes. All with the path
  [[nodiscard]] static loader_state load(const std::filesystem::path& path);

  /// As in a file: docs/order.md. At most 256 bytes and 64 KiB.
  [[nodiscard]] std::vector<std::byte> bytes() const;
  ///   name     what messages call it
  ///   throws   as load()
  [[nodiscard]] static loader_state from_bytes(std::span<const std::byte> bytes, std::string_view name = "the state");
};

/// One key that two descriptions do not share with one value; an empty optional: it has no such key.
struct description_difference {
  state_descriptions::part where = state_descriptions::part::options;
  std::string key;
  std::optional<std::string> now;
  std::optional<std::string> before;
};
/// In the order options, dataset, fields, order; keys of one part in the order of `now`, then those that only `before` has. A part
/// of which one has only the digest is one difference.
[[nodiscard]] std::vector<description_difference> differences(const state_descriptions& now,
                                                              const state_descriptions& before);

/// Throws error{errc::usage} where a run of these descriptions is another one than the state's: "seed is 8, and was 7 in run.state".
void check_resumes(const loader_state& state, const state_descriptions& now);

}  // namespace leat
