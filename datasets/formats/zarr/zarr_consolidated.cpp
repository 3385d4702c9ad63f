#include "datasets/formats/zarr/zarr_consolidated.hpp"

#include "base/parse_json.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

using json = nlohmann::json;

constexpr std::string_view v2_key = ".zmetadata";
constexpr std::string_view v3_key = "zarr.json";

class consolidated_store final : public zarr_store {
 public:
  ///   key        that has the metadata of all
  ///   metadata   by key; the root's own may be missing: it is the store's
  consolidated_store(std::unique_ptr<zarr_store> store, std::string_view key,
                     std::map<std::string, std::string> metadata)
      : store_(std::move(store)), key_(key), metadata_(std::move(metadata)) {
    // A group needs no metadata of its own: it exists where something lies in it.
    for (const auto& [name, content] : metadata_) {
      std::string path = name.substr(0, std::min(name.rfind('/'), name.size()));
      if (path == name) continue;  // the root's own
      for (;;) {
        const std::size_t slash = path.rfind('/');
        const std::string group = slash == std::string::npos ? "" : path.substr(0, slash);
        const bool is_new = groups_[group].insert(path.substr(slash == std::string::npos ? 0 : slash + 1)).second;
        if (group.empty() || !is_new) break;
        path = group;
      }
    }
  }

  const std::string& title() const noexcept override { return store_->title(); }
  bool has(const std::string& key) const override {
    return metadata_.contains(key) || (key.find('/') == std::string::npos && store_->has(key));
  }
  std::vector<std::byte> metadata(const std::string& key) const override {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) return store_->metadata(key);
    const auto bytes = std::as_bytes(std::span(found->second));
    return {bytes.begin(), bytes.end()};
  }
  std::string metadata_key(const std::string& key) const override { return metadata_.contains(key) ? key_ : key; }
  std::vector<std::string> names_in(const std::string& group) const override {
    const auto found = groups_.find(group);
    if (found == groups_.end()) return {};
    return {found->second.begin(), found->second.end()};
  }
  void expect(std::uint64_t count, const std::function<std::string(std::uint64_t)>& key) const override {
    store_->expect(count, key);
  }
  zarr_object find(const std::string& key) const override { return store_->find(key); }
  std::vector<std::byte> read(const std::string& key, const zarr_object& object, std::uint64_t offset,
                              std::uint64_t bytes) const override {
    return store_->read(key, object, offset, bytes);
  }
  std::uint32_t number_of_file(const std::string& key, const zarr_object& object,
                               std::vector<sized_file>& files) override {
    return store_->number_of_file(key, object, files);
  }

 private:
  const std::unique_ptr<zarr_store> store_;
  const std::string key_;
  const std::map<std::string, std::string> metadata_;
  std::map<std::string, std::set<std::string>> groups_;  // what lies directly below each
};

[[noreturn]] void fail(const zarr_store& store, std::string_view key, std::string_view why = {}) {
  throw error(errc::format, str_cat(store.where(std::string(key)),
                                    ": consolidated metadata that are no JSON object of names and metadata",
                                    why.empty() ? "" : ": ", why, "; zarr.consolidate_metadata() writes them anew"));
}

json object_at(const zarr_store& store, std::string_view key) {
  const std::vector<std::byte> content = store.metadata(std::string(key));
  json found;
  try {
    found = parse_json({reinterpret_cast<const char*>(content.data()), content.size()});
  } catch (const error& wrong) {
    fail(store, key, wrong.what());
  }
  if (!found.is_object()) fail(store, key);
  return found;
}

}  // namespace

std::unique_ptr<zarr_store> with_consolidated_metadata(std::unique_ptr<zarr_store> store) {
  constexpr std::ptrdiff_t depth_max = 64;
  const bool is_v3 = store->has(std::string(v3_key));
  if (!is_v3 && !store->has(std::string(v2_key))) return store;
  const std::string_view key = is_v3 ? v3_key : v2_key;
  const json all = object_at(*store, key);
  const json* consolidated = &all;
  if (is_v3) {
    const auto found = all.find("consolidated_metadata");
    if (found == all.end() || found->is_null()) return store;
    if (!found->is_object()) fail(*store, key);
    consolidated = &*found;
  }
  const auto entries = consolidated->find("metadata");
  if (entries == consolidated->end() || !entries->is_object()) fail(*store, key);
  std::map<std::string, std::string> metadata;
  for (const auto& [name, value] : entries->items()) {
    if (!value.is_object() || name.starts_with('/') || name.find("//") != std::string::npos ||
        std::count(name.begin(), name.end(), '/') > depth_max) {
      fail(*store, key);
    }
    metadata.emplace(is_v3 ? str_cat(name, "/", v3_key) : name, value.dump());
  }
  return std::make_unique<consolidated_store>(std::move(store), key, std::move(metadata));
}

}  // namespace leat::datasets
