#include "datasets/formats/tar/shard_index_file.hpp"

#include "base/hash_map.hpp"
#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/files/index_cache.hpp"

#include <leat/digest.hpp>
#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::array<char, 8> magic_text = {'l', 'e', 'a', 't', 't', 'a', 'r', '\n'};
// Incremented whenever the meaning of an index changes.
constexpr std::uint64_t plain_version = 1;
// Of indexes with hard links, which the version before would take for members without bytes.
constexpr std::uint64_t version_with_links = 2;

struct header {
  std::array<char, 8> magic = magic_text;
  std::uint64_t version = plain_version;
  digest whole;  ///< of what follows
};
static_assert(sizeof(header) == 32);

digest digest_of(std::span<const std::byte> content) {
  hasher hash;
  hash.add(content);
  return hash.finish();
}

[[noreturn]] void refuse(std::string_view why) { throw error(errc::format, std::string(why)); }

void save(section_writer& into, const indexed_shard& shard, bool has_links) {
  const shard_index& index = shard.index;
  into.add(shard.name);
  into.add(index.file_bytes);
  into.add(index.members_skipped);
  into.add(index.links_skipped);
  into.add(index.fields.size());
  for (const std::string& each : index.fields) into.add(each);
  std::vector<extent_table::record> records;
  records.reserve(index.records.size());
  for (const extent_table::record& each : index.records)
    records.emplace_back(each.offset(), each.bytes(), 0, each.field());
  into.add_all(std::span<const extent_table::record>(records));
  into.add_all(std::span<const std::uint32_t>(index.ends));
  into.add(index.defects.size());
  for (const shard_index::damaged& each : index.defects) {
    into.add(each.sample);
    into.add(each.offset);
    into.add(each.reason);
  }
  into.add(index.notes.size());
  for (const std::string& each : index.notes) into.add(each);
  into.add_all(std::span<const photo_place>(index.photos));
  if (has_links) into.add_all(std::span<const shard_index::link>(index.links));
}

// Members lie behind one another, as a walk finds them, each with its header before it and all of its bytes in the shard.
void check_places(const shard_index& index) {
  std::uint64_t end = 0;
  for (const extent_table::record& each : index.records) {
    const bool is_there = each.offset() % tar_block_bytes == 0 && each.offset() >= end + tar_block_bytes &&
                          each.offset() <= index.file_bytes && each.bytes() <= index.file_bytes - each.offset() &&
                          each.field() < index.fields.size() && each.file() == 0;
    if (!is_there) refuse("it has places that are not in the shard");
    end = each.offset() + tar_padded(each.bytes());
  }
}

void check(const shard_index& index) {
  check_places(index);
  std::uint32_t begin = 0;
  std::vector<std::uint32_t> seen_by(index.fields.size());  // the end of the last sample that has the field
  for (const std::uint32_t end : index.ends) {
    if (end <= begin || end > index.records.size()) refuse("its samples and their parts do not belong together");
    for (std::uint32_t i = begin; i < end; ++i) {
      if (std::exchange(seen_by[index.records[i].field()], end) == end) refuse("a sample has a field twice");
    }
    begin = end;
  }
  if (begin != index.records.size()) refuse("its samples and their parts do not belong together");
  const hash_set<std::string_view> names(index.fields.begin(), index.fields.end());
  if (names.size() != index.fields.size()) refuse("it has two fields of one name");
  if (std::find(seen_by.begin(), seen_by.end(), 0U) != seen_by.end()) refuse("it has a field that no sample has");
  for (const shard_index::damaged& each : index.defects) {
    if (each.sample >= index.ends.size()) refuse("it has damage of a sample that there is not");
  }
  for (std::size_t i = 0; i < index.links.size(); ++i) {
    const shard_index::link& each = index.links[i];
    const bool follows = i == 0 || index.links[i - 1].record < each.record;
    const bool is_there = follows && each.record < index.records.size() && each.target < each.record &&
                          index.records[each.record].bytes() == 0;
    if (!is_there) refuse("it has links to members that there are not");
  }
  const auto is_before = [](const photo_place& a, const photo_place& b) { return a.block < b.block; };
  const bool are_sound =
      std::all_of(index.photos.begin(), index.photos.end(), [](const photo_place& each) { return each.is_sound(); }) &&
      std::is_sorted(index.photos.begin(), index.photos.end(), is_before);
  if (!are_sound) refuse("it has places of photographs that there are not");
}

indexed_shard load(section_reader& from, bool has_links) {
  indexed_shard shard;
  shard_index& index = shard.index;
  shard.name = from.text();
  index.file_bytes = from.number();
  index.members_skipped = from.number();
  index.links_skipped = from.number();
  const std::uint64_t fields = from.number();
  if (fields > std::uint64_t{std::numeric_limits<std::uint16_t>::max()} + 1) refuse("it has too many fields");
  for (std::uint64_t i = 0; i < fields; ++i) index.fields.emplace_back(from.text());
  const auto records = from.all<extent_table::record>();
  index.records.assign(records.begin(), records.end());
  const auto ends = from.all<std::uint32_t>();
  index.ends.assign(ends.begin(), ends.end());
  for (std::uint64_t left = from.number(); left > 0; --left) {
    const std::uint64_t sample = from.number();
    const std::uint64_t offset = from.number();
    index.defects.push_back({sample, offset, std::string(from.text())});
  }
  for (std::uint64_t left = from.number(); left > 0; --left) index.notes.emplace_back(from.text());
  const auto photos = from.all<photo_place>();
  index.photos.assign(photos.begin(), photos.end());
  if (has_links) {
    const auto links = from.all<shard_index::link>();
    index.links.assign(links.begin(), links.end());
  }
  check(index);
  return shard;
}

