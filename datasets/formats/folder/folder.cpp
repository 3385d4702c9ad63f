// A folder of pictures as a dataset: sample i is file i, all of it, so there is nothing to store per extent.
#include "base/errno_words.hpp"
#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/folder_walk.hpp"
#include "datasets/files/index_cache.hpp"
#include "datasets/files/listed_folder.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/sample_counts.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/describe.hpp"
#include "io/files/file_description.hpp"
#include "io/files/file_table.hpp"
#include "io/files/read_error.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/error.hpp>
#include <leat/open_folder.hpp>
#include <leat/samples.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <system_error>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint16_t picture_field = 0;

using source_maker =
    std::function<std::shared_ptr<const io::source_description>(const std::shared_ptr<const io::file_table>& files)>;

std::shared_ptr<const io::source_description> on_disk(const std::shared_ptr<const io::file_table>& files) {
  return std::make_shared<io::file_description>(files);
}

class folder_model final : public dataset_model, columns_facet, defects_facet, packing_facet {
 public:
  ///   place   what the files are read from
  folder_model(const std::string& root, std::vector<std::string> names_of_classes,
               const std::vector<picture_directory>& directories, std::vector<std::string> notes,
               const source_maker& place)
      : root_bytes_(root.ends_with('/') ? root.size() : root.size() + 1) {
    name_classes(std::move(names_of_classes));
    notes_ = std::move(notes);
    field_info picture = picture_info();
    class_ends_.assign(classes().size(), 0);
    const auto files = std::make_shared<io::file_table>();
    const std::vector<std::uint32_t> present = classes().empty() ? std::vector{0U} : std::vector{0U, 1U};
    for (const picture_directory& directory : directories) {
      const std::string path = below(root, directory.path);
      for (const picture_directory::picture& each : directory.pictures) {
        const std::uint32_t file = files->add(path, directory.name(each), each.size_bytes);
        if (each.failure != 0) failures_.emplace(file, each.failure);
        picture.bytes_max = std::max(picture.bytes_max, each.size_bytes);
        picture.bytes_total += each.size_bytes;
        counts_.add_bytes(picture_field, each.size_bytes);
        counts_.add(present);
      }
      if (!class_ends_.empty()) class_ends_[directory.class_index] = files->files();
    }
    files->finish();
    // A class without pictures, where that is allowed, ends where the one before it does.
    for (std::size_t i = 1; i < class_ends_.size(); ++i) class_ends_[i] = std::max(class_ends_[i], class_ends_[i - 1]);
    finish(files, std::move(picture), place);
  }

  /// As save() wrote it.
  ///   throws   error{errc::format}: it is no folder's
  folder_model(const std::string& root, const std::shared_ptr<const mapped_index>& index, section_reader& from)
      : root_bytes_(root.ends_with('/') ? root.size() : root.size() + 1) {
    std::vector<std::string> names;
    for (std::uint64_t left = from.number(); left > 0; --left) names.emplace_back(from.text());
    name_classes(std::move(names));
    for (std::uint64_t left = from.number(); left > 0; --left) notes_.emplace_back(from.text());
    const std::span<const std::uint64_t> ends = from.all<std::uint64_t>();
    class_ends_.assign(ends.begin(), ends.end());
    for (std::uint64_t left = from.number(); left > 0; --left) {
      const auto file = static_cast<std::uint32_t>(from.number());
      failures_.emplace(file, static_cast<int>(from.number()));
    }
    field_info picture = picture_info();
    picture.bytes_max = from.number();
    picture.bytes_total = from.number();
    std::vector<std::string> directories;
    for (std::uint64_t left = from.number(); left > 0; --left) directories.push_back(below(root, from.text()));
    io::file_table::blocks kept;
    kept.entries = from.all<io::file_table::entry>();
    kept.names = from.all<char>();
    kept.runs = from.all<io::file_table::run>();
    kept.large_sizes = from.all<io::file_table::large_size>();
    counts_ = sample_counts(from, kept.entries.size(), classes().empty() ? 1 : 2);
    const bool is_ours = from.at_end() && class_ends_.size() == classes().size() &&
                         std::is_sorted(class_ends_.begin(), class_ends_.end()) &&
                         (class_ends_.empty() || class_ends_.back() == kept.entries.size()) &&
                         (failures_.empty() || failures_.rbegin()->first < kept.entries.size());
    if (!is_ours) throw error(errc::format, "its classes and files do not belong together");
    finish(std::make_shared<const io::file_table>(index, kept, std::move(directories)), std::move(picture), on_disk);
  }

