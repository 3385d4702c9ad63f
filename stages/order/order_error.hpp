// The error of an order that cannot be as it is asked for.
#pragma once

#include "base/option_words.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <string_view>

namespace leat::stages {

/// Of an order by the name that it describes itself by: "bucketed".
[[nodiscard]] inline option_id option_of_order(std::string_view named) noexcept {
  using enum option_id;
  constexpr struct {
    std::string_view name;
    option_id option;
  } all[] = {{"balanced", order_balanced},     {"bucketed", order_bucketed},
             {"mixture", order_mixture},       {"repeated", order_repeated},
             {"sampled_by", order_sampled_by}, {"shuffled_blocks", order_shuffled_blocks},
             {"node_local", order_node_local}, {"weighted", order_weighted}};
  for (const auto& each : all) {
    if (each.name == named) return each.option;
  }
  return none;
}

/// error{errc::usage}: "order bucketed: WHY", "--order bucketed: WHY".
template <class... Pieces>
[[nodiscard]] error order_error(option_id order, const Pieces&... why) {
  return {errc::usage, str_cat(spelled(order), ": ", why...), order};
}

/// The same of an order by its name; one that is no option is called by that.
template <class... Pieces>
[[nodiscard]] error order_error(std::string_view order, const Pieces&... why) {
  const option_id option = option_of_order(order);
  return option != option_id::none ? order_error(option, why...)
                                   : error(errc::usage, str_cat("order ", order, ": ", why...));
}

}  // namespace leat::stages
