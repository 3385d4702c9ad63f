#include "datasets/files/asked_files.hpp"

#include "base/hash_map.hpp"
#include "base/mutex.hpp"
#include "base/percent.hpp"
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "io/remote/address.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace leat::datasets {
namespace {

class asked_files final : public input_files {
 public:
  asked_files(const std::string& folder, const remote_options& options, std::vector<std::string> names,
              std::span<const io::named_object> listed)
      : names_(std::move(names)), folder_(folder), name_(name_of_folder(folder)), options_(options) {
    for (const io::named_object& each : listed) listed_.try_emplace(io::redacted(each.address), each);
  }

  const std::vector<std::string>& names() const noexcept override { return names_; }
  bool lists() const noexcept override { return false; }
  bool has(const std::string& name) const override {
    expect({&name, 1});
    const mutex_lock lock(mutex_);
    return known_.at(name).file.has_value();
  }
  // Who may not read a file might take it for one that was never written.
  std::optional<sized_file> find(const std::string& name) const override {
    expect({&name, 1});
    const mutex_lock lock(mutex_);
    const known& entry = known_.at(name);
    if (entry.refused) throw error(*entry.refused);
    return entry.file;
  }
  void expect_addresses(std::span<const std::string> names) const override {
    const mutex_lock lock(whole_mutex_);
    whole_.insert(names.begin(), names.end());
  }
  void expect(std::span<const std::string> names) const override {
    std::vector<std::string> unknown;
    {
      const mutex_lock lock(mutex_);
      hash_set<std::string_view> asked;
      for (const std::string& each : names) {
        if (!known_.contains(each) && asked.insert(each).second) unknown.push_back(each);
      }
    }
    if (unknown.empty()) return;
    std::vector<io::named_object> objects;
    for (const std::string& each : unknown) objects.push_back(object_of(each));
    ask_for_facts(objects);
    const auto source = io::describe_objects(objects, options_);
    std::vector<std::uint32_t> numbers(objects.size());
    std::iota(numbers.begin(), numbers.end(), 0U);
    blocking_sources connected;
    const auto looks = connected.of(*source).try_to_look(numbers);
    for (const auto& each : looks) {
      if (const error* const why = std::get_if<error>(&each); why != nullptr && !is_not_there(*why)) throw error(*why);
    }
    const std::shared_ptr<const input_files> opened = files_of_source(source);
    const mutex_lock lock(mutex_);
    for (std::uint32_t i = 0; i < unknown.size(); ++i) {
      known entry;
      entry.object = std::move(objects[i]);
      if (const auto* const look = std::get_if<blocking_source::file_look>(&looks[i])) {
        entry.file = sized_file{unknown[i], look->size_bytes, look->version};
        entry.from = opened;
        entry.source = source;
        entry.number = i;
      } else if (const error& why = std::get<error>(looks[i]); why.code() == errc::permission) {
        entry.refused = why;
      }
      known_.try_emplace(std::move(unknown[i]), std::move(entry));
    }
  }
  std::unique_ptr<file_bytes> open(const std::string& name) const override {
    expect({&name, 1});
    std::shared_ptr<const input_files> from;
    std::string called;
    {
      const mutex_lock lock(mutex_);
      const known& entry = known_.at(name);
      if (entry.refused) throw error(*entry.refused);
      from = entry.from;
      if (entry.source) called = entry.source->file_name(entry.number);
    }
    if (!from)
      throw error(errc::not_found,
                  str_cat(io::redacted(object_of(name).address), ": it is not there; check the address"));
    return from->open(called);
  }
  placed_files place(std::span<const sized_file> files) const override {
    // A table may name one more than once.
    std::vector<io::named_object> objects;
    std::vector<sized_file> different;
    std::vector<std::uint32_t> which;
    std::vector<std::pair<std::shared_ptr<const io::source_description>, std::uint32_t>> seen_by;
    {
      const mutex_lock lock(mutex_);
      hash_map<std::string_view, std::uint32_t> numbers;
      for (const sized_file& each : files) {
        const auto [at, is_new] = numbers.try_emplace(each.name, static_cast<std::uint32_t>(different.size()));
        which.push_back(at->second);
        if (!is_new) continue;
        const auto found = known_.find(each.name);
        const bool is_known = found != known_.end();
        objects.push_back(is_known ? found->second.object : object_of(each.name));
        seen_by.emplace_back(is_known ? found->second.source : nullptr, is_known ? found->second.number : 0);
        different.push_back(each);
      }
    }
    const auto source = io::describe_objects(objects, options_);
    for (std::uint32_t i = 0; i < different.size(); ++i) {
      different[i].name = source->file_name(i);
      // Nobody opens them again, and reads are of what was seen.
      if (const auto& [from, number] = seen_by[i]; from) io::hand_on_facts(*from, number, *source, i);
    }
    placed_files placed = files_of_source(source)->place(different);
    for (std::uint32_t& each : which) each = placed.numbers[each];
    placed.numbers = std::move(which);
    return placed;
  }

