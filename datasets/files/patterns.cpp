#include "datasets/files/patterns.hpp"

#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/store/registered_stores.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>

#include <sys/stat.h>

#include <glob.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

namespace leat::datasets {
namespace {

constexpr std::size_t names_max = 1'000'000;

struct brace_group {
  std::size_t open;
  std::size_t close;
  std::vector<std::size_t> commas;  // Of this level only.
};

// The first group that means something: {a,b} or {1..3}. "{x}" alone is text, as in a shell.
std::optional<brace_group> first_group(std::string_view text, std::size_t from);

std::vector<std::string> range_values(std::string_view inside, std::string_view whole);

std::optional<std::size_t> matching_close(std::string_view text, std::size_t open, std::vector<std::size_t>& commas) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}') {
      if (--depth == 0) return i;
    } else if (text[i] == ',' && depth == 1) {
      commas.push_back(i);
    }
  }
  return std::nullopt;
}

std::optional<brace_group> first_group(std::string_view text, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      continue;
    }
    if (text[i] != '{') continue;
    brace_group group{i, 0, {}};
    const std::optional<std::size_t> close = matching_close(text, i, group.commas);
    if (!close) {
      throw error(errc::usage,
                  str_cat("the brace at column ", i + 1, " of '", text,
                          "' is not closed; write a-{000..127}.tar or {a,b}, or \\{ for a brace that is part "
                          "of the name"));
    }
    group.close = *close;
    if (!group.commas.empty() || !range_values(text.substr(i + 1, *close - i - 1), text).empty()) return group;
  }
  return std::nullopt;
}

std::optional<std::int64_t> to_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string padded(std::int64_t value, std::size_t width) {
  std::string digits = str_cat(value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value));
  const std::size_t sign = value < 0 ? 1 : 0;
  if (digits.size() + sign < width) digits.insert(0, width - sign - digits.size(), '0');
  return value < 0 ? "-" + digits : digits;
}

bool has_leading_zero(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0';
}

// {003..000} is mostly a slip: shards in falling order are hardly ever wanted.
[[noreturn]] void refuse_falling(std::string_view whole, std::string_view first, std::string_view last,
                                 std::string_view step) {
  throw error(errc::usage,
              str_cat("'", whole, "' counts down; did you mean {", last, "..", first, step.empty() ? "" : "..", step,
                      "}? To count down write {", first, "..", last, "..-", step.empty() ? "1" : step, "}"));
}

// The values of "1..3", "000..127", "a..e", "0..10..5", "3..0..-1"; none where the text is no range.
std::vector<std::string> range_values(std::string_view inside, std::string_view whole) {
  const std::size_t first_dots = inside.find("..");
  if (first_dots == std::string_view::npos) return {};
  const std::string_view first = inside.substr(0, first_dots);
  std::string_view last = inside.substr(first_dots + 2);
  std::int64_t step = 1;
  std::string_view step_text;
  if (const std::size_t more_dots = last.find(".."); more_dots != std::string_view::npos) {
    const std::optional<std::int64_t> given = to_number(last.substr(more_dots + 2));
    if (!given || *given <= -1'000'000'000 || *given >= 1'000'000'000) return {};
    step = std::max<std::int64_t>(1, *given < 0 ? -*given : *given);
    step_text = last.substr(more_dots + 2);
    last = last.substr(0, more_dots);
  }
  const auto is_letter = [](std::string_view text) {
    return text.size() == 1 && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
  };
  const bool letters = is_letter(first) && is_letter(last);
  const std::optional<std::int64_t> from = letters ? std::optional<std::int64_t>(first[0]) : to_number(first);
  const std::optional<std::int64_t> to = letters ? std::optional<std::int64_t>(last[0]) : to_number(last);
  if (!from || !to) return {};
  if (*from > *to && !step_text.starts_with('-')) refuse_falling(whole, first, last, step_text);
  const auto low = static_cast<std::uint64_t>(std::min(*from, *to));
  const std::uint64_t steps =
      (static_cast<std::uint64_t>(std::max(*from, *to)) - low) / static_cast<std::uint64_t>(step);
  if (steps >= names_max) {
    throw error(errc::usage, str_cat("the range {", inside, "} has more than the ", names_max,
                                     " values that one pattern may stand for"));
  }
  const std::size_t width =
      !letters && (has_leading_zero(first) || has_leading_zero(last)) ? std::max(first.size(), last.size()) : 0;
  std::vector<std::string> values;
  values.reserve(steps + 1);
  for (std::uint64_t i = 0; i <= steps; ++i) {
    const std::int64_t moved = static_cast<std::int64_t>(i) * step;
    const std::int64_t value = *from < *to ? *from + moved : *from - moved;
    values.push_back(letters ? std::string(1, static_cast<char>(value)) : padded(value, width));
  }
  return values;
}

std::string without_backslashes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() &&
        (text[i + 1] == '{' || text[i + 1] == '}' || text[i + 1] == ',' || text[i + 1] == '\\')) {
      ++i;
    }
    plain.push_back(text[i]);
  }
  return plain;
}

