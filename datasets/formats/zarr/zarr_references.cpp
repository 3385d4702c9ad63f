#include "datasets/formats/zarr/zarr_references.hpp"

#include "base/base64.hpp"
#include "base/hash_map.hpp"
#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "datasets/files/asked_files.hpp"
#include "datasets/files/content.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/patterns.hpp"
#include "io/files/file_status.hpp"
#include "io/remote/address.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace leat::datasets {
namespace {

using json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t references_bytes_max = std::uint64_t{512} << 20;

bool is_metadata(std::string_view key) {
  const std::string_view name = key.substr(key.rfind('/') + 1);
  return name == ".zgroup" || name == ".zarray" || name == ".zattrs" || name == "zarr.json";
}

/// Stops at the first key of the outermost object that tells what the file is.
class first_keys final : public nlohmann::json_sax<json> {
 public:
  [[nodiscard]] bool is_references() const noexcept { return is_references_; }

  bool key(std::string& name) override {
    if (depth_ == 1 && (name == "refs" || is_metadata(name))) is_references_ = true;
    return !is_references_;
  }
  bool start_object(std::size_t) override { return ++depth_, true; }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override { return ++depth_ > 1; }
  bool end_array() override { return --depth_, true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  std::uint64_t depth_ = 0;
  bool is_references_ = false;
};

/// A file that references name, as it was when they were opened.
///   refused   why it is no file; empty for one
struct referred_file {
  std::string path;
  bool is_whole_address = false;  ///< as the references write it
  std::uint64_t bytes = 0;
  std::uint64_t version = 0;
  int failure = 0;
  std::string refused;
  std::uint32_t number = unnumbered;

  static constexpr std::uint32_t unnumbered = std::numeric_limits<std::uint32_t>::max();
};

/// What a key leads to.
///   file    index of a referred_file; `held`: `bytes` from `offset` of what was written in the JSON itself
///   whole   of a file, whose size says how much
struct reference {
  static constexpr std::uint32_t held = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t file = held;
  bool whole = false;
};

// An address may be signed, also one that is not read.
std::string shown(const std::string& path) { return path.find("://") != std::string::npos ? io::redacted(path) : path; }

class reference_store final : public zarr_store {
 public:
  ///   from     of references at an address; else null
  ///   remote   of references on a disk that may lead to addresses; else null
  reference_store(const std::string& path, std::span<const std::byte> content, const input_files* from,
                  const remote_options* remote = nullptr)
      : path_(path), size_(content.size()), may_lead_elsewhere_(remote != nullptr), from_(from) {
    const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
    const json all = [&] {
      try {
        return parse_json(text);
      } catch (const error& wrong) {
        throw error(errc::format, str_cat(path, ": it is no JSON: ", wrong.what()));
      }
    }();
    if (!all.is_object()) fail("", "it is no JSON object");
    const auto refs = all.find("refs");
    if (refs != all.end()) take_version_1(all);
    const json& entries = refs != all.end() ? *refs : all;
    if (!entries.is_object()) fail("", "\"refs\" is no object");
    for (const auto& [key, value] : entries.items()) take(key, value);
    if (remote != nullptr) find_elsewhere(*remote);
    from_ != nullptr ? look_at_addresses() : look_at_disk();
  }

  /// Where the files are, of references on a disk that lead to addresses; else null.
  [[nodiscard]] std::shared_ptr<const input_files> elsewhere() const { return elsewhere_; }

  const std::string& title() const noexcept override { return path_; }
  bool has(const std::string& key) const override { return references_.contains(key); }

  std::vector<std::byte> metadata(const std::string& key) const override {
    const zarr_object found = find(key);
    if (found.bytes > metadata_bytes_max)
      throw error(errc::format, str_cat(where(key), ": ", found.bytes, " bytes of metadata"));
    return read(key, found, 0, found.bytes);
  }

  std::vector<std::string> names_in(const std::string& group) const override {
    const auto found = groups_.find(group);
    if (found == groups_.end()) return {};
    return {found->second.begin(), found->second.end()};
  }