  void save(section_writer& into) const {
    into.add(classes().size());
    for (const std::string& each : classes()) into.add(each);
    into.add(notes_.size());
    for (const std::string& each : notes_) into.add(each);
    into.add_all(std::span<const std::uint64_t>(class_ends_));
    into.add(failures_.size());
    for (const auto& [file, failure] : failures_) {
      into.add(file);
      into.add(static_cast<std::uint64_t>(failure));
    }
    into.add(fields_.front().bytes_max);
    into.add(fields_.front().bytes_total);
    into.add(files_->directories());
    for (std::uint32_t i = 0; i < files_->directories(); ++i) {
      const std::string_view path = files_->directory_path(i);
      into.add(path.substr(std::min(path.size(), root_bytes_)));
    }
    const io::file_table::blocks parts = files_->parts();
    into.add_all(parts.entries);
    into.add_all(parts.names);
    into.add_all(parts.runs);
    into.add_all(parts.large_sizes);
    counts_.save(into);
  }

  std::uint64_t size() const noexcept override { return files_->files(); }

  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    for (const need& wanted : needs) {
      if (wanted.field != picture_field) continue;
      const auto file = static_cast<std::uint32_t>(sample);
      const std::uint64_t bytes = files_->size_bytes(file);
      out.push_back({.field = picture_field, .where = extent{0, file, 0, bytes, bytes}});
    }
  }

  std::span<const std::string> column_names() const noexcept override { return {&classes_->column, 1}; }
  std::optional<column_value> column(std::uint64_t sample, std::size_t) const override {
    // Samples are sorted by class, so a label is a place among the classes' ends.
    return std::upper_bound(class_ends_.begin(), class_ends_.end(), sample) - class_ends_.begin();
  }
  dtype column_type(std::size_t) const override { return dtype::i64; }
  std::uint64_t column_gaps(std::size_t) const override { return 0; }

  std::string name(std::uint64_t sample) const override {
    return files_->path(static_cast<std::uint32_t>(sample)).substr(root_bytes_);
  }

  std::vector<member_path> members(std::uint64_t sample, std::span<const std::uint16_t> wanted,
                                   blocking_sources&) const override {
    std::string path = name(sample);
    const std::size_t dot = path.rfind('.');  // There is one: an extension made it a sample.
    std::string extension = path.substr(dot + 1);
    path.resize(dot);
    return std::vector<member_path>(wanted.size(), {std::move(path), std::move(extension), false});
  }

  std::uint64_t defects() const noexcept override { return failures_.size(); }

  std::optional<defect> defect_of(std::uint64_t sample) const override {
    const auto found = failures_.find(static_cast<std::uint32_t>(sample));
    if (found == failures_.end()) return std::nullopt;
    return defect{0, found->first, 0, why_not_there(found->second), corrupt_kinds::unreadable};
  }

  void describe(description& out) const override {
    describe_model(out, "folder", *this);
    describe_files(out, *files_);
    if (class_ends_.empty()) return;
    hasher hash;
    hash.add(std::as_bytes(std::span(class_ends_)));
    out.add("column cls", hash.finish());
  }

  dataset_memory memory() const override {
    dataset_memory held;
    held.files = files_->memory_bytes();
    held.columns = class_ends_.capacity() * sizeof(std::uint64_t);
    for (const std::string& name : classes()) held.columns += sizeof(name) + name.capacity();
    return held;
  }

 private:
  static field_info picture_info() {
    field_info picture;
    picture.name = "jpg";
    picture.kind = field_kind::picture;
    return picture;
  }
  static std::string below(const std::string& root, std::string_view path) {
    return path.empty() ? root : str_cat(root, root.ends_with('/') ? "" : "/", path);
  }

  void name_classes(std::vector<std::string> names) {
    if (!names.empty()) classes_ = std::make_shared<class_names>(class_names{std::move(names)});
  }

  void finish(std::shared_ptr<const io::file_table> files, field_info picture, const source_maker& place) {
    files_ = std::move(files);
    picture.samples = files_->files();
    fields_.push_back(std::move(picture));
    sources_.push_back(place(files_));
    facets_.counts = &counts_;
    facets_.packing = this;
    if (!classes().empty()) facets_.columns = this;
    if (!failures_.empty()) facets_.defects = this;
  }

  static std::string why_not_there(int failure) {
    if (failure == EISDIR) return "not a regular file";
    // The folder's listing had this name.
    if (failure == ENOENT || failure == ENOTDIR) {
      return str_cat("a link that leads nowhere: ", std::generic_category().message(failure));
    }
    return errno_words(failure);
  }

  std::size_t root_bytes_;  // Of the root and its slash: names are given without them.
  std::vector<std::uint64_t> class_ends_;
  std::map<std::uint32_t, int> failures_;
  sample_counts counts_;
  std::shared_ptr<const io::file_table> files_;
};

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t names_max = 10;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < names_max; ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  if (names.size() > names_max) text += str_cat(" and ", names.size() - names_max, " more");
  return text;
}

