#include "stages/pixels/recipe.hpp"

#include "base/option_words.hpp"
#include "base/portable_math.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/pixels/mix_weights.hpp"
#include "stages/pixels/operations/operation.hpp"
#include "stages/pixels/orientation.hpp"
#include "stages/pixels/policies.hpp"
#include "stages/pixels/timm.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace leat::pixels {
namespace {

namespace tr = transforms;

constexpr int kernel_max = 127;
constexpr double factor_max = 1e6;
// The most that f16 holds: whatever a field's type, what is erased becomes no infinity.
constexpr double element_max = 65504;
// Of groups in groups.
constexpr int depth_max = 8;
// Of an affine warp: its matrix's entries stay far below what warper takes.
constexpr double scale_least = 0.01;
constexpr double scale_most = 100;
constexpr double shear_max = 80;
constexpr double center_max = 10;
constexpr int bins_max = 1000;
constexpr int timm_bins = 10;  // it has magnitudes without bins; any number that passes
constexpr int timm_magnitude_max = 100;
// What draws a policy's operation, for what each of them may need.
constexpr std::size_t passes_of_policy_operation = 5;
constexpr int mix_chains_max = 10;
constexpr int mix_depth_most = 3;  // that is drawn
static_assert(passes_of_policy_operation > mix_depth_most);

// Of the chains of a mix: the first with what its operations may need.
constexpr std::size_t mix_passes(int width, int depth) noexcept {
  const auto own = static_cast<std::size_t>(depth == 0 ? mix_depth_most : depth);
  return std::max(own, passes_of_policy_operation) + 1 + static_cast<std::size_t>(width - 1) * (own + 1);
}

template <class Step>
constexpr bool is_geometry =
    std::same_as<Step, tr::random_resized_crop> || std::same_as<Step, tr::resize> ||
    std::same_as<Step, tr::longest_side> || std::same_as<Step, tr::smallest_side> ||
    std::same_as<Step, tr::random_scale> || std::same_as<Step, tr::letterbox> || std::same_as<Step, tr::pad_to> ||
    std::same_as<Step, tr::center_crop> || std::same_as<Step, tr::random_crop> || std::same_as<Step, tr::random_flip> ||
    std::same_as<Step, tr::random_zoom_out> || std::same_as<Step, tr::random_iou_crop>;
template <class Step>
constexpr bool is_group =
    std::same_as<Step, tr::random_apply> || std::same_as<Step, tr::one_of> || std::same_as<Step, tr::in_random_order>;

}  // namespace

bool is_geometry_step(const transform& what) {
  return std::visit([]<class Step>(const Step&) { return is_geometry<Step>; }, what.what());
}

namespace {

const std::vector<transform>* steps_of(const transform& what) {
  return std::visit(
      []<class Step>(const Step& step) -> const std::vector<transform>* {
        if constexpr (is_group<Step>) {
          return &step.steps;
        } else {
          return nullptr;
        }
      },
      what.what());
}

/// Checks steps of colour one by one.
class colour_check {
 public:
  colour_check(bool& random, bool& calls_functions) : random_(random), calls_functions_(calls_functions) {}

  /// With all that is in a group.
  void check(const transform& what, int depth) {
    check_numbers(what);
    if (const std::vector<transform>* const steps = steps_of(what)) check_steps(what, *steps, depth);
  }

  void check_numbers(const transform& what) {
    name_ = what.name();
    std::visit(
        [&]<class Step>(const Step& step) {
          if constexpr (requires { check(step); }) {
            check(step);
          } else if constexpr (!is_geometry<Step>) {
            number_check numbers(name_);
            operation_of(what)->check(what, numbers);
            random_ = random_ || numbers.random();
            varies_ = varies_ || numbers.varies();
            ++passes_;
          }
        },
        what.what());
  }

  [[nodiscard]] std::size_t passes() const noexcept { return passes_; }
  [[nodiscard]] int kernel() const noexcept { return kernel_; }
  [[nodiscard]] bool varies() const noexcept { return varies_; }

 private:
  [[noreturn]] void refuse(std::string_view why) const { throw error(errc::usage, str_cat(name_, ": ", why)); }

  void draws(bool something) noexcept {
    random_ = random_ || something;
    varies_ = varies_ || something;
  }
  void range(std::string_view of, const std::array<double, 2>& given, double least, double most) {
    ordered(of, given, least, most);
    ++passes_;
  }
  void ordered(std::string_view of, const std::array<double, 2>& given, double least, double most) {
    if (!(given[0] >= least && given[0] <= given[1] && given[1] <= most)) {
      const std::string limits = str_cat("lie in ", least, "..", most);
      refuse(given[0] == given[1]
                 ? str_cat(of, " ", given[0], ": must ", limits)
                 : str_cat(of, " from ", given[0], " to ", given[1], ": must be ascending, and ", limits));
    }
    draws(given[0] != given[1]);
  }
  void looks_up(filter how, const std::array<int, 3>& fill) {
    if (how == filter::bicubic) refuse("bicubic: a warp is nearest or bilinear");
    for (const int value : fill) {
      if (value < 0 || value > 255) refuse(str_cat("fill ", value, ": must be 0..255"));
    }
  }
  void center(const std::array<double, 2>& given) {
    for (const double share : given) {
      if (!(std::abs(share) <= center_max)) {
        refuse(str_cat("center ", share, ": a share of the side; must be ", -center_max, "..", center_max));
      }
    }
  }
  void policy(int bins, int ops) {
    if (bins < 2 || bins > bins_max) refuse(str_cat("bins ", bins, ": must be 2..", bins_max));
    draws(true);
    passes_ += passes_of_policy_operation * static_cast<std::size_t>(ops);
  }
  void some_ops(int ops) {
    constexpr int ops_max = static_cast<int>(recipe::passes_max / passes_of_policy_operation);
    if (ops < 1 || ops > ops_max) refuse(str_cat("ops ", ops, ": must be 1..", ops_max));
  }
  void probability(double given) {
    if (!(given >= 0 && given <= 1)) refuse(str_cat("probability ", given, ": must be 0..1"));
    random_ = true;
    varies_ = varies_ || (given > 0 && given < 1);
  }
  void jitter(std::string_view of, double given, double most) {
    if (!(given >= 0 && given <= most)) refuse(str_cat(of, " ", given, ": must be 0..", most));
    draws(given != 0);
    passes_ += given != 0 ? 1 : 0;
  }
  void function(const std::string& name, bool is_there) {
    if (name.empty()) refuse("give it a name, another one whenever its function does something else");
    if (name.find_first_of("/@") != std::string::npos) {
      refuse(str_cat("'", name, "': a name has neither / nor @, by which steps of one name are told apart"));
    }
    if (!is_there) refuse(str_cat("'", name, "' has no function"));
    draws(true);
    calls_functions_ = true;
    ++passes_;
  }

