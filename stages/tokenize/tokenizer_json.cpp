// tokenizer.json. Each part is read, or it is refused by its name.
#include "base/base64.hpp"
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
  throw error(
      errc::unsupported,
      str_cat(what, " is not read; BPE, WordPiece and Unigram are, as GPT-2, Llama, Qwen, BERT and T5 have them"));
}
[[noreturn]] void damaged(const std::string& what) { throw error(errc::format, what); }

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

normal_step replacement_of(const json& from) {
  const json& pattern = member(from, "pattern", "normalizer Replace");
  normal_step step{.by = text_in(from, "content", "normalizer Replace")};
  if (pattern.contains("Regex")) {
    step.what = normal_step::kind::replace_expression;
    step.text = text_in(pattern, "Regex", "normalizer Replace.pattern");
  } else {
    step.what = normal_step::kind::replace;
    step.text = text_in(pattern, "String", "normalizer Replace.pattern");
  }
  if (step.text.empty()) refuse("a normalizer Replace of nothing");
  return step;
}

void read_normalizer(const json& from, tokenizer_parts& to) {
  if (from.is_null()) return;
  using kind = normal_step::kind;
  const std::string type = text_in(from, "type", "normalizer");
  const auto add = [&](normal_step step) { to.normalizing.push_back(std::move(step)); };
  if (type == "Sequence") {
    for (const json& each : member(from, "normalizers", "normalizer")) read_normalizer(each, to);
    return;
  }
  constexpr std::pair<const char*, normal_form> forms[] = {
      {"NFC", normal_form::nfc}, {"NFD", normal_form::nfd}, {"NFKC", normal_form::nfkc}, {"NFKD", normal_form::nfkd}};
  for (const auto& [name, form] : forms) {
    if (type == name) return add({.what = kind::form, .form = form});
  }
  if (type == "Lowercase") return add({.what = kind::lowercase});
  if (type == "StripAccents") return add({.what = kind::strip_accents});
  if (type == "Replace") return add(replacement_of(from));
  if (type == "Prepend") return add({.what = kind::prepend, .text = text_in(from, "prepend", "normalizer Prepend")});
  if (type == "Strip") {
    return add(
        {.what = kind::strip, .left = flag_in(from, "strip_left", true), .right = flag_in(from, "strip_right", true)});
  }
  if (type == "BertNormalizer") {
    const bool lower = flag_in(from, "lowercase", true);
    return add({.what = kind::bert,
                .clean = flag_in(from, "clean_text", true),
                .chinese = flag_in(from, "handle_chinese_chars", true),
                .accents = flag_in(from, "strip_accents", lower),
                .lower = lower});
  }
  if (type == "Precompiled") {
    std::optional<std::string> map = from_base64(text_in(from, "precompiled_charsmap", "normalizer Precompiled"));
    if (!map) damaged("normalizer Precompiled: precompiled_charsmap is no base64");
    return add({.what = kind::precompiled, .text = std::move(*map)});
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
  if (rule.expression.empty()) refuse("a pre-tokenizer Split by nothing");
  if (behavior == "Removed") {
    rule.keeps = invert ? split_rule::keeping::matches : split_rule::keeping::rest;
  } else if (behavior == "MergedWithPrevious" && !invert) {
    rule.keeps = split_rule::keeping::behind;
  } else if (behavior == "MergedWithNext" && !invert) {
    rule.keeps = split_rule::keeping::before;
  } else if (behavior != "Isolated") {  // inverted it is the same
    refuse(str_cat("the behavior ", behavior, invert ? ", inverted," : "", " of the pre-tokenizer Split"));
  }
  return rule;
}

split_rule metaspace_of(const json& from, const tokenizer_parts& to) {
  split_rule rule{.expression = text_in(from, "replacement", "pre_tokenizer Metaspace"),
                  .what = split_rule::kind::metaspace,
                  .prepends = split_rule::prepending::always,
                  .cuts = flag_in(from, "split", true)};
  if (rule.expression.empty()) damaged("pre_tokenizer Metaspace: its replacement is nothing");
  for (const split_rule& each : to.splits) {
    if (each.what == split_rule::kind::metaspace) refuse("a pre-tokenizer Metaspace behind another one");
  }
  if (from.contains("prepend_scheme")) {
    const std::string scheme = text_in(from, "prepend_scheme", "pre_tokenizer Metaspace");
    if (scheme == "first") {
      rule.prepends = split_rule::prepending::first;
    } else if (scheme == "never") {
      rule.prepends = split_rule::prepending::never;
    } else if (scheme != "always") {
      refuse(str_cat("the prepend_scheme ", scheme, " of the pre-tokenizer Metaspace"));
    }
  }
  if (!flag_in(from, "add_prefix_space", true)) rule.prepends = split_rule::prepending::never;
  if (rule.prepends != split_rule::prepending::first) return rule;
  // Whether a piece is the first is asked of where its first letter stood: these may have moved it.
  using kind = normal_step::kind;
  for (const normal_step& each : to.normalizing) {
    if (each.what == kind::strip || each.what == kind::strip_accents || each.what == kind::bert ||
        each.what == kind::prepend || each.what == kind::replace_expression || each.by.empty() != each.text.empty()) {
      if (each.what == kind::precompiled) continue;
      refuse("the prepend_scheme first of the pre-tokenizer Metaspace behind a normalizer that takes letters away");
    }
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
  } else if (type == "BertPreTokenizer") {
    to.splits.push_back({.what = split_rule::kind::spaces});
    to.splits.push_back({.what = split_rule::kind::punctuation});
  } else if (type == "WhitespaceSplit") {
    to.splits.push_back({.what = split_rule::kind::spaces});
  } else if (type == "Punctuation" && (!is_set(from, "behavior") || from["behavior"] == "Isolated")) {
    to.splits.push_back({.what = split_rule::kind::punctuation});
  } else if (type == "Metaspace") {
    to.splits.push_back(metaspace_of(from, to));
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

using token_ids = hash_map<std::string, std::uint32_t>;

const json& vocabulary_in(const json& model) {
  const json& vocabulary = member(model, "vocab", "model");
  if (!vocabulary.is_object()) damaged("model.vocab is no object of tokens and their numbers");
  return vocabulary;
}

// The tokens of an object, as they are written there.
token_ids read_vocabulary(const json& from, tokenizer_parts& to) {
  const json& vocabulary = vocabulary_in(from);
  token_ids ids;
  ids.reserve(vocabulary.size());
  for (const auto& [token, number] : vocabulary.items()) {
    const std::uint32_t id = id_of(number, "model.vocab");
    ids.emplace(token, id);
    to.vocabulary.push_back({.bytes = token, .id = id});
  }
  return ids;
}

// The tokens of byte-level BPE, by their bytes.
token_ids read_byte_vocabulary(const json& from, const byte_letters& letters, tokenizer_parts& to) {
  const json& vocabulary = vocabulary_in(from);
  token_ids ids;
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
  return ids;
}

// The tokens <0x00> to <0xFF>, which stand for bytes.
std::vector<std::uint32_t> byte_tokens(const token_ids& ids) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::vector<std::uint32_t> of_bytes;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string token = str_cat("<0x", std::string(1, digits[byte >> 4]), std::string(1, digits[byte & 15]), ">");
    const auto found = ids.find(token);
    if (found == ids.end()) refuse(str_cat("byte_fallback without the token ", token));
    of_bytes.push_back(found->second);
  }
  return of_bytes;
}

std::optional<std::uint32_t> unknown_of(const json& from, const token_ids& ids) {
  if (!from.contains("unk_token") || from["unk_token"].is_null()) return std::nullopt;
  const std::string token = text_in(from, "unk_token", "model");
  const auto found = ids.find(token);
  if (found == ids.end()) damaged(str_cat("model.unk_token: '", token.substr(0, 40), "' is not in the vocabulary"));
  return found->second;
}

void read_word_pieces(const json& from, tokenizer_parts& to) {
  to.model = word_model_kind::word_pieces;
  const token_ids ids = read_vocabulary(from, to);
  to.unknown = unknown_of(from, ids);
  if (!to.unknown) damaged("model WordPiece has no 'unk_token'");
  to.prefix = text_in(from, "continuing_subword_prefix", "model");
  const json& most = member(from, "max_input_chars_per_word", "model");
  if (!most.is_number_unsigned()) damaged("model.max_input_chars_per_word is no whole number");
  to.letters_max = most.get<std::size_t>();
}

void read_unigram(const json& from, tokenizer_parts& to) {
  to.model = word_model_kind::unigram;
  const json& vocabulary = member(from, "vocab", "model");
  if (!vocabulary.is_array() || vocabulary.empty()) damaged("model.vocab is no list of tokens and their scores");
  if (vocabulary.size() > std::numeric_limits<std::int32_t>::max()) damaged("model.vocab has too many tokens");
  token_ids ids;
  for (const json& each : vocabulary) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_string() || !each[1].is_number()) {
      damaged("model.vocab: each is a token and its score");
    }
    const auto id = static_cast<std::uint32_t>(to.vocabulary.size());
    to.vocabulary.push_back({.bytes = each[0].get<std::string>(), .id = id});
    to.scores.push_back(each[1].get<double>());
    ids[to.vocabulary.back().bytes] = id;
  }
  const bool has_unknown = from.contains("unk_id") && !from["unk_id"].is_null();
  if (!has_unknown) refuse("a model Unigram without unk_id");
  to.unknown = id_of(from["unk_id"], "model.unk_id");
  if (*to.unknown >= to.vocabulary.size()) damaged("model.unk_id is not in the vocabulary");
  if (flag_in(from, "byte_fallback", false)) to.of_bytes = byte_tokens(ids);
}

