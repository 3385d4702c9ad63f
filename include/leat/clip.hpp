// Clips: pictures of a sample, one after the other, in one output. Videos that are stored as frames, and cameras.
//
//     loader{shards, {.batch_size = 8},
//            clip(image{"clip"}.from("*.jpg").random_resized_crop(112).random_flip().normalize(imagenet),
//                 {.frames = 16, .stride = 2, .random_start = true})};
//
// Members of a shard "a/0017.000.jpg", "a/0017.001.jpg", ... are the frames "000.jpg", "001.jpg", ... of sample 0017.
#pragma once

#include <leat/compiler.hpp>
#include <leat/field.hpp>

#include <cstdint>
#include <utility>

#pragma GCC visibility push(default)
namespace leat {

/// What becomes of a clip that a sample has too few frames for: clip_options::missing.
///   corrupt       (default) a corrupt sample
///   repeat_last   the last frame before the one that is missing takes its place
enum class missing_frame : std::uint8_t { corrupt, repeat_last };

/// Which frames a clip has, counted from 0 in the order of their names.
///   frames         how many of each camera; together at most 1024
///   stride         from one frame to the next
///   first          the first one
///   random_start   the first one is drawn: any from `first` on behind which the sample has enough frames. A sample has
///                  frames up to its last one; of several cameras, to that of the one with the fewest
///   per_frame      each frame is cropped, flipped and coloured by draws of its own. Default: all of a row alike
///   missing        what becomes of a sample with too few frames
struct clip_options {
  int frames = 16;
  int stride = 1;
  int first = 0;
  bool random_start = false;
  bool per_frame = false;
  missing_frame missing = missing_frame::corrupt;
};

/// Frames of a sample in one output.
///   reads      the image's member is a pattern: all members that match it are frames, in the order of their names, numbers
///              by their value. * ? and [ ] are as in a shell. Braces are cameras, in the order in which they are written:
///              "{left,right}.*.jpg", "cam{0..7}.*.jpg". Of a sample only the frames of the clip are read
///   output     the image's name: [rows, frames, 3, height, width], or as the image lays out a picture; with braces [rows,
///              cameras, frames, 3, height, width]
///   draws      by the image's name, or its together(): a frame has the bytes of the image that reads its member, of that
///              group. Per frame, of the group `name/k`, counted over all cameras. Clips of one group and of the same
///              options start together where the sample has as many frames for each; cameras of one clip always do
///   corrupt    as image, and a frame that is missing. The reason names the member
///   followed   `name` is the first frame, `name[k]` another: <leat/targets.hpp>. A target reads the member that it names,
///              whichever frame was drawn or repeated there
///   throws     error{errc::usage} for numbers that make no clip; (when the loader is built) where the dataset has too few
///              such members, or the image is for nvjpeg
class clip {
 public:
  explicit clip(image of, const clip_options& how = {}) : of_(std::move(of)), how_(how) {}

  operator field() const;  // NOLINT: a clip is a field.

 private:
  image of_;
  clip_options how_;
};

}  // namespace leat
#pragma GCC visibility pop
