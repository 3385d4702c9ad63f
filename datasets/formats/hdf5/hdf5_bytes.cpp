#include "datasets/formats/hdf5/hdf5_bytes.hpp"

#include "base/text.hpp"
#include "datasets/codecs/checksums.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace leat::datasets {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view signature = "\x89HDF\r\n\x1a\n"sv;

bool is(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

}  // namespace

void hdf5_cursor::fail_size(std::uint64_t bytes) const {
  if (bytes > left()) fail(str_cat("ends before ", bytes, " more bytes of it"));
  fail("a number of no size that HDF5 has");
}

bool hdf5_cursor::begins_with(std::string_view text) const noexcept { return is(bytes_.subspan(at_), text); }

void hdf5_cursor::expect(std::string_view text) {
  if (!begins_with(text)) fail(str_cat("no '", text, "' where one is expected"));
  skip(text.size());
}

std::string hdf5_cursor::text(std::uint64_t bytes) {
  const std::span<const std::byte> from = take(bytes);
  const std::string whole(reinterpret_cast<const char*>(from.data()), from.size());
  return whole.substr(0, whole.find('\0'));
}

std::string hdf5_cursor::text_to_zero() {
  const std::span<const std::byte> rest = bytes_.subspan(at_);
  const auto end = std::find(rest.begin(), rest.end(), std::byte{});
  if (end == rest.end()) fail("a name without an end");
  const auto bytes = static_cast<std::uint64_t>(end - rest.begin());
  std::string found = text(bytes);
  skip(1);
  return found;
}

void hdf5_cursor::fail(std::string_view what) const { file_->fail(offset(), what); }

std::optional<std::uint64_t> hdf5_signature(const file_bytes& file) {
  for (std::uint64_t at = 0; at < file.size(); at = at == 0 ? 512 : at * 2) {
    if (is(file.read(at, signature.size()), signature)) return at;
  }
  return std::nullopt;
}

hdf5_bytes::hdf5_bytes(const file_bytes& file) : file_(file) {
  constexpr std::uint64_t superblock_bytes = 128;
  const std::optional<std::uint64_t> begin = hdf5_signature(file);
  if (!begin) throw error(errc::format, str_cat(path(), ": no HDF5 file: it has no signature"));
  const hdf5_block block{this, file_.read(*begin, superblock_bytes), *begin};
  hdf5_cursor at = block.cursor();
  at.skip(signature.size());
  const std::uint64_t version = at.number(1);
  if (version > 3) {
    throw error(errc::unsupported, str_cat(path(), ": HDF5 with a superblock of version ", version,
                                           "; leat knows 0 to 3. h5repack writes the file anew"));
  }
  if (version <= 1) at.skip(4);
  address_bytes_ = at.number(1);
  length_bytes_ = at.number(1);
  const auto is_size = [](std::size_t bytes) { return bytes == 2 || bytes == 4 || bytes == 8; };
  if (!is_size(address_bytes_) || !is_size(length_bytes_)) at.fail("addresses or lengths of no size that HDF5 has");
  if (version <= 1) {
    at.skip(1 + 4 + 4 + (version == 1 ? 4 : 0));
    base_ = at.address();
    static_cast<void>(at.address());  // free space
    static_cast<void>(at.address());  // end of file
    static_cast<void>(at.address());  // driver information
    at.skip(address_bytes_);          // the root's name
    root_ = at.address();
  } else {
    const std::uint64_t flags = at.number(1);
    if (version == 3 && (flags & 5) != 0) {
      throw error(
          errc::unsupported,
          str_cat(path(),
                  ": a program has it open for writing, or ended before it closed it; wait for that program, or, "
                  "if it is gone, run `h5clear -s ",
                  path(), "`"));
    }
    base_ = at.address();
    extension_ = at.address();
    static_cast<void>(at.address());  // end of file
    root_ = at.address();
    const std::uint64_t bytes = at.offset() - *begin;
    const auto stored = static_cast<std::uint32_t>(at.number(4));
    verify(std::span(block.bytes).first(static_cast<std::size_t>(bytes)), stored, *begin);
  }
}

hdf5_block hdf5_bytes::read(std::uint64_t address, std::uint64_t bytes) const {
  hdf5_block block = read_up_to(address, bytes);
  if (block.bytes.size() != bytes)
    fail(block.offset, str_cat("the file ends within ", bytes, " bytes that begin here"));
  return block;
}

