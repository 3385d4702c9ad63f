#include "datasets/formats/tar/indexes_beside.hpp"

#include "base/hash_map.hpp"
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/remote_files.hpp"
#include "io/remote/address.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string_view>
#include <utility>
#include <variant>

namespace leat::datasets {
namespace {

// 30 million samples of two members. An index that is larger is not read: it is a stranger's, and goes to memory.
constexpr std::uint64_t index_bytes_max = std::uint64_t{1} << 30;
constexpr std::uint64_t piece_bytes = std::uint64_t{4} << 20;

std::string_view as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Whatever is wrong with an index, there are the shards.
std::string reason_of(const error& why, const std::string& name) {
  if (why.code() == errc::cancelled) throw error(why);
  const std::string_view what = why.what();
  return what.starts_with(name) ? std::string(what) : str_cat(name, ": ", what);
}

}  // namespace

index_places indexes_of(std::span<const std::string> shards, const remote_options& options) {
  index_places places;
  std::vector<std::string> own;
  std::vector<std::string> theirs;
  hash_map<std::string, std::uint32_t> numbers;
  for (const std::string& each : shards) {
    const address_parts parts = parts_of(each);
    const std::string index = str_cat(parts.folder, index_name_of(parts.name), parts.query);
    const auto [known, is_new] = numbers.try_emplace(index, static_cast<std::uint32_t>(own.size()));
    if (is_new) own.push_back(index);
    places.own.push_back(known->second);
    places.shards.push_back(parts.name);
    theirs.push_back(str_cat(parts.folder, wds_index_name_of(parts.name), parts.query));
  }
  places.own_files = static_cast<std::uint32_t>(own.size());
  own.insert(own.end(), theirs.begin(), theirs.end());
  // There are the shards: an index that does not come is not waited for as long as these are. It is read once, and where the cache is full
  // shards would have to make room for it.
  remote_options impatient = options;
  impatient.patience = std::min<std::chrono::milliseconds>(options.patience, std::chrono::seconds(10));
  places.source = io::describe_objects(own, impatient, io::caching::none);
  return places;
}

void indexes_beside::look() {
  std::vector<std::uint32_t> files(places_.own_files + 1);
  std::iota(files.begin(), files.end(), 0U);
  blocking_sources connected;
  const auto looks = connected.of(*places_.source).try_to_look(files);
  for (const std::uint32_t file : files) {
    const bool is_own = file < places_.own_files;
    if (const error* const why = std::get_if<error>(&looks[file])) {
      if (!is_not_there(*why))
        (is_own ? own_refused_ : theirs_refused_) = reason_of(*why, places_.source->file_name(file));
    } else if (is_own) {
      own_.push_back({file, std::get<blocking_source::file_look>(looks[file]).size_bytes});
    } else {
      has_theirs_ = true;
    }
  }
}

std::optional<std::vector<shard_index>> indexes_beside::read(std::span<const std::uint64_t> sizes,
                                                             at_end_marker at_marker) {
  why_not_ = own_refused_;
  if (own_refused_.empty() && !own_.empty()) {
    if (auto found = read_own(sizes, at_marker)) return found;
  }
  const std::string before = std::exchange(why_not_, {});
  // DALI's say nothing of end markers.
  std::optional<std::vector<shard_index>> found;
  if (at_marker == at_end_marker::stop) {
    why_not_ = theirs_refused_;
    if (has_theirs_) found = read_theirs(sizes);
  }
  if (!before.empty()) why_not_ = why_not_.empty() ? before : str_cat(before, "; ", why_not_);
  return found;
}

std::vector<std::vector<std::byte>> indexes_beside::content_of(std::span<const found_file> files) const {
  std::uint64_t all_bytes = 0;
  for (const found_file& each : files) all_bytes += each.size_bytes;
  if (all_bytes > index_bytes_max)
    throw error(errc::format, str_cat("it has ", bytes_text(all_bytes), ", more than is read of an index"));
  std::vector<std::vector<std::byte>> content;
  std::vector<blocking_source::request> pieces;
  for (const found_file& each : files) {
    content.emplace_back(each.size_bytes);
    for (std::uint64_t at = 0; at < each.size_bytes; at += piece_bytes) {
      pieces.push_back(
          {each.file, at, std::span(content.back()).subspan(at, std::min(piece_bytes, each.size_bytes - at))});
    }
  }
  blocking_sources connected;
  connected.of(*places_.source).read(pieces);
  return content;
}

std::optional<std::vector<shard_index>> indexes_beside::read_own(std::span<const std::uint64_t> sizes,
                                                                 at_end_marker at_marker) {
  hash_map<std::string, shard_index> by_name;  // each name with the number of its index before it
  hash_set<std::string> wanted;                // likewise
  for (std::size_t i = 0; i < places_.shards.size(); ++i)
    wanted.insert(str_cat(places_.own[i], "/", places_.shards[i]));
  for (const found_file& own : own_) {
    const std::string name = places_.source->file_name(own.file);
    try {
      parsed_shard_indexes parsed = parse_shard_indexes(content_of({&own, 1}).front(), [&](std::string_view shard) {
        return wanted.contains(str_cat(own.file, "/", shard));
      });
      if (parsed.at_marker != at_marker) {
        why_not_ =
            str_cat(name, ": it was made ", at_marker == at_end_marker::go_on ? "without" : "with", " ignore_zeros");
        return std::nullopt;
      }
      for (indexed_shard& each : parsed.shards)
        by_name.insert_or_assign(str_cat(own.file, "/", each.name), std::move(each.index));
    } catch (const error& damage) {
      why_not_ = reason_of(damage, name);
      return std::nullopt;
    }
  }
  std::vector<shard_index> all;
  for (std::size_t i = 0; i < places_.shards.size(); ++i) {
    const auto found = by_name.find(str_cat(places_.own[i], "/", places_.shards[i]));
    const bool is_it = found != by_name.end() && found->second.file_bytes == sizes[i];
    if (!is_it) {
      why_not_ = str_cat(places_.source->file_name(places_.own[i]), ": it has ", places_.shards[i],
                         found == by_name.end()
                             ? std::string(" not")
                             : str_cat(" with another size (", found->second.file_bytes, " bytes, now ", sizes[i], ")"),
                         "; write it anew (leat index)");
      return std::nullopt;
    }
    // Of a shard that is named twice it is wanted twice.
    all.push_back(found->second);
  }
  return all;
}

std::optional<std::vector<shard_index>> indexes_beside::read_theirs(std::span<const std::uint64_t> sizes) {
  std::vector<std::uint32_t> files(places_.shards.size());
  std::iota(files.begin(), files.end(), places_.own_files);
  std::vector<found_file> there;
  {
    blocking_sources connected;
    const auto looks = connected.of(*places_.source).try_to_look(files);
    for (std::size_t i = 0; i < looks.size(); ++i) {
      if (const error* const why = std::get_if<error>(&looks[i])) {
        const std::string name = places_.source->file_name(files[i]);
        why_not_ = is_not_there(*why) ? str_cat(name, ": it is not there, though the first shard has one")
                                      : reason_of(*why, name);
        return std::nullopt;
      }
      there.push_back({files[i], std::get<blocking_source::file_look>(looks[i]).size_bytes});
    }
  }
  std::vector<shard_index> all;
  try {
    for (const std::vector<std::byte>& each : content_of(there))
      all.push_back(parse_wds_index(as_text(each), sizes[all.size()]));
  } catch (const error& damage) {
    // Where a read has failed, it says of which.
    why_not_ = damage.code() == errc::format || damage.code() == errc::limit
                   ? reason_of(damage, places_.source->file_name(files[std::min(all.size(), files.size() - 1)]))
                   : reason_of(damage, {});
    return std::nullopt;
  }
  return all;
}

}  // namespace leat::datasets
