#include "datasets/pack.hpp"

#include "base/text.hpp"
#include "datasets/blocking_source.hpp"
#include "datasets/member_key.hpp"
#include "datasets/model.hpp"
#include "datasets/parallel.hpp"
#include "datasets/patterns.hpp"
#include "datasets/shuffle.hpp"
#include "datasets/tar_header.hpp"
#include "datasets/tar_writer.hpp"
#include "datasets/webdataset.hpp"

#include <leat/error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace leat::datasets {
namespace {

// Read and written together; larger members go through in portions of this.
constexpr std::uint64_t window_bytes = std::uint64_t{16} << 20;
constexpr std::size_t window_samples_max = 1024;
// A sample that is rewritten is read whole, alone if it is larger than a window.
constexpr std::uint64_t rewritten_bytes_max = std::uint64_t{1} << 30;
constexpr std::uint64_t bytes_per_shard_default = std::uint64_t{1} << 30;

// ---- Which shard is next ----

// p-%06d.tar: what stands before and after the number, and how wide it is.
struct number_pattern {
  std::string before;
  std::string after;
  std::size_t width = 0;

  [[nodiscard]] std::string name(std::uint64_t number) const {
    std::string digits = std::to_string(number);
    if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
    return before + digits + after;
  }

  /// The lowest of the shards that are there, or none. Numbers beyond those that a run needs count too: under a glob they
  /// would silently join it.
  [[nodiscard]] std::optional<std::string> existing() const {
    const std::size_t base = before.rfind('/') + 1;  // npos + 1 is 0.
    const std::string directory = base == 0 ? "." : before.substr(0, base);
    const std::string_view name_before = std::string_view(before).substr(base);
    std::optional<std::uint64_t> lowest;
    std::error_code failure;  // A directory that cannot be read: whoever writes into it says so.
    for (std::filesystem::directory_iterator entry(directory, failure), end; !failure && entry != end;
         entry.increment(failure)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with(name_before) || name.size() < name_before.size() + after.size()) continue;
      std::uint64_t number = 0;
      const char* const digits = name.data() + name_before.size();
      const auto [digits_end, wrong] = std::from_chars(digits, name.data() + name.size(), number);
      // 7 is no number of a pattern that writes 000007.
      if (wrong != std::errc{} || this->name(number).substr(base) != name) continue;
      if (!lowest || number < *lowest) lowest = number;
    }
    return lowest ? std::optional(this->name(*lowest)) : std::nullopt;
  }
};

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

