// Finds out what a SOURCE of the command line is, from its files.
#include "base/text.hpp"
#include "datasets/files/coded_file.hpp"
#include "datasets/files/content.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/files/listed_folder.hpp"
#include "datasets/files/path_error.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/tar/indexes_beside.hpp"
#include "datasets/formats/tar/tar_header.hpp"
#include "datasets/formats/zarr/zarr_references.hpp"
#include "datasets/open/folder_splits.hpp"
#include "datasets/open/formats.hpp"
#include "datasets/open/open_objects.hpp"
#include "datasets/open/source_folder.hpp"
#include "datasets/tables/empty_files.hpp"
#include "io/remote/address.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>

namespace leat {
namespace {

using datasets::expand_paths;
using datasets::files_in;
using datasets::is_folder;
using datasets::refuse_options;
using datasets::source_format;
using datasets::table_options_of;

// If the folder has files that are opened one by one, the error says how.
dataset open_pictures(const std::string& folder, const index_options& index) {
  try {
    return open_folder(folder, {.index = index});
  } catch (const error& none) {
    if (none.code() != errc::not_found) throw;
    for (const std::string_view ending : {".npy", ".npz", ".bin"}) {
      const std::size_t files = files_in(folder, ending).size();
      if (files == 0) continue;
      throw error(errc::not_found, str_cat(none.what(), "; it has ", files, files == 1 ? " file *" : " files *", ending,
                                           ": give '", folder, folder.ends_with('/') ? "*" : "/*", ending, "'"));
    }
    throw;
  }
}

// What lies beside records is no shard.
[[noreturn]] void refuse_description(const std::string& path) {
  const std::string data = datasets::with_extension(path, ".bin");
  throw error(errc::usage, datasets::file_exists(data)
                               ? str_cat(path, " says what the records in ", data, " are; give that one")
                               : str_cat(path,
                                         ": no source; a .json says what the records in the .bin beside it are, "
                                         "and there is no ",
                                         data,
                                         "; annotations as COCO's are for open_coco(), and for --images DIR of "
                                         "`leat epoch` and `leat show`"));
}

// Beam and Spark write such shards.
bool is_empty_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
}

// A shard may have any name. Throws for a file whose first bytes are no tar header, and says what the file is.
void check_shard(const std::string& path) {
  if (datasets::name_decoded(path).ends_with(".tar")) return;
  const std::vector<std::byte> start = datasets::start_of_file(path);
  if (start.empty()) return;  // open_tar() says what is wrong with it.
  datasets::tar_header header;
  std::string reason;
  if (start.size() >= datasets::tar_block_bytes &&
      datasets::read_tar_block(start, header, reason) != datasets::tar_block::damaged) {
    return;
  }
  const datasets::content_kind found = datasets::content_of(start);
  const bool is_called_tar = path.find(".tar.") != std::string::npos;
  if (found.group == datasets::content_group::compressed && is_called_tar) return;  // Likewise.
  const std::string what = found.name.empty() ? "its first bytes tell nothing" : "this is " + found.name;
  if (found.group == datasets::content_group::picture) {
    throw error(errc::usage, str_cat(path, ": ", what, datasets::advice_about(found)));
  }
  const std::string advice = datasets::advice_about(found);
  throw error(errc::unsupported,
              str_cat(path, ": ", what, advice.empty() ? str_cat("; leat reads ", datasets::formats_text()) : advice));
}

// The paths a source stands for; a missing one is named together with what would be understood.
std::vector<std::string> paths_of(const std::string& source) {
  std::vector<std::string> paths = expand_paths(source);
  struct stat status{};
  if (paths.size() == 1 && ::stat(paths.front().c_str(), &status) != 0) {
    const int failure = errno;
    if (datasets::format_of_file(paths.front()) == source_format::tar) {
      throw datasets::path_error(
          failure, source,
          str_cat("a source is given by path, brace list ('a-{000..127}.tar') or glob ('a-*.tar'); leat reads ",
                  datasets::formats_text()));
    }
  }
  return paths;
}

dataset chosen_of(const dataset& opened, const open_options& options) {
  return options.arrays.fields.empty() ? opened : opened.with_fields(options.arrays.fields);
}

tar_options shard_options_of(const open_options& options) {
  tar_options shards = options.tar;
  shards.index = options.index;
  return shards;
}

// Files of any source, of a format that is no tar shards.
dataset open_as(source_format what, const datasets::input_files& files, const open_options& options) {
  refuse_options(what, options, files.names().front());
  const datasets::format& of = datasets::format_of(what);
  const dataset opened = of.open(files, options);
  return of.chooses ? opened : chosen_of(opened, options);
}

// Of an object: whether a JSON is references to chunks.
bool are_references(const io::named_object& object, const remote_options& options) {
  if (!io::redacted(object.address).ends_with(".json")) return false;
  constexpr std::size_t looked_at_bytes = std::size_t{64} << 10;
  const auto files = datasets::files_named_by(object, options);
  return datasets::is_references(files->open(files->names().front())->read(0, looked_at_bytes));
}

bool is_text_table(const std::string& path) {
  return path.ends_with(".jsonl") || path.ends_with(".ndjson") || path.ends_with(".csv") || path.ends_with(".tsv");
}

// One table, whose name says which of the two it is.
dataset open_table_of_paths(const datasets::input_files& files, const open_options& options) {
  const std::string& path = files.names().front();
  const bool is_csv = path.ends_with(".csv") || path.ends_with(".tsv");
  refuse_options(is_csv ? source_format::csv : source_format::jsonl, options, path);
  table_options tables = table_options_of(options);
  if (tables.path_column.empty()) tables.path_column = "file_name";
  return is_csv ? datasets::open_csv_files(files, tables) : datasets::open_jsonl_files(files, tables);
}

[[noreturn]] void refuse_unknown_folder(const std::string& path) {
  throw error(
      errc::not_found,
      str_cat(path,
              "/: a folder is listed of s3:// only, and this server cannot be asked which files it has; it has no "
              "file that tells what it is (zarr.json, .zgroup, .zarray, data.mdb, index.json, state.json, "
              "metadata.jsonl, metadata.csv): name its files by braces, as ",
              path, "/train-{000..127}.tar"));
}

// The split of a folder that is opened; nothing where it is opened as a whole.
std::optional<datasets::folder_split> split_of(const datasets::source_folder& folder, const open_options& options) {
  using content_kind = datasets::folder_content::kind;
  if (options.split.empty()) {
    const content_kind what = datasets::content_of_folder(folder).what;
    if (what != content_kind::pictures && what != content_kind::shards) return std::nullopt;
  }
  return datasets::choose_split(folder, options.split);
}

void refuse_split(const open_options& options, const std::string& source) {
  if (options.split.empty()) return;
  throw error(errc::usage, str_cat(source, ": a split is of a folder, and this is a file; leave it out"));
}

// Objects at addresses.
std::vector<dataset> open_remote(std::span<const io::named_object> objects, const open_options& options) {
  return datasets::open_objects(
      objects, options.remote,
      [&](source_format kind, const datasets::input_files& files) { return open_as(kind, files, options); },
      [&](std::shared_ptr<const io::source_description> shards, const std::function<datasets::index_places()>& beside) {
        refuse_options(source_format::tar, options, shards->file_name(0));
        return chosen_of(datasets::open_shards_of_source(std::move(shards), shard_options_of(options), beside),
                         options);
      });
}

}  // namespace

