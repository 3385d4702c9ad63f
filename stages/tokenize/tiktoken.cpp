// *.tiktoken: which two tokens may become one follows from what their bytes are together.
#include "base/base64.hpp"
#include "base/hash_map.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "stages/tokenize/tokenizer_parts.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leat::stages {
namespace {

struct special_of {
  const char* text;
  std::uint32_t id;
};

// source: tiktoken_ext/openai_public.py
struct encoding {
  const char* name;
  const char* expression;
  std::vector<special_of> special;
};
const std::vector<encoding>& encodings() {
  static constexpr const char* gpt2 = R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  static const std::vector<encoding> all = {
      {"gpt2", gpt2, {{"<|endoftext|>", 50256}}},
      {"r50k_base", gpt2, {{"<|endoftext|>", 50256}}},
      {"p50k_base", gpt2, {{"<|endoftext|>", 50256}}},
      {"cl100k_base",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {"o200k_base",
       R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
       R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
       R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}}};
  return all;
}

}  // namespace

tokenizer_parts parse_tiktoken(std::string_view text, std::string_view name) {
  const auto known =
      std::find_if(encodings().begin(), encodings().end(), [&](const encoding& each) { return name == each.name; });
  if (known == encodings().end()) {
    std::string names;
    for (const encoding& each : encodings()) str_append(names, names.empty() ? "" : ", ", each.name);
    throw error(errc::unsupported, str_cat("no encoding of tiktoken is called '", name,
                                           "', so nobody knows how it cuts a text; name the file "
                                           "after one of ",
                                           names));
  }
  tokenizer_parts parts;
  parts.whole_words = true;
  parts.splits.push_back({.expression = known->expression});
  for (const special_of& each : known->special)
    parts.added.push_back({.text = each.text, .id = each.id, .special = true});
  hash_map<std::string, std::uint32_t> ranks;
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (line.empty() || line == "\r") continue;
    const std::size_t space = line.find(' ');
    std::optional<std::string> bytes;
    std::optional<std::uint64_t> rank;
    if (space != std::string_view::npos) {
      bytes = from_base64(line.substr(0, space));
      rank = parse_unsigned(line.substr(space + 1));
    }
    if (!bytes || bytes->empty() || !rank || *rank > 0x7FFFFFFF) {
      throw error(errc::format, str_cat("line ", line_number, " is no token in base64 and its rank"));
    }
    const auto id = static_cast<std::uint32_t>(*rank);
    if (!ranks.emplace(*bytes, id).second) {
      throw error(errc::format, str_cat("line ", line_number, " has a token that a line before it has"));
    }
    parts.vocabulary.push_back({.bytes = std::move(*bytes), .id = id});
  }
  // Any two tokens whose bytes together are a token become it, that of the least rank first.
  for (const vocabulary_entry& each : parts.vocabulary) {
    for (std::size_t cut = 1; cut < each.bytes.size(); ++cut) {
      const auto left = ranks.find(each.bytes.substr(0, cut));
      if (left == ranks.end()) continue;
      const auto right = ranks.find(each.bytes.substr(cut));
      if (right == ranks.end()) continue;
      parts.merges.push_back({.left = left->second, .right = right->second, .id = each.id, .rank = each.id});
    }
  }
  return parts;
}

}  // namespace leat::stages
