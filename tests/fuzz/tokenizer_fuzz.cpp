// Does a tokenizer's file that was made up, or a text, bring down the tokenizer? A file is refused with an error of leat's; or a text
// becomes tokens that it has. The first byte says which of the kinds of files it is; the text is what follows the file's last "\n\n".
#include "stages/tokenize/text_encoder.hpp"
#include "stages/tokenize/tokenizer_parts.hpp"

#include <leat/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t end = all.rfind("\n\n");
  const std::string_view file = all.substr(0, end);
  const std::string_view text = end == std::string_view::npos ? all : all.substr(end + 2);
  try {
    leat::stages::tokenizer_parts parts = data[0] % 3 == 0   ? leat::stages::parse_tokenizer_json(file)
                                          : data[0] % 3 == 1 ? leat::stages::parse_tiktoken(file, "cl100k_base")
                                                             : leat::stages::parse_sentencepiece(file);
    // Few files that are made up have all bytes: those that lack are added.
    for (std::uint32_t byte = 0; parts.model == leat::stages::word_model_kind::byte_pairs && byte < 256; ++byte)
      parts.vocabulary.push_back({std::string(1, static_cast<char>(byte)), byte});
    const leat::stages::text_encoder encoder(parts);
    leat::stages::encode_scratch scratch(encoder);
    for (const bool special : {false, true}) {
      std::vector<std::uint32_t> ids;
      if (encoder.encode(text, {.special_in_text = special}, scratch, ids)) continue;
      for (const std::uint32_t id : ids) {
        if (id >= encoder.vocabulary()) std::abort();
      }
      std::vector<std::uint32_t> few;
      if (encoder.encode(text, {.special_in_text = special, .ids_max = 3}, scratch, few)) std::abort();
      if (few.size() > 3 + encoder.ids_around()) std::abort();
    }
  } catch (const leat::error&) {
  }
  return 0;
}
