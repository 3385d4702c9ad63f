// Files without a format of their own: what their first bytes and the files beside them say.
#pragma once

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

class file_bytes;
class input_files;

/// The path with its extension replaced, or added where its last part has none.
[[nodiscard]] std::string with_extension(const std::string& path, std::string_view extension);
[[nodiscard]] bool file_exists(const std::string& path);
/// The same, for what would be taken for something that was never written.
///   throws   error where nobody can tell: a folder that may not be searched, symbolic links in a circle
[[nodiscard]] bool is_file_there(const std::string& path);
/// Whether the folder's index.json lists shards of MDS.
[[nodiscard]] bool is_mds(const input_files& files, const std::string& folder);
[[nodiscard]] bool is_folder(const std::string& path);
/// The files directly in a folder whose names have this ending, sorted by byte. None for a folder that cannot be read: the
/// function that opens it reports that.
[[nodiscard]] std::vector<std::string> files_in(const std::string& folder, std::string_view ending);

/// What to do about a file that could be tokens of this type, in words.
using token_advice = std::string (*)(dtype type);

/// For the error about a .bin that nothing describes: what it might be, and what to do.
[[nodiscard]] std::string looks_like(const std::string& path, token_advice advice);
/// The same for a program: leat::open_tokens().
[[nodiscard]] std::string looks_like(const std::string& path);
[[nodiscard]] std::string looks_like(const file_bytes& file);

/// "magic number 20240521, version 1", of a file whose header has llm.c's form but other numbers: a date, a small
/// number, as many tokens as the file has room for, and zeros. Nothing for other files.
///   start   its first llmc_header_bytes
[[nodiscard]] std::optional<std::string> almost_llmc(std::span<const std::byte> start, std::uint64_t file_bytes);

/// Whether a file that begins so holds numbers of 4 bytes, which are small: as tokens of u16 every other one would be 0.
[[nodiscard]] bool look_like_u32(std::span<const std::byte> start, std::uint64_t file_bytes);

// Of a file of tokens that llm.c wrote: 256 numbers of 32 bits, and the tokens.
inline constexpr std::uint32_t llmc_magic_u16 = 20240520;
inline constexpr std::uint32_t llmc_magic_u32 = 20240801;
inline constexpr std::uint32_t llmc_magic_eval = 20240522;
inline constexpr std::uint64_t llmc_header_bytes = 1024;

// Of a Megatron index.
inline constexpr std::string_view megatron_magic("MMIDIDX\0\0", 9);

}  // namespace leat::datasets