// Where SentencePiece wrote spaces as this letter, and no token has it behind another letter, nothing is merged over the begin of a run of
// them: a text without a pre-tokenizer is cut into words there, which are as good as the whole.
constexpr std::string_view space_mark = "\xE2\x96\x81";

void cut_at_spaces(const token_ids& ids, const std::vector<std::string>& made, tokenizer_parts& to) {
  if (to.whole_words || !ids.contains(std::string(space_mark))) return;
  for (const std::string& each : made) {
    std::string_view rest = each;
    while (rest.starts_with(space_mark)) rest.remove_prefix(space_mark.size());
    if (rest.find(space_mark) != std::string_view::npos) return;
  }
  for (const split_rule& each : to.splits) {
    if (each.what == split_rule::kind::metaspace && each.cuts) return;
  }
  to.splits.push_back({.expression = std::string(space_mark), .what = split_rule::kind::runs});
}

void read_model(const json& from, bool by_bytes, tokenizer_parts& to) {
  const std::string type = from.contains("type") ? text_in(from, "type", "model") : "BPE";
  if (type != "BPE" && type != "WordPiece" && type != "Unigram") refuse(str_cat("the model ", type));
  if (type != "BPE") {
    if (by_bytes) refuse(str_cat("the model ", type, " behind the pre-tokenizer ByteLevel"));
    type == "Unigram" ? read_unigram(from, to) : read_word_pieces(from, to);
    return;
  }
  for (const char* const name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    if (is_set(from, name)) refuse(str_cat("model.", name));
  }
  to.whole_words = flag_in(from, "ignore_merges", false);
  const byte_letters letters;
  const token_ids ids = by_bytes ? read_byte_vocabulary(from, letters, to) : read_vocabulary(from, to);
  if (!by_bytes) {
    to.model = word_model_kind::letter_pairs;
    to.unknown = unknown_of(from, ids);
    to.fuse_unknown = flag_in(from, "fuse_unk", false);
    if (flag_in(from, "byte_fallback", false)) to.of_bytes = byte_tokens(ids);
  }
  const json& merges = member(from, "merges", "model");
  if (!merges.is_array()) damaged("model.merges is no list");
  const auto known = [&](std::string_view token) -> std::pair<std::string, std::uint32_t> {
    const std::optional<std::string> bytes = by_bytes ? letters.bytes_of(token) : std::string(token);
    const auto found = bytes ? ids.find(*bytes) : ids.end();
    if (found == ids.end()) damaged(str_cat("model.merges: '", token.substr(0, 40), "' is not in the vocabulary"));
    return {found->first, found->second};
  };
  to.merges.reserve(merges.size());
  std::vector<std::string> all_made;
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
    if (!by_bytes) all_made.push_back(made->first);
  }
  if (!by_bytes) cut_at_spaces(ids, all_made, to);
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
  const bool by_bytes = file.contains("pre_tokenizer") && read_pre_tokenizer(file["pre_tokenizer"], parts);
  if (file.contains("post_processor")) read_post_processor(file["post_processor"], parts);
  read_model(file["model"], by_bytes, parts);
  return parts;
}

}  // namespace leat::stages
