#include "datasets/write/tar_writer.hpp"

#include "base/errno_words.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/files/python_order.hpp"
#include "datasets/formats/tar/tar_header.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
// Written to the disk while the next is filled. A stop waits for one piece at most: 4 MiB are 40 ms on a slow disk.
// So fsync(), which cannot be interrupted, finds little to do.
constexpr std::uint64_t piece_bytes = std::uint64_t{4} << 20;
// The page cache keeps so much of a shard's end. Removing a file of 170 MB from it took 40 ms, and a stop waits for it.
constexpr std::uint64_t cached_bytes_max = std::uint64_t{128} << 20;
constexpr std::uint64_t record_bytes = 20 * tar_block_bytes;  // GNU tar's default; readers expect whole records.
constexpr std::uint64_t ustar_size_max = (std::uint64_t{1} << 33) - 1;  // 11 octal digits.
constexpr std::size_t name_field_bytes = 100;
constexpr std::size_t prefix_field_bytes = 155;

using header_block = std::array<char, tar_block_bytes>;

// Where a path is cut so that its halves fit the header's prefix and name; nullopt where it is too long for that.
std::optional<std::size_t> ustar_split(std::string_view name) {
  if (name.size() <= name_field_bytes) return 0;
  if (name.size() > prefix_field_bytes + 1 + name_field_bytes) return std::nullopt;
  const std::size_t first = name.find('/', name.size() - name_field_bytes - 1);
  if (first == std::string_view::npos || first == 0 || first > prefix_field_bytes || first + 1 == name.size()) {
    return std::nullopt;
  }
  return first;
}

void put(header_block& block, std::size_t offset, std::string_view text) {
  std::copy(text.begin(), text.end(), block.begin() + static_cast<std::ptrdiff_t>(offset));
}

// Octal digits and a NUL, as the field is long.
void put_octal(header_block& block, std::size_t offset, std::size_t bytes, std::uint64_t value) {
  for (std::size_t i = bytes - 1; i-- > 0; value >>= 3) block[offset + i] = static_cast<char>('0' + (value & 7));
}

header_block make_block(std::string_view prefix, std::string_view name, char type, std::uint64_t size_bytes) {
  header_block block{};
  put(block, 0, name.substr(0, name_field_bytes));
  put_octal(block, 100, 8, 0644);
  put_octal(block, 108, 8, 0);
  put_octal(block, 116, 8, 0);
  put_octal(block, 124, 12, size_bytes);
  put_octal(block, 136, 12, 0);
  block[156] = type;
  put(block, 257, std::string_view("ustar\00000", 8));
  put_octal(block, 329, 8, 0);
  put_octal(block, 337, 8, 0);
  put(block, 345, prefix);
  std::memset(block.data() + 148, ' ', 8);
  std::uint64_t sum = 0;
  for (const char value : block) sum += static_cast<unsigned char>(value);
  put_octal(block, 148, 7, sum);
  block[154] = '\0';  // Then the blank that is there: POSIX wants both.
  return block;
}

// "length key=value\n", where the length counts its own digits too.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (rest + std::to_string(length).size() != length) length = rest + std::to_string(length).size();
  return str_cat(length, " ", key, "=", value, "\n");
}

// All header blocks of a member.
std::string headers(std::string_view name, std::uint64_t size_bytes) {
  const std::optional<std::size_t> split = ustar_split(name);
  std::string records;
  if (!split) {
    if (!is_utf8(name)) records += pax_record("hdrcharset", "BINARY");
    records += pax_record("path", name);
  }
  if (size_bytes > ustar_size_max) records += pax_record("size", std::to_string(size_bytes));
  std::string all;
  if (!records.empty()) {
    const header_block extended = make_block({}, "././@PaxHeader", 'x', records.size());
    all.append(extended.data(), extended.size());
    all += records;
    all.resize(tar_padded(all.size()), '\0');
  }
  const std::size_t cut = split.value_or(0);
  const header_block own = make_block(name.substr(0, cut), cut == 0 ? name : name.substr(cut + 1), '0',
                                      std::min(size_bytes, ustar_size_max));
  all.append(own.data(), own.size());
  return all;
}

}  // namespace

std::uint64_t tar_member_bytes(std::string_view name, std::uint64_t size_bytes) {
  return headers(name, size_bytes).size() + tar_padded(size_bytes);
}

std::string shard_exists(std::string_view path) {
  return str_cat(
      path,
      ": is there already; give another name, go on behind the finished shards of a pack that was interrupted "
      "(",
      spelled(option_id::keep_finished), "), or replace what is there (", spelled(option_id::overwrite), ")");
}

tar_writer::tar_writer(std::string path, tar_writer_options options)
    : path_(std::move(path)), options_(options), file_(path_) {
  struct stat status{};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    throw error(errc::usage, str_cat(path_, ": is a directory; give the shards names in it, ", path_, "/p-%06d.tar"));
  }
  // finish() would put a file in the place of a device or a pipe.
  if (exists && !S_ISREG(status.st_mode)) {
    throw error(errc::usage, str_cat(path_, ": is there, and no regular file; give the shard a name of its own"));
  }
  if (exists && !options_.overwrite) throw error(errc::usage, shard_exists(path_));
  buffer_.reserve(buffer_bytes);
  const int failure = file_.open();
  if (failure == EWOULDBLOCK) {
    throw error(errc::usage, str_cat(path_, ": another process is writing this shard; wait for it, or pack elsewhere"));
  }
  if (failure != 0) fail(failure, "cannot be created");
}