// Names of the shards, and when one is full.
class shard_plan {
 public:
  shard_plan(std::string_view out, std::uint64_t samples, const pack_options& options) : samples_(samples) {
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
      throw error(
          errc::usage,
          str_cat(
              "'", out, "' is packed by ", options.world.size,
              " ranks, and which samples a shard of so many bytes holds is known only when those before "
              "it are written; give pack_options::samples_per_shard, or name the shards, as p-{000000..000063}.tar"));
    }
    check_ending(out);
    check_distinct(out);
    own_ = own_of(options.world);
    if (!options.overwrite) check_absent(options.world);
  }

  [[nodiscard]] bool counted() const noexcept { return !pattern_.has_value(); }
  /// Shards, where they are known beforehand.
  [[nodiscard]] std::uint64_t shards() const noexcept {
    if (counted()) return names_.size();
    return std::max<std::uint64_t>(1, samples_ / samples_max_ + (samples_ % samples_max_ != 0 ? 1 : 0));
  }
  /// Those that this process writes; without an end where only the bytes will tell.
  struct range {
    std::uint64_t begin = 0;
    std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
  };
  [[nodiscard]] const range& own() const noexcept { return own_; }
  /// The first of a shard's samples, of all that are packed.
  [[nodiscard]] std::uint64_t first_sample(std::uint64_t shard) const noexcept {
    if (shard == std::numeric_limits<std::uint64_t>::max()) return samples_;
    if (shard == 0) return 0;
    if (!counted()) return shard > samples_ / samples_max_ ? samples_ : shard * samples_max_;
    return shard * (samples_ / shards()) + std::min(shard, samples_ % shards());
  }
  [[nodiscard]] std::string name(std::uint64_t shard) const { return pattern_ ? pattern_->name(shard) : names_[shard]; }

  /// Whether a shard that holds these samples and bytes is full before a sample of so many bytes more.
  [[nodiscard]] bool full(std::uint64_t shard, std::uint64_t samples, std::uint64_t bytes,
                          std::uint64_t bytes_more) const noexcept {
    if (counted()) return samples >= share(shard) && shard + 1 < shards();
    if (samples == 0) return false;
    constexpr std::uint64_t end_bytes = 2 * tar_block_bytes;
    return (samples_max_ != 0 && samples >= samples_max_) ||
           (bytes_max_ != 0 && bytes + bytes_more + end_bytes > bytes_max_);
  }

 private:
  // As even as can be: the first ones get one more.
  [[nodiscard]] std::uint64_t share(std::uint64_t shard) const noexcept {
    return samples_ / shards() + (shard < samples_ % shards() ? 1 : 0);
  }

  // Tools tell a file's format by its name: a shard under a wrong name is found out late.
  static void check_ending(std::string_view out) {
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
      throw error(errc::usage, other.compressed
                                   ? str_cat("'", out,
                                             "': shards are plain tars, since samples are read in any order, which a "
                                             "compressed file does not allow; name it '",
                                             tar, "' (pictures are compressed already)")
                                   : str_cat("'", out, "': shards are tar archives, and *", other.ending,
                                             " is taken for something else; name it '", tar, "'"));
    }
  }

  void check_distinct(std::string_view out) const {
    std::vector<std::string> sorted = names_;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return;
    throw error(errc::usage, str_cat("'", out, "' names a shard twice; give each a name of its own"));
  }

  [[nodiscard]] range own_of(const leat::world& here) const noexcept {
    if (here.size <= 1) return {};
    // shards() * rank may be more than 64 bits hold.
    const auto begin = [&](std::uint64_t rank) {
      return shards() / here.size * rank + shards() % here.size * rank / here.size;
    };
    return {begin(here.rank), begin(std::uint64_t{here.rank} + 1)};
  }

  // Before hours of packing, not after. Of many ranks each looks at its own: those of the others may be written already.
  void check_absent(const leat::world& here) const {
    const bool alone = here.size <= 1;
    if (alone && pattern_) {
      if (const std::optional<std::string> found = pattern_->existing()) throw error(errc::usage, shard_exists(*found));
      return;
    }
    const range looked_at = alone ? range{0, names_.size()} : own_;
    for (std::uint64_t shard = looked_at.begin; shard < looked_at.end; ++shard) {
      const std::string path = name(shard);
      struct stat status{};
      // A link too, wherever it leads: its name is taken.
      if (::lstat(path.c_str(), &status) != 0) continue;
      if (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)) throw error(errc::usage, shard_exists(path));
    }
  }

  std::uint64_t samples_;
  range own_;
  std::vector<std::string> names_;
  std::optional<number_pattern> pattern_;
  std::uint64_t samples_max_ = 0;
  std::uint64_t bytes_max_ = 0;
};

// ---- What goes into it ----

// One member on its way: its bytes are here already, or in extents that are still to be read.
struct member {
  std::string name;
  std::uint64_t size_bytes = 0;
  std::vector<std::byte> content;
  std::vector<extent> extents;
};

struct sample_members {
  std::vector<member> members;
  std::uint64_t content_bytes = 0;
  std::uint64_t archive_bytes = 0;
};

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

class sample_reader {
 public:
  sample_reader(const dataset_model& model, std::stop_token stop) : model_(model), stop_(std::move(stop)) {}

  /// The members of a sample; those with extents are not read yet.
  [[nodiscard]] sample_members describe(std::uint64_t sample) {
    part_list parts;
    model_.parts(sample, parts);
    const std::vector<std::uint16_t> fields = fields_of(sample, parts);
    sample_members result;
    result.members.resize(fields.size());
    for (const part& each : parts) {
      const auto at = static_cast<std::size_t>(std::find(fields.begin(), fields.end(), each.field) - fields.begin());
      result.members[at].extents.push_back(each.where);
      result.members[at].size_bytes += each.where.stored_bytes;
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (model_.origin(fields[i]) != field_origin::extents) result.members[i] = made(sample, fields[i]);
    }
    name_members(sample, fields, result);
    add_columns(sample, result);
    if (result.members.empty()) {
      throw error(errc::corrupt, str_cat(model_.name(sample), " has neither fields nor columns"));
    }
    for (const member& each : result.members) {
      result.content_bytes += each.size_bytes;
      result.archive_bytes += tar_member_bytes(each.name, each.size_bytes);
    }
    return result;
  }

