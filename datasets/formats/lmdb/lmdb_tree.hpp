// An LMDB database, as its pages lie: which keys there are, and where their values lie.
#pragma once

#include "datasets/files/file_bytes.hpp"
#include "datasets/model/value_place.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

struct lmdb_contents {
  /// Where a key lies: 48 bits of the offset, 16 of its length.
  using key_place = std::uint64_t;

  std::uint64_t transaction = 0;       ///< the last one that was committed
  std::vector<value_place> values;     ///< in the order of the keys, as LMDB compares them
  std::vector<key_place> keys;         ///< of each value
  std::string key_bytes;               ///< of all keys, one after another
  std::vector<std::string> databases;  ///< named ones, which the main one has beside its values

  [[nodiscard]] static std::uint64_t offset_of(key_place key) noexcept { return key & ((std::uint64_t{1} << 48) - 1); }
  [[nodiscard]] static std::uint64_t length_of(key_place key) noexcept { return key >> 48; }
};

/// Branch and leaf pages are read, and no value.
///   open       the file, anew for each thread that reads
///   database   a named one; empty: the main one
///   threads    that read
///   throws     error{errc::format} damage, with file and offset; error{errc::unsupported} another version's file, and databases with several
///              values for a key; error{errc::not_found} a name that is not there, with those that are
///   source     OpenLDAP, liblmdb 0.9: mdb.c, lmdb.h
[[nodiscard]] lmdb_contents read_lmdb(const std::function<std::unique_ptr<file_bytes>()>& open,
                                      const std::string& database, unsigned threads);

/// The last transaction that was committed to the file.
///   throws   as read_lmdb()
[[nodiscard]] std::uint64_t newest_transaction(const file_bytes& file);

/// Whether a file's first bytes are LMDB's.
[[nodiscard]] bool is_lmdb(std::span<const std::byte> start) noexcept;

}  // namespace leat::datasets
