// Values that msgpack or Python's pickle wrote, found without making any object: bytes, texts and numbers, in lists, tuples and dicts.
#pragma once

#include "datasets/model/value_picker.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

enum class serialization : std::uint8_t { msgpack, pickle };

/// A record of more fields, or with longer paths, is left as bytes.
inline constexpr std::size_t serialized_fields_max = 256;

/// What a record that begins and ends like this may be; of msgpack only maps and arrays are looked for.
[[nodiscard]] std::optional<serialization> serialization_of(std::span<const std::byte> record) noexcept;

/// One of a record's values.
///   path    its keys and places (of lists, from 0), with dots between them; "value" where the record is no list and no dict
///   holds   `numbers` is a list of nothing else, or an empty one; `other` a list of anything else that is not the record itself
///   bytes   of bytes and text, within the record
struct serialized_member {
  enum class content : std::uint8_t { none, bytes, text, number, numbers, other } holds = content::none;
  std::string path;
  std::span<const std::byte> bytes;
};

/// A record's values, in their order.
///   throws   error{errc::format} no such record, or a damaged one; error{errc::limit} more than 65,536 values or 256 fields, paths of more
///            than 1 KiB, or deeper than 64;
///            error{errc::unsupported} a pickle that makes objects or calls functions, msgpack's extensions
///   source   github.com/msgpack/msgpack/blob/master/spec.md; Lib/pickletools.py of CPython
[[nodiscard]] std::vector<serialized_member> read_serialized(serialization how, std::span<const std::byte> record);

/// Picks one of them: bytes and text as they are; numbers, true and false (1 and 0) as text, with spaces between them.
///   holds   what the first record has there, which tells how long it may be
[[nodiscard]] std::shared_ptr<const value_picker> pick_member(serialization how, std::string path,
                                                              serialized_member::content holds);

}  // namespace leat::datasets
