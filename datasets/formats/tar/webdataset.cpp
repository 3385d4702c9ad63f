#include "datasets/formats/tar/webdataset.hpp"

#include "base/hash_map.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/model/member_key.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <limits>

namespace leat::datasets {

std::optional<member_name> split_member_name(std::string_view path) noexcept {
  const std::size_t base = path.rfind('/') + 1;  // npos + 1 is 0.
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos) return std::nullopt;
  if (dot == base) {
    // ".jpg": the expression's key needs a character that is no dot, and takes "directory/" where its name has no dot.
    if (base == 0) return std::nullopt;
    const std::size_t last_slash = base - 1;
    const std::size_t directory = last_slash == 0 ? 0 : path.rfind('/', last_slash - 1) + 1;
    if (path.substr(directory, last_slash - directory).find('.') != std::string_view::npos) return std::nullopt;
  }
  return member_name{path.substr(0, dot), path.substr(dot + 1)};
}

bool is_archive_metadata(std::string_view path) noexcept {
  const std::string_view first = path.substr(0, path.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

// Of a hard link that leads nowhere.
static constexpr std::uint32_t no_record = std::numeric_limits<std::uint32_t>::max();

static std::string plain_name(std::string_view name) {
  return std::string(name.starts_with("./") ? name.substr(2) : name);
}

void shard_grouper::mark_defect(std::uint64_t offset, std::string reason) {
  const std::uint64_t sample = index_.ends.size();
  // Only the first defect of a sample is kept.
  if (!index_.defects.empty() && index_.defects.back().sample == sample) return;
  index_.defects.push_back({sample, offset, std::move(reason)});
}

std::uint16_t shard_grouper::field_number(std::string_view extension) {
  std::string field = decode_field_name(lower_case(extension));
  const auto found = numbers_.find(field);
  if (found != numbers_.end()) return found->second;
  if (index_.fields.size() > std::numeric_limits<std::uint16_t>::max()) {
    throw error(errc::limit,
                str_cat(path_, ": more than 65,536 different fields, '", field,
                        "' for one: a field is what follows the first dot of a member's name, so names with "
                        "dots in them make a field each; `leat pack` writes such dots as %2E"));
  }
  const auto number = static_cast<std::uint16_t>(index_.fields.size());
  index_.fields.push_back(field);
  numbers_.emplace(std::move(field), number);
  return number;
}

void shard_grouper::end_sample() {
  if (!open_) return;
  index_.ends.push_back(static_cast<std::uint32_t>(index_.records.size()));
  open_ = false;
}

void shard_grouper::add(const tar_member& member) {
  last_cut_ = member.cut;
  if (member.begins_archive) {
    end_sample();  // The same key in the next archive is another sample.
    archive_offset_ = member.header_offset;
  }
  const bool is_hard_link = member.type == '1';
  if (!member.is_file && !is_hard_link) {
    if (member.type != '5') ++index_.members_skipped;
    if (member.type == '2') ++index_.links_skipped;
    return;
  }
  if (is_archive_metadata(member.name)) {
    // An index of fewer packs than there are members: its size is no reason to take memory.
    const bool is_photos = member.is_file && member.name == photo_places_member && !member.cut &&
                           member.size_bytes <= photo_places_bytes(index_.records.size());
    if (!is_photos) return;
    // The last one of an archive is the index; a tar may hold a million that are none.
    const bool is_next = photo_indexes_.empty() || photo_indexes_.back().archive_offset != archive_offset_;
    if (is_next) photo_indexes_.emplace_back();
    photo_indexes_.back() = {archive_offset_, member.data_offset, member.size_bytes};
    return;
  }
  if (!hidden_part(member.name).empty()) {
    hidden_.add_file(member.name);
    return;
  }
  const std::optional<member_name> name = split_member_name(member.name);
  if (!name) {
    ++index_.members_skipped;
    if (member.cut)
      index_.notes.push_back(str_cat(path_, ": ends inside member '", member.name, "' at offset ", member.data_offset));
    return;
  }
  if (!open_ || name->key != key_) {
    end_sample();
    open_ = true;
    key_ = name->key;
    begin_ = index_.records.size();
  }
  if (!extent_table::fits(member.data_offset, member.cut ? 0 : member.size_bytes, file_)) {
    throw error(errc::limit, str_cat(path_, ": member '", member.name, "' of ", member.size_bytes, " bytes at offset ",
                                     member.data_offset, " is beyond what leat indexes: 1 TiB, in a shard of 256 TiB"));
  }
  const std::uint16_t field = field_number(name->extension);
  for (std::size_t i = begin_; i < index_.records.size(); ++i) {
    if (index_.records[i].field() != field) continue;
    mark_defect(member.header_offset,
                str_cat("has the field '", index_.fields[field], "' twice: at offset ", index_.records[i].offset(),
                        " and again, as '", member.name, "', at ", member.data_offset));
    return;
  }
  if (is_again_) {
    const auto wanted = linked_.find(plain_name(member.name));
    if (wanted != linked_.end()) wanted->second = static_cast<std::uint32_t>(index_.records.size());
  }
  if (is_hard_link) return add_link(member, field);
  if (member.cut) {
    mark_defect(member.data_offset, str_cat("the shard ends inside '", member.name, "', which has ", member.size_bytes,
                                            " bytes from offset ", member.data_offset, " on: it was cut"));
    // It keeps its place among the sample's fields, but has no bytes to read.
    index_.records.emplace_back(member.data_offset, 0, file_, field);
    return;
  }
  index_.records.emplace_back(member.data_offset, member.size_bytes, file_, field);
}

void shard_grouper::add_link(const tar_member& member, std::uint16_t field) {
  const auto record = static_cast<std::uint32_t>(index_.records.size());
  index_.records.emplace_back(member.data_offset, 0, file_, field);
  const auto found = linked_.try_emplace(plain_name(member.link_name), no_record).first;
  if (found->second < record) {
    std::uint32_t target = found->second;
    const auto other =
        std::lower_bound(index_.links.begin(), index_.links.end(), target,
                         [](const shard_index::link& each, std::uint32_t at) { return each.record < at; });
    if (other != index_.links.end() && other->record == target) target = other->target;
    index_.links.push_back({record, target});
    return;
  }
  mark_defect(member.header_offset,
              str_cat("unsupported: member '", member.name, "' is a hard link to '", member.link_name,
                      "', which is no earlier member of a sample in this shard; write the archive again with tar's "
                      "--hard-dereference"));
}

bool shard_grouper::begins_again() {
  if (is_again_ || linked_.empty()) return false;
  hash_map<std::string, std::uint32_t> linked = std::move(linked_);
  *this = shard_grouper(std::move(path_), file_);
  linked_ = std::move(linked);
  is_again_ = true;
  return true;
}

void shard_grouper::add_photos(const photo_index& from, std::span<const std::byte> content) {
  const std::optional<std::vector<photo_place>> places = parse_photo_places(content);
  if (!places) return note_no_photos("it is damaged, or of a later version");
  const std::uint64_t moved_by = from.archive_offset / tar_block_bytes;
  for (photo_place place : *places) {
    if (place.block > std::numeric_limits<std::uint32_t>::max() - moved_by) continue;
    place.block += static_cast<std::uint32_t>(moved_by);
    const auto record =
        std::lower_bound(index_.records.begin(), index_.records.end(), place.offset(),
                         [](const extent_table::record& each, std::uint64_t offset) { return each.offset() < offset; });
    const bool is_there = record != index_.records.end() && record->offset() == place.offset();
    if (is_there && record->bytes() == place.bytes) index_.photos.push_back(place);
  }
}

void shard_grouper::note_no_photos(std::string_view why) {
  index_.notes.push_back(str_cat(path_, ": its index of photo packs is not used, ", why,
                                 ": they are read whole; packing the shard again writes a new one"));
}

void shard_grouper::note_end(const tar_walk& walk) {
  const std::uint64_t rest = walk.size_bytes() - walk.behind_offset();
  switch (walk.behind_end()) {
    case tar_walk::behind::archive:
      index_.notes.push_back(str_cat(path_, ": another archive begins at offset ", walk.behind_offset(),
                                     ", after the archive's end at ", walk.end_marker(), ", and its ", bytes_text(rest),
                                     " are not read: samples are missing. `cat a.tar b.tar` makes ", "such files; ",
                                     spelled(option_id::ignore_zeros), " reads them whole"));
      return;
    case tar_walk::behind::other:
      index_.notes.push_back(str_cat(path_, ": ", rest, " bytes after the archive's end are not read, as by tar"));
      return;
    case tar_walk::behind::nothing:
      break;
  }
  // A cut that is the defect of a sample is reported as such.
  if (walk.has_end_marker() || walk.cut_in_header() || last_cut_) return;
  index_.notes.push_back(
      str_cat(path_,
              ": the shard has no end marker: it was cut where a member begins, or its writer was not closed; samples "
              "may be missing: compare it with its original"));
}

void shard_grouper::note_skipped() {
  const std::uint64_t skipped = index_.members_skipped;
  if (skipped == 0) return;
  std::string note =
      str_cat(path_, ": ", skipped, skipped == 1 ? " member" : " members", " skipped that belong to no sample");
  if (const std::uint64_t links = index_.links_skipped; links > 0) {
    str_append(note, ", ", links, links == 1 ? " symbolic link" : " symbolic links",
               " among them (tar's --dereference stores the files that they lead to)");
  }
  index_.notes.push_back(std::move(note));
}

void shard_grouper::note_hidden() {
  if (const std::string text = hidden_.text(); !text.empty()) {
    index_.notes.push_back(str_cat(path_, ": left out: ", text));
  }
}

shard_index shard_grouper::finish(const tar_walk& walk) {
  if (walk.cut_in_header()) {
    const std::string what = str_cat("the shard ends inside a header at offset ", walk.position(), ": it was cut");
    if (!open_) throw error(errc::format, str_cat(path_, ": ", what, "; copy it again"));
    mark_defect(walk.position(), str_cat(what, ", and this sample may lack what came next"));
  }
  note_end(walk);
  return finish();
}

shard_index shard_grouper::finish() {
  end_sample();
  note_skipped();
  note_hidden();
  index_.records.shrink_to_fit();
  std::sort(index_.photos.begin(), index_.photos.end(),
            [](const photo_place& a, const photo_place& b) { return a.block < b.block; });
  return std::move(index_);
}

}  // namespace leat::datasets