  void check(const tr::brightness& step) { range("factor", step.factor, 0, factor_max); }
  void check(const tr::contrast& step) { range("factor", step.factor, 0, factor_max); }
  void check(const tr::saturation& step) { range("factor", step.factor, 0, factor_max); }
  void check(const tr::hue& step) { range("shift", step.shift, -0.5, 0.5); }
  void check(const tr::gamma& step) { range("exponent", step.exponent, 1e-3, 1e3); }
  void check(const tr::color_jitter& step) {
    jitter("brightness", step.brightness, factor_max);
    jitter("contrast", step.contrast, factor_max);
    jitter("saturation", step.saturation, factor_max);
    jitter("hue", step.hue, 0.5);
  }
  void check(const tr::grayscale&) { ++passes_; }
  void check(const tr::invert&) { ++passes_; }
  void check(const tr::posterize& step) {
    if (step.bits < 0 || step.bits > 8) refuse(str_cat("bits ", step.bits, ": a value has 8; keep 0..8 of them"));
    ++passes_;
  }
  void check(const tr::solarize& step) {
    if (step.threshold < 0 || step.threshold > 256) {
      refuse(str_cat("threshold ", step.threshold, ": values are 0..255; it must be 0..256"));
    }
    ++passes_;
  }
  void check(const tr::solarize_add& step) {
    if (step.amount < 0 || step.amount > 255) refuse(str_cat("amount ", step.amount, ": must be 0..255"));
    if (step.threshold < 0 || step.threshold > 256) {
      refuse(str_cat("threshold ", step.threshold, ": values are 0..255; it must be 0..256"));
    }
    ++passes_;
  }
  void check(const tr::autocontrast&) { ++passes_; }
  void check(const tr::equalize&) { ++passes_; }
  void check(const tr::sharpness& step) { range("factor", step.factor, 0, factor_max); }
  void check(const tr::gaussian_blur& step) {
    if (step.kernel < 1 || step.kernel > kernel_max || step.kernel % 2 == 0) {
      refuse(str_cat("kernel ", step.kernel, ": must be an odd number of 1..", kernel_max));
    }
    if (!(step.sigma[0] > 0)) refuse(str_cat("sigma from ", step.sigma[0], ": must be above 0"));
    range("sigma", step.sigma, 1e-3, 1e3);
    kernel_ = std::max(kernel_, step.kernel);
  }
  void check(const tr::channel_permutation&) {
    draws(true);
    ++passes_;
  }
  void check(const tr::lookup& step) { function(step.name, static_cast<bool>(step.make)); }
  void check(const tr::edit& step) { function(step.name, static_cast<bool>(step.change)); }
  void check(const tr::rotate& step) {
    range("degrees", step.degrees, -360, 360);
    looks_up(step.how, step.fill);
    center(step.center);
  }
  void check(const tr::affine& step) {
    range("degrees", step.degrees, -360, 360);
    for (const double share : step.translate) {
      if (!(share >= 0 && share <= 1)) refuse(str_cat("translate ", share, ": a share of the side; must be 0..1"));
      draws(share != 0);
    }
    ordered("scale", step.scale, scale_least, scale_most);
    ordered("shear_x", step.shear_x, -shear_max, shear_max);
    ordered("shear_y", step.shear_y, -shear_max, shear_max);
    looks_up(step.how, step.fill);
    center(step.center);
  }
  void check(const tr::shear& step) {
    range("x", step.x, -shear_max, shear_max);
    ordered("y", step.y, -shear_max, shear_max);
    looks_up(step.how, step.fill);
    center(step.center);
  }
  void check(const tr::translate& step) {
    range("x", step.x, -1, 1);
    ordered("y", step.y, -1, 1);
    looks_up(filter::nearest, step.fill);
  }
  void check(const tr::perspective& step) {
    if (!(step.distortion >= 0 && step.distortion <= 1)) {
      refuse(str_cat("distortion ", step.distortion, ": must be 0..1"));
    }
    looks_up(step.how, step.fill);
    draws(step.distortion != 0);
    ++passes_;
  }
  void check(const tr::vertical_flip&) { ++passes_; }
  void check(const tr::rand_augment& step) {
    some_ops(step.ops);
    policy(step.bins, step.ops);
    if (step.magnitude < 0 || step.magnitude >= step.bins) {
      refuse(str_cat("magnitude ", step.magnitude, ": of ", step.bins, " bins it must be 0..", step.bins - 1));
    }
    looks_up(step.how, step.fill);
  }
  void check(const tr::trivial_augment& step) {
    policy(step.bins, 1);
    looks_up(step.how, step.fill);
  }
  void check(const tr::auto_augment& step) {
    policy(learned_bins, 2);
    looks_up(step.how, step.fill);
  }
  // The picture's own part, its chains and what adds them.
  void mix(int width, int depth, double alpha) {
    if (width < 1 || width > mix_chains_max) refuse(str_cat("width ", width, ": must be 1..", mix_chains_max));
    if (depth < 0 || depth > mix_chains_max) {
      refuse(str_cat("depth ", depth, ": must be 1..", mix_chains_max, ", or 0: 1 to 3, drawn"));
    }
    if (!(alpha >= 0.05 && alpha <= 100)) refuse(str_cat("alpha ", alpha, ": must be 0.05..100"));
    draws(true);
    passes_ += 1 + mix_passes(width, depth);
  }
  void check(const tr::aug_mix& step) {
    if (step.severity < 1 || step.severity > mix_bins) {
      refuse(str_cat("severity ", step.severity, ": must be 1..", mix_bins));
    }
    mix(step.width, step.depth, step.alpha);
    looks_up(step.how, step.fill);
  }
  void check(const tr::timm_augmix& step) {
    mix(step.width, step.depth, step.alpha);
    timm_magnitude(step.magnitude, step.magnitude_std);
    looks_up(step.how, step.fill);
  }
  void check(const tr::timm_rand_augment& step) {
    some_ops(step.ops);
    const bool varied = varies_;
    policy(timm_bins, step.ops);
    timm_magnitude(step.magnitude, step.magnitude_std);
    probability(step.probability);
    if (step.probability == 0) varies_ = varied;
    if (step.magnitude_max < 1 || step.magnitude_max > timm_magnitude_max) {
      refuse(str_cat("magnitude_max ", step.magnitude_max, ": must be 1..", timm_magnitude_max));
    }
    looks_up(step.how, step.fill);
  }
  void timm_magnitude(int magnitude, double deviation) {
    if (magnitude < 0 || magnitude > timm_magnitude_max) {
      refuse(str_cat("magnitude ", magnitude, ": must be 0..", timm_magnitude_max));
    }
    if (!(deviation >= 0 && deviation <= factor_max)) {
      refuse(str_cat("magnitude_std ", deviation, ": must be 0..", factor_max));
    }
  }
  void check(const tr::random_erasing& step) {
    probability(step.probability);
    draws(step.probability != 0);  // its place
    const auto positive = [&](std::string_view of, const std::array<double, 2>& given, double most) {
      if (!(given[0] > 0 && given[0] <= given[1] && given[1] <= most)) {
        refuse(str_cat(of, " from ", given[0], " to ", given[1], ": must be ascending, above 0 and at most ", most));
      }
    };
    positive("scale", step.scale, 1);
    positive("ratio", step.ratio, 1e6);
    for (const double value : step.value) {
      if (!(std::abs(value) <= element_max))
        refuse(str_cat("value ", value, ": an element holds ", -element_max, "..", element_max));
    }
  }

