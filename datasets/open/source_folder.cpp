#include "datasets/open/source_folder.hpp"

#include "base/text.hpp"
#include "datasets/files/asked_files.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/files/listed_folder.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/formats/records/mds.hpp"
#include "datasets/open/saved_set.hpp"
#include "io/remote/address.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

namespace leat::datasets {
namespace {

namespace fs = std::filesystem;

std::string path_in(const source_folder& folder, std::string_view name) {
  const std::string& path = folder.path();
  return str_cat(path, path.ends_with('/') ? "" : "/", name);
}

class disk_folder final : public source_folder {
 public:
  explicit disk_folder(const std::string& path) : path_(path) {}

  const std::string& path() const noexcept override { return path_; }
  bool has(std::string_view name) const override { return file_exists(path_in(*this, name)); }
  bool has_folder(const std::string& path) const override { return is_folder(path); }
  std::vector<std::string> files_in(std::string_view ending) const override {
    return datasets::files_in(path_, ending);
  }
  std::vector<std::string> folders_in() const override {
    std::vector<std::string> folders;
    std::error_code unreadable;
    for (fs::directory_iterator each(path_, unreadable), end; !unreadable && each != end; each.increment(unreadable)) {
      const std::string name = each->path().filename().string();
      if (!name.starts_with('.') && is_folder(path_in(*this, name))) folders.push_back(path_in(*this, name));
    }
    std::sort(folders.begin(), folders.end());
    return folders;
  }
  std::vector<std::string> files_below() const override {
    std::vector<std::string> files = files_in("");
    for (const std::string& each : folders_in()) {
      const std::vector<std::string> inside = disk_folder(each).files_below();
      files.insert(files.end(), inside.begin(), inside.end());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  std::unique_ptr<source_folder> below(std::string_view name) const override {
    return folder_on_disk(path_in(*this, name));
  }
  const input_files& files() const override { return *files_; }
  std::unique_ptr<input_files> files_of_table(const std::string& path) const override { return files_on_disk({path}); }
  io::named_object object(const std::string& path) const override { return {.address = path}; }

 private:
  const std::string path_;
  const std::unique_ptr<input_files> files_ = files_on_disk({});
};

class folder_in_store final : public source_folder {
 public:
  folder_in_store(listed_folder listed, const remote_options& options)
      : listed_(std::move(listed)), options_(options) {}

  const std::string& path() const noexcept override { return listed_.path(); }
  const listed_folder* listing() const noexcept override { return &listed_; }
  bool has(std::string_view name) const override { return listed_.has(name); }
  bool has_folder(const std::string& path) const override { return listed_.has_folder(path); }
  std::vector<std::string> files_in(std::string_view ending) const override {
    std::vector<std::string> paths;
    for (const io::named_object& each : listed_.objects_in(ending)) paths.push_back(each.address);
    return paths;
  }
  std::vector<std::string> folders_in() const override {
    std::set<std::string> folders;
    for (const std::string& path : files_below()) {
      const std::size_t slash = path.find('/', listed_.path().size() + 1);
      if (slash != std::string::npos) folders.insert(path.substr(0, slash));
    }
    return {folders.begin(), folders.end()};
  }
  std::vector<std::string> files_below() const override {
    std::vector<std::string> files;
    for (const io::named_object& each : listed_.objects()) files.push_back(each.address);
    return files;
  }
  std::unique_ptr<source_folder> below(std::string_view name) const override {
    std::vector<io::named_object> objects;
    const std::string path = path_in(*this, name);
    for (const io::named_object& each : listed_.objects()) {
      if (each.address.starts_with(path + "/")) objects.push_back(each);
    }
    return folder_of_listing(listed_folder(path, std::move(objects)), options_);
  }
  // Of a million pictures nobody asks for it.
  const input_files& files() const override {
    if (!files_) files_ = files_of_source(io::describe_objects(listed_.objects(), options_));
    return *files_;
  }
  std::unique_ptr<input_files> files_of_table(const std::string& path) const override {
    return files_asked_for(listed_.path(), options_, {path}, listed_.objects());
  }
  io::named_object object(const std::string& path) const override {
    const io::named_object* const found = listed_.find(path);
    return found != nullptr ? *found : io::named_object{.address = path};
  }

 private:
  const listed_folder listed_;
  const remote_options options_;
  mutable std::unique_ptr<input_files> files_;
};

class asked_folder final : public source_folder {
 public:
  asked_folder(const std::string& address, const remote_options& options)
      : address_(address),
        options_(options),
        path_(name_of_folder(address)),
        files_(files_asked_for(address, options)) {
    std::vector<std::string> telling;
    for (const std::string_view name : {"zarr.json", ".zgroup", ".zarray", ".zmetadata", "data.mdb", "index.json",
                                        "state.json", "dataset_dict.json", "metadata.jsonl", "metadata.csv"}) {
      telling.push_back(path_in(*this, name));
    }
    files_->expect(telling);
  }

  const std::string& path() const noexcept override { return path_; }
  bool has(std::string_view name) const override { return files_->has(path_in(*this, name)); }
  // Of a saved set, which has this file.
  bool has_folder(const std::string& path) const override { return files_->has(path + "/state.json"); }
  std::vector<std::string> files_in(std::string_view) const override { return {}; }
  std::unique_ptr<source_folder> below(std::string_view name) const override {
    return folder_asked_for(address_below(address_, str_cat("/", name)), options_);
  }
  bool lists() const noexcept override { return false; }
  const input_files& files() const override { return *files_; }
  std::unique_ptr<input_files> files_of_table(const std::string& path) const override {
    return files_asked_for(address_, options_, {path});
  }
  io::named_object object(const std::string& path) const override {
    return {.address = address_below(address_, std::string_view(path).substr(path_.size()))};
  }

 private:
  const std::string address_;
  const remote_options options_;
  const std::string path_;
  const std::unique_ptr<input_files> files_;
};

}  // namespace

std::unique_ptr<source_folder> folder_on_disk(const std::string& path) { return std::make_unique<disk_folder>(path); }

std::unique_ptr<source_folder> folder_of_listing(listed_folder listed, const remote_options& options) {
  return std::make_unique<folder_in_store>(std::move(listed), options);
}

std::unique_ptr<source_folder> folder_asked_for(const std::string& address, const remote_options& options) {
  return std::make_unique<asked_folder>(address, options);
}

std::unique_ptr<source_folder> folder_at(const std::string& address, const remote_options& options) {
  if (io::has_keys(address)) return folder_of_listing(list_folder(address, options), options);
  return folder_asked_for(address, options);
}

folder_content content_of_folder(const source_folder& folder) {
  using kind = folder_content::kind;
  for (const std::string_view name : {"zarr.json", ".zgroup", ".zarray"}) {
    if (folder.has(name)) return {kind::zarr};
  }
  if (folder.has("data.mdb")) return {kind::lmdb, {path_in(folder, "data.mdb")}};
  if (folder.has("index.json") && is_mds(folder.files(), folder.path())) return {kind::mds};
  if (folder.has("state.json") || folder.has("dataset_dict.json")) {
    const auto has_folder = [&](const std::string& path) { return folder.has_folder(path); };
    if (auto saved = files_of_saved_set(folder.files(), has_folder, folder.path()))
      return {kind::arrow, std::move(*saved)};
  }
  for (const std::string_view name : {"metadata.jsonl", "metadata.csv"}) {
    if (folder.has(name)) return {kind::table, {path_in(folder, name)}};
  }
  if (!folder.lists()) return {kind::unknown};
  for (const std::string_view ending : {".tar", ".tar.gz", ".tgz", ".tar.zst"}) {
    if (std::vector<std::string> shards = folder.files_in(ending); !shards.empty())
      return {kind::shards, std::move(shards)};
  }
  return {kind::pictures};
}

}  // namespace leat::datasets
