// A table of extents that the user brings.
#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/codecs/deflate.hpp"
#include "datasets/files/path_error.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/column_table.hpp"
#include "datasets/tables/describe.hpp"
#include "datasets/tables/extent_table.hpp"
#include "io/files/file_description.hpp"
#include "io/files/file_table.hpp"

#include <leat/error.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <tuple>
#include <utility>

namespace leat {
namespace datasets {
namespace {

class extents_model final : public dataset_model, expanding_facet {
 public:
  explicit extents_model(extent_list table) : extents_model(table, samples_of(table)) {}

  extents_model(extent_list& table, std::uint64_t samples)
      : columns_(std::move(table.columns), samples), names_(std::move(table.names)) {
    if (!names_.empty() && names_.size() != samples) {
      throw error(errc::usage, str_cat("from_extents: ", names_.size(), " names for ", samples, " samples"));
    }
    const auto files = std::make_shared<io::file_table>();
    for (const std::string& path : table.files) files->add(path, size_of(path));
    files->finish();
    files_ = files;
    sources_.push_back(std::make_shared<io::file_description>(files_));
    for (extent_list::field& field : table.fields) add_field(field, samples);
    fill(table.fields, samples);
    classes_ = std::make_shared<class_names>(class_names{std::move(table.classes)});
    facets_.columns = &columns_;
    if (!any_packed_) return;
    for (const packed_field& each : packed_) {
      forms_.push_back(each.decoded_bytes.empty() ? part_form::stored : part_form::coded);
    }
    facets_.expanding = this;
  }

  std::uint64_t size() const noexcept override { return table_.size(); }

  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    const std::size_t before = out.size();
    append_parts(table_.of(sample), needs, out);
    add_codecs(sample, out, before);
  }

  std::optional<value_fault> expand(std::uint64_t sample, const part& of, std::span<const std::byte> stored,
                                    std::span<std::byte>& decoded) const override {
    static_cast<void>(sample);
    return inflate(packed_[of.field].wrapper, stored, decoded);
  }

  std::string name(std::uint64_t sample) const override {
    if (!names_.empty()) return names_[sample];
    const std::span<const extent_table::record> records = table_.of(sample);
    if (records.empty()) return str_cat("sample ", sample);
    return str_cat(files_->path(records.front().file()), "@", records.front().offset());
  }

  void describe(description& out) const override {
    describe_model(out, "extents", *this);
    describe_files(out, *files_);
    out.add("extents", table_.digest());
    for (std::size_t field = 0; field < packed_.size(); ++field) {
      if (packed_[field].decoded_bytes.empty()) continue;
      hasher hash;
      hash.add(static_cast<std::uint64_t>(packed_[field].wrapper));
      hash.add(std::as_bytes(std::span(packed_[field].decoded_bytes)));
      out.add(str_cat("packed ", fields_[field].name), hash.finish());
    }
    columns_.describe(out);
  }

  dataset_memory memory() const override {
    dataset_memory held;
    held.extents = table_.memory_bytes();
    held.files = files_->memory_bytes();
    held.columns = columns_.memory_bytes();
    for (const packed_field& each : packed_) held.extents += each.decoded_bytes.capacity() * sizeof(std::uint64_t);
    for (const std::string& name : names_) held.columns += sizeof(name) + name.capacity();
    return held;
  }

 private:
  static std::uint64_t samples_of(const extent_list& table) {
    if (!table.fields.empty()) return table.fields.front().extents.size();
    if (!table.columns.empty()) return table.columns.front().size();
    return 0;
  }

  static std::uint64_t size_of(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0) {
      if (S_ISREG(status.st_mode)) return static_cast<std::uint64_t>(status.st_size);
      throw error(errc::usage, str_cat("from_extents: ", path,
                                       ": is no regular file, and has no extents; copy what it gives to a file"));
    }
    throw path_error(errno, str_cat("from_extents: ", path), "check the path");
  }

  // A field whose bytes are compressed: decoded bytes of each sample. None: it is as stored.
  struct packed_field {
    deflate_wrapper wrapper = deflate_wrapper::bare;
    std::vector<std::uint64_t> decoded_bytes;
  };

  static deflate_wrapper codec_named(const extent_list::field& field) {
    if (field.codec == "gzip") return deflate_wrapper::gzip;
    if (field.codec == "zlib") return deflate_wrapper::zlib;
    if (field.codec == "deflate") return deflate_wrapper::bare;
    throw error(errc::unsupported, str_cat("from_extents: the field '", field.name, "' has the codec '", field.codec,
                                           "'; leat has gzip, zlib and deflate. Read others through from_function()"));
  }

