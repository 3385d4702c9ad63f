// A lease: part of an arena, with one owner at a time, which is returned to its pool when the lease ends.
#pragma once

#include <leat/compiler.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#pragma GCC visibility push(default)
namespace leat {

namespace detail {

/// What leases are returned to.
class lease_owner {
 public:
  lease_owner(const lease_owner&) = delete;
  lease_owner& operator=(const lease_owner&) = delete;
  /// Thread: any.
  virtual void give_back(std::span<std::byte> memory) noexcept = 0;

 protected:
  lease_owner() = default;
  ~lease_owner() = default;
};

}  // namespace detail

/// Bytes of an arena, aligned to 4096, faulted in and ready to be read into.
///
/// It may outlive the pool, the reader and the loader that it came from: the shared_ptr keeps its memory alive.
class lease {
 public:
  lease() noexcept = default;
  lease(lease&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), piece_(other.piece_), home_(std::move(other.home_)) {}
  lease& operator=(lease&& other) noexcept {
    if (this == &other) return *this;
    reset();
    bytes_ = std::exchange(other.bytes_, {});
    piece_ = other.piece_;
    home_ = std::move(other.home_);
    return *this;
  }
  ~lease() { reset(); }

  /// The memory; empty without any.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::byte* data() const noexcept { return bytes_.data(); }
  /// The size that was asked for, in bytes.
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  /// The number of its piece of the arena, which io_uring knows as one registered buffer.
  [[nodiscard]] std::uint32_t piece() const noexcept { return piece_; }
  [[nodiscard]] explicit operator bool() const noexcept { return home_ != nullptr; }

  /// Gives the memory back now.
  void reset() noexcept {
    if (home_ == nullptr) return;
    // The home is released last: this lease may be the last that keeps it, and the memory, alive.
    const std::shared_ptr<detail::lease_owner> home = std::move(home_);
    home->give_back(std::exchange(bytes_, {}));
  }

  /// For pools.
  lease(std::span<std::byte> bytes, std::uint32_t piece, std::shared_ptr<detail::lease_owner> home) noexcept
      : bytes_(bytes), piece_(piece), home_(std::move(home)) {}

 private:
  std::span<std::byte> bytes_;
  std::uint32_t piece_ = 0xFFFFFFFFU;
  std::shared_ptr<detail::lease_owner> home_;
};

}  // namespace leat
#pragma GCC visibility pop
