#include "datasets/files/raw_files.hpp"

#include "base/text.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/files/path_error.hpp"

#include <leat/error.hpp>
#include <leat/open_tokens.hpp>

#include <sys/stat.h>

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

namespace leat::datasets {
std::string with_extension(const std::string& path, std::string_view extension) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t dot = path.rfind('.');
  const bool has_one = dot != std::string::npos && dot > name;
  return str_cat(path.substr(0, has_one ? dot : path.size()), extension);
}

bool file_exists(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_file_there(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) return S_ISREG(status.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw path_error(errno, path, "check the folder");
}

bool is_folder(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::vector<std::string> files_in(const std::string& folder, std::string_view ending) {
  struct closer {
    void operator()(DIR* stream) const noexcept { ::closedir(stream); }
  };
  const std::unique_ptr<DIR, closer> stream(::opendir(folder.c_str()));
  std::vector<std::string> files;
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(ending) || name.starts_with('.')) continue;
    std::string path = folder.ends_with('/') ? str_cat(folder, name) : str_cat(folder, "/", name);
    if (!is_folder(path)) files.push_back(std::move(path));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// GPT-2 has 50,257 tokens and common ones have small numbers: those of u32 are nearly all 0 in the upper half.
bool look_like_u32(std::span<const std::byte> start, std::uint64_t file_bytes) {
  if (file_bytes % 4 != 0) return false;
  const std::size_t words = start.size() / 4;
  std::size_t small_low = 0;
  std::size_t small_high = 0;
  for (std::size_t i = 0; i < words; ++i) {
    small_low += number_at<std::uint16_t>(start, i * 4) < 4 ? 1 : 0;
    small_high += number_at<std::uint16_t>(start, i * 4 + 2) < 4 ? 1 : 0;
  }
  return small_high > words * 9 / 10 && small_low <= words * 9 / 10;
}

std::optional<std::string> almost_llmc(std::span<const std::byte> start, std::uint64_t file_bytes) {
  constexpr std::uint32_t version_max = 255;
  if (start.size() < llmc_header_bytes) return std::nullopt;
  const auto magic = number_at<std::uint32_t>(start, 0);
  const auto version = number_at<std::uint32_t>(start, 4);
  const auto tokens = number_at<std::uint32_t>(start, 8);
  const auto rest = start.subspan(12, llmc_header_bytes - 12);
  if (magic < 20'200'000 || magic > 20'991'231 || version > version_max ||
      tokens > (file_bytes - llmc_header_bytes) / sizeof(std::uint16_t) ||
      std::any_of(rest.begin(), rest.end(), [](std::byte each) { return each != std::byte{0}; })) {
    return std::nullopt;
  }
  return str_cat("magic number ", magic, ", version ", version);
}

namespace {

std::string looks_like(const file_bytes& file, token_advice advice) {
  const std::string& path = file.path();
  const std::uint64_t size = file.size();
  std::vector<std::byte> start;
  try {
    start = file.read(0, std::uint64_t{4} << 10);
  } catch (const error&) {
    return "it cannot be read";
  }
  const std::string records = str_cat("records are described in ", with_extension(path, ".json"));
  if (size == 0) return "it is empty";
  if (const auto header = almost_llmc(start, size)) {
    return str_cat("it begins as llm.c's files of tokens do, with ", *header, ", which leat does not know; ", records);
  }
  if (look_like_u32(start, size)) {
    return str_cat("it looks like numbers of 4 bytes, as tokens of u32 (", size / 4, " of them): ", advice(dtype::u32),
                   "; ", records);
  }
  if (size % 2 == 0) {
    return str_cat("it could be tokens of u16 (", size / 2, " of them), as nanoGPT has: ", advice(dtype::u16), "; ",
                   records);
  }
  return str_cat("its ", size, " bytes are an odd number, so no tokens of u16; ", records);
}

std::string advice_to_programs(dtype type) {
  return str_cat("leat::open_tokens() opens it", type == dtype::u32 ? " with {.type = leat::dtype::u32}" : "");
}

}  // namespace

std::string looks_like(const file_bytes& file) { return looks_like(file, advice_to_programs); }
std::string looks_like(const std::string& path) { return looks_like(path, advice_to_programs); }

std::string looks_like(const std::string& path, token_advice advice) {
  std::optional<local_file> file;
  try {
    file.emplace(path);
  } catch (const error&) {
    return "it cannot be read";
  }
  return looks_like(*file, advice);
}

}  // namespace leat::datasets
