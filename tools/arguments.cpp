#include "tools/arguments.hpp"

#include "base/as_absl.hpp"
#include "base/text.hpp"
#include "datasets/open/formats.hpp"
#include "tools/human.hpp"

#include <absl/strings/numbers.h>

#include <limits>

namespace leat::tools {

CLI::Option* add_sources(CLI::App& app, std::vector<std::string>& sources, const std::string& more) {
  return app
      .add_option(
          "SOURCE", sources,
          str_cat("by path, brace list ('a-{000..127}.tar'), glob or address: ", datasets::formats_text(), more))
      ->required()
      ->type_name("")
      ->check([](const std::string& source) {
        return std::string(source.empty() ? "is empty; name a folder or shards" : "");
      });
}

void refuse(const std::string& option, std::string_view given, std::string_view wanted) {
  // Of "--block,--bs" the first is ours.
  throw CLI::ValidationError(option.substr(0, option.find(',')), str_cat("'", given, "' will not do; give ", wanted));
}

std::uint64_t parse_number(const std::string& option, std::string_view given, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const bool fits = absl::SimpleAtoi(as_absl(given), &value) && given.front() != '-' && value >= least && value <= most;
  if (!fits) refuse(option, given, str_cat("a whole number from ", least, " to ", most));
  return value;
}

namespace {

template <class Bytes>
CLI::Option* add_size(CLI::App& app, const std::string& option, Bytes& value, std::string help) {
  return app
      .add_option_function<std::string>(
          option,
          [&value, option](const std::string& given) {
            const std::optional<std::uint64_t> bytes = parse_bytes(given);
            if (!bytes || *bytes == 0 || *bytes > std::numeric_limits<Bytes>::max())
              refuse(option, given, "a size like 512MiB, 2GiB or a number of bytes");
            value = static_cast<Bytes>(*bytes);
          },
          std::move(help))
      ->type_name("SIZE");
}

}  // namespace

CLI::Option* add_bytes(CLI::App& app, const std::string& option, std::uint64_t& value, std::string help) {
  return add_size(app, option, value, std::move(help));
}
CLI::Option* add_bytes(CLI::App& app, const std::string& option, std::uint32_t& value, std::string help) {
  return add_size(app, option, value, std::move(help));
}

CLI::Option* add_text(CLI::App& app, const std::string& option, std::string& value, std::string type,
                      std::string help) {
  return app
      .add_option_function<std::string>(
          option,
          [&value, option, type](const std::string& given) {
            if (given.empty()) refuse(option, given, str_cat("a ", type));
            value = given;
          },
          std::move(help))
      ->type_name(type);
}

}  // namespace leat::tools
