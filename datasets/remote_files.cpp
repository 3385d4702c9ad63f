#include "datasets/remote_files.hpp"

#include "base/text.hpp"
#include "datasets/blocking_source.hpp"
#include "datasets/input_files.hpp"
#include "datasets/patterns.hpp"
#include "datasets/raw_files.hpp"
#include "io/remote/address.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <utility>

namespace leat::datasets {
namespace {

// What may lie beside a .bin and say what it holds.
constexpr std::string_view companion_endings[] = {".json", ".idx"};

// "https://h/a.bin?sig" and ".json": "https://h/a.json?sig".
std::string beside(const std::string& address, std::string_view ending) {
  const std::size_t query = io::is_s3(address) ? address.size() : std::min(address.find('?'), address.size());
  return str_cat(with_extension(address.substr(0, query), ending), address.substr(query));
}

std::vector<std::string> first_names(const io::source_description& source, std::size_t count) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) names.push_back(source.file_name(i));
  return names;
}

struct object {
  std::string address;
  file_kind kind = file_kind::other;
  std::vector<std::string> companions;
};

// Of a signed address the one beside it is not signed: 403, which is as good as not there.
bool is_there(blocking_source& source, std::uint32_t number) {
  try {
    static_cast<void>(source.look_at(number));
    return true;
  } catch (const error& failed) {
    if (failed.code() != errc::not_found && failed.code() != errc::permission) throw;
    return false;
  }
}

std::vector<object> look_at(std::span<const std::string> addresses, const remote_options& options) {
  std::vector<object> all;
  std::vector<std::shared_ptr<const io::source_description>> keep;
  blocking_sources connected;  // of those: it ends first
  for (const std::string& address : addresses) {
    object& each = all.emplace_back();
    each.address = address;
    if (!io::redacted(address).ends_with(".bin")) continue;
    std::vector<std::string> candidates;
    for (const std::string_view ending : companion_endings) candidates.push_back(beside(address, ending));
    keep.push_back(io::describe_objects(candidates, options));
    for (std::uint32_t i = 0; i < candidates.size(); ++i) {
      if (is_there(connected.of(*keep.back()), i)) each.companions.push_back(candidates[i]);
    }
  }
  std::vector<std::string> with_companions(addresses.begin(), addresses.end());
  for (const object& each : all) {
    with_companions.insert(with_companions.end(), each.companions.begin(), each.companions.end());
  }
  const auto source = io::describe_objects(with_companions, options);
  const std::vector<std::string> names = first_names(*source, addresses.size());
  const std::unique_ptr<input_files> files = files_of_source(source, names);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].kind = kind_of_file(*files, names[i], io::redacted(all[i].address));
  return all;
}

}  // namespace

bool is_remote(std::string_view source) noexcept { return io::is_address(source); }

std::vector<std::string> expand_addresses(std::string_view pattern, const remote_options& options) {
  // parse_address() says what is wrong with it, without showing it.
  if (io::has_user(pattern)) static_cast<void>(io::parse_address(pattern));
  const std::size_t query = io::is_s3(pattern) ? pattern.size() : std::min(pattern.find('?'), pattern.size());
  std::vector<std::string> addresses = expand_braces(pattern.substr(0, query));
  if (io::is_s3(pattern)) {
    std::vector<std::string> all;
    for (std::string& each : addresses) {
      if (each.find_first_of("*?[") == std::string::npos) {
        all.push_back(std::move(each));
        continue;
      }
      for (std::string& match : io::match_objects(each, options)) all.push_back(std::move(match));
    }
    return all;
  }
  for (std::string& each : addresses) {
    if (each.find('*') != std::string::npos) {
      throw error(errc::usage, str_cat(io::redacted(each),
                                       ": a server cannot be asked which files it has; name them by braces, as "
                                       "train-{000..127}.tar"));
    }
    each += pattern.substr(query);
  }
  return addresses;
}

std::vector<dataset> open_objects(std::span<const std::string> addresses, const remote_options& options,
                                  const kind_opener& open_kind, const shard_opener& open_shards) {
  const std::vector<object> all = look_at(addresses, options);
  std::vector<dataset> parts;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    std::vector<std::string> together;
    for (; end < all.size() && all[end].kind == all[begin].kind; ++end) together.push_back(all[end].address);
    for (std::size_t i = begin; i < end; ++i) {
      together.insert(together.end(), all[i].companions.begin(), all[i].companions.end());
    }
    const std::shared_ptr<const io::source_description> source = io::describe_objects(together, options);
    if (all[begin].kind == file_kind::other) {
      parts.push_back(open_shards(source));
    } else {
      parts.push_back(open_kind(all[begin].kind, *files_of_source(source, first_names(*source, end - begin))));
    }
  }
  return parts;
}

}  // namespace leat::datasets