  /// The key of a sample by itself, as it is before neighbours of one key are numbered.
  [[nodiscard]] std::string key(std::uint64_t sample) {
    part_list parts;
    model_.parts(sample, parts);
    return key_of(sample, model_.members(sample, fields_of(sample, parts), sources_));
  }
  /// Numbers the next samples as if one of this key had been described.
  void pass_over(const std::string& key) { static_cast<void>(next_key(key)); }

  /// Reads what is still to be read, all of it together.
  void read(std::vector<sample_members>& samples) {
    struct wish {
      std::uint32_t source;
      blocking_source::request request;
    };
    std::vector<wish> wishes;
    for (sample_members& sample : samples) {
      for (member& each : sample.members) {
        if (each.extents.empty()) continue;
        each.content.resize(each.size_bytes);
        std::span<std::byte> rest(each.content);
        for (const extent& where : each.extents) {
          wishes.push_back({where.source, {where.file, where.offset, rest.first(where.stored_bytes)}});
          rest = rest.subspan(where.stored_bytes);
        }
      }
    }
    std::vector<blocking_source::request> requests;
    for (std::uint32_t number = 0; number < model_.sources().size(); ++number) {
      requests.clear();
      for (const wish& each : wishes) {
        if (each.source == number) requests.push_back(each.request);
      }
      if (!requests.empty()) source(number).read(requests, stop_);
    }
  }

  /// A part of a member too large to be read whole.
  void read(const extent& where, std::uint64_t offset, std::span<std::byte> into) {
    const blocking_source::request request{where.file, where.offset + offset, into};
    source(where.source).read({&request, 1}, stop_);
  }

 private:
  blocking_source& source(std::uint32_t number) { return sources_.of(*model_.sources()[number]); }

  member made(std::uint64_t sample, std::uint16_t field) const {
    member result;
    if (model_.origin(field) == field_origin::awaited) {
      boost::asio::io_context here;
      auto fetched = boost::asio::co_spawn(here, model_.fetch(sample, field), boost::asio::use_future);
      here.run();
      result.content = fetched.get();
    } else {
      std::vector<std::byte> scratch;
      const std::span<const std::byte> bytes = model_.produce(sample, field, scratch);
      result.content.assign(bytes.begin(), bytes.end());
    }
    result.size_bytes = result.content.size();
    return result;
  }

  // Those that are read, in their order, and then those that are made.
  [[nodiscard]] std::vector<std::uint16_t> fields_of(std::uint64_t sample, const part_list& parts) const {
    std::vector<std::uint16_t> fields;
    for (const part& each : parts) {
      if (std::find(fields.begin(), fields.end(), each.field) == fields.end()) fields.push_back(each.field);
    }
    for (std::uint16_t field = 0; field < model_.fields().size(); ++field) {
      if (model_.origin(field) != field_origin::extents && model_.makes(sample, field)) fields.push_back(field);
    }
    return fields;
  }

  // One key for all: the members of a shard's sample have it already.
  [[nodiscard]] std::string key_of(std::uint64_t sample, const std::vector<dataset_model::member_path>& paths) const {
    if (paths.empty()) return encode_key(model_.name(sample));
    return paths.front().is_key ? paths.front().stem : encode_key(paths.front().stem);
  }

  void name_members(std::uint64_t sample, const std::vector<std::uint16_t>& fields, sample_members& result) {
    const std::vector<dataset_model::member_path> paths = model_.members(sample, fields, sources_);
    key_ = next_key(key_of(sample, paths));
    for (std::size_t i = 0; i < paths.size(); ++i) {
      result.members[i].name = str_cat(key_, ".", paths[i].extension);
    }
  }

  // Neighbours of one key would become one sample.
  std::string next_key(std::string key) {
    repeated_ = key == last_key_ ? repeated_ + 1 : 0;
    last_key_ = key;
    return number_key(key, repeated_);
  }

