#include "base/option_words.hpp"

#include "base/text.hpp"

#include <leat/index_options.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/open_tokens.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace leat {
namespace {

using enum option_id;

constexpr option_words in_cpp[] = {
    {none, "", ""},
    {batch_size, "", "loader_options::batch_size"},
    {batches_max, "", "loader_options::batches_max"},
    {corrupt_max, "", "loader_options::corrupt_max"},
    {decode_on, "", "loader_options::decode_on"},
    {decode_threads, "", "loader_options::decode_threads"},
    {device, "", "loader_options::device"},
    {device_batches, "", "loader_options::device_batches"},
    {device_bytes_max, "", "loader_options::device_bytes_max"},
    {device_required, "", "loader_options::device_required"},
    {digests, "", "loader_options::digests"},
    {finish_on_device, "", "loader_options::finish_on_device"},
    {global_batch_size, "", "loader_options::global_batch_size"},
    {host_bytes_max, "", "loader_options::host_bytes_max"},
    {numa, "", "loader_options::numa"},
    {on_corrupt, "", "loader_options::on_corrupt"},
    {prefetch_batches, "", "loader_options::prefetch_batches"},
    {shuffle_blocks, "", "loader_options::shuffle_blocks"},
    {timeline_bytes, "", "timeline_options::bytes"},
    {unreadable_max, "", "loader_options::unreadable_max"},
    {world, "", "loader_options::world"},
    {order_balanced, "", "order balanced"},
    {order_bucketed, "", "order bucketed"},
    {order_mixture, "", "order mixture"},
    {order_repeated, "", "order repeated"},
    {order_sampled_by, "", "order sampled_by"},
    {order_shuffled_blocks, "", "order shuffled_blocks"},
    {order_node_local, "", "order node_local"},
    {order_weighted, "", "order weighted"},
    {tokens_max, "", "bucket_options::tokens_max"},
    {chat_template, "", "chat::with_template()"},
    {jpeg_decoder, "", "image::decoder()"},
    {rounding, "", "image::rounding()"},
    {tokens_length, "", "tokens::length"},
    {tokens_type, "", "tokens::type"},
    {backend, "", "reader_options::backend"},
    {direct, "", "reader_options::direct"},
    {io_threads, "", "reader_options::io_threads"},
    {preadv_threads, "", "reader_options::preadv_threads"},
    {queue_depth, "", "reader_options::queue_depth"},
    {read_timeout, "", "reader_options::read_timeout"},
    {registered_buffers, "", "reader_options::registered_buffers"},
    {allow_http, "", "remote_options::allow_http"},
    {anonymous, "", "remote_options::anonymous"},
    {ca_file, "", "remote_options::ca_file"},
    {cache, "", "remote_options::cache"},
    {cache_bytes, "", "remote_options::cache_bytes"},
    {cache_block_bytes, "", "remote_options::cache_block_bytes"},
    {array_fields, "", "array_options::fields"},
    {array_samples, "", "array_options::samples"},
    {array_stride, "", "array_options::stride"},
    {array_window, "", "array_options::window"},
    {ignore_zeros, "", "tar_options::ignore_zeros"},
    {index_use, "", "index_options::use"},
    {lmdb_database, "", "lmdb_options::database"},
    {split, "", "open_options::split"},
    {table_checksums, "", "table_options::checksums"},
    {table_columns, "", "table_options::columns"},
    {table_fields, "", "table_options::fields"},
    {table_path_column, "", "table_options::path_column"},
    {table_root, "", "table_options::root"},
    {table_text, "", "table_options::text"},
    {table_types, "", "table_options::types"},
    {token_type, "", "token_options::type"},
    {keep_finished, "", "pack_options::keep_finished"},
    {overwrite, "", "pack_options::overwrite"},
    {samples_per_shard, "", "pack_options::samples_per_shard"},
    {skip_damaged, "", "pack_options::skip_damaged"},
    // Values that say their type, and functions.
    {array_samples, "array", "array_options::sample::array"},
    {array_samples, "row", "array_options::sample::row"},
    {decode_on, "automatic", "decode_on::automatic"},
    {decode_on, "device", "decode_on::device"},
    {jpeg_decoder, "nvjpeg", "jpeg_decoder::nvjpeg"},
    {jpeg_decoder, "turbo", "jpeg_decoder::turbo"},
    {rounding, "exact", "pixel_rounding::exact"},
    {rounding, "fused", "pixel_rounding::fused"},
    {order_shuffled_blocks, "n", "loader_options::order = shuffled_blocks(n)"},
    {order_node_local, "by node", "loader_options::order = node_local()"},
};
constexpr option_spelling cpp{in_cpp, " = "};
// By number: name() takes them without a search.
static_assert([] {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(skip_damaged); ++i) {
    if (in_cpp[i].option != static_cast<option_id>(i) || !in_cpp[i].value.empty()) return false;
  }
  return true;
}());

std::atomic<const option_spelling*> spelling{&cpp};

const option_words* find(const option_spelling& how, option_id option, std::string_view value) {
  const auto found = std::find_if(how.words.begin(), how.words.end(), [&](const option_words& each) {
    return each.option == option && each.value == value;
  });
  return found == how.words.end() ? nullptr : &*found;
}

}  // namespace

std::string_view name(option_id which) noexcept { return in_cpp[static_cast<std::size_t>(which)].words; }

void spell_options(const option_spelling& how) noexcept { spelling.store(&how); }

std::string spelled(option_id option) {
  const option_words* const found = find(*spelling.load(), option, "");
  return std::string(found != nullptr ? found->words : name(option));
}

std::string spelled(option_id option, std::string_view value) {
  const option_spelling& how = *spelling.load();
  if (const option_words* const found = find(how, option, value)) return std::string(found->words);
  if (find(how, option, "") != nullptr) return str_cat(spelled(option), how.before_value, value);
  if (const option_words* const found = find(cpp, option, value)) return std::string(found->words);
  return str_cat(name(option), cpp.before_value, value);
}

}  // namespace leat
