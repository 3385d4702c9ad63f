#include "tools/joined_traces.hpp"

#include "base/file_start.hpp"
#include "base/text.hpp"
#include "datasets/codecs/deflate.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace leat::tools {
namespace {

// As stages/observe/timeline.cpp writes it: the events are lines, so that they are joined as they are.
constexpr std::string_view begins = "{\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":";
constexpr std::string_view before_events = ",\"traceEvents\":[\n";
constexpr std::string_view first_event = "{\"pid\":";
constexpr std::string_view ends = "\n]}\n";

struct trace {
  std::uint64_t base_ns = 0;
  std::uint64_t rank = 0;
  std::string_view events;
};

std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<trace> parse(std::string_view text) {
  const std::string_view whole = text;
  trace made;
  if (!text.ends_with(ends) || !take(text, begins)) return std::nullopt;
  const std::optional<std::uint64_t> base_ns = take_number(text);
  if (!base_ns || !take(text, before_events)) return std::nullopt;
  made.base_ns = *base_ns;
  made.events = text.substr(0, text.size() - ends.size());
  if (!take(text, first_event)) return std::nullopt;
  const std::optional<std::uint64_t> rank = take_number(text);
  if (!rank) return std::nullopt;
  made.rank = *rank;
  // Two of them in one file, or one with a hole in it, begin and end as one does.
  if (!nlohmann::json::accept(whole)) return std::nullopt;
  return made;
}

}  // namespace

std::string join_traces(std::span<const trace_file> files) {
  std::string text;
  std::map<std::uint64_t, const std::string*> ranks;
  std::optional<std::uint64_t> base_ns;
  for (const trace_file& each : files) {
    const std::optional<trace> one = parse(each.text);
    if (!one) {
      throw error(errc::usage, str_cat(each.path,
                                       " is no trace that leat has written, or not all of one; give files of "
                                       "`leat epoch --trace` or write_timeline()"));
    }
    if (const auto [there, is_new] = ranks.emplace(one->rank, &each.path); !is_new) {
      throw error(errc::usage, str_cat(each.path, " and ", *there->second, " are both of rank ", one->rank,
                                       "; give one file of each rank"));
    }
    // A quarter of a year.
    if (base_ns && *base_ns != one->base_ns) {
      throw error(errc::usage, str_cat(each.path, " and ", files.front().path,
                                       " count from different moments, so that they are not of one run"));
    }
    if (!base_ns) str_append(text, begins, one->base_ns, before_events);
    base_ns = one->base_ns;
    if (ranks.size() > 1) text += ",\n";
    text += one->events;
  }
  text += ends;
  return text;
}

bool is_file_but_no_trace(const std::string& path) {
  if (look_at_start(path, begins) != file_start::other) return false;
  // Of the packed ones by what they hold. RFC 1952: ten bytes come first, the fourth is 0 where no name follows, as in ours.
  constexpr std::size_t gzip_head_bytes = 10;
  constexpr std::size_t packed_bytes = 512;
  const std::string packed = first_bytes(path, packed_bytes);
  using namespace std::string_view_literals;
  if (!packed.starts_with("\x1f\x8b\x08\0"sv) || packed.size() <= gzip_head_bytes) return true;
  const std::vector<std::byte> start =
      datasets::inflate_start(std::as_bytes(std::span(packed)).subspan(gzip_head_bytes), begins.size());
  return std::string_view(reinterpret_cast<const char*>(start.data()), start.size()) != begins;
}

std::string unpacked(const std::string& path, std::string bytes) {
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  // The last four bytes of a member say how large it is.
  std::size_t size = 0;
  for (std::size_t i = 1; i <= 4 && bytes.size() >= 18; ++i) {
    size = size << 8U | static_cast<unsigned char>(bytes[bytes.size() - i]);
  }
  std::string text;
  // No more than deflate can make of so many bytes: a damaged size takes no memory.
  const bool is_possible = size / 1032 <= bytes.size();
  if (is_possible) text.resize(size);
  const std::optional<std::string> wrong =
      is_possible ? datasets::inflate(datasets::deflate_wrapper::gzip, std::as_bytes(std::span(bytes)),
                                      std::as_writable_bytes(std::span(text)))
                  : "it says an impossible size";
  if (wrong) throw error(errc::usage, str_cat(path, ": this file of gzip is damaged: ", *wrong));
  return text;
}

}  // namespace leat::tools
