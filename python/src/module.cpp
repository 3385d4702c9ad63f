#include "module.hpp"

#include <leat/version.hpp>

#include <nanobind/stl/string.h>

NB_MODULE(_leat, module) {
  // What a program still holds at its end is no leak worth a message.
  nanobind::set_leak_warnings(false);
  module.attr("__version__") = std::to_string(LEAT_VERSION_MAJOR) + "." + std::to_string(LEAT_VERSION_MINOR) + "." +
                               std::to_string(LEAT_VERSION_PATCH);
  pyleat::add_errors(module);
  pyleat::add_dataset(module);
  pyleat::add_joins(module);
  pyleat::add_fields(module);
  pyleat::add_targets(module);
  pyleat::add_orders(module);
  pyleat::add_batch(module);
  pyleat::add_loader(module);
#ifdef PYLEAT_COMMAND
  pyleat::add_command(module);
#endif
}
