// Targets: what belongs to a picture and moves with it. A mask, boxes and points follow an image field through its crops,
// scalings, flips, padding and warps.
//
//     loader{shards, {.batch_size = 32},
//            image{"jpg"}.random_resized_crop(512).random_flip().normalize(imagenet),
//            mask{"seg.png"}.follows("jpg"),
//            boxes{"json"}.follows("jpg").key("boxes").labels("classes").min_area(4)};
//
// A target follows the picture by the name of its field, wherever both stand. It draws nothing: the picture's matrix says
// where each place of the row lies in the picture as it is stored (leat::picture_geometry), and targets are of that
// picture. If the picture turns itself upright (image::exif_orientation()), its targets turn too. No bit of a picture
// changes because something follows it. Targets are made on the host; the picture may be finished on a device.
//
//   throws   (when the loader is built) error{errc::usage}: follows() was not called; the loader has no such field; the
//            field is no picture, or the target itself; a target within a stack; rows are mixed (loader_options::mix). With
//            mosaic() masks, depths and upright boxes go along, and the others are refused
#pragma once

#include <leat/compiler.hpp>
#include <leat/field.hpp>
#include <leat/picture_geometry.hpp>
#include <leat/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// A number for each pixel of a picture: classes, instances. Always looked up by the nearest pixel.
///   reads     PNG: grey or palette of 1 to 16 bits, the stored number (of a palette the index, not the colour); RGB
///             after colors(). Alpha and transparency are not looked at. .npy members and rows of a tensor: whole
///             numbers, [height, width] or with one channel. Of the size of the picture as it is stored
///   COCO      the member "segmentation" of open_coco(), or JSON of this form: polygons, run lengths and text of run lengths
///             become the category_id of their object, later objects over earlier ones; crowds (iscrowd) become ignore()
///             where no object is, all else 0. The same pixels as pycocotools'. Run lengths have the picture's size,
///             whatever scaled() says. A first polygon of fewer than 3 corners is corrupt, since pycocotools refuses it
///   output    `name`: [rows, height, width] of the picture's row. u8; u16 where the first sample's PNG has 16 bits; of
///             arrays u8, u16, i32 or i64, other whole numbers as i64; as() says another
///   outside   what lies outside of the picture, or is filled in the picture's row, is ignore(). Pixels that
///             random_erasing has erased keep their numbers
///   corrupt   a mask of another size than its picture, unless scaled(); a number that the type has not; a colour that
///             colors() has not; RGB without colors(); other formats; damage
class mask {
 public:
  explicit mask(std::string name) { settings_.name = settings_.member = std::move(name); }
  /// Reads this member of a sample.
  [[nodiscard]] mask from(std::string member) const {
    return with([&](settings& to) { to.member = std::move(member); });
  }
  /// The name of the image field that it follows. Of views() `name` is the first view, `name[1]` the second.
  [[nodiscard]] mask follows(std::string picture) const {
    return with([&](settings& to) { to.picture = std::move(picture); });
  }
  /// Default: 255; of u16 65535. Of instances() by the sample: of a PNG of up to 8 bits and an array of u8 255, of a PNG of 16
  /// bits and an array of u16 65535, of other arrays none.
  [[nodiscard]] mask ignore(std::int64_t number) const {
    return with([&](settings& to) { to.ignore = number; });
  }
  /// u8, u16, i32 or i64.
  [[nodiscard]] mask as(dtype type) const {
    return with([&](settings& to) { to.type = type; });
  }
  /// RGB: colour i of the list becomes i.
  [[nodiscard]] mask colors(std::vector<std::array<std::uint8_t, 3>> of_classes) const {
    return with([&](settings& to) { to.colors = std::move(of_classes); });
  }
  /// It may have another size than its picture, and covers it all the same.
  [[nodiscard]] mask scaled() const {
    return with([](settings& to) { to.scaled = true; });
  }
  /// A plane for each object, instead of numbers. Planes beside boxes of the same objects: boxes::masks().
  ///   output   `name`: u8 [rows, most, height, width], 1 where the object is, 0 elsewhere and outside of the picture;
  ///            `name`.count: i64 [rows], the objects of the sample, at most `most`. Further objects are left out
  ///   planes   of COCO plane i is object i, crowds among them, whatever covers it: pycocotools' annToMask(). Of PNG and
  ///            arrays plane i is where number i + 1 is, as PennFudan has them; ignore() is no object, nor is 0
  ///   memory   the whole mask is looked at, so that count does not depend on the crop
  ///   throws   (when the loader is built) error{errc::usage}: with as() or colors()
  [[nodiscard]] mask instances(std::int64_t most) const {
    return with([&](settings& to) { to.instances = most; });
  }
  /// Samples of more bytes are corrupt, and no memory is planned for them.
  [[nodiscard]] mask bytes_max(std::size_t most) const {
    return with([&](settings& to) { to.bytes_max = most; });
  }

