#include "benchmarks/arguments.hpp"

#include <algorithm>

namespace leat::benchmarks {

std::vector<std::string_view> listed(std::string_view text) {
  std::vector<std::string_view> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    all.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return all;
}

void read_options(int count, char** words, const std::vector<option>& known) {
  for (int at = 1; at < count; ++at) {
    const std::string_view argument = words[at];
    const auto found = std::find_if(known.begin(), known.end(), [&](const option& each) { return each.is(argument); });
    if (found == known.end()) {
      std::string text = str_cat("unknown argument '", argument, "'; there are");
      for (const option& each : known) str_append(text, &each == &known.front() ? " " : ", ", each.name());
      throw error(errc::usage, text);
    }
    if (found->has_value() && ++at == count) throw error(errc::usage, str_cat(argument, " wants a value"));
    found->take(words[at]);
  }
}

}  // namespace leat::benchmarks
