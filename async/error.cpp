#include "async/error.hpp"

#include <string>

namespace leat::async {
namespace {

class category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "leat.async"; }
  std::string message(int code) const override {
    switch (static_cast<async_errc>(code)) {
      case async_errc::closed:
        return "closed: whoever owns the semaphore has shut it down";
      case async_errc::over_capacity:
        return "more units asked for than the semaphore has in all";
    }
    return "unknown error " + std::to_string(code);
  }
};

}  // namespace

const boost::system::error_category& async_category() noexcept {
  static const category instance;
  return instance;
}

}  // namespace leat::async
