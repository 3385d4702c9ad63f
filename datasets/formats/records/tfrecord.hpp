// Where the records of a TFRecord file lie.
#pragma once

#include "datasets/files/file_bytes.hpp"
#include "datasets/model/value_place.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace leat::datasets {

/// Whether these are a record's length and the checksum of it.
[[nodiscard]] bool is_tfrecord(std::span<const std::byte> start) noexcept;

/// The lengths are read, and their checksums verified; the records are not.
///   throws   error{errc::format} damage, with file and offset
///   source   tensorflow.org: TFRecord and tf.train.Example
[[nodiscard]] std::vector<value_place> find_records(const file_bytes& file);

}  // namespace leat::datasets
