#include "stages/device/prepare_pictures.hpp"

#include "stages/device/picture_work.hpp"

namespace leat::stages {
namespace {

/// One thread, which does the work of all: what a barrier waits for has been done.
class team_on_host {
 public:
  template <class F>
  void run(const F& f) {
    f(0U, 1U);
  }
  void barrier() {}
  template <class Number>
  static void add(Number* to, Number what) {
    *to += what;
  }
};

}  // namespace

const device_kernel prepare_pictures_kernel = {.name = "the kernel that prepares pictures",
                                               .argument_bytes = sizeof(picture_preparation),
                                               .run_on_host = [](const void* arguments) noexcept {
                                                 prepare_pictures(*static_cast<const picture_preparation*>(arguments));
                                               }};

void prepare_pictures(const picture_preparation& pictures) noexcept {
  picture_threads::picture_memory memory;
  for (std::uint32_t row = 0; row < pictures.rows; ++row) {
    team_on_host team;
    picture_threads::prepare_row(team, &memory, pictures, row);
  }
}

}  // namespace leat::stages
