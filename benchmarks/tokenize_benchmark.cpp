// How many bytes of text does a CPU-second turn into tokens, in one thread?
//
// A file of text is cut at ends of lines into documents of 4,000 bytes or a line more, in memory. Each is encoded as leat::tokenize does
// it, with words that were seen before. The first round is not counted. tokenize_check.py asks `tokenizers` and tiktoken for the same, in
// turns with this, and compares all ids.
//
//     tokenize_benchmark --tokenizer FILE --text FILE [--rounds 3] [--toy]
//
// Prints JSON: bytes, tokens, the sum of ids as (sum * 31 + id) of 64 bits, and CPU seconds of each round. --toy makes both files.
#include "base/base64.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "stages/tokenize/tokenizer_state.hpp"

#include <leat/error.hpp>
#include <leat/tokenizer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace leat::benchmarks {
namespace {

struct settings {
  std::string tokenizer;
  std::string text;
  std::uint32_t rounds = 3;
};

constexpr std::size_t document_bytes = 4000;

void write(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << content).flush()) throw error(errc::io, str_cat("cannot write ", path));
}

// Tokens of a byte each, and some of two: what is fast or slow of it says nothing.
void make_toys(settings& how) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "leat-tokenize-benchmark";
  std::filesystem::create_directories(folder);
  how.tokenizer = (folder / "cl100k_base.tiktoken").string();
  how.text = (folder / "text").string();
  std::string tokens;
  for (int byte = 0; byte < 256; ++byte)
    str_append(tokens, to_base64(std::string(1, static_cast<char>(byte))), " ", byte, "\n");
  int id = 256;
  for (const char* const each : {"th", "in", " t", "er"}) str_append(tokens, to_base64(each), " ", id++, "\n");
  std::string text;
  for (int line = 0; line < 500; ++line) str_append(text, "the others in line ", line, " there\n");
  write(how.tokenizer, tokens);
  write(how.text, text);
}

std::vector<std::string_view> documents_of(std::string_view text) {
  std::vector<std::string_view> documents;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n', std::min(document_bytes, text.size())), text.size());
    documents.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return documents;
}

void measure(const settings& how) {
  const tokenizer words = tokenizer::open(how.tokenizer);
  std::ifstream file(how.text, std::ios::binary);
  if (!file) throw error(errc::not_found, str_cat(how.text, " cannot be read"));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::vector<std::string_view> documents = documents_of(text);
  const stages::text_encoder& encoder = words.get()->encoder;
  stages::encode_scratch scratch(encoder);
  std::vector<std::uint32_t> ids;
  std::uint64_t sum = 0;
  std::size_t tokens = 0;
  std::vector<double> cpu_s;
  for (std::uint32_t round = 0; round <= how.rounds; ++round) {
    const double began = thread_cpu_s();
    for (const std::string_view document : documents) {
      ids.clear();
      if (const auto wrong = encoder.encode(document, {}, scratch, ids)) throw error(errc::limit, *wrong);
      if (round != 0) continue;
      tokens += ids.size();
      for (const std::uint32_t id : ids) sum = sum * 31 + id;
    }
    if (round != 0) cpu_s.push_back(thread_cpu_s() - began);
  }
  const nlohmann::json made = {{"bytes", text.size()}, {"tokens", tokens}, {"sum", sum}, {"cpu_s", cpu_s}};
  std::printf("%s\n", made.dump().c_str());
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("tokenize_benchmark", [&] {
    benchmarks::settings how;
    bool toy = false;
    benchmarks::read_options(
        count, words, {{"--tokenizer", how.tokenizer}, {"--text", how.text}, {"--rounds", how.rounds}, {"--toy", toy}});
    if (toy) benchmarks::make_toys(how);
    benchmarks::measure(how);
  });
}
