// The rows of a batch with one another: mixup and cutmix, each row with the next one and the last with the first. On the
// host in place, after collate; on a device by the kernel that finishes the pictures, which is told here what to do. Mosaics
// are made by mosaic_maker.
#pragma once

#include "stages/batch/batch_layout.hpp"
#include "stages/batch/batch_state.hpp"
#include "stages/device/finish_pictures.hpp"
#include "stages/device/mosaic.hpp"

#include <leat/transforms.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace leat::stages {

/// What is drawn for one row: how it is mixed, and how much of it is its own.
struct drawn_mix {
  mix_row row;
  float weight = 1;
};

/// A function of its arguments alone. Pictures are height x width.
///   source   Zhang et al., "mixup", ICLR 2018; Yun et al., "CutMix", ICCV 2019; torchvision.transforms.v2, whose boxes
///            these are. Theirs draw one factor for a batch; here each row has its own
[[nodiscard]] drawn_mix draw_mix(const batch_mix& how, std::uint64_t seed, std::uint32_t epoch, std::uint64_t draw,
                                 std::uint32_t height, std::uint32_t width);

/// Adds the outputs that mixing makes: each label's partner, and the weights. Nothing where nothing is mixed.
/// Throws error{errc::usage}: no picture, one of u8, an alpha that cannot be, cutmix of pictures of several sizes.
void add_mix_outputs(std::vector<output_spec>& outputs, const batch_mix& how);

/// Mixes whole batches. Refers to the layout, which the loader keeps.
class mixer {
 public:
  /// layout    with the outputs that add_mix_outputs() has added, or add_mosaic_outputs()
  /// threads   that call mix()
  mixer(const batch_layout& layout, std::span<const std::unique_ptr<field_program>> programs, const batch_mix& how,
        std::uint64_t seed, bool digests, std::size_t threads);

  [[nodiscard]] bool on() const noexcept { return how_.what != batch_mix::kind::none; }
  /// Bytes of scratch for each thread. Known before there are threads, for the memory plan.
  [[nodiscard]] static std::size_t scratch_bytes(const batch_layout& layout,
                                                 std::span<const std::unique_ptr<field_program>> programs,
                                                 const batch_mix& how, bool digests) noexcept;

  /// Of a collated batch in host memory. Its content digest becomes that of the mixed rows.
  ///   stop   checked at every row; a batch that was stopped must not be delivered
  /// Thread: `thread`, one batch at a time per thread.
  void mix(batch::state& batch, std::size_t thread, const std::atomic<bool>& stop);

 private:
  struct thread_state {
    std::vector<drawn_mix> rows;
    std::vector<std::byte> row;                // another row than the one that is mixed, as it was before
    std::vector<std::vector<std::byte>> made;  // for digests: of each output that a device makes, the mixed row
  };

  void mix_rows(batch::state& batch, thread_state& own, const std::atomic<bool>& stop) const;
  void mix_in_place(const batch_layout::output_place& place, batch::state& batch, thread_state& own,
                    const std::atomic<bool>& stop) const;
  void add_digest(batch::state& batch, thread_state& own, const std::atomic<bool>& stop) const;

  const batch_layout& layout_;
  const batch_mix how_;
  const std::uint64_t seed_;
  const bool digests_;
  std::uint32_t height_ = 0;
  std::uint32_t width_ = 0;
  std::vector<thread_state> threads_;
  std::optional<mosaic_maker> mosaics_;
};

}  // namespace leat::stages
