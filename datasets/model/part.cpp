#include "datasets/model/part.hpp"

namespace leat::datasets {

value_size size_of_value(const field_info& field, std::uint16_t number, std::span<const part> parts) noexcept {
  value_size size;
  for (const part& each : parts) {
    if (each.field != number) continue;
    switch (each.form) {
      case part_form::box:
        return {field.bytes_max};
      case part_form::value:
        size.bytes += each.value_bytes;
        size.is_exact = size.is_exact && !each.picked;
        break;
      case part_form::coded:
        size.bytes += each.where.decoded_bytes;
        size.is_exact = size.is_exact && each.value_bytes == each.where.decoded_bytes;
        break;
      case part_form::stored:
        size.bytes += each.where.decoded_bytes;
        break;
      case part_form::produced:
      case part_form::awaited:
        return {field.bytes_max, false};
    }
  }
  return size;
}

}  // namespace leat::datasets