  void check(const tr::random_apply& group) {
    probability(group.probability);
    not_empty(group.steps);
  }
  void check(const tr::one_of& group) {
    not_empty(group.steps);
    if (!group.weights.empty() && group.weights.size() != group.steps.size()) {
      refuse(str_cat(group.weights.size(), " weights for ", group.steps.size(), " steps: give one for each, or none"));
    }
    double sum = 0;
    for (const double weight : group.weights) {
      if (!(weight >= 0 && weight <= factor_max)) refuse(str_cat("weight ", weight, ": must be 0..", factor_max));
      sum += weight;
    }
    if (!group.weights.empty() && !(sum > 0)) refuse("all weights are 0; one must be above it");
    random_ = true;
    const auto never = std::count(group.weights.begin(), group.weights.end(), 0.0);
    varies_ = varies_ || std::ssize(group.steps) - never > 1;
  }
  void check(const tr::in_random_order& group) {
    random_ = true;
    varies_ = varies_ || group.steps.size() > 1;
    not_empty(group.steps);
    if (group.steps.size() > recipe::passes_max) {
      refuse(str_cat(group.steps.size(), " steps: at most ", recipe::passes_max));
    }
  }
  void not_empty(const std::vector<transform>& steps) {
    if (steps.empty()) refuse("is empty; give it a step, or leave it out");
  }
  static bool is_ever_done(const transform& group, std::size_t step) {
    if (const auto* const applied = group.get_if<tr::random_apply>()) return applied->probability > 0;
    const auto* const one = group.get_if<tr::one_of>();
    return one == nullptr || one->weights.empty() || one->weights[step] > 0;
  }
  void check_steps(const transform& group, const std::vector<transform>& steps, int depth) {
    if (depth == depth_max) refuse(str_cat("groups in groups, more than ", depth_max, " deep"));
    for (const transform& each : steps) {
      if (is_geometry_step(each)) {
        throw error(errc::usage, str_cat(each.name(),
                                         ": stands in a group; groups are of colour. Crop, resize and flip stand "
                                         "in front of it"));
      }
      if (each.get_if<tr::random_erasing>() != nullptr) {
        throw error(
            errc::usage,
            "random_erasing: stands in a group; it is the last step of a chain, and has a probability of its own");
      }
      const bool varied = varies_;
      check(each, depth + 1);
      if (!is_ever_done(group, static_cast<std::size_t>(&each - steps.data()))) varies_ = varied;
    }
  }

  bool& random_;
  bool& calls_functions_;
  bool varies_ = false;
  std::string_view name_;
  std::size_t passes_ = 0;
  int kernel_ = 1;
};

// A name that tells it apart from its neighbours.
std::string own_name(const transform& what) {
  if (const auto* step = what.get_if<tr::lookup>()) return str_cat("lookup:", step->name);
  if (const auto* step = what.get_if<tr::edit>()) return str_cat("edit:", step->name);
  return std::string(what.name());
}

/// Names steps that stand beside one another.
class step_names {
 public:
  explicit step_names(std::string path) : path_(std::move(path)) {}

  chain_step take(const transform& what) {
    std::string name = str_cat(path_, own_name(what));
    const auto again = static_cast<std::size_t>(std::count(seen_.begin(), seen_.end(), name));
    seen_.push_back(name);
    if (again > 0) str_append(name, "/", again + 1);
    chain_step made{what, name, operation_key(name), {}};
    if (const std::vector<transform>* const steps = steps_of(what)) {
      step_names inside(name + "/");
      for (const transform& each : *steps) made.steps.push_back(inside.take(each));
    }
    if (const auto* const policy = what.get_if<tr::rand_augment>()) add_operations(made, policy->ops);
    if (const auto* const policy = what.get_if<tr::timm_rand_augment>()) add_operations(made, policy->ops);
    if (const auto* const mix = what.get_if<tr::aug_mix>()) add_operations(made, mix->width);
    if (const auto* const mix = what.get_if<tr::timm_augmix>()) add_operations(made, mix->width);
    return made;
  }

 private:
  static void add_operations(chain_step& to, int count) {
    for (int i = 1; i <= count; ++i) {
      const std::string path = str_cat(to.name, "/", i);
      to.steps.push_back({to.what, path, operation_key(path), {}});
    }
  }

  std::string path_;
  std::vector<std::string> seen_;
};

// "": as it is alone.
void set_view(chain_step& step, std::string_view name) {
  step.operation = operation_key(name.empty() ? step.name : str_cat(step.name, "@", name));
  for (chain_step& each : step.steps) set_view(each, name);
}

random_draws draws_of(const chain_step& step, const draw_key& key) noexcept {
  return {key.seed, key.epoch, key.draw, step.operation};
}

/// Draws the steps of colour, or takes all that there are.
class colour_drawing {
 public:
  colour_drawing(recipe& out, bool all, int width, int height) noexcept
      : out_(out), all_(all), width_(width), height_(height) {}

  void draw(const chain_step& step) noexcept {
    std::visit(
        [&]<class Step>(const Step& what) {
          if constexpr (requires { draw(what, step, draws_of(step, out_.key)); }) {
            draw(what, step, draws_of(step, out_.key));
          } else if constexpr (!is_geometry<Step>) {
            random_draws draws = draws_of(step, out_.key);
            out_.add(
                {.what = pass_kind::operation, .of = &step, .from = operation_of(step.what)->draw(step.what, draws)});
          }
        },
        step.what.what());
  }

 private:
  void add(pass_kind what, const chain_step& step, double value = 0, int number = 0) noexcept {
    out_.add({.what = what, .number = number, .value = value, .of = &step});
  }
  void add(pass_kind what, const chain_step& step, const std::array<double, 2>& range, random_draws& draws) noexcept {
    add(what, step, range[0] == range[1] ? range[0] : draws.uniform(range[0], range[1]));
  }

