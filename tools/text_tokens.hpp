// The texts of a source as tokens: which field they are, and what a survey of their lengths finds.
#pragma once

#include <leat/samples.hpp>
#include <leat/tokenizer.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace leat::tools {

struct terminal;
struct measuring_progress;

/// The field whose texts become tokens.
///   samples   without stray members
struct text_field {
  dataset samples;
  std::uint16_t number = 0;
  std::string name;
};
/// The one that is named, or the only one that is a text; of several "text" or "txt".
///   throws   error{errc::usage}: none, or which there are
[[nodiscard]] text_field text_field_of(const dataset& opened, const std::string& named);

/// Tokens of each text, without those around it.
///   counts       sorted; of texts that have tokens
///   unreadable   texts that are missing, damaged or too large
///   unknown      tokens that stand for what the vocabulary lacks
struct token_survey {
  std::string field;
  std::string tokenizer;
  std::vector<std::uint32_t> counts = {};
  std::uint64_t longest_sample = 0;
  std::uint64_t tokens = 0;
  std::uint64_t bytes = 0;
  std::uint64_t unknown = 0;
  std::uint64_t unreadable = 0;

  /// The least that a share of the texts has no more than: 0.5 is the median.
  [[nodiscard]] std::uint32_t at(double share) const;
};
[[nodiscard]] token_survey survey_tokens(const text_field& of, const tokenizer& words, std::string path,
                                         std::uint64_t host_bytes_max, measuring_progress& so_far);
[[nodiscard]] nlohmann::ordered_json as_json(const token_survey& found);
[[nodiscard]] std::string as_text(const terminal& screen, const token_survey& found, const dataset& samples);

}  // namespace leat::tools
