// From encoded bytes to a finished row of the batch, on one thread: decode only what the crop needs, resample it while
// it lies in the cache, and write every element once, where it stays.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/array_pixels.hpp"
#include "stages/pixels/background.hpp"
#include "stages/pixels/geometry.hpp"
#include "stages/pixels/photo_layout.hpp"
#include "stages/pixels/picture_info.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/store.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace leat::pixels {

/// What belongs to a batch's content besides geometry and store.
///   exif_orientation   turn the picture upright first
///   pixels_max         pictures of more pixels are refused before any memory is taken; Pillow's bomb limit. A file too short
///                      for the pixels that it claims is corrupt instead
///   accept_cut         a JPEG that lost its end is not corrupt, but grey from there on
///   background         what pictures with alpha are laid over, before they are resampled; none: alpha is dropped
///   array              how pixels lie in the bytes, which are an array's; none: they are a file's
///   decimate           JPEG: let the inverse DCT shrink by 2, 4 or 8 where the box stays at least as large as what it
///                      is scaled to. Decided by sizes alone. Never with filter::nearest
///   leave_flip         rows are stored without mirroring, except for those with a pass that sees their sides; to_mirror tells which
///                      of them are to be mirrored later
///   leave_colour       passes behind the last that only the host can do, and what is erased, are left to somebody else: `colour` tells
///   own_huffman        changes no bit, only the time: false leaves the Huffman stage of baseline JPEG to libjpeg-turbo
///   plain_huffman      changes no bit either: our Huffman stage as on a processor without vectors and BMI2; for tests
struct decode_options {
  bool exif_orientation = false;
  std::int64_t pixels_max = 178'956'970;
  bool accept_cut = false;
  std::optional<rgb_colour> background = std::nullopt;
  std::optional<array_pixels> array = std::nullopt;
  bool decimate = false;
  bool leave_flip = false;
  bool leave_colour = false;
  bool own_huffman = true;
  bool plain_huffman = false;
};

/// What was done, for `leat show` and stats.
///   decimation    1, 2, 4 or 8
///   to_mirror      leave_flip: the row was stored without mirroring, and must be mirrored
///   colour         what was drawn behind the geometry, as long as nothing else is decoded; null where it was given
///   colour_done    leave_colour: passes that were done
///   huffman_again  our Huffman stage found the picture damaged, and libjpeg-turbo's decoded it
struct decoded {
  geometry drawn;
  picture_info info;
  int decimation = 1;
  bool to_mirror = false;
  bool huffman_again = false;
  const recipe* colour = nullptr;
  std::size_t colour_done = 0;

  /// From a place in the row to one in the picture, of all that was drawn: geometry and warps.
  [[nodiscard]] warp_matrix from_row() const noexcept;
};

/// One of several rows that are made from a picture: the arguments of decode(), and what was drawn.
struct picture_row {
  const pipeline* steps = nullptr;
  draw_key key;
  const store* how = nullptr;
  decode_options options;
  std::byte* row = nullptr;
  geometry drawn = {};
  picture_info info = {};
  int decimation = 1;
  bool to_mirror = false;
  const recipe* colour = nullptr;
  std::size_t colour_done = 0;
};

/// A photo pack that decode() would decode, for a decoder elsewhere. Refers to the encoded bytes.
///   drawn      without its flip where to_mirror says that the row is to be mirrored later
struct undecoded_photo {
  photo_layout layout;
  picture_info info;
  geometry drawn;
  int decimation = 1;
  bool to_mirror = false;
};

/// A whole picture, 8-bit RGB, rows one after the other; upright where that was asked for.
struct whole_picture {
  picture_info info;
  int width = 0;
  int height = 0;
  std::vector<std::byte> rgb;
};

/// A decoder and its scratch memory. Belongs to one thread. Allocates nothing per sample once it has seen the largest
/// one: all that libjpeg-turbo, libpng and the resampling need comes from the scratch.
class picture_decoder {
 public:
  /// Takes scratch_arena::base_bytes of the budget, which outlives this. Throws as scratch_arena does.
  explicit picture_decoder(scratch_budget& budget);
  ~picture_decoder();
  picture_decoder(const picture_decoder&) = delete;
  picture_decoder& operator=(const picture_decoder&) = delete;

  /// Decodes one sample into its row.
  ///   encoded   the file's bytes, read in place; they may be anything at all
  ///   row       how.row_bytes(steps.out_height(), steps.out_width()) bytes, aligned to the element's size. Its content
  ///             is unspecified unless the outcome is ok
  ///   stop      looked at every few lines; may be null
  ///   returns   corrupt: damaged inside the region that was decoded (libjpeg's warnings of premature end, bad codes and
  ///             lost restart markers), of a PNG anywhere in what its pixels depend on; a file that lost its end; or no
  ///             picture. Damage of a JPEG outside the region, extraneous bytes before a marker, and a missing end (of a PNG: end
  ///             chunk) behind complete data are nothing. unsupported: other formats, more than pixels_max pixels. over_budget: more scratch than the
  ///             budget can ever give. cancelled: `stop`, or the budget's stop()
  ///   throws    what a function of the user's does (transforms::lookup, transforms::edit)
  ///   source    libjpeg.txt "Partial decompression"; Pillow's Resample.c
  outcome<decoded> decode(std::span<const std::byte> encoded, const pipeline& steps, const draw_key& key,
                          const store& how, const decode_options& options, std::byte* row,
                          const std::atomic<bool>* stop);

  /// As decode(), with the geometry given, and passes of colour where `passes` is not null.
  outcome<decoded> decode(std::span<const std::byte> encoded, const geometry& drawn, const store& how,
                          const decode_options& options, std::byte* row, const std::atomic<bool>* stop,
                          const recipe* passes = nullptr);

  /// Decodes one sample into several rows, each bit for bit as decode() makes it. Rows whose boxes are decimated alike share one
  /// pass, and crops of one resized picture the resampling. Coefficients of a small baseline JPEG are kept from one pass to the next.
  ///   rows      at least one; their options differ in `decimate`, `leave_flip` and `leave_colour` only. What decode() returns is set
  ///   returns   a failure of any row; or one that no row would have alone, since pixels between two boxes are decoded, too,
  ///             and the scratch of all rows is taken at once. After a failure call decode() for each row
  outcome<void> decode_rows(std::span<const std::byte> encoded, std::span<picture_row> rows,
                            const std::atomic<bool>* stop);

  /// What a decoder elsewhere needs to make the row that decode() makes of a photo pack. Nothing where it is none, where its headers are
  /// damaged or refused, and where it is of a kind that photo_layout does not describe: decode() says what there is to say then.
  std::optional<undecoded_photo> look_at_photo(std::span<const std::byte> encoded, const pipeline& steps,
                                               const draw_key& key, const decode_options& options,
                                               const std::atomic<bool>* stop);

  /// The picture as it is, for looking at it. Allocates its result.
  outcome<whole_picture> decode_whole(std::span<const std::byte> encoded, const decode_options& options,
                                      const std::atomic<bool>* stop = nullptr);

  /// The scratch that decoding the whole picture would take, undecimated and not packed, without decoding it.
  outcome<std::size_t> scratch_bytes_whole(std::span<const std::byte> encoded, const decode_options& options);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace leat::pixels