  void add_codecs(std::uint64_t sample, part_list& out, std::size_t from) const noexcept {
    if (!any_packed_) return;
    for (std::size_t i = from; i < out.size(); ++i) {
      const packed_field& packed = packed_[out[i].field];
      if (packed.decoded_bytes.empty()) continue;
      out[i].form = part_form::coded;
      out[i].where.decoded_bytes = out[i].value_bytes = packed.decoded_bytes[sample];
    }
  }

  static bool is_missing(const extent& where) noexcept {
    return where.stored_bytes == 0 && where.offset == extent_list::missing;
  }

  void add_field(const extent_list::field& field, std::uint64_t samples) {
    if (field.extents.size() != samples) {
      throw error(errc::usage, str_cat("from_extents: the field '", field.name, "' has ", field.extents.size(),
                                       " extents for ", samples, " samples; use extent_list::missing for the rest"));
    }
    if (find_field(field.name) || fields_.size() >= std::numeric_limits<std::uint16_t>::max()) {
      throw error(errc::usage, str_cat("from_extents: the field '", field.name, "' is given twice, or too many are"));
    }
    field_info info;
    info.name = field.name;
    info.kind = kind_of(field.name);
    std::uint64_t places = 0;
    packed_field packed;
    if (!field.codec.empty()) {
      packed.wrapper = codec_named(field);
      packed.decoded_bytes.assign(samples, 0);
      any_packed_ = true;
    }
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
      const extent& where = field.extents[sample];
      if (is_missing(where)) continue;
      check(field, sample, where);
      ++info.samples;
      info.bytes_max = std::max(info.bytes_max, field.codec.empty() ? where.stored_bytes : where.decoded_bytes);
      if (!field.codec.empty()) {
        packed.decoded_bytes[sample] = where.decoded_bytes;
        info.stored_block_bytes_max = std::max(info.stored_block_bytes_max, where.stored_bytes);
        // An empty member of a zip is expanded too, to nothing.
        info.decoded_block_bytes_max = std::max<std::uint64_t>({info.decoded_block_bytes_max, where.decoded_bytes, 1});
      }
      info.bytes_total += where.stored_bytes;
      places |= where.offset | where.stored_bytes;
    }
    info.alignment = io::alignment_of(places);
    fields_.push_back(std::move(info));
    packed_.push_back(std::move(packed));
  }

  void check(const extent_list::field& field, std::uint64_t sample, const extent& where) const {
    const auto at = [&] { return str_cat("from_extents: sample ", sample, ", field '", field.name, "': "); };
    if (where.source != 0 || where.file >= files_->files()) {
      throw error(errc::usage, str_cat(at(), "file ", where.file, " of source ", where.source, "; there are ",
                                       files_->files(), " files, all of source 0"));
    }
    const std::uint64_t end = files_->size_bytes(where.file);
    if (where.offset > end || where.stored_bytes > end - where.offset) {
      throw error(errc::format, str_cat(at(), files_->path(where.file), " ends at ", end, ", before the extent of ",
                                        where.stored_bytes, " bytes at offset ", where.offset, " does"));
    }
    if (field.codec.empty() && where.decoded_bytes != 0 && where.decoded_bytes != where.stored_bytes) {
      throw error(errc::unsupported, str_cat(at(), where.stored_bytes, " stored bytes that are ", where.decoded_bytes,
                                             " when decoded: say in the field's codec how they are compressed"));
    }
    if (!extent_table::fits(where.offset, where.stored_bytes, where.file) ||
        where.decoded_bytes > extent_table::bytes_max) {
      throw error(errc::limit, str_cat(at(), "beyond what leat indexes: 1 TiB per extent, 16,777,216 files"));
    }
  }

  // Parts lie in the order of their files and offsets, as everybody expects them.
  void fill(const std::vector<extent_list::field>& fields, std::uint64_t samples) {
    table_.reserve(samples, samples * fields.size());
    std::vector<std::pair<extent, std::uint16_t>> row;
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
      row.clear();
      for (std::size_t number = 0; number < fields.size(); ++number) {
        const extent& where = fields[number].extents[sample];
        if (!is_missing(where)) row.emplace_back(where, static_cast<std::uint16_t>(number));
      }
      std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.first.file, a.first.offset, a.second) < std::tuple(b.first.file, b.first.offset, b.second);
      });
      for (const auto& [where, number] : row) {
        table_.add({where.offset, where.stored_bytes, where.file, number});
      }
      table_.end_sample();
    }
    table_.shrink_to_fit();
  }

  column_table columns_;
  std::vector<std::string> names_;
  std::shared_ptr<const io::file_table> files_;
  std::vector<packed_field> packed_;  // of each field
  bool any_packed_ = false;
  extent_table table_;
};

}  // namespace
}  // namespace datasets

dataset from_extents(extent_list table) { return dataset(std::make_shared<datasets::extents_model>(std::move(table))); }

}  // namespace leat
