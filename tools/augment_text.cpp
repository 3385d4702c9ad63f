#include "tools/augment_text.hpp"

#include "base/as_absl.hpp"
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "stages/pixels/recipe.hpp"
#include "tools/arguments.hpp"

#include <leat/error.hpp>

#include <absl/strings/ascii.h>

#include <array>
#include <cstddef>

namespace leat::tools {
namespace {

const std::array<std::string, 2> recipe_names = {"simclr", "dino"};

// What is to be said of the word that stands for a recipe and is none alone; or nothing.
std::string about_recipes(std::string_view given) {
  const auto is_of_word = [](char each) {
    return absl::ascii_isalnum(static_cast<unsigned char>(each)) || each == '_';
  };
  for (std::size_t from = 0, end = 0; from < given.size(); from = end + 1) {
    for (end = from; end < given.size() && is_of_word(given[end]);) ++end;
    const std::string_view word = given.substr(from, end - from);
    const std::string meant = word.size() < 2 ? "" : nearest_name(absl::AsciiStrToLower(as_absl(word)), recipe_names);
    if (meant.empty()) continue;
    const std::string which = str_cat("at character ", from + 1, ": '", word, "'");
    if (word != meant) return str_cat(which, " is no step or recipe; did you mean '", meant, "'?");
    return str_cat(which, " is a recipe, which stands alone; beside other steps write its own: ", augment_text(meant));
  }
  return {};
}

}  // namespace

std::string_view augment_text(std::string_view given) noexcept {
  if (given == recipe_names[0]) {
    return "random_apply(0.8, color_jitter(0.8, 0.8, 0.8, 0.2)) random_apply(0.2, grayscale) "
           "random_apply(0.5, gaussian_blur(23, 0.1..2))";
  }
  if (given == recipe_names[1]) {
    return "random_apply(0.8, color_jitter(0.4, 0.4, 0.2, 0.1)) random_apply(0.2, grayscale) "
           "random_apply(0.1, gaussian_blur(23, 0.1..2)) random_apply(0.2, solarize(128))";
  }
  return given;
}

void add_augment_option(CLI::App& app, std::vector<transform>& augment) {
  app.add_option_function<std::string>(
         "--augment",
         [&augment](const std::string& given) {
           try {
             augment = parse_transforms(augment_text(given));
           } catch (const error& failure) {
             const std::string better = about_recipes(given);
             throw CLI::ValidationError("--augment:", better.empty() ? failure.what() : better);
           }
           if (augment.empty())
             refuse("--augment", given, "steps, such as 'color_jitter(0.4, 0.4, 0.4)', or leave it out");
           for (const transform& each : augment) {
             if (!pixels::is_geometry_step(each)) continue;
             throw CLI::ValidationError(
                 "--augment:", str_cat(each.name(), " crops, scales or mirrors, which --transform and --size do"));
           }
         },
         "of pictures, behind crop and flip: steps, as 'random_apply(0.5, invert) rotate(-10..10)', or simclr or dino")
      ->type_name("TEXT");
}

}  // namespace leat::tools
