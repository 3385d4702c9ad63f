// Lists of numbers of which files of one table have different widths: those of the narrower files are widened, where that is exact.
#pragma once

#include "datasets/tables/record_rows.hpp"

#include <leat/tensor.hpp>

#include <optional>

namespace leat::datasets {

/// The type that has all numbers of both: none where there is no such integer, and of an integer and a float. u8 is any bytes.
[[nodiscard]] std::optional<dtype> type_of_both(dtype a, dtype b) noexcept;

/// Makes the elements of a field of lists wider.
///   to       type_of_both() of its own type and another one
///   throws   error{errc::limit} lists that become more than a block may have
void widen_lists(record_field& field, dtype to);

}  // namespace leat::datasets
