// The file, all numbers little-endian: a head of 128 bytes, then rows of 16 bytes.
//
//     0    magic "leat.rct"                  64   u64 seed
//     8    u32 format version, 1             72   u32 epochs of the run
//     12   u32 content version               76   u32 rank, u32 world
//     16   u32 bytes of the head, 128        84   u32 epoch, u64 batch where the rows begin
//     20   u32 epoch that comes next         96   u64 rows of the run before these, u64 hash of some names
//     24   u64 rows                          112  XXH3-128 over the 112 bytes before
//     32   XXH3-128 over these rows
//     48   digest of the run's description
#include "stages/state/receipts.hpp"

#include "base/descriptor.hpp"
#include "base/errno_words.hpp"
#include "base/file_at.hpp"
#include "base/hasher.hpp"
#include "base/replaced_place.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"
#include "stages/state/replaceable_files.hpp"

#include <leat/error.hpp>

#include <sys/file.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

namespace leat::stages {
namespace {

constexpr std::string_view receipt_magic = "leat.rct";
constexpr std::uint32_t receipt_version = 1;
constexpr std::size_t head_sum_at = 112;
using head_block = std::array<std::byte, receipt_head::bytes>;

digest sum_of_head(const head_block& block) {
  hasher hash;
  hash.add(std::span(block).first(head_sum_at));
  return hash.finish();
}

// Calls `each(at, value)` for every number and digest of the head, at its place.
template <class Head, class Function>
void for_each_value(Head& head, Function&& each) {
  each(12, head.of.content);
  each(20, head.epoch);
  each(24, head.rows);
  each(32, head.sum.bytes);
  each(48, head.of.described.bytes);
  each(64, head.of.seed);
  each(72, head.of.epochs);
  each(76, head.of.rank);
  each(80, head.of.world);
  each(84, head.of.begin_epoch);
  each(88, head.of.begin_batch);
  each(96, head.before);
  each(104, head.of.names);
}

head_block block_of(const receipt_head& head) {
  head_block block{};
  const auto put = [&block](std::size_t at, const auto& value) {
    std::memcpy(block.data() + at, &value, sizeof value);
  };
  std::memcpy(block.data(), receipt_magic.data(), receipt_magic.size());
  put(8, receipt_version);
  put(16, static_cast<std::uint32_t>(receipt_head::bytes));
  for_each_value(head, put);
  put(head_sum_at, sum_of_head(block).bytes);
  return block;
}

std::uint64_t place_of(std::uint64_t rows) { return receipt_head::bytes + rows * sizeof(receipt_row); }

void add_rows(hasher& to, std::span<const receipt_row> rows) {
  for (const receipt_row& each : rows) to.add(digest{each.bytes});
}

// All of it, or as much as there is.
std::size_t read_some(int file, const std::string& path, std::span<std::byte> into, std::uint64_t at) {
  const auto [have, failure] = read_at(file, at, into);
  if (failure != 0) {
    throw io::explain_read({.failure = failure, .path = path, .offset = at + have, .bytes = into.size() - have});
  }
  return have;
}

}  // namespace

receipt_row receipt_row_of(std::string_view name, const digest& row) noexcept {
  sha256_hasher hash;
  hash.add(name);
  const sha256 of_name = hash.finish();
  receipt_row made;
  std::copy_n(of_name.begin(), receipt_row::key_bytes, made.bytes.begin());
  std::copy_n(row.bytes.begin(), receipt_row::digest_bytes, made.bytes.begin() + receipt_row::key_bytes);
  return made;
}

receipt_head read_receipt_head(int file, const std::string& path) {
  const auto refuse = [&](std::string_view why) {
    throw error(errc::format, str_cat(path, ": ", why,
                                      "; give a file that loader_options::receipts, or leat epoch "
                                      "--receipts, has written"));
  };
  head_block block{};
  const std::size_t have = read_some(file, path, block, 0);
  if (std::memcmp(block.data(), receipt_magic.data(), receipt_magic.size()) != 0) refuse("is no receipt of a run");
  if (have < block.size()) refuse(str_cat("ends after ", have, " bytes: it was cut"));
  std::uint32_t version = 0;
  std::memcpy(&version, block.data() + 8, sizeof version);
  if (version != receipt_version) {
    throw error(errc::unsupported, str_cat(path, ": version ", version, " of a receipt; this leat reads ",
                                           receipt_version, ": use the leat that has written it, or a newer one"));
  }
  if (std::memcmp(block.data() + head_sum_at, sum_of_head(block).bytes.data(), sizeof(digest)) != 0) {
    refuse("the checksum of its head does not match: it is damaged, or was changed");
  }
  receipt_head head;
  for_each_value(head, [&block](std::size_t at, auto& value) { std::memcpy(&value, block.data() + at, sizeof value); });
  return head;
}

namespace {

void check_and_lock(int fd, const std::string& path) {
  const std::string what = str_cat("cannot write the receipts ", path);
  struct stat status{};
  if (::fstat(fd, &status) != 0) throw explain_write(what, errno);
  if (!S_ISREG(status.st_mode)) throw error(errc::usage, str_cat(what, ": it is no regular file; name one"));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw error(errc::usage, str_cat(what,
                                     ": another process, or a loader that was not stopped, is writing it; give "
                                     "each rank a file of its own"));
  }
}

// What is there and is no receipt may be the data that somebody meant to load. Zeros are of a process that was killed at its beginning.
void check_receipts_kind(int fd, const std::string& path) {
  std::array<char, receipt_magic.size()> begin{};
  read_some(fd, path, std::as_writable_bytes(std::span(begin)), 0);
  const std::string_view text(begin.data(), begin.size());
  if (text == receipt_magic || text.find_first_not_of('\0') == std::string_view::npos) return;
  throw error(errc::usage, str_cat("the receipts ", path, " would replace a file that is none; give another name"));
}

}  // namespace

