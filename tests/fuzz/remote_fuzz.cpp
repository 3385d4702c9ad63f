// What a server, a profile file and a cache on the drive may hold: the first byte says which of them the rest is. Whatever it is, it is refused or
// read within its bounds.
#include "io/remote/address.hpp"
#include "io/remote/block_cache.hpp"
#include "io/remote/http_head.hpp"
#include "io/remote/renewed_credentials.hpp"
#include "io/remote/s3.hpp"
#include "io/remote/s3_listing.hpp"

#include <leat/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::io {
namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

/// A folder of this process, in memory where there is some.
const std::string& folder() {
  static const std::string made = [] {
    std::string name = std::filesystem::exists("/dev/shm") ? "/dev/shm/leat-fuzz-XXXXXX" : "/tmp/leat-fuzz-XXXXXX";
    demand(::mkdtemp(name.data()) != nullptr);
    return name;
  }();
  return made;
}
void write(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

void read_head(std::string_view bytes) {
  // However it comes in pieces, its end is the same.
  const std::optional<std::size_t> end = http_head_end(bytes);
  const std::size_t half = bytes.size() / 2;
  const std::optional<std::size_t> in_half = http_head_end(bytes.substr(0, half));
  demand((in_half ? in_half : http_head_end(bytes, half)) == end);
  if (!end) return;
  demand(*end <= bytes.size());
  std::string refusal;
  const std::optional<http_head> head = parse_http_head(bytes.substr(0, *end), refusal);
  demand(head || !refusal.empty());
  if (head) demand(head->reason.size() <= 100);
}

void read_range(std::string_view text) {
  const std::optional<content_range> range = parse_content_range(text);
  if (!range || !range->is_satisfied) return;
  demand(range->first <= range->last);
  if (range->total) demand(range->last < *range->total);
}

void read_text(std::string_view bytes) {
  constexpr std::size_t bytes_max = 4096;
  http_text whole(bytes_max);
  const http_text::state at_once = whole.feed(bytes);
  http_text pieces(bytes_max);
  http_text::state now = http_text::state::more;
  for (std::size_t at = 0; at < bytes.size() && now == http_text::state::more; at += 7) {
    now = pieces.feed(bytes.substr(at, 7));
  }
  if (now != http_text::state::whole || at_once != http_text::state::whole) return;
  const std::string text = pieces.take();
  demand(text.size() <= bytes_max && text == whole.take());
}

// Profiles may name a program, which is run, and a file that is sent: not here. A role is asked for at an address that keys may not go to, and
// so not at all.
void read_profile(std::string_view text) {
  for (const char* const lends : {"credential_process", "web_identity"}) {
    if (text.find(lends) != std::string_view::npos) return;
  }
  const std::string path = folder() + "/profile";
  write(path, text);
  const environment nothing_else = [&](const char* name) {
    const std::string_view asked = name;
    return asked == "AWS_SHARED_CREDENTIALS_FILE"      ? path
           : asked == "AWS_CONFIG_FILE"                ? path
           : asked == "AWS_EC2_METADATA_DISABLED"      ? std::string("true")
           : asked == "AWS_ENDPOINT_URL_STS"           ? std::string("http://sts.invalid/")
           : asked == "AWS_PROFILE" && text.size() % 2 ? std::string("b")
                                                       : std::string();
  };
  try {
    const s3_access found = find_s3_access({}, nothing_else);
    demand(!found.keys.id.empty() && !found.keys.secret.empty());
  } catch (const error&) {  // Said in words, which is what it is for.
  }
}

// An index that is there, of an object of 40,000 bytes in blocks of 16 KiB, written over from its beginning.
void read_index(std::string_view over) {
  constexpr std::uint64_t size_bytes = 40'000;
  const block_cache_options options{.directory = folder() + "/cache", .bytes_max = 1 << 20, .block_bytes = 16 << 10};
  static const std::string sound = [&] {
    std::string refusal;
    const auto cache = block_cache::open(options, refusal);
    demand(cache != nullptr);
    demand(cache->object("a", "https://host/a", size_bytes, refusal) != nullptr);
    std::ifstream in(options.directory + "/a.index", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  std::string index = sound;
  // Its header's first bytes are what matters, then the states behind the page that it takes.
  const std::size_t head = std::min<std::size_t>(over.size(), 64);
  std::copy_n(over.begin(), head, index.begin());
  std::copy(over.begin() + static_cast<std::ptrdiff_t>(head),
            over.begin() + static_cast<std::ptrdiff_t>(std::min(over.size(), head + index.size() - 4096)),
            index.begin() + 4096);
  write(options.directory + "/a.index", index);
  std::string refusal;
  const auto cache = block_cache::open(options, refusal);
  demand(cache != nullptr);
  for (const cache_entry& each : cache->entries()) static_cast<void>(cache->verify(each));
  const auto object = cache->object("a", "https://host/a", size_bytes, refusal);
  demand(object != nullptr && object->size_bytes() == size_bytes);
  for (std::uint32_t block = 0; block < object->blocks(); ++block) {
    demand(!object->is_present(block));  // Nothing was written: no sum is right.
    demand(object->claim(block) != cached_object::state::present);
    demand(object->bytes_of(block) <= object->block_bytes());
  }
}

void read_temporary_credentials(std::string_view text) {
  for (const auto& parse : {+[](std::string_view json) { return parse_temporary_credentials(json, "AccessKeyId"); },
                            +[](std::string_view xml) { return parse_role_keys(xml); }}) {
    try {
      const temporary_credentials renewed = parse(text);
      demand(!renewed.keys.id.empty() && !renewed.keys.secret.empty());
      demand(renewed.keys.token.find('\n') == std::string::npos);
    } catch (const error&) {  // As above.
    }
  }
  static_cast<void>(parse_time(std::string(text)));
}

void read_address(std::string_view text) {
  try {
    const address at = parse_address(text);
    demand(at.target.starts_with('/') && at.shown.find('?') == std::string::npos);
    const std::string once = unsigned_target(at.target);
    demand(once.size() <= at.target.size() && unsigned_target(once).size() <= once.size());
    static_cast<void>(follow(at, text));
  } catch (const error&) {  // As above.
  }
}

}  // namespace
}  // namespace leat::io

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat::io;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 9) {
    case 0:
      read_head(rest);
      break;
    case 1:
      read_range(rest);
      break;
    case 2:
      read_text(rest);
      break;
    case 3:
      if (const auto page = parse_s3_page(rest)) static_cast<void>(page->objects.size() + page->folders.size());
      break;
    case 4:
      for (const char letter : s3_error_code(rest))
        demand((letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') ||
               (letter >= '0' && letter <= '9'));
      static_cast<void>(parse_http_date(std::string(rest)));
      break;
    case 5:
      read_profile(rest);
      break;
    case 6:
      read_index(rest);
      break;
    case 7:
      read_temporary_credentials(rest);
      break;
    default:
      read_address(rest);
      break;
  }
  return 0;
}
