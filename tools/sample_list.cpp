#include "tools/sample_list.hpp"

#include "base/file_start.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "tools/human.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

namespace leat::tools {
namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

// Some editors write it.
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

constexpr std::string_view made_of = "# leat dataset: ";

// No name in a comment is so long. What has no end, as /dev/zero, is not read for ever.
constexpr std::size_t line_bytes_max = std::size_t{1} << 20;

std::string digest_of(const dataset& samples) {
  description of;
  samples.model()->describe(of);
  return of.digest().hex();
}

/// What a made_of_line() says.
struct list_origin {
  std::uint64_t samples = 0;
  std::string_view digest;
};

std::optional<list_origin> origin_in(std::string_view line) {
  list_origin origin;
  const auto [end, wrong] = std::from_chars(line.data(), line.data() + line.size(), origin.samples);
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  constexpr std::string_view between = " samples, ";
  if (wrong != std::errc{} || !line.starts_with(between)) return std::nullopt;
  origin.digest = line.substr(between.size());
  return origin.digest.size() == 2 * sizeof(digest) ? std::optional(origin) : std::nullopt;
}

}  // namespace

std::string made_of_line(const dataset& samples) {
  return str_cat(made_of, samples.size(), " samples, ", digest_of(samples), "\n");
}

bool is_list_of(const std::string& path, const dataset& samples) {
  const std::string wanted = made_of_line(samples);
  return first_bytes(path, line_bytes_max).find(wanted.substr(0, wanted.size() - 1)) != std::string::npos;
}

std::vector<std::uint64_t> read_sample_list(const std::string& option, const std::string& path, const dataset& samples,
                                            named_by how) {
  const auto fail = [&](const std::string& why) {
    throw error(errc::usage, str_cat(option, " ", one_line(path), why));
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  // A folder is opened, and cannot be read.
  if (!file || (file.peek(), file.bad())) {
    fail(str_cat(": cannot read it: ", std::generic_category().message(errno == 0 ? EIO : errno)));
  }
  file.clear();
  std::vector<std::uint64_t> all;
  std::uint64_t number = 0;
  const auto check_origin = [&](std::string_view line) {
    const std::string remedy = "; make it anew with leat check --ids, or delete this line";
    const std::optional<list_origin> origin = origin_in(line);
    if (!origin) fail(str_cat(", line ", number, ": says of no dataset what the list was made of", remedy));
    if (origin->samples != samples.size()) {
      fail(str_cat(", line ", number, ": was made of a dataset of ", counted(origin->samples, "sample", "samples"),
                   ", and the source has ", count_text(samples.size()), remedy));
    }
    if (how == named_by::count) return;
    const std::string wanted = digest_of(samples);
    if (origin->digest == wanted) return;
    fail(str_cat(", line ", number, ": was made of another dataset, ", one_line(origin->digest), ", and the source is ",
                 wanted, remedy));
  };
  std::vector<char> room(line_bytes_max);
  while (file.getline(room.data(), static_cast<std::streamsize>(room.size()))) {
    std::string_view line(room.data(), static_cast<std::size_t>(file.gcount()) - (file.eof() ? 0 : 1));
    ++number;
    if (number == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    if (line.starts_with(made_of)) check_origin(without_blanks(line.substr(made_of.size())));
    const std::string_view said = without_blanks(line.substr(0, line.find('#')));
    if (said.empty()) continue;
    std::uint64_t sample = 0;
    const auto [end, wrong] = std::from_chars(said.data(), said.data() + said.size(), sample);
    if (wrong != std::errc{} || end != said.data() + said.size()) {
      fail(str_cat(", line ", number, ": '", one_line(said.substr(0, 40)),
                   "' is no number of a sample; give one a line, as leat check --ids writes them"));
    }
    if (sample >= samples.size()) {
      fail(str_cat(", line ", number, ": there is no sample ", sample, "; the source has ",
                   counted(samples.size(), "sample", "samples"), ", numbered from 0"));
    }
    all.push_back(sample);
  }
  if (!file.eof()) {
    fail(str_cat(", line ", number + 1, ": is longer than ", bytes_text(line_bytes_max),
                 "; give a number a line, as leat check --ids writes them"));
  }
  return all;
}

}  // namespace leat::tools