hdf5_block hdf5_bytes::read_checked(std::uint64_t address, std::uint64_t bytes) const {
  constexpr std::size_t checksum_bytes = 4;
  if (bytes > block_bytes_max) fail(offset_of(address), str_cat("a header or index of ", bytes, " bytes"));
  hdf5_block block = read(address, bytes + checksum_bytes);
  hdf5_cursor at = block.cursor();
  const std::span<const std::byte> checked = at.take(bytes);
  verify(checked, static_cast<std::uint32_t>(at.number(checksum_bytes)), block.offset);
  block.bytes.resize(checked.size());
  return block;
}

// A fuzzer cannot guess checksums, and is to reach what lies behind them.
void hdf5_bytes::verify([[maybe_unused]] std::span<const std::byte> bytes, [[maybe_unused]] std::uint32_t stored,
                        [[maybe_unused]] std::uint64_t offset) const {
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  if (lookup3(bytes) != stored) fail(offset, str_cat("the checksum of ", bytes.size(), " bytes is another one"));
#endif
}

hdf5_block hdf5_bytes::read_up_to(std::uint64_t address, std::uint64_t bytes) const {
  const std::uint64_t offset = offset_of(address);
  if (bytes > block_bytes_max) fail(offset, str_cat("a header or index of ", bytes, " bytes"));
  bytes = std::min(bytes, size() - offset);
  if (const auto behind = ahead_.upper_bound(offset); behind != ahead_.begin()) {
    const auto& [first, there] = *std::prev(behind);
    if (offset - first <= there.size() && bytes <= there.size() - (offset - first)) {
      const auto from = there.begin() + static_cast<std::ptrdiff_t>(offset - first);
      return {this, {from, from + static_cast<std::ptrdiff_t>(bytes)}, offset};
    }
  }
  return {this, file_.read(offset, bytes), offset};
}

void hdf5_bytes::read_ahead(std::span<const range> ranges) {
  if (ranges.size() < 2) return;
  if (ahead_bytes_ > ahead_bytes_max_) {
    ahead_.clear();
    ahead_bytes_ = 0;
  }
  std::vector<file_bytes::piece> pieces;
  for (const range& each : ranges) {
    if (each.address > size() || base_ > size() - each.address || each.bytes > ahead_bytes_max_) continue;
    const std::uint64_t offset = base_ + each.address;
    const auto [place, is_new] = ahead_.try_emplace(offset);
    if (!is_new) continue;
    place->second.resize(std::min(each.bytes, size() - offset));
    ahead_bytes_ += place->second.size();
    pieces.push_back({offset, place->second});
  }
  file_.read_all(pieces);
  // The file may have been cut since it was opened.
  for (const file_bytes::piece& each : pieces) ahead_.at(each.offset).resize(each.into.size());
}

std::vector<std::byte> hdf5_bytes::bytes_at(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > size() || bytes > size() - offset) {
    fail(offset, str_cat("the file ends within ", bytes, " bytes that begin here"));
  }
  return file_.read(offset, bytes);
}

void hdf5_bytes::count_node(std::uint64_t address) {
  constexpr std::uint64_t least_node_bytes = 24;
  constexpr std::uint64_t always = 1024;
  if (++nodes_ > always + size() / least_node_bytes) fail(address, "an index that goes in a circle");
}

void hdf5_bytes::count_path(std::uint64_t bytes) {
  constexpr std::uint64_t always = std::uint64_t{16} << 20;
  path_bytes_ += bytes;
  if (path_bytes_ > always + 8 * size()) fail(0, "groups whose links have more names than the file has room for");
}

void hdf5_bytes::refuse(std::uint64_t offset, std::string_view what) const {
  throw error(errc::unsupported, str_cat(path(), ": at offset ", offset, ": ", what,
                                         ", which leat does not read; h5repack writes the file anew"));
}

void hdf5_bytes::fail(std::uint64_t offset, std::string_view what) const {
  throw error(errc::format, str_cat(path(), ": at offset ", offset, ": ", what,
                                    "; the file is damaged: `h5dump -H` may say more, h5py may open it"));
}

}  // namespace leat::datasets
