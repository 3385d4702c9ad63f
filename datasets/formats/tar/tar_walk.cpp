#include "datasets/formats/tar/tar_walk.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/files/content.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

// Names and pax records are read whole. Linux paths end at 4 KiB; a pax header that needs more than this is an attack.
constexpr std::uint64_t extension_bytes_max = std::uint64_t{1} << 20;
// Zeros behind an end marker are read in pieces of this size.
constexpr std::uint64_t zeros_bytes = std::uint64_t{64} << 10;
// How far behind an end marker to look for another archive: the last record of `tar --blocking-factor=2048` is shorter.
constexpr std::uint64_t behind_bytes_max = std::uint64_t{1} << 20;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

tar_walk::tar_walk(std::string path, std::uint64_t file_bytes, std::uint64_t offset, at_end_marker what)
    : path_(std::move(path)), file_bytes_(file_bytes), position_(offset), at_marker_(what) {}

void tar_walk::feed(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  buffer_offset_ = offset;
  buffer_ = bytes;
}

void tar_walk::ends_at(std::uint64_t file_bytes) noexcept {
  file_bytes_ = file_bytes;
  position_ = std::min(position_, file_bytes);
}

void tar_walk::fail(errc code, std::uint64_t offset, const std::string& what) const {
  throw error(code, str_cat(path_, ": offset ", offset, ": ", what));
}

void tar_walk::fail_at_start(std::span<const std::byte> block) const {
  const content_kind found = content_of(block);
  if (found.name.empty()) {
    throw error(errc::format, str_cat(path_,
                                      ": no tar archive: its first header is none; compare it with its "
                                      "original"));
  }
  throw error(errc::unsupported, str_cat(path_, ": no tar archive: this is ", found.name, advice_about(found)));
}

std::optional<std::span<const std::byte>> tar_walk::at(std::uint64_t offset, std::uint64_t bytes) {
  if (offset >= buffer_offset_ && offset - buffer_offset_ <= buffer_.size() &&
      bytes <= buffer_.size() - (offset - buffer_offset_)) {
    return buffer_.subspan(offset - buffer_offset_, bytes);
  }
  wants_ = {offset, bytes};
  return std::nullopt;
}

tar_walk::result tar_walk::cut(std::uint64_t offset) {
  cut_in_header_ = true;
  end_ = file_bytes_;
  position_ = offset;
  return result::end;
}

// Moves scan_ to the first block that is not all zeros, or to `until`. Returns false where bytes have to be fetched first.
bool tar_walk::pass_zeros(std::uint64_t until) {
  while (scan_ < until) {
    const auto piece = at(scan_, std::min(zeros_bytes, until - scan_));
    if (!piece) return false;
    const auto other = std::find_if(piece->begin(), piece->end(), [](std::byte each) { return each != std::byte{0}; });
    if (other != piece->end()) {
      scan_ += static_cast<std::uint64_t>(other - piece->begin()) / tar_block_bytes * tar_block_bytes;
      return true;
    }
    scan_ += piece->size();
  }
  return true;
}

tar_walk::result tar_walk::look_behind_end() {
  const std::uint64_t until = std::min(file_bytes_, *marker_ + behind_bytes_max);
  if (!pass_zeros(until)) return result::wants;
  if (scan_ < until) {
    behind_ = behind::other;
    if (file_bytes_ - scan_ >= tar_block_bytes) {
      const auto block = at(scan_, tar_block_bytes);
      if (!block) return result::wants;
      tar_header header;
      std::string reason;
      if (read_tar_block(*block, header, reason) == tar_block::header) behind_ = behind::archive;
    }
  } else if (until < file_bytes_) {
    behind_ = behind::other;
  }
  end_ = *marker_;
  return result::end;
}

