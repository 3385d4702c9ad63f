// A dataset with some samples marked as not to be delivered, as `leat check` finds them.
#pragma once

#include <leat/compiler.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>

#pragma GCC visibility push(default)
namespace leat {

/// The same samples, of which these are never delivered. A loader treats them as corrupt ones, of the kind "excluded": with
/// on_corrupt = skip their rows are left out, with substitute another sample takes each row. No other row changes, whereas a
/// subset() is shuffled anew. They are counted and written to the journal, but not against corrupt_max. With raise the run
/// ends at the first of them.
///
///     leat::loader train{exclude(photos, {17, 4031}), {.on_corrupt = leat::corrupt_policy::substitute}, …};
///
///   samples   numbers of samples, in any order; one may come twice
///   throws    error{errc::usage} for a sample that is not there, and for all of them
///   order     make columns first: read_column() refuses what is excluded
///   resume    a state names them by a digest: a run goes on with the same ones only
[[nodiscard]] dataset exclude(const dataset& whole, std::span<const std::uint64_t> samples);
[[nodiscard]] dataset exclude(const dataset& whole, std::initializer_list<std::uint64_t> samples);

}  // namespace leat
#pragma GCC visibility pop
