// --augment: colour behind the crop and the flip, as text or as one of a few recipes that papers have.
#pragma once

#include <leat/transforms.hpp>

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace leat::tools {

/// What parse_transforms() reads of a recipe that has a name; of any other text the text itself.
///   simclr   Chen et al., "A Simple Framework for Contrastive Learning", ICML 2020, appendix A, strength 1
///   dino     Caron et al., "Emerging Properties in Self-Supervised Vision Transformers", ICCV 2021: the second global view
[[nodiscard]] std::string_view augment_text(std::string_view given) noexcept;

/// --augment TEXT
void add_augment_option(CLI::App& app, std::vector<transform>& augment);

}  // namespace leat::tools