  void draw(const tr::brightness& what, const chain_step& step, random_draws draws) noexcept {
    add(pass_kind::brightness, step, what.factor, draws);
  }
  void draw(const tr::contrast& what, const chain_step& step, random_draws draws) noexcept {
    add(pass_kind::contrast, step, what.factor, draws);
  }
  void draw(const tr::saturation& what, const chain_step& step, random_draws draws) noexcept {
    add(pass_kind::saturation, step, what.factor, draws);
  }
  void draw(const tr::hue& what, const chain_step& step, random_draws draws) noexcept {
    add(pass_kind::hue, step, what.shift, draws);
  }
  void draw(const tr::gamma& what, const chain_step& step, random_draws draws) noexcept {
    add(pass_kind::gamma, step, what.exponent, draws);
  }
  void draw(const tr::color_jitter& what, const chain_step& step, random_draws draws) noexcept {
    std::array<int, 4> order = {0, 1, 2, 3};
    shuffle(std::span(order), draws);
    const auto around_one = [&](double amount) { return draws.uniform(std::max(0.0, 1 - amount), 1 + amount); };
    const std::array<double, 4> drawn = {around_one(what.brightness), around_one(what.contrast),
                                         around_one(what.saturation), draws.uniform(-what.hue, what.hue)};
    const std::array<double, 4> amount = {what.brightness, what.contrast, what.saturation, what.hue};
    constexpr std::array kinds = {pass_kind::brightness, pass_kind::contrast, pass_kind::saturation, pass_kind::hue};
    for (const int each : order) {
      const auto i = static_cast<std::size_t>(each);
      if (amount[i] != 0) add(kinds[i], step, drawn[i]);
    }
  }
  void draw(const tr::grayscale&, const chain_step& step, random_draws) noexcept { add(pass_kind::grayscale, step); }
  void draw(const tr::invert&, const chain_step& step, random_draws) noexcept { add(pass_kind::invert, step); }
  void draw(const tr::posterize& what, const chain_step& step, random_draws) noexcept {
    add(pass_kind::posterize, step, 0, what.bits);
  }
  void draw(const tr::solarize& what, const chain_step& step, random_draws) noexcept {
    add(pass_kind::solarize, step, 0, what.threshold);
  }
  void draw(const tr::solarize_add& what, const chain_step& step, random_draws) noexcept {
    add(pass_kind::solarize_add, step, what.threshold, what.amount);
  }
  void draw(const tr::autocontrast&, const chain_step& step, random_draws) noexcept {
    add(pass_kind::autocontrast, step);
  }
  void draw(const tr::equalize&, const chain_step& step, random_draws) noexcept { add(pass_kind::equalize, step); }
  void draw(const tr::sharpness& what, const chain_step& step, random_draws draws) noexcept {
    add(pass_kind::sharpness, step, what.factor, draws);
  }
  void draw(const tr::gaussian_blur& what, const chain_step& step, random_draws draws) noexcept {
    add(pass_kind::gaussian_blur, step, what.sigma, draws);
    out_.passes[out_.count - 1].number = what.kernel;
    if (all_) out_.passes[out_.count - 1].value = what.sigma[1];
  }
  void draw(const tr::channel_permutation&, const chain_step& step, random_draws draws) noexcept {
    add(pass_kind::channel_permutation, step, 0, static_cast<int>(draws.below(6)));
  }
  void draw(const tr::lookup&, const chain_step& step, random_draws) noexcept { add(pass_kind::lookup, step); }
  void draw(const tr::edit&, const chain_step& step, random_draws) noexcept { add(pass_kind::edit, step); }

  void add_warp(const chain_step& step, const warp_matrix& from, double value = 0) noexcept {
    out_.add({.what = pass_kind::warp, .number = 0, .value = value, .of = &step, .from = from});
  }
  [[nodiscard]] std::array<double, 2> size_by(const std::array<double, 2>& shares) const noexcept {
    return {shares[0] * width_, shares[1] * height_};
  }
  static double tangent(double degrees) noexcept {
    const auto [sine, cosine] = portable_sine_and_cosine(degrees);
    return sine / cosine;
  }
  static double drawn(const std::array<double, 2>& range, random_draws& draws) noexcept {
    return draws.uniform(range[0], range[1]);
  }

  void draw(const tr::rotate& what, const chain_step& step, random_draws draws) noexcept {
    rotate(step, drawn(what.degrees, draws), what.center);
  }
  // As people turn, and affine_motion does not.
  void rotate(const chain_step& step, double degrees, const std::array<double, 2>& center) noexcept {
    add_warp(step, affine_matrix({.degrees = -degrees, .center = size_by(center)}), degrees);
  }
  void draw(const tr::affine& what, const chain_step& step, random_draws draws) noexcept {
    const double degrees = drawn(what.degrees, draws);
    std::array<double, 2> moved = size_by(what.translate);
    for (double& most : moved) most = std::nearbyint(draws.uniform(-most, most));
    const double scale = drawn(what.scale, draws);
    const double x = drawn(what.shear_x, draws);
    const double y = drawn(what.shear_y, draws);
    add_warp(step, affine_matrix({.degrees = degrees,
                                  .translate = moved,
                                  .scale = scale,
                                  .tan_x = tangent(x),
                                  .tan_y = tangent(y),
                                  .center = size_by(what.center)}));
  }
  void draw(const tr::shear& what, const chain_step& step, random_draws draws) noexcept {
    const double x = drawn(what.x, draws);
    const double y = drawn(what.y, draws);
    add_warp(step, affine_matrix({.tan_x = tangent(x), .tan_y = tangent(y), .center = size_by(what.center)}));
  }
  void draw(const tr::translate& what, const chain_step& step, random_draws draws) noexcept {
    std::array<double, 2> moved = size_by({drawn(what.x, draws), 0});
    moved[1] = drawn(what.y, draws) * height_;
    for (double& each : moved) each = std::nearbyint(each);
    add_warp(step, affine_matrix({.translate = moved}));
  }
  void draw(const tr::perspective& what, const chain_step& step, random_draws draws) noexcept {
    const auto below = [&](int most) { return static_cast<double>(draws.below(static_cast<std::uint64_t>(most))); };
    const int x = static_cast<int>(what.distortion * (width_ / 2)) + 1;
    const int y = static_cast<int>(what.distortion * (height_ / 2)) + 1;
    quadrilateral to{};
    for (std::size_t corner = 0; corner < to.size(); ++corner) {
      const bool is_right = corner == 1 || corner == 2;
      const bool is_low = corner >= 2;
      to[corner][0] = (is_right ? width_ - x : 0) + below(x);
      to[corner][1] = (is_low ? height_ - y : 0) + below(y);
    }
    const double right = width_ - 1;
    const double low = height_ - 1;
    add_warp(step, perspective_matrix(to, {{{0, 0}, {right, 0}, {right, low}, {0, low}}}));
  }
  void draw(const tr::vertical_flip&, const chain_step& step, random_draws) noexcept {
    add_warp(step, {1, 0, 0, 0, -1, static_cast<double>(height_), 0, 0, 1});
  }

