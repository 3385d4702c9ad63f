// How WebDataset makes samples of an archive's members.
#pragma once

#include "base/hash_map.hpp"
#include "datasets/formats/tar/photo_places.hpp"
#include "datasets/formats/tar/tar_walk.hpp"
#include "datasets/model/hidden_names.hpp"
#include "datasets/tables/extent_table.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::datasets {

/// A member's path as key and field.
struct member_name {
  std::string_view key;
  std::string_view extension;  ///< as it is written; the field is its lower case
};

/// Splits at the first dot of the last path component; nullopt where there is none to split at: no member of a sample.
///   source   webdataset/tariterators.py, base_plus_ext: ^((?:.*/|)[^.]+)[.]([^/]*)$
[[nodiscard]] std::optional<member_name> split_member_name(std::string_view path) noexcept;

/// True for members that describe the archive and are no samples: __name__, and what lies in a directory of that kind.
///   source   webdataset/tariterators.py: meta_prefix, meta_suffix, and the skip_meta pattern __[^/]*__($|/)
[[nodiscard]] bool is_archive_metadata(std::string_view path) noexcept;

[[nodiscard]] std::string lower_case(std::string_view text);

/// What one shard holds: samples of fields that are numbered within the shard.
struct shard_index {
  struct damaged {
    std::uint64_t sample;  ///< of this shard
    std::uint64_t offset;
    std::string reason;
  };
  /// A hard link, whose bytes are those of another record before it, which is none.
  struct link {
    std::uint32_t record = 0;
    std::uint32_t target = 0;
  };
  std::vector<extent_table::record> records;
  std::vector<link> links;          ///< in the order of their records, which have no bytes
  std::vector<std::uint32_t> ends;  ///< per sample: the end of its records
  std::vector<std::string> fields;
  std::vector<damaged> defects;
  std::uint64_t members_skipped = 0;  ///< links, devices, files without a key
  std::uint64_t links_skipped = 0;    ///< of them, symbolic links
  std::uint64_t file_bytes = 0;       ///< of the shard
  std::vector<std::string> notes;
  std::vector<photo_place> photos;  ///< by their blocks
};

/// Takes the members of one shard in their order and groups neighbours of one key.
class shard_grouper {
 public:
  shard_grouper(std::string path, std::uint32_t file) : path_(std::move(path)), file_(file) {}

  ///   throws   error{errc::limit} more than an extent_table can hold
  void add(const tar_member& member);

  /// A member that is an index of photo packs, and where the archive begins that it is of.
  struct photo_index {
    std::uint64_t archive_offset = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] const std::vector<photo_index>& photo_indexes() const noexcept { return photo_indexes_; }
  /// Its content. What is damaged, or of no member, is left out.
  void add_photos(const photo_index& from, std::span<const std::byte> content);
  /// There is one that is not used.
  void note_no_photos(std::string_view why);

  /// There are hard links, and what they lead to has passed by: all members are to be added again. True once at most.
  [[nodiscard]] bool begins_again();

  /// After the last member.
  [[nodiscard]] shard_index finish(const tar_walk& walk);
  /// Where there was no walk: nothing is known of the archive's end.
  [[nodiscard]] shard_index finish();

 private:
  void end_sample();
  void add_link(const tar_member& member, std::uint16_t field);
  void note_end(const tar_walk& walk);
  void note_skipped();
  void note_hidden();
  void mark_defect(std::uint64_t offset, std::string reason);
  [[nodiscard]] std::uint16_t field_number(std::string_view extension);

  std::string path_;
  std::uint32_t file_;
  shard_index index_;
  hidden_files hidden_;
  bool open_ = false;
  bool last_cut_ = false;  // The last member of all.
  std::string key_;
  std::size_t begin_ = 0;  // Of the open sample's records.
  std::uint64_t archive_offset_ = 0;
  std::vector<photo_index> photo_indexes_;
  hash_map<std::string, std::uint16_t> numbers_;
  // Where hard links lead, and the last record of that name when members come again.
  hash_map<std::string, std::uint32_t> linked_;
  bool is_again_ = false;
};

}  // namespace leat::datasets
