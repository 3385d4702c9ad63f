// Every sample of a dataset, read and decoded once: what is wrong with it by itself, and what it is compared by (leat check).
#pragma once

#include "tools/large_pictures.hpp"
#include "tools/near_pictures.hpp"

#include <leat/digest.hpp>
#include <leat/index_options.hpp>
#include <leat/samples.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tools {

/// What remains of a sample once it was looked at. There may be ten million.
///   content   of its pictures' bytes as they are stored; where it has none, of all its fields but the class
///   bytes     of that
///   rest      of all that is beside the content and the class: other fields, columns, and which fields there are
///   label     of the class as it stands there, whether or not it is one; 0: there is none
///   width, height   of its first picture; 0: it has none, or that is broken
struct checked_sample {
  digest content;
  std::uint64_t bytes = 0;
  std::uint64_t rest = 0;
  std::uint64_t label = 0;
  std::int64_t cls = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool is_read = false;  ///< all of it, so that it may be compared
  bool has_class = false;
  bool has_picture = false;
  bool is_flat = false;  ///< that is of one colour
  picture_key key;       ///< of that, unless it is flat
};

/// Why a sample is not as it should be.
///   field   empty: none by itself
///   kind    corrupt_kind, or not_finite
struct sample_fault {
  std::uint64_t sample = 0;
  std::string field;
  std::string kind;
  std::string reason;
};
/// A NaN or an infinity among an array's numbers: no loader takes offence.
inline constexpr std::string_view not_finite = "not finite";

/// A token that the vocabulary does not have.
inline constexpr std::string_view not_in_vocabulary = "not in vocabulary";

/// What the numbers of a column are, or those of an array's field, all samples together.
///   samples            that have it
///   not_a_number       values of a column; samples of an array
///   least, largest     of the finite ones; nothing where there is none
///   mean, deviation    of a column's; in the order of the samples, so that they are the same for any number of threads
struct number_facts {
  std::string name;
  bool is_array = false;
  std::uint64_t samples = 0;
  std::uint64_t missing = 0;
  std::uint64_t not_a_number = 0;
  std::optional<double> least = {};
  std::optional<double> largest = {};
  double mean = 0;
  double deviation = 0;

  /// All are the same number, and there are several.
  [[nodiscard]] bool is_constant() const noexcept { return samples > 1 && least && least == largest; }
  /// None is a number.
  [[nodiscard]] bool is_empty() const noexcept { return !least; }
};

/// Sums over pictures, each of which counts as much as any other. In whole numbers, so that no order of adding them matters.
///   mean, squares   of red, green, blue: 65,536 times the mean of a picture's pixels and of their squares
struct pixel_sums {
  std::uint64_t pictures = 0;
  std::array<std::uint64_t, 3> mean{};
  std::array<std::uint64_t, 3> squares{};

  void add(const pixel_sums& other) noexcept;
  /// Of all pixels together, of 1.
  [[nodiscard]] std::array<double, 3> means() const noexcept;
  [[nodiscard]] std::array<double, 3> deviations() const noexcept;
};

///   samples    as `leat epoch` counts them: without stray members
///   strays     how many were left out
///   label      the field or column that is the class; empty where there is none
///   all        by sample
///   faults     by sample and field
///   numbers    of each column, and then of each field of arrays of numbers
struct checked_samples {
  dataset samples;
  std::size_t strays = 0;
  std::vector<std::string> warnings = {};
  std::string label = {};
  std::vector<checked_sample> all = {};
  std::vector<sample_fault> faults = {};
  pixel_sums pixels = {};
  std::vector<number_facts> numbers = {};
};

///   where            which samples; empty: all
///   index            where sizes of pictures are kept that it asks for
///   host_bytes_max   the budget that a loader would have
///   threads          change the time only; 0: one for each core
///   vocabulary       tokens are below it; 0: any are
struct check_settings {
  std::string where = {};
  index_options index = {};
  std::size_t host_bytes_max = 0;
  unsigned threads = 0;
  std::uint64_t vocabulary = 0;
};

/// Reads all fields of all samples, expands what is stored in another form, and decodes pictures whole, at 112 x 112 pixels at
/// most. What a loader would find corrupt is a fault: damage, a missing field, a text that is no UTF-8 or no number.
///   throws           error{errc::limit}: the system gives no memory for a picture
[[nodiscard]] checked_samples check_samples(const dataset& opened, const check_settings& how,
                                            measuring_progress& so_far);

}  // namespace leat::tools
