#include "base/hasher.hpp"
#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "stages/tokenize/tokenizer_state.hpp"

#include <leat/error.hpp>
#include <leat/tokenizer.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t file_bytes_max = std::uintmax_t{1} << 30;

std::string content_of(const fs::path& path) {
  std::error_code failed;
  const std::uintmax_t bytes = fs::file_size(path, failed);
  if (failed) {
    throw error(failed == std::errc::no_such_file_or_directory ? errc::not_found : errc::io,
                str_cat(path.string(), ": ", failed.message()));
  }
  if (bytes > file_bytes_max)
    throw error(errc::limit, str_cat(path.string(), ": has ", bytes, " bytes, and a tokenizer's file up to 1 GiB"));
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad() || content.size() != bytes) throw error(errc::io, str_cat(path.string(), ": could not be read"));
  return content;
}

// "<|endoftext|>", or {"content": "<|endoftext|>", ...}.
std::optional<std::string> eos_token(const fs::path& config) {
  std::error_code failed;
  if (!fs::exists(config, failed)) return std::nullopt;
  nlohmann::json file;
  try {
    file = parse_json(content_of(config));
  } catch (const error& wrong) {
    throw error(errc::format, str_cat(config.string(), ": ", wrong.what()));
  }
  if (!file.is_object() || !file.contains("eos_token")) return std::nullopt;
  const nlohmann::json& token = file["eos_token"];
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string()) {
    return token["content"].get<std::string>();
  }
  return std::nullopt;
}

}  // namespace

tokenizer tokenizer::open(const std::string& path) {
  const fs::path file(path);
  const bool is_tiktoken = file.extension() == ".tiktoken";
  const bool is_pieces = file.extension() == ".model";
  if (!is_tiktoken && !is_pieces && file.extension() != ".json") {
    throw error(errc::unsupported,
                str_cat(path,
                        ": a tokenizer is a tokenizer.json, SentencePiece's tokenizer.model, or a file of tiktoken "
                        "(cl100k_base.tiktoken)"));
  }
  const std::string content = content_of(file);
  try {
    const stages::tokenizer_parts parts = is_tiktoken ? stages::parse_tiktoken(content, file.stem().string())
                                          : is_pieces ? stages::parse_sentencepiece(content)
                                                      : stages::parse_tokenizer_json(content);
    auto made = std::make_shared<state>(path, parts);
    hasher identity;
    identity.add(content);
    std::optional<std::string> eos = is_tiktoken ? std::optional<std::string>("<|endoftext|>")
                                                 : eos_token(file.parent_path() / "tokenizer_config.json");
    if (!eos) eos = parts.eos;
    if (eos) {
      const std::optional<std::uint32_t> id = made->encoder.find(*eos);
      if (id) made->eos = static_cast<std::int32_t>(*id);
      identity.add(*eos);
    }
    if (is_tiktoken) identity.add(file.stem().string());  // It says how a text is cut.
    made->identity = identity.finish();
    return tokenizer(std::move(made));
  } catch (const error& wrong) {
    throw error(wrong.code(), str_cat(path, ": ", wrong.what()));
  }
}

std::vector<std::int32_t> tokenizer::encode(std::string_view text) const {
  const mutex_lock lock(state_->one_at_a_time);
  if (state_->scratch == nullptr) state_->scratch = std::make_unique<stages::encode_scratch>(state_->encoder);
  std::vector<std::uint32_t> ids;
  if (const auto wrong = state_->encoder.encode(text, {}, *state_->scratch, ids)) {
    throw error(errc::limit, str_cat("the text ", *wrong));
  }
  return {ids.begin(), ids.end()};
}

std::optional<std::int32_t> tokenizer::find(std::string_view token) const {
  const std::optional<std::uint32_t> id = state_->encoder.find(token);
  if (!id) return std::nullopt;
  return static_cast<std::int32_t>(*id);
}

std::int32_t tokenizer::vocabulary() const noexcept { return static_cast<std::int32_t>(state_->encoder.vocabulary()); }
const digest& tokenizer::identity() const noexcept { return state_->identity; }

}  // namespace leat
