#include "tools/augment_text.hpp"

#include "tools/arguments.hpp"

#include <leat/error.hpp>

namespace leat::tools {

std::string_view augment_text(std::string_view given) noexcept {
  if (given == "simclr") {
    return "random_apply(0.8, color_jitter(0.8, 0.8, 0.8, 0.2)) random_apply(0.2, grayscale) "
           "random_apply(0.5, gaussian_blur(23, 0.1..2))";
  }
  if (given == "dino") {
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
             throw CLI::ValidationError("--augment", failure.what());
           }
           if (augment.empty())
             refuse("--augment", given, "steps, such as 'color_jitter(0.4, 0.4, 0.4)', or leave it out");
         },
         "of pictures, behind crop and flip: steps as docs/augment.md writes them, or simclr or dino")
      ->type_name("TEXT");
}

}  // namespace leat::tools
