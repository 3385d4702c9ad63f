#include "tools/flags.hpp"

#include <leat/index_options.hpp>

namespace leat::tools {
namespace {

using enum option_id;

constexpr option_words flags[] = {
    {batch_size, "", "--batch-size"},
    {batches_max, "", "--limit"},
    {corrupt_max, "", "--corrupt-max"},
    {decode_on, "", "--decode-on"},
    {decode_on, "automatic", "--decode-on auto"},
    {decode_threads, "", "--threads"},
    {device, "", "--device"},
    {device_required, "false", "--device auto"},
    {digests, "", "--digest"},
    {digests, "false", "--digest off"},
    {global_batch_size, "", "--global-batch-size"},
    {host_bytes_max, "", "--host-bytes-max"},
    {numa, "", "--numa"},
    {numa, "automatic", "--numa auto"},
    {on_corrupt, "", "--on-corrupt"},
    {prefetch_batches, "", "--prefetch-batches"},
    {shuffle_blocks, "", "--shuffle-blocks"},
    {timeline_bytes, "", "--trace"},
    {unreadable_max, "", "--unreadable-max"},
    {world, "", "--world"},
    {order_balanced, "", "--order balanced"},
    {order_bucketed, "", "--order bucketed"},
    {order_mixture, "", "--mixture"},
    {order_repeated, "", "--order repeated"},
    {order_shuffled_blocks, "", "--order shuffled_blocks"},
    {order_shuffled_blocks, "n", "--order shuffled_blocks:N"},
    {order_node_local, "", "--node-local"},
    {order_node_local, "by node", "--node-local 0"},
    {tokens_max, "", "TOKENS_MAX"},  // a part of --order bucketed:LENGTH:TOKENS_MAX
    {chat_template, "", "--chat"},
    {jpeg_decoder, "", "--jpeg-decoder"},
    {rounding, "", "--rounding"},
    {tokens_length, "", "--tokens"},
    {tokens_type, "", "--tokens-as"},
    {backend, "", "--reader"},
    {direct, "", "--direct"},
    {direct, "automatic", "--direct auto"},
    {io_threads, "", "--io-threads"},
    {queue_depth, "", "--queue-depth"},
    {allow_http, "", "--allow-http"},
    {anonymous, "", "--anonymous"},
    {ca_file, "", "--ca-file"},
    {cache, "", "--cache"},
    {cache_bytes, "", "--cache-bytes"},
    {cache_block_bytes, "", "--cache-block-bytes"},
    {array_fields, "", "--fields"},
    {array_samples, "", "--array-samples"},
    {array_samples, "array", "--array-samples"},
    {array_samples, "row", "--no-array-samples"},
    {array_stride, "", "--stride"},
    {array_window, "", "--window"},
    {ignore_zeros, "", "--ignore-zeros"},
    {index_use, "", "--index-use"},
    {split, "", "--split"},
    {table_checksums, "", "--checksums"},
    {table_columns, "", "--columns"},
    {table_fields, "", "--fields"},
    {table_path_column, "", "--path-column"},
    {table_root, "", "--root"},
    {table_text, "", "--text"},
    {table_types, "", "--types"},
    {token_type, "", "--token-type"},
    {keep_finished, "", "--continue"},
    {overwrite, "", "--overwrite"},
    {samples_per_shard, "", "--samples-per-shard"},
    {skip_damaged, "", "--skip-damaged"},
};

}  // namespace

const option_spelling on_the_command_line{flags, " "};

}  // namespace leat::tools
