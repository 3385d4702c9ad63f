// The messages of a chat, out of a JSON list of objects.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// One thread's memory for a chat. It grows with the longest one.
class chat_messages {
 public:
  struct message {
    std::string role;
    std::string content;
  };

  /// Reads `[{"role": "user", "content": "..."}, ...]`. Other members are passed over.
  ///   returns   what is wrong: no such list, a message without a role or a text, calls of tools
  [[nodiscard]] std::optional<std::string> read(std::string_view json);

  [[nodiscard]] std::span<const message> all() const noexcept { return {messages_.data(), count_}; }

 private:
  friend class chat_reader;
  std::vector<message> messages_;  // more than there are: their memory is used again
  std::size_t count_ = 0;
};

}  // namespace leat::stages