  void draw(const tr::rand_augment& what, const chain_step& step, random_draws draws) noexcept {
    // The step itself, or one of its operations.
    for (const chain_step& each : step.steps) draw(each);
    if (step.steps.empty()) draw_any(usual_space, what.magnitude, what.bins, step, draws);
  }
  void draw(const tr::trivial_augment& what, const chain_step& step, random_draws draws) noexcept {
    const auto bin = static_cast<int>(draws.below(static_cast<std::uint64_t>(what.bins)));
    draw_any(wide_space, bin, what.bins, step, draws);
  }
  void draw(const tr::auto_augment& what, const chain_step& step, random_draws draws) noexcept {
    if (all_) {
      for (int i = 0; i < 2; ++i) add_any(step);
      return;
    }
    for (const learned_operation& each : pairs_of(what.policy)[draws.below(learned_pairs)]) {
      const bool applied = draws.uniform() < each.probability;
      const double sign = draws.uniform() < 0.5 ? -1 : 1;
      if (applied) add_operation(each.what, usual_space, each.bin, learned_bins, sign, step);
    }
  }
  void draw_any(const policy_space& space, int bin, int bins, const chain_step& step, random_draws& draws) noexcept {
    if (all_) return add_any(step);
    const std::span<const policy_operation> operations = policy_operations();
    const policy_operation what = operations[draws.below(operations.size())];
    add_operation(what, space, bin, bins, draws.uniform() < 0.5 ? -1 : 1, step);
  }
  void draw(const tr::timm_rand_augment& what, const chain_step& step, random_draws draws) noexcept {
    timm_choice chosen(what.weighted);
    for (const chain_step& each : step.steps) {
      // Which operation is drawn by the step: none comes twice where they are weighted. All else is drawn by the operation.
      const policy_operation operation = chosen.next(draws);
      if (all_) {
        add_any(each);
        continue;
      }
      random_draws own = draws_of(each, out_.key);
      const bool applied = own.uniform() < what.probability;
      const double level = timm_magnitude(what.magnitude, what.magnitude_std, what.magnitude_max, own);
      const bool negated = own.uniform() < 0.5;
      if (applied) {
        add_timm_operation(operation, timm_argument(operation, level, what.increasing || what.weighted, negated), each,
                           timm_translate_share);
      }
    }
  }
  // An operation of colour, of a factor or of a whole number.
  void add_colour(policy_operation what, double factor, int number, const chain_step& step) noexcept {
    switch (what) {
      case policy_operation::identity:
      case policy_operation::shear_x:
      case policy_operation::shear_y:
      case policy_operation::translate_x:
      case policy_operation::translate_y:
      case policy_operation::rotate:
        return;  // none of colour
      case policy_operation::brightness:
        return add(pass_kind::brightness, step, factor);
      case policy_operation::color:
        return add(pass_kind::saturation, step, factor);
      case policy_operation::contrast:
        return add(pass_kind::contrast, step, factor);
      case policy_operation::sharpness:
        return add(pass_kind::sharpness, step, factor);
      case policy_operation::posterize:
        return add(pass_kind::posterize, step, 0, number);
      case policy_operation::solarize:
        return add(pass_kind::solarize, step, 0, number);
      case policy_operation::solarize_add:
        return add(pass_kind::solarize_add, step, 128, number);
      case policy_operation::autocontrast:
        return add(pass_kind::autocontrast, step);
      case policy_operation::equalize:
        return add(pass_kind::equalize, step);
      case policy_operation::invert:
        return add(pass_kind::invert, step);
    }
  }
  void add_timm_operation(policy_operation what, double argument, const chain_step& step,
                          double translate_share) noexcept {
    const auto number = static_cast<int>(argument);
    switch (what) {
      case policy_operation::identity:
        return;
      // About the upper left corner, as Pillow's transform() looks.
      case policy_operation::shear_x:
        return add_warp(step, {1, argument, 0, 0, 1, 0, 0, 0, 1});
      case policy_operation::shear_y:
        return add_warp(step, {1, 0, 0, argument, 1, 0, 0, 0, 1});
      case policy_operation::translate_x:
        return add_warp(step, {1, 0, argument * translate_share * width_, 0, 1, 0, 0, 0, 1});
      case policy_operation::translate_y:
        return add_warp(step, {1, 0, 0, 0, 1, argument * translate_share * height_, 0, 0, 1});
      case policy_operation::rotate:
        return rotate(step, argument, {0.5, 0.5});
      case policy_operation::brightness:
      case policy_operation::color:
      case policy_operation::contrast:
      case policy_operation::sharpness:
      case policy_operation::posterize:
      case policy_operation::solarize:
      case policy_operation::solarize_add:
      case policy_operation::autocontrast:
      case policy_operation::equalize:
      case policy_operation::invert:
        return add_colour(what, argument, number, step);
    }
  }
  void draw(const tr::aug_mix& what, const chain_step& step, random_draws draws) noexcept {
    mix_weights weights(what.alpha, what.width, draws);
    // As torchvision: the two parts of a whole, and the parts of the second, in f32.
    add(pass_kind::mix_begin, step, static_cast<double>(weights.first_of_two()));
    const std::span<const policy_operation> operations = mix_operations(what.all_ops);
    for (int i = 0; i < what.width; ++i) {
      const chain_step& own = step.steps[static_cast<std::size_t>(i)];
      random_draws of_chain = draws_of(own, out_.key);
      const int depth = depth_of_chain(what.depth, of_chain);
      for (int k = 0; k < depth && !all_; ++k) {
        const policy_operation each = operations[of_chain.below(operations.size())];
        const auto bin = static_cast<int>(of_chain.below(static_cast<std::uint64_t>(what.severity)));
        add_operation(each, mix_space, bin, mix_bins, of_chain.uniform() < 0.5 ? -1 : 1, own);
      }
      end_chain(i, what.width, what.depth, weights.part(i) * weights.second_of_two(), 1, own);
    }
  }
  void draw(const tr::timm_augmix& what, const chain_step& step, random_draws draws) noexcept {
    mix_weights weights(what.alpha, what.width, draws);
    add(pass_kind::mix_begin, step, 0);
    const std::span<const policy_operation> operations = timm_mix_operations();
    for (int i = 0; i < what.width; ++i) {
      const chain_step& own = step.steps[static_cast<std::size_t>(i)];
      random_draws of_chain = draws_of(own, out_.key);
      const int depth = depth_of_chain(what.depth, of_chain);
      for (int k = 0; k < depth && !all_; ++k) {
        const policy_operation each = operations[of_chain.below(operations.size())];
        const double level = timm_magnitude(what.magnitude, what.magnitude_std, 10, of_chain);
        add_timm_operation(each, timm_argument(each, level, true, of_chain.uniform() < 0.5), own,
                           timm_mix_translate_share);
      }
      end_chain(i, what.width, what.depth, weights.part(i), weights.second_of_two(), own);
    }
  }
  static int depth_of_chain(int given, random_draws& draws) noexcept {
    const int drawn = 1 + static_cast<int>(draws.below(mix_depth_most));
    return given == 0 ? drawn : given;
  }
  //   share   of the sum, beside the picture, after the last chain
  void end_chain(int number, int width, int depth, float weight, float share, const chain_step& step) noexcept {
    if (all_) {
      const std::size_t own = static_cast<std::size_t>(depth == 0 ? mix_depth_most : depth);
      std::size_t left = own;
      if (number == 0) {
        add_any(step);
        left -= std::min(left, passes_of_policy_operation);
      }
      for (; left > 0; --left) add(pass_kind::brightness, step, 1);
    }
    out_.add({.what = pass_kind::mix_add,
              .number = number + 1 == width ? 1 : 0,
              .value = static_cast<double>(weight),
              .of = &step,
              .from = {static_cast<double>(share)}});
  }
  // Of each kind that needs something.
  void add_any(const chain_step& step) noexcept {
    add_warp(step, identity_matrix);
    for (const pass_kind what :
         {pass_kind::sharpness, pass_kind::equalize, pass_kind::contrast, pass_kind::brightness}) {
      add(what, step, 1);
    }
  }
  void add_operation(policy_operation what, const policy_space& space, int bin, int bins, double sign,
                     const chain_step& step) noexcept {
    double magnitude = policy_magnitude(what, space, bin, bins, height_, width_);
    if (is_signed(what)) magnitude *= sign;
    switch (what) {
      case policy_operation::identity:
      case policy_operation::solarize_add:  // in none of these spaces
        return;
      case policy_operation::shear_x:
        return add_warp(step, affine_matrix({.tan_x = magnitude}));
      case policy_operation::shear_y:
        return add_warp(step, affine_matrix({.tan_y = magnitude}));
      case policy_operation::translate_x:
        return add_warp(step, affine_matrix({.translate = {std::trunc(magnitude), 0}}));
      case policy_operation::translate_y:
        return add_warp(step, affine_matrix({.translate = {0, std::trunc(magnitude)}}));
      case policy_operation::rotate:
        return rotate(step, magnitude, {0.5, 0.5});
      case policy_operation::brightness:
      case policy_operation::color:
      case policy_operation::contrast:
      case policy_operation::sharpness:
      case policy_operation::posterize:
      case policy_operation::solarize:
      case policy_operation::autocontrast:
      case policy_operation::equalize:
      case policy_operation::invert:
        return add_colour(what, 1 + magnitude, static_cast<int>(magnitude), step);
    }
  }

