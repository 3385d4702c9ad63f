#include "stages/pixels/policies.hpp"

#include <cmath>

namespace leat::pixels {
namespace {

using op = policy_operation;

constexpr std::array drawn_operations = {
    op::identity, op::shear_x,  op::shear_y,   op::translate_x, op::translate_y, op::rotate,       op::brightness,
    op::color,    op::contrast, op::sharpness, op::posterize,   op::solarize,    op::autocontrast, op::equalize};

constexpr std::array mixed_operations = {op::shear_x,   op::shear_y,  op::translate_x,  op::translate_y, op::rotate,
                                         op::posterize, op::solarize, op::autocontrast, op::equalize,    op::brightness,
                                         op::color,     op::contrast, op::sharpness};
constexpr std::size_t colour_of_mixed = 4;

// Without a magnitude: 0.
constexpr std::array<learned_pair, learned_pairs> imagenet_pairs = {{
    {{{op::posterize, 0.4, 8}, {op::rotate, 0.6, 9}}},  {{{op::solarize, 0.6, 5}, {op::autocontrast, 0.6, 0}}},
    {{{op::equalize, 0.8, 0}, {op::equalize, 0.6, 0}}}, {{{op::posterize, 0.6, 7}, {op::posterize, 0.6, 6}}},
    {{{op::equalize, 0.4, 0}, {op::solarize, 0.2, 4}}}, {{{op::equalize, 0.4, 0}, {op::rotate, 0.8, 8}}},
    {{{op::solarize, 0.6, 3}, {op::equalize, 0.6, 0}}}, {{{op::posterize, 0.8, 5}, {op::equalize, 1, 0}}},
    {{{op::rotate, 0.2, 3}, {op::solarize, 0.6, 8}}},   {{{op::equalize, 0.6, 0}, {op::posterize, 0.4, 6}}},
    {{{op::rotate, 0.8, 8}, {op::color, 0.4, 0}}},      {{{op::rotate, 0.4, 9}, {op::equalize, 0.6, 0}}},
    {{{op::equalize, 0, 0}, {op::equalize, 0.8, 0}}},   {{{op::invert, 0.6, 0}, {op::equalize, 1, 0}}},
    {{{op::color, 0.6, 4}, {op::contrast, 1, 8}}},      {{{op::rotate, 0.8, 8}, {op::color, 1, 2}}},
    {{{op::color, 0.8, 8}, {op::solarize, 0.8, 7}}},    {{{op::sharpness, 0.4, 7}, {op::invert, 0.6, 0}}},
    {{{op::shear_x, 0.6, 5}, {op::equalize, 1, 0}}},    {{{op::color, 0.4, 0}, {op::equalize, 0.6, 0}}},
    {{{op::equalize, 0.4, 0}, {op::solarize, 0.2, 4}}}, {{{op::solarize, 0.6, 5}, {op::autocontrast, 0.6, 0}}},
    {{{op::invert, 0.6, 0}, {op::equalize, 1, 0}}},     {{{op::color, 0.6, 4}, {op::contrast, 1, 8}}},
    {{{op::equalize, 0.8, 0}, {op::equalize, 0.6, 0}}},
}};
constexpr std::array<learned_pair, learned_pairs> cifar10_pairs = {{
    {{{op::invert, 0.1, 0}, {op::contrast, 0.2, 6}}},
    {{{op::rotate, 0.7, 2}, {op::translate_x, 0.3, 9}}},
    {{{op::sharpness, 0.8, 1}, {op::sharpness, 0.9, 3}}},
    {{{op::shear_y, 0.5, 8}, {op::translate_y, 0.7, 9}}},
    {{{op::autocontrast, 0.5, 0}, {op::equalize, 0.9, 0}}},
    {{{op::shear_y, 0.2, 7}, {op::posterize, 0.3, 7}}},
    {{{op::color, 0.4, 3}, {op::brightness, 0.6, 7}}},
    {{{op::sharpness, 0.3, 9}, {op::brightness, 0.7, 9}}},
    {{{op::equalize, 0.6, 0}, {op::equalize, 0.5, 0}}},
    {{{op::contrast, 0.6, 7}, {op::sharpness, 0.6, 5}}},
    {{{op::color, 0.7, 7}, {op::translate_x, 0.5, 8}}},
    {{{op::equalize, 0.3, 0}, {op::autocontrast, 0.4, 0}}},
    {{{op::translate_y, 0.4, 3}, {op::sharpness, 0.2, 6}}},
    {{{op::brightness, 0.9, 6}, {op::color, 0.2, 8}}},
    {{{op::solarize, 0.5, 2}, {op::invert, 0, 0}}},
    {{{op::equalize, 0.2, 0}, {op::autocontrast, 0.6, 0}}},
    {{{op::equalize, 0.2, 0}, {op::equalize, 0.6, 0}}},
    {{{op::color, 0.9, 9}, {op::equalize, 0.6, 0}}},
    {{{op::autocontrast, 0.8, 0}, {op::solarize, 0.2, 8}}},
    {{{op::brightness, 0.1, 3}, {op::color, 0.7, 0}}},
    {{{op::solarize, 0.4, 5}, {op::autocontrast, 0.9, 0}}},
    {{{op::translate_y, 0.9, 9}, {op::translate_y, 0.7, 9}}},
    {{{op::autocontrast, 0.9, 0}, {op::solarize, 0.8, 3}}},
    {{{op::equalize, 0.8, 0}, {op::invert, 0.1, 0}}},
    {{{op::translate_y, 0.7, 9}, {op::autocontrast, 0.9, 0}}},
}};
constexpr std::array<learned_pair, learned_pairs> svhn_pairs = {{
    {{{op::shear_x, 0.9, 4}, {op::invert, 0.2, 0}}},       {{{op::shear_y, 0.9, 8}, {op::invert, 0.7, 0}}},
    {{{op::equalize, 0.6, 0}, {op::solarize, 0.6, 6}}},    {{{op::invert, 0.9, 0}, {op::equalize, 0.6, 0}}},
    {{{op::equalize, 0.6, 0}, {op::rotate, 0.9, 3}}},      {{{op::shear_x, 0.9, 4}, {op::autocontrast, 0.8, 0}}},
    {{{op::shear_y, 0.9, 8}, {op::invert, 0.4, 0}}},       {{{op::shear_y, 0.9, 5}, {op::solarize, 0.2, 6}}},
    {{{op::invert, 0.9, 0}, {op::autocontrast, 0.8, 0}}},  {{{op::equalize, 0.6, 0}, {op::rotate, 0.9, 3}}},
    {{{op::shear_x, 0.9, 4}, {op::solarize, 0.3, 3}}},     {{{op::shear_y, 0.8, 8}, {op::invert, 0.7, 0}}},
    {{{op::equalize, 0.9, 0}, {op::translate_y, 0.6, 6}}}, {{{op::invert, 0.9, 0}, {op::equalize, 0.6, 0}}},
    {{{op::contrast, 0.3, 3}, {op::rotate, 0.8, 4}}},      {{{op::invert, 0.8, 0}, {op::translate_y, 0, 2}}},
    {{{op::shear_y, 0.7, 6}, {op::solarize, 0.4, 8}}},     {{{op::invert, 0.6, 0}, {op::rotate, 0.8, 4}}},
    {{{op::shear_y, 0.3, 7}, {op::translate_x, 0.9, 3}}},  {{{op::shear_x, 0.1, 6}, {op::invert, 0.6, 0}}},
    {{{op::solarize, 0.7, 2}, {op::translate_y, 0.6, 7}}}, {{{op::shear_y, 0.8, 4}, {op::invert, 0.8, 0}}},
    {{{op::shear_x, 0.7, 9}, {op::translate_y, 0.8, 3}}},  {{{op::shear_y, 0.8, 5}, {op::autocontrast, 0.7, 0}}},
    {{{op::shear_x, 0.7, 2}, {op::invert, 0.1, 0}}},
}};

// torch.linspace(from, to, bins)[bin]
float linspace(float from, float to, int bin, int bins) noexcept {
  const float step = (to - from) / static_cast<float>(bins - 1);
  return bin < bins / 2 ? from + step * static_cast<float>(bin) : to - step * static_cast<float>(bins - bin - 1);
}

}  // namespace

std::span<const policy_operation> policy_operations() noexcept { return drawn_operations; }

std::span<const policy_operation> mix_operations(bool all) noexcept {
  const std::span<const policy_operation> every(mixed_operations);
  return all ? every : every.first(every.size() - colour_of_mixed);
}

bool is_signed(policy_operation of) noexcept {
  switch (of) {
    case op::shear_x:
    case op::shear_y:
    case op::translate_x:
    case op::translate_y:
    case op::rotate:
    case op::brightness:
    case op::color:
    case op::contrast:
    case op::sharpness:
      return true;
    default:
      return false;
  }
}

double policy_magnitude(policy_operation of, const policy_space& space, int bin, int bins, int height,
                        int width) noexcept {
  const auto up_to = [&](double most) -> double { return linspace(0, static_cast<float>(most), bin, bins); };
  switch (of) {
    case op::shear_x:
    case op::shear_y:
      return up_to(space.shear);
    case op::translate_x:
      return up_to(space.of_size ? space.translate * width : space.translate);
    case op::translate_y:
      return up_to(space.of_size ? space.translate * height : space.translate);
    case op::rotate:
      return up_to(space.rotate);
    case op::brightness:
    case op::color:
    case op::contrast:
    case op::sharpness:
      return up_to(space.factor);
    case op::posterize: {
      const auto bits_of_bin = static_cast<float>(static_cast<double>(bins - 1) / space.posterize);
      return std::nearbyint(static_cast<float>(space.bits_from) - static_cast<float>(bin) / bits_of_bin);
    }
    case op::solarize:
      // A value is compared in f32.
      return std::ceil(static_cast<float>(255 * static_cast<double>(linspace(1, 0, bin, bins))));
    case op::identity:
    case op::solarize_add:  // timm's alone
    case op::autocontrast:
    case op::equalize:
    case op::invert:
      return 0;
  }
  return 0;
}

std::span<const learned_pair, learned_pairs> pairs_of(learned_policy which) noexcept {
  switch (which) {
    case learned_policy::cifar10:
      return cifar10_pairs;
    case learned_policy::svhn:
      return svhn_pairs;
    case learned_policy::imagenet:
      break;
  }
  return imagenet_pairs;
}

}  // namespace leat::pixels
