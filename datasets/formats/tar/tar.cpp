// WebDataset shards as a dataset: one table of extents, names left in the shards.
#include "base/cores_quota.hpp"
#include "base/hash_map.hpp"
#include "base/mutex.hpp"
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/coded_file.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/index_cache.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/path_error.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/files/sample_counts.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/tar/coded_shard.hpp"
#include "datasets/formats/tar/indexes_beside.hpp"
#include "datasets/formats/tar/photo_places.hpp"
#include "datasets/formats/tar/tar_header.hpp"
#include "datasets/formats/tar/tar_index.hpp"
#include "datasets/formats/tar/tar_walk.hpp"
#include "datasets/formats/tar/webdataset.hpp"
#include "datasets/model/member_key.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/describe.hpp"
#include "datasets/tables/extent_table.hpp"
#include "io/files/file_description.hpp"
#include "io/files/file_table.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/open_tar.hpp>
#include <leat/samples.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <functional>
#include <future>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

// More loops would wait for the thread that joins their shards.
constexpr std::uint32_t indexing_loops_max = 8;

class tar_model final : public dataset_model, expanding_facet, blocks_facet, defects_facet, packing_facet {
 public:
  ///   source   of these files, by the same numbers
  tar_model(std::shared_ptr<const io::file_table> files, std::shared_ptr<const io::source_description> source,
            std::vector<shard_index> shards, at_end_marker at_marker)
      : files_(std::move(files)), at_marker_(at_marker) {
    std::uint64_t samples = 0;
    std::uint64_t parts = 0;
    for (const shard_index& shard : shards) {
      samples += shard.ends.size();
      parts += shard.records.size();
    }
    table_.reserve(samples, parts);
    for (shard_index& shard : shards) {
      take(shard);
      shard = {};  // One shard at a time is held twice.
    }
    own_photos_.shrink_to_fit();
    photos_ = own_photos_;
    finish(std::move(source));
  }

  /// As save() wrote it.
  ///   source   of these files, by the same numbers
  ///   throws   error{errc::format}: it is none of these files
  tar_model(std::shared_ptr<const io::file_table> files, std::shared_ptr<const io::source_description> source,
            const std::shared_ptr<const mapped_index>& index, section_reader& from, at_end_marker at_marker)
      : files_(std::move(files)), at_marker_(at_marker) {
    for (std::uint64_t left = from.number(); left > 0; --left) notes_.emplace_back(from.text());
    for (std::uint64_t left = from.number(); left > 0; --left) {
      field_info& field = fields_[field_number(std::string(from.text()))];
      field.samples = from.number();
      field.bytes_max = from.number();
      field.bytes_total = from.number();
    }
    for (std::uint64_t left = from.number(); left > 0; --left) {
      const std::uint64_t sample = from.number();
      const auto file = static_cast<std::uint32_t>(from.number());
      const std::uint64_t offset = from.number();
      defects_.emplace(sample, defect{0, file, offset, std::string(from.text())});
      if (file >= files_->files()) throw error(errc::format, "it has damage in a file that there is not");
    }
    const auto records = from.all<extent_table::record>();
    table_ = extent_table(index, records, from.all<std::uint32_t>());
    counts_ = sample_counts(from, table_.size(), fields_.size());
    for (const part_link& each : from.all<part_link>()) links_.push_back(each);
    photos_ = from.all<photo_place>();
    for (const std::uint32_t each : from.all<std::uint32_t>()) photo_ends_.push_back(each);
    bool is_ours = from.at_end() && (defects_.empty() || defects_.rbegin()->first < table_.size());
    for (const extent_table::record& each : records) {
      is_ours = is_ours && each.file() < files_->files() && each.field() < fields_.size();
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const part_link& each = links_[i];
      is_ours = is_ours && each.part < records.size() && each.target < each.part &&
                records[each.part].file() == records[each.target].file() && (i == 0 || links_[i - 1].part < each.part);
    }
    is_ours = is_ours && std::is_sorted(photo_ends_.begin(), photo_ends_.end()) &&
              (photo_ends_.empty() ? photos_.empty() : photo_ends_.back() == photos_.size());
    is_ours =
        is_ours && std::all_of(photos_.begin(), photos_.end(), [](const photo_place& each) { return each.is_sound(); });
    if (!is_ours) throw error(errc::format, "it has places of files, fields or photographs that there are not");
    photos_owner_ = index;
    finish(std::move(source));
  }

