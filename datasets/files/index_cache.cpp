#include "datasets/files/index_cache.hpp"

#include "base/errno_words.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "io/files/read_error.hpp"
#include "io/remote/address.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>

#include <sys/mman.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::array<char, 8> magic_text = {'l', 'e', 'a', 't', 'i', 'd', 'x', '\n'};
// File systems tell times apart by a tick of the kernel, 10 ms at the most; some of them by a second, which nobody can wait for.
constexpr std::int64_t clock_tick_ns = 20'000'000;
// Incremented whenever the meaning of an index changes.
constexpr std::uint64_t version = 4;

struct header {
  std::array<char, 8> magic = magic_text;
  std::uint64_t version = datasets::version;
  digest key;
  std::uint64_t content_bytes = 0;
  std::uint64_t reserved = 0;
  digest whole;  ///< of this with zeros here, and of the content
};
static_assert(sizeof(header) == 64);

digest digest_of(header head, std::span<const std::byte> content) {
  head.whole = {};
  hasher hash;
  hash.add(std::as_bytes(std::span(&head, 1)));
  hash.add(content);
  return hash.finish();
}

std::string default_directory() {
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/') {
    return str_cat(cache, "/leat");
  }
  if (const char* const home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return str_cat(home, "/.cache/leat");
  }
  return {};
}

}  // namespace

file_stamp stamp_of(const struct stat& status) noexcept {
  return {.size_bytes = static_cast<std::uint64_t>(status.st_size),
          .modified_ns = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
}

void add_paths(hasher& key, std::span<const std::string> paths) {
  std::error_code failure;
  const bool is_relative = std::any_of(paths.begin(), paths.end(), [](const std::string& each) {
    return !each.starts_with('/') && !io::is_address(each);
  });
  key.add(is_relative ? std::filesystem::current_path(failure).string() : std::string());
  for (const std::string& each : paths) key.add(each);
}

// --- sections ---------------------------------------------------------------------------------------------------------

void section_writer::append(std::span<const std::byte> more) {
  bytes_.insert(bytes_.end(), more.begin(), more.end());
  bytes_.resize((bytes_.size() + 7) / 8 * 8);
}
void section_writer::add(std::uint64_t number) { append(std::as_bytes(std::span(&number, 1))); }
void section_writer::add(std::string_view text) {
  add(text.size());
  append(std::as_bytes(std::span(text)));
}

void section_reader::refuse() { throw error(errc::format, "it ends early"); }
std::span<const std::byte> section_reader::take(std::uint64_t bytes) {
  if (bytes > rest_.size()) refuse();
  const std::span<const std::byte> taken = rest_.first(bytes);
  rest_ = rest_.subspan(std::min<std::uint64_t>(rest_.size(), (bytes + 7) / 8 * 8));
  return taken;
}
std::uint64_t section_reader::number() {
  std::uint64_t value = 0;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}
std::string_view section_reader::text() {
  const std::span<const std::byte> bytes = take(number());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// --- the file ---------------------------------------------------------------------------------------------------------

mapped_index::~mapped_index() { ::munmap(const_cast<std::byte*>(data_), bytes_); }
std::span<const std::byte> mapped_index::content() const noexcept {
  return std::span(data_, bytes_).subspan(sizeof(header));
}

index_cache::index_cache(const index_options& options, std::string source, const digest& key, std::uint64_t least)
    : use_(options.use),
      is_named_(!options.directory.empty()),
      least_(least),
      source_(std::move(source)),
      key_(key),
      began_ns_(std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count()),
      on_report_(options.on_report) {
  if (use_ == index_use::off) {
    why_ = "it was not asked for";
    return;
  }
  const std::string directory = is_named_ ? options.directory : default_directory();
  if (directory.empty()) {
    why_ = "neither XDG_CACHE_HOME nor HOME names a place for it";
  } else {
    path_ = str_cat(directory, "/", key_.hex(), ".leatidx");
  }
}

bool index_cache::is_there() const {
  return !path_.empty() && use_ != index_use::rebuild && ::access(path_.c_str(), R_OK) == 0;
}

std::shared_ptr<const mapped_index> index_cache::find() {
  if (path_.empty()) return nullptr;
  if (use_ == index_use::rebuild) {
    why_ = "it was to be built anew";
    return nullptr;
  }
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    why_ = errno == ENOENT ? std::string("there was none") : str_cat(path_, ": ", errno_words(errno));
    return nullptr;
  }
  struct stat status{};
  const bool is_file = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const auto bytes = is_file ? static_cast<std::size_t>(status.st_size) : 0;
  void* const memory = bytes >= sizeof(header) ? ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  ::close(file);
  why_ = str_cat(path_, " was damaged");
  if (memory == MAP_FAILED) return nullptr;
  auto mapped = std::make_shared<const mapped_index>(static_cast<const std::byte*>(memory), bytes);
  header found;
  std::memcpy(&found, memory, sizeof found);
  if (found.magic != magic_text || found.key != key_) return nullptr;
  if (found.version != version) {
    why_ = str_cat(path_, " is of another version of leat");
    return nullptr;
  }
  if (found.content_bytes != bytes - sizeof(header) || found.whole != digest_of(found, mapped->content()))
    return nullptr;
  why_.clear();
  return mapped;
}

void index_cache::tell_used() const { tell(index_report::outcome::used, path_); }

void index_cache::write(std::uint64_t samples, std::span<const std::byte> content) {
  using outcome = index_report::outcome;
  if (use_ == index_use::off || path_.empty()) return tell(outcome::none, why_);
  if (!left_out_.empty()) return tell(outcome::none, left_out_);
  if (!is_written(samples)) {
    return tell(outcome::none, str_cat("the source has fewer than ", least_, " samples"));
  }
  if (newest_ns_ > began_ns_ - clock_tick_ns) {
    return tell(outcome::none, "the source has changed a moment ago, and may change again without a sign");
  }
  std::error_code failure;
  std::filesystem::create_directories(folder_of(path_), failure);
  if (failure) return tell(outcome::none, str_cat("cannot make ", folder_of(path_), ": ", failure.message()));
  header head;
  head.key = key_;
  head.content_bytes = content.size();
  head.whole = digest_of(head, content);
  unfinished_file file(path_);
  int problem = file.open();
  if (problem == EWOULDBLOCK) return tell(outcome::none, "another process is writing it");
  if (problem == 0) problem = file.write(std::as_bytes(std::span(&head, 1)));
  if (problem == 0) problem = file.write(content);
  // It need not survive a loss of power: the checksum detects that.
  if (problem == 0) problem = file.take_name(true);
  if (problem != 0) return tell(outcome::none, str_cat("cannot write ", path_, ": ", errno_words(problem)));
  tell(outcome::written, why_);
}

void index_cache::tell(index_report::outcome what, std::string why) const {
  if (on_report_) on_report_({.source = source_, .what = what, .why = std::move(why)});
}

}  // namespace leat::datasets