 private:
  // Of a file that is not there nothing is known but that.
  struct known {
    std::optional<sized_file> file;
    std::optional<error> refused;             // it may not be read
    std::shared_ptr<const input_files> from;  // shared by all that were asked for together: their connections are
    std::shared_ptr<const io::source_description> source;  // of those, that has looked at it
    std::uint32_t number = 0;                              // among them
    io::named_object object;
  };

  [[nodiscard]] io::named_object object_of(const std::string& name) const {
    const auto told = listed_.find(name);
    if (told != listed_.end()) return told->second;
    const mutex_lock lock(whole_mutex_);
    const bool is_below =
        !whole_.contains(name) && name.size() > name_.size() && name.starts_with(name_) && name[name_.size()] == '/';
    return {.address = is_below ? address_below(folder_, std::string_view(name).substr(name_.size())) : name};
  }
  // Those of one bucket, of which nothing was told.
  void ask_for_facts(std::span<io::named_object> objects) const {
    const bool are_unknown = std::all_of(objects.begin(), objects.end(), [](const io::named_object& each) {
      return io::is_s3(each.address) && each.etag.empty();
    });
    if (are_unknown) io::ask_for_facts(objects, options_);
  }

  const std::vector<std::string> names_;
  const std::string folder_;
  const std::string name_;
  const remote_options options_;
  hash_map<std::string, io::named_object> listed_;  // by what it is called
  mutable mutex whole_mutex_;
  mutable hash_set<std::string> whole_ ABSL_GUARDED_BY(whole_mutex_);
  mutable mutex mutex_;
  mutable hash_map<std::string, known> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<input_files> files_asked_for(const std::string& folder, const remote_options& options,
                                             std::vector<std::string> names, std::span<const io::named_object> listed) {
  return std::make_unique<asked_files>(folder, options, std::move(names), listed);
}

std::string address_below(const std::string& folder, std::string_view path) {
  const std::size_t query = io::query_of(folder);
  std::string_view base = std::string_view(folder).substr(0, query);
  while (base.ends_with('/')) base.remove_suffix(1);
  if (io::has_keys(folder)) return str_cat(base, path);  // keys are written as they are
  return str_cat(base, percent_encoded(path, "/-._~!$&'()*+,;=:@"), std::string_view(folder).substr(query));
}

std::string resolved_name(std::string_view folder, std::string_view path) {
  const std::size_t scheme = folder.find("://");
  const std::size_t first = folder.find('/', scheme == std::string_view::npos ? 0 : scheme + 3);
  const std::size_t root = std::min(first, folder.size());  // behind the server or the bucket
  std::string name(folder);
  while (name.size() > root && name.ends_with('/')) name.pop_back();
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (part == "..") {
      name.resize(name.size() > root ? name.rfind('/') : root);
    } else if (part != ".") {
      str_append(name, "/", part);
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return name;
}

std::string name_of_folder(const std::string& folder) {
  std::string name = io::redacted(folder);
  while (name.ends_with('/')) name.pop_back();
  return name;
}

}  // namespace leat::datasets