  /// Its shards are compressed, and offsets in its table are of what they become.
  ///   from    where these shards are opened anew, to look at their headers
  void set_coded(std::vector<std::shared_ptr<const coded_file>> files, std::shared_ptr<const input_files> from) {
    for (auto& each : files) coded_.emplace_back(std::move(each));
    forms_.assign(fields_.size(), part_form::value);
    facets_.expanding = this;
    coded_from_ = std::move(from);
    for (std::uint64_t sample = 0; sample < table_.size(); ++sample) {
      const std::span<const extent_table::record> parts = table_.of(sample);
      if (parts.empty()) continue;
      add_to_blocks(parts);
    }
    std::uint64_t stored = 0;
    std::uint64_t decoded = 0;
    std::uint64_t rows = 1;
    for (coded_blocks& each : coded_) {
      each.finish();
      stored += each.file().stored_bytes();
      decoded += each.file().bytes();
      rows = std::max(rows, each.samples_max());
    }
    const double share = static_cast<double>(stored) / static_cast<double>(std::max<std::uint64_t>(decoded, 1));
    for (field_info& field : fields_) {
      field.chunked = true;
      field.blocks_max = 1;
      field.chunk = {static_cast<std::int64_t>(rows)};
      field.filters = name_of(coded_.front().file().coding());
      field.bytes_total = static_cast<std::uint64_t>(static_cast<double>(field.bytes_total) * share);
      field.decoded_block_bytes_max = 1;
      for (const coded_blocks& each : coded_) {
        field.stored_block_bytes_max = std::max(field.stored_block_bytes_max, each.stored_bytes_max());
        field.decoded_block_bytes_max = std::max(field.decoded_block_bytes_max, each.decoded_bytes_max());
        field.expand_bytes_max = std::max(field.expand_bytes_max, each.expand_bytes());
      }
    }
  }