// Words and numbers of a line, between single blanks.
class words {
 public:
  explicit words(std::string_view line) : rest_(line) {}
  [[nodiscard]] bool at_end() const noexcept { return is_over_; }
  std::string_view word() {
    if (is_over_) refuse("a line of it is cut");
    const std::size_t blank = rest_.find(' ');
    const std::string_view next = rest_.substr(0, blank);
    is_over_ = blank == std::string_view::npos;
    if (!is_over_) rest_.remove_prefix(blank + 1);
    return next;
  }
  std::uint64_t number() {
    const std::string_view text = word();
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size())
      refuse("a line of it has no number where one belongs");
    return value;
  }

 private:
  std::string_view rest_;
  bool is_over_ = false;
};

std::string_view next_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::string index_name_of(std::string_view shard) {
  if (shard.ends_with(".tar")) shard.remove_suffix(4);
  while (!shard.empty() && shard.back() >= '0' && shard.back() <= '9') shard.remove_suffix(1);
  while (!shard.empty() && (shard.back() == '-' || shard.back() == '_' || shard.back() == '.')) shard.remove_suffix(1);
  return str_cat(shard.empty() ? std::string_view("shards") : shard, ".index");
}

std::string wds_index_name_of(std::string_view shard) {
  return str_cat(shard.substr(0, shard.find('.', shard.empty() ? 0 : 1)), ".idx");
}

std::vector<std::byte> write_shard_indexes(std::span<const indexed_shard> shards, at_end_marker at_marker) {
  section_writer content;
  content.add(static_cast<std::uint64_t>(at_marker));
  content.add(shards.size());
  const bool has_links =
      std::any_of(shards.begin(), shards.end(), [](const indexed_shard& each) { return !each.index.links.empty(); });
  for (const indexed_shard& each : shards) save(content, each, has_links);
  header head;
  if (has_links) head.version = version_with_links;
  head.whole = digest_of(content.bytes());
  std::vector<std::byte> all(sizeof head);
  std::memcpy(all.data(), &head, sizeof head);
  all.insert(all.end(), content.bytes().begin(), content.bytes().end());
  return all;
}

parsed_shard_indexes parse_shard_indexes(std::span<const std::byte> bytes,
                                         const std::function<bool(std::string_view)>& is_wanted) {
  header head;
  if (bytes.size() < sizeof head) refuse("it is no index of shards");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != magic_text) refuse("it is no index of shards");
  if (head.version != plain_version && head.version != version_with_links) refuse("it is of another version of leat");
  const std::span<const std::byte> content = bytes.subspan(sizeof head);
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  if (head.whole != digest_of(content)) refuse("it is damaged");
#endif
  section_reader from(content);
  parsed_shard_indexes parsed;
  parsed.at_marker = from.number() == 0 ? at_end_marker::stop : at_end_marker::go_on;
  for (std::uint64_t left = from.number(); left > 0; --left) {
    indexed_shard each = load(from, head.version == version_with_links);
    if (is_wanted(each.name)) parsed.shards.push_back(std::move(each));
  }
  if (!from.at_end()) refuse("it goes on behind its end");
  return parsed;
}

shard_index parse_wds_index(std::string_view text, std::uint64_t file_bytes) {
  words head(next_line(text));
  const std::string_view told = head.word();
  const bool has_names = told == "v1.2";
  if (!has_names && told != "v1.1") refuse("it begins with neither v1.1 nor v1.2");
  const std::uint64_t samples = head.number();
  shard_grouper grouper("", 0);
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    if (text.empty()) refuse("it has fewer lines than it says");
    words line(next_line(text));
    while (!line.at_end()) {
      tar_member member;
      member.is_file = true;
      const std::string_view extension = line.word();
      member.data_offset = line.number();
      member.size_bytes = line.number();
      member.name = has_names ? std::string(line.word()) : str_cat(sample, ".", extension);
      if (member.data_offset > file_bytes || member.size_bytes > file_bytes - member.data_offset)
        refuse("it has places that are not in the shard");
      member.header_offset = member.data_offset - std::min<std::uint64_t>(member.data_offset, tar_block_bytes);
      grouper.add(member);
    }
  }
  while (!text.empty()) {
    if (!next_line(text).empty()) refuse("it has more lines than it says");
  }
  shard_index index = grouper.finish();
  index.file_bytes = file_bytes;
  check(index);
  return index;
}

void renumber(shard_index& index, std::uint32_t file) {
  for (extent_table::record& each : index.records)
    each = extent_table::record(each.offset(), each.bytes(), file, each.field());
}

}  // namespace leat::datasets
