#include "stages/pixels/timm.hpp"

#include "base/text.hpp"
#include "stages/pixels/normal_draws.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>
#include <vector>

namespace leat::pixels {
namespace {

namespace tr = transforms;
using op = policy_operation;

// In timm's order, with the weights of _RAND_WEIGHTED_0.
struct weighted_operation {
  op what;
  double weight;
};
constexpr std::array<weighted_operation, timm_operation_count> operations = {{{op::autocontrast, 0.25},
                                                                              {op::equalize, 0.05},
                                                                              {op::invert, 0.05},
                                                                              {op::rotate, 3},
                                                                              {op::posterize, 0.05},
                                                                              {op::solarize, 0.05},
                                                                              {op::solarize_add, 0.05},
                                                                              {op::color, 0.25},
                                                                              {op::contrast, 0.05},
                                                                              {op::brightness, 0.05},
                                                                              {op::sharpness, 0.25},
                                                                              {op::shear_x, 2},
                                                                              {op::shear_y, 2},
                                                                              {op::translate_x, 1},
                                                                              {op::translate_y, 1}}};
constexpr std::array timm_mixed_operations = {
    op::autocontrast, op::color,    op::contrast, op::brightness, op::sharpness,   op::equalize,   op::rotate,
    op::posterize,    op::solarize, op::shear_x,  op::shear_y,    op::translate_x, op::translate_y};
constexpr double level_of_one = 10;  // _LEVEL_DENOM

/// The sections of a text, "m9" as "m" and "9".
class sections {
 public:
  explicit sections(std::string_view text) : text_(text) {}

  /// Reads the rest of them: read(key, number) is false for a key that is not there.
  template <class Read>
  void each(std::string_view known, const Read& read) {
    std::size_t at = std::min(text_.find('-'), text_.size());
    while (at < text_.size()) {
      const std::size_t end = std::min(text_.find('-', at + 1), text_.size());
      section_ = text_.substr(at + 1, end - at - 1);
      at = end;
      const std::size_t digit = std::min(section_.find_first_of("0123456789."), section_.size());
      const std::string key(section_.substr(0, section_.starts_with('t') ? section_.size() : digit));
      value_ = section_.substr(key.size());
      if (std::find(seen_.begin(), seen_.end(), key) != seen_.end()) refuse(str_cat("'", key, "' stands twice"));
      seen_.push_back(key);
      if (!read(key)) {
        refuse(str_cat("timm's text has '", section_, "', which is no key that is there; those are ", known));
      }
    }
  }
  [[nodiscard]] int whole() const {
    int number = 0;
    const auto [end, problem] = std::from_chars(value_.data(), value_.data() + value_.size(), number);
    if (problem != std::errc() || end != value_.data() + value_.size()) {
      refuse(str_cat("'", section_, "': a whole number must stand behind the key, as in m9"));
    }
    return number;
  }
  [[nodiscard]] double number() const {
    double number = 0;
    const auto [end, problem] = std::from_chars(value_.data(), value_.data() + value_.size(), number);
    if (problem != std::errc() || end != value_.data() + value_.size() || !std::isfinite(number)) {
      refuse(str_cat("'", section_, "': a number must stand behind the key, as in mstd0.5"));
    }
    return number;
  }
  [[noreturn]] void refuse(const std::string& why) const { throw error(errc::usage, str_cat(text_, ": ", why)); }

