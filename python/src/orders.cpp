// Orders: which samples come, and in which order.
#include "module.hpp"

#include <leat/order.hpp>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>

namespace pyleat {

void add_orders(nb::module_& to) {
  nb::class_<leat::order>(to, "Order", "Which samples come, and in which order: Loader(order=…).")
      .def(nb::init<const leat::order&>())
      .def_prop_ro("name", [](const leat::order& of) { return std::string(of.name()); })
      .def("__repr__", [](const leat::order& of) { return "pyleat.Order(" + std::string(of.name()) + ")"; });
  to.def("sequential", &leat::sequential);
  to.def("shuffled", &leat::shuffled);
  to.def("shuffled_blocks", &leat::shuffled_blocks, nb::arg("pool_blocks"));
  to.def("repeated", &leat::repeated, nb::arg("n"));
  to.def(
      "weighted",
      [](std::vector<double> weights, std::uint64_t samples_per_epoch, bool replacement) {
        return leat::weighted(std::move(weights), samples_per_epoch,
                              replacement ? leat::replacement::yes : leat::replacement::no);
      },
      nb::arg("weights"), nb::arg("samples_per_epoch") = 0, nb::arg("replacement") = true);
  to.def("balanced", &leat::balanced, nb::arg("column") = "cls", nb::arg("samples_per_epoch") = 0);
  to.def(
      "bucketed",
      [](std::string length, std::uint64_t tokens_max, std::uint32_t rows_max) {
        return leat::bucketed({.length = std::move(length), .tokens_max = tokens_max, .rows_max = rows_max});
      },
      nb::arg("length"), nb::kw_only(), nb::arg("tokens_max") = 0, nb::arg("rows_max") = 0);
  to.def(
      "balanced_cost",
      [](const leat::order& of, std::string length) { return leat::balanced_cost(of, {.length = std::move(length)}); },
      nb::arg("of"), nb::kw_only(), nb::arg("length") = "",
      "The rows of each global batch, dealt to ranks so that the sums of length x length differ least.");
  to.def("mixed_by", &leat::mixed_by, nb::arg("shares"), nb::arg("samples_per_epoch") = 0,
         "The parts of a concat() by shares: concat([web, books]) and mixed_by([0.7, 0.3]).");
  to.def("node_local", &leat::node_local, nb::arg("of"), nb::arg("nodes") = 0,
         "Each node has the same part of the dataset in every epoch, so that its page cache or cache= holds it.");
  to.def(
      "packed",
      [](std::uint32_t length, nb::handle by, nb::handle longer, std::uint32_t pool, bool shuffle, std::int64_t pad) {
        return leat::packed(length, {.by = to_enum<leat::packed_by>(
                                         by, "by=", std::array<std::string_view, 3>{"stream", "best_fit", "first_fit"}),
                                     .longer = to_enum<leat::longer_samples>(
                                         longer, "longer=", std::array<std::string_view, 3>{"cut", "split", "skip"}),
                                     .pool = pool,
                                     .shuffle = shuffle,
                                     .pad = pad});
      },
      nb::arg("length"), nb::kw_only(), nb::arg("by") = "stream", nb::arg("longer") = "cut", nb::arg("pool") = 4096,
      nb::arg("shuffle") = true, nb::arg("pad") = 0);
}

}  // namespace pyleat
