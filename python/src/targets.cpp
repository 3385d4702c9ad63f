// What moves with a picture, and several views of one.
#include "module.hpp"

#include <leat/clip.hpp>
#include <leat/targets.hpp>

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>

namespace pyleat {

void add_targets(nb::module_& to) {
  using leat::mask;
  nb::class_<mask>(to, "Mask",
                   "A number for each pixel of a picture, which follows its crops, flips and warps: [rows, height, "
                   "width], u8 or as stored. What lies outside of the picture is ignore().")
      .def(nb::init<const mask&>())
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("from_", &mask::from, nb::arg("member"))
      .def("follows", &mask::follows, nb::arg("picture"),
           "The name of the Image field; of views() 'name' is the first view, 'name[1]' the second.")
      .def("ignore", &mask::ignore, nb::arg("number"), "Default: 255; of u16 65535.")
      .def(
          "as_", [](const mask& of, nb::handle type) { return of.as(to_dtype(type)); }, nb::arg("dtype"),
          "u8, u16, i32 or i64.")
      .def("colors", &mask::colors, nb::arg("of_classes"),
           "Of RGB: colour i of the list becomes i. [(0, 0, 0), (128, 0, 0)]")
      .def("scaled", &mask::scaled, "It may have another size than its picture, and covers it all the same.")
      .def("instances", &mask::instances, nb::arg("most"),
           "A plane for each object: u8 [rows, most, height, width], and `name`.count. Of COCO plane i is object i; of "
           "PNG and arrays number i + 1.")
      .def("bytes_max", &mask::bytes_max, nb::arg("most"));

  using leat::depth;
  nb::class_<depth>(to, "Depth",
                    "A measure for each pixel of a picture, which follows it: [rows, height, width], u16, or f32. 0 is "
                    "where nothing was measured, and outside of the picture.")
      .def(nb::init<const depth&>())
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("from_", &depth::from, nb::arg("member"))
      .def("follows", &depth::follows, nb::arg("picture"), "The name of the Image field.")
      .def("scaled", &depth::scaled, "It may have another size than its picture, and covers it all the same.");

  using leat::boxes;
  nb::class_<boxes>(to, "Boxes",
                    "Boxes of things in a picture, which follow it: f32 [boxes of all rows, 4], left, top, right, "
                    "bottom in pixels of the row; `name`.offsets, `name`.kept, and with labels `name`.labels.")
      .def(nb::init<const boxes&>())
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("from_", &boxes::from, nb::arg("member"))
      .def("follows", &boxes::follows, nb::arg("picture"),
           "The name of the Image field; of views() 'name' is the first view, 'name[1]' the second.")
      .def("key", &boxes::key, nb::arg("json_key"))
      .def("labels", &boxes::labels, nb::arg("json_key"),
           "The key of a list of whole numbers in the same object, one for each box.")
      .def(
          "in_",
          [](const boxes& of, nb::handle how) {
            return of.in(to_enum<leat::box_format>(
                how, "in_()",
                std::array<std::string_view, 6>{"xyxy", "xywh", "cxcywh", "yolo", "cxcywhr", "xyxyxyxy"}));
          },
          nb::arg("box_format"),
          "How they are stored: 'xyxy' (default), 'xywh' (COCO), 'cxcywh', 'yolo'; rotated, which become corners [.., "
          "8]: "
          "'cxcywhr' (degrees counter-clockwise, as torchvision's) or 'xyxyxyxy' (DOTA).")
      .def(
          "with_",
          [](const boxes& of, std::string json_key, nb::handle type) {
            return of.with(std::move(json_key), to_dtype(type));
          },
          nb::arg("json_key"), nb::arg("dtype") = "i64",
          "The key of a further list, one number for each box: the output `name`.<key>. with_('iscrowd'), "
          "with_('area', "
          "'f32').")
      .def("padded", &boxes::padded, nb::arg("most"), nb::arg("fill") = 0,
           "Rows of one size, [rows, most, 4] (8 of rotated ones), and `name`.count; behind the boxes that are left "
           "stands `fill`.")
      .def("masks", &boxes::masks, nb::arg("member"),
           "A mask of each box of padded() rows, `name`.masks: u8 [rows, most, height, width]. masks('segmentation') "
           "of open_coco().")
      .def("min_area", &boxes::min_area, nb::arg("pixels"), "Boxes of fewer square pixels of the row are dropped.")
      .def("min_visible", &boxes::min_visible, nb::arg("share"), "Boxes of which a smaller share is left are dropped.")
      .def("center_inside", &boxes::center_inside,
           "Boxes whose middle lies outside of what the row shows are dropped, as torchvision's RandomIoUCrop does.")
      .def("bytes_max", &boxes::bytes_max, nb::arg("most"));

  using leat::points;
  nb::class_<points>(to, "Points",
                     "Key points of a picture, which follow it: f32 [points of all rows, 2], in pixels of the row, and "
                     "`name`.offsets; with visibility() [.., 3]. None is dropped.")
      .def(nb::init<const points&>())
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("from_", &points::from, nb::arg("member"))
      .def("follows", &points::follows, nb::arg("picture"))
      .def("key", &points::key, nb::arg("json_key"))
      .def("visibility", &points::visibility, "Points are x, y and how visible it is, as COCO's.")
      .def("flip_pairs", &points::flip_pairs, nb::arg("of"), nb::arg("pairs"),
           "Points that change places when the picture is mirrored, of objects of `of` points: flip_pairs(17, [(1, "
           "2)]).")
      .def("bytes_max", &points::bytes_max, nb::arg("most"));

  using leat::clip;
  nb::class_<clip>(
      to, "Clip",
      "Frames of a sample in one output: Clip(Image('clip').from_('*.jpg'), frames=16) is [rows, 16, 3, height, "
      "width]; braces are cameras, [rows, cameras, 16, ..].")
      .def(nb::init<const clip&>())
      .def(
          "__init__",
          [](clip* self, const leat::image& of, int frames, int stride, int first, bool random_start, bool per_frame,
             nb::handle missing) {
            new (self) clip(of, {.frames = frames,
                                 .stride = stride,
                                 .first = first,
                                 .random_start = random_start,
                                 .per_frame = per_frame,
                                 .missing = to_enum<leat::missing_frame>(
                                     missing, "missing=", std::array<std::string_view, 2>{"corrupt", "repeat_last"})});
          },
          nb::arg("of"), nb::kw_only(), nb::arg("frames") = 16, nb::arg("stride") = 1, nb::arg("first") = 0,
          nb::arg("random_start") = false, nb::arg("per_frame") = false, nb::arg("missing") = "corrupt");

  using leat::field;
  nb::class_<field>(to, "Field", "What views(), five_crop() and ten_crop() make.")
      .def(nb::init<const field&>())
      .def_prop_ro("name", [](const field& of) { return of.name(); });
  to.def("views", &leat::views, nb::arg("of"), nb::arg("count"), nb::arg("name"),
         "Views of an Image in one output, of one decode: [rows, count, 3, height, width].");
  to.def("five_crop", &leat::five_crop, nb::arg("of"), nb::arg("size"),
         "The corners of an Image and its middle, as torchvision's FiveCrop: [rows, 5, 3, size, size].");
  to.def("ten_crop", &leat::ten_crop, nb::arg("of"), nb::arg("size"),
         "Those of five_crop(), then those of the mirrored picture: [rows, 10, 3, size, size].");
}

}  // namespace pyleat
