#include "datasets/write/shard_plan.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/formats/tar/tar_header.hpp"
#include "datasets/formats/tar/webdataset.hpp"
#include "datasets/write/tar_writer.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace leat::datasets {
namespace {

constexpr std::uint64_t bytes_per_shard_default = std::uint64_t{1} << 30;

std::optional<number_pattern> parse_number_pattern(std::string_view out) {
  std::optional<number_pattern> found;
  std::string text;
  const auto refuse = [&](std::string_view why) {
    throw error(errc::usage, str_cat("'", out, "': ", why,
                                     "; write one %d or %06d for the shard's number, %% for a "
                                     "percent sign"));
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != '%') {
      text += out[i];
      continue;
    }
    if (i + 1 < out.size() && out[i + 1] == '%') {
      text += '%';
      ++i;
      continue;
    }
    std::size_t width = 0;
    const auto [end, failure] = std::from_chars(out.data() + i + 1, out.data() + out.size(), width);
    const auto at = static_cast<std::size_t>(end - out.data());
    if (at >= out.size() || out[at] != 'd' || (failure != std::errc{} && end != out.data() + i + 1) || width > 18) {
      refuse("a % that is no place for a number");
    }
    if (found) refuse("two places for the number");
    found = number_pattern{std::exchange(text, {}), {}, width};
    i = at;
  }
  if (found) found->after = text;
  return found;
}

// Tools recognise a format by the file's name: a wrong name is noticed late.
void check_ending(std::string_view out) {
  struct other_format {
    std::string_view ending;
    bool compressed;
  };
  static constexpr other_format others[] = {
      {".gz", true},   {".tgz", true},    {".zst", true},  {".tzst", true},    {".xz", true},  {".txz", true},
      {".bz2", true},  {".tbz2", true},   {".lz4", true},  {".zip", true},     {".7z", true},  {".rar", true},
      {".npy", false}, {".npz", false},   {".bin", false}, {".json", false},   {".h5", false}, {".hdf5", false},
      {".mdb", false}, {".arrow", false}, {".idx", false}, {".parquet", false}};
  const std::string lower = lower_case(out);
  for (const other_format& other : others) {
    if (!lower.ends_with(other.ending)) continue;
    const std::string_view stem = out.substr(0, out.size() - other.ending.size());
    const std::string tar = str_cat(stem, stem.ends_with(".tar") ? "" : ".tar");
    throw error(errc::usage,
                other.compressed
                    ? str_cat("'", out,
                              "': shards are plain tars, since a compressed one is expanded block by block "
                              "each time it is read; name it '",
                              tar, "' (pictures are compressed already)")
                    : str_cat("'", out, "': shards are tar archives, and *", other.ending,
                              " is taken for something else; name it '", tar, "'"));
  }
}

}  // namespace

std::string number_pattern::name(std::uint64_t number) const {
  std::string digits = std::to_string(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return before + digits + after;
}

std::optional<std::string> number_pattern::existing(std::uint64_t first) const {
  const std::size_t base = before.rfind('/') + 1;  // npos + 1 is 0.
  const std::string directory = base == 0 ? "." : before.substr(0, base);
  const std::string_view name_before = std::string_view(before).substr(base);
  std::optional<std::uint64_t> lowest;
  std::error_code failure;  // If a directory cannot be read, writing into it reports that.
  for (std::filesystem::directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(name_before) || name.size() < name_before.size() + after.size()) continue;
    std::uint64_t number = 0;
    const char* const digits = name.data() + name_before.size();
    const auto [digits_end, wrong] = std::from_chars(digits, name.data() + name.size(), number);
    // 7 is no number of a pattern that writes 000007.
    if (wrong != std::errc{} || this->name(number).substr(base) != name) continue;
    if (number >= first && (!lowest || number < *lowest)) lowest = number;
  }
  return lowest ? std::optional(this->name(*lowest)) : std::nullopt;
}

