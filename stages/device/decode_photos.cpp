#include "stages/device/decode_photos.hpp"

#include "stages/device/photo_threads.hpp"

namespace leat::stages {
namespace {

/// A warp's lanes, one after the other. So each function ends for all of them before the next begins, which is what a barrier does.
class warp_on_host {
 public:
  template <class F>
  void run(const F& f) {
    for (std::uint32_t lane = 0; lane < photo_threads::lanes; ++lane) f(lane, states_[lane]);
  }
  void barrier() {}
  template <class F>
  std::uint32_t ballot(const F& f) {
    std::uint32_t bits = 0;
    run([&](std::uint32_t lane, photo_threads::lane_state& my) { bits |= std::uint32_t{f(lane, my)} << lane; });
    return bits;
  }
  template <class F>
  std::uint32_t sum(const F& f) {
    std::uint32_t all = 0;
    run([&](std::uint32_t lane, photo_threads::lane_state& my) { all += f(lane, my); });
    return all;
  }
  template <class F>
  std::uint32_t scan(const F& f) {
    std::uint32_t all = 0;
    run([&](std::uint32_t lane, photo_threads::lane_state& my) {
      const std::uint32_t own = f(lane, my);
      my.before = all;
      all += own;
    });
    return all;
  }

 private:
  photo_threads::lane_state states_[photo_threads::lanes];
};

}  // namespace

const device_kernel decode_photos_kernel = {
    .name = "the kernels that decode photo packs",
    .argument_bytes = sizeof(photo_batch),
    .run_on_host = [](const void* arguments) noexcept { decode_photos(*static_cast<const photo_batch*>(arguments)); }};

void decode_photos(const photo_batch& photos) noexcept {
  photo_threads::row_memory memory{};
  for (std::uint32_t number = 0; number < photos.photo_count; ++number) {
    const photo_slot& slot = photo_threads::slot_of(photos, number);
    const std::uint32_t rows = slot.is_pack != 0 ? slot.row_count : 0;
    for (std::uint32_t row = 0; row < rows; ++row) {
      warp_on_host warp;
      photo_threads::decode_row(warp, &memory, photos, number, row);
    }
    photo_threads::colour_pixels(photos, number, 0, 1);
    photo_threads::resample_once(photos, number, 0, 1);
    photo_threads::make_row(photos, number, 0, 1);
  }
}

}  // namespace leat::stages
