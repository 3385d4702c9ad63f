// Texts as the numbers of their tokens, made while they are loaded.
#pragma once

#include <leat/compiler.hpp>
#include <leat/digest.hpp>
#include <leat/field.hpp>
#include <leat/index_options.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// A language model's tokenizer: BPE of bytes (GPT-2, Llama 3, Qwen) and of letters (Llama 2, Mistral), Unigram (T5, ALBERT), WordPiece
/// (BERT), and SentencePiece's unigram and bpe. The numbers are those of the library that wrote the file. A copy is the same tokenizer.
class tokenizer {
 public:
  ///   path      `tokenizer.json` of Hugging Face; SentencePiece's `*.model`; or `<encoding>.tiktoken` (cl100k_base, o200k_base,
  ///             p50k_base, r50k_base, gpt2). tokenizer_config.json beside the first two says which token ends a text, else the second does
  ///   throws    error: not_found; format (damaged); unsupported, which names the part of the file that is not read. Nothing of a file
  ///             is left out or approximated
  ///   source    huggingface/tokenizers 0.23; google/sentencepiece 0.2.3; openai/tiktoken 0.14
  [[nodiscard]] static tokenizer open(const std::string& path);

  /// The tokens of one text: `tokenizer.encode(text).ids` of Hugging Face, with special tokens in the text as text
  /// (`encode_special_tokens`). Of SentencePiece `encode(text)`: nothing is put around it.
  ///   thread    any; calls wait for one another
  ///   throws    error{errc::limit}: a word of more than 1 MiB
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const;

  /// The number of a token, by its bytes: " the", "<|endoftext|>".
  [[nodiscard]] std::optional<std::int32_t> find(std::string_view token) const;
  /// One more than the largest number of a token: rows of an embedding.
  [[nodiscard]] std::int32_t vocabulary() const noexcept;
  /// Of the files: part of a saved state.
  [[nodiscard]] const digest& identity() const noexcept;

  struct state;
  [[nodiscard]] const std::shared_ptr<const state>& get() const noexcept { return state_; }

 private:
  explicit tokenizer(std::shared_ptr<const state> given) : state_(std::move(given)) {}
  std::shared_ptr<const state> state_;
};

/// How chats become tokens: leat::chat.
struct chat_settings {
  std::string template_name;
  bool mask_prompt = false;
};

/// The tokens of a text. They are made on the decode threads, each with 2 MiB for words that it has seen.
///
///     const leat::tokenizer words = leat::tokenizer::open("tokenizer.json");
///     loader train{open_jsonl("corpus.jsonl"), {.batch_size = 8}, tokenize("text", words).truncate(2048).eos()};
///
///   reads      a text. What is no UTF-8 is replaced by U+FFFD (of JSONL and CSV such a text is corrupt before)
///   output     `name`: i32, the tokens of all rows one after another, with `name`.offsets (i64 [rows + 1]). After pad() `name`: [rows, n],
///              and `name`.length: i64 [rows]; after mask() as well `name`.mask: bool [rows, n]
///   corrupt    more tokens than pad() has room for, unless truncate() cuts them; a word of more than 1 MiB; a text that is no UTF-8
///              and has more tokens than bytes; one that the tokenizer's expression takes too many steps for
///   throws     (when the loader is built) error{errc::usage}: a member that is no text; truncate() to fewer tokens than those around a
///              text; a value of pad() that the type has not
class tokenize {
 public:
  /// The output is called as the member.
  tokenize(std::string member, tokenizer words) : words_(std::move(words)) {
    settings_.name = settings_.member = std::move(member);
  }
  [[nodiscard]] tokenize named(std::string name) const {
    return with([&](settings& to) { to.name = std::move(name); });
  }
  /// i32 or i64.
  [[nodiscard]] tokenize as(dtype type) const {
    return with([=](settings& to) { to.type = type; });
  }
  /// A token behind the text, and behind those that the file puts there. Without a name, the one that ends a text:
  /// tokenizer_config.json's eos_token, SentencePiece's eos_piece, tiktoken's <|endoftext|>.
  ///   throws   error{errc::usage} for a token that the tokenizer does not have, or does not name
  [[nodiscard]] tokenize eos() const;
  [[nodiscard]] tokenize eos(std::string_view token) const;
  /// Special tokens that a text spells are those tokens. By default they are text: users write such things too.
  [[nodiscard]] tokenize special_in_text() const {
    return with([](settings& to) { to.special_in_text = true; });
  }
  /// Without the tokens that the file puts around each text (add_special_tokens = False).
  [[nodiscard]] tokenize without_special() const {
    return with([](settings& to) { to.around = false; });
  }
  /// No more than n tokens: the text is cut, and what is around it and eos() remain.
  [[nodiscard]] tokenize truncate(std::int64_t n) const {
    return with([=](settings& to) { to.truncate = n; });
  }
  /// All rows have n tokens: shorter ones are filled with `value`.
  [[nodiscard]] tokenize pad(std::int64_t n, std::int64_t value = 0) const {
    return with([=](settings& to) {
      to.pad = n;
      to.pad_value = value;
    });
  }
  /// True where a token is.
  [[nodiscard]] tokenize mask() const {
    return with([](settings& to) { to.mask = true; });
  }
  /// Where the numbers of tokens that packed() and bucketed() ask for are kept, as an index is: 4 bytes a sample, from 1,000 samples
  /// on or in a directory that is named; of objects where the server tells a version. Default: they are counted in each run.
  [[nodiscard]] tokenize keep_counts(index_options where) const {
    return with([&](settings& to) { to.counts = std::move(where); });
  }
  operator field() const;  // NOLINT: it is a field.

