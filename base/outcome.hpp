// Bad data is a value: the result for one sample, or the reason why there is none. The reason is for the journal and
// for a person; the loader decides what to do (raise, skip, substitute).
#pragma once

#include "base/corrupt_kind.hpp"

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace leat::stages {

enum class outcome_kind : std::uint8_t {
  ok,
  corrupt,      ///< damaged where it was looked at
  unsupported,  ///< not damaged, but not read: a foreign format, too many pixels
  over_budget,  ///< not damaged, but its decoding takes more memory than the budget has for a sample
  no_memory,    ///< the system gave none: says nothing about the sample, and ends the run
  cancelled     ///< a stop was requested; says nothing about the sample
};

/// Why there is no result. Never of kind ok.
struct failure {
  outcome_kind kind = outcome_kind::corrupt;
  std::string reason;
  std::optional<corrupt_kind> more = {};  ///< than `kind` says of the sample
  std::uint64_t bytes_needed = 0;         ///< over_budget: of memory, to decode it

  [[nodiscard]] corrupt_kind counted_as() const noexcept {
    if (more) return *more;
    if (kind == outcome_kind::over_budget) return corrupt_kinds::over_budget;
    return kind == outcome_kind::unsupported ? corrupt_kinds::unsupported : corrupt_kinds::damaged;
  }
};

[[nodiscard]] inline failure corrupt(std::string reason) { return {outcome_kind::corrupt, std::move(reason)}; }
[[nodiscard]] inline failure corrupt(std::string reason, corrupt_kind more) {
  return {outcome_kind::corrupt, std::move(reason), more};
}
[[nodiscard]] inline failure unsupported(std::string reason) { return {outcome_kind::unsupported, std::move(reason)}; }
[[nodiscard]] inline failure over_budget(std::string reason, std::uint64_t bytes_needed) {
  return {outcome_kind::over_budget, std::move(reason), std::nullopt, bytes_needed};
}
[[nodiscard]] inline failure no_memory(std::string reason) { return {outcome_kind::no_memory, std::move(reason)}; }
[[nodiscard]] inline failure cancelled() { return {outcome_kind::cancelled, "cancelled"}; }

/// A value, or a failure. Holding a value costs no allocation beyond T's own.
template <class T>
class [[nodiscard]] outcome {
 public:
  outcome(T value) : content_(std::in_place_index<0>, std::move(value)) {}   // NOLINT: `return value;`
  outcome(failure why) : content_(std::in_place_index<1>, std::move(why)) {  // NOLINT: `return corrupt("...");`
    assert(std::get<1>(content_).kind != outcome_kind::ok);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return content_.index() == 0; }
  [[nodiscard]] outcome_kind kind() const noexcept { return *this ? outcome_kind::ok : error().kind; }
  [[nodiscard]] const std::string& reason() const noexcept { return error().reason; }
  [[nodiscard]] const failure& error() const noexcept {
    assert(content_.index() == 1);
    return *std::get_if<1>(&content_);
  }

  [[nodiscard]] const T& operator*() const noexcept {
    assert(content_.index() == 0);
    return *std::get_if<0>(&content_);
  }
  [[nodiscard]] T& operator*() noexcept {
    assert(content_.index() == 0);
    return *std::get_if<0>(&content_);
  }
  [[nodiscard]] const T* operator->() const noexcept { return &**this; }
  [[nodiscard]] T* operator->() noexcept { return &**this; }

 private:
  std::variant<T, failure> content_;
};

template <>
class [[nodiscard]] outcome<void> {
 public:
  outcome() = default;
  outcome(failure why) : failure_(std::move(why)) { assert(failure_->kind != outcome_kind::ok); }  // NOLINT: as above

  [[nodiscard]] explicit operator bool() const noexcept { return !failure_.has_value(); }
  [[nodiscard]] outcome_kind kind() const noexcept { return failure_ ? failure_->kind : outcome_kind::ok; }
  [[nodiscard]] const std::string& reason() const noexcept { return error().reason; }
  [[nodiscard]] const failure& error() const noexcept {
    assert(failure_.has_value());
    return *failure_;
  }

 private:
  std::optional<failure> failure_;
};

}  // namespace leat::stages