 private:
  std::string_view text_;
  std::string_view section_;
  std::string_view value_;
  std::vector<std::string> seen_;
};

tr::timm_rand_augment parse_rand(sections& text) {
  tr::timm_rand_augment made;
  text.each("m, n, p, mstd, mmax, inc and tweights", [&](std::string_view key) {
    if (key == "m") {
      made.magnitude = text.whole();
    } else if (key == "n") {
      made.ops = text.whole();
    } else if (key == "p") {
      made.probability = text.number();
    } else if (key == "mstd") {
      made.magnitude_std = text.number();
    } else if (key == "mmax") {
      made.magnitude_max = text.whole();
    } else if (key == "inc") {
      made.increasing = text.whole() != 0;
    } else if (key == "tweights") {
      made.weighted = true;
    } else {
      return false;
    }
    return true;
  });
  return made;
}

tr::timm_augmix parse_mix(sections& text) {
  tr::timm_augmix made;
  text.each("m, w, d, a and mstd", [&](std::string_view key) {
    if (key == "m") {
      made.magnitude = text.whole();
    } else if (key == "w") {
      made.width = text.whole();
    } else if (key == "d") {
      made.depth = text.whole();
    } else if (key == "a") {
      made.alpha = text.number();
    } else if (key == "mstd") {
      made.magnitude_std = text.number();
      // Here timm has the normal law at any deviation.
      if (made.magnitude_std > timm_deviation_max) text.refuse("mstd above 100; leave it out for uniform magnitudes");
    } else {
      return false;
    }
    return true;
  });
  return made;
}

}  // namespace

std::span<const policy_operation> timm_mix_operations() noexcept { return timm_mixed_operations; }

bool is_timm_text(std::string_view word) noexcept {
  constexpr std::array<std::string_view, 7> words = {"rand", "augmix", "original", "originalr", "v0", "v0r", "3a"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

transform parse_timm(std::string_view text) {
  sections parts(text);
  const std::string_view what = text.substr(0, text.find('-'));
  if (what == "rand") return parse_rand(parts);
  if (what == "augmix") return parse_mix(parts);
  parts.refuse(str_cat("of timm's policies '", what,
                       "' is not there; rand-... and augmix-... are. auto_augment has torchvision's learned policies"));
}

double timm_magnitude(int magnitude, double deviation, int most, random_draws& draws) noexcept {
  double level = magnitude;
  if (deviation > timm_deviation_max) {
    level = draws.uniform(0, magnitude);
  } else if (deviation > 0) {
    normal_draws normal(draws);
    level += deviation * static_cast<double>(normal.next());
    draws = normal.rest();
  }
  return std::clamp(level, 0.0, static_cast<double>(most));
}

double timm_argument(policy_operation of, double level, bool increasing, bool negated) noexcept {
  const double share = level / level_of_one;
  const double sign = negated ? -1 : 1;
  // int() of Python truncates.
  const auto whole = [&](double most) { return std::trunc(share * most); };
  switch (of) {
    case op::shear_x:
    case op::shear_y:
      return sign * share * 0.3;
    case op::translate_x:
    case op::translate_y:
      return sign * share;
    case op::rotate:
      return sign * share * 30;
    case op::brightness:
    case op::color:
    case op::contrast:
    case op::sharpness:
      return increasing ? std::max(0.1, 1 + sign * (share * 0.9)) : share * 1.8 + 0.1;
    case op::posterize:
      // Beyond level 10 Pillow's mask of more than 8 bits leaves nothing, or everything.
      return std::clamp(increasing ? 4 - whole(4) : whole(4), 0.0, 8.0);
    case op::solarize: {
      const double threshold = std::min(256.0, whole(256));
      return increasing ? 256 - threshold : threshold;
    }
    case op::solarize_add:
      return std::min(128.0, whole(110));
    case op::identity:
    case op::autocontrast:
    case op::equalize:
    case op::invert:
      return 0;
  }
  return 0;
}

timm_choice::timm_choice(bool weighted) noexcept : weighted_(weighted) {
  for (std::size_t i = 0; i < operations.size(); ++i) left_[i] = operations[i].weight;
}

policy_operation timm_choice::next(random_draws& draws) noexcept {
  if (!weighted_) return operations[draws.below(operations.size())].what;
  double sum = 0;
  for (const double weight : left_) sum += weight;
  double at = draws.uniform() * sum;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < left_.size(); ++i) {
    if (left_[i] == 0) continue;
    chosen = i;
    if (at < left_[i]) break;
    at -= left_[i];
  }
  left_[chosen] = 0;
  return operations[chosen].what;
}

}  // namespace leat::pixels
