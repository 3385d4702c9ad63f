// The result of a call for the next batch that may return before there is one.
#pragma once

#include <leat/batch.hpp>
#include <leat/compiler.hpp>

#include <cassert>
#include <cstdint>
#include <optional>
#include <utility>

#pragma GCC visibility push(default)
namespace leat {

enum class next_status : std::uint8_t {
  batch,         ///< there is a batch
  end_of_epoch,  ///< where next() gives std::nullopt
  not_ready      ///< neither yet; the batch that comes is for a later call
};

/// A batch, the end of an epoch, or nothing yet.
///
///     while (true) {
///       leat::next_result got = train.next_blocking(100ms);
///       if (got.status() == leat::next_status::end_of_epoch) break;
///       if (got) step(*got); else look_after_other_things();
///     }
class next_result {
 public:
  explicit next_result(leat::batch got) noexcept : status_(next_status::batch), batch_(std::move(got)) {}
  /// Without a batch.
  explicit next_result(next_status why_none) noexcept : status_(why_none) { assert(why_none != next_status::batch); }

  [[nodiscard]] next_status status() const noexcept { return status_; }

  /// Whether there is a batch.
  [[nodiscard]] explicit operator bool() const noexcept { return batch_.has_value(); }
  [[nodiscard]] leat::batch& operator*() & noexcept {
    assert(batch_);
    return *batch_;
  }
  [[nodiscard]] const leat::batch& operator*() const& noexcept {
    assert(batch_);
    return *batch_;
  }
  [[nodiscard]] leat::batch&& operator*() && noexcept {
    assert(batch_);
    return std::move(*batch_);
  }
  [[nodiscard]] leat::batch* operator->() noexcept { return &**this; }
  [[nodiscard]] const leat::batch* operator->() const noexcept { return &**this; }

 private:
  next_status status_;
  std::optional<leat::batch> batch_;
};

}  // namespace leat
#pragma GCC visibility pop