  zarr_object find(const std::string& key) const override {
    const auto found = references_.find(key);
    if (found == references_.end()) return {};
    const reference& to = found->second;
    if (to.file == reference::held) return {.offset = 0, .bytes = to.bytes, .held = held_.data() + to.offset};
    const referred_file& file = files_[to.file];
    if (!file.refused.empty()) throw zarr_not_read{file.refused};
    if (file.failure != 0) {
      const bool is_missing = file.failure == ENOENT;
      throw error(
          is_missing ? errc::not_found : errc::io,
          str_cat(where(key), ": it lies in ", shown(file.path), ": ", std::generic_category().message(file.failure),
                  !is_missing                 ? ""
                  : io::is_address(file.path) ? "; check its url, and the template in it"
                                              : "; relative paths are taken from the folder of the references"));
    }
    if (to.whole) return {.offset = 0, .bytes = file.bytes};
    if (to.offset > file.bytes || to.bytes > file.bytes - to.offset) {
      throw error(errc::format, str_cat(where(key), ": it has ", to.bytes, " bytes at offset ", to.offset, " of ",
                                        shown(file.path), ", which has ", file.bytes, "; was that file written anew?"));
    }
    return {.offset = to.offset, .bytes = to.bytes};
  }

  std::vector<std::byte> read(const std::string& key, const zarr_object& object, std::uint64_t offset,
                              std::uint64_t bytes) const override {
    if (object.held != nullptr) {
      const std::uint64_t begin = std::min(offset, object.bytes);
      return {object.held + begin, object.held + begin + std::min(bytes, object.bytes - begin)};
    }
    const std::string& path = files_[references_.at(key).file].path;
    if (from_ != nullptr) return from_->open(path)->read(object.offset + offset, bytes);
    return local_file(path).read(object.offset + offset, bytes);
  }

  std::uint32_t number_of_file(const std::string& key, const zarr_object& object,
                               std::vector<sized_file>& files) override {
    const auto add = [&](std::uint32_t& number, const std::string& path, std::uint64_t bytes, std::uint64_t version) {
      if (number == referred_file::unnumbered) {
        number = static_cast<std::uint32_t>(files.size());
        files.push_back({path, bytes, version});
      }
      return number;
    };
    // What lies in the JSON is in memory, whatever becomes of the file: where that one is not among the others, any of them stands for it.
    if (object.held != nullptr && elsewhere_ == nullptr) return add(own_number_, path_, size_, 0);
    referred_file& file = files_[object.held != nullptr ? first_elsewhere_ : references_.at(key).file];
    return add(file.number, file.path, file.bytes, file.version);
  }

 private:
  void look_at_disk() {
    for_each_parallel(files_.size(), threads_for_walking(0), [&](std::size_t i) {
      referred_file& file = files_[i];
      if (!file.refused.empty()) return;
      io::file_status status{};
      file.failure = io::look_at(file.path.c_str(), status);
      if (file.failure == 0 && status.is_directory()) file.failure = EISDIR;
      file.bytes = status.size_bytes;
      file.version = status.version();
    });
  }
  void look_at_addresses() {
    std::vector<std::string> names;
    std::vector<std::string> whole;
    for (const referred_file& each : files_) {
      if (!each.refused.empty()) continue;
      names.push_back(each.path);
      if (each.is_whole_address) whole.push_back(each.path);
    }
    from_->expect_addresses(whole);
    from_->expect(names);
    for (referred_file& file : files_) {
      if (!file.refused.empty()) continue;
      const std::optional<sized_file> found = from_->find(file.path);
      file.failure = found ? 0 : ENOENT;
      if (!found) continue;
      file.bytes = found->size_bytes;
      file.version = found->version;
    }
  }

  // Where one lies on a disk, those at addresses are not read.
  void find_elsewhere(const remote_options& options) {
    const referred_file* on_disk = nullptr;
    std::vector<std::uint32_t> at_addresses;
    for (std::uint32_t i = 0; i < files_.size(); ++i) {
      if (!files_[i].refused.empty()) continue;
      if (io::is_address(files_[i].path)) {
        at_addresses.push_back(i);
      } else if (on_disk == nullptr) {
        on_disk = &files_[i];
      }
    }
    if (at_addresses.empty()) return;
    if (on_disk == nullptr) {
      first_elsewhere_ = at_addresses.front();
      elsewhere_ = files_asked_for("", options);
      from_ = elsewhere_.get();
      return;
    }
    for (const std::uint32_t each : at_addresses) {
      files_[each].refused = str_cat(shown(files_[each].path), ": an address, where other chunks lie on a disk (",
                                     on_disk->path, "); write references of their own for each");
    }
  }