  operator field() const;  // NOLINT: a mask is a field.

  struct settings {
    std::string name;
    std::string member;
    std::string picture;
    std::optional<std::int64_t> ignore;
    std::optional<dtype> type;
    std::vector<std::array<std::uint8_t, 3>> colors;
    bool scaled = false;
    bool is_depth = false;  ///< leat::depth
    std::optional<std::int64_t> instances;
    std::optional<std::size_t> bytes_max;
  };
  [[nodiscard]] const settings& get() const noexcept { return settings_; }

 private:
  friend class depth;

  template <class Change>
  [[nodiscard]] mask with(const Change& change) const {
    mask changed = *this;
    change(changed.settings_);
    return changed;
  }

  settings settings_;
};

/// A measure for each pixel of a picture: how far it is. The nearest pixel's, as it is stored.
///   reads     as mask: PNG, grey, of 1 to 16 bits; arrays of u8, u16, f32 or f64
///   output    `name`: [rows, height, width] of the picture's row: u16; f32 where the first sample has f32 or f64
///   outside   of the picture: 0, which depths have where nothing was measured
///   corrupt   as mask
class depth {
 public:
  explicit depth(std::string name) : as_mask_(std::move(name)) { as_mask_.settings_.is_depth = true; }
  /// Reads this member of a sample.
  [[nodiscard]] depth from(std::string member) const { return depth(as_mask_.from(std::move(member))); }
  /// The name of the image field that it follows.
  [[nodiscard]] depth follows(std::string picture) const { return depth(as_mask_.follows(std::move(picture))); }
  /// It may have another size than its picture, and covers it all the same.
  [[nodiscard]] depth scaled() const { return depth(as_mask_.scaled()); }

  operator field() const { return as_mask_; }  // NOLINT: a depth is a field.

 private:
  explicit depth(mask changed) : as_mask_(std::move(changed)) {}

  mask as_mask_;
};

/// How boxes are stored, in pixels of the stored picture.
///   xyxy     left, top, right, bottom
///   xywh     left, top, width, height: COCO
///   cxcywh   the middle, width, height
///   yolo     text of lines "class cx cy width height", each a share of the picture's side
///   cxcywhr    the middle, width, height, and by how many degrees it is turned counter-clockwise, as it is seen: a
///              rotated box, as torchvision's CXCYWHR
///   xyxyxyxy   a rotated box, or another quadrilateral, by its corners, one after another: DOTA, torchvision's XYXYXYXY
enum class box_format : std::uint8_t { xyxy, xywh, cxcywh, yolo, cxcywhr, xyxyxyxy };