  void draw(const tr::random_erasing& what, const chain_step& step, random_draws draws) noexcept {
    if (!(draws.uniform() < what.probability)) return;
    const double area = static_cast<double>(height_) * static_cast<double>(width_);
    const double log_ratio_min = portable_log(what.ratio[0]);
    const double log_ratio_max = portable_log(what.ratio[1]);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double erased = area * draws.uniform(what.scale[0], what.scale[1]);
      const double ratio = portable_exp(draws.uniform(log_ratio_min, log_ratio_max));
      const double h = std::nearbyint(std::sqrt(erased * ratio));
      const double w = std::nearbyint(std::sqrt(erased / ratio));
      if (!(h < height_ && w < width_)) continue;
      const auto y = static_cast<int>(draws.below(static_cast<std::uint64_t>(height_ - static_cast<int>(h) + 1)));
      const auto x = static_cast<int>(draws.below(static_cast<std::uint64_t>(width_ - static_cast<int>(w) + 1)));
      out_.erased = erased_box{{x, y, static_cast<int>(w), static_cast<int>(h)}, &step};
      return;
    }
  }

  void draw(const tr::random_apply& what, const chain_step& step, random_draws draws) noexcept {
    if (all_ || draws.uniform() < what.probability) {
      for (const chain_step& each : step.steps) draw(each);
    }
  }
  void draw(const tr::one_of& what, const chain_step& step, random_draws draws) noexcept {
    if (all_) {
      for (const chain_step& each : step.steps) draw(each);
    } else if (what.weights.empty()) {
      draw(step.steps[draws.below(step.steps.size())]);
    } else {
      draw(step.steps[weighted(what.weights, draws)]);
    }
  }
  void draw(const tr::in_random_order&, const chain_step& step, random_draws draws) noexcept {
    std::array<std::uint8_t, recipe::passes_max> order{};
    const std::size_t count = step.steps.size();
    for (std::size_t i = 0; i < count; ++i) order[i] = static_cast<std::uint8_t>(i);
    shuffle(std::span(order).first(count), draws);
    for (std::size_t i = 0; i < count; ++i) draw(step.steps[order[i]]);
  }

  static std::size_t weighted(const std::vector<double>& weights, random_draws& draws) noexcept {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    double left = draws.uniform() * sum;
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      chosen = i;
      if (left < weights[i]) break;
      left -= weights[i];
    }
    return chosen;
  }

  recipe& out_;
  const bool all_;
  const int width_;
  const int height_;
};

/// What of a chain decides how it is fused, or refuses to be.
class fusing_check {
 public:
  /// One after the other.
  void see(const transform& what) {
    std::visit(
        [&]<class Step>(const Step& step) {
          if constexpr (is_geometry<Step>) {
            see_geometry(what, step);
          } else if constexpr (std::same_as<Step, tr::one_of>) {
            // One of them is drawn: none stands behind another.
            const std::string before = looks_around_;
            std::string after = before;
            for (const transform& each : step.steps) {
              looks_around_ = before;
              see(each);
              if (!looks_around_.empty()) after = looks_around_;
            }
            looks_around_ = after;
          } else if constexpr (is_group<Step>) {
            // In any order: each also behind those after it.
            for (int i = 0; i < (std::same_as<Step, tr::in_random_order> ? 2 : 1); ++i) {
              for (const transform& each : step.steps) see(each);
            }
          } else if constexpr (std::same_as<Step, tr::aug_mix> || std::same_as<Step, tr::timm_augmix>) {
            refuse(what, "mixes pictures that are warped differently, and a fused chain has one matrix");
          } else if constexpr (std::same_as<Step, tr::vertical_flip>) {
            see_warp(what);
          } else if constexpr (is_warp<Step>) {
            see_warp(what);
            see_fill(what, step.fill);
            if constexpr (requires { step.how; }) smooth_ = smooth_ || step.how != filter::nearest;
          } else if constexpr (pass_looks_around<Step>) {
            looks_around_ = what.name();
          }
        },
        what.what());
  }

  [[nodiscard]] filter how() const noexcept { return smooth_ ? filter::bilinear : filter::nearest; }
  [[nodiscard]] std::array<int, 3> fill() const noexcept { return fill_.value_or(std::array<int, 3>{}); }
  [[nodiscard]] bool warps() const noexcept { return warps_; }

 private:
  template <class Step>
  static constexpr bool is_warp =
      std::same_as<Step, tr::rotate> || std::same_as<Step, tr::affine> || std::same_as<Step, tr::shear> ||
      std::same_as<Step, tr::translate> || std::same_as<Step, tr::perspective> ||
      std::same_as<Step, tr::rand_augment> || std::same_as<Step, tr::trivial_augment> ||
      std::same_as<Step, tr::auto_augment> || std::same_as<Step, tr::timm_rand_augment>;
  /// Steps of a pixel's own values. Statistics of the picture change little by where its pixels lie.
  template <class Step>
  static constexpr bool pass_looks_around =
      !(std::same_as<Step, tr::brightness> || std::same_as<Step, tr::contrast> || std::same_as<Step, tr::saturation> ||
        std::same_as<Step, tr::hue> || std::same_as<Step, tr::gamma> || std::same_as<Step, tr::color_jitter> ||
        std::same_as<Step, tr::grayscale> || std::same_as<Step, tr::invert> || std::same_as<Step, tr::posterize> ||
        std::same_as<Step, tr::solarize> || std::same_as<Step, tr::solarize_add> ||
        std::same_as<Step, tr::autocontrast> || std::same_as<Step, tr::equalize> ||
        std::same_as<Step, tr::channel_permutation> || std::same_as<Step, tr::lookup> ||
        std::same_as<Step, tr::random_erasing>);

  [[noreturn]] static void refuse(const transform& what, std::string_view why) {
    throw error(errc::usage,
                str_cat(what.name(), ": ", why, "; leave it out, or write ", spelled(option_id::rounding, "exact")),
                option_id::rounding);
  }

  template <class Step>
  void see_geometry(const transform& what, const Step& step) {
    if constexpr (requires { step.how; }) smooth_ = smooth_ || step.how != filter::nearest;
    if constexpr (requires { step.mode; }) {
      if (step.mode != padding_mode::constant) {
        refuse(what, "pads with more than a colour, and outside of the picture a fused chain has one");
      }
    }
    if constexpr (requires { step.fill; }) {
      // Of a crop without padding the default says nothing.
      constexpr bool always = std::same_as<Step, tr::letterbox> || std::same_as<Step, tr::pad_to> ||
                              std::same_as<Step, tr::random_zoom_out>;
      bool pads = always || step.fill != std::array<int, 3>{};
      if constexpr (requires { step.padding; }) pads = pads || step.padding > 0;
      if (pads) see_fill(what, step.fill);
    }
  }
  void see_warp(const transform& what) {
    warps_ = true;
    if (looks_around_.empty()) return;
    throw error(
        errc::usage,
        str_cat(what.name(), ": stands behind ", looks_around_,
                ", which looks at more than a pixel, and the warps of a fused chain come first: write it before ",
                looks_around_, ", or write ", spelled(option_id::rounding, "exact")),
        option_id::rounding);
  }
  void see_fill(const transform& what, const std::array<int, 3>& fill) {
    if (fill_ && *fill_ != fill) {
      const auto text = [](const std::array<int, 3>& of) { return str_cat(of[0], "/", of[1], "/", of[2]); };
      throw error(errc::usage,
                  str_cat(what.name(), ": fill ", text(fill), " where ", filled_by_, " has ", text(*fill_),
                          ", and outside of the picture a fused chain has one colour; give both the same, "
                          "or write ",
                          spelled(option_id::rounding, "exact")),
                  option_id::rounding);
    }
    fill_ = fill;
    filled_by_ = what.name();
  }

