#include "tools/sample_list.hpp"

#include "base/text.hpp"
#include "tools/human.hpp"

#include <leat/error.hpp>

#include <cerrno>
#include <charconv>
#include <fstream>
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

}  // namespace

std::vector<std::uint64_t> read_sample_list(const std::string& option, const std::string& path, std::uint64_t samples) {
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
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string_view said = without_blanks(std::string_view(line).substr(0, line.find('#')));
    if (said.empty()) continue;
    std::uint64_t sample = 0;
    const auto [end, wrong] = std::from_chars(said.data(), said.data() + said.size(), sample);
    if (wrong != std::errc{} || end != said.data() + said.size()) {
      fail(str_cat(", line ", number, ": '", one_line(said.substr(0, 40)),
                   "' is no number of a sample; give one a line, as leat check --ids writes them"));
    }
    if (sample >= samples) {
      fail(str_cat(", line ", number, ": there is no sample ", sample, "; the source has ",
                   counted(samples, "sample", "samples"), ", numbered from 0"));
    }
    all.push_back(sample);
  }
  return all;
}

}  // namespace leat::tools