  std::optional<value_fault> expand(std::uint64_t, const part& of, std::span<const std::byte> stored,
                                    std::span<std::byte>& decoded) const override {
    return coded_[of.where.file].expand(of.block, stored, decoded);
  }
  void copy_box(std::uint64_t sample, const part& of, const box*, std::span<const std::byte> decoded,
                std::span<std::byte> bytes) const override {
    const std::span<const extent_table::record> parts = table_.of(sample);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].field() != of.field || bytes.empty()) continue;
      const extent_table::record& each = followed(table_.first_part(sample) + i);
      const std::uint64_t begin = coded_[each.file()].offset_in(of.block, each.offset());
      std::copy_n(decoded.begin() + static_cast<std::ptrdiff_t>(begin), bytes.size(), bytes.begin());
    }
  }

  // Shards: taking the samples of a few shards at a time reads few files, one after another. Of compressed ones their blocks.
  sample_blocks blocks() const override {
    if (!coded_.empty()) return blocks_of_coded();
    sample_blocks shards(table_.size());
    std::uint32_t file = 0;
    for (std::uint64_t sample = 0; sample < table_.size(); ++sample) {
      const std::span<const extent_table::record> parts = table_.of(sample);
      if (parts.empty() || (!shards.empty() && parts.front().file() == file)) continue;
      file = parts.front().file();
      shards.begin_block(shards.empty() ? 0 : sample);
    }
    return shards.size() > 1 ? shards : sample_blocks();
  }

  /// Of this opening, which save() leaves out.
  void add_notes(std::vector<std::string> more) { std::move(more.begin(), more.end(), std::back_inserter(notes_)); }

  void save(section_writer& into) const {
    into.add(notes_.size());
    for (const std::string& note : notes_) into.add(note);
    into.add(fields_.size());
    for (const field_info& field : fields_) {
      into.add(field.name);
      into.add(field.samples);
      into.add(field.bytes_max);
      into.add(field.bytes_total);
    }
    into.add(defects_.size());
    for (const auto& [sample, found] : defects_) {
      into.add(sample);
      into.add(found.file);
      into.add(found.offset);
      into.add(found.reason);
    }
    into.add_all(table_.records());
    into.add_all(table_.firsts());
    counts_.save(into);
    into.add_all(std::span<const part_link>(links_));
    into.add_all(photos_);
    into.add_all(std::span<const std::uint32_t>(photo_ends_));
  }

  std::uint64_t size() const noexcept override { return table_.size(); }

  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    const std::size_t before = out.size();
    append_parts(table_.of(sample), needs, out);
    if (!links_.empty()) follow_links(sample, std::span(out.data(), out.size()).subspan(before));
    if (!coded_.empty()) return place_coded(sample, std::span(out.data(), out.size()).subspan(before));
    for (std::size_t i = before; i < out.size() && !photos_.empty(); ++i) {
      if (is_photo_pack_name(fields_[out[i].field].name)) out[i].photo = photo_at(out[i].where);
    }
  }

  std::string name(std::uint64_t sample) const override {
    const std::uint64_t first = table_.first_part(sample);
    const std::string path = path_of_member(first);
    const std::optional<member_name> split = split_member_name(path);
    return str_cat(files_->path(table_.records()[first].file()), "/", split ? decode_key(split->key) : path);
  }

  std::vector<member_path> members(std::uint64_t sample, std::span<const std::uint16_t> wanted,
                                   blocking_sources& from) const override {
    const std::span<const extent_table::record> records = table_.of(sample);
    std::vector<member_path> paths;
    for (const std::uint16_t field : wanted) {
      const auto record = std::find_if(records.begin(), records.end(),
                                       [&](const extent_table::record& each) { return each.field() == field; });
      assert(record != records.end());
      const std::uint64_t part = table_.first_part(sample) + static_cast<std::uint64_t>(record - records.begin());
      const std::string path = path_of_member(part, from);
      const std::optional<member_name> split = split_member_name(path);
      if (!split) throw not_there_any_more(*record);
      paths.push_back({std::string(split->key), std::string(split->extension), true});
    }
    return paths;
  }

  std::uint64_t defects() const noexcept override { return defects_.size(); }
  std::optional<defect> defect_of(std::uint64_t sample) const override {
    const auto found = defects_.find(sample);
    if (found == defects_.end()) return std::nullopt;
    return found->second;
  }

  // A member's own header is the block before its bytes, whatever long names stand before that.
  std::uint64_t header_offset(std::uint64_t, const extent& part) const override {
    return coded_.empty() ? part.offset - tar_block_bytes : part.offset;
  }

  // Members are not looked at: that would walk over the table. A shard of another content has another size, nearly always.
  void describe(description& out) const override {
    describe_model(out, "tar", *this);
    describe_files(out, *files_);
    if (at_marker_ == at_end_marker::go_on) out.add("ignore_zeros", true);
  }

  dataset_memory memory() const override {
    dataset_memory held;
    held.extents = table_.memory_bytes() + photos_.size_bytes() + photo_ends_.capacity() * sizeof(std::uint32_t);
    held.extents += links_.capacity() * sizeof(part_link);
    held.files = files_->memory_bytes();
    for (const coded_blocks& each : coded_) held.extents += each.memory_bytes() + each.file().memory_bytes();
    return held;
  }

 private:
  void finish(std::shared_ptr<const io::source_description> source) {
    sources_.push_back(std::move(source));
    facets_.counts = &counts_;
    facets_.blocks = this;
    facets_.packing = this;
    if (!defects_.empty()) facets_.defects = this;
  }

  /// A hard link: numbers of parts, as extent_table::records() has them.
  struct part_link {
    std::uint64_t part = 0;
    std::uint64_t target = 0;
  };

  // The record that has the bytes of a part.
  [[nodiscard]] const extent_table::record& followed(std::uint64_t part) const noexcept {
    const auto found = std::lower_bound(links_.begin(), links_.end(), part,
                                        [](const part_link& each, std::uint64_t at) { return each.part < at; });
    return table_.records()[found != links_.end() && found->part == part ? found->target : part];
  }

  void follow_links(std::uint64_t sample, std::span<part> parts) const {
    const std::span<const extent_table::record> records = table_.of(sample);
    for (part& each : parts) {
      const auto own = std::find_if(records.begin(), records.end(),
                                    [&](const extent_table::record& one) { return one.field() == each.field; });
      const auto number = static_cast<std::uint64_t>(own - records.begin());
      const extent_table::record& from = followed(table_.first_part(sample) + number);
      each.where.offset = from.offset();
      each.where.stored_bytes = each.where.decoded_bytes = from.bytes();
    }
    std::sort(parts.begin(), parts.end(), [](const part& a, const part& b) { return a.where.offset < b.where.offset; });
  }

  // What a kept index says may be anything.
  void add_to_blocks(std::span<const extent_table::record> parts) {
    coded_blocks& blocks = coded_[parts.front().file()];
    std::uint64_t end = parts.front().offset();
    for (const extent_table::record& each : parts) {
      const bool follows = each.file() == parts.front().file() && each.offset() >= end &&
                           each.offset() + each.bytes() <= blocks.file().bytes();
      if (!follows) throw error(errc::format, "it has members in another order than shards have");
      end = each.offset() + each.bytes();
    }
    if (!blocks.add(parts.front().offset(), end))
      throw error(errc::format, "it has samples in another order than shards have");
  }

  // A sample lies in the block in which its first member begins; what a hard link leads to lies in that of its own sample, or in a later
  // one that has it whole.
  void place_coded(std::uint64_t sample, std::span<part> parts) const {
    if (parts.empty()) return;
    const extent_table::record& first = table_.of(sample).front();
    const coded_blocks& blocks = coded_[first.file()];
    const std::size_t block = blocks.block_of(first.offset());
    for (part& each : parts) {
      each.value_bytes = each.where.stored_bytes;
      blocks.place(each.where.offset < first.offset() ? blocks.block_of(each.where.offset) : block, each);
    }
  }

  [[nodiscard]] sample_blocks blocks_of_coded() const {
    sample_blocks all(table_.size());
    std::optional<std::pair<std::uint32_t, std::size_t>> now;
    for (std::uint64_t sample = 0; sample < table_.size(); ++sample) {
      const std::span<const extent_table::record> parts = table_.of(sample);
      if (parts.empty()) continue;
      const std::uint32_t file = parts.front().file();
      const std::pair here{file, coded_[file].block_of(parts.front().offset())};
      if (now == here) continue;
      all.begin_block(now ? sample : 0);
      now = here;
    }
    return all;
  }

  void take(const shard_index& shard) {
    std::vector<std::uint16_t> numbers;  // Of the whole, by the shard's own.
    for (const std::string& name : shard.fields) numbers.push_back(field_number(name));
    for (const shard_index::damaged& damage : shard.defects) {
      const std::uint32_t file = shard.records[shard.ends[damage.sample] - 1].file();
      defects_.emplace(table_.size() + damage.sample, defect{0, file, damage.offset, damage.reason});
    }
    notes_.insert(notes_.end(), shard.notes.begin(), shard.notes.end());
    const std::uint64_t before = table_.records().size();
    for (const shard_index::link& each : shard.links) links_.push_back({before + each.record, before + each.target});
    std::size_t next = 0;
    auto link = shard.links.begin();
    std::vector<std::uint32_t> present;
    for (const std::uint32_t end : shard.ends) {
      present.clear();
      for (; next < end; ++next) {
        const extent_table::record& from = shard.records[next];
        field_info& field = fields_[numbers[from.field()]];
        const bool is_link = link != shard.links.end() && link->record == next;
        const std::uint64_t bytes = is_link ? shard.records[(link++)->target].bytes() : from.bytes();
        ++field.samples;
        field.bytes_max = std::max(field.bytes_max, bytes);
        field.bytes_total += bytes;
        counts_.add_bytes(numbers[from.field()], bytes);
        present.push_back(numbers[from.field()]);
        table_.add({from.offset(), from.bytes(), from.file(), numbers[from.field()]});
      }
      counts_.add(present);
      table_.end_sample();
    }
    own_photos_.insert(own_photos_.end(), shard.photos.begin(), shard.photos.end());
    photo_ends_.push_back(static_cast<std::uint32_t>(own_photos_.size()));
  }

  // The place of a pack that an index tells of.
  [[nodiscard]] const photo_place* photo_at(const extent& member) const noexcept {
    if (member.file >= photo_ends_.size()) return nullptr;
    const std::size_t first = member.file == 0 ? 0 : photo_ends_[member.file - 1];
    const auto of_file = photos_.subspan(first, photo_ends_[member.file] - first);
    const auto found =
        std::lower_bound(of_file.begin(), of_file.end(), member.offset,
                         [](const photo_place& each, std::uint64_t offset) { return each.offset() < offset; });
    const bool is_it =
        found != of_file.end() && found->offset() == member.offset && found->bytes == member.stored_bytes;
    return is_it ? &*found : nullptr;
  }

  std::uint16_t field_number(const std::string& name) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    if (fields_.size() > std::numeric_limits<std::uint16_t>::max()) {
      throw error(errc::limit,
                  str_cat("more than 65,536 different fields in these shards, '", name,
                          "' for one: a field is what follows the first dot of a member's name; `leat pack` "
                          "writes dots inside names as %2E"));
    }
    const auto number = static_cast<std::uint16_t>(fields_.size());
    field_info added;
    added.name = name;
    added.kind = kind_of(lower_case(name));
    fields_.push_back(std::move(added));
    numbers_.emplace(name, number);
    return number;
  }

  error not_there_any_more(const extent_table::record& wanted) const {
    return error(errc::format,
                 str_cat(files_->path(wanted.file()), ": offset ", wanted.offset(),
                         ": the member is not there any more; the shard has changed since it was opened"));
  }

  // A member's name is in its header, which ends where its data begins. But a long name is in headers before that, which
  // can only be walked from their beginning: the end of the member before, or the start of the shard.
  std::string path_of_member(std::uint64_t part, blocking_sources& sources) const {
    if (!coded_.empty()) return path_of_coded_member(part);
    const std::uint32_t file = table_.records()[part].file();
    blocking_source& source = sources.of(*sources_.front());
    const std::uint64_t file_bytes = files_->size_bytes(file);
    return path_of_member(part, file_bytes, [&](std::uint64_t at, std::uint64_t bytes) {
      return source.view(file, at, bytes, file_bytes);
    });
  }
  // Of one part. Loaders ask so for each row (names, receipts), which is too often to start the threads of blocking_sources.
  std::string path_of_member(std::uint64_t part) const {
    if (!coded_.empty()) return path_of_coded_member(part);
    const extent_table::record& wanted = table_.records()[part];
    if (!sources_.front()->is_read_by_the_loop()) {
      blocking_sources sources;
      return path_of_member(part, sources);
    }
    const local_file file(files_->path(wanted.file()));
    std::vector<std::byte> held;
    return path_of_member(part, files_->size_bytes(wanted.file()), [&](std::uint64_t at, std::uint64_t bytes) {
      held = file.read(at, bytes);
      if (held.size() != bytes) throw not_there_any_more(wanted);
      return std::span<const std::byte>(held);
    });
  }
  // Who asks for names asks for those of neighbours.
  std::string path_of_coded_member(std::uint64_t part) const {
    const std::uint32_t file = table_.records()[part].file();
    const mutex_lock lock(reader_mutex_);
    if (reader_file_ != file || !reader_) {
      reader_ = std::make_unique<decoded_file>(coded_from_->open(files_->path(file)), coded_[file].shared_file());
      reader_file_ = file;
    }
    std::vector<std::byte> held;
    const decoded_file& reader = *reader_;
    return path_of_member(part, reader.size(), [&](std::uint64_t at, std::uint64_t bytes) {
      held = reader.read(at, bytes);
      return std::span<const std::byte>(held);
    });
  }
  template <class View>
  std::string path_of_member(std::uint64_t part, std::uint64_t file_bytes, const View& view) const {
    const extent_table::record& wanted = table_.records()[part];
    std::uint64_t offset = 0;
    if (part > 0 && table_.records()[part - 1].file() == wanted.file()) {
      offset = table_.records()[part - 1].offset() + tar_padded(table_.records()[part - 1].bytes());
    }
    tar_walk walk(files_->path(wanted.file()), file_bytes, offset, at_marker_);
    while (walk.position() < wanted.offset()) {
      switch (walk.next()) {
        case tar_walk::result::member:
          if (walk.member().data_offset == wanted.offset()) return walk.member().name;
          break;
        case tar_walk::result::wants: {
          const auto [at, bytes] = walk.wants();
          walk.feed(at, view(at, bytes));
          break;
        }
        case tar_walk::result::end:
          throw not_there_any_more(wanted);
      }
    }
    throw not_there_any_more(wanted);
  }

  std::shared_ptr<const io::file_table> files_;
  const at_end_marker at_marker_;
  extent_table table_;
  sample_counts counts_;
  hash_map<std::string, std::uint16_t> numbers_;
  std::map<std::uint64_t, defect> defects_;
  std::span<const photo_place> photos_;    // of all files, by file and block
  std::vector<std::uint32_t> photo_ends_;  // of each file's
  std::vector<part_link> links_;           // by part
  std::vector<photo_place> own_photos_;    // where they are not in a mapped index
  std::shared_ptr<const void> photos_owner_;
  std::vector<coded_blocks> coded_;  // by file; none where shards are not compressed
  std::shared_ptr<const input_files> coded_from_;
  mutable mutex reader_mutex_;
  mutable std::unique_ptr<decoded_file> reader_ ABSL_GUARDED_BY(reader_mutex_);
  mutable std::uint32_t reader_file_ ABSL_GUARDED_BY(reader_mutex_) = 0;
};

