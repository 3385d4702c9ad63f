#include "stages/fields/user_failure.hpp"

#include "base/exception_text.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"

#include <leat/error.hpp>

#include <exception>
#include <string>

namespace leat::stages {

void throw_from_user(const decode_input& input, std::string_view field, std::string_view what) {
  std::string name;
  try {
    name = str_cat(input.dataset->name(input.sample), " (number ", input.sample, ")");
  } catch (const std::exception&) {
    name = str_cat("number ", input.sample);  // The file that holds its name cannot be read.
  }
  std::throw_with_nested(error(
      errc::callback, str_cat("sample ", name, ", field '", field, "': ", what, " threw ", current_exception_text(),
                              "; a sample that is only damaged is told by the reason that it returns")));
}

}  // namespace leat::stages