/// Boxes of things in a picture.
///   reads     JSON: a list of lists of 4 numbers, or one list of all numbers; with key() the member of an object that
///             is such a list. After in(box_format::yolo) text of lines; an empty one has no boxes
///   made      what lies outside of the part of the picture that crops have left is cut off; the corners go by the
///             matrix; the upright hull of them is cut to the row. What has no area then is dropped
///   output    `name`: f32 [boxes of all rows, 4], left, top, right, bottom in pixels of the row; `name`.offsets: i64
///             [rows + 1], the first box of each row. `name`.kept: i64, the number of each in its sample, from 0; after
///             labels() or of yolo `name`.labels: i64. Each of these has offsets, the same ones
///   rotated   cxcywhr, xyxyxyxy: lists of 5 or 8 numbers become f32 [boxes, 8], the places in the row of the upper left,
///             upper right, lower right and lower left corner of the box (of xyxyxyxy of its corners as they stand). In a
///             mirrored picture left and right are exchanged, so that corners go round the same way. Nothing is cut off:
///             corners may lie outside. The area is that of the part inside. What has none is dropped, and what lies
///             partly behind a warp's horizon
///   corrupt   no JSON, no such key; numbers that are not finite, or no multiple of 4 (5, 8); a right edge left of the
///             left one, a lower above the upper, a negative size, sides that cross; other than as many labels, or
///             numbers of with(), as boxes
class boxes {
 public:
  explicit boxes(std::string name) { settings_.name = settings_.member = std::move(name); }
  /// Reads this member of a sample.
  [[nodiscard]] boxes from(std::string member) const {
    return changed([&](settings& to) { to.member = std::move(member); });
  }
  /// The name of the image field that they follow. Of views() `name` is the first view, `name[1]` the second.
  [[nodiscard]] boxes follows(std::string picture) const {
    return changed([&](settings& to) { to.picture = std::move(picture); });
  }
  [[nodiscard]] boxes key(std::string json_key) const {
    return changed([&](settings& to) { to.key = std::move(json_key); });
  }
  /// The key of a list of whole numbers in the same object, one for each box.
  [[nodiscard]] boxes labels(std::string json_key) const {
    return changed([&](settings& to) { to.labels = std::move(json_key); });
  }
  /// The key of a further list in the same object, one number for each box: the output `name`.<key>, which loses what the
  /// boxes lose. COCO: with("iscrowd"), with("area", dtype::f32).
  ///   type   i64 or f32
  [[nodiscard]] boxes with(std::string json_key, dtype type = dtype::i64) const {
    return changed([&](settings& to) { to.more.emplace_back(std::move(json_key), type); });
  }
  /// Rows of one size: the first `most` boxes that are left, and behind them `fill`, also in the lists beside them. Further
  /// boxes are left out.
  ///   output   `name`: [rows, most, 4], 8 of rotated ones; the others [rows, most], and none has offsets; `name`.count: i64 [rows], the boxes
  ///            in each row
  [[nodiscard]] boxes padded(std::int64_t most, std::int64_t fill = 0) const {
    return changed([&](settings& to) {
      to.most = most;
      to.fill = fill;
    });
  }
  /// A mask of each box, in step with padded() rows: plane i is of box i, and dropped with it. Object k of the member, as
  /// mask::instances() counts them, is of box k of the sample.
  ///
  ///     boxes{"json"}.follows("jpg").key("boxes").labels("classes").padded(100).masks("segmentation")   // of open_coco()
  ///
  ///   output    `name`.masks: u8 [rows, most, height, width]: `name`[r][i], `name`.labels[r][i] and `name`.masks[r][i] are of
  ///             one object; planes behind `name`.count are 0
  ///   corrupt   as mask; other than as many COCO objects as boxes; a number of a PNG or an array above the number of boxes
  ///   throws    (when the loader is built) error{errc::usage}: without padded()
  [[nodiscard]] boxes masks(std::string member) const {
    return changed([&](settings& to) { to.masks = std::move(member); });
  }
  /// Default: xyxy.
  [[nodiscard]] boxes in(box_format how) const {
    return changed([&](settings& to) { to.how = how; });
  }
  /// Boxes of fewer square pixels of the row are dropped. Default: 0, and what has no area is dropped.
  [[nodiscard]] boxes min_area(double pixels) const {
    return changed([&](settings& to) { to.min_area = pixels; });
  }
  /// Boxes of which a smaller share is left than this are dropped: its area in the row, by what it would have uncut.
  [[nodiscard]] boxes min_visible(double share) const {
    return changed([&](settings& to) { to.min_visible = share; });
  }
  /// Boxes whose middle lies outside of what the row shows are dropped, as torchvision's RandomIoUCrop does.
  [[nodiscard]] boxes center_inside() const {
    return changed([](settings& to) { to.center_inside = true; });
  }
  /// Samples of more bytes are corrupt, and no memory is planned for them. Without it the largest sample decides how
  /// much memory a batch takes.
  [[nodiscard]] boxes bytes_max(std::size_t most) const {
    return changed([&](settings& to) { to.bytes_max = most; });
  }

