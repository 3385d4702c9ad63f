// Writes the tokens of texts, for tests/conformance/tokens.py.
//
//   token_ids TOKENIZER <TEXTS >IDS
//
// Texts are a u32 of bytes and the bytes, one after another; ids are a u32 of how many and so many u32. Little-endian.
#include "stages/tokenize/tokenizer_state.hpp"

#include <leat/tokenizer.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

void write(const leat::tokenizer& words) {
  const leat::stages::text_encoder& encoder = words.get()->encoder;
  leat::stages::encode_scratch scratch(encoder);
  std::vector<std::uint32_t> ids;
  std::string text;
  std::uint32_t bytes = 0;
  while (std::fread(&bytes, sizeof bytes, 1, stdin) == 1) {
    text.resize(bytes);
    if (std::fread(text.data(), 1, bytes, stdin) != bytes) return;
    ids.assign(1, 0);
    // A text that is refused has another number of tokens than any.
    const bool is_refused = encoder.encode(text, {}, scratch, ids).has_value();
    ids.front() = is_refused ? 0xFFFFFFFFU : static_cast<std::uint32_t>(ids.size() - 1);
    std::fwrite(ids.data(), sizeof(std::uint32_t), is_refused ? 1 : ids.size(), stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    write(leat::tokenizer::open(arguments[1]));
    return 0;
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "token_ids: %s\n", wrong.what());
    return 1;
  }
}
