// A chat as tokens: what stands around each message, and which tokens are an answer's.
#pragma once

#include "stages/tokenize/chat_messages.hpp"
#include "stages/tokenize/text_encoder.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::stages {

/// One thread's memory for a chat. It grows with the longest one.
class chat_scratch {
 private:
  friend class chat_template;
  chat_messages messages_;
  std::string text_;
  std::string other_;
  std::vector<std::uint32_t> ids_;
};

/// Thread: any, each with a scratch of its own. Immutable. What a chat becomes is what the published template makes of it, without
/// a prompt for the next answer; but special tokens that a message spells are text.
///   source   chat_template of tokenizer_config.json: Qwen2-7B-Instruct, Qwen2.5-7B-Instruct, Llama-2-7b-chat-hf,
///            Meta-Llama-3-8B-Instruct, Llama-3.1-8B-Instruct, Mistral-7B-Instruct-v0.2, gemma-2-9b-it; ChatML
class chat_template {
 public:
  /// Set in the number of a token that an answer has.
  static constexpr std::uint32_t counts = std::uint32_t{1} << 31;
  static constexpr std::size_t no_limit = static_cast<std::size_t>(-1);

  ///   name     of the list; empty: the one that the special tokens of the tokenizer name, where only one has them
  ///   path     of the tokenizer, for messages
  ///   throws   error{errc::usage}: no such template, or one whose tokens the tokenizer does not have; both name the list
  chat_template(const std::string& name, const text_encoder& words, const std::string& path);

  /// The list.
  [[nodiscard]] static std::vector<std::string_view> names();
  [[nodiscard]] std::string_view name() const noexcept;

  /// Appends the chat's tokens, those of answers with `counts`.
  ///   json      as chat_messages::read() takes it
  ///   returns   why there are none: of the messages, their order, or as text_encoder::encode()
  ///   throws    as text_encoder::encode()
  [[nodiscard]] std::optional<std::string> encode(std::string_view json, chat_scratch& scratch,
                                                  encode_scratch& encoding, std::vector<std::uint32_t>& ids) const;
  /// The most tokens that a chat of so many bytes of JSON has.
  [[nodiscard]] std::size_t ids_most(std::size_t json_bytes) const noexcept;

 private:
  /// What is written so far: a text that is not encoded yet, and from where on it is an answer's.
  struct writer;
  struct part {
    enum class kind : std::uint8_t { special, text, role, content, end };
    kind what = kind::text;
    std::string text;
    std::uint32_t id = 0;
  };
  using form = std::vector<part>;
  [[nodiscard]] form parse(std::string_view text) const;

  const struct chat_rule* rule_ = nullptr;
  const text_encoder* words_;
  std::vector<std::pair<std::string_view, std::uint32_t>> specials_;
  form begin_;
  form message_;
  form answer_;
  form system_;
  form without_system_;
};

}  // namespace leat::stages
