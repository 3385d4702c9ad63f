#include "datasets/formats/records/coded_lines.hpp"

#include "base/cores_quota.hpp"
#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/files/index_cache.hpp"
#include "datasets/files/parallel.hpp"
#include "io/files/file_status.hpp"
#include "io/remote/address.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

/// A compressed file, as it is stored and what was found in it.
struct found_file {
  std::string name;
  file_stamp stamp;
  std::shared_ptr<const coded_file> coded;
  std::vector<value_place> lines;
};

// Each once.
std::vector<found_file> coded_among(const input_files& from) {
  std::vector<std::string> names;
  for (const std::string& each : from.names()) {
    if (coding_of_name(each)) names.push_back(each);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<found_file> found;
  for (std::string& each : names) found.push_back({.name = std::move(each), .stamp = {}, .coded = {}, .lines = {}});
  return found;
}

index_cache index_of(std::span<const found_file> files, std::string_view format, const index_options& options) {
  std::vector<std::string> names;
  std::uint64_t stored = 0;
  bool any_at_address = false;
  for (const found_file& each : files) {
    names.push_back(each.name);
    stored += each.stamp.size_bytes;
    any_at_address = any_at_address || io::is_address(each.name);
  }
  hasher key;
  key.add("compressed lines");
  key.add(format);
  add_paths(key, names);
  return index_cache(options, str_cat(names.front(), names.size() > 1 ? " and others" : ""), key.finish(),
                     any_at_address ? 1 : samples_least_of_coded(stored));
}

// As they are now. Of a file on a disk a change within a tick of its clock may be without a sign.
void look_at(const input_files& from, std::span<found_file> files) {
  std::vector<std::string> names;
  for (const found_file& each : files) names.push_back(each.name);
  from.expect(names);
  for (found_file& each : files) {
    const std::optional<sized_file> now = from.find(each.name);
    if (!now) static_cast<void>(from.open(each.name));  // says why
    each.stamp = {.size_bytes = now->size_bytes, .modified_ns = static_cast<std::int64_t>(now->version)};
  }
}

void watch_changes(index_cache& index, std::span<const found_file> files) {
  for (const found_file& each : files) {
    if (each.stamp.modified_ns == 0) index.leave_out(str_cat(each.name, ": that it has changed could not be told"));
    io::file_status status;
    if (io::is_address(each.name) || io::look_at(each.name.c_str(), status) != 0) continue;
    index.saw(status.write_time.seconds * 1'000'000'000 + status.write_time.nanoseconds);
  }
}

bool are_of(std::span<const value_place> lines, std::uint64_t bytes) {
  std::uint64_t end = 0;
  return std::all_of(lines.begin(), lines.end(), [&](const value_place& each) {
    const bool follows = each.offset >= end && each.offset <= bytes && each.bytes <= bytes - each.offset;
    end = each.offset + each.bytes;
    return follows;
  });
}

// As an earlier run has read them through, if they are still the same.
bool take_kept(index_cache& index, std::span<found_file> files) {
  const auto taken = index.use(
      [&](const std::shared_ptr<const mapped_index>& owner, section_reader& from) -> std::unique_ptr<const bool> {
        const std::span<const file_stamp> before = from.all<file_stamp>();
        if (before.size() != files.size()) throw error(errc::format, "it is of other files");
        for (std::size_t i = 0; i < files.size(); ++i) {
          if (files[i].stamp == before[i]) continue;
          index.refuse(str_cat(files[i].name, " has changed since"));
          return nullptr;
        }
        for (found_file& each : files) {
          each.coded = std::make_shared<const coded_file>(owner, from);
          const auto lines = from.all<value_place>();
          if (each.coded->stored_bytes() != each.stamp.size_bytes || !are_of(lines, each.coded->bytes())) {
            throw error(errc::format, "it has lines that such a file has not");
          }
          each.lines.assign(lines.begin(), lines.end());
        }
        return std::make_unique<const bool>(true);
      });
  return taken != nullptr;
}

void keep(index_cache& index, std::span<const found_file> files) {
  std::uint64_t lines = 0;
  for (const found_file& each : files) lines += each.lines.size();
  section_writer content;
  if (index.is_written(lines)) {
    std::vector<file_stamp> stamps;
    for (const found_file& each : files) stamps.push_back(each.stamp);
    content.add_all(std::span<const file_stamp>(stamps));
    for (const found_file& each : files) {
      each.coded->save(content);
      content.add_all(std::span<const value_place>(each.lines));
    }
  }
  index.write(lines, content.bytes());
}

void read_through(const input_files& from, std::span<found_file> files, const finder_of_lines& finder) {
  constexpr std::size_t start_bytes = std::size_t{64} << 10;
  std::uint64_t stored = 0;
  for (const found_file& each : files) stored += each.stamp.size_bytes;
  for_each_parallel(files.size(), working_cores(), [&](std::size_t i) {
    found_file& of = files[i];
    const std::unique_ptr<file_bytes> file = from.open(of.name);
    const stream_coding coding = coding_of_name(of.name).value();
    const std::unique_ptr<line_finder> lines = finder(of.name, start_of_coded(*file, coding, start_bytes));
    of.coded =
        std::make_shared<const coded_file>(*file, coding, points_apart(stored), [&](std::span<const std::byte> piece) {
          lines->take({reinterpret_cast<const char*>(piece.data()), piece.size()});
        });
    of.lines = lines->finish();
  });
}

}  // namespace

coded_lines read_coded_lines(const input_files& from, std::string_view format, const index_options& options,
                             const finder_of_lines& finder) {
  std::vector<found_file> files = coded_among(from);
  if (files.empty()) return {};
  look_at(from, files);
  index_cache index = index_of(files, format, options);
  watch_changes(index, files);
  if (!take_kept(index, files)) {
    read_through(from, files, finder);
    keep(index, files);
  }
  std::map<std::string, std::shared_ptr<const coded_file>> coded;
  coded_lines result;
  for (found_file& each : files) {
    coded.emplace(each.name, std::move(each.coded));
    result.lines.emplace(std::move(each.name), std::move(each.lines));
  }
  result.files = decoded_files_of(from, std::move(coded));
  return result;
}

}  // namespace leat::datasets