  [[noreturn]] void fail(const std::string& key, std::string_view what) const {
    throw error(errc::format, str_cat(key.empty() ? path_ : str_cat(path_, ": \"", key, "\""), ": ", what));
  }

  void take_version_1(const json& all) {
    if (const auto version = all.find("version"); version != all.end() && *version != 1) {
      throw error(errc::unsupported,
                  str_cat(path_, ": references of version ", version->dump().substr(0, 20), "; leat reads 0 and 1"));
    }
    if (const auto made = all.find("gen"); made != all.end() && !made->empty()) {
      throw error(errc::unsupported, str_cat(path_,
                                             ": \"gen\", references that a rule makes; write each of them "
                                             "into \"refs\", as kerchunk does"));
    }
    const auto templates = all.find("templates");
    if (templates == all.end()) return;
    if (!templates->is_object()) fail("", "\"templates\" is no object");
    for (const auto& [name, text] : templates->items()) {
      if (!text.is_string()) fail("templates", "a value that is no text");
      templates_.emplace(name, text.get<std::string>());
    }
  }

  void take(const std::string& key, const json& value) {
    if (is_metadata(key)) add_node(key);
    if (value.is_string()) return hold(key, value.get_ref<const std::string&>());
    if (value.is_object()) return hold(key, value.dump());  // metadata that was not made text
    if (!value.is_array() || (value.size() != 1 && value.size() != 3) || !value[0].is_string()) {
      fail(key, "neither text nor [url] nor [url, offset, length]");
    }
    reference to;
    to.file = file_of(key, value[0].get_ref<const std::string&>());
    to.whole = value.size() == 1;
    if (!to.whole) {
      if (!value[1].is_number_unsigned() || !value[2].is_number_unsigned())
        fail(key, "offset and length count nothing");
      to.offset = value[1].get<std::uint64_t>();
      to.bytes = value[2].get<std::uint64_t>();
    }
    references_.insert_or_assign(key, to);
  }

  void hold(const std::string& key, std::string_view text) {
    constexpr std::string_view base64 = "base64:";
    std::optional<std::string> decoded;
    if (text.starts_with(base64)) {
      text.remove_prefix(base64.size());
      decoded = from_base64(text);
      if (!decoded) fail(key, "text that is no base64");
      text = *decoded;
    }
    references_.insert_or_assign(key, reference{.offset = held_.size(), .bytes = text.size()});
    const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
    held_.insert(held_.end(), bytes.begin(), bytes.end());
  }

  // The groups that a node lies in need no metadata of their own.
  void add_node(const std::string& key) {
    constexpr std::ptrdiff_t depth_max = 64;
    std::string path = key.substr(0, std::min(key.rfind('/'), key.size()));
    if (path == key) return;  // the root's own
    if (path.empty() || path.starts_with('/') || path.find("//") != std::string::npos) fail(key, "a path with a gap");
    if (std::count(path.begin(), path.end(), '/') > depth_max) fail(key, "groups within groups, more than 64 deep");
    for (;;) {
      const std::size_t slash = path.rfind('/');
      const std::string group = slash == std::string::npos ? "" : path.substr(0, slash);
      const bool is_new = groups_[group].insert(path.substr(group.empty() ? 0 : slash + 1)).second;
      if (group.empty() || !is_new) return;
      path = group;
    }
  }

  std::uint32_t file_of(const std::string& key, const std::string& url) {
    const auto [known, is_new] = numbers_.try_emplace(url, static_cast<std::uint32_t>(files_.size()));
    if (is_new) files_.push_back(resolved(filled_in(key, url)));
    return known->second;
  }