std::string_view file_type_text(mode_t mode) {
  return S_ISFIFO(mode)   ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISCHR(mode)  ? "a character device"
         : S_ISBLK(mode)  ? "a block device"
                          : "something else";
}

std::vector<file_stamp> look_at_shards(const std::vector<std::string>& paths) {
  std::vector<file_stamp> stamps;
  for (const std::string& path : paths) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
      throw path_error(
          errno, path,
          str_cat(paths.size(), paths.size() == 1 ? " shard was" : " shards were", " asked for, check the pattern"));
    }
    if (S_ISDIR(status.st_mode)) {
      throw error(errc::usage, str_cat(path, ": is a folder; to open the shards in it write '", path, "/*.tar'"));
    }
    if (!S_ISREG(status.st_mode)) {
      throw error(errc::usage, str_cat(path, ": is ", file_type_text(status.st_mode),
                                       " and no regular file; leat reads shards in any order: copy it to a file"));
    }
    stamps.push_back(stamp_of(status));
  }
  return stamps;
}

std::shared_ptr<const io::file_table> table_of(const std::vector<std::string>& paths,
                                               std::span<const file_stamp> stamps) {
  auto files = std::make_shared<io::file_table>();
  for (std::size_t i = 0; i < paths.size(); ++i) files->add(paths[i], stamps[i].size_bytes);
  files->finish();
  return files;
}