void append_expanded(std::string_view text, std::string_view whole, std::vector<std::string>& out, int depth) {
  const std::optional<brace_group> group = first_group(text, 0);
  if (!group) {
    if (out.size() >= names_max) {
      throw error(errc::usage, str_cat("'", whole, "' stands for more than ", names_max, " names"));
    }
    out.emplace_back(text);
    return;
  }
  // Each group is one level, and a nested one adds another: more than this is no list of shards.
  if (depth > 64) throw error(errc::usage, str_cat("'", whole, "' has more than 64 braces"));
  const std::string_view inside = text.substr(group->open + 1, group->close - group->open - 1);
  std::vector<std::string> values;
  if (group->commas.empty()) {
    values = range_values(inside, whole);
  } else {
    std::size_t begin = group->open + 1;
    for (const std::size_t comma : group->commas) {
      values.emplace_back(text.substr(begin, comma - begin));
      begin = comma + 1;
    }
    values.emplace_back(text.substr(begin, group->close - begin));
  }
  for (const std::string& value : values) {
    append_expanded(str_cat(text.substr(0, group->open), value, text.substr(group->close + 1)), whole, out, depth + 1);
  }
}

bool exists(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0;
}

// What the folder of a pattern holds, for a message that nothing matches.
std::string what_is_there(const std::string& pattern) {
  namespace fs = std::filesystem;
  const std::size_t slash = pattern.rfind('/', pattern.find_first_of("*?["));
  const std::string folder = slash == std::string::npos ? "." : pattern.substr(0, std::max<std::size_t>(slash, 1));
  const std::string ending = fs::path(pattern).extension().string();
  std::error_code failure;
  std::uint64_t entries = 0;
  std::string example;  // A name with the pattern's ending, if there is one.
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    ++entries;
    const std::string name = entry->path().filename().string();
    const bool like = name.ends_with(ending);
    const bool better = example.empty() || (like && !example.ends_with(ending));
    if (better || (like == example.ends_with(ending) && name < example)) example = name;
  }
  if (failure) return str_cat("the folder '", folder, "' cannot be read: ", failure.message());
  if (entries == 0) return str_cat("the folder '", folder, "' is empty");
  return str_cat("the folder '", folder, "' has ", entries, entries == 1 ? " entry, '" : " entries, for example '",
                 example, "'");
}

std::vector<std::string> glob_matches(const std::string& pattern) {
  struct matches {
    glob_t found{};
    ~matches() { ::globfree(&found); }
  } result;
  // Sorted by us: glob(3) would sort as the locale says.
  const int outcome = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &result.found);
  if (outcome == GLOB_NOSPACE) throw std::bad_alloc();
  if (outcome != 0 || result.found.gl_pathc == 0) {
    throw error(errc::not_found, str_cat("no file matches '", pattern, "': ", what_is_there(pattern)));
  }
  std::vector<std::string> paths(result.found.gl_pathv, result.found.gl_pathv + result.found.gl_pathc);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::vector<std::string> expand_braces(std::string_view pattern) {
  std::vector<std::string> names;
  append_expanded(pattern, pattern, names, 0);
  for (std::string& name : names) name = without_backslashes(name);
  return names;
}

bool has_braces(std::string_view pattern) { return first_group(pattern, 0).has_value(); }

void refuse_address(std::string_view source) {
  const bool is_pipe = source.starts_with("pipe:");
  const std::size_t colon = source.find("://");
  if (!is_pipe && (colon == std::string_view::npos || colon == 0)) return;
  const std::string_view scheme = source.substr(0, colon);
  if (!is_pipe && !io::is_scheme(scheme)) return;
  const std::string_view remedy =
      is_pipe          ? "let the command write a file, and give that"
      : scheme == "hf" ? "download it first, as with `hf download OWNER/NAME --repo-type dataset --local-dir FOLDER`, "
                         "and give what is in FOLDER"
      : scheme == "s3" ? "leat::open() reads it; else copy it, as with `aws s3 sync`, and give the path"
      : scheme == "gs" ? "write s3:// and give the endpoint https://storage.googleapis.com and HMAC keys; or copy it "
                         "first, as with `gcloud storage cp -r`, and give the path"
      : scheme == "file" ? "leave 'file://' out"
      : scheme == "http" || scheme == "https"
          ? "leat::open() reads it; else download it, as with `curl -LO`, and give the path"
          : "copy or mount it, and give the path";
  const bool is_read = scheme == "s3" || scheme == "http" || scheme == "https";
  throw error(errc::unsupported,
              str_cat(is_pipe ? std::string(source) : io::redacted(source),
                      is_read ? ": this reads and writes local files only, so far; "
                              : ": leat reads local files, https:// and s3://, and stores that a program registers; ",
                      remedy));
}

std::vector<std::string> expand_paths(std::string_view pattern) {
  if (std::string literal(pattern); exists(literal)) return {literal};
  refuse_address(pattern);
  std::vector<std::string> paths;
  for (std::string& name : expand_braces(pattern)) {
    if (name.find_first_of("*?[") == std::string::npos || exists(name)) {
      paths.push_back(std::move(name));
      continue;
    }
    for (std::string& match : glob_matches(name)) paths.push_back(std::move(match));
  }
  return paths;
}

}  // namespace leat::datasets
