#include "datasets/formats/zarr/zarr_store.hpp"

#include "base/text.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/path_error.hpp"
#include "datasets/files/raw_files.hpp"
#include "io/files/file_status.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

namespace leat::datasets {
namespace {

namespace fs = std::filesystem;

class folder_store final : public zarr_store {
 public:
  explicit folder_store(const std::string& folder) : folder_(folder) {}

  const std::string& title() const noexcept override { return folder_; }
  bool has(const std::string& key) const override { return is_file_there(where(key)); }

  std::vector<std::byte> metadata(const std::string& key) const override {
    const std::string path = where(key);
    const local_file file(path);
    if (file.size() > metadata_bytes_max)
      throw error(errc::format, str_cat(path, ": ", file.size(), " bytes of metadata"));
    return file.read(0, file.size());
  }

  std::vector<std::string> names_in(const std::string& group) const override {
    const std::string folder = where(group);
    std::vector<std::string> names;
    std::error_code unreadable;
    for (fs::directory_iterator each(folder, unreadable), end; !unreadable && each != end; each.increment(unreadable)) {
      const std::string name = each->path().filename().string();
      if (is_zarr(str_cat(folder, "/", name))) names.push_back(name);
    }
    if (unreadable) throw error(errc::io, str_cat(folder, ": ", unreadable.message()));
    std::sort(names.begin(), names.end());
    return names;
  }

  zarr_object find(const std::string& key) const override {
    const std::string path = where(key);
    io::file_status status;
    const int failure = io::look_at(path.c_str(), status);
    if (failure == 0 && status.is_directory()) throw path_error(EISDIR, path, "a chunk is a file");
    if (failure == 0) return {.offset = 0, .bytes = status.size_bytes, .version = status.version()};
    if (failure != ENOENT) throw path_error(failure, path, "check the folder");
    return {};  // never written
  }

  std::vector<std::byte> read(const std::string& key, const zarr_object&, std::uint64_t offset,
                              std::uint64_t bytes) const override {
    return local_file(where(key)).read(offset, bytes);
  }

  std::uint32_t number_of_file(const std::string& key, const zarr_object& object,
                               std::vector<sized_file>& files) override {
    files.push_back({where(key), object.bytes, object.version});
    return static_cast<std::uint32_t>(files.size() - 1);
  }

 private:
  const std::string folder_;
};

class files_store final : public zarr_store {
 public:
  files_store(const input_files& files, const std::string& folder) : files_(files), folder_(folder) {
    const std::string below = folder + "/";
    for (const std::string& name : files.names()) {
      if (!name.starts_with(below)) continue;
      std::string path = name.substr(below.size());
      // A group needs no metadata of its own: it exists where something lies in it.
      while (path.find('/') != std::string::npos) {
        path.resize(path.rfind('/'));
        const std::size_t slash = path.rfind('/');
        const std::string group = slash == std::string::npos ? "" : path.substr(0, slash);
        if (!groups_[group].insert(path.substr(slash == std::string::npos ? 0 : slash + 1)).second) break;
      }
    }
  }

  const std::string& title() const noexcept override { return folder_; }
  bool has(const std::string& key) const override { return files_.has(where(key)); }
  std::vector<std::byte> metadata(const std::string& key) const override {
    const std::unique_ptr<file_bytes> file = files_.open(where(key));
    if (file->size() > metadata_bytes_max)
      throw error(errc::format, str_cat(where(key), ": ", file->size(), " bytes of metadata"));
    return file->read(0, file->size());
  }
  std::vector<std::string> names_in(const std::string& group) const override {
    if (!files_.lists()) {
      throw error(errc::unsupported,
                  str_cat(where(group),
                          ": a group, and this server cannot be asked which arrays it has; zarr.consolidate_metadata() "
                          "writes their names where they are found, or give the address of one array"));
    }
    std::vector<std::string> names;
    const auto found = groups_.find(group);
    if (found == groups_.end()) return names;
    for (const std::string& name : found->second) {
      const std::string path = group.empty() ? name : str_cat(group, "/", name);
      if (groups_.contains(path) || has(path + "/zarr.json") || has(path + "/.zarray") || has(path + "/.zgroup")) {
        names.push_back(name);
      }
    }
    return names;
  }
  zarr_object find(const std::string& key) const override {
    const std::optional<sized_file> found = files_.find(where(key));
    if (!found) return {};
    return {.offset = 0, .bytes = found->size_bytes, .version = found->version};
  }
  void expect(std::uint64_t count, const std::function<std::string(std::uint64_t)>& key) const override {
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < count; ++i) names.push_back(where(key(i)));
    files_.expect(names);
  }
  std::vector<std::byte> read(const std::string& key, const zarr_object&, std::uint64_t offset,
                              std::uint64_t bytes) const override {
    return files_.open(where(key))->read(offset, bytes);
  }
  std::uint32_t number_of_file(const std::string& key, const zarr_object& object,
                               std::vector<sized_file>& files) override {
    files.push_back({where(key), object.bytes, object.version});
    return static_cast<std::uint32_t>(files.size() - 1);
  }

 private:
  const input_files& files_;
  const std::string folder_;
  std::map<std::string, std::set<std::string>> groups_;  // what lies directly below each
};

}  // namespace

std::unique_ptr<zarr_store> zarr_in_files(const input_files& files, const std::string& folder) {
  return std::make_unique<files_store>(files, folder);
}

std::string zarr_store::where(const std::string& key) const {
  return key.empty() ? title() : str_cat(title(), "/", key);
}

bool is_zarr(const input_files& files, const std::string& folder) {
  return files.has(folder + "/zarr.json") || files.has(folder + "/.zgroup") || files.has(folder + "/.zarray");
}

bool is_zarr(const std::string& folder) { return is_zarr(*files_on_disk({}), folder); }

std::unique_ptr<zarr_store> zarr_in_folder(const std::string& folder) { return std::make_unique<folder_store>(folder); }

}  // namespace leat::datasets