digest key_of(const std::vector<std::string>& paths, at_end_marker at_marker) {
  hasher key;
  key.add("tar with hard links");
  key.add(static_cast<std::uint64_t>(at_marker));
  add_paths(key, paths);
  return key.finish();
}
// An address is the same wherever one stands.
digest key_of_objects(const std::vector<std::string>& names, at_end_marker at_marker) {
  hasher key;
  key.add("tar of objects with hard links");
  key.add(static_cast<std::uint64_t>(at_marker));
  for (const std::string& each : names) key.add(each);
  return key.finish();
}

// Of an index that was found; else it is refused.
//   stamps   as the shards are now; none where the index is trusted
bool are_unchanged(index_cache& index, const std::vector<std::string>& paths, std::span<const file_stamp> stamps,
                   std::span<const file_stamp> before) {
  if (before.size() != paths.size()) throw error(errc::format, "it is of other shards");
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    if (stamps[i] == before[i]) continue;
    index.refuse(str_cat(paths[i], " has changed since"));
    return false;
  }
  return true;
}

// The shards as an earlier run has seen them, if they are still the same.
//   stamps   as they are now; none where the index is trusted
//   source   of these paths; null for files on a disk
std::shared_ptr<const tar_model> kept_shards(index_cache& index, const std::vector<std::string>& paths,
                                             const std::vector<file_stamp>& stamps, at_end_marker at_marker,
                                             const std::shared_ptr<const io::source_description>& source = nullptr) {
  return index.use(
      [&](const std::shared_ptr<const mapped_index>& found, section_reader& from) -> std::shared_ptr<const tar_model> {
        const std::span<const file_stamp> before = from.all<file_stamp>();
        if (!are_unchanged(index, paths, stamps, before)) return nullptr;
        const std::shared_ptr<const io::file_table> files = table_of(paths, before);
        return std::make_shared<const tar_model>(
            files, source ? source : std::make_shared<const io::file_description>(files), found, from, at_marker);
      });
}

