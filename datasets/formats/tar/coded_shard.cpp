#include "datasets/formats/tar/coded_shard.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

// Until its end is seen, a stream may become as much as this.
constexpr std::uint64_t unknown_bytes = std::uint64_t{1} << 62;

/// Walks through an archive as its bytes come.
class walk_along {
 public:
  walk_along(const std::string& path, std::uint32_t number, at_end_marker at_marker)
      : path_(path), at_marker_(at_marker), grouper_(path, number) {
    begin();
  }

  void take(std::span<const std::byte> piece) {
    const std::uint64_t begin = seen_;
    seen_ += piece.size();
    if (wanted_.offset >= seen_) return;
    const std::uint64_t from = std::max(wanted_.offset, begin);
    if (held_.empty()) held_at_ = from;
    const auto skipped = static_cast<std::ptrdiff_t>(from - begin);
    held_.insert(held_.end(), piece.begin() + skipped, piece.end());
    if (wanted_.offset + wanted_.bytes <= seen_) go_on();
  }

  /// After the last piece. Nothing where all of them are to come again.
  [[nodiscard]] std::optional<shard_index> finish() {
    walk_->ends_at(seen_);
    go_on();
    deliver();
    if (!grouper_.begins_again()) return grouper_.finish(*walk_);
    begin();
    return std::nullopt;
  }

 private:
  void begin() {
    walk_.emplace(str_cat(path_, ", decompressed"), unknown_bytes, 0, at_marker_);
    seen_ = held_at_ = 0;
    wanted_ = {};
    held_.clear();
  }

  void go_on() {
    walk_->feed(held_at_, held_);
    for (;;) {
      switch (walk_->next()) {
        case tar_walk::result::member:
          deliver();
          member_ = walk_->member();
          break;
        case tar_walk::result::wants:
          return want(walk_->wants());
        case tar_walk::result::end:
          return want({.offset = unknown_bytes, .bytes = 0});
      }
    }
  }

  // Keeps what it has of them.
  void want(const tar_walk::wanted& wanted) {
    wanted_ = wanted;
    const std::uint64_t passed =
        std::min<std::uint64_t>(wanted.offset - std::min(wanted.offset, held_at_), held_.size());
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(passed));
    held_at_ += passed;
    walk_->feed(held_at_, held_);
  }

  // A member is known to be whole once its end is seen.
  void deliver() {
    if (!member_) return;
    member_->cut = member_->cut || member_->size_bytes > seen_ - std::min(seen_, member_->data_offset);
    grouper_.add(*member_);
    member_.reset();
  }

  const std::string path_;
  const at_end_marker at_marker_;
  std::optional<tar_walk> walk_;
  shard_grouper grouper_;
  std::uint64_t seen_ = 0;
  tar_walk::wanted wanted_;
  std::vector<std::byte> held_;
  std::uint64_t held_at_ = 0;
  std::optional<tar_member> member_;
};

}  // namespace

coded_shard index_coded_shard(const file_bytes& shard, std::uint32_t number, stream_coding coding,
                              std::uint64_t stored_step, at_end_marker at_marker) {
  walk_along walk(shard.path(), number, at_marker);
  coded_shard found;
  const auto read_through = [&] {
    found.file = std::make_shared<const coded_file>(shard, coding, stored_step,
                                                    [&](std::span<const std::byte> piece) { walk.take(piece); });
  };
  read_through();
  if (found.file->bytes() == 0) {
    throw error(errc::format,
                str_cat(shard.path(), ": it becomes no bytes at all, not even an archive's end; write it again"));
  }
  std::optional<shard_index> members = walk.finish();
  if (!members) {
    read_through();
    members = walk.finish();
  }
  found.members = *std::move(members);
  found.members.file_bytes = found.file->stored_bytes();
  if (!found.file->note().empty()) found.members.notes.push_back(str_cat(shard.path(), ": ", found.file->note()));
  return found;
}

}  // namespace leat::datasets