tar_walk::result tar_walk::next() {
  if (end_) return result::end;
  for (;;) {
    if (passing_) {
      if (at_marker_ == at_end_marker::stop) return look_behind_end();
      if (!pass_zeros(file_bytes_)) return result::wants;
      position_ = scan_;
      passing_ = false;
      after_marker_ = true;
    }
    if (position_ >= file_bytes_) {
      if (first_header_) return cut(*first_header_);  // A long name without its member.
      end_ = file_bytes_;
      return result::end;
    }
    if (file_bytes_ - position_ < tar_block_bytes) {
      if (position_ == 0) {
        const auto all = at(0, file_bytes_);
        if (!all) return result::wants;
        if (!content_of(*all).name.empty()) fail_at_start(*all);
      }
      return cut(first_header_.value_or(position_));
    }
    const std::uint64_t offset = position_;
    const auto block = at(offset, tar_block_bytes);
    if (!block) return result::wants;

    tar_header header;
    std::string reason;
    switch (read_tar_block(*block, header, reason)) {
      case tar_block::zeros:
        forget_extensions();
        marker_ = offset;
        scan_ = offset + tar_block_bytes;
        passing_ = true;
        continue;
      case tar_block::damaged:
        if (offset == 0) fail_at_start(*block);
        if (after_marker_) {
          fail(errc::format, offset,
               str_cat("behind an end marker of the archive lies neither zeros nor another archive; without ",
                       spelled(option_id::ignore_zeros), " it is left out"));
        }
        fail(errc::format, offset,
             str_cat("a tar header was expected here: ", reason, "; compare the shard with its original"));
      case tar_block::header:
        break;
    }
    if (!first_header_) first_header_ = offset;
    if (header.type == 'L' || header.type == 'K' || header.type == 'x' || header.type == 'X' || header.type == 'g') {
      if (header.size_bytes > extension_bytes_max) {
        fail(errc::format, offset, str_cat("an extended header of ", header.size_bytes, " bytes; 1 MiB is the most"));
      }
      if (header.size_bytes > file_bytes_ - offset - tar_block_bytes) return cut(*first_header_);
      if (!take_extension(header, offset)) return result::wants;
      continue;
    }
    take_member(header, offset);
    return result::member;
  }
}

// Returns false where the extension's content has to be fetched first; then nothing has changed.
bool tar_walk::take_extension(const tar_header& header, std::uint64_t offset) {
  const auto whole = at(offset, tar_block_bytes + header.size_bytes);
  if (!whole) return false;
  const std::string_view content = as_text(whole->subspan(tar_block_bytes));
  std::string reason;
  if (header.type == 'L') {
    long_name_ = content.substr(0, content.find('\0'));
  } else if (header.type == 'K') {
    long_link_ = content.substr(0, content.find('\0'));
  } else if (header.type == 'g') {
    pax_records records;
    if (!read_pax_records(content, records, reason)) fail(errc::format, offset, reason);
    global_.update(records);
    first_header_.reset();  // It belongs to no single member.
  } else {
    if (!read_pax_records(content, local_, reason)) fail(errc::format, offset, reason);
  }
  position_ = offset + tar_block_bytes + tar_padded(header.size_bytes);
  return true;
}

void tar_walk::take_member(tar_header& header, std::uint64_t offset) {
  pax_records records = global_;
  records.update(local_);
  member_.name = records.path ? std::move(*records.path) : long_name_ ? std::move(*long_name_) : std::move(header.name);
  member_.link_name = records.link_path ? std::move(*records.link_path)
                      : long_link_      ? std::move(*long_link_)
                                        : std::move(header.link_name);
  member_.type = header.type;
  member_.is_file = header.is_file();
  member_.header_offset = *first_header_;
  member_.data_offset = offset + tar_block_bytes;
  member_.size_bytes = header.size_bytes;
  if (records.size_bytes && (header.type < '1' || header.type > '6')) member_.size_bytes = *records.size_bytes;
  member_.begins_archive = std::exchange(after_marker_, false);

  if (header.type == 'S' || (records.sparse && member_.is_file)) {
    fail(errc::unsupported, offset,
         str_cat("member '", member_.name, "' is sparse; write the archive again without tar's --sparse"));
  }
  if (header.type == 'M') {
    fail(errc::unsupported, offset,
         str_cat("member '", member_.name, "' goes on from another volume; join the volumes first"));
  }
  // Not (data_offset + size > file): a size near 2^64 would wrap around.
  member_.cut = member_.size_bytes > file_bytes_ - member_.data_offset;
  position_ = member_.cut ? file_bytes_ : std::min(file_bytes_, member_.data_offset + tar_padded(member_.size_bytes));
  if (member_.cut) end_ = file_bytes_;
  forget_extensions();
}

void tar_walk::forget_extensions() {
  first_header_.reset();
  long_name_.reset();
  long_link_.reset();
  local_ = {};
}

}  // namespace leat::datasets
