#include "io/remote/object_cache.hpp"

#include "base/hex.hpp"
#include "base/option_words.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "io/remote/http_client.hpp"
#include "io/remote/remote_source.hpp"
#include "io/ring/file_set.hpp"

#include <leat/error.hpp>

#include <charconv>
#include <cstdlib>
#include <utility>

namespace leat::io {
namespace {

std::string of_environment(const char* name) {
  const char* const found = std::getenv(name);
  return found == nullptr ? std::string() : found;
}

// "200GiB", "200GB", "200000000".
std::uint64_t size_of(const std::string& text) {
  constexpr std::pair<std::string_view, std::uint64_t> units[] = {{"", 1},
                                                                  {"KiB", std::uint64_t{1} << 10},
                                                                  {"MiB", std::uint64_t{1} << 20},
                                                                  {"GiB", std::uint64_t{1} << 30},
                                                                  {"TiB", std::uint64_t{1} << 40},
                                                                  {"KB", 1'000},
                                                                  {"MB", 1'000'000},
                                                                  {"GB", 1'000'000'000},
                                                                  {"TB", 1'000'000'000'000}};
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc() && number > 0) {
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    for (const auto& [name, bytes] : units) {
      if (name == unit && number <= (std::uint64_t{1} << 60) / bytes) return number * bytes;
    }
  }
  throw error(errc::usage, str_cat("LEAT_CACHE_BYTES is '", text, "', which is no size, as 200GiB is"));
}

// Names reach the disk as a digest only: '../', NUL and %2f are nothing special there.
std::string file_of(const remote_object& object, const object_facts& facts) {
  const std::string whole =
      str_cat(object.where.tls ? "https\n" : "http\n", object.where.host, "\n", object.where.port, "\n",
              unsigned_target(object.where.target), "\n", facts.size_bytes, "\n", facts.version(object.where));
  sha256_hasher hash;
  hash.add(whole);
  return to_hex(hash.finish());
}

}  // namespace

block_cache_options cache_options_of(const remote_options& options) {
  block_cache_options found{.directory = options.cache.empty() ? of_environment("LEAT_CACHE") : options.cache,
                            .bytes_max = options.cache_bytes,
                            .block_bytes = options.cache_block_bytes};
  if (found.directory.empty()) {
    if (options.cache_bytes != 0)
      throw error(errc::usage,
                  str_cat(spelled(option_id::cache_bytes), " was given, and no folder: give ",
                          spelled(option_id::cache), " too"),
                  option_id::cache_bytes);
    return found;
  }
  const std::string size = of_environment("LEAT_CACHE_BYTES");
  if (found.bytes_max == 0 && !size.empty()) found.bytes_max = size_of(size);
  if (found.bytes_max == 0) {
    throw error(errc::usage,
                str_cat(found.directory, ": how many bytes the cache may take was not said; give ",
                        spelled(option_id::cache_bytes)),
                option_id::cache_bytes);
  }
  constexpr std::uint32_t block_bytes_max = 64U << 20;
  if (found.block_bytes == 0 || found.block_bytes % cache_page_bytes != 0 || found.block_bytes > block_bytes_max) {
    throw error(errc::usage,
                str_cat(spelled(option_id::cache_block_bytes), " is ", found.block_bytes,
                        "; it is a multiple of 4096, and 64 MiB at the most"),
                option_id::cache_block_bytes);
  }
  return found;
}

// An index stays open for each object. A run has a set to train and one to validate: half of the descriptors are left for others.
object_cache::object_cache(const block_cache_options& options, std::size_t objects)
    : bytes_max_(options.bytes_max), objects_max_(descriptors_allowed() / 4), objects_(objects), left_out_(objects) {
  std::string refusal;
  cache_ = block_cache::share(options, refusal);
  if (!cache_) turn_off(refusal);
}
object_cache::~object_cache() = default;

std::string object_cache::why_off() const {
  const mutex_lock lock(mutex_);
  return why_;
}
void object_cache::turn_off(const std::string& why) {
  const mutex_lock lock(mutex_);
  if (why_.empty()) why_ = why;
  is_off_.store(true, std::memory_order_relaxed);
}

std::string object_cache::why_left_out() const {
  const mutex_lock lock(mutex_);
  return left_out_count_ == 0
             ? ""
             : str_cat(left_out_count_, " of ", objects_.size(), " objects are not kept: ", why_left_out_);
}
void object_cache::leave_out(std::uint32_t number, const std::string& why) {
  if (left_out_[number].exchange(true, std::memory_order_relaxed)) return;
  if (left_out_count_++ == 0) why_left_out_ = why;
}
void object_cache::have_failed(std::uint32_t number, const std::string& why, int failure) {
  if (concerns_all_objects(failure)) return turn_off(why);
  const mutex_lock lock(mutex_);
  leave_out(number, why);
}

cached_object* object_cache::open(std::uint32_t number, const remote_object& object, const object_facts& facts) {
  if (is_left_out(number)) return nullptr;
  if (cached_object* const known = find(number)) return known;
  if (!cache_ || is_off()) return nullptr;
  std::string refusal;
  int failure = 0;
  {
    const mutex_lock lock(mutex_);
    if (cached_object* const known = find(number)) return known;
    if (is_left_out(number)) return nullptr;
    const std::string& name = object.where.shown;
    const std::uint64_t bytes = facts.size_bytes;
    if (bytes == 0 || facts.version(object.where) == 0) {
      leave_out(
          number,
          str_cat(name, bytes == 0
                            ? ": it is empty"
                            : ": the server gives it no ETag of each byte, and no Last-Modified of some seconds ago"));
      return nullptr;
    }
    if (!cache_->may_hold(bytes)) {
      leave_out(number, str_cat(name, ": with its ", bytes_text(bytes), " it is too large for this cache"));
      return nullptr;
    }
    if (held_.size() >= objects_max_) {
      leave_out(number,
                str_cat("there are more than ", objects_max_, " of them; `ulimit -n` says how many files may be open"));
      return nullptr;
    }
    if (std::shared_ptr<cached_object> made = cache_->object(file_of(object, facts), name, bytes, refusal, failure)) {
      objects_[number].store(made.get(), std::memory_order_release);
      held_.push_back(std::move(made));
      return find(number);
    }
  }
  have_failed(number, refusal, failure);
  return nullptr;
}

}  // namespace leat::io
