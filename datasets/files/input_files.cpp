#include "datasets/files/input_files.hpp"

#include "base/hash_map.hpp"
#include "base/mutex.hpp"
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/file_staleness.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/files/raw_files.hpp"
#include "io/files/file_description.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace leat::datasets {
namespace {

std::shared_ptr<const file_staleness> watch_over(std::span<const sized_file> files, const placed_files& placed,
                                                 std::shared_ptr<const io::source_description> source) {
  const bool any = std::any_of(files.begin(), files.end(), [](const sized_file& each) { return each.version != 0; });
  if (!any) return nullptr;
  std::vector<std::uint64_t> versions(placed.table->files());
  for (std::size_t i = 0; i < files.size(); ++i) versions[placed.numbers[i]] = files[i].version;
  return std::make_shared<const file_staleness>(placed.table, std::move(source), std::move(versions));
}

class disk_files final : public input_files {
 public:
  explicit disk_files(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  const std::vector<std::string>& names() const noexcept override { return paths_; }
  bool has(const std::string& name) const override { return is_file_there(name); }
  std::unique_ptr<file_bytes> open(const std::string& name) const override {
    return std::make_unique<local_file>(name);
  }
  placed_files place(std::span<const sized_file> files) const override {
    const auto table = std::make_shared<io::file_table>();
    placed_files placed;
    for (const sized_file& each : files) placed.numbers.push_back(table->add(each.name, each.size_bytes));
    table->finish();
    placed.table = table;
    placed.source = std::make_shared<io::file_description>(table);
    placed.watch = watch_over(files, placed, nullptr);
    return placed;
  }

 private:
  const std::vector<std::string> paths_;
};

/// Idle connections, for the next read of a file.
class connections {
 public:
  [[nodiscard]] std::unique_ptr<blocking_sources> take() {
    const mutex_lock lock(mutex_);
    if (idle_.empty()) return std::make_unique<blocking_sources>();
    std::unique_ptr<blocking_sources> taken = std::move(idle_.back());
    idle_.pop_back();
    return taken;
  }
  void give_back(std::unique_ptr<blocking_sources> used) {
    const mutex_lock lock(mutex_);
    idle_.push_back(std::move(used));
  }

 private:
  mutex mutex_;
  std::vector<std::unique_ptr<blocking_sources>> idle_ ABSL_GUARDED_BY(mutex_);
};

class source_file final : public file_bytes {
 public:
  source_file(std::string name, const io::source_description& from, std::uint32_t number, connections& all)
      : file_bytes(std::move(name)), number_(number), all_(all), own_(all.take()), source_(own_->of(from)) {
    const blocking_source::file_look now = source_.look_at(number);
    set_size(now.size_bytes);
    version_ = now.version;
  }
  // Where its file could not be opened, the connection goes with it.
  ~source_file() override { all_.give_back(std::move(own_)); }

  std::uint64_t version() const override { return version_; }
  using file_bytes::read;
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override {
    const std::uint64_t left = size() - std::min(size(), offset);
    const blocking_source::request all{number_, offset, into.first(std::min<std::uint64_t>(into.size(), left))};
    source_.read({&all, 1});
    return all.into.size();
  }
  void read_all(std::span<piece> pieces) const override {
    std::vector<blocking_source::request> all;
    for (piece& each : pieces) {
      const std::uint64_t left = size() - std::min(size(), each.offset);
      each.into = each.into.first(std::min<std::uint64_t>(each.into.size(), left));
      all.push_back({number_, each.offset, each.into});
    }
    source_.read(all);
  }

 private:
  const std::uint32_t number_;
  connections& all_;
  std::unique_ptr<blocking_sources> own_;
  blocking_source& source_;
  std::uint64_t version_ = 0;
};

class source_files final : public input_files {
 public:
  source_files(std::shared_ptr<const io::source_description> source, std::vector<std::string> names)
      : source_(std::move(source)), names_(std::move(names)) {
    const bool all = names_.empty();
    for (std::uint32_t number = 0; number < source_->files(); ++number) {
      std::string name = source_->file_name(number);
      if (all) names_.push_back(name);
      numbers_.try_emplace(std::move(name), number);
    }
  }

  const std::vector<std::string>& names() const noexcept override { return names_; }
  bool has(const std::string& name) const override { return numbers_.contains(name); }
  std::optional<sized_file> find(const std::string& name) const override {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) return std::nullopt;
    {
      const mutex_lock lock(mutex_);
      const auto look = looks_.find(found->second);
      if (look != looks_.end()) return sized_file{name, look->second.size_bytes, look->second.version};
    }
    return input_files::find(name);
  }
  // Those that cannot be opened are left to find(), which says why.
  void expect(std::span<const std::string> names) const override {
    std::vector<std::uint32_t> numbers;
    for (const std::string& each : names) {
      const auto found = numbers_.find(each);
      if (found != numbers_.end()) numbers.push_back(found->second);
    }
    blocking_sources connected;
    const auto looks = connected.of(*source_).try_to_look(numbers);
    const mutex_lock lock(mutex_);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (const auto* const look = std::get_if<blocking_source::file_look>(&looks[i])) looks_[numbers[i]] = *look;
    }
  }
  std::unique_ptr<file_bytes> open(const std::string& name) const override {
    return std::make_unique<source_file>(name, *source_, number_of(name), connections_);
  }
  // The table has all files of the source, so that their numbers are the same.
  placed_files place(std::span<const sized_file> files) const override {
    placed_files placed;
    placed.source = source_;
    std::vector<std::uint64_t> sizes(source_->files(), io::file_table::unknown_size);
    for (const sized_file& each : files) {
      placed.numbers.push_back(number_of(each.name));
      sizes[placed.numbers.back()] = each.size_bytes;
    }
    const auto table = std::make_shared<io::file_table>();
    for (std::uint32_t number = 0; number < sizes.size(); ++number) {
      table->add(source_->file_name(number), sizes[number]);
    }
    table->finish();
    placed.table = table;
    placed.watch = watch_over(files, placed, source_);
    return placed;
  }

 private:
  [[nodiscard]] std::uint32_t number_of(const std::string& name) const {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    throw error(errc::not_found, str_cat(name, ": the source has no file of this name; check the name"));
  }

  const std::shared_ptr<const io::source_description> source_;
  std::vector<std::string> names_;
  hash_map<std::string, std::uint32_t> numbers_;
  mutable connections connections_;
  mutable mutex mutex_;
  mutable hash_map<std::uint32_t, blocking_source::file_look> looks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::optional<sized_file> input_files::find(const std::string& name) const {
  if (!has(name)) return std::nullopt;
  const std::unique_ptr<file_bytes> file = open(name);
  return sized_file{name, file->size(), file->version()};
}

std::unique_ptr<input_files> files_on_disk(std::vector<std::string> paths) {
  return std::make_unique<disk_files>(std::move(paths));
}

std::unique_ptr<input_files> files_on_disk_of(std::span<const std::string> patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    for (std::string& path : expand_paths(pattern)) paths.push_back(std::move(path));
  }
  return files_on_disk(std::move(paths));
}

std::unique_ptr<input_files> files_of_source(std::shared_ptr<const io::source_description> source,
                                             std::vector<std::string> names) {
  return std::make_unique<source_files>(std::move(source), std::move(names));
}

}  // namespace leat::datasets
