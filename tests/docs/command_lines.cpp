// Parses command lines of leat without running them: one a line on standard input, where it stands before a tab, its words between unit
// separators. Names those that the command refuses, on standard output.
#include "tools/subcommand.hpp"

#include <iostream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> split(const std::string& line, char at) {
  std::vector<std::string> parts(1);
  for (const char c : line) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

int main() {
  int refused = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t tab = line.find('\t');
    const std::vector<std::string> words = split(line.substr(tab + 1), '\x1f');
    std::vector<const char*> arguments;
    for (const std::string& word : words) arguments.push_back(word.c_str());
    const std::string why = leat::tools::why_refused(static_cast<int>(arguments.size()), arguments.data());
    if (why.empty()) continue;
    refused = 1;
    std::cout << line.substr(0, tab) << ": leat refuses this line: " << why << '\n';
  }
  return refused;
}