void check_receipts_replaceable(const std::string& path) {
  const descriptor there(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const int failure = there.get() >= 0 ? 0 : errno == ENOENT ? can_write_in_place(path) : errno;
  if (failure != 0) throw explain_write(str_cat("cannot write the receipts ", path), failure);
  if (there.get() < 0) return;
  check_and_lock(there.get(), path);
  check_receipts_kind(there.get(), path);
}

struct receipts::file {
  file(std::string named, int fd) : path(std::move(named)), number(fd) {}

  const std::string path;
  const descriptor number;
  receipt_head head;
  hasher sum;
  std::uint64_t rows = 0;
  std::uint64_t counted = 0;  // by the state to resume from

  [[noreturn]] void fail(int failure) const {
    throw explain_write(str_cat("cannot write the receipts ", path), failure);
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw error(errc::usage, str_cat("the receipts ", path, " ", why, ", and the state to resume from counts ", counted,
                                     " rows; name the file that this run has written from its beginning"));
  }

  void write(std::span<const std::byte> bytes, std::uint64_t at) const {
    if (const int failure = write_at(number.get(), at, bytes); failure != 0) fail(failure);
  }

  void cut() const {
    if (::ftruncate(number.get(), static_cast<off_t>(place_of(rows))) != 0) fail(errno);
  }

  void check_same(const receipt_run& run) const {
    receipt_run same = head.of;
    same.epochs = run.epochs;  // how far the run goes may have changed
    same.begin_epoch = run.begin_epoch;
    same.begin_batch = run.begin_batch;
    same.names = run.names;
    if (same != run || head.before > counted) refuse("is of another run");
    if (head.of.names == run.names) return;
    throw error(errc::usage,
                str_cat("the receipts ", path,
                        " have other names of these samples, which begin with the path that a shard is opened by; open "
                        "the shards by the path of before"));
  }

  // Keeps the first rows, which are read for the sum.
  void go_on(const receipt_run& run) {
    head = read_receipt_head(number.get(), path);
    check_same(run);
    head.of.epochs = run.epochs;
    rows = counted - head.before;
    std::vector<receipt_row> part(std::size_t{1} << 16U);
    for (std::uint64_t row = 0; row < rows; row += part.size()) {
      part.resize(std::min<std::uint64_t>(part.size(), rows - row));
      const std::span<std::byte> bytes = std::as_writable_bytes(std::span(part));
      if (read_some(number.get(), path, bytes, place_of(row)) != bytes.size()) refuse("has fewer");
      if (row < head.rows && head.rows <= row + part.size()) {
        add_rows(sum, std::span(part).first(head.rows - row));
        if (sum.finish() != head.sum) refuse("has been changed");
        add_rows(sum, std::span(part).subspan(head.rows - row));
      } else {
        add_rows(sum, part);
      }
    }
    cut();
  }
};

receipts::receipts(const std::string& path, const receipt_run& of, const receipt_place& from) {
  const std::string what = str_cat("cannot write the receipts ", path);
  const bool goes_on = from.goes_on && from.counted != 0;
  const int fd = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | (goes_on ? 0 : O_CREAT), 0666);
  const int failure = errno;
  auto opened = std::make_unique<file>(path, fd);
  opened->counted = from.counted;
  if (fd < 0 && failure == ENOENT && goes_on) opened->refuse("is not there");
  if (fd < 0) throw explain_write(what, failure);
  check_and_lock(fd, path);
  if (goes_on) {
    opened->go_on(of);
  } else {
    check_receipts_kind(fd, path);
    opened->head.of = of;
    opened->head.before = from.counted;
    opened->cut();
  }
  file_ = std::move(opened);
  mark(from.epoch);
}

receipts::receipts() = default;
receipts::receipts(receipts&&) noexcept = default;
receipts& receipts::operator=(receipts&&) noexcept = default;
receipts::~receipts() = default;

void receipts::append(std::span<const receipt_row> rows) {
  if (file_ == nullptr || rows.empty()) return;
  file_->write(std::as_bytes(rows), place_of(file_->rows));
  add_rows(file_->sum, rows);
  file_->rows += rows.size();
}

void receipts::mark(std::uint32_t epoch) {
  if (file_ == nullptr) return;
  file_->head.rows = file_->rows;
  file_->head.sum = file_->sum.finish();
  file_->head.epoch = epoch;
  file_->write(block_of(file_->head), 0);
}

void receipts::close(std::uint32_t epoch) noexcept {
  try {
    mark(epoch);
  } catch (const error&) {  // The rows are there; nobody says of them that they are all.
  }
  file_.reset();
}

}  // namespace leat::stages
