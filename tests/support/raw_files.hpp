// Arrays, archives, records and tokens as other programs write them, byte by byte: what the formats say, not what we read.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::testing {

/// A number's bytes, least significant first.
template <class T>
std::string little(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes;
  for (const T& value : values) bytes += little(value);
  return bytes;
}

/// 0, 1, 2 ...
template <class T>
std::vector<T> counting(std::size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T{});
  return values;
}

inline std::string write_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  return path.string();
}
inline std::string write_file(const std::filesystem::path& path, const std::vector<std::uint8_t>& bytes) {
  return write_file(path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

/// A whole file.
inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream from(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

/// As numpy.save() writes it: the header ends on a multiple of 64.
inline std::string npy_text(const std::string& dict, std::string_view data, int version = 1) {
  const std::size_t prefix = version == 1 ? 10 : 12;
  std::string padded = dict;
  while ((prefix + padded.size() + 1) % 64 != 0) padded += ' ';
  padded += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  file += version == 1 ? little(static_cast<std::uint16_t>(padded.size()))
                       : little(static_cast<std::uint32_t>(padded.size()));
  return file + padded + std::string(data);
}

inline std::string npy_dict(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': (" + shape +
         "), }";
}

/// As zip has it, bit by bit.
inline std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t sum = ~std::uint32_t{0};
  for (const char each : bytes) {
    sum ^= static_cast<unsigned char>(each);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xEDB88320U : 0U);
  }
  return ~sum;
}

/// A zip archive of stored members. `zip64`: sizes and offsets stand in the extra fields, as for members of 4 GiB.
inline std::string zip_text(const std::vector<std::pair<std::string, std::string>>& members, bool zip64 = false,
                            std::uint16_t method = 0) {
  std::string file;
  std::string directory;
  for (const auto& [name, content] : members) {
    const std::uint64_t offset = file.size();
    const std::uint64_t bytes = content.size();
    const std::uint32_t shown = zip64 ? 0xFFFFFFFFU : static_cast<std::uint32_t>(bytes);
    const std::string local_extra =
        zip64 ? little<std::uint16_t>(1) + little<std::uint16_t>(16) + little(bytes) + little(bytes) : "";
    file += little<std::uint32_t>(0x04034b50) + little<std::uint16_t>(45) + little<std::uint16_t>(0) + little(method) +
            little<std::uint32_t>(0) + little(crc32_of(content)) + little(shown) + little(shown) +
            little(static_cast<std::uint16_t>(name.size())) + little(static_cast<std::uint16_t>(local_extra.size())) +
            name + local_extra + content;
    const std::string extra =
        zip64 ? little<std::uint16_t>(1) + little<std::uint16_t>(24) + little(bytes) + little(bytes) + little(offset)
              : "";
    directory += little<std::uint32_t>(0x02014b50) + little<std::uint16_t>(45) + little<std::uint16_t>(45) +
                 little<std::uint16_t>(0) + little(method) + little<std::uint32_t>(0) + little(crc32_of(content)) +
                 little(shown) + little(shown) + little(static_cast<std::uint16_t>(name.size())) +
                 little(static_cast<std::uint16_t>(extra.size())) + little<std::uint16_t>(0) +
                 little<std::uint16_t>(0) + little<std::uint16_t>(0) + little<std::uint32_t>(0) +
                 little(zip64 ? 0xFFFFFFFFU : static_cast<std::uint32_t>(offset)) + name + extra;
  }
  const std::uint64_t directory_offset = file.size();
  file += directory;
  const std::uint64_t count = members.size();
  const std::uint64_t directory_bytes = directory.size();
  if (zip64) {
    const std::uint64_t record = file.size();
    file += little<std::uint32_t>(0x06064b50) + little<std::uint64_t>(44) + little<std::uint16_t>(45) +
            little<std::uint16_t>(45) + little<std::uint32_t>(0) + little<std::uint32_t>(0) + little(count) +
            little(count) + little(directory_bytes) + little(directory_offset);
    file += little<std::uint32_t>(0x07064b50) + little<std::uint32_t>(0) + little(record) + little<std::uint32_t>(1);
  }
  file += little<std::uint32_t>(0x06054b50) + little<std::uint16_t>(0) + little<std::uint16_t>(0) +
          little(zip64 ? std::uint16_t{0xFFFF} : static_cast<std::uint16_t>(count)) +
          little(zip64 ? std::uint16_t{0xFFFF} : static_cast<std::uint16_t>(count)) +
          little(zip64 ? 0xFFFFFFFFU : static_cast<std::uint32_t>(directory_bytes)) +
          little(zip64 ? 0xFFFFFFFFU : static_cast<std::uint32_t>(directory_offset)) + little<std::uint16_t>(0);
  return file;
}

/// As llm.c's write_datafile() has it.
template <class T>
std::string llmc_text(const std::vector<T>& tokens) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4);
  std::array<std::int32_t, 256> header{};
  header[0] = sizeof(T) == 2 ? 20240520 : 20240801;
  header[1] = sizeof(T) == 2 ? 1 : 7;
  header[2] = static_cast<std::int32_t>(tokens.size());
  return std::string(reinterpret_cast<const char*>(header.data()), sizeof header) + bytes_of(tokens);
}

/// A Megatron index: `lengths` of the sequences, which lie side by side, and `borders`, the sequences that documents end at,
/// with a 0 in front.
inline std::string megatron_index(std::uint8_t code, std::uint64_t width, const std::vector<std::int32_t>& lengths,
                                  const std::vector<std::int64_t>& borders) {
  std::vector<std::int64_t> pointers;
  std::int64_t at = 0;
  for (const std::int32_t length : lengths) {
    pointers.push_back(at);
    at += length * static_cast<std::int64_t>(width);
  }
  return std::string("MMIDIDX\0\0", 9) + little<std::uint64_t>(1) + little(code) +
         little<std::uint64_t>(lengths.size()) + little<std::uint64_t>(borders.size()) + bytes_of(lengths) +
         bytes_of(pointers) + bytes_of(borders);
}

}  // namespace leat::testing