std::string count_of(std::uint64_t count, std::string_view one, std::string_view many) {
  return str_cat(count, " ", count == 1 ? one : many);
}

// Notes about pictures that lie beside the class folders, and so have no class.
void note_loose_pictures(const std::string& folder, const folder_listing& listing, std::vector<std::string>& notes) {
  if (listing.pictures == 0) return;
  std::string names;
  for (const std::string& name : listing.picture_names) str_append(names, names.empty() ? "" : ", ", name);
  const std::uint64_t more = listing.pictures - listing.picture_names.size();
  if (more > 0) str_append(names, " and ", more, " more");
  notes.push_back(str_cat(folder, ": left out: ",
                          count_of(listing.pictures, "picture beside the class folders, which has",
                                   "pictures beside the class folders, which have"),
                          " no class (", names, "); move them into one"));
}

// Extensions of picture formats that are no samples unless they are asked for; torchvision takes the first four for samples.
const std::vector<std::string>& foreign_extensions() {
  static const std::vector<std::string> all = {".ppm",  ".pgm",  ".tif", ".tiff", ".gif", ".heic",
                                               ".heif", ".avif", ".jxl", ".jp2",  ".svg", ".psd"};
  return all;
}

// "2 .gif, 1 .heic"; empty where there are none.
std::string counts_text(const std::vector<std::string>& extensions, const std::vector<std::uint64_t>& counted) {
  std::string counts;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    if (counted[i] > 0) str_append(counts, counts.empty() ? "" : ", ", counted[i], " ", extensions[i]);
  }
  return counts;
}

void note_foreign_pictures(const std::string& folder, const std::string& counts, std::vector<std::string>& notes) {
  if (counts.empty()) return;
  notes.push_back(
      str_cat(folder, ": left out: pictures that are not read: ", counts,
              "; convert them to JPEG, PNG, WebP or BMP, or name .gif and .tif in folder_options::extensions"));
}

// For a refusal, behind what was looked for.
std::string not_read_text(const std::string& counts) {
  return counts.empty()
             ? std::string()
             : str_cat("; not read: ", counts, "; .gif and .tif are read if folder_options::extensions names them");
}

void note_hidden(const std::string& folder, const hidden_files& hidden, std::vector<std::string>& notes) {
  if (const std::string text = hidden.text(); !text.empty()) notes.push_back(str_cat(folder, ": left out: ", text));
}

std::vector<std::string> classes_without_pictures(const std::vector<std::string>& classes,
                                                  const std::vector<picture_directory>& directories) {
  std::vector<bool> has(classes.size(), false);
  for (const picture_directory& directory : directories) has[directory.class_index] = true;
  std::vector<std::string> empty;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (!has[i]) empty.push_back(classes[i]);
  }
  return empty;
}

