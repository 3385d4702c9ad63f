#include "datasets/write/pack.hpp"

#include "base/cores_quota.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/formats/tar/tar_header.hpp"
#include "datasets/model/model.hpp"
#include "datasets/views/shuffle.hpp"
#include "datasets/write/kept_shards.hpp"
#include "datasets/write/sample_members.hpp"
#include "datasets/write/shard_plan.hpp"
#include "datasets/write/tar_writer.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

namespace leat::datasets {
namespace {

// Read and written together; larger members go through in portions of this.
constexpr std::uint64_t window_bytes = std::uint64_t{16} << 20;
constexpr std::size_t window_samples_max = 1024;
// A sample that is rewritten is read whole, alone if it is larger than a window.
constexpr std::uint64_t rewritten_bytes_max = std::uint64_t{1} << 30;

class tar_packing {
 public:
  tar_packing(const dataset& from, std::string_view out, const pack_options& options)
      : from_(from),
        options_(options),
        plan_(out, samples_to_pack(from, options), options),
        reader_(*from.model(), options.stop) {}

  pack_result run() {
    check_fields();
    if (options_.shuffle) order_ = shuffled(from_.size(), options_.seed, "pack");
    const auto [begin, end] = plan_.own();
    own_samples_ = plan_.first_sample(end) - plan_.first_sample(begin);
    if (begin < end) {
      reading_unchanged(*from_.model(), [&] { write(plan_.first_sample(begin), plan_.first_sample(end)); });
    }
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

  // Packs samples [first, last) of all that are packed, then writes the shards that get no samples.
  void write(std::uint64_t first, std::uint64_t last) {
    if (options_.keep_finished) kept_.emplace(plan_, options_);
    std::uint64_t number = 0;  // of those that are packed
    for (std::uint64_t place = 0; place < from_.size(); ++place) {
      if (options_.stop.stop_requested()) {
        throw error(errc::cancelled, str_cat("stopped after ", result_.samples, " of ", own_samples_,
                                             " samples; shards that are finished stay"));
      }
      if (is_left_out(sample_at(place))) {
        // Each is counted by one rank: that of the next packed sample, or the last rank.
        if (number >= first && (number < last || is_last_rank())) ++result_.skipped;
        continue;
      }
      if (number == last) break;
      if (number == first) number_keys_before(place);
      if (number++ < first) continue;
      sample_members next = reader_.describe(sample_at(place));
      if (!is_kept(next)) add(std::move(next));
    }
    if (kept_) kept_->finish();
    end_keeping();
    flush();
    if (result_.shards.empty() && !plan_.counted()) begin_shard();
    if (writer_) end_shard();
    // A brace list gets all its shards, even if there are fewer samples.
    while (plan_.counted() && next_shard() < std::min(plan_.own().end, plan_.shards())) {
      begin_shard();
      end_shard();
    }
  }

  // Whether it lies in a shard of an earlier run; the first that does not ends the search.
  bool is_kept(const sample_members& next) {
    if (!kept_) return false;
    const std::size_t shards = kept_->shards().size();
    const bool is_there = kept_->hold(next, [&] {
      std::vector<sample_members> whole{next};
      reader_.read(whole);
      const member_rewriter& by = options_.rewrite_to_compare ? options_.rewrite_to_compare : options_.rewrite;
      if (by) rewrite(whole, by);
      return std::move(whole.front());
    });
    if (!is_there) end_keeping();
    if (is_there) ++result_.samples;
    if (!kept_ || kept_->shards().size() != shards) tell();
    return is_there;
  }
  void end_keeping() {
    if (!kept_) return;
    result_.shards = kept_->shards();
    result_.kept = result_.shards.size();
    kept_.reset();
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
      throw error(errc::corrupt,
                  str_cat(from_.name(sample), ": ", found->reason, "; mend the source, or leave damaged samples out (",
                          spelled(option_id::skip_damaged), ")"),
                  option_id::skip_damaged);
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
    if (options_.rewrite) rewrite(pending_, options_.rewrite);
    for (const sample_members& sample : pending_) {
      std::vector<std::optional<photo_place>> photos(sample.members.size());
      for (std::size_t i = 0; i < photos.size() && options_.photo; ++i) {
        photos[i] = options_.photo(sample.members[i].content);
      }
      make_room(sample, static_cast<std::size_t>(std::count_if(photos.begin(), photos.end(),
                                                               [](const auto& each) { return each.has_value(); })));
      for (std::size_t i = 0; i < photos.size(); ++i) {
        const member& each = sample.members[i];
        writer_->begin(each.name, each.size_bytes);
        if (photos[i]) add_photo(*photos[i]);
        if (each.size_bytes > 0) writer_->write(each.content);
      }
      count(sample);
    }
    pending_.clear();
    pending_bytes_ = 0;
    tell();
  }

  void rewrite(std::vector<sample_members>& samples, const member_rewriter& by) const {
    for_each_parallel(samples.size(), working_cores(), [&](std::size_t i) {
      if (options_.stop.stop_requested()) return;
      for (member& each : samples[i].members) {
        std::optional<rewritten_member> other = by(each.name, each.content);
        if (!other) continue;
        const auto is_taken = [&](const member& beside) { return &beside != &each && beside.name == other->name; };
        if (std::any_of(samples[i].members.begin(), samples[i].members.end(), is_taken)) continue;
        samples[i].archive_bytes -= tar_member_bytes(each.name, each.size_bytes);
        each.name = std::move(other->name);
        each.content = std::move(other->content);
        each.size_bytes = each.content.size();
        samples[i].archive_bytes += tar_member_bytes(each.name, each.size_bytes);
      }
    });
  }

  void write_large(const sample_members& sample) {
    make_room(sample, 0);
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

  void make_room(const sample_members& sample, std::size_t photos) {
    if (!writer_) begin_shard();
    while (plan_.full(next_shard() - 1, result_.shards.back().samples, writer_->bytes(),
                      sample.archive_bytes + photo_index_bytes(photos_.size() + photos))) {
      end_shard();
      begin_shard();
    }
  }

  static std::uint64_t photo_index_bytes(std::size_t photos) {
    return photos == 0 ? 0 : tar_member_bytes(photo_places_member, photo_places_bytes(photos));
  }

  // Its member has just begun.
  void add_photo(photo_place place) {
    const std::uint64_t block = writer_->bytes() / tar_block_bytes;
    if (block > std::numeric_limits<std::uint32_t>::max()) return;  // beyond 2 TiB
    place.block = static_cast<std::uint32_t>(block);
    photos_.push_back(place);
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
    if (!photos_.empty()) {
      const std::vector<std::byte> index = as_member(photos_);
      writer_->begin(photo_places_member, index.size());
      writer_->write(index);
      photos_.clear();
    }
    check_unchanged(*from_.model());  // A shard that was published has nothing of another writer's.
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
  std::optional<kept_shards> kept_;  // while the samples that come lie in shards of an earlier run
  std::optional<tar_writer> writer_;
  std::vector<sample_members> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<photo_place> photos_;   // of the shard that is being written
  std::vector<std::uint64_t> order_;  // where it is shuffled
  std::uint64_t own_samples_ = 0;
};

}  // namespace

pack_result pack(const dataset& from, std::string_view out, const pack_options& options) {
  return tar_packing(from, out, options).run();
}

}  // namespace leat::datasets