void tar_writer::fail(int failure, std::string_view what) const {
  // For a full disk, how much of the shard there was room for says more than an offset in it.
  const std::string how_far = written_ > 0 ? str_cat(" after its first ", bytes_text(written_)) : std::string();
  const std::string no_folder = str_cat("the directory '", folder_of(path_), "' must exist: mkdir -p it");
  throw explain_write(
      str_cat(path_, ": ", what, how_far), failure,
      {.no_room = "make room, or pack to another disk: shards that are finished stay, this one is removed",
       .too_large = "the file system takes no file of this size: make smaller shards",
       .no_folder = no_folder,
       .not_allowed = "this user may not write there",
       .busy = "wait for it, or pack elsewhere"});
}

void tar_writer::begin(std::string_view name, std::uint64_t size_bytes) {
  assert(content_left_ == 0 && padding_ == 0);
  const std::string head = headers(name, size_bytes);
  append(std::as_bytes(std::span(head)));
  content_left_ = size_bytes;
  padding_ = tar_padded(size_bytes) - size_bytes;
  if (content_left_ == 0) append_zeros(std::exchange(padding_, 0));
}

void tar_writer::write(std::span<const std::byte> content) {
  assert(content.size() <= content_left_);
  append(content);
  content_left_ -= content.size();
  if (content_left_ == 0) append_zeros(std::exchange(padding_, 0));
}

void tar_writer::append(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes) flush();
  if (bytes.size() >= buffer_bytes) {
    write_out(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  bytes_ += bytes.size();
}

void tar_writer::append_zeros(std::uint64_t bytes) {
  constexpr std::array<std::byte, record_bytes> zeros{};
  while (bytes > 0) {  // An archive's end can be two blocks and most of a record.
    const std::size_t now = std::min<std::uint64_t>(bytes, zeros.size());
    append(std::span(zeros).first(now));
    bytes -= now;
  }
}

void tar_writer::flush() {
  write_out(buffer_);
  buffer_.clear();
}

void tar_writer::write_out(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    check_stop();
    const ssize_t written =
        ::write(file_.descriptor(), bytes.data(), std::min<std::size_t>(bytes.size(), buffer_bytes));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(errno, "cannot be written");
    }
    written_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    if (written_ >= begun_ + piece_bytes) write_back(written_);
  }
}

void tar_writer::check_stop() const {
  if (options_.stop.stop_requested()) {
    throw error(errc::cancelled, str_cat(path_, ": stopped; it is removed, finished shards stay"));
  }
}

// Begins to write these bytes to the disk, and waits for those begun before. So one piece is being written while the
// next is filled, and never more than two are not yet on the disk.
void tar_writer::write_back(std::uint64_t up_to) {
  const auto range = [&](std::uint64_t begin, std::uint64_t end, unsigned how) {
    if (begin == end) return;
    if (::sync_file_range(file_.descriptor(), static_cast<off64_t>(begin), static_cast<off64_t>(end - begin), how) == 0)
      return;
    // An error reported here is not reported to fsync() again. File systems without this call are left to fsync().
    if (errno == EIO || errno == ENOSPC || errno == EDQUOT) fail(errno, "cannot be written");
  };
  range(begun_, up_to, SYNC_FILE_RANGE_WRITE);
  range(on_disk_, begun_, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  on_disk_ = std::exchange(begun_, up_to);
  if (on_disk_ > dropped_ + cached_bytes_max) {
    const std::uint64_t until = on_disk_ - cached_bytes_max;
    static_cast<void>(::posix_fadvise(file_.descriptor(), static_cast<off_t>(dropped_),
                                      static_cast<off_t>(until - dropped_), POSIX_FADV_DONTNEED));
    dropped_ = until;
  }
}

// Makes the file durable. A stop ends it between two pieces.
void tar_writer::sync() {
  write_back(written_);
  check_stop();
  write_back(written_);
  check_stop();
  const int failure = file_.sync();
  if (failure != 0) fail(failure, "cannot be made durable");
  check_stop();
}

void tar_writer::finish() {
  assert(content_left_ == 0 && padding_ == 0);
  const std::uint64_t with_end = bytes_ + 2 * tar_block_bytes;
  append_zeros((with_end + record_bytes - 1) / record_bytes * record_bytes - bytes_);
  flush();
  // Blocks on the disk first, then the name: a crash leaves the old state or the new one.
  sync();
  const int named = file_.take_name(options_.overwrite);
  if (named == EEXIST) throw error(errc::usage, shard_exists(path_));
  if (named != 0) fail(named, "cannot be given its name");
  const int failure = sync_folder_of(path_);
  if (failure != 0) fail(failure, "its directory cannot be made durable");
}

}  // namespace leat::datasets
