// The options that errors and other messages name, as values.
#pragma once

#include <leat/compiler.hpp>

#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)
namespace leat {

/// An option that a message names. Messages spell it as the caller does: in C++ loader_options::batch_size, on the command's line
/// --batch-size.
enum class option_id : std::uint8_t {
  none,
  // loader_options
  batch_size,
  batches_max,
  corrupt_max,
  decode_on,
  decode_threads,
  device,
  device_batches,
  device_bytes_max,
  device_required,
  digests,
  finish_on_device,
  global_batch_size,
  host_bytes_max,
  numa,
  on_corrupt,
  prefetch_batches,
  shuffle_blocks,
  timeline_bytes,
  unreadable_max,
  world,
  // Orders and their arguments
  order_balanced,
  order_bucketed,
  order_mixture,
  order_repeated,
  order_sampled_by,
  order_shuffled_blocks,
  order_node_local,
  order_weighted,
  tokens_max,
  // Fields
  chat_template,
  jpeg_decoder,
  rounding,
  tokens_length,
  tokens_type,
  // reader_options
  backend,
  direct,
  io_threads,
  preadv_threads,
  queue_depth,
  read_timeout,
  registered_buffers,
  // remote_options
  allow_http,
  anonymous,
  ca_file,
  cache,
  cache_bytes,
  cache_block_bytes,
  // Of opening
  array_fields,
  array_samples,
  array_stride,
  array_window,
  ignore_zeros,
  index_use,
  lmdb_database,
  split,
  table_checksums,
  table_columns,
  table_fields,
  table_path_column,
  table_root,
  table_text,
  table_types,
  token_type,
  // pack_options
  keep_finished,
  overwrite,
  samples_per_shard,
  skip_damaged
};

/// Its name in C++: "loader_options::batch_size".
[[nodiscard]] std::string_view name(option_id which) noexcept;

}  // namespace leat
#pragma GCC visibility pop
