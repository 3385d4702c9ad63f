// Chains of transforms as text, both ways: one list of members for each struct serves reading and writing.
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/timm.hpp"

#include <leat/error.hpp>
#include <leat/transforms.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace leat {
namespace {

namespace tr = transforms;

constexpr std::array<std::string_view, std::variant_size_v<transform::variant>> names = {"random_resized_crop",
                                                                                         "resize",
                                                                                         "longest_side",
                                                                                         "smallest_side",
                                                                                         "random_scale",
                                                                                         "letterbox",
                                                                                         "pad_to",
                                                                                         "center_crop",
                                                                                         "random_crop",
                                                                                         "random_flip",
                                                                                         "random_zoom_out",
                                                                                         "random_iou_crop",
                                                                                         "brightness",
                                                                                         "contrast",
                                                                                         "saturation",
                                                                                         "hue",
                                                                                         "gamma",
                                                                                         "color_jitter",
                                                                                         "grayscale",
                                                                                         "invert",
                                                                                         "posterize",
                                                                                         "solarize",
                                                                                         "solarize_add",
                                                                                         "autocontrast",
                                                                                         "equalize",
                                                                                         "sharpness",
                                                                                         "gaussian_blur",
                                                                                         "channel_permutation",
                                                                                         "lookup",
                                                                                         "edit",
                                                                                         "rotate",
                                                                                         "affine",
                                                                                         "shear",
                                                                                         "translate",
                                                                                         "perspective",
                                                                                         "vertical_flip",
                                                                                         "gaussian_noise",
                                                                                         "iso_noise",
                                                                                         "salt_and_pepper",
                                                                                         "coarse_dropout",
                                                                                         "jpeg_quality",
                                                                                         "downscale",
                                                                                         "median_blur",
                                                                                         "motion_blur",
                                                                                         "clahe",
                                                                                         "rand_augment",
                                                                                         "trivial_augment",
                                                                                         "auto_augment",
                                                                                         "aug_mix",
                                                                                         "timm_rand_augment",
                                                                                         "timm_augmix",
                                                                                         "random_erasing",
                                                                                         "random_apply",
                                                                                         "one_of",
                                                                                         "in_random_order"};

constexpr std::array<std::string_view, 3> policy_names = {"imagenet", "cifar10", "svhn"};
constexpr std::array<std::string_view, 3> padding_names = {"constant", "edge", "reflect"};
constexpr std::array<std::string_view, 5> placement_names = {"center", "top_left", "top_right", "bottom_left",
                                                             "bottom_right"};
constexpr std::array<std::string_view, 3> filter_names = {"nearest", "bilinear", "bicubic"};

// How deep groups may be nested in a text: deeper than in a chain.
constexpr int depth_max = 64;
constexpr std::size_t steps_max = 1024;

/// height x width: "224x200", or "224" where both are the same; or the shorter side alone.
struct size_member {
  int& height;
  int& width;
  int* shorter_side = nullptr;
};
/// What random_erasing writes.
struct filling_member {
  std::array<double, 3>& value;
  bool& noise;
};
/// A colour: "124/116/104", or one number for all three.
struct colour_member {
  std::array<int, 3>& value;
};
/// Numbers: "0/0.5/1".
struct numbers_member {
  std::vector<double>& value;
};
/// The name of a field: all up to a comma, a blank or the parenthesis.
struct field_member {
  std::string& value;
};
/// Steps; in one_of, all or none have a weight before them.
struct steps_member {
  std::vector<transform>& steps;
  std::vector<double>* weights = nullptr;
};

// The members of each struct, in the order in which they are written. visit(name, member)
template <class Visit>
void members(tr::random_resized_crop& of, Visit&& visit) {
  visit("size", size_member{of.height, of.width});
  visit("scale", of.scale);
  visit("ratio", of.ratio);
  visit("filter", of.how);
}
template <class Visit>
void members(tr::resize& of, Visit&& visit) {
  visit("size", size_member{of.height, of.width, &of.shorter_side});
  visit("filter", of.how);
}
template <class Visit>
void members(tr::longest_side& of, Visit&& visit) {
  visit("size", of.size);
  visit("filter", of.how);
}
template <class Visit>
void members(tr::smallest_side& of, Visit&& visit) {
  visit("size", of.size);
  visit("filter", of.how);
}
template <class Visit>
void members(tr::random_scale& of, Visit&& visit) {
  visit("factor", of.factor);
}
template <class Visit>
void members(tr::letterbox& of, Visit&& visit) {
  visit("size", size_member{of.height, of.width});
  visit("fill", colour_member{of.fill});
  visit("filter", of.how);
}
template <class Visit>
void members(tr::pad_to& of, Visit&& visit) {
  visit("size", size_member{of.height, of.width});
  visit("fill", colour_member{of.fill});
  visit("position", of.position);
  visit("mode", of.mode);
}
template <class Visit>
void members(tr::center_crop& of, Visit&& visit) {
  visit("size", size_member{of.height, of.width});
  visit("fill", colour_member{of.fill});
  visit("mode", of.mode);
  visit("position", of.position);
}
template <class Visit>
void members(tr::random_crop& of, Visit&& visit) {
  visit("size", size_member{of.height, of.width});
  visit("padding", of.padding);
  visit("fill", colour_member{of.fill});
  visit("mode", of.mode);
}
template <class Visit>
void members(tr::random_flip& of, Visit&& visit) {
  visit("probability", of.probability);
}
template <class Visit>
void members(tr::random_zoom_out& of, Visit&& visit) {
  visit("side", of.side);
  visit("probability", of.probability);
  visit("fill", colour_member{of.fill});
}
template <class Visit>
void members(tr::random_iou_crop& of, Visit&& visit) {
  visit("scale", of.scale);
  visit("ratio", of.ratio);
  visit("options", numbers_member{of.options});
  visit("trials", of.trials);
  visit("boxes", field_member{of.boxes});
}
template <class Visit>
void members(tr::brightness& of, Visit&& visit) {
  visit("factor", of.factor);
}
template <class Visit>
void members(tr::contrast& of, Visit&& visit) {
  visit("factor", of.factor);
}
template <class Visit>
void members(tr::saturation& of, Visit&& visit) {
  visit("factor", of.factor);
}
template <class Visit>
void members(tr::hue& of, Visit&& visit) {
  visit("shift", of.shift);
}
template <class Visit>
void members(tr::gamma& of, Visit&& visit) {
  visit("exponent", of.exponent);
}
template <class Visit>
void members(tr::color_jitter& of, Visit&& visit) {
  visit("brightness", of.brightness);
  visit("contrast", of.contrast);
  visit("saturation", of.saturation);
  visit("hue", of.hue);
}
template <class Visit>
void members(tr::posterize& of, Visit&& visit) {
  visit("bits", of.bits);
}
template <class Visit>
void members(tr::solarize& of, Visit&& visit) {
  visit("threshold", of.threshold);
}
template <class Visit>
void members(tr::solarize_add& of, Visit&& visit) {
  visit("amount", of.amount);
  visit("threshold", of.threshold);
}
template <class Visit>
void members(tr::sharpness& of, Visit&& visit) {
  visit("factor", of.factor);
}
template <class Visit>
void members(tr::gaussian_blur& of, Visit&& visit) {
  visit("kernel", of.kernel);
  visit("sigma", of.sigma);
}
template <class Visit>
void members(tr::rotate& of, Visit&& visit) {
  visit("degrees", of.degrees);
  visit("filter", of.how);
  visit("fill", colour_member{of.fill});
  visit("center x", of.center[0]);
  visit("center y", of.center[1]);
}
template <class Visit>
void members(tr::affine& of, Visit&& visit) {
  visit("degrees", of.degrees);
  visit("translate x", of.translate[0]);
  visit("translate y", of.translate[1]);
  visit("scale", of.scale);
  visit("shear x", of.shear_x);
  visit("shear y", of.shear_y);
  visit("filter", of.how);
  visit("fill", colour_member{of.fill});
  visit("center x", of.center[0]);
  visit("center y", of.center[1]);
}
template <class Visit>
void members(tr::shear& of, Visit&& visit) {
  visit("x", of.x);
  visit("y", of.y);
  visit("filter", of.how);
  visit("fill", colour_member{of.fill});
  visit("center x", of.center[0]);
  visit("center y", of.center[1]);
}
template <class Visit>
void members(tr::translate& of, Visit&& visit) {
  visit("x", of.x);
  visit("y", of.y);
  visit("fill", colour_member{of.fill});
}
template <class Visit>
void members(tr::perspective& of, Visit&& visit) {
  visit("distortion", of.distortion);
  visit("filter", of.how);
  visit("fill", colour_member{of.fill});
}
template <class Visit>
void members(tr::gaussian_noise& of, Visit&& visit) {
  visit("mean", of.mean);
  visit("sigma", of.sigma);
}
template <class Visit>
void members(tr::iso_noise& of, Visit&& visit) {
  visit("color_shift", of.color_shift);
  visit("intensity", of.intensity);
}
template <class Visit>
void members(tr::salt_and_pepper& of, Visit&& visit) {
  visit("amount", of.amount);
  visit("salt", of.salt);
}
template <class Visit>
void members(tr::coarse_dropout& of, Visit&& visit) {
  visit("holes", of.holes);
  visit("height", of.height);
  visit("width", of.width);
  visit("fill", colour_member{of.fill});
}
template <class Visit>
void members(tr::jpeg_quality& of, Visit&& visit) {
  visit("quality", of.quality);
}
template <class Visit>
void members(tr::downscale& of, Visit&& visit) {
  visit("scale", of.scale);
}
template <class Visit>
void members(tr::median_blur& of, Visit&& visit) {
  visit("kernel", of.kernel);
}
template <class Visit>
void members(tr::motion_blur& of, Visit&& visit) {
  visit("kernel", of.kernel);
  visit("angle", of.angle);
  visit("direction", of.direction);
  visit("shifted", of.shifted);
}
template <class Visit>
void members(tr::clahe& of, Visit&& visit) {
  visit("clip", of.clip);
  visit("tiles", size_member{of.rows, of.columns});
}
template <class Visit>
void members(tr::rand_augment& of, Visit&& visit) {
  visit("ops", of.ops);
  visit("magnitude", of.magnitude);
  visit("bins", of.bins);
  visit("filter", of.how);
  visit("fill", colour_member{of.fill});
}
template <class Visit>
void members(tr::trivial_augment& of, Visit&& visit) {
  visit("bins", of.bins);
  visit("filter", of.how);
  visit("fill", colour_member{of.fill});
}
template <class Visit>
void members(tr::auto_augment& of, Visit&& visit) {
  visit("policy", of.policy);
  visit("filter", of.how);
  visit("fill", colour_member{of.fill});
}
template <class Visit>
void members(tr::aug_mix& of, Visit&& visit) {
  visit("severity", of.severity);
  visit("width", of.width);
  visit("depth", of.depth);
  visit("alpha", of.alpha);
  visit("all_ops", of.all_ops);
  visit("filter", of.how);
  visit("fill", colour_member{of.fill});
}
template <class Visit>
void members(tr::timm_augmix& of, Visit&& visit) {
  visit("magnitude", of.magnitude);
  visit("width", of.width);
  visit("depth", of.depth);
  visit("alpha", of.alpha);
  visit("magnitude_std", of.magnitude_std);
  visit("filter", of.how);
  visit("fill", colour_member{of.fill});
}
template <class Visit>
void members(tr::timm_rand_augment& of, Visit&& visit) {
  visit("magnitude", of.magnitude);
  visit("ops", of.ops);
  visit("probability", of.probability);
  visit("magnitude_std", of.magnitude_std);
  visit("magnitude_max", of.magnitude_max);
  visit("increasing", of.increasing);
  visit("weighted", of.weighted);
  visit("filter", of.how);
  visit("fill", colour_member{of.fill});
}
template <class Visit>
void members(tr::random_erasing& of, Visit&& visit) {
  visit("probability", of.probability);
  visit("scale", of.scale);
  visit("ratio", of.ratio);
  visit("value", filling_member{of.value, of.noise});
}
template <class Visit>
void members(tr::random_apply& of, Visit&& visit) {
  visit("probability", of.probability);
  visit("steps", steps_member{of.steps});
}
template <class Visit>
void members(tr::one_of& of, Visit&& visit) {
  visit("steps", steps_member{of.steps, &of.weights});
}
template <class Visit>
void members(tr::in_random_order& of, Visit&& visit) {
  visit("steps", steps_member{of.steps});
}
// Structs without members.
template <class Step, class Visit>
void members(Step&, Visit&&) {}

// Doubles are written with the fewest digits that tell them apart.
std::string text_of(double value) {
  std::array<char, 32> digits{};
  const std::to_chars_result end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end.ptr};
}
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "1" : "0"; }
template <class Number>
std::string text_of(const std::array<Number, 2>& range) {
  return range[0] == range[1] ? text_of(range[0]) : str_cat(text_of(range[0]), "..", text_of(range[1]));
}
std::string text_of(filter how) { return std::string(filter_names[static_cast<std::size_t>(how)]); }
std::string text_of(padding_mode mode) { return std::string(padding_names[static_cast<std::size_t>(mode)]); }
std::string text_of(placement where) { return std::string(placement_names[static_cast<std::size_t>(where)]); }
std::string text_of(const size_member& size) {
  if (size.shorter_side != nullptr && *size.shorter_side != 0) return text_of(*size.shorter_side);
  if (size.shorter_side == nullptr && size.height == size.width) return text_of(size.height);
  return str_cat(size.height, "x", size.width);
}
std::string text_of(learned_policy which) { return std::string(policy_names[static_cast<std::size_t>(which)]); }
template <class Number>
std::string text_of(const std::array<Number, 3>& values) {
  const auto& [red, green, blue] = values;
  if (red == green && green == blue) return text_of(red);
  return str_cat(text_of(red), "/", text_of(green), "/", text_of(blue));
}
std::string text_of(const filling_member& filling) { return filling.noise ? "noise" : text_of(filling.value); }
std::string text_of(const colour_member& colour) { return text_of(colour.value); }
std::string text_of(const numbers_member& numbers) {
  std::string text;
  for (const double each : numbers.value) str_append(text, text.empty() ? "" : "/", text_of(each));
  return text;
}
std::string text_of(const field_member& field) { return field.value; }
std::string text_of(const steps_member& group) {
  std::string text;
  for (std::size_t i = 0; i < group.steps.size(); ++i) {
    if (i > 0) text += ", ";
    if (group.weights != nullptr && i < group.weights->size()) text += text_of((*group.weights)[i]) + " ";
    text += to_string(group.steps[i]);
  }
  return text;
}