  void add_columns(std::uint64_t sample, sample_members& result) const {
    for (std::size_t number = 0; number < model_.columns().size(); ++number) {
      const std::optional<std::int64_t> value = model_.column(sample, number);
      if (!value) continue;
      member added;
      added.name = str_cat(key_, ".", model_.columns()[number]);
      const bool is_field_too = std::any_of(result.members.begin(), result.members.end(),
                                            [&](const member& each) { return each.name == added.name; });
      if (is_field_too) continue;
      added.content = to_bytes(std::to_string(*value));
      added.size_bytes = added.content.size();
      result.members.push_back(std::move(added));
    }
  }

  const dataset_model& model_;
  std::stop_token stop_;
  blocking_sources sources_{opening_loop::traffic::many};
  std::string key_;
  std::string last_key_;
  std::uint64_t repeated_ = 0;
};

// ---- Packing ----

class packing {
 public:
  packing(const dataset& from, std::string_view out, const pack_options& options)
      : from_(from),
        options_(options),
        plan_(out, samples_to_pack(from, options), options),
        reader_(*from.model(), options.stop) {}

  pack_result run() {
    check_fields();
    if (options_.shuffle) order_ = shuffled(from_.size(), options_.seed, "pack");
    const auto [begin, end] = plan_.own();
    own_samples_ = plan_.first_sample(end) - plan_.first_sample(begin);
    if (begin < end) write(plan_.first_sample(begin), plan_.first_sample(end));
    note_leftovers();
    return std::move(result_);
  }

 private:
  // A member of a shard is bytes, without a dtype and shape.
  void check_fields() const {
    for (const field_info& field : from_.model()->fields()) {
      if (field.kind == field_kind::tensor) {
        throw error(errc::usage, str_cat("the field '", field.name, "' has rows of ", name(field.type),
                                         ", and a member of a shard has no dtype and shape; .npy files and "
                                         "fixed-size records keep them"));
      }
      if (field.kind == field_kind::tokens) {
        throw error(errc::usage,
                    str_cat("the field '", field.name, "' is tokens; their files need no packing: copy them"));
      }
    }
  }

  static std::uint64_t samples_to_pack(const dataset& from, const pack_options& options) {
    return from.size() - (options.skip_damaged ? from.model()->defects() : 0);
  }

  [[nodiscard]] bool is_last_rank() const { return options_.world.rank + 1 == options_.world.size; }
  [[nodiscard]] std::uint64_t sample_at(std::uint64_t place) const { return options_.shuffle ? order_[place] : place; }

  // The samples first to last of all that are packed, and the shards that are left to be without any.
  void write(std::uint64_t first, std::uint64_t last) {
    begin_shard();
    std::uint64_t number = 0;  // of those that are packed
    for (std::uint64_t place = 0; place < from_.size(); ++place) {
      if (options_.stop.stop_requested()) {
        throw error(errc::cancelled, str_cat("stopped after ", result_.samples, " of ", own_samples_,
                                             " samples; shards that are finished stay"));
      }
      if (is_left_out(sample_at(place))) {
        // Each is counted by one rank: that of the sample behind it, or the last.
        if (number >= first && (number < last || is_last_rank())) ++result_.skipped;
        continue;
      }
      if (number == last) break;
      if (number == first) number_keys_before(place);
      if (number++ >= first) add(reader_.describe(sample_at(place)));
    }
    flush();
    end_shard();
    // A brace list is exactly so many shards, though the samples were fewer.
    while (plan_.counted() && next_shard() < std::min(plan_.own().end, plan_.shards())) {
      begin_shard();
      end_shard();
    }
  }

  // Neighbours of one key are numbered, also where the first of them are in another rank's shard.
  void number_keys_before(std::uint64_t place) {
    const std::string own = place > 0 ? reader_.key(sample_at(place)) : std::string();
    std::uint64_t neighbours = 0;
    while (place > 0) {
      const std::uint64_t sample = sample_at(--place);
      if (from_.model()->defects() != 0 && from_.model()->defect_of(sample)) continue;
      if (reader_.key(sample) != own) break;
      ++neighbours;
    }
    while (neighbours-- > 0) reader_.pass_over(own);
  }

