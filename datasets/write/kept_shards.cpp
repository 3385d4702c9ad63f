#include "datasets/write/kept_shards.hpp"

#include "base/text.hpp"
#include "datasets/formats/tar/webdataset.hpp"
#include "datasets/model/model.hpp"

#include <leat/error.hpp>
#include <leat/open_tar.hpp>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace leat::datasets {
namespace {

// A first sample that is larger is not read to compare it.
constexpr std::uint64_t compared_bytes_max = std::uint64_t{16} << 20;

std::string_view key_of(std::string_view member) {
  const std::optional<member_name> name = split_member_name(member);
  return name ? name->key : member;
}

std::vector<const member*> by_name(const sample_members& sample) {
  std::vector<const member*> all;
  for (const member& each : sample.members) all.push_back(&each);
  std::sort(all.begin(), all.end(), [](const member* a, const member* b) { return a->name < b->name; });
  return all;
}

// The first member of `next` that `kept` does not have as it is; null where there is none.
template <class Same>
const member* first_other(const sample_members& kept, const sample_members& next, const Same& same) {
  const std::vector<const member*> there = by_name(kept);
  const std::vector<const member*> wanted = by_name(next);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i == there.size() || !same(*there[i], *wanted[i])) return wanted[i];
  }
  return there.size() > wanted.size() ? there[wanted.size()] : nullptr;
}

}  // namespace

kept_shards::opened_shard::opened_shard(const std::string& path, const pack_options& options)
    : samples(open_tar(path)), reader(*samples.model(), options.stop) {}

kept_shards::kept_shards(const shard_plan& plan, const pack_options& options) : plan_(plan), options_(options) {
  const shard_plan::range own = plan.own();
  const std::uint64_t end = plan.counted() ? std::min(own.end, plan.shards()) : own.end;
  std::error_code unknown;  // What cannot be looked at is said when it is to be written.
  while (own.begin + there_ < end && std::filesystem::is_regular_file(plan.name(own.begin + there_), unknown)) ++there_;
  plan.check_absent(own.begin + there_);
}

bool kept_shards::hold(const sample_members& next, const std::function<sample_members()>& written) {
  while (!open_ || open_->next == open_->samples.size()) {
    if (!open_next()) return false;
  }
  const bool is_first = open_->next == 0;
  if (const std::optional<defect> found = open_->samples.model()->defect_of(open_->next)) refuse(found->reason);
  std::vector<sample_members> kept{open_->reader.describe(open_->next++)};
  const bool rewritten = options_.rewrite != nullptr;
  const member* other = first_other(kept.front(), next, [&](const member& a, const member& b) {
    return rewritten ? key_of(a.name) == key_of(b.name) : a.name == b.name && a.size_bytes == b.size_bytes;
  });
  if (other == nullptr && is_first && next.content_bytes <= compared_bytes_max &&
      kept.front().content_bytes <= compared_bytes_max) {
    open_->reader.read(kept);
    const sample_members whole = written();
    other = first_other(kept.front(), whole,
                        [](const member& a, const member& b) { return a.name == b.name && a.content == b.content; });
    if (other != nullptr) refuse(str_cat("its member '", other->name, "' is not what would be written"));
  }
  if (other != nullptr) refuse(str_cat("the member '", other->name, "' is not in its place there"));
  return true;
}

void kept_shards::finish() {
  do {
    if (open_ && open_->next < open_->samples.size()) {
      refuse(str_cat("it holds ", open_->samples.size() - open_->next, " more than the source's last sample"));
    }
  } while (open_next());
}

bool kept_shards::open_next() {
  if (open_) close();
  if (shards_.size() == there_) return false;
  const std::uint64_t shard = plan_.own().begin + shards_.size();
  open_ = std::make_unique<opened_shard>(plan_.name(shard), options_);
  const std::optional<std::uint64_t> samples = plan_.samples_of(shard);
  if (samples && *samples != open_->samples.size()) {
    refuse(str_cat("it holds ", open_->samples.size(), " samples where ", *samples, " belong"));
  }
  return true;
}

void kept_shards::close() {
  const std::string path = plan_.name(plan_.own().begin + shards_.size());
  shards_.push_back({path, open_->samples.size(), std::filesystem::file_size(path)});
  open_.reset();
}

void kept_shards::refuse(const std::string& why) const {
  throw error(errc::usage, str_cat(plan_.name(plan_.own().begin + shards_.size()),
                                   " is there from another source or with other options: ", why,
                                   "; remove it and those behind it, or pack to other names"));
}

}  // namespace leat::datasets