  struct settings {
    std::string name;
    std::string member;
    dtype type = dtype::i32;
    std::optional<std::int32_t> eos;
    bool special_in_text = false;
    bool around = true;
    std::optional<std::int64_t> truncate;
    std::optional<std::int64_t> pad;
    std::int64_t pad_value = 0;
    bool mask = false;
    index_options counts;
    std::optional<chat_settings> chat;
  };

 private:
  template <class Change>
  [[nodiscard]] tokenize with(const Change& change) const {
    tokenize changed = *this;
    change(changed.settings_);
    return changed;
  }

  friend class chat;
  tokenizer words_;
  settings settings_;
};

/// The tokens of a chat, as the template of a model writes it; and labels, which are the same tokens, or -100.
///
///     loader tune{open_jsonl("chats.jsonl"), {.batch_size = 16, .order = packed(4096, {.by = packed_by::best_fit})},
///                 chat("messages", words).with_template("llama3").mask_prompt()};
///
///   reads      a list of messages as JSON: `[{"role": "user", "content": "Hello"}, ...]`; of Parquet a list of structs
///   output     `input_ids` and `labels`, and with them what tokenize has: `input_ids`.offsets and `labels`.offsets; after pad() rows of
///              n, labels -100 behind the tokens; of packed rows `input_ids`.positions and so on, and labels -100 where no token is
///   tokens     what apply_chat_template(messages) makes, but that special tokens which a message spells are text
///   corrupt    no such list; a message without a role or a text, or that calls tools; roles that the template does not have, or not in
///              this order; and as tokenize has it
///   throws     (when the loader is built) error{errc::usage}: a template that is not known, or whose tokens the tokenizer does not have
class chat {
 public:
  chat(std::string member, tokenizer words) : chat(tokenize(std::move(member), std::move(words)).named("input_ids")) {
    tokens_.settings_.chat.emplace();
  }
  /// chatml, qwen2, qwen2.5, llama2, llama3, llama3.1, mistral (v0.2) or gemma (1, 2). Default: the one that the tokenizer's
  /// special tokens name, where they are of one family alone (llama3, gemma).
  [[nodiscard]] chat with_template(std::string name) const {
    return with([&](tokenize::settings& to) { to.chat->template_name = std::move(name); });
  }
  /// Labels are those of answers alone: from the first token that is not the prompt's, up to the token that ends the answer.
  [[nodiscard]] chat mask_prompt() const {
    return with([](tokenize::settings& to) { to.chat->mask_prompt = true; });
  }
  /// As tokenize has them.
  [[nodiscard]] chat as(dtype type) const { return chat(tokens_.as(type)); }
  [[nodiscard]] chat truncate(std::int64_t n) const { return chat(tokens_.truncate(n)); }
  [[nodiscard]] chat pad(std::int64_t n, std::int64_t value = 0) const { return chat(tokens_.pad(n, value)); }
  [[nodiscard]] chat mask() const { return chat(tokens_.mask()); }
  [[nodiscard]] chat keep_counts(index_options where) const { return chat(tokens_.keep_counts(std::move(where))); }
  operator field() const { return tokens_; }  // NOLINT: it is a field.

 private:
  explicit chat(tokenize tokens) : tokens_(std::move(tokens)) {}
  template <class Change>
  [[nodiscard]] chat with(const Change& change) const {
    return chat(tokens_.with(change));
  }

  tokenize tokens_;
};

}  // namespace leat
#pragma GCC visibility pop