void keep(index_cache& index, const tar_model& model, std::span<const file_stamp> stamps) {
  section_writer content;
  if (index.is_written(model.size())) {
    content.add_all(stamps);
    model.save(content);
  }
  index.write(model.size(), content.bytes());
}

// Objects as they are now, each by one request.
std::vector<file_stamp> look_at_objects(const io::source_description& objects, const std::vector<std::string>& names,
                                        index_cache& index) {
  blocking_sources connected;
  std::vector<file_stamp> stamps;
  for (const auto& [size_bytes, version] : connected.of(objects).look_at_all(objects.files())) {
    if (version == 0) {
      index.leave_out(str_cat(names[stamps.size()],
                              ": the server gives it no ETag and no Last-Modified of some seconds ago, so that another "
                              "object in its place could not be told from it"));
    }
    stamps.push_back({.size_bytes = size_bytes, .modified_ns = static_cast<std::int64_t>(version)});
  }
  return stamps;
}

// What opening without an index has cost, from here on worth a word.
constexpr std::uint64_t told_bytes_min = std::uint64_t{64} << 20;

std::string cost_of_walking(const std::vector<std::string>& names, const tar_index_report& report) {
  return str_cat(names.front(), names.size() > 1 ? " and others" : "", ": no index lies beside ",
                 names.size() > 1 ? "them" : "it", ", so that opening took ", count_text(report.reads),
                 " requests and ", bytes_text(report.bytes), "; `leat index` writes one where the shards are made");
}

tar_index_options index_options_of(const tar_options& options) {
  tar_index_options index;
  if (options.shards_in_flight != 0) index.shards_in_flight = options.shards_in_flight;
  if (options.ignore_zeros) index.at_marker = at_end_marker::go_on;
  return index;
}

// A request takes tens of milliseconds, in which a MiB comes: members that are smaller are read over.
tar_index_options remote_index_options_of(const tar_options& options) {
  tar_index_options index_options = index_options_of(options);
  index_options.stride_read_over_max = std::uint64_t{1} << 20;
  index_options.buffer_bytes_max = std::uint64_t{1} << 20;
  return index_options;
}

std::vector<shard_index> walk_shards(const io::source_description& shards, const tar_index_options& options,
                                     tar_index_report* report = nullptr) {
  const opening_loop loops(opening_loop::traffic::many,
                           std::clamp<std::uint32_t>(shards.files(), 1, std::min(working_cores(), indexing_loops_max)));
  return index_tar_shards(shards, loops.connectors(), options, report);
}

// Whether a block is the header of a member that an index has.
bool is_header_of(std::span<const std::byte> block, const shard_index& index, std::size_t place) {
  // A pax record may have the size instead.
  constexpr std::uint64_t ustar_bytes_max = std::uint64_t{8} << 30;
  const extent_table::record& member = index.records[place];
  tar_header header;
  std::string reason;
  if (read_tar_block(block, header, reason) != tar_block::header) return false;
  // A member that was cut, and a hard link, have no bytes in an index.
  const std::uint64_t bytes = member.bytes();
  if (!header.is_file() && (header.type != '1' || bytes != 0)) return false;
  if (header.size_bytes != bytes && bytes != 0 && bytes < ustar_bytes_max) return false;
  // Behind headers of its own (pax, a long name) a member may be called something else here.
  const std::uint64_t before =
      place == 0 ? 0 : index.records[place - 1].offset() + tar_padded(index.records[place - 1].bytes());
  if (member.offset() != before + tar_block_bytes) return true;
  const std::optional<member_name> name = split_member_name(header.name);
  return name && decode_field_name(lower_case(name->extension)) == index.fields[member.field()];
}

// Whether shards still are what a foreign index says, which knows them by their sizes alone: members of some of them, looked at where they
// should begin. A shard that was made anew has other members there.
//   returns   what is wrong; nothing where they are
std::optional<std::string> differ_from(const io::source_description& shards, const std::vector<std::string>& names,
                                       std::span<const shard_index> indexes) {
  constexpr std::size_t looked_at_max = 16;
  const std::size_t count = std::min(looked_at_max, indexes.size());
  std::vector<std::array<std::byte, tar_block_bytes>> blocks(count);
  std::vector<std::uint32_t> files;
  std::vector<blocking_source::request> requests;
  const auto place_of = [&](std::uint32_t file) { return indexes[file].records.size() * 2 / 3; };
  for (std::size_t i = 0; i < count; ++i) {
    const auto file = static_cast<std::uint32_t>(i * indexes.size() / count);
    if (indexes[file].records.empty()) continue;
    requests.push_back({file, indexes[file].records[place_of(file)].offset() - tar_block_bytes, blocks[files.size()]});
    files.push_back(file);
  }
  blocking_sources connected;
  connected.of(shards).read(requests);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!is_header_of(blocks[i], indexes[files[i]], place_of(files[i]))) {
      return str_cat(names[files[i]],
                     " is another one than it was made of, though as large; write it anew (leat index)");
    }
  }
  return std::nullopt;
}