dataset open(const source_names& sources, const open_options& options) {
  if (sources.empty()) throw error(errc::usage, "no source was given: name a folder of pictures, or tar shards");
  std::vector<dataset> parts;
  std::vector<std::string> empty_files;
  std::string with_classes;  // The last folder of each kind.
  std::string without_classes;
  const auto add_pictures = [&](const std::string& path, const dataset& pictures) {
    parts.push_back(chosen_of(pictures, options));
    (pictures.classes().empty() ? without_classes : with_classes) = path;
    if (with_classes.empty() || without_classes.empty()) return;
    throw error(errc::usage,
                str_cat(with_classes, " has class folders and ", without_classes,
                        " has none, so that its pictures would have no label; put them into class folders, "
                        "or open the two apart (a program may leat::concat() them all the same)"));
  };
  // Neighbours of one kind are opened together: all their headers in flight at once, and several arrays are samples each.
  std::vector<std::string> files;
  source_format kind = source_format::tar;
  const auto open_files = [&] {
    if (files.empty()) return;
    if (kind == source_format::tar) {
      refuse_options(source_format::tar, options, files.front());
      parts.push_back(chosen_of(open_tar(files, shard_options_of(options)), options));
    } else {
      parts.push_back(open_as(kind, *datasets::files_on_disk(files), options));
    }
    files.clear();
  };
  const auto add_references = [&](const std::string& path) {
    refuse_options(source_format::zarr, options, io::redacted(path));
    array_options arrays = options.arrays;
    arrays.remote = options.remote;
    parts.push_back(open_references(path, arrays));
  };
  std::vector<io::named_object> addresses;
  const auto open_addresses = [&] {
    if (addresses.empty()) return;
    for (dataset& part : open_remote(addresses, options)) parts.push_back(std::move(part));
    addresses.clear();
  };
  const auto add_file = [&](std::string path, source_format of) {
    if (of != kind) open_files();
    kind = of;
    files.push_back(std::move(path));
  };
  const auto add_folder = [&](const datasets::source_folder& whole, bool at_address) {
    const std::optional<datasets::folder_split> split = split_of(whole, options);
    if (split && split->folder.empty()) {
      for (const std::string& each : split->files) {
        at_address ? addresses.push_back(whole.object(each)) : add_file(each, datasets::format_of_file(each));
      }
      return;
    }
    std::unique_ptr<datasets::source_folder> part;
    if (split) part = whole.below(datasets::path_below(whole.path(), split->folder));
    const datasets::source_folder& folder = part ? *part : whole;
    const std::string& path = folder.path();
    const auto flush = [&] {
      open_files();
      open_addresses();
    };
    const auto add = [&](const std::string& file, source_format of) {
      at_address ? addresses.push_back(folder.object(file)) : add_file(file, of);
    };
    const datasets::folder_content content = datasets::content_of_folder(folder);
    using content_kind = datasets::folder_content::kind;
    switch (content.what) {
      case content_kind::zarr:
        flush();
        refuse_options(source_format::zarr, options, path);
        parts.push_back(at_address ? datasets::open_zarr_files(folder.files(), path, options.arrays)
                                   : open_zarr(path, options.arrays));
        break;
      case content_kind::lmdb:
        add(content.files.front(), source_format::lmdb);
        break;
      case content_kind::mds:
        flush();
        refuse_options(source_format::mds, options, path);
        parts.push_back(datasets::open_mds_files(folder.files(), path, table_options_of(options)));
        break;
      case content_kind::arrow:
        for (const std::string& each : content.files) add(each, source_format::arrow);
        break;
      case content_kind::table:
        flush();
        parts.push_back(open_table_of_paths(*folder.files_of_table(content.files.front()), options));
        break;
      case content_kind::shards:
        for (const std::string& each : content.files) add(each, source_format::tar);
        break;
      case content_kind::pictures:
        flush();
        datasets::refuse_foreign_folder(folder);
        refuse_options(source_format::pictures, options, path);
        add_pictures(path, at_address ? datasets::open_listed_pictures(*folder.listing(), {}, options.remote)
                                      : open_pictures(path, options.index));
        break;
      case content_kind::unknown:
        refuse_unknown_folder(path);
    }
  };
  for (const std::string& source : sources.all()) {
    if (datasets::is_remote(source)) {
      open_files();
      for (io::named_object& each : datasets::find_objects(source, options.remote)) {
        if (auto listed = datasets::find_listed_folder(each, options.remote)) {
          add_folder(*datasets::folder_of_listing(std::move(*listed), options.remote), true);
        } else if (datasets::is_unlisted_folder(each.address)) {
          add_folder(*datasets::folder_asked_for(each.address, options.remote), true);
        } else if (!options.tables.path_column.empty() && is_text_table(io::redacted(each.address))) {
          open_addresses();
          parts.push_back(open_table_of_paths(*datasets::files_named_by(each, options.remote), options));
        } else if (are_references(each, options.remote)) {
          open_addresses();
          add_references(each.address);
        } else {
          addresses.push_back(std::move(each));
        }
      }
      continue;
    }
    open_addresses();
    for (std::string& path : paths_of(source)) {
      if (is_folder(path)) {
        add_folder(*datasets::folder_on_disk(path), false);
        continue;
      }
      refuse_split(options, path);
      const source_format found = datasets::format_of_file(path);
      if (is_empty_file(path)) {
        empty_files.push_back(std::move(path));
        continue;
      }
      if (found == source_format::tar && path.ends_with(".json") && datasets::is_references(path)) {
        open_files();
        add_references(path);
        continue;
      }
      if (found == source_format::tar && path.ends_with(".json")) refuse_description(path);
      if (found == source_format::tar) check_shard(path);
      add_file(std::move(path), found);
    }
  }
  open_files();
  open_addresses();
  if (!empty_files.empty()) parts.push_back(datasets::no_samples_of(empty_files));
  return concat(parts);
}

}  // namespace leat
