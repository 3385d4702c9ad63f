// What the elements of an HDF5 dataset are: a datatype message.
#pragma once

#include "datasets/formats/hdf5/hdf5_bytes.hpp"

#include <leat/tensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace leat::datasets {

/// One type.
///   bytes        of an element
///   type         of a number; of text and opaque bytes u8, with `axes` of their length
///   axes         an element has of its own: of text, opaque bytes, and arrays
///   members      of a compound
///   not_read     why leat has nothing for it, and what to do; empty where it has
struct hdf5_type {
  enum class kind : std::uint8_t { number, compound, variable_text, variable_bytes, unknown };
  struct member;

  kind what = kind::number;
  std::uint32_t bytes = 0;
  dtype type = dtype::u8;
  bool big_endian = false;
  bool characters = false;  ///< of u8: text
  std::vector<std::uint64_t> axes;
  std::vector<member> members;
  std::string not_read;
};

struct hdf5_type::member {
  std::string name;
  std::uint32_t offset = 0;
  hdf5_type type;
};

/// Takes one type, with all that it is made of.
///   throws   error{errc::format} one that is damaged
///   source   HDF5 File Format Specification 3.0, IV.A.2.d
[[nodiscard]] hdf5_type read_type(hdf5_cursor& at);

}  // namespace leat::datasets
