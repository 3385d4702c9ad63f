// tokenizer.json. Each part is read, or it is refused by its name.
#include "base/hash_map.hpp"
#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "stages/tokenize/tokenizer_parts.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace leat::stages {
namespace {

using json = nlohmann::json;

[[noreturn]] void refuse(const std::string& what) {
  throw error(errc::unsupported,
              str_cat("tokenizer.json: ", what, " is not read; byte-level BPE is (GPT-2, Llama 3, Qwen)"));
}
[[noreturn]] void damaged(const std::string& what) { throw error(errc::format, str_cat("tokenizer.json: ", what)); }

const json& member(const json& of, const char* name, const char* where) {
  if (!of.is_object() || !of.contains(name)) damaged(str_cat(where, " has no '", name, "'"));
  return of[name];
}
std::string text_in(const json& of, const char* name, const char* where) {
  const json& value = member(of, name, where);
  if (!value.is_string()) damaged(str_cat(where, ".", name, " is no text"));
  return value.get<std::string>();
}
bool flag_in(const json& of, const char* name, bool usual) {
  if (!of.contains(name) || of[name].is_null()) return usual;
  if (!of[name].is_boolean()) damaged(str_cat("'", name, "' is neither true nor false"));
  return of[name].get<bool>();
}
std::uint32_t id_of(const json& value, const char* where) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max()) {
    damaged(str_cat(where, ": a number of a token is a whole number from 0 to 2147483647"));
  }
  return value.get<std::uint32_t>();
}
bool is_set(const json& of, const char* name) {
  return of.contains(name) && !of[name].is_null() && !(of[name].is_string() && of[name].get<std::string>().empty());
}

// The characters that stand for bytes in a byte-level vocabulary: printable ones for themselves, the others from U+0100 on.
class byte_letters {
 public:
  byte_letters() {
    of_letter_.fill(-1);
    int further = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool shown = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      of_letter_[static_cast<std::size_t>(shown ? byte : further++)] = byte;
    }
  }
  /// Nothing where the text has another character than these.
  [[nodiscard]] std::optional<std::string> bytes_of(std::string_view text) const {
    std::string bytes;
    for (std::size_t i = 0; i < text.size();) {
      const auto lead = static_cast<unsigned char>(text[i++]);
      std::size_t letter = lead;
      if (lead >= 0x80) {
        if (lead < 0xC2 || lead > 0xC5 || i == text.size()) return std::nullopt;
        letter = (lead & 0x1FU) << 6 | (static_cast<unsigned char>(text[i++]) & 0x3FU);
      }
      if (letter >= of_letter_.size() || of_letter_[letter] < 0) return std::nullopt;
      bytes.push_back(static_cast<char>(of_letter_[letter]));
    }
    return bytes;
  }

 private:
  std::array<int, 324> of_letter_;
};

void read_normalizer(const json& from, tokenizer_parts& to) {
  if (from.is_null()) return;
  const std::string type = text_in(from, "type", "normalizer");
  if (type == "Sequence") {
    for (const json& each : member(from, "normalizers", "normalizer")) read_normalizer(each, to);
    return;
  }
  constexpr std::pair<const char*, normal_form> forms[] = {
      {"NFC", normal_form::nfc}, {"NFD", normal_form::nfd}, {"NFKC", normal_form::nfkc}, {"NFKD", normal_form::nfkd}};
  for (const auto& [name, form] : forms) {
    if (type != name) continue;
    to.forms.push_back(form);
    return;
  }
  refuse(str_cat("the normalizer ", type));
}

// GPT-2's.
constexpr const char* usual_expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A text that an expression matches as it is.
std::string literally(std::string_view text) {
  std::string made;
  for (const char letter : text) {
    if (std::string_view(R"(\^$.[]|()?*+{}-#)").find(letter) != std::string_view::npos) made += '\\';
    made += letter;
  }
  return made;
}

