// What is wrong with a sample, as a value: it is counted by it, in statistics and metrics, and the journal has it beside the reason.
#pragma once

#include <compare>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace leat {

/// There are few: those below, and the formats of pictures that leat knows and does not read ("TIFF").
struct corrupt_kind {
  std::string_view name = "damaged";  ///< of static storage

  friend auto operator<=>(const corrupt_kind&, const corrupt_kind&) = default;
};

namespace corrupt_kinds {
inline constexpr corrupt_kind damaged{"damaged"};          ///< wrong where it was looked at
inline constexpr corrupt_kind empty{"empty"};              ///< no bytes
inline constexpr corrupt_kind incomplete{"incomplete"};    ///< a field is missing
inline constexpr corrupt_kind unsupported{"unsupported"};  ///< whole, and not read
inline constexpr corrupt_kind unknown_format{"unknown format"};
inline constexpr corrupt_kind unreadable{"unreadable"};    ///< its bytes could not be had
inline constexpr corrupt_kind over_budget{"over budget"};  ///< whole, and takes more memory than the loader may give it
}  // namespace corrupt_kinds

/// Why there is no value of a sample: a reason for people, of a kind for counting. Words alone are of damage.
struct value_fault {
  template <class Words>
    requires std::convertible_to<Words, std::string>
  value_fault(Words&& why, corrupt_kind of = corrupt_kinds::damaged)  // NOLINT: `return "a text that ends early";`
      : reason(std::forward<Words>(why)), kind(of) {}

  std::string reason;
  corrupt_kind kind;
};

}  // namespace leat
