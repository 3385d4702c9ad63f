#include "stages/observe/read_record.hpp"

#include "base/crc32c.hpp"
#include "base/errno_words.hpp"
#include "base/file_start.hpp"
#include "base/replaced_place.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "stages/state/replaceable_files.hpp"

#include <algorithm>
#include <bit>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace leat::stages {
namespace {

static_assert(std::endian::native == std::endian::little, "a record is written as numbers lie in memory");

constexpr std::string_view magic_of_record = "LEATREC1";

enum block_kind : std::uint32_t { block_settings = 1, block_reads = 2, block_batches = 3, block_end = 4 };

struct block_head {
  std::uint32_t kind = 0;
  std::uint32_t bytes = 0;
  std::uint64_t base = 0;
  std::uint64_t batch_base = 0;  // of reads, shifted by 8 bits: below these the number of the I/O thread
  std::uint64_t checksum = 0;
};
static_assert(sizeof(block_head) == 32);
static_assert(std::has_unique_object_representations_v<recorded_settings> && sizeof(recorded_settings) == 40);
static_assert(std::has_unique_object_representations_v<recorded_totals> && sizeof(recorded_totals) == 56);

// A batch in a file. Times are in ticks of 1024 ns, those of moments behind the block's base.
struct stored_batch {
  std::uint32_t number = 0;  // behind the block's base of the batches
  std::uint32_t index = 0;
  std::uint32_t epoch = 0;
  std::uint32_t rows = 0;
  std::uint32_t decoded = 0;
  std::uint32_t timed = 0;
  std::uint32_t begun = 0;
  std::uint32_t made = 0;
  std::uint32_t arrived = 0;
  std::uint32_t asked = 0;
  std::uint32_t handed = 0;
  std::uint32_t decode = 0;
  std::uint32_t expand = 0;
  float decode_us2 = 0;
};
static_assert(sizeof(stored_batch) == 56);

// Within its first block a read may end before another one that is noted first, and be of an earlier batch.
constexpr std::uint64_t ticks_back = std::uint64_t{1} << 24U;
constexpr std::uint64_t batches_back = 1024;

std::uint64_t checksum_of(block_head head, std::uint64_t number, std::span<const std::byte> bytes) {
  head.checksum = number;
  return std::uint64_t{crc32c(std::as_bytes(std::span(&head, 1)))} << 32U | crc32c(bytes);
}

template <class Value>
Value value_at(std::span<const std::byte> bytes, std::size_t at) {
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

[[noreturn]] void refuse_record(const std::string& path, std::uint64_t at, std::string_view why) {
  throw error(errc::format, str_cat(path, ": ", why, ", at byte ", at, "; record the run again"));
}

void take_reads(std::span<const std::byte> bytes, const block_head& head, std::vector<recorded_read>& to) {
  for (std::size_t at = 0; at < bytes.size(); at += read_recorder::read_bytes) {
    std::array<std::uint64_t, 3> words{};
    std::memcpy(words.data(), bytes.data() + at, read_recorder::read_bytes);
    const std::uint64_t end = head.base + (words[1] >> 32U);
    const std::uint64_t took = words[2] & 0xFFFFFFU;
    to.push_back({.begin_ns = (end - std::min(end, took)) << 10U,
                  .end_ns = end << 10U,
                  .offset = words[0] & 0xFFFFFFFFFFFFU,
                  .bytes = words[1] & 0xFFFFFFFFU,
                  .batch = (head.batch_base >> 8U) + (words[2] >> 32U & 0x7FFFU),
                  .file = static_cast<std::uint32_t>(words[0] >> 48U | (words[2] >> 24U & 0xFFU) << 16U),
                  .is_leased = (words[2] >> 47U & 1U) != 0,
                  .loop = static_cast<std::uint32_t>(head.batch_base & 0xFFU)});
  }
}

void take_batches(std::span<const std::byte> bytes, const block_head& head, std::vector<recorded_batch>& to) {
  const auto moment = [&](std::uint32_t tick) { return (head.base + tick) << 10U; };
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(stored_batch)) {
    const auto stored = value_at<stored_batch>(bytes, at);
    // No sum of squares is larger: one of a hundred years has 19 digits.
    const double squares = stored.decode_us2 >= 0 && stored.decode_us2 < 1e19F ? stored.decode_us2 : 0;
    to.push_back({.number = (head.batch_base >> 8U) + stored.number,
                  .index = stored.index,
                  .begun_ns = moment(stored.begun),
                  .made_ns = moment(stored.made),
                  .arrived_ns = moment(stored.arrived),
                  .asked_ns = moment(stored.asked),
                  .handed_ns = moment(stored.handed),
                  .decode_ns = std::uint64_t{stored.decode} << 10U,
                  .decode_us2 = static_cast<std::uint64_t>(squares),
                  .expand_ns = std::uint64_t{stored.expand} << 10U,
                  .epoch = stored.epoch,
                  .timed = stored.timed,
                  .rows = stored.rows,
                  .decoded = stored.decoded});
  }
}

// It takes the place of what has its name when the run ends: of /dev/null, or of the data that somebody meant to load.
void check_record_kind(const std::string& path) {
  switch (look_at_start(path, magic_of_record)) {
    case file_start::nothing:
    case file_start::same:
      return;
    case file_start::not_a_file:
      throw error(errc::usage, str_cat("cannot write the record ", path, ": it is no regular file; name one"));
    case file_start::other:
      throw error(errc::usage, str_cat("the record ", path, " would replace a file that is none; give another name"));
  }
}

error cannot_write_record(const std::string& path, int failure) {
  return explain_write(str_cat("cannot write the record ", path), failure);
}

}  // namespace