std::shared_ptr<tar_model> model_of(std::shared_ptr<const io::source_description> shards,
                                    const std::vector<std::string>& names, std::vector<shard_index> indexes,
                                    at_end_marker at_marker) {
  auto files = std::make_shared<io::file_table>();
  for (std::size_t i = 0; i < names.size(); ++i) files->add(names[i], indexes[i].file_bytes);
  files->finish();
  return std::make_shared<tar_model>(std::move(files), std::move(shards), std::move(indexes), at_marker);
}

using coded_files = std::vector<std::shared_ptr<const coded_file>>;

// As an earlier run has read them through, if they are still the same.
std::shared_ptr<const tar_model> kept_coded_shards(index_cache& index, const std::shared_ptr<const input_files>& files,
                                                   std::span<const file_stamp> stamps, const placed_files& placed,
                                                   at_end_marker at_marker) {
  return index.use(
      [&](const std::shared_ptr<const mapped_index>& found, section_reader& from) -> std::shared_ptr<const tar_model> {
        if (!are_unchanged(index, files->names(), stamps, from.all<file_stamp>())) return nullptr;
        coded_files coded;
        for (const file_stamp& each : stamps) {
          coded.push_back(std::make_shared<const coded_file>(found, from));
          if (coded.back()->stored_bytes() != each.size_bytes) throw error(errc::format, "it is of other shards");
        }
        auto model = std::make_shared<tar_model>(placed.table, placed.source, found, from, at_marker);
        model->set_coded(std::move(coded), files);
        return model;
      });
}

std::vector<coded_shard> read_through(const input_files& from, std::uint64_t stored_bytes, at_end_marker at_marker) {
  const std::vector<std::string>& names = from.names();
  std::vector<coded_shard> shards(names.size());
  for_each_parallel(names.size(), working_cores(), [&](std::size_t i) {
    const std::optional<stream_coding> coding = coding_of_name(names[i]);
    if (!coding) {
      throw error(errc::usage, str_cat(names[i], ": is not compressed, and ", names.front(), " is; open them apart"));
    }
    const std::unique_ptr<file_bytes> file = from.open(names[i]);
    shards[i] = index_coded_shard(*file, static_cast<std::uint32_t>(i), *coding, points_apart(stored_bytes), at_marker);
  });
  return shards;
}

///   stamps   of the files as they are now
dataset open_coded(const std::shared_ptr<const input_files>& from, std::span<const file_stamp> stamps,
                   index_cache& index, at_end_marker at_marker) {
  std::vector<sized_file> sized;
  std::uint64_t stored = 0;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    sized.push_back({.name = from->names()[i], .size_bytes = stamps[i].size_bytes});
    stored += stamps[i].size_bytes;
  }
  const placed_files placed = from->place(sized);
  if (auto model = kept_coded_shards(index, from, stamps, placed, at_marker)) return dataset(std::move(model));
  std::vector<shard_index> members;
  coded_files coded;
  for (coded_shard& each : read_through(*from, stored, at_marker)) {
    members.push_back(std::move(each.members));
    coded.push_back(std::move(each.file));
  }
  auto model = std::make_shared<tar_model>(placed.table, placed.source, std::move(members), at_marker);
  section_writer content;
  if (index.is_written(model->size())) {
    content.add_all(stamps);
    for (const auto& each : coded) each->save(content);
    model->save(content);
  }
  index.write(model->size(), content.bytes());
  model->set_coded(std::move(coded), from);
  return dataset(std::move(model));
}

}  // namespace