split_rule split_of(const json& from) {
  const json& pattern = member(from, "pattern", "pre_tokenizer Split");
  split_rule rule;
  if (pattern.contains("Regex")) {
    rule.expression = text_in(pattern, "Regex", "pre_tokenizer Split.pattern");
  } else {
    rule.expression = literally(text_in(pattern, "String", "pre_tokenizer Split.pattern"));
  }
  const std::string behavior = text_in(from, "behavior", "pre_tokenizer Split");
  const bool invert = flag_in(from, "invert", false);
  if (behavior == "Removed") {
    rule.keeps = invert ? split_rule::keeping::matches : split_rule::keeping::rest;
  } else if (behavior != "Isolated") {  // inverted it is the same
    refuse(str_cat("the behavior ", behavior, " of the pre-tokenizer Split"));
  }
  return rule;
}

// Whether the bytes' letters were come to, as the model's vocabulary is written in them.
bool read_pre_tokenizer(const json& from, tokenizer_parts& to) {
  if (from.is_null()) return false;
  const std::string type = text_in(from, "type", "pre_tokenizer");
  if (type == "Sequence") {
    bool by_bytes = false;
    for (const json& each : member(from, "pretokenizers", "pre_tokenizer")) {
      if (by_bytes) refuse("a pre-tokenizer behind ByteLevel");
      by_bytes = read_pre_tokenizer(each, to);
    }
    return by_bytes;
  }
  if (type == "Split") {
    to.splits.push_back(split_of(from));
  } else if (type == "Digits") {
    to.splits.push_back({.expression = flag_in(from, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)"});
  } else if (type == "ByteLevel") {
    if (flag_in(from, "add_prefix_space", true)) {
      if (!to.splits.empty()) refuse("add_prefix_space of a ByteLevel behind another pre-tokenizer");
      to.prefix_space = true;
    }
    if (flag_in(from, "use_regex", true)) to.splits.push_back({.expression = usual_expression});
    return true;
  } else {
    refuse(str_cat("the pre-tokenizer ", type));
  }
  return false;
}

void read_post_processor(const json& from, tokenizer_parts& to) {
  if (from.is_null()) return;
  const std::string type = text_in(from, "type", "post_processor");
  if (type == "ByteLevel") return;  // It moves offsets alone.
  if (type == "Sequence") {
    for (const json& each : member(from, "processors", "post_processor")) read_post_processor(each, to);
    return;
  }
  if (!to.before.empty() || !to.behind.empty()) refuse("more than one post-processor that adds tokens");
  if (type == "TemplateProcessing") {
    const json& tokens = member(from, "special_tokens", "post_processor");
    bool seen = false;
    for (const json& each : member(from, "single", "post_processor")) {
      if (each.contains("Sequence")) {
        if (seen) refuse("a template that has the text twice");
        seen = true;
        continue;
      }
      const std::string name = text_in(member(each, "SpecialToken", "post_processor.single"), "id", "SpecialToken");
      if (!tokens.contains(name)) damaged(str_cat("post_processor: its template has '", name, "', special_tokens not"));
      for (const json& id : member(tokens[name], "ids", "post_processor.special_tokens")) {
        (seen ? to.behind : to.before).push_back(id_of(id, "post_processor"));
      }
    }
    return;
  }
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    const auto of = [&](const char* name) {
      const json& pair = member(from, name, "post_processor");
      if (!pair.is_array() || pair.size() != 2)
        damaged(str_cat("post_processor.", name, " is no token and its number"));
      return id_of(pair[1], "post_processor");
    };
    to.before.push_back(of("cls"));
    to.behind.push_back(of("sep"));
    return;
  }
  refuse(str_cat("the post-processor ", type));
}

constexpr std::size_t added_bytes_max = 256;

void read_added(const json& from, tokenizer_parts& to) {
  for (const json& each : from) {
    if (flag_in(each, "single_word", false)) {
      refuse(str_cat("the added token '", text_in(each, "content", "added_tokens"), "' with single_word"));
    }
    const bool special = flag_in(each, "special", false);
    to.added.push_back({.text = text_in(each, "content", "added_tokens"),
                        .id = id_of(member(each, "id", "added_tokens"), "added_tokens"),
                        .special = special,
                        .normalized = flag_in(each, "normalized", !special),
                        .lstrip = flag_in(each, "lstrip", false),
                        .rstrip = flag_in(each, "rstrip", false)});
    if (to.added.back().text.empty()) damaged("an added token without text");
    // They are looked for from each place of a text.
    if (to.added.back().text.size() > added_bytes_max) {
      refuse(str_cat("an added token of ", to.added.back().text.size(), " bytes (up to ", added_bytes_max, " are)"));
    }
  }
}

void read_model(const json& from, tokenizer_parts& to) {
  const std::string type = from.contains("type") ? text_in(from, "type", "model") : "BPE";
  if (type != "BPE") refuse(str_cat("the model ", type));
  for (const char* const name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    if (is_set(from, name)) refuse(str_cat("model.", name));
  }
  to.whole_words = flag_in(from, "ignore_merges", false);
  const byte_letters letters;
  const json& vocabulary = member(from, "vocab", "model");
  if (!vocabulary.is_object()) damaged("model.vocab is no object of tokens and their numbers");
  hash_map<std::string, std::uint32_t> ids;
  ids.reserve(vocabulary.size());
  for (const auto& [token, number] : vocabulary.items()) {
    const std::uint32_t id = id_of(number, "model.vocab");
    const std::optional<std::string> bytes = letters.bytes_of(token);
    if (!bytes) {
      // Special tokens may be in the vocabulary as they are written. No text becomes one.
      const bool is_added =
          std::any_of(to.added.begin(), to.added.end(), [&](const added_token& each) { return each.id == id; });
      if (!is_added)
        damaged(str_cat("model.vocab: '", token.substr(0, 40), "' is not written in the letters of bytes"));
      continue;
    }
    ids.emplace(*bytes, id);
    to.vocabulary.push_back({.bytes = *bytes, .id = id});
  }
  const json& merges = member(from, "merges", "model");
  if (!merges.is_array()) damaged("model.merges is no list");
  const auto known = [&](std::string_view token) -> std::pair<std::string, std::uint32_t> {
    const std::optional<std::string> bytes = letters.bytes_of(token);
    const auto found = bytes ? ids.find(*bytes) : ids.end();
    if (found == ids.end()) damaged(str_cat("model.merges: '", token.substr(0, 40), "' is not in the vocabulary"));
    return {found->first, found->second};
  };
  to.merges.reserve(merges.size());
  for (const json& each : merges) {
    std::string left;
    std::string right;
    if (each.is_array() && each.size() == 2 && each[0].is_string() && each[1].is_string()) {
      left = each[0].get<std::string>();
      right = each[1].get<std::string>();
    } else if (each.is_string()) {
      const std::string both = each.get<std::string>();
      const std::size_t space = both.find(' ');
      if (space == std::string::npos) damaged(str_cat("model.merges: '", both.substr(0, 40), "' are not two tokens"));
      left = both.substr(0, space);
      right = both.substr(space + 1);
    } else {
      damaged("model.merges: two tokens are a text with a space, or a list");
    }
    const auto a = known(left);
    const auto b = known(right);
    const auto made = ids.find(a.first + b.first);
    if (made == ids.end())
      damaged(str_cat("model.merges: what '", left, "' and '", right, "' become is not in the vocabulary"));
    to.merges.push_back({.left = a.second,
                         .right = b.second,
                         .id = made->second,
                         .rank = static_cast<std::uint32_t>(to.merges.size())});
  }
}

}  // namespace

tokenizer_parts parse_tokenizer_json(std::string_view text) {
  json file;
  try {
    file = parse_json(text);
  } catch (const error& wrong) {
    damaged(wrong.what());
  }
  if (!file.is_object() || !file.contains("model")) damaged("it has no 'model'");
  tokenizer_parts parts;
  if (file.contains("added_tokens")) read_added(file["added_tokens"], parts);
  if (file.contains("normalizer")) read_normalizer(file["normalizer"], parts);
  if (!file.contains("pre_tokenizer") || !read_pre_tokenizer(file["pre_tokenizer"], parts)) {
    refuse("a model without the pre-tokenizer ByteLevel");
  }
  if (file.contains("post_processor")) read_post_processor(file["post_processor"], parts);
  read_model(file["model"], parts);
  return parts;
}

}  // namespace leat::stages
