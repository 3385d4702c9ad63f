// Indexes that lie beside tar shards where these are: ours of all of them, or DALI's of each.
#pragma once

#include "datasets/formats/tar/shard_index_file.hpp"
#include "io/files/source.hpp"

#include <leat/remote.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// Where they may lie.
///   source      of files that need not be there: first ours, then DALI's, one for each shard
///   shards      of each shard the last part of its path
///   own         of each shard the number of the file that is our index of it, and of others
struct index_places {
  std::shared_ptr<const io::source_description> source;
  std::vector<std::string> shards;
  std::vector<std::uint32_t> own;
  std::uint32_t own_files = 0;
};

/// Where indexes of shards at these addresses may lie.
[[nodiscard]] index_places indexes_of(std::span<const std::string> shards, const remote_options& options);

/// Thread: one at a time.
class indexes_beside {
 public:
  explicit indexes_beside(const index_places& places) : places_(places) {}

  /// Asks which there are: of DALI's for the first shard's alone. One that cannot be opened is not used.
  void look();
  /// The indexes of all shards, in their order, if there is one that fits.
  ///   sizes     of the shards, as they are now
  [[nodiscard]] std::optional<std::vector<shard_index>> read(std::span<const std::uint64_t> sizes,
                                                             at_end_marker at_marker);
  /// Why one that is there was not taken; empty where none is there.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }

 private:
  struct found_file {
    std::uint32_t file = 0;
    std::uint64_t size_bytes = 0;
  };
  [[nodiscard]] std::optional<std::vector<shard_index>> read_own(std::span<const std::uint64_t> sizes,
                                                                 at_end_marker at_marker);
  [[nodiscard]] std::optional<std::vector<shard_index>> read_theirs(std::span<const std::uint64_t> sizes);
  [[nodiscard]] std::vector<std::vector<std::byte>> content_of(std::span<const found_file> files) const;

  const index_places& places_;
  std::vector<found_file> own_;
  bool has_theirs_ = false;
  // Why some could not be opened that seem to be there.
  std::string own_refused_;
  std::string theirs_refused_;
  std::string why_not_;
};

}  // namespace leat::datasets
