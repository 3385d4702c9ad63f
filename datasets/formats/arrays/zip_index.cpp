#include "datasets/formats/arrays/zip_index.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t directory_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr std::uint64_t local_bytes = 30;
constexpr std::uint64_t directory_entry_bytes = 46;
constexpr std::uint64_t end_bytes = 22;
constexpr std::uint64_t end64_bytes = 56;
constexpr std::uint64_t locator64_bytes = 20;
constexpr std::uint64_t comment_bytes_max = 0xFFFF;
// Of a directory: a million members with long names.
constexpr std::uint64_t directory_bytes_max = std::uint64_t{1} << 30;
constexpr std::uint16_t zip64_extra = 1;
constexpr std::uint16_t method_stored = 0;
constexpr std::uint16_t method_deflate = 8;
constexpr std::uint64_t deflate_ratio_max = 1032;  // 258 bytes for two bits
constexpr std::uint32_t in_zip64 = 0xFFFFFFFF;

class zip_reader {
 public:
  explicit zip_reader(const file_bytes& file) : file_(file) {}

  std::vector<zip_member> read() {
    find_directory();
    if (bytes_ > directory_bytes_max || offset_ > file_.size() || bytes_ > file_.size() - offset_) {
      fail(offset_, "the directory does not lie in the file");
    }
    directory_ = file_.read(offset_, bytes_);
    if (directory_.size() < bytes_) fail(offset_, "the directory is cut");
    std::vector<zip_member> members;
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < entries_; ++i) at = add(at, members);
    return members;
  }

 private:
  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const {
    throw error(errc::format, str_cat(file_.path(), " at offset ", offset, ": the zip archive is damaged: ", what,
                                      "; is the copy complete?"));
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    throw error(errc::unsupported, str_cat(file_.path(), ": ", what));
  }

  // The record at the end has a comment of any length behind it.
  void find_directory() {
    const std::uint64_t tail_bytes = std::min(file_.size(), end_bytes + comment_bytes_max);
    const std::uint64_t tail_offset = file_.size() - tail_bytes;
    const std::vector<std::byte> tail = file_.read(tail_offset, tail_bytes);
    std::optional<std::uint64_t> found;
    for (std::uint64_t at = tail.size(); at-- > 0 && !found;) {
      if (at + end_bytes > tail.size() || number_at<std::uint32_t>(tail, at) != end_signature) continue;
      if (at + end_bytes + number_at<std::uint16_t>(tail, at + 20) == tail.size()) found = at;
    }
    if (!found) {
      throw error(errc::format, str_cat(file_.path(),
                                        ": is no zip archive, or is cut: the record at the end is missing; "
                                        "is the copy complete?"));
    }
    if (number_at<std::uint16_t>(tail, *found + 4) != number_at<std::uint16_t>(tail, *found + 6)) {
      unsupported("an archive in several parts; write it in one");
    }
    entries_ = number_at<std::uint16_t>(tail, *found + 10);
    bytes_ = number_at<std::uint32_t>(tail, *found + 12);
    offset_ = number_at<std::uint32_t>(tail, *found + 16);
    const std::uint64_t end_offset = tail_offset + *found;
    if (entries_ == 0xFFFF || bytes_ == in_zip64 || offset_ == in_zip64) find_directory64(end_offset);
    if (entries_ > bytes_ / directory_entry_bytes) fail(end_offset, "more members than the directory has room for");
  }

  void find_directory64(std::uint64_t end_offset) {
    if (end_offset < locator64_bytes) return;  // No room for zip64's numbers.
    const std::vector<std::byte> locator = file_.read(end_offset - locator64_bytes, locator64_bytes);
    if (locator.size() < locator64_bytes || number_at<std::uint32_t>(locator, 0) != locator64_signature) return;
    const auto at = number_at<std::uint64_t>(locator, 8);
    const std::vector<std::byte> record = file_.read(at, end64_bytes);
    if (record.size() < end64_bytes || number_at<std::uint32_t>(record, 0) != end64_signature) {
      fail(at, "no zip64 record");
    }
    entries_ = number_at<std::uint64_t>(record, 32);
    bytes_ = number_at<std::uint64_t>(record, 40);
    offset_ = number_at<std::uint64_t>(record, 48);
  }

  // Returns where the next entry begins.
  std::uint64_t add(std::uint64_t at, std::vector<zip_member>& members) const {
    const std::span<const std::byte> all(directory_);
    if (at + directory_entry_bytes > all.size() || number_at<std::uint32_t>(all, at) != directory_signature) {
      fail(offset_ + at, "no entry of the directory");
    }
    const auto flags = number_at<std::uint16_t>(all, at + 8);
    const auto method = number_at<std::uint16_t>(all, at + 10);
    std::uint64_t stored = number_at<std::uint32_t>(all, at + 20);
    std::uint64_t bytes = number_at<std::uint32_t>(all, at + 24);
    const std::uint64_t name_bytes = number_at<std::uint16_t>(all, at + 28);
    const std::uint64_t extra_bytes = number_at<std::uint16_t>(all, at + 30);
    const std::uint64_t comment_bytes = number_at<std::uint16_t>(all, at + 32);
    std::uint64_t local = number_at<std::uint32_t>(all, at + 42);
    const std::uint64_t name_at = at + directory_entry_bytes;
    const std::uint64_t end = name_at + name_bytes + extra_bytes + comment_bytes;
    if (end > all.size()) fail(offset_ + at, "an entry of the directory is cut");
    zip_member member;
    member.name.assign(reinterpret_cast<const char*>(all.data() + name_at), name_bytes);
    widen(all.subspan(name_at + name_bytes, extra_bytes), bytes, stored, local);
    if ((flags & 1U) != 0) member.not_read = "encrypted; save it as it is";
    if (method != method_stored && method != method_deflate) {
      member.not_read = str_cat("packed by method ", method,
                                "; leat knows deflate: save the arrays with numpy.savez_compressed() or numpy.savez()");
    }
    if (!member.not_read.empty()) {
      members.push_back(std::move(member));
      return end;
    }
    member.deflated = method == method_deflate;
    member.crc32 = number_at<std::uint32_t>(all, at + 16);
    if (!member.deflated && stored != bytes)
      fail(offset_ + at, str_cat("the member '", member.name, "' has two sizes"));
    if (bytes / deflate_ratio_max > stored) {
      fail(offset_ + at, str_cat("the member '", member.name, "' is said to become ", bytes, " bytes of ", stored));
    }
    member.bytes = bytes;
    member.stored_bytes = stored;
    place(local, member);
    members.push_back(std::move(member));
    return end;
  }

  // Numbers that do not fit 32 bits stand in an extra field, those alone and in this order.
  void widen(std::span<const std::byte> extra, std::uint64_t& bytes, std::uint64_t& stored,
             std::uint64_t& local) const {
    std::size_t at = 0;
    while (at + 4 <= extra.size()) {
      const auto id = number_at<std::uint16_t>(extra, at);
      const std::size_t length = number_at<std::uint16_t>(extra, at + 2);
      at += 4;
      if (length > extra.size() - at) return;
      if (id == zip64_extra) {
        std::size_t from = at;
        for (std::uint64_t* const number : {&bytes, &stored, &local}) {
          if (*number != in_zip64 || from + 8 > at + length) continue;
          *number = number_at<std::uint64_t>(extra, from);
          from += 8;
        }
        return;
      }
      at += length;
    }
  }

  // The header before the member has an extra field of its own length.
  void place(std::uint64_t local, zip_member& member) const {
    const std::vector<std::byte> header = file_.read(local, local_bytes);
    if (header.size() < local_bytes || number_at<std::uint32_t>(header, 0) != local_signature) {
      fail(local, str_cat("no header before the member '", member.name, "'"));
    }
    member.offset = local + local_bytes + number_at<std::uint16_t>(header, 26) + number_at<std::uint16_t>(header, 28);
    if (member.offset > file_.size() || member.stored_bytes > file_.size() - member.offset) {
      fail(local, str_cat("the file ends before the member '", member.name, "' does"));
    }
  }

  const file_bytes& file_;
  std::uint64_t entries_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t offset_ = 0;
  std::vector<std::byte> directory_;
};

}  // namespace

std::vector<zip_member> read_zip_index(const file_bytes& file) { return zip_reader(file).read(); }

}  // namespace leat::datasets
