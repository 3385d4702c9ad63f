#include "tests/support/tar_writer.hpp"

#include <algorithm>
#include <stdexcept>

namespace leat::testing {
namespace {

constexpr std::size_t block_bytes = 512;
constexpr std::size_t name_bytes_max = 100;
constexpr std::size_t prefix_bytes_max = 155;
constexpr std::uint64_t octal_size_end = std::uint64_t{1} << 33;  // 11 octal digits

// Offsets in a header block. From `gnu_sparse` on they are GNU's own, where POSIX keeps the prefix.
enum field : std::size_t {
  name_at = 0,
  mode_at = 100,
  owner_at = 108,
  group_at = 116,
  size_at = 124,
  time_at = 136,
  checksum_at = 148,
  type_at = 156,
  link_name_at = 157,
  magic_at = 257,
  owner_name_at = 265,
  group_name_at = 297,
  device_at = 329,
  minor_device_at = 337,
  prefix_at = 345,
  gnu_sparse_at = 386,
  gnu_real_size_at = 483
};

void put_text(std::span<std::byte> block, std::size_t at, std::string_view text) {
  const auto bytes = bytes_of_text(text);
  std::copy(bytes.begin(), bytes.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
}

// Octal digits and a NUL, together `width`; or the top bit and the number, most significant byte first.
void put_number(std::span<std::byte> block, std::size_t at, std::size_t width, std::uint64_t value, bool base256) {
  for (std::size_t i = width; i-- > 0;) {
    if (base256) {
      block[at + i] = static_cast<std::byte>(value & 0xFFU);
      value >>= 8;
    } else if (i == width - 1) {
      block[at + i] = std::byte{0};
    } else {
      block[at + i] = static_cast<std::byte>('0' + (value & 7U));
      value >>= 3;
    }
  }
  if (base256) block[at] |= std::byte{0x80};
  if (value != 0) throw std::invalid_argument("tar: a number does not fit its field");
}

void put_checksum(std::span<std::byte> block, bool as_signed, bool wrong) {
  std::fill_n(block.begin() + checksum_at, 8, static_cast<std::byte>(' '));
  std::int64_t sum = 0;
  for (const std::byte each : block) {
    sum += as_signed ? static_cast<signed char>(each) : static_cast<std::int64_t>(std::to_integer<unsigned>(each));
  }
  if (wrong) sum = sum == 0 ? 1 : sum - 1;
  if (sum < 0) throw std::invalid_argument("tar: the signed checksum of this header is negative");
  // Six digits, a NUL, and the blank that is there already.
  put_number(block, checksum_at, 7, static_cast<std::uint64_t>(sum), false);
}

// "length key=value\n", where the length counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = 1 + key.size() + 1 + value.size() + 1;
  std::size_t length = rest + 1;
  while (length != rest + std::to_string(length).size()) ++length;
  return std::to_string(length) + " " + std::string(key) + "=" + std::string(value) + "\n";
}

// The name in two parts, each as long as it may be; false where no slash stands right.
bool split_name(std::string_view whole, std::string_view& prefix, std::string_view& name) {
  for (std::size_t slash = whole.find('/'); slash != std::string_view::npos; slash = whole.find('/', slash + 1)) {
    prefix = whole.substr(0, slash);
    name = whole.substr(slash + 1);
    if (slash > 0 && prefix.size() <= prefix_bytes_max && !name.empty() && name.size() <= name_bytes_max) return true;
  }
  return false;
}

}  // namespace

std::span<const std::byte> bytes_of_text(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

tar_place tar_writer::add(const tar_entry& entry) {
  tar_place place;
  place.header_offset = bytes_.size();
  const std::uint64_t size = entry.claimed_bytes.value_or(entry.contents.size());
  const bool long_name = entry.name.size() > name_bytes_max;
  const bool size_in_pax = entry.size_in_pax || (dialect_ == tar_dialect::pax && size >= octal_size_end);

  std::string records;
  if (dialect_ == tar_dialect::pax && long_name) records += pax_record("path", entry.name);
  if (dialect_ == tar_dialect::pax && entry.link_name.size() > name_bytes_max) {
    records += pax_record("linkpath", entry.link_name);
  }
  if (size_in_pax) records += pax_record("size", std::to_string(size));
  for (const auto& [key, value] : entry.pax_records) records += pax_record(key, value);
  if (!records.empty()) add_extension('x', "PaxHeaders/" + entry.name.substr(0, 80), records);
  if (dialect_ == tar_dialect::gnu) {
    // The NUL is part of the contents.
    if (entry.link_name.size() > name_bytes_max) add_extension('K', "././@LongLink", entry.link_name + '\0');
    if (long_name) add_extension('L', "././@LongLink", entry.name + '\0');
  }

  add_raw(header(entry, entry.name, size_in_pax ? 0 : size));
  place.data_offset = bytes_.size();
  place.data_bytes = entry.contents.size();
  add_padded(entry.contents);
  return place;
}

void tar_writer::add_extension(char type, std::string_view name, std::string_view contents) {
  tar_entry extension{.name = {}, .contents = bytes_of_text(contents), .type = type};
  add_raw(header(extension, name, contents.size()));
  add_padded(extension.contents);
}

tar_writer::block tar_writer::header(const tar_entry& entry, std::string_view name, std::uint64_t size_bytes) const {
  block out(block_bytes);
  std::string_view prefix;
  if (dialect_ == tar_dialect::ustar && name.size() > name_bytes_max) {
    const std::string_view whole = name;
    if (!split_name(whole, prefix, name)) {
      throw std::invalid_argument("tar: ustar has no place for the name '" + std::string(whole) + "'");
    }
  }
  if (dialect_ == tar_dialect::ustar && entry.link_name.size() > name_bytes_max) {
    throw std::invalid_argument("tar: ustar has no place for the link '" + entry.link_name + "'");
  }
  put_text(out, name_at, name.substr(0, name_bytes_max));
  put_number(out, mode_at, 8, entry.type == '5' ? 0755 : 0644, false);
  put_number(out, owner_at, 8, 0, false);
  put_number(out, group_at, 8, 0, false);
  const bool large = dialect_ == tar_dialect::gnu && size_bytes >= octal_size_end;
  put_number(out, size_at, 12, size_bytes, entry.base256 || large);
  put_number(out, time_at, 12, 0, false);
  put_text(out, type_at, std::string_view(&entry.type, 1));
  put_text(out, link_name_at, std::string_view(entry.link_name).substr(0, name_bytes_max));
  put_text(out, magic_at,
           dialect_ == tar_dialect::gnu ? std::string_view("ustar  \0", 8) : std::string_view("ustar\00000", 8));
  put_text(out, owner_name_at, "root");
  put_text(out, group_name_at, "root");
  if (dialect_ != tar_dialect::gnu) {
    put_number(out, device_at, 8, 0, false);
    put_number(out, minor_device_at, 8, 0, false);
    put_text(out, prefix_at, prefix);
  }
  put_checksum(out, entry.signed_checksum, entry.wrong_checksum);
  return out;
}

tar_place tar_writer::add_file(std::string name, std::span<const std::byte> contents) {
  return add({.name = std::move(name), .contents = contents});
}

tar_place tar_writer::add_file(std::string name, std::string_view contents) {
  return add_file(std::move(name), bytes_of_text(contents));
}

tar_place tar_writer::add_directory(std::string name) {
  if (!name.ends_with('/')) name.push_back('/');
  return add({.name = std::move(name), .type = '5'});
}

tar_place tar_writer::add_symbolic_link(std::string name, std::string target) {
  return add({.name = std::move(name), .type = '2', .link_name = std::move(target)});
}

tar_place tar_writer::add_hard_link(std::string name, std::string target) {
  return add({.name = std::move(name), .type = '1', .link_name = std::move(target)});
}

tar_place tar_writer::add_sparse_file(std::string name, std::uint64_t hole_bytes, std::span<const std::byte> contents) {
  const std::uint64_t real_bytes = hole_bytes + contents.size();
  if (dialect_ == tar_dialect::gnu) {
    const tar_place place = add({.name = std::move(name), .contents = contents, .type = 'S'});
    const std::span<std::byte> written(bytes_.data() + place.data_offset - block_bytes, block_bytes);
    put_number(written, gnu_sparse_at, 12, hole_bytes, false);
    put_number(written, gnu_sparse_at + 12, 12, contents.size(), false);
    put_number(written, gnu_real_size_at, 12, real_bytes, false);
    put_checksum(written, false, false);
    return place;
  }
  if (dialect_ == tar_dialect::ustar) throw std::invalid_argument("tar: ustar has no sparse files");

  // One run of data: their number, and offset and length of each, in a block of their own before the data.
  const std::string map = "1\n" + std::to_string(hole_bytes) + "\n" + std::to_string(contents.size()) + "\n";
  std::vector<std::byte> stored(block_bytes);
  put_text(stored, 0, map);
  stored.insert(stored.end(), contents.begin(), contents.end());
  tar_entry entry{.name = "GNUSparseFile.0/" + name, .contents = stored};
  entry.pax_records = {{"GNU.sparse.major", "1"},
                       {"GNU.sparse.minor", "0"},
                       {"GNU.sparse.name", name},
                       {"GNU.sparse.realsize", std::to_string(real_bytes)}};
  return add(entry);
}

tar_place tar_writer::add_global_pax(const std::vector<std::pair<std::string, std::string>>& records) {
  const std::uint64_t offset = bytes_.size();
  std::string contents;
  for (const auto& [key, value] : records) contents += pax_record(key, value);
  add_extension('g', "PaxHeaders/global", contents);
  return {.header_offset = offset, .data_offset = offset + block_bytes, .data_bytes = contents.size()};
}

void tar_writer::add_raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

void tar_writer::add_padded(std::span<const std::byte> contents) {
  add_raw(contents);
  bytes_.resize(bytes_.size() + (block_bytes - contents.size() % block_bytes) % block_bytes);
}

std::vector<std::byte> tar_writer::finish(std::size_t record_blocks) {
  bytes_.resize(bytes_.size() + 2 * block_bytes);
  const std::size_t record_bytes = std::max<std::size_t>(record_blocks, 1) * block_bytes;
  bytes_.resize((bytes_.size() + record_bytes - 1) / record_bytes * record_bytes);
  return std::exchange(bytes_, {});
}

}  // namespace leat::testing