void check_record_replaceable(const std::string& path) {
  check_record_kind(path);
  if (const int failure = can_write_whole(path); failure != 0) throw cannot_write_record(path, failure);
}

read_recorder::read_recorder(std::string path, const recorded_settings& settings)
    : path_(std::move(path)),
      loop_count_(settings.io_threads),
      loops_(std::make_unique<lane[]>(settings.io_threads)),
      file_(replaced_place(path_).value_or(path_)) {
  for (std::uint32_t i = 0; i < settings.io_threads; ++i) {
    lane& of_loop = loops_[i];
    of_loop.kind = block_reads;
    of_loop.bytes = std::make_unique<std::byte[]>(block_bytes);
    of_loop.used = block_bytes + 1;  // the first one begins a block
    of_loop.number = i;
  }
  batches_.kind = block_batches;
  batches_.bytes = std::make_unique<std::byte[]>(block_bytes);
  batches_.used = block_bytes + 1;
  lane first;
  first.kind = block_settings;
  first.bytes = std::make_unique<std::byte[]>(sizeof(block_head) + sizeof settings);
  std::memcpy(first.bytes.get() + sizeof(block_head), &settings, sizeof settings);
  first.used = sizeof(block_head) + sizeof settings;
  check_record_kind(path_);
  {
    const mutex_lock lock(mutex_);
    int failure = file_.open();
    if (failure == 0) failure = file_.write(std::as_bytes(std::span(magic_of_record)));
    if (failure != 0) throw cannot_write_record(path_, failure);
  }
  write(first);
  check();
}

void read_recorder::write(lane& full) noexcept {
  const std::size_t bytes = full.used - sizeof(block_head);
  block_head head{.kind = full.kind,
                  .bytes = static_cast<std::uint32_t>(bytes),
                  .base = full.base,
                  .batch_base = full.batch_base << 8U | full.number};
  full.used = sizeof(block_head);
  full.count += bytes;
  const mutex_lock lock(mutex_);
  if (failure_.load(std::memory_order_relaxed) != 0) return;
  head.checksum = checksum_of(head, blocks_++, {full.bytes.get() + sizeof head, bytes});
  std::memcpy(full.bytes.get(), &head, sizeof head);
  if (const int failure = file_.write({full.bytes.get(), sizeof head + bytes}); failure != 0) {
    failure_.store(failure, std::memory_order_relaxed);
  }
}

void read_recorder::add_first(std::size_t loop, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t offset,
                              std::uint64_t bytes, std::uint64_t batch, std::uint64_t file, bool is_leased) noexcept {
  constexpr std::uint64_t most = 0xFFFFFFFFU;
  constexpr std::uint64_t most_of_24 = 0xFFFFFFU;
  constexpr std::uint64_t batches_most = 0x7FFFU;
  lane& to = loops_[loop];
  const std::uint64_t end = end_ns >> 10U;
  if (to.used + read_bytes + sizeof(std::uint64_t) > block_bytes || end - to.base > most ||
      batch - to.batch_base > batches_most) {
    if (to.used <= block_bytes) write(to);
    to.used = sizeof(block_head);
    to.base = end - std::min(end, ticks_back);
    to.batch_base = batch - std::min(batch, batches_back);
  }
  const std::uint64_t began = begin_ns >> 10U;
  const std::uint64_t took = std::min(end - std::min(end, began), most_of_24);
  const std::uint64_t number = std::min(file, most_of_24);
  put(to, {(offset & 0xFFFFFFFFFFFFU) | number << 48U, std::min(bytes, most) | (end - to.base) << 32U,
           took | number >> 16U << 24U | (batch - to.batch_base) << 32U | std::uint64_t{is_leased} << 47U});
}