  bool smooth_ = false;
  bool warps_ = false;
  std::optional<std::array<int, 3>> fill_;
  std::string filled_by_;
  std::string looks_around_;
};

// Of geometry: whether it takes draws, whatever its numbers are.
bool draws_by_kind(const transform& what) {
  return std::visit(
      []<class Step>(const Step&) {
        return requires(geometry_folding& to, const Step& step, random_draws draws) { to.fold(step, draws); };
      },
      what.what());
}

}  // namespace

pass_reach colour_pass::reach() const noexcept {
  switch (what) {
    case pass_kind::brightness:
    case pass_kind::gamma:
    case pass_kind::invert:
    case pass_kind::posterize:
    case pass_kind::solarize:
    case pass_kind::solarize_add:
    case pass_kind::lookup:
      return pass_reach::table;
    case pass_kind::contrast:
    case pass_kind::autocontrast:
    case pass_kind::equalize:
      return pass_reach::statistics;
    case pass_kind::saturation:
    case pass_kind::hue:
    case pass_kind::grayscale:
    case pass_kind::channel_permutation:
      return pass_reach::pixel;
    case pass_kind::sharpness:
    case pass_kind::gaussian_blur:
    case pass_kind::edit:
    case pass_kind::warp:
    case pass_kind::mix_begin:
    case pass_kind::mix_add:
    case pass_kind::operation:
      return pass_reach::picture;
  }
  return pass_reach::picture;
}

std::size_t recipe::host_count() const noexcept {
  std::size_t before = count;
  while (before > 0 && !passes[before - 1].is_of_host()) --before;
  return before;
}

warp_matrix recipe::from_row() const noexcept {
  warp_matrix made = identity_matrix;
  bool in_mix = false;
  for (const colour_pass& pass : drawn()) {
    if (pass.what == pass_kind::mix_begin) in_mix = true;
    if (pass.what == pass_kind::mix_add && pass.number == 1) in_mix = false;
    if (pass.what == pass_kind::warp && !in_mix) made = followed(made, pass.from);
  }
  return made;
}

std::string text_of(const colour_pass& pass) {
  const double v = pass.value;
  switch (pass.what) {
    case pass_kind::brightness:
      return to_string(tr::brightness{{v, v}});
    case pass_kind::contrast:
      return to_string(tr::contrast{{v, v}});
    case pass_kind::saturation:
      return to_string(tr::saturation{{v, v}});
    case pass_kind::hue:
      return to_string(tr::hue{{v, v}});
    case pass_kind::gamma:
      return to_string(tr::gamma{{v, v}});
    case pass_kind::sharpness:
      return to_string(tr::sharpness{{v, v}});
    case pass_kind::gaussian_blur:
      return to_string(tr::gaussian_blur{pass.number, {v, v}});
    case pass_kind::channel_permutation: {
      constexpr std::array names = {"r, g, b", "r, b, g", "g, r, b", "g, b, r", "b, r, g", "b, g, r"};
      return str_cat("channel_permutation to ", names[static_cast<std::size_t>(pass.number)]);
    }
    case pass_kind::posterize:
      return to_string(tr::posterize{pass.number});
    case pass_kind::solarize:
      return to_string(tr::solarize{pass.number});
    case pass_kind::solarize_add:
      return to_string(tr::solarize_add{pass.number, static_cast<int>(v)});
    case pass_kind::autocontrast:
      return to_string(tr::autocontrast{});
    case pass_kind::equalize:
      return to_string(tr::equalize{});
    case pass_kind::invert:
      return to_string(tr::invert{});
    case pass_kind::grayscale:
      return to_string(tr::grayscale{});
    case pass_kind::warp: {
      std::string text = str_cat(pass.of->what.name(), " from (");
      for (std::size_t i = 0; i < pass.from.size(); ++i) {
        if (i > 0) text += i % 3 == 0 ? "; " : " ";
        str_append(text, pass.from[i]);
      }
      return text + ")";
    }
    case pass_kind::mix_begin:
      return str_cat(pass.of->what.name(), " of ", v, " of the picture, and");
    case pass_kind::mix_add: {
      std::string text = str_cat(v, " of that");
      if (pass.number == 1 && pass.from[0] != 1) str_append(text, "; ", pass.from[0], " of the sum");
      return text;
    }
    case pass_kind::operation:
      return operation_of(pass.of->what)->text(pass.of->what, pass.from);
    case pass_kind::lookup:
    case pass_kind::edit:
      break;
  }
  return to_string(pass.of->what);
}

warp warp_of(const colour_pass& pass) noexcept {
  warp made{.from = pass.from};
  std::visit(
      [&]<class Step>(const Step& step) {
        if constexpr (requires { step.fill; }) {
          for (std::size_t c = 0; c < 3; ++c) made.fill[c] = static_cast<std::uint8_t>(step.fill[c]);
          if constexpr (requires { step.how; }) made.how = step.how;
        }
      },
      pass.of->what.what());
  return made;
}

void check_numbers(const transform& what) {
  bool random = false;
  bool calls_functions = false;
  geometry_check geometry(geometry_check::of::single_steps);
  std::visit(
      [&]<class Step>(const Step& step) {
        if constexpr (is_geometry<Step>) {
          geometry.check(step);
        } else {
          colour_check(random, calls_functions).check_numbers(what);
        }
      },
      what.what());
}