dataset open_shards_of_source(std::shared_ptr<const io::source_description> shards, const tar_options& options,
                              const std::function<index_places()>& beside) {
  const tar_index_options index_options = remote_index_options_of(options);
  const at_end_marker at_marker = index_options.at_marker;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < shards->files(); ++i) names.push_back(shards->file_name(i));
  // However few samples there are, walking takes a request for each MiB at least.
  index_cache index(options.index, str_cat(names.front(), names.size() > 1 ? " and others" : ""),
                    key_of_objects(names, at_marker), 1);
  if (coding_of_name(names.front())) {
    const std::vector<file_stamp> stamps = look_at_objects(*shards, names, index);
    return open_coded(files_of_source(std::move(shards)), stamps, index, at_marker);
  }
  const bool is_walked = options.index.use == index_use::rebuild || !beside;
  if (index.is_off() && is_walked) {
    std::vector<shard_index> indexes = walk_shards(*shards, index_options);
    return dataset(model_of(std::move(shards), names, std::move(indexes), at_marker));
  }
  std::optional<index_places> places;
  if (!is_walked) places = beside();
  std::optional<indexes_beside> others;
  std::future<void> looking;
  if (places && !index.is_there()) {
    // At the same time as the shards, since each is an answer that is waited for.
    indexes_beside& wanted = others.emplace(*places);
    looking = std::async(std::launch::async, [&wanted] { wanted.look(); });
  }
  const std::vector<file_stamp> stamps = look_at_objects(*shards, names, index);
  if (looking.valid()) looking.get();
  if (auto model = kept_shards(index, names, stamps, at_marker, shards)) return dataset(std::move(model));
  if (places && !others) others.emplace(*places).look();
  std::optional<std::vector<shard_index>> found;
  if (others) {
    std::vector<std::uint64_t> sizes;
    for (const file_stamp& each : stamps) sizes.push_back(each.size_bytes);
    found = others->read(sizes, at_marker);
  }
  std::vector<std::string> more_notes;
  if (others && !others->why_not().empty()) more_notes.push_back(str_cat("an index is not used: ", others->why_not()));
  if (found) {
    if (const std::optional<std::string> why = differ_from(*shards, names, *found)) {
      more_notes.push_back(str_cat("an index is not used: ", *why));
      found.reset();
    }
  }
  std::shared_ptr<tar_model> model;
  if (found) {
    for (std::uint32_t i = 0; i < found->size(); ++i) {
      renumber((*found)[i], i);
      for (std::string& note : (*found)[i].notes) note.insert(0, names[i]);
    }
    try {
      model = model_of(shards, names, *std::move(found), at_marker);
      // What others have found is not vouched for: who mends the index beside the shards mends what is opened by it.
      index.leave_out("an index that lies beside the shards was used");
    } catch (const error& too_much) {
      if (too_much.code() != errc::limit) throw;
      more_notes.push_back(str_cat("an index is not used: ", too_much.what()));
    }
  }
  if (!model) {
    tar_index_report report;
    std::vector<shard_index> walked = walk_shards(*shards, index_options, &report);
    if (report.bytes >= told_bytes_min) more_notes.push_back(cost_of_walking(names, report));
    model = model_of(std::move(shards), names, std::move(walked), at_marker);
  }
  keep(index, *model, stamps);
  model->add_notes(std::move(more_notes));
  return dataset(std::move(model));
}

namespace {

dataset open_coded_on_disk(const std::vector<std::string>& paths, const tar_options& options) {
  const at_end_marker at_marker = index_options_of(options).at_marker;
  const std::vector<file_stamp> stamps = look_at_shards(paths);
  std::uint64_t stored = 0;
  for (const file_stamp& each : stamps) stored += each.size_bytes;
  index_cache index(options.index, str_cat(paths.front(), paths.size() > 1 ? " and others" : ""),
                    key_of(paths, at_marker), samples_least_of_coded(stored));
  for (const file_stamp& each : stamps) index.saw(each.modified_ns);
  return open_coded(files_on_disk(paths), stamps, index, at_marker);
}

// Neighbours of which all are compressed, or none.
std::vector<std::vector<std::string>> split_coded(std::vector<std::string> paths) {
  std::vector<std::vector<std::string>> runs;
  for (std::string& each : paths) {
    const bool begins =
        runs.empty() || coding_of_name(runs.back().front()).has_value() != coding_of_name(each).has_value();
    if (begins) runs.emplace_back();
    runs.back().push_back(std::move(each));
  }
  return runs;
}

dataset open_plain(const std::vector<std::string>& paths, std::span<const std::string> shards,
                   const tar_options& options) {
  const tar_index_options index_options = index_options_of(options);
  const at_end_marker at_marker = index_options.at_marker;
  index_cache index(options.index, str_cat(shards.front(), shards.size() > 1 ? " and others" : ""),
                    key_of(paths, at_marker));
  std::vector<file_stamp> stamps;
  if (!index.is_trusted()) stamps = look_at_shards(paths);
  if (auto model = kept_shards(index, paths, stamps, at_marker)) return dataset(std::move(model));
  if (index.is_trusted()) stamps = look_at_shards(paths);
  for (const file_stamp& each : stamps) index.saw(each.modified_ns);
  const std::shared_ptr<const io::file_table> files = table_of(paths, stamps);
  // Walking is the CPU's work where the headers are in memory.
  const opening_loop loops(opening_loop::traffic::many,
                           std::clamp<std::uint32_t>(files->files(), 1, std::min(working_cores(), indexing_loops_max)));
  auto source = std::make_shared<const io::file_description>(files);
  std::vector<shard_index> indexes = index_tar_shards(*source, loops.connectors(), index_options);
  auto model = std::make_shared<const tar_model>(files, std::move(source), std::move(indexes), at_marker);
  keep(index, *model, stamps);
  return dataset(std::move(model));
}

}  // namespace

dataset open_shards_on_disk(std::span<const std::string> shards, const tar_options& options) {
  std::vector<std::string> paths;
  for (const std::string& pattern : shards) {
    for (std::string& path : expand_paths(pattern)) paths.push_back(std::move(path));
  }
  if (paths.empty()) throw error(errc::usage, "open_tar: no shard was given; name one, as train-{000..127}.tar");
  std::vector<dataset> parts;
  for (std::vector<std::string>& each : split_coded(std::move(paths))) {
    parts.push_back(coding_of_name(each.front()) ? open_coded_on_disk(each, options)
                                                 : open_plain(each, shards, options));
  }
  return parts.size() == 1 ? parts.front() : concat(parts);
}

}  // namespace leat::datasets
