#include "stages/pixels/pass_table.hpp"

#include "stages/pixels/colour/tables.hpp"

#include <cassert>

namespace leat::pixels {
namespace {

// Of a pass other than a lookup: the same for all channels.
curve curve_of(const colour_pass& pass) noexcept {
  switch (pass.what) {
    case pass_kind::brightness:
      return brightness_curve(pass.value);
    case pass_kind::gamma:
      return gamma_curve(pass.value);
    case pass_kind::posterize:
      return posterize_curve(pass.number);
    case pass_kind::solarize:
      return solarize_curve(pass.number);
    case pass_kind::solarize_add:
      return solarize_add_curve(pass.number, static_cast<int>(pass.value));
    case pass_kind::invert:
      return invert_curve();
    case pass_kind::contrast:
    case pass_kind::saturation:
    case pass_kind::hue:
    case pass_kind::grayscale:
    case pass_kind::autocontrast:
    case pass_kind::equalize:
    case pass_kind::sharpness:
    case pass_kind::gaussian_blur:
    case pass_kind::channel_permutation:
    case pass_kind::lookup:
    case pass_kind::edit:
    case pass_kind::warp:
    case pass_kind::mix_begin:
    case pass_kind::mix_add:
    case pass_kind::operation:
      break;  // Each kind is listed, so that the compiler names a new one here.
  }
  assert(false && "this pass is no curve");
  return {};
}

}  // namespace

random_draws draws_of(const colour_pass& pass, const draw_key& key) noexcept {
  return {key.seed, key.epoch, key.draw, pass.of->operation};
}

void append_pass(table& first, const colour_pass& pass, const draw_key& key) {
  assert(pass.reach() == pass_reach::table);
  if (pass.what != pass_kind::lookup) return append(first, curve_of(pass));
  draws numbers = as_draws(draws_of(pass, key));
  append(first, pass.of->what.get_if<transforms::lookup>()->make(numbers));
}

}  // namespace leat::pixels