shard_plan::shard_plan(std::string_view out, std::uint64_t samples, const pack_options& options) : samples_(samples) {
  if (out.empty()) throw error(errc::usage, "no output was named; for example shards/train-%06d.tar");
  refuse_address(out);
  if (has_braces(out)) {
    names_ = expand_braces(out);
  } else if ((pattern_ = parse_number_pattern(out))) {
    samples_max_ = options.samples_per_shard;
    bytes_max_ = options.bytes_per_shard;
    if (samples_max_ == 0 && bytes_max_ == 0) bytes_max_ = bytes_per_shard_default;
  } else {
    names_.emplace_back(out);
  }
  if (!pattern_ && (options.samples_per_shard != 0 || options.bytes_per_shard != 0)) {
    throw error(errc::usage, str_cat("'", out,
                                     "' names its shards one by one, and a size per shard was given too; "
                                     "name them p-%06d.tar, or leave the size out"));
  }
  if (bytes_max_ != 0 && options.world.size > 1) {
    throw error(errc::usage,
                str_cat("'", out, "' is packed by ", options.world.size,
                        " ranks, and which samples a shard of so many bytes holds is known only when those before "
                        "it are written; give ",
                        spelled(option_id::samples_per_shard), ", or name the shards, as p-{000000..000063}.tar"),
                option_id::samples_per_shard);
  }
  check_ending(out);
  check_distinct(out);
  own_ = own_of(options.world);
  if (options.overwrite && options.keep_finished) {
    throw error(errc::usage,
                str_cat("'", out, "': shards that are there are to be replaced and to stay; leave out one of the two"));
  }
  if (!options.overwrite && !options.keep_finished) check_absent(own_.begin);
}

std::uint64_t shard_plan::shards() const noexcept {
  if (counted()) return names_.size();
  return std::max<std::uint64_t>(1, samples_ / samples_max_ + (samples_ % samples_max_ != 0 ? 1 : 0));
}

std::uint64_t shard_plan::first_sample(std::uint64_t shard) const noexcept {
  if (shard == std::numeric_limits<std::uint64_t>::max()) return samples_;
  if (shard == 0) return 0;
  if (!counted()) return shard > samples_ / samples_max_ ? samples_ : shard * samples_max_;
  return shard * (samples_ / shards()) + std::min(shard, samples_ % shards());
}

bool shard_plan::full(std::uint64_t shard, std::uint64_t samples, std::uint64_t bytes,
                      std::uint64_t bytes_more) const noexcept {
  if (counted()) return samples >= share(shard) && shard + 1 < shards();
  if (samples == 0) return false;
  constexpr std::uint64_t end_bytes = 2 * tar_block_bytes;
  return (samples_max_ != 0 && samples >= samples_max_) ||
         (bytes_max_ != 0 && bytes + bytes_more + end_bytes > bytes_max_);
}

// As even as can be: the first ones get one more.
std::uint64_t shard_plan::share(std::uint64_t shard) const noexcept {
  return samples_ / shards() + (shard < samples_ % shards() ? 1 : 0);
}

void shard_plan::check_distinct(std::string_view out) const {
  std::vector<std::string> sorted = names_;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return;
  throw error(errc::usage, str_cat("'", out, "' names a shard twice; give each a name of its own"));
}

shard_plan::range shard_plan::own_of(const leat::world& here) const noexcept {
  if (here.size <= 1) return {};
  // shards() * rank may be more than 64 bits hold.
  const auto begin = [&](std::uint64_t rank) {
    return shards() / here.size * rank + shards() % here.size * rank / here.size;
  };
  return {begin(here.rank), begin(std::uint64_t{here.rank} + 1)};
}

// Checked before hours of packing, not after. Each rank checks its own shards: those of others may be written already.
void shard_plan::check_absent(std::uint64_t first) const {
  const bool alone = own_.end == range{}.end;
  if (alone && pattern_) {
    if (const std::optional<std::string> found = pattern_->existing(first)) {
      throw error(errc::usage, shard_exists(*found));
    }
    return;
  }
  const std::uint64_t end = alone ? names_.size() : own_.end;
  for (std::uint64_t shard = first; shard < end; ++shard) {
    const std::string path = name(shard);
    struct stat status{};
    // A link too, wherever it leads: its name is taken.
    if (::lstat(path.c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)) throw error(errc::usage, shard_exists(path));
  }
}

}  // namespace leat::datasets
