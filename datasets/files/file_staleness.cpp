#include "datasets/files/file_staleness.hpp"

#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "io/files/file_status.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <system_error>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::ptrdiff_t files_with_each_batch_max = 8;

std::string changed_file(const std::string& path, std::uint64_t bytes_before, std::uint64_t bytes) {
  return str_cat(path, " has changed since the dataset was opened",
                 bytes == bytes_before ? std::string(" (it was written or replaced)")
                                       : str_cat(": it had ", bytes_before, " bytes, and has ", bytes),
                 "; open it again when nobody writes to it");
}

}  // namespace

file_staleness::file_staleness(std::shared_ptr<const io::file_table> files,
                               std::shared_ptr<const io::source_description> source,
                               std::vector<std::uint64_t> versions)
    : files_(std::move(files)), source_(std::move(source)), versions_(std::move(versions)) {
  const auto known =
      static_cast<std::ptrdiff_t>(versions_.size()) - std::count(versions_.begin(), versions_.end(), unknown);
  rate_ = known == 0                                                 ? staleness_check::none
          : source_ == nullptr && known <= files_with_each_batch_max ? staleness_check::batch
                                                                     : staleness_check::epoch;
}

std::optional<std::string> file_staleness::changed(staleness_check) const {
  std::optional<blocking_sources> sources;
  if (source_ != nullptr) sources.emplace();
  std::string path;
  for (std::uint32_t number = 0; number < versions_.size(); ++number) {
    if (versions_[number] == unknown) continue;
    files_->path(number, path);
    if (source_ != nullptr) {
      try {
        const blocking_source::file_look now = sources->of(*source_).look_at(number);
        if (now.version != versions_[number]) return changed_file(path, files_->size_bytes(number), now.size_bytes);
      } catch (const error& failed) {
        return str_cat("a file of the dataset cannot be opened any more: ", failed.what());
      }
      continue;
    }
    io::file_status status;
    if (const int failure = io::look_at(path.c_str(), status); failure != 0) {
      return str_cat(path, ": ", std::generic_category().message(failure),
                     ", and it was there when the dataset was opened; open it again");
    }
    if (status.version() != versions_[number]) {
      return changed_file(path, files_->size_bytes(number), status.size_bytes);
    }
  }
  return std::nullopt;
}

std::uint64_t version_on_disk(const std::string& path) noexcept {
  io::file_status status;
  return io::look_at(path.c_str(), status) == 0 ? status.version() : file_staleness::unknown;
}

}  // namespace leat::datasets