  bool is_left_out(std::uint64_t sample) const {
    if (from_.model()->defects() == 0) return false;
    const std::optional<defect> found = from_.model()->defect_of(sample);
    if (!found) return false;
    if (!options_.skip_damaged) {
      throw error(errc::corrupt, str_cat(from_.name(sample), ": ", found->reason,
                                         "; mend the source, or leave damaged samples out "
                                         "(pack_options::skip_damaged)"));
    }
    return true;
  }

  void add(sample_members sample) {
    const bool large = sample.content_bytes > (options_.rewrite ? rewritten_bytes_max : window_bytes);
    if (large || pending_bytes_ + sample.content_bytes > window_bytes || pending_.size() >= window_samples_max) flush();
    if (large) {
      write_large(sample);
      return;
    }
    pending_bytes_ += sample.content_bytes;
    pending_.push_back(std::move(sample));
  }

  void flush() {
    reader_.read(pending_);
    if (options_.rewrite) rewrite(pending_);
    for (const sample_members& sample : pending_) {
      make_room(sample);
      for (const member& each : sample.members) {
        writer_->begin(each.name, each.size_bytes);
        if (each.size_bytes > 0) writer_->write(each.content);
      }
      count(sample);
    }
    pending_.clear();
    pending_bytes_ = 0;
    tell();
  }

  void rewrite(std::vector<sample_members>& samples) const {
    for_each_parallel(samples.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
      if (options_.stop.stop_requested()) return;
      for (member& each : samples[i].members) {
        std::optional<std::vector<std::byte>> other = options_.rewrite(each.name, each.content);
        if (!other) continue;
        samples[i].archive_bytes -= tar_member_bytes(each.name, each.size_bytes);
        each.content = std::move(*other);
        each.size_bytes = each.content.size();
        samples[i].archive_bytes += tar_member_bytes(each.name, each.size_bytes);
      }
    });
  }

  void write_large(const sample_members& sample) {
    make_room(sample);
    std::vector<std::byte> portion;
    for (const member& each : sample.members) {
      writer_->begin(each.name, each.size_bytes);
      if (each.extents.empty() && each.size_bytes > 0) writer_->write(each.content);
      for (const extent& where : each.extents) {
        for (std::uint64_t offset = 0; offset < where.stored_bytes; offset += portion.size()) {
          portion.resize(std::min(window_bytes, where.stored_bytes - offset));
          reader_.read(where, offset, portion);
          writer_->write(portion);
        }
      }
    }
    count(sample);
    tell();
  }

  void make_room(const sample_members& sample) {
    while (plan_.full(next_shard() - 1, result_.shards.back().samples, writer_->bytes(), sample.archive_bytes)) {
      end_shard();
      begin_shard();
    }
  }

  void count(const sample_members& sample) {
    ++result_.shards.back().samples;
    ++result_.samples;
    bytes_ += sample.content_bytes;
  }

  void tell() const {
    if (options_.progress) options_.progress({result_.samples, own_samples_, bytes_});
  }

  [[nodiscard]] std::uint64_t next_shard() const { return plan_.own().begin + result_.shards.size(); }

  void begin_shard() {
    writer_.emplace(plan_.name(next_shard()),
                    tar_writer_options{.overwrite = options_.overwrite, .stop = options_.stop});
    result_.shards.push_back({writer_->path(), 0, 0});
  }

  void end_shard() {
    writer_->finish();
    result_.shards.back().bytes = writer_->bytes();
    writer_.reset();
  }

  // An earlier run with more shards would silently join this one under a glob.
  void note_leftovers() {
    if (plan_.counted() || options_.world.rank + 1 != options_.world.size)
      return;  // The last rank knows the last shard.
    const std::string next = plan_.name(next_shard());
    struct stat status{};
    if (::stat(next.c_str(), &status) != 0) return;
    result_.notes.push_back(str_cat(next, " is there from an earlier run, and does not belong to these ", next_shard(),
                                    " shards: remove it and what follows it"));
  }

  const dataset& from_;
  const pack_options& options_;
  shard_plan plan_;
  sample_reader reader_;
  pack_result result_;
  std::optional<tar_writer> writer_;
  std::vector<sample_members> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::uint64_t> order_;  // where it is shuffled
  std::uint64_t own_samples_ = 0;
};

}  // namespace

pack_result pack(const dataset& from, std::string_view out, const pack_options& options) {
  return packing(from, out, options).run();
}

}  // namespace leat::datasets