template <class Step>
std::vector<std::string> arguments_of(Step step) {
  std::vector<std::string> texts;
  members(step, [&](std::string_view, const auto& member) { texts.push_back(text_of(member)); });
  return texts;
}

/// Reads a text from left to right.
class text_reader {
 public:
  explicit text_reader(std::string_view text) : text_(text) {}

  std::vector<transform> chain() {
    std::vector<transform> steps;
    for (skip(); at_ < text_.size(); skip()) steps.push_back(step());
    return steps;
  }

 private:
  [[noreturn]] void refuse(std::size_t at, std::string_view why) const {
    constexpr std::size_t shown = 24;
    const std::string_view rest = text_.substr(std::min(at, text_.size()));
    throw error(errc::usage,
                str_cat("transforms as text, at character ", at + 1, " (",
                        rest.empty() ? std::string("the end")
                                     : str_cat("'", rest.substr(0, shown), rest.size() > shown ? "..." : "", "'"),
                        "): ", why));
  }

  // Steps and arguments are parted by blanks, commas or both.
  void skip() noexcept {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == ',' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  [[nodiscard]] bool is_next(char wanted) const noexcept { return at_ < text_.size() && text_[at_] == wanted; }
  [[nodiscard]] static bool is_of_word(char each) noexcept {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || each == '_' || (each >= '0' && each <= '9');
  }
  [[nodiscard]] bool number_is_next() const noexcept {
    return at_ < text_.size() && ((text_[at_] >= '0' && text_[at_] <= '9') || text_[at_] == '-' || text_[at_] == '.');
  }
  std::string_view word() noexcept {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_of_word(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  double number() {
    // "0.1..2" is a range: what follows two points is no part of the number before them.
    const std::size_t dots = text_.find("..", at_);
    double value = 0;
    const auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + std::min(dots, text_.size()), value);
    if (problem == std::errc::result_out_of_range)
      refuse(at_, str_cat(member_, ": the number is too large, or too small"));
    if (problem != std::errc() || !std::isfinite(value)) refuse(at_, str_cat(member_, ": a number is missing here"));
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  int whole_number() {
    int value = 0;
    const auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    const auto behind = static_cast<std::size_t>(end - text_.data());
    const bool goes_on = behind < text_.size() && (text_[behind] == '.' || text_[behind] == 'e');
    if (problem == std::errc::result_out_of_range) refuse(at_, str_cat(member_, ": the number is too large"));
    if (problem != std::errc() || goes_on) refuse(at_, str_cat(member_, ": must be a whole number"));
    at_ = behind;
    return value;
  }

  void read(double& value) { value = number(); }
  void read(int& value) { value = whole_number(); }
  void read(bool& value) {
    const std::size_t from = at_;
    const int number = whole_number();
    if (number != 0 && number != 1) refuse(from, str_cat(member_, ": must be 0 or 1"));
    value = number == 1;
  }
  void read(std::array<double, 2>& range) {
    range[0] = range[1] = number();
    if (text_.substr(at_, 2) != "..") return;
    at_ += 2;
    range[1] = number();
  }
  void read(std::array<int, 2>& range) {
    // "3..7": the points are no part of the number before them.
    const std::string_view all = text_;
    const std::size_t dots = text_.find("..", at_);
    text_ = text_.substr(0, dots);
    const std::size_t from = at_;
    if (at_ >= text_.size()) {
      text_ = all;
      refuse(from, str_cat(member_, ": must be a whole number"));
    }
    int first = 0;
    try {
      first = whole_number();
    } catch (...) {
      text_ = all;
      throw;
    }
    text_ = all;
    range = {first, first};
    if (text_.substr(at_, 2) != "..") return;
    at_ += 2;
    range[1] = whole_number();
  }
  void read(filter& how) { how = one_of_names<filter>(filter_names, "a filter is nearest, bilinear or bicubic"); }
  void read(learned_policy& which) {
    which = one_of_names<learned_policy>(policy_names, "a policy is imagenet, cifar10 or svhn");
  }
  void read(padding_mode& mode) {
    mode = one_of_names<padding_mode>(padding_names, "a mode is constant, edge or reflect");
  }
  void read(placement& where) {
    where = one_of_names<placement>(placement_names,
                                    "a position is center, top_left, top_right, bottom_left or bottom_right");
  }
  template <class Which>
  Which one_of_names(std::span<const std::string_view> of, std::string_view otherwise) {
    const std::size_t from = at_;
    const auto found = std::find(of.begin(), of.end(), word());
    if (found == of.end()) refuse(from, otherwise);
    return static_cast<Which>(found - of.begin());
  }
  void read(const size_member& size) {
    size.height = size.width = whole_number();
    if (is_next('x')) {
      ++at_;
      size.width = whole_number();
      return;
    }
    if (size.shorter_side != nullptr) {
      *size.shorter_side = std::exchange(size.height, 0);
      size.width = 0;
    }
  }
  void read(const filling_member& filling) {
    if (is_next('n')) {
      const std::size_t from = at_;
      if (word() != "noise") refuse(from, "what is erased becomes a number, three of them (0/0/0) or noise");
      filling.noise = true;
      return;
    }
    channels(filling.value);
  }
  void read(const colour_member& colour) { channels(colour.value); }
  template <class Number>
  void channels(std::array<Number, 3>& values) {
    read(values[0]);
    values.fill(values[0]);
    for (std::size_t channel = 1; channel < 3; ++channel) {
      if (!is_next('/')) {
        if (channel == 2) refuse(at_, "give one value, or three: 0/0/0");
        return;
      }
      ++at_;
      read(values[channel]);
    }
  }
  void read(const numbers_member& numbers) {
    numbers.value = {number()};
    while (is_next('/')) {
      ++at_;
      numbers.value.push_back(number());
    }
  }
  void read(const field_member& field) {
    const std::size_t end = std::min(text_.find_first_of(" ,)\n\t", at_), text_.size());
    field.value = text_.substr(at_, end - at_);
    at_ = end;
  }
  void read(const steps_member& group) {
    const std::size_t from = at_;
    for (skip(); at_ < text_.size() && text_[at_] != ')'; skip()) {
      if (group.weights != nullptr && number_is_next()) {
        if (group.weights->size() != group.steps.size()) refuse(at_, "give each step a weight, or none");
        member_ = "weights";
        group.weights->push_back(number());
        skip();
      } else if (group.weights != nullptr && !group.weights->empty()) {
        refuse(at_, "give each step a weight, or none");
      }
      group.steps.push_back(step());
    }
    if (group.steps.empty()) refuse(from, "a group is empty; give it a step, or leave it out");
  }

  transform step() {
    if (++count_ > steps_max) refuse(at_, str_cat("more than ", steps_max, " steps"));
    const std::size_t from = at_;
    const std::string_view given = word();
    if (given.empty()) refuse(from, "a step begins with its name, such as random_flip");
    if (pixels::is_timm_text(given)) return timm_step(from);
    const auto* const found = std::find(names.begin(), names.end(), given);
    if (found == names.end()) {
      // ColorJitter is near, too.
      const std::vector<std::string> known(names.begin(), names.end());
      const std::string meant = did_you_mean(lower_case(given), known);
      refuse(from, str_cat("no step is called '", given, "'", meant));
    }
    transform made = named_step(static_cast<std::size_t>(found - names.begin()), from);
    try {
      pixels::check_numbers(made);
    } catch (const error& failure) {
      refuse(from, failure.what());
    }
    return made;
  }

  // A word of timm's, in which "-" and "." stand.
  transform timm_step(std::size_t from) {
    while (at_ < text_.size() && (is_of_word(text_[at_]) || text_[at_] == '-' || text_[at_] == '.')) ++at_;
    try {
      transform made = pixels::parse_timm(text_.substr(from, at_ - from));
      pixels::check_numbers(made);
      return made;
    } catch (const error& failure) {
      refuse(from, failure.what());
    }
  }

  template <std::size_t Index = 0>
  transform named_step(std::size_t index, std::size_t from) {
    if constexpr (Index == std::variant_size_v<transform::variant>) {
      refuse(from, "no such step");
    } else {
      if (index != Index) return named_step<Index + 1>(index, from);
      using step_type = std::variant_alternative_t<Index, transform::variant>;
      if constexpr (std::same_as<step_type, tr::lookup> || std::same_as<step_type, tr::edit>) {
        refuse(from, str_cat(names[Index], " is a function, which a program gives; it cannot be written as text"));
      } else {
        step_type step;
        arguments(step, from);
        return step;
      }
    }
  }

  template <class Step>
  void arguments(Step& step, std::size_t from) {
    const bool given = is_next('(');
    if (given) {
      if (++depth_ > depth_max) refuse(at_, "too many groups in groups");
      ++at_;
    }
    bool any = false;
    members(step, [&](std::string_view name, auto&& member) {
      skip();
      member_ = name;
      any = true;
      const bool is_group = std::same_as<std::remove_cvref_t<decltype(member)>, steps_member>;
      if (given ? (!is_next(')') || is_group) : is_group) {
        if (!given) refuse(at_, "a group has its steps in parentheses: random_apply(0.5, grayscale)");
        read(member);
      }
    });
    if (!given) return;
    skip();
    if (!is_next(')')) {
      refuse(at_, at_ == text_.size() ? str_cat("the parenthesis of the step at character ", from + 1, " is not closed")
                  : any               ? std::string("nothing more belongs into these parentheses; a ) is missing")
                                      : std::string("this step has no arguments; a ) is missing"));
    }
    ++at_;
    --depth_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view member_;  // that is read
  int depth_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

std::string_view transform::name() const noexcept { return names[what().index()]; }

std::vector<transform> parse_transforms(std::string_view text) { return text_reader(text).chain(); }

std::string to_string(const transform& step) {
  std::string text(step.name());
  if (const auto* const own = step.get_if<tr::lookup>()) return str_cat(text, ":", own->name);
  if (const auto* const own = step.get_if<tr::edit>()) return str_cat(text, ":", own->name);
  std::vector<std::string> arguments;
  std::vector<std::string> usual;
  std::visit(
      [&]<class Step>(const Step& what) {
        arguments = arguments_of(what);
        usual = arguments_of(Step{});
      },
      step.what());
  // Default values at the end of the arguments are not written.
  while (!arguments.empty() && arguments.back() == usual[arguments.size() - 1]) arguments.pop_back();
  if (arguments.empty()) return text;
  text += "(";
  for (std::size_t i = 0; i < arguments.size(); ++i) str_append(text, i > 0 ? ", " : "", arguments[i]);
  return text + ")";
}

}  // namespace leat
