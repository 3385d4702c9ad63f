// Datasets of two sources: joins, and sets of pictures with boxes.
#include "module.hpp"

#include <leat/join.hpp>
#include <leat/open_boxes.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace pyleat {

void add_joins(nb::module_& to) {
  using leat::join_key;
  nb::class_<join_key>(to, "JoinKey", "What a sample of each side of a join() is found by: by_stem(), by().")
      .def(nb::init<const join_key&>())
      .def_ro("left", &join_key::left)
      .def_ro("right", &join_key::right);
  to.def("by_stem", &leat::by_stem, "By the file's name without folders and its last ending; in a shard the key.");
  to.def(
      "by",
      [](const std::string& left, const std::optional<std::string>& right) {
        return right ? leat::by(left, *right) : leat::by(left);
      },
      nb::arg("left"), nb::arg("right") = nb::none(),
      "By a column or field of each side, of one name or two: by('name', 'file_name'). 'stem', 'path' and 'name' are "
      "of "
      "the sample's name.");
  to.def(
      "join",
      [](nb::handle left, nb::handle right, const join_key& key, nb::handle missing,
         const nb::typed<nb::dict, nb::str, nb::str>& rename) {
        leat::join_options how;
        how.missing = to_enum<leat::without_partner>(
            missing, "missing=", std::array<std::string_view, 2>{"leave_out", "corrupt"});
        for (const auto& [from, name] : rename) {
          std::pair<std::string, std::string>& one = how.rename.emplace_back();
          if (nb::try_cast(from, one.first) && nb::try_cast(name, one.second)) continue;
          throw nb::type_error("rename= is a dict of names, {'jpg': 'mask'}");
        }
        const leat::dataset one = to_dataset(left);
        const leat::dataset other = to_dataset(right);
        return unlocked([&] { return leat::join(one, other, key, how); });
      },
      nb::arg("left"), nb::arg("right"), nb::arg("key"), nb::kw_only(), nb::arg("missing") = "leave_out",
      nb::arg("rename") = nb::dict(),
      "The samples that both sides have, in the order of the left one, with the fields of both. rename={'jpg': 'mask'} "
      "is of the right side.");

  to.def(
      "open_coco",
      [](nb::handle annotations, nb::handle pictures) {
        const std::string file = to_path(annotations);
        const std::string folder = to_path(pictures);
        return unlocked([&] { return leat::open_coco(file, folder); });
      },
      nb::arg("annotations"), nb::arg("pictures"),
      "COCO: jpg, and json with boxes (left, top, right, bottom), classes, iscrowd and area.");
  to.def(
      "open_voc",
      [](nb::handle folder, const std::string& split) {
        const std::string path = to_path(folder);
        return unlocked([&] { return leat::open_voc(path, split); });
      },
      nb::arg("folder"), nb::arg("split") = "",
      "Pascal VOC: jpg, and json with boxes, classes, difficult and truncated.");
  to.def(
      "open_yolo",
      [](nb::handle folder, const std::string& split) {
        const std::string path = to_path(folder);
        return unlocked([&] { return leat::open_yolo(path, split); });
      },
      nb::arg("folder"), nb::arg("split") = "", "YOLO: jpg, and txt as it is, for Boxes('txt').in_('yolo').");
}

}  // namespace pyleat
