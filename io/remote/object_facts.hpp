// What a server says of an object, and whether two answers are of the same one.
#pragma once

#include "io/remote/address.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace leat::io {

struct object_facts {
  std::uint64_t size_bytes = 0;
  std::string etag;
  std::string last_modified;
  std::optional<std::int64_t> told_unix_s = {};  ///< when that was, by the server's clock

  /// Of the address without what signs it, the size and the tag, or the time where there is no tag that is good for each byte. 0 where
  /// these may stay the same though the content changes: the server tells neither, or a time that had not passed when it answered.
  ///   source   RFC 9110 8.8.1: a tag is one resource's, the query included, and a weak one promises no equal bytes
  [[nodiscard]] std::uint64_t version(const address& where) const;
};

/// As RFC 9110 13.1.1 has it: only a strong tag ever matches.
[[nodiscard]] bool is_strong(const std::string& etag);
[[nodiscard]] bool is_the_same(const object_facts& seen, const object_facts& expected);

}  // namespace leat::io
