// A JPEG's lines by libjpeg-turbo, straight from the caller's bytes: only the rows and columns of a region, which come
// out as they would if the whole picture had been decoded.
#pragma once

#include "stages/pixels/photo_layout.hpp"
#include "stages/pixels/picture_reader.hpp"
#include "stages/pixels/scratch.hpp"

#include <memory>
#include <optional>

namespace leat::pixels {

/// One thread's JPEG decoder. Baseline pictures are decoded by our Huffman stage where it can (baseline_huffman.hpp); where
/// that finds the picture damaged, gave_up() says so. A photo pack's coefficients are put in their place (photo_entropy.hpp). All else,
/// and all with reading::library_only, is libjpeg-turbo's; the rows of a pack are then coded again for it (photo_source.hpp).
class jpeg_reader final : public picture_reader {
 public:
  explicit jpeg_reader(scratch_arena& arena);
  ~jpeg_reader() override;

  stages::outcome<void> open(std::span<const std::byte> encoded, const picture_info& info, const reading& how) override;
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region, int decimation) override;
  /// Coefficients, where our Huffman stage decodes them.
  [[nodiscard]] std::size_t kept_bytes(int line) override;
  /// Several scans: the coefficients are packed, but for a few rows of blocks.
  [[nodiscard]] std::size_t scratch_bytes_packed(const rectangle& region, int decimation) override;
  void pack(std::size_t bytes_max, stages::failure too_little) override;
  [[nodiscard]] std::string_view remedy() const noexcept override;
  /// A progressive picture is decoded to coefficients here.
  stages::outcome<void> start(const rectangle& region, int decimation) override;
  stages::outcome<lines> read() override;
  [[nodiscard]] bool decimates() const noexcept override { return true; }
  [[nodiscard]] bool gave_up() const noexcept override;

  /// After open(), of a pack that is read row by row: what another decoder needs for the same pixels. Nothing where libjpeg-turbo does
  /// what photo_layout has no words for, or would refuse the picture.
  [[nodiscard]] std::optional<photo_layout> layout(int decimation);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace leat::pixels
