// Tokens: what a trainer of language models does with its data, and no training. It counts which token follows which, over
// windows of all files, and says how many bits a token has beside the one before it.
//
//     tokens [FILE… [LENGTH]]     files as nanoGPT, llm.c or Megatron write them; without any it makes one
#include <leat/loader.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

// 200,000 tokens of 64, each the one before it plus a number from 1 to 8: 3 bits where there seem to be 6.
std::string make_tokens() {
  const std::string path = (std::filesystem::temp_directory_path() / "leat-example-tokens.bin").string();
  std::ofstream file(path, std::ios::binary);
  std::uint32_t state = 1;
  std::uint16_t token = 0;
  for (int i = 0; i < 200'000; ++i) {
    state = state * 1664525U + 1013904223U;  // Knuth's and Lewis' generator
    token = static_cast<std::uint16_t>((token + 1 + (state >> 29)) % 64);
    file.write(reinterpret_cast<const char*>(&token), sizeof token);
  }
  return path;
}

// Of a distribution that was counted.
double bits(const std::map<std::int64_t, std::uint64_t>& counts) {
  double all = 0;
  for (const auto& [token, count] : counts) all += static_cast<double>(count);
  double sum = 0;
  for (const auto& [token, count] : counts)
    sum -= static_cast<double>(count) * std::log2(static_cast<double>(count) / all);
  return sum;
}

}  // namespace

int main(int argc, char** argv) try {
  const bool own = argc < 2;
  const std::string source = own ? make_tokens() : argv[1];
  const std::int64_t length = argc > 2 ? std::stoll(argv[2]) : 256;
  const leat::tokens how{.length = length};
  const leat::dataset windows = leat::cut_windows(leat::open_tokens(source), how);
  leat::loader train{windows, {.batch_size = 12, .seed = 7, .epochs = 2}, how};

  std::map<std::int64_t, std::uint64_t> alone;
  std::map<std::int64_t, std::map<std::int64_t, std::uint64_t>> after;
  std::uint64_t tokens = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (leat::batch& batch : train.blocking()) {
      const auto x = batch["x"].as<std::int64_t>();  // [12, length]
      const auto y = batch["y"].as<std::int64_t>();  // the same, one token later
      for (std::size_t t = 0; t < x.size(); ++t) {
        ++alone[y[t]];
        ++after[x[t]][y[t]];
      }
      tokens += x.size();
    }
  }
  double before = 0;
  for (const auto& [token, followers] : after) before += bits(followers);
  const double all = static_cast<double>(tokens);
  std::printf("%llu windows an epoch, %llu tokens in two: %.2f bits each, %.2f where the one before it is known\n",
              static_cast<unsigned long long>(train.samples()), static_cast<unsigned long long>(tokens),
              bits(alone) / all, before / all);
  if (own) std::filesystem::remove(source);
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}
