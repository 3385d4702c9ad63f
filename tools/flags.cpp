#include "tools/flags.hpp"

#include <algorithm>
#include <iterator>

namespace leat::tools {
namespace {

struct option_words {
  std::string_view in_program;
  std::string_view on_command_line;
};

constexpr option_words all_words[] = {
    {"without loader_options::device_required", "with --device auto"},
    {"with decode_on::automatic", "with --decode-on auto"},
    {"loader_options::device is the host", "--device is the host"},
    {"set loader_options::digests to false", "give --digest off"},
    {"jpeg_decoder::turbo", "--jpeg-decoder turbo"},
    {"jpeg_decoder::nvjpeg", "--jpeg-decoder nvjpeg"},
    {"read with preadv", "read with --reader preadv"},
    {"tar_options::ignore_zeros", "--ignore-zeros"},
    {"index_options::use", "--index-use"},
    {"array_options::window", "--window"},
    {"array_options::stride", "--stride"},
    {"array_options::samples", "--array-samples"},
    {"table_options::columns", "--columns"},
    {"table_options::path_column", "--path-column"},
    {"table_options::root", "--root"},
    {"table_options::types", "--types"},
    {"table_options::checksums", "--checksums"},
    {"allow_http", "--allow-http"},
    {"is read with anonymous", "is read with --anonymous"},
    {"ca_file", "--ca-file"},
    {"cache_bytes", "--cache-bytes"},
    {"cache_block_bytes", "--cache-block-bytes"},
    {"token_options::type", "--token-type"},
    {"pack_options::keep_finished", "--continue"},
    {"array_options::sample::row", "--no-array-samples"},
    {"array_options::sample::array", "--array-samples"},
    {"array_options::fields", "--fields"},
    {"open_options::split", "--split"},
    {"pack_options::overwrite", "--overwrite"},
    {"pack_options::samples_per_shard", "--samples-per-shard"},
    {"pack_options::skip_damaged", "--skip-damaged"},
    {"order itself (shuffled_blocks)", "order itself (--order shuffled_blocks:N)"},
    {"order balanced", "--order balanced"},
    {"order bucketed", "--order bucketed"},
    {"order mixture", "--mixture"},
    {"order repeated", "--order repeated"},
    {"order sticky", "--sticky"},
    {"order = sticky()", "--sticky 0"},
    {"tokens_max", "TOKENS_MAX"},
    {"tokens::length", "--tokens"},
    {"tokens::type", "--tokens-as"},
    {"unreadable_max", "--unreadable-max"},
    {"host_bytes_max", "--host-bytes-max"},
    {"corrupt_max", "--corrupt-max"},
    {"shuffle_blocks", "--shuffle-blocks"},
    {"decode_threads", "--threads"},
    {"queue_depth", "--queue-depth"},
    {"io_threads", "--io-threads"},
    {"prefetch_batches", "--prefetch-batches"},
    {"global_batch_size", "--global-batch-size"},
    {"batch_size", "--batch-size"},
    {"on_corrupt =", "--on-corrupt"},
    {"on_corrupt", "--on-corrupt"},
    {"batches_max", "--limit"},
    {"direct =", "--direct"},
};

bool is_of_a_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
         letter == '_' || letter == '/' || letter == '-' || letter == '.' || letter == ':';
}

// ". " and ": " end a sentence or a part of one, and are no more of the word.
bool goes_on(std::string_view rest) {
  if (rest.empty() || !is_of_a_word(rest.front())) return false;
  const bool ends_a_part = rest.front() == '.' || rest.front() == ':';
  return !ends_a_part || (rest.size() > 1 && rest[1] != ' ');
}

}  // namespace

std::string in_flags(std::string_view message) {
  std::string text;
  for (std::size_t at = 0; at < message.size();) {
    const std::string_view rest = message.substr(at);
    const bool begins_word = at == 0 || !is_of_a_word(message[at - 1]);
    const auto* const found = begins_word ? std::find_if(std::begin(all_words), std::end(all_words),
                                                         [&](const option_words& each) {
                                                           return rest.starts_with(each.in_program) &&
                                                                  !goes_on(rest.substr(each.in_program.size()));
                                                         })
                                          : std::end(all_words);
    if (found == std::end(all_words)) {
      text += message[at++];
    } else {
      text += found->on_command_line;
      at += found->in_program.size();
    }
  }
  return text;
}

}  // namespace leat::tools