/// The extensions of the files directly in a folder; "" is the root.
std::set<std::string> extensions_in(const std::string& root, const std::string& folder) {
  std::set<std::string> found;
  std::error_code failure;
  for (std::filesystem::directory_iterator each(std::filesystem::path(root) / folder, failure), end;
       !failure && each != end; each.increment(failure)) {
    found.insert(each->path().extension().string());
  }
  return found;
}
std::set<std::string> extensions_in(std::span<const listed_file> files, const std::string& folder) {
  const std::string below = folder.empty() ? std::string() : str_cat(folder, "/");
  std::set<std::string> found;
  auto each = std::lower_bound(files.begin(), files.end(), below,
                               [](const listed_file& file, const std::string& from) { return file.path < from; });
  for (; each != files.end() && each->path.starts_with(below); ++each) {
    const std::string_view name = each->path.substr(below.size());
    if (name.find('/') == std::string_view::npos) found.insert(std::filesystem::path(name).extension().string());
  }
  return found;
}

/// What to do with a folder, or folders in it, that has no picture but files of another format: "; name its .parquet files, 'set/*.parquet'".
///   root   its path, or its files
template <class Root>
std::string advice_about_files(const std::string& path, const Root& root, std::vector<std::string> folders) {
  constexpr std::string_view known[] = {".parquet",  ".arrow", ".tar", ".jsonl", ".csv",  ".tsv",
                                        ".tfrecord", ".npy",   ".npz", ".h5",    ".hdf5", ".bin"};
  folders.insert(folders.begin(), "");
  for (const std::string& folder : folders) {
    const std::set<std::string> has = extensions_in(root, folder);
    const auto* const found = std::find_if(std::begin(known), std::end(known),
                                           [&](std::string_view each) { return has.contains(std::string(each)); });
    if (found == std::end(known)) continue;
    return str_cat("; name its ", *found, " files, '", path, path.ends_with('/') || folder.empty() ? "" : "/", folder,
                   str_cat(path, folder).ends_with('/') ? "*" : "/*", *found, "'");
  }
  return {};
}

/// A folder that was walked, and its directories as they were before the walk.
struct walked_folder {
  std::shared_ptr<const folder_model> model;
  std::vector<folder_contents::visited_directory> visited;
};

///   root   its path, or its files
template <class Root>
walked_folder walk_folder(const std::string& path, const Root& root, const folder_options& options,
                          const folder_walk_options& walk, const source_maker& place) {
  using how = folder_options::class_folders;
  const folder_listing listing = list_folder(root, walk);
  if (options.classes == how::yes && listing.folders.empty()) {
    throw error(errc::not_found, str_cat(path, ": no class folder in it; each class is a folder of pictures"));
  }
  if (options.classes != how::no && !listing.folders.empty()) {
    folder_contents found = walk_folders(root, listing.folders, walk);
    const std::vector<std::string> empty = classes_without_pictures(listing.folders, found.directories);
    const bool only_beside = empty.size() == listing.folders.size() && listing.pictures > 0;
    if (options.classes == how::yes || !only_beside) {
      if (!empty.empty() && !options.allow_empty_classes) {
        const std::string advice =
            empty.size() == listing.folders.size() ? advice_about_files(path, root, listing.folders) : std::string();
        if (!advice.empty()) throw error(errc::not_found, str_cat(path, ": no picture in it", advice));
        throw error(errc::not_found, str_cat(path, ": no picture in the class folder", empty.size() == 1 ? " " : "s ",
                                             list_of(empty), " (looked for ", list_of(walk.extensions),
                                             not_read_text(counts_text(walk.counted, found.counted)),
                                             "); remove them (a program may set folder_options::allow_empty_classes)"));
      }
      std::vector<std::string> notes;
      note_loose_pictures(path, listing, notes);
      note_foreign_pictures(path, counts_text(walk.counted, found.counted), notes);
      found.hidden.add(listing.hidden);
      note_hidden(path, found.hidden, notes);
      found.visited.push_back({"", listing.modified_ns});
      return {std::make_shared<folder_model>(path, listing.folders, found.directories, std::move(notes), place),
              std::move(found.visited)};
    }
  }
  folder_contents found = walk_folders(root, {""}, walk);
  if (found.directories.empty()) {
    const std::string foreign = counts_text(walk.counted, found.counted);
    const std::string hidden = found.hidden.text();
    throw error(errc::not_found,
                str_cat(path, ": no picture in it (looked for ", list_of(walk.extensions), not_read_text(foreign),
                        hidden.empty() ? "" : "; left out: " + hidden, ")", advice_about_files(path, root, {})));
  }
  std::vector<std::string> notes;
  note_foreign_pictures(path, counts_text(walk.counted, found.counted), notes);
  note_hidden(path, found.hidden, notes);
  return {std::make_shared<folder_model>(path, std::vector<std::string>{}, found.directories, std::move(notes), place),
          std::move(found.visited)};
}