  operator field() const;  // NOLINT: boxes are a field.

  struct settings {
    std::string name;
    std::string member;
    std::string picture;
    std::string key;
    std::string labels;
    box_format how = box_format::xyxy;
    double min_area = 0;
    double min_visible = 0;
    bool center_inside = false;
    std::optional<std::size_t> bytes_max;
    std::vector<std::pair<std::string, dtype>> more;
    std::optional<std::int64_t> most;
    std::int64_t fill = 0;
    std::string masks;
  };
  [[nodiscard]] const settings& get() const noexcept { return settings_; }

 private:
  template <class Change>
  [[nodiscard]] boxes changed(const Change& change) const {
    boxes made = *this;
    change(made.settings_);
    return made;
  }

  settings settings_;
};

/// Key points. None is dropped, so that a point's number says what it is.
///   reads     JSON as boxes do: x and y of each point; after visibility() x, y and how visible it is (COCO: 0 not
///             labelled, 1 hidden, 2 visible)
///   output    `name`: f32 [points of all rows, 2 or 3], in pixels of the row; `name`.offsets. With visibility() a point
///             that is 0, or lies outside of the row or of what it shows of the picture, is (0, 0, 0). Without it a point
///             outside has its place there, or NaN behind a warp's horizon
///   corrupt   as boxes
class points {
 public:
  explicit points(std::string name) { settings_.name = settings_.member = std::move(name); }
  /// Reads this member of a sample.
  [[nodiscard]] points from(std::string member) const {
    return with([&](settings& to) { to.member = std::move(member); });
  }
  /// The name of the image field that they follow.
  [[nodiscard]] points follows(std::string picture) const {
    return with([&](settings& to) { to.picture = std::move(picture); });
  }
  [[nodiscard]] points key(std::string json_key) const {
    return with([&](settings& to) { to.key = std::move(json_key); });
  }
  [[nodiscard]] points visibility() const {
    return with([](settings& to) { to.visibility = true; });
  }
  /// Points that change places when the picture is mirrored: left and right eye. The numbers are of one object of `of`
  /// points; the points of a sample are such objects, one after another.
  [[nodiscard]] points flip_pairs(std::int64_t of, std::vector<std::pair<int, int>> pairs) const {
    return with([&](settings& to) {
      to.object_points = of;
      to.flip_pairs = std::move(pairs);
    });
  }
  /// Samples of more bytes are corrupt, and no memory is planned for them. Without it the largest sample decides how
  /// much memory a batch takes.
  [[nodiscard]] points bytes_max(std::size_t most) const {
    return with([&](settings& to) { to.bytes_max = most; });
  }

  operator field() const;  // NOLINT: points are a field.

  struct settings {
    std::string name;
    std::string member;
    std::string picture;
    std::string key;
    bool visibility = false;
    std::int64_t object_points = 0;
    std::vector<std::pair<int, int>> flip_pairs;
    std::optional<std::size_t> bytes_max;
  };
  [[nodiscard]] const settings& get() const noexcept { return settings_; }

 private:
  template <class Change>
  [[nodiscard]] points with(const Change& change) const {
    points changed = *this;
    change(changed.settings_);
    return changed;
  }

  settings settings_;
};

}  // namespace leat
#pragma GCC visibility pop
