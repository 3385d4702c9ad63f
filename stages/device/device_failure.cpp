#include "stages/device/device_failure.hpp"

#include "base/text.hpp"

#include <string>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

struct kept {
  leat::mutex mutex;
  std::vector<io::lease> leases ABSL_GUARDED_BY(mutex);
  std::vector<std::shared_ptr<const void>> others ABSL_GUARDED_BY(mutex);
};
kept& all_kept() {
  static auto* const one = new kept;  // never destroyed
  return *one;
}

}  // namespace

void keep_for_good(io::lease memory) {
  kept& all = all_kept();
  const mutex_lock lock(all.mutex);
  all.leases.push_back(std::move(memory));
}

void keep_for_good(std::shared_ptr<const void> what) {
  kept& all = all_kept();
  const mutex_lock lock(all.mutex);
  all.others.push_back(std::move(what));
}

std::exception_ptr device_failure::why() const noexcept {
  if (!happened()) return nullptr;
  const mutex_lock lock(mutex_);
  return why_;
}

std::exception_ptr device_failure::note(const failed_call& call) noexcept {
  try {
    throw describe(call);
  } catch (...) {
    return note(std::current_exception());  // or that there is no memory for words
  }
}

std::exception_ptr device_failure::note(std::exception_ptr why) noexcept {
  {
    const mutex_lock lock(mutex_);
    if (why_ != nullptr) return why_;
    why_ = std::move(why);
    happened_.store(true, std::memory_order_release);
  }
  if (on_first_) on_first_();
  return this->why();
}

error device_failure::describe(const failed_call& call) const {
  const std::string amount = call.bytes ? str_cat(" of ", *call.bytes, " bytes") : "";
  return {errc::device, str_cat(call.name, amount, " on ", calls_.name(), " (cuda:", calls_.where().index,
                                "): ", calls_.describe(call.status))};
}

}  // namespace leat::stages
