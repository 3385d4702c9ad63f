// Does a made-up file of annotations bring down the readers of COCO's JSON and Pascal VOC's XML? It may only be read, or refused with an
// error of leat's. What was read is then made into samples.
//
// The first byte of an input says which of them the rest is. scripts/fuzz runs it.
#include "datasets/formats/boxes/box_table.hpp"

#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

void look_at(table_of_boxes table, std::size_t file_bytes) {
  for (const boxed_object& each : table.objects) {
    demand(each.sample < table.pictures.size() && each.class_number < table.classes.size());
    for (const double side : each.box) demand(std::isfinite(side));
    for (const file_piece& piece : {each.segmentation, each.keypoints}) {
      demand(piece.offset <= file_bytes && piece.bytes <= file_bytes - piece.offset);
    }
  }
  table.file.clear();  // There is none to read pieces from.
  const dataset made = dataset_of_boxes(std::move(table));
  for (std::uint64_t sample = 0; sample < made.size(); ++sample) {
    demand(made.read(sample, "json").size() <= made.fields().front().bytes_max);
  }
}

}  // namespace
}  // namespace leat::datasets

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat::datasets;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] % 2 == 0) {
      look_at(read_coco("a.json", text), text.size());
    } else {
      table_of_boxes table;
      table.format = "voc";
      table.pictures = {"a"};
      table.flag_names = {"difficult", "truncated"};
      read_voc("a.xml", text, 0, table.classes, table.objects);
      look_at(std::move(table), text.size());
    }
  } catch (const leat::error&) {  // Said in words, which is what it is for.
  }
  return 0;
}
