// What a sample is packed as: its members by name, and their bytes.
#pragma once

#include "datasets/files/blocking_source.hpp"
#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {

/// One member to be packed: its bytes are in memory already, or in extents that are still to be read.
struct member {
  std::string name;
  std::uint64_t size_bytes = 0;
  std::vector<std::byte> content;
  std::vector<extent> extents;
};

struct sample_members {
  std::vector<member> members;
  std::uint64_t content_bytes = 0;
  std::uint64_t archive_bytes = 0;
};

/// Makes the members of samples, in the order in which they are packed: neighbours of one key are numbered. Thread: one at a time.
class sample_reader {
 public:
  sample_reader(const dataset_model& model, std::stop_token stop) : model_(model), stop_(std::move(stop)) {}

  /// The members of a sample; those with extents are not read yet.
  [[nodiscard]] sample_members describe(std::uint64_t sample);
  /// The key of a sample by itself, as it is before neighbours of one key are numbered.
  [[nodiscard]] std::string key(std::uint64_t sample);
  /// Numbers the next samples as if one of this key had been described.
  void pass_over(const std::string& key) { static_cast<void>(next_key(key)); }

  /// Reads what is still to be read, all of it together.
  void read(std::vector<sample_members>& samples);
  /// A part of a member too large to be read whole.
  void read(const extent& where, std::uint64_t offset, std::span<std::byte> into);

 private:
  blocking_source& source(std::uint32_t number) { return sources_.of(*model_.sources()[number]); }
  [[nodiscard]] std::string key_of(std::uint64_t sample, const std::vector<member_path>& paths) const;
  void name_members(std::uint64_t sample, const std::vector<std::uint16_t>& fields, sample_members& result);
  [[nodiscard]] std::string next_key(std::string key);
  void add_columns(std::uint64_t sample, sample_members& result) const;

  const dataset_model& model_;
  std::stop_token stop_;
  blocking_sources sources_{opening_loop::traffic::many};
  std::string key_;
  std::string last_key_;
  std::uint64_t repeated_ = 0;
};

}  // namespace leat::datasets
