#include "stages/tokenize/chat_template.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "stages/tokenize/reference_letters.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <iterator>
#include <span>

namespace leat::stages {

/// In a form `{role}` and `{content}` are those of the message, and `{end}` is where an answer ends that began with its content.
///   begin            once
///   message          of a message; `answer`: of the assistant's, where it is another
///   system           of a system message that stands first; null: as any other. "": it is put before the first user's content
///   without_system   where none stands first
///   trims            white space around contents is left out
///   alternates       user and assistant take turns
///   assistant        what the role `assistant` is called
///   specials         tokens that a form is written with
struct chat_rule {
  const char* name = "";
  const char* begin = "";
  const char* message = "";
  const char* answer = nullptr;
  const char* system = nullptr;
  const char* without_system = "";
  bool takes_system = true;
  bool trims = false;
  bool alternates = false;
  const char* assistant = "assistant";
  std::vector<std::string_view> specials = {};
};

namespace {

constexpr const char* chatml = "<|im_start|>{role}\n{content}<|im_end|>{end}\n";
constexpr const char* llama3 = "<|start_header_id|>{role}<|end_header_id|>\n\n{content}<|eot_id|>{end}";

const std::vector<chat_rule>& rules() {
  static const std::vector<std::string_view> im = {"<|im_start|>", "<|im_end|>"};
  static const std::vector<std::string_view> headers = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
                                                        "<|eot_id|>"};
  static const std::vector<chat_rule> all = {
      {.name = "chatml", .message = chatml, .specials = im},
      {.name = "qwen2",
       .message = chatml,
       .without_system = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n",
       .specials = im},
      {.name = "qwen2.5",
       .message = chatml,
       .without_system =
           "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n",
       .specials = im},
      {.name = "llama2",
       .message = "<s>[INST] {content} [/INST]",
       .answer = " {content} </s>{end}",
       .system = "",
       .trims = true,
       .alternates = true,
       .specials = {"<s>", "</s>"}},
      {.name = "llama3", .begin = "<|begin_of_text|>", .message = llama3, .trims = true, .specials = headers},
      {.name = "llama3.1",
       .begin = "<|begin_of_text|>",
       .message = llama3,
       .system = "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
                 "Today Date: 26 Jul 2024\n\n{content}<|eot_id|>",
       .without_system = "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
                         "Today Date: 26 Jul 2024\n\n<|eot_id|>",
       .trims = true,
       .specials = headers},
      {.name = "mistral",
       .begin = "<s>",
       .message = "[INST] {content} [/INST]",
       .answer = "{content}</s>{end}",
       .takes_system = false,
       .alternates = true,
       .specials = {"<s>", "</s>"}},
      {.name = "gemma",
       .begin = "<bos>",
       .message = "<start_of_turn>{role}\n{content}<end_of_turn>{end}\n",
       .takes_system = false,
       .trims = true,
       .alternates = true,
       .assistant = "model",
       .specials = {"<bos>", "<start_of_turn>", "<end_of_turn>"}}};
  return all;
}

std::string names_of_rules() {
  std::string names;
  for (const chat_rule& each : rules()) names += str_cat(names.empty() ? "" : ", ", each.name);
  return names;
}

// As Python's str.strip() does.
bool is_stripped(char32_t letter) { return is_space(letter) || (letter >= 0x1C && letter <= 0x1F); }

std::string_view strip(std::string_view text) {
  while (!text.empty() && is_stripped(letter_at(text, 0).letter)) text.remove_prefix(letter_at(text, 0).bytes);
  while (!text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!is_stripped(letter_at(text, last).letter)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

const chat_rule* rule_named(std::string_view name) {
  for (const chat_rule& each : rules()) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

// Where the special tokens are those of one family alone, and no later one of it writes chats in another way.
const chat_rule* rule_of_tokens(const text_encoder& words) {
  const auto has = [&](std::string_view token) { return words.find(token).has_value(); };
  if (has("<|start_header_id|>") && has("<|eot_id|>") && !has("<|eom_id|>") && !has("<|im_start|>"))
    return rule_named("llama3");
  if (has("<start_of_turn>") && has("<end_of_turn>") && !has("<start_of_image>") && !has("<|im_start|>"))
    return rule_named("gemma");
  return nullptr;
}

}  // namespace

chat_template::chat_template(const std::string& name, const text_encoder& words, const std::string& path)
    : rule_(name.empty() ? rule_of_tokens(words) : rule_named(name)), words_(&words) {
  if (rule_ == nullptr) {
    throw error(errc::usage,
                name.empty() ? str_cat("chat: the special tokens of ", path,
                                       " do not say for certain how a chat is written; name its template with ",
                                       spelled(option_id::chat_template), ": ", names_of_rules())
                             : str_cat("chat: there is no template '", name, "'; there are ", names_of_rules()),
                option_id::chat_template);
  }
  for (const std::string_view each : rule_->specials) {
    const std::optional<std::uint32_t> id = words.find(each);
    if (!id) {
      throw error(errc::usage, str_cat("chat: the template ", rule_->name, " is written with ", each, ", and ", path,
                                       " has no such token; templates are ", names_of_rules()));
    }
    specials_.emplace_back(each, *id);
  }
  begin_ = parse(rule_->begin);
  message_ = parse(rule_->message);
  answer_ = parse(rule_->answer != nullptr ? rule_->answer : rule_->message);
  if (rule_->system != nullptr) system_ = parse(rule_->system);
  without_system_ = parse(rule_->without_system);
}

std::vector<std::string_view> chat_template::names() {
  std::vector<std::string_view> all;
  for (const chat_rule& each : rules()) all.emplace_back(each.name);
  return all;
}

std::string_view chat_template::name() const noexcept { return rule_->name; }

chat_template::form chat_template::parse(std::string_view text) const {
  form made;
  const std::pair<std::string_view, part::kind> places[] = {
      {"{role}", part::kind::role}, {"{content}", part::kind::content}, {"{end}", part::kind::end}};
  while (!text.empty()) {
    const auto special = std::find_if(specials_.begin(), specials_.end(),
                                      [&](const auto& each) { return text.starts_with(each.first); });
    const auto* const place = std::find_if(std::begin(places), std::end(places),
                                           [&](const auto& each) { return text.starts_with(each.first); });
    if (special != specials_.end()) {
      made.push_back({.what = part::kind::special, .text = {}, .id = special->second});
      text.remove_prefix(special->first.size());
    } else if (place != std::end(places)) {
      made.push_back({.what = place->second, .text = {}});
      text.remove_prefix(place->first.size());
    } else {
      if (made.empty() || made.back().what != part::kind::text) made.push_back({.what = part::kind::text, .text = {}});
      made.back().text += text.front();
      text.remove_prefix(1);
    }
  }
  return made;
}

struct chat_template::writer {
  const text_encoder& words;
  chat_scratch& scratch;
  encode_scratch& encoding;
  std::vector<std::uint32_t>& ids;
  std::size_t answer_from = no_limit;  // in the text that is not encoded yet; no_limit: it has none
  bool is_begin = true;                // nothing stands before the text
  std::optional<std::string> wrong = {};

  // The text so far becomes tokens: those that are not the prompt's alone are the answer's.
  void flush() {
    std::string& text = scratch.text_;
    const std::size_t from = std::min(std::exchange(answer_from, no_limit), text.size());
    if (text.empty() || wrong) return;
    const std::size_t first = ids.size();
    const encode_options how{.around = false, .is_begin = is_begin};
    wrong = words.encode(text, how, encoding, ids);
    if (!wrong && from < text.size()) {
      std::vector<std::uint32_t>& prompt = scratch.ids_;
      prompt.clear();
      if (from != 0) wrong = words.encode(std::string_view(text).substr(0, from), how, encoding, prompt);
      std::size_t same = 0;
      while (same < prompt.size() && first + same < ids.size() && prompt[same] == ids[first + same]) ++same;
      for (std::size_t i = first + same; i < ids.size(); ++i) ids[i] |= counts;
    }
    is_begin = false;
    text.clear();
  }
};

std::optional<std::string> chat_template::encode(std::string_view json, chat_scratch& scratch, encode_scratch& encoding,
                                                 std::vector<std::uint32_t>& ids) const {
  if (auto wrong = scratch.messages_.read(json)) return wrong;
  std::span<const chat_messages::message> all = scratch.messages_.all();
  scratch.text_.clear();
  writer to{.words = *words_, .scratch = scratch, .encoding = encoding, .ids = ids};
  const auto write = [&](const form& by, std::string_view role, std::string_view content, bool is_answer) {
    bool counting = false;
    for (const part& each : by) {
      switch (each.what) {
        case part::kind::special:
          to.flush();
          to.is_begin = false;
          ids.push_back(counting ? each.id | counts : each.id);
          break;
        case part::kind::text:
          scratch.text_ += each.text;
          break;
        case part::kind::role:
          scratch.text_ += role;
          break;
        case part::kind::content:
          if (is_answer) {
            to.answer_from = scratch.text_.size();
            counting = true;
          }
          scratch.text_ += content;
          break;
        case part::kind::end:
          counting = false;
          break;
      }
    }
  };
  write(begin_, {}, {}, false);
  std::string_view system;
  bool is_merged = false;
  if (all.front().role != "system") {
    write(without_system_, {}, {}, false);
  } else if (!rule_->takes_system) {
    return str_cat("has a system message, and the template ", rule_->name, " has none");
  } else if (rule_->system != nullptr) {
    system = all.front().content;
    is_merged = system_.empty();
    if (!is_merged) write(system_, "system", rule_->trims ? strip(system) : system, false);
    all = all.subspan(1);
  }
  for (std::size_t i = 0; i < all.size() && !to.wrong; ++i) {
    const chat_messages::message& now = all[i];
    const bool is_answer = now.role == "assistant";
    if (!is_answer && now.role != "user" && (now.role != "system" || rule_->alternates))
      return str_cat("has a message of the role '", now.role.substr(0, 40), "'; the template ", rule_->name, " has ",
                     rule_->alternates ? "user and assistant" : "system, user and assistant");
    if (rule_->alternates && is_answer != (i % 2 == 1))
      return str_cat("has two messages of one side in a row, at ", i, "; user and assistant take turns in ",
                     rule_->name);
    std::string_view content = now.content;
    if (is_merged && i == 0) {
      scratch.other_ = str_cat("<<SYS>>\n", system, "\n<</SYS>>\n\n", content);
      content = scratch.other_;
    }
    if (rule_->trims) content = strip(content);
    write(is_answer ? answer_ : message_, is_answer ? std::string_view(rule_->assistant) : std::string_view(now.role),
          content, is_answer);
  }
  to.flush();
  return to.wrong;
}

std::size_t chat_template::ids_most(std::size_t json_bytes) const noexcept {
  // {"role":"a","content":""} and a comma; the longest form, and the parts of it that are tokens or texts of their own.
  constexpr std::size_t message_bytes_least = 26;
  constexpr std::size_t form_bytes_most = 80;
  constexpr std::size_t parts_most = 8;
  const std::size_t messages = json_bytes / message_bytes_least + 2;
  return words_->ids_most(json_bytes + messages * form_bytes_most) + messages * parts_most * (1 + words_->ids_most(0));
}

}  // namespace leat::stages