digest key_of(const std::string& path, const folder_options& options, const folder_walk_options& walk) {
  hasher key;
  key.add("folder without hidden files");
  key.add(static_cast<std::uint64_t>(options.classes));
  key.add(static_cast<std::uint64_t>(options.allow_empty_classes));
  key.add(walk.extensions.size());
  for (const std::string& each : walk.extensions) key.add(each);
  add_paths(key, {&path, 1});
  return key.finish();
}

// The folder as an earlier run has walked it, if no directory has changed since.
std::shared_ptr<const folder_model> kept_folder(index_cache& index, const std::string& path) {
  return index.use([&](const std::shared_ptr<const mapped_index>& found,
                       section_reader& from) -> std::shared_ptr<const folder_model> {
    std::string directory;
    for (std::uint64_t left = from.number(); left > 0; --left) {
      directory = str_cat(path, "/", from.text());
      const auto modified_ns = static_cast<std::int64_t>(from.number());
      if (index.is_trusted()) continue;
      struct stat status{};
      if (::stat(directory.c_str(), &status) == 0 && stamp_of(status).modified_ns == modified_ns) continue;
      index.refuse(str_cat(directory, " has changed since"));
      return nullptr;
    }
    return std::make_shared<const folder_model>(path, found, from);
  });
}

folder_walk_options walk_options_of(const folder_options& options) {
  folder_walk_options walk;
  walk.threads = threads_for_walking(options.threads);
  walk.extensions = options.extensions;
  // torchvision/datasets/folder.py, IMG_EXTENSIONS, as far as they are read; and JPEGs as photo packs.
  if (walk.extensions.empty()) {
    walk.extensions = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".fjpg", ".fjpeg", ".fjpe"};
    walk.counted = foreign_extensions();
  }
  return walk;
}

}  // namespace

dataset open_listed_pictures(const listed_folder& folder, const folder_options& options, const remote_options& remote) {
  const std::vector<listed_file> files = folder.files_below();
  const auto place = [&](const std::shared_ptr<const io::file_table>& table) {
    std::vector<const io::named_object*> objects;
    objects.reserve(table->files());
    for (std::uint32_t file = 0; file < table->files(); ++file) objects.push_back(folder.find(table->path(file)));
    std::shared_ptr<const io::source_description> source = io::describe_objects(objects, remote);
    // One is looked at, so that what the listing has told holds for all others.
    blocking_sources connected;
    static_cast<void>(connected.of(*source).look_at(0));
    return source;
  };
  return dataset(
      walk_folder(folder.path(), std::span<const listed_file>(files), options, walk_options_of(options), place).model);
}

dataset open_pictures_in(const std::string& folder, const folder_options& options) {
  const std::string path = folder.substr(0, std::max<std::size_t>(1, folder.find_last_not_of('/') + 1));
  const folder_walk_options walk = walk_options_of(options);
  index_cache index(options.index, path, key_of(path, options, walk));
  if (auto model = kept_folder(index, path)) return dataset(std::move(model));
  const walked_folder walked = walk_folder(path, path, options, walk, on_disk);
  section_writer content;
  if (index.is_written(walked.model->size())) {
    content.add(walked.visited.size());
    for (const folder_contents::visited_directory& each : walked.visited) {
      index.saw(each.modified_ns);
      content.add(each.path);
      content.add(static_cast<std::uint64_t>(each.modified_ns));
    }
    walked.model->save(content);
  }
  index.write(walked.model->size(), content.bytes());
  return dataset(walked.model);
}

}  // namespace leat::datasets
