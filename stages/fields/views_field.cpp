// views, five_crop and ten_crop: several pictures of one in one output.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/slots.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

// Views of one picture: fields that differ in what they draw, or in where they crop.
class views_model final : public field_model {
 public:
  ///   lie_apart   they draw alike, and crop each its own place
  views_model(std::string kind, std::string name, std::vector<image> views, bool lie_apart)
      : kind_(std::move(kind)),
        name_(std::move(name)),
        first_(views.front()),
        count_(views.size()),
        lie_apart_(lie_apart) {
    for (const image& each : views) fields_.emplace_back(each);
  }

  const std::string& name() const noexcept override { return name_; }
  void describe(description& out) const override {
    out.add("kind", kind_);
    out.add("count", std::uint64_t{count_});
    field(first_).model().describe(out);
  }
  void bind(const datasets::dataset_model& dataset, finished_by finished,
            std::vector<std::unique_ptr<field_program>>& out) const override {
    refuse_nvjpeg_of_slots(kind_, name_, "these", first_);
    add_slots(name_, bind_slots(name_, fields_, dataset, finished), out, {.lie_apart = lie_apart_});
  }

 private:
  std::string kind_;
  std::string name_;
  image first_;
  std::size_t count_;
  bool lie_apart_;
  std::vector<field> fields_;
};

}  // namespace
}  // namespace stages

namespace {

constexpr int views_max = 256;

field crops_of(std::string kind, const image& of, int size, bool mirrored_too) {
  using enum placement;
  std::vector<image> crops;
  for (const bool mirrored : {false, true}) {
    if (mirrored && !mirrored_too) break;
    for (const placement position : {top_left, top_right, bottom_left, bottom_right, center}) {
      image crop = of.get().group.empty() ? of.together(of.get().name) : of;
      // Mirrored before it is cropped: the middle of an odd number of columns is rounded there, as by torchvision.
      if (mirrored) crop = crop.random_flip(1);
      crops.push_back(crop.apply(transforms::center_crop{.height = size, .width = size, .position = position}));
    }
  }
  return field(std::make_shared<stages::views_model>(std::move(kind), of.get().name, std::move(crops), true));
}

}  // namespace

field views(const image& of, int count, std::string name) {
  if (count < 1 || count > views_max) {
    throw error(errc::usage, str_cat("views '", name, "': ", count, " of them; give 1 to ", views_max));
  }
  if (name.empty()) throw error(errc::usage, "views without a name: each draws by it, and it is the output's");
  std::vector<image> each;
  for (int k = 0; k < count; ++k) each.push_back(of.together(str_cat(name, "/", k)));
  return field(std::make_shared<stages::views_model>("views", std::move(name), std::move(each), false));
}
field five_crop(const image& of, int size) { return crops_of("five_crop", of, size, false); }
field ten_crop(const image& of, int size) { return crops_of("ten_crop", of, size, true); }

}  // namespace leat
