// A file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <utility>

namespace leat {

class descriptor {
 public:
  ///   number   below 0: there is none
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  [[nodiscard]] int get() const noexcept { return number_; }
  /// Whose it is from now on is the caller's matter.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace leat
