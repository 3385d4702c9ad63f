#include "datasets/zarr_store.hpp"

#include "base/text.hpp"
#include "datasets/file_bytes.hpp"
#include "datasets/raw_files.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace leat::datasets {
namespace {

namespace fs = std::filesystem;

class folder_store final : public zarr_store {
 public:
  explicit folder_store(const std::string& folder) : folder_(folder) {}

  const std::string& title() const noexcept override { return folder_; }
  bool has(const std::string& key) const override { return file_exists(where(key)); }

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
    std::error_code missing;
    const std::uintmax_t bytes = fs::file_size(path, missing);
    if (!missing) return {.offset = 0, .bytes = bytes};
    if (missing != std::errc::no_such_file_or_directory) throw error(errc::io, str_cat(path, ": ", missing.message()));
    return {};  // never written
  }

  std::vector<std::byte> read(const std::string& key, const zarr_object&, std::uint64_t offset,
                              std::uint64_t bytes) const override {
    return local_file(where(key)).read(offset, bytes);
  }

  std::uint32_t number_of_file(const std::string& key, const zarr_object& object,
                               std::vector<sized_file>& files) override {
    files.push_back({where(key), object.bytes});
    return static_cast<std::uint32_t>(files.size() - 1);
  }

 private:
  const std::string folder_;
};

}  // namespace

std::string zarr_store::where(const std::string& key) const {
  return key.empty() ? title() : str_cat(title(), "/", key);
}

bool is_zarr(const std::string& folder) {
  return file_exists(folder + "/zarr.json") || file_exists(folder + "/.zgroup") || file_exists(folder + "/.zarray");
}

std::unique_ptr<zarr_store> zarr_in_folder(const std::string& folder) { return std::make_unique<folder_store>(folder); }

}  // namespace leat::datasets
