// A trainer's step that tells what it saw: a kernel that takes the digest of a batch from the bytes that lie on the device
// when its turn comes.
#pragma once

#include "tests/support/batch_view.hpp"
#include "tests/support/simulated_device.hpp"

#include <leat/batch.hpp>

#include <deque>
#include <string>
#include <vector>

namespace leat::testing {

/// Digests as the device saw them, in the order in which they were asked for.
class device_reader {
 public:
  explicit device_reader(simulated_device& on) : device_(on) {}

  /// Puts a kernel into `in` that reads the batch. The caller has had `in` wait for it.
  void read(const batch& from, stream in) {
    seen_.push_back({});
    digest& into = seen_.back();  // A deque: it stays where it is.
    device_.launch(in, [view = batch_view(from), &into] { into = view.content(); });
  }

  /// Once the streams are finished.
  [[nodiscard]] std::vector<std::string> seen() const {
    std::vector<std::string> all;
    for (const digest& each : seen_) all.push_back(each.hex());
    return all;
  }

 private:
  simulated_device& device_;
  std::deque<digest> seen_;
};

}  // namespace leat::testing