  // {{name}} is what the templates say.
  std::string filled_in(const std::string& key, std::string_view url) const {
    std::string filled;
    for (;;) {
      const std::size_t open = url.find("{{");
      filled += url.substr(0, open);
      if (open == std::string_view::npos) return filled;
      const std::size_t close = url.find("}}", open);
      if (close == std::string_view::npos) fail(key, "a template without an end");
      const std::string name(trimmed(url.substr(open + 2, close - open - 2)));
      const auto found = templates_.find(name);
      if (found == templates_.end() || found->second.find("{{") != std::string::npos) {
        throw error(errc::unsupported, str_cat(path_, ": \"", key, "\": the template {{", name.substr(0, 40),
                                               "}}, which is no name of a text; write the url out"));
      }
      filled += found->second;
      url.remove_prefix(close + 2);
    }
  }

  referred_file resolved(std::string url) const {
    if (from_ != nullptr) return resolved_at_address(std::move(url));
    referred_file file;
    for (const std::string_view scheme : {"file://", "local://"}) {
      if (url.starts_with(scheme)) url.erase(0, scheme.size());
    }
    if (url.find("::") != std::string::npos) {
      file.refused = str_cat(shown(url), ": files within others are not read; copy it, and give its path or address");
    }
    if (may_lead_elsewhere_ && io::is_address(url)) {
      file.path = std::move(url);
      return file;
    }
    try {
      refuse_address(url);
    } catch (const error& refused) {
      file.refused = refused.what();
    }
    file.path = fs::path(url).is_absolute() ? url : (fs::path(path_).parent_path() / url).string();
    return file;
  }

  referred_file resolved_at_address(std::string url) const {
    referred_file file;
    const bool is_whole = io::is_address(url);
    if (url.find("::") != std::string::npos || (!is_whole && url.find("://") != std::string::npos)) {
      file.refused = str_cat(io::redacted(url),
                             ": references at an address lead to files at s3://, https:// or relative "
                             "to their folder; write such an address");
    }
    if (url.starts_with('/'))
      file.refused = str_cat(url, ": a file of a disk, which references at an address cannot name");
    file.is_whole_address = is_whole;
    file.path = is_whole ? std::move(url) : resolved_name(std::string_view(path_).substr(0, path_.rfind('/')), url);
    return file;
  }

  const std::string path_;
  const std::uint64_t size_;
  const bool may_lead_elsewhere_;
  const input_files* from_;
  std::shared_ptr<const input_files> elsewhere_;  // null: they are where from_ says, or on a disk
  std::uint32_t first_elsewhere_ = 0;
  std::map<std::string, std::string> templates_;
  hash_map<std::string, reference> references_;
  std::vector<std::byte> held_;
  std::map<std::string, std::set<std::string>> groups_;  // what lies directly below each
  hash_map<std::string, std::uint32_t> numbers_;         // of files_, by url
  std::vector<referred_file> files_;
  std::uint32_t own_number_ = referred_file::unnumbered;
};

std::vector<std::byte> references_in(const file_bytes& file) {
  if (file.size() > references_bytes_max) {
    throw error(errc::limit, str_cat(file.path(), ": ", file.size(), " bytes; leat reads references of up to ",
                                     references_bytes_max, ": write one file for each part of the arrays"));
  }
  return file.read(0, file.size());
}

}  // namespace

bool is_references(std::span<const std::byte> start) {
  const char* const begin = reinterpret_cast<const char*>(start.data());
  first_keys keys;
  json::sax_parse(begin, begin + start.size(), &keys);
  return keys.is_references();
}

bool is_references(const std::string& path) {
  constexpr std::size_t looked_at_bytes = std::size_t{64} << 10;
  return is_references(start_of_file(path, looked_at_bytes));
}

std::unique_ptr<zarr_store> zarr_of_references(const std::string& path, std::span<const std::byte> content) {
  return std::make_unique<reference_store>(path, content, nullptr);
}

std::unique_ptr<zarr_store> zarr_of_references(const std::string& path) {
  return zarr_of_references(path, references_in(local_file(path)));
}

std::unique_ptr<zarr_store> zarr_of_references(const std::string& path, const remote_options& options,
                                               std::shared_ptr<const input_files>& from) {
  auto store = std::make_unique<reference_store>(path, references_in(local_file(path)), nullptr, &options);
  from = store->elsewhere();
  if (!from) from = files_on_disk({});
  return store;
}

std::unique_ptr<zarr_store> zarr_of_references(const std::string& path, const input_files& from) {
  return std::make_unique<reference_store>(path, references_in(*from.open(path)), &from);
}

}  // namespace leat::datasets
