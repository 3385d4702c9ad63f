// A dataset whose bytes a test knows: samples kept in memory, laid out on fake disks (or written to real files) in the
// ways that formats lay them out. The same samples in any layout are the same dataset to a trainer.
#pragma once

#include "datasets/model/model.hpp"
#include "tests/support/fake_disk.hpp"

#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {

/// What a sample holds, before anybody says where it lies.
///   members      field and bytes; a field that is not listed is missing
///   cls_column   the class, where the dataset knows it itself
///   defect       the sample is known to be damaged, for this reason, before it is read
struct fake_sample {
  struct member {
    std::string field;
    std::vector<std::byte> bytes;
  };
  std::vector<member> members;
  std::optional<std::int64_t> cls_column;
  std::string defect;

  [[nodiscard]] member* find(std::string_view field);
  [[nodiscard]] const member* find(std::string_view field) const { return const_cast<fake_sample*>(this)->find(field); }
  void remove(std::string_view field);
};

[[nodiscard]] std::vector<std::byte> to_bytes(std::string_view text);
[[nodiscard]] std::string_view as_text(std::span<const std::byte> bytes);

/// Small pictures with a class, a text and some JSON, a function of the seed: "jpg" (every seventh is a PNG, of which
/// every second is called "png"), "cls", "txt" (of 0 to 200 bytes) and "json". The class of sample i is 1000 + i, so
/// that a label tells whose row it is.
[[nodiscard]] std::vector<fake_sample> make_samples(std::uint64_t seed, std::size_t count);

/// How members lie in files.
enum class fake_layout : std::uint8_t {
  file_per_member,  ///< as loose files
  shards,           ///< as tar shards: a sample's members beside each other, each after 512 bytes and padded to 512
  columns           ///< one file per field, members without a gap between them
};

struct fake_dataset_options {
  fake_layout layout = fake_layout::shards;
  std::uint32_t shards = 3;
  /// Files are dealt out to so many disks; each is a source of its own.
  std::uint32_t disks = 1;
  /// The first disk's; the seeds of the others follow on.
  fake_disk_options disk = {};
};

/// The samples on fake disks.
class fake_dataset {
 public:
  explicit fake_dataset(const std::vector<fake_sample>& samples, const fake_dataset_options& options = {});

  [[nodiscard]] const leat::dataset& get() const noexcept { return dataset_; }
  operator leat::dataset() const { return dataset_; }  // NOLINT: what a loader takes.

  [[nodiscard]] fake_disk& disk(std::uint32_t source = 0) const { return *disks_[source]; }
  /// Where a member lies. Throws std::out_of_range where there is none.
  [[nodiscard]] extent where(std::uint64_t sample, std::string_view field) const;
  /// Every read that touches this member fails, with an errno or read_fault::never.
  void damage(std::uint64_t sample, std::string_view field, int failure, std::uint32_t times = read_fault::always,
              std::shared_ptr<const io::source_failure> said = {});
  /// All disks together.
  [[nodiscard]] fake_disk_counters count() const;

 private:
  std::vector<std::shared_ptr<fake_disk>> disks_;
  leat::dataset dataset_;
};

/// The same samples in real files of `directory`, which must exist, as a table of extents.
[[nodiscard]] leat::dataset write_samples(const std::vector<fake_sample>& samples, const fake_dataset_options& options,
                                          const std::filesystem::path& directory);

}  // namespace leat::testing
