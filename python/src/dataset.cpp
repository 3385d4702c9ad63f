// Datasets: open() and what a dataset can do.
#include "module.hpp"

#include <leat/open.hpp>
#include <leat/open_tokens.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <variant>

namespace pyleat {
namespace {

constexpr std::array<std::string_view, 6> kinds = {"picture", "label", "text", "bytes", "tensor", "tokens"};

// What waits for a disk or a store lets other threads of Python run.
template <class Call>
auto unlocked(const Call& call) {
  const nb::gil_scoped_release released;
  return call();
}

leat::dataset open(nb::handle source, const std::string& split, const std::vector<std::string>& fields,
                   const std::vector<std::string>& columns, const std::string& path_column, const std::string& root,
                   const std::string& database, bool ignore_zeros, std::uint64_t window, std::uint64_t stride) {
  const leat::source_names names = to_sources(source);
  leat::open_options how;
  how.split = split;
  how.tables.fields = fields;
  how.tables.columns = columns;
  how.tables.path_column = path_column;
  how.tables.root = root;
  how.arrays.window = window;
  how.arrays.stride = stride;
  how.lmdb.database = database;
  how.tar.ignore_zeros = ignore_zeros;
  return unlocked([&] { return leat::open(names, how); });
}

nb::dict describe(const leat::field_info& of) {
  nb::dict made;
  made["name"] = of.name;
  made["kind"] = std::string(kinds[static_cast<std::size_t>(of.kind)]);
  made["column"] = of.column;
  made["samples"] = of.samples;
  made["bytes_max"] = of.bytes_max;
  made["bytes_total"] = of.bytes_total;
  if (of.kind == leat::field_kind::tensor || of.kind == leat::field_kind::tokens) {
    made["dtype"] = std::string(leat::name(of.type));
    nb::list shape;
    for (const std::int64_t each : of.shape) shape.append(each);
    made["shape"] = nb::tuple(shape);
  }
  return made;
}

}  // namespace

leat::source_names to_sources(nb::handle given) {
  const nb::object as_path = nb::module_::import_("os").attr("fspath");
  std::vector<std::string> names;
  if (nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given)) {
    for (const nb::handle each : given) names.push_back(nb::cast<std::string>(as_path(each)));
  } else {
    names.push_back(nb::cast<std::string>(as_path(given)));
  }
  return leat::source_names(names);
}

void add_dataset(nb::module_& to) {
  using leat::dataset;
  nb::class_<dataset>(to, "Dataset", "A list of samples with named fields. Cheap to copy; any thread may use it.")
      .def("__len__", &dataset::size)
      .def_prop_ro("size", &dataset::size)
      .def(
          "fields",
          [](const dataset& of) {
            nb::list all;
            for (const leat::field_info& each : of.fields()) all.append(describe(each));
            return all;
          },
          "Every field: name, kind, samples, bytes; of tensors and tokens dtype and shape.")
      .def_prop_ro("classes", [](const dataset& of) { return of.classes(); })
      .def_prop_ro("notes", [](const dataset& of) { return of.notes(); })
      .def("label", &dataset::label, nb::arg("sample"))
      .def(
          "number",
          [](const dataset& of, std::uint64_t sample, const std::string& name) { return of.number(sample, name); },
          nb::arg("sample"), nb::arg("name"), "A number of a column; None if this sample has none.")
      .def(
          "name", [](const dataset& of, std::uint64_t sample) { return unlocked([&] { return of.name(sample); }); },
          nb::arg("sample"))
      .def(
          "read",
          [](const dataset& of, std::uint64_t sample, const std::string& field) {
            const auto bytes = unlocked([&] { return of.read(sample, field); });
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("sample"), nb::arg("field") = "", "The bytes of one field of a sample; for many take a Loader.")
      .def(
          "subset", [](const dataset& of, const std::vector<std::uint64_t>& samples) { return of.subset(samples); },
          nb::arg("samples"))
      .def(
          "exclude", [](const dataset& of, const std::vector<std::uint64_t>& samples) { return of.exclude(samples); },
          nb::arg("samples"))
      .def("slice", &dataset::slice, nb::arg("first"), nb::arg("count"))
      .def(
          "split",
          [](const dataset& of, std::uint64_t seed, const std::vector<double>& fractions) {
            return of.split(seed, fractions);
          },
          nb::arg("seed"), nb::arg("fractions"))
      .def(
          "with_column",
          [](const dataset& of, const std::string& name,
             const std::variant<std::vector<std::int64_t>, std::vector<double>>& values) {
            leat::column_values column{.name = name};
            if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&values)) {
              column.values = *whole;
            } else {
              column.reals = std::get<std::vector<double>>(values);
            }
            return of.with_column(std::move(column));
          },
          nb::arg("name"), nb::arg("values"))
      .def(
          "with_fields", [](const dataset& of, const std::vector<std::string>& names) { return of.with_fields(names); },
          nb::arg("names"))
      .def("__repr__", [](const dataset& of) { return "pyleat.Dataset(" + std::to_string(of.size()) + " samples)"; });

  to.def("open", &open, nb::arg("source"), nb::kw_only(), nb::arg("split") = "",
         nb::arg("fields") = std::vector<std::string>(), nb::arg("columns") = std::vector<std::string>(),
         nb::arg("path_column") = "", nb::arg("root") = "", nb::arg("database") = "", nb::arg("ignore_zeros") = false,
         nb::arg("window") = 0, nb::arg("stride") = 1,
         "Opens any source: a path, a pattern, an address, or a list of them.");
  to.def(
      "open_tokens",
      [](nb::handle source, nb::handle dtype) {
        const leat::source_names names = to_sources(source);
        leat::token_options how;
        if (!dtype.is_none()) how.type = to_dtype(dtype);
        return unlocked([&] { return leat::open_tokens(names, how); });
      },
      nb::arg("source"), nb::arg("dtype") = nb::none(), "Files of tokens: nanoGPT's, llm.c's, Megatron's.");
  to.def("concat", [](const std::vector<dataset>& parts) { return leat::concat(parts); }, nb::arg("parts"));
  to.def("zip", [](const std::vector<dataset>& parts) { return leat::zip(parts); }, nb::arg("parts"));
  to.def(
      "read_column",
      [](const dataset& of, const std::string& name) { return unlocked([&] { return leat::read_column(of, name); }); },
      nb::arg("samples"), nb::arg("name"), "An integer of each sample, for with_column(). Reads all samples.");
}

}  // namespace pyleat