void read_recorder::add(const recorded_batch& batch) noexcept {
  lane& to = batches_;
  constexpr std::uint64_t most = 0xFFFFFFFFU;
  const auto tick = [](std::uint64_t ns) { return ns >> 10U; };
  if (to.used + sizeof(stored_batch) > block_bytes || tick(batch.handed_ns) - to.base > most ||
      batch.number - to.batch_base > most) {
    if (to.used <= block_bytes) write(to);
    to.used = sizeof(block_head);
    to.base = tick(batch.begun_ns) - std::min(tick(batch.begun_ns), ticks_back);
    to.batch_base = batch.number;
  }
  const auto small = [](std::uint64_t value) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, 0xFFFFFFFFU));
  };
  const auto at = [&](std::uint64_t ns) { return small(tick(ns) - std::min(tick(ns), to.base)); };
  const stored_batch stored{.number = small(batch.number - to.batch_base),
                            .index = small(batch.index),
                            .epoch = batch.epoch,
                            .rows = batch.rows,
                            .decoded = batch.decoded,
                            .timed = batch.timed,
                            .begun = at(batch.begun_ns),
                            .made = at(batch.made_ns),
                            .arrived = at(batch.arrived_ns),
                            .asked = at(batch.asked_ns),
                            .handed = at(batch.handed_ns),
                            .decode = small(tick(batch.decode_ns)),
                            .expand = small(tick(batch.expand_ns)),
                            .decode_us2 = static_cast<float>(batch.decode_us2)};
  std::memcpy(to.bytes.get() + to.used, &stored, sizeof stored);
  to.used += sizeof stored;
}

void read_recorder::check() const {
  if (failure() != 0) throw explain_write(str_cat("cannot write the record ", path_), failure());
}

void read_recorder::finish(recorded_totals totals) noexcept {
  for (lane& each : std::span(loops_.get(), loop_count_)) {
    if (each.used <= block_bytes) write(each);
    totals.reads += each.count / read_bytes;
  }
  if (batches_.used <= block_bytes) write(batches_);
  totals.batches = batches_.count / sizeof(stored_batch);
  std::array<std::byte, sizeof(block_head) + sizeof totals> room{};
  std::memcpy(room.data() + sizeof(block_head), &totals, sizeof totals);
  const mutex_lock lock(mutex_);
  int failure = failure_.load(std::memory_order_relaxed);
  block_head head{.kind = block_end, .bytes = sizeof totals};
  head.checksum = checksum_of(head, blocks_++, std::span(room).subspan(sizeof head));
  std::memcpy(room.data(), &head, sizeof head);
  if (failure == 0) failure = file_.write(room);
  if (failure == 0) failure = file_.take_name(true);
  if (failure != 0) file_.remove();
  failure_.store(failure, std::memory_order_relaxed);
}

read_record parse_read_record(std::span<const std::byte> bytes, const std::string& path) {
  if (bytes.size() < magic_of_record.size() ||
      std::memcmp(bytes.data(), magic_of_record.data(), magic_of_record.size()) != 0) {
    throw error(errc::format, str_cat(path, " is no record of a run; give a file that `leat epoch --record` wrote"));
  }
  read_record made;
  bool is_whole = false;
  std::size_t at = magic_of_record.size();
  for (std::uint64_t number = 0; at < bytes.size(); ++number) {
    if (is_whole) refuse_record(path, at, "bytes follow the end of the record");
    if (bytes.size() - at < sizeof(block_head)) refuse_record(path, at, "the record is cut off");
    const auto head = value_at<block_head>(bytes, at);
    if (bytes.size() - at - sizeof head < head.bytes) refuse_record(path, at, "the record is cut off");
    const std::span<const std::byte> content = bytes.subspan(at + sizeof head, head.bytes);
    if (checksum_of(head, number, content) != head.checksum) refuse_record(path, at, "a block is damaged");
    const auto is_of = [&](std::size_t each) { return content.size() % each == 0; };
    if (number == 0 && head.kind == block_settings && content.size() == sizeof made.settings) {
      made.settings = value_at<recorded_settings>(content, 0);
    } else if (number != 0 && head.kind == block_reads && is_of(read_recorder::read_bytes)) {
      take_reads(content, head, made.reads);
    } else if (number != 0 && head.kind == block_batches && is_of(sizeof(stored_batch))) {
      take_batches(content, head, made.batches);
    } else if (number != 0 && head.kind == block_end && content.size() == sizeof made.totals) {
      made.totals = value_at<recorded_totals>(content, 0);
      is_whole = true;
    } else {
      refuse_record(path, at, "a block of an unknown kind, as of a newer leat");
    }
    at += sizeof head + content.size();
  }
  if (!is_whole) refuse_record(path, at, "the record is cut off");
  if (made.totals.reads != made.reads.size() || made.totals.batches != made.batches.size()) {
    refuse_record(path, at, "the record has other numbers of reads and batches than its end says");
  }
  const auto key = [](const recorded_read& of) { return std::tuple(of.batch, of.begin_ns, of.end_ns, of.offset); };
  std::sort(made.reads.begin(), made.reads.end(),
            [&](const recorded_read& a, const recorded_read& b) { return key(a) < key(b); });
  return made;
}

}  // namespace leat::stages