pipeline::pipeline(std::vector<transform> steps, pixel_rounding how) {
  geometry_check geometry;
  colour_check colour(random_, calls_functions_);
  fusing_check fused;
  if (how == pixel_rounding::fused) fused_.emplace();
  step_names names("");
  for (const transform& what : steps) {
    const bool is_place = is_geometry_step(what);
    if (is_place && !colour_.empty()) {
      throw error(errc::usage, str_cat(what.name(), ": stands behind ", colour_.front().what.name(),
                                       "; a picture is cropped, resized and flipped first: write ", what.name(),
                                       " before ", colour_.front().what.name()));
    }
    if (erasing() != nullptr) {
      throw error(errc::usage,
                  str_cat(what.name(), ": stands behind random_erasing, which is the last step; write it before"));
    }
    if (is_place) {
      std::visit(
          [&]<class Step>(const Step& step) {
            if constexpr (is_geometry<Step>) {
              if (fused_ && geometry.needs_fusing(step)) {
                geometry.begin_again();
                fused_->begins_again.push_back(geometry_.size());
              }
              geometry.check(step);
            }
          },
          what.what());
      if (draws_by_kind(what)) random_ = true;
      const auto* const crop = what.get_if<tr::random_iou_crop>();
      if (const auto* const before = looks_at_boxes();
          crop != nullptr && before != nullptr && crop->boxes != before->boxes) {
        throw error(errc::usage, str_cat("random_iou_crop: looks at the boxes '", crop->boxes,
                                         "', and one before it at '", before->boxes, "'; give both the same"));
      }
    } else {
      colour.check(what, 0);
    }
    if (fused_) fused.see(what);
    (is_place ? geometry_ : colour_).push_back(names.take(what));
  }
  if (!geometry.size()) {
    throw error(errc::usage,
                "a picture's transforms leave its size open, and a batch needs one: add random_resized_crop(size), "
                "center_crop(size), random_crop(size) or resize(height, width)");
  }
  std::tie(out_height_, out_width_) = *geometry.size();
  geometry_is_random_ = geometry.random();
  varies_ = geometry_is_random_ || colour.varies();
  if (fused_) {
    fused_->how = fused.how();
    fused_->fill = fused.fill();
    fused_->warps = fused.warps();
  }
  if (colour.passes() > recipe::passes_max) {
    throw error(errc::usage, str_cat("a picture's transforms are ", colour.passes(),
                                     " steps of colour, groups and jitters counted by "
                                     "what is in them; a chain holds ",
                                     recipe::passes_max));
  }
  if (colour.kernel() / 2 >= std::min(out_width_, out_height_)) {
    throw error(errc::usage, str_cat("gaussian_blur: a kernel of ", colour.kernel(),
                                     " reaches beyond the mirror image of a picture of ", out_height_, " x ",
                                     out_width_, "; make it smaller than ", 2 * std::min(out_width_, out_height_)));
  }
}

pipeline pipeline::as_view(std::uint32_t number) const { return as_view(number == 1 ? "" : str_cat(number)); }

pipeline pipeline::as_view(std::string_view name) const {
  pipeline other = *this;
  for (chain_step& each : other.geometry_) set_view(each, name);
  for (chain_step& each : other.colour_) set_view(each, name);
  return other;
}

const tr::random_iou_crop* pipeline::looks_at_boxes() const noexcept {
  for (const chain_step& each : geometry_) {
    if (const auto* const step = each.what.get_if<tr::random_iou_crop>()) return step;
  }
  return nullptr;
}

const tr::random_erasing* pipeline::erasing() const noexcept {
  return colour_.empty() ? nullptr : colour_.back().what.get_if<tr::random_erasing>();
}

namespace {

// What can go on in one resampling without its matrix is a chain like any other: its rows are those of pixel_rounding::exact.
struct folded_matrix {
  warp_matrix from = identity_matrix;
  bool is_used = false;

  void follow(const warp_matrix& next) noexcept {
    from = followed(from, next);
    is_used = true;
  }
};

}  // namespace

geometry pipeline::compile_fused(int width, int height, const draw_key& key, const seen_boxes& boxes) const {
  std::optional<geometry_folding> folded(std::in_place, width, height, boxes);
  folded_matrix before;
  std::size_t segment = 0;
  for (std::size_t i = 0; i < geometry_.size(); ++i) {
    const chain_step& step = geometry_[i];
    if (segment < fused_->begins_again.size() && fused_->begins_again[segment] == i) {
      const int so_wide = folded->width();
      const int so_high = folded->height();
      before.follow(folded->result(so_wide, so_high).from_row());
      const std::optional<warp_matrix> on = inverse(before.from);
      folded.emplace(so_wide, so_high, on ? seen_boxes{boxes.all, followed(*on, boxes.to_seen)} : seen_boxes());
      ++segment;
    }
    std::visit(
        [&]<class Step>(const Step& what) {
          if constexpr (requires { folded->fold(what); }) {
            folded->fold(what);
          } else if constexpr (is_geometry<Step>) {
            folded->fold(what, draws_of(step, key));
          }
        },
        step.what.what());
  }
  geometry made = folded->result(out_width_, out_height_);
  if (before.is_used) {
    before.follow(made.from_row());
    // What is resampled is not one box any more.
    made.box = {0, 0, width, height};
    made.scaled_width = width;
    made.scaled_height = height;
    made.crop_x = made.crop_y = 0;
    made.flip = false;
    made.window.reset();
  }
  if (fused_->warps) {
    recipe drawn;
    draw_steps(key, drawn);
    const warp_matrix warped = drawn.from_row();
    if (warped != identity_matrix) {
      if (!before.is_used) before.follow(made.from_row());
      before.follow(warped);
    }
  }
  if (!before.is_used) return made;
  made.padding = padding_mode::constant;
  for (std::size_t c = 0; c < 3; ++c) made.fill[c] = static_cast<std::uint8_t>(fused_->fill[c]);
  made.warp = fused_warp{.from = before.from,
                         .picture_width = width,
                         .picture_height = height,
                         .out_width = out_width_,
                         .out_height = out_height_,
                         .how = fused_->how};
  return made;
}

namespace {

// In the upright picture of width x height.
seen_boxes seen_upright(const picture_boxes* boxes, int width, int height, int turned) noexcept {
  if (boxes == nullptr) return {};
  const orientation turn(turned);
  const auto [stored_width, stored_height] = turn.size(width, height);
  const warp_matrix turn_up =
      turn.upright() ? identity_matrix : inverse(turn.to_stored(stored_width, stored_height)).value_or(identity_matrix);
  if (!boxes->in_shares) return {boxes->all, turn_up};
  return {boxes->all, followed(turn_up, {static_cast<double>(stored_width), 0, 0, 0, static_cast<double>(stored_height),
                                         0, 0, 0, 1})};
}

}  // namespace

geometry pipeline::compile(int width, int height, const draw_key& key, int turned) const {
  const seen_boxes boxes = seen_upright(key.boxes, width, height, turned);
  if (fused_) return compile_fused(width, height, key, boxes);
  geometry_folding folded(width, height, boxes);
  for (const chain_step& step : geometry_) {
    std::visit(
        [&]<class Step>(const Step& what) {
          if constexpr (requires { folded.fold(what); }) {
            folded.fold(what);
          } else if constexpr (is_geometry<Step>) {
            folded.fold(what, draws_of(step, key));
          }
        },
        step.what.what());
  }
  return folded.result(out_width_, out_height_);
}

void pipeline::draw_steps(const draw_key& key, recipe& out) const {
  out.key = key;
  out.count = 0;
  out.erased.reset();
  colour_drawing drawing(out, false, out_width_, out_height_);
  for (const chain_step& step : colour_) drawing.draw(step);
}

namespace {

void leave_out_warps(recipe& of) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < of.count; ++i) {
    if (of.passes[i].what != pass_kind::warp) of.passes[kept++] = of.passes[i];
  }
  of.count = kept;
}

}  // namespace

void pipeline::draw_colour(const draw_key& key, recipe& out) const {
  draw_steps(key, out);
  if (fused_) leave_out_warps(out);
}

recipe pipeline::all_passes() const {
  recipe all;
  colour_drawing drawing(all, true, out_width_, out_height_);
  for (const chain_step& step : colour_) drawing.draw(step);
  all.erased.reset();
  if (fused_) leave_out_warps(all);
  return all;
}

}  // namespace leat::pixels
