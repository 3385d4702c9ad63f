// Datasets: open() and what a dataset can do.
#include "module.hpp"

#include <leat/open.hpp>
#include <leat/open_tokens.hpp>
#include <leat/own_samples.hpp>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

namespace pyleat {
namespace {

constexpr std::array<std::string_view, 6> kinds = {"picture", "label", "text", "bytes", "tensor", "tokens"};

using options = leat::open_options;
using names = std::vector<std::string>;

// Those of tables, arrays and objects at addresses have the names that they have in C++, without the structs around them.
constexpr keyword<options> keywords[] = {
    {"split", "a text", [](options& to, nb::handle value) { to.split = nb::cast<std::string>(value); }},
    {"index", "'off', 'check', 'rebuild' or 'trust'",
     [](options& to, nb::handle value) {
       to.index.use = to_enum<leat::index_use>(
           value, "index=", std::array<std::string_view, 4>{"off", "check", "rebuild", "trust"});
     }},
    {"ignore_zeros", "a bool", [](options& to, nb::handle value) { to.tar.ignore_zeros = nb::cast<bool>(value); }},
    {"window", "a whole number",
     [](options& to, nb::handle value) { to.arrays.window = nb::cast<std::uint64_t>(value); }},
    {"stride", "a whole number",
     [](options& to, nb::handle value) { to.arrays.stride = nb::cast<std::uint64_t>(value); }},
    {"fields", "a list of texts", [](options& to, nb::handle value) { to.arrays.fields = nb::cast<names>(value); }},
    {"columns", "a list of texts", [](options& to, nb::handle value) { to.tables.columns = nb::cast<names>(value); }},
    {"path_column", "a text",
     [](options& to, nb::handle value) { to.tables.path_column = nb::cast<std::string>(value); }},
    {"text", "'lines', 'paragraphs' or 'files'",
     [](options& to, nb::handle value) {
       to.tables.text =
           to_enum<leat::text_samples>(value, "text=", std::array<std::string_view, 3>{"lines", "paragraphs", "files"});
     }},
    {"root", "a path", [](options& to, nb::handle value) { to.tables.root = to_path(value); }},
    {"checksums", "a bool", [](options& to, nb::handle value) { to.tables.checksums = nb::cast<bool>(value); }},
    {"database", "a text", [](options& to, nb::handle value) { to.lmdb.database = nb::cast<std::string>(value); }},
    {"ca_file", "a path", [](options& to, nb::handle value) { to.remote.ca_file = to_path(value); }},
    {"allow_http", "a bool", [](options& to, nb::handle value) { to.remote.allow_http = nb::cast<bool>(value); }},
    {"connections_max", "a whole number",
     [](options& to, nb::handle value) { to.remote.connections_max = nb::cast<std::uint32_t>(value); }},
    {"silence_max", "seconds", [](options& to, nb::handle value) { to.remote.silence_max = to_duration(value); }},
    {"patience", "seconds", [](options& to, nb::handle value) { to.remote.patience = to_duration(value); }},
    {"endpoint", "a text", [](options& to, nb::handle value) { to.remote.endpoint = nb::cast<std::string>(value); }},
    {"region", "a text", [](options& to, nb::handle value) { to.remote.region = nb::cast<std::string>(value); }},
    {"anonymous", "a bool", [](options& to, nb::handle value) { to.remote.anonymous = nb::cast<bool>(value); }},
    {"requester_pays", "a bool",
     [](options& to, nb::handle value) { to.remote.requester_pays = nb::cast<bool>(value); }},
    {"profile", "a text", [](options& to, nb::handle value) { to.remote.profile = nb::cast<std::string>(value); }},
    {"headers", "a list of texts", [](options& to, nb::handle value) { to.remote.headers = nb::cast<names>(value); }},
    {"cache", "a path", [](options& to, nb::handle value) { to.remote.cache = to_path(value); }},
    {"cache_bytes", "bytes",
     [](options& to, nb::handle value) { to.remote.cache_bytes = nb::cast<std::uint64_t>(value); }},
    {"cache_block_bytes", "bytes",
     [](options& to, nb::handle value) { to.remote.cache_block_bytes = nb::cast<std::uint32_t>(value); }},
};

leat::dataset open(nb::handle source, const nb::kwargs& given) {
  const leat::source_names all = to_sources(source);
  options how;
  set_keywords<options>("open()", how, given, keywords, [](const std::string&) { return std::string(); });
  return unlocked([&] { return leat::open(all, how); });
}

leat::dtype to_dtype(const nb::dlpack::dtype& of) {
  using code = nb::dlpack::dtype_code;
  const auto kind = static_cast<code>(of.code);
  for (int i = 0; i <= static_cast<int>(leat::dtype::boolean); ++i) {
    const auto each = static_cast<leat::dtype>(i);
    const std::string_view name = leat::name(each);
    const bool same = kind == code::Bool     ? each == leat::dtype::boolean
                      : kind == code::Bfloat ? each == leat::dtype::bf16
                      : kind == code::Float  ? name.front() == 'f'
                      : kind == code::Int    ? name.front() == 'i'
                      : kind == code::UInt   ? name.front() == 'u'
                                             : false;
    if (same && of.lanes == 1 && of.bits == 8 * leat::size_bytes(each)) return each;
  }
  throw nb::type_error("from_tensors() takes integers, floats and bool");
}

leat::dataset from_tensors(const nb::typed<nb::dict, nb::str, nb::object>& given, std::vector<std::string> classes,
                           const std::string& described_as) {
  using any_array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
  auto owner = std::make_shared<std::vector<any_array>>();
  std::vector<leat::named_tensor> tensors;
  for (const auto& [name, value] : given) {
    any_array array;
    if (!nb::try_cast(value, array, false)) {
      throw nb::type_error(("from_tensors(): '" + nb::cast<std::string>(name) +
                            "' is no dense array on the CPU; take numpy.ascontiguousarray() of it")
                               .c_str());
    }
    if (array.ndim() == 0 || array.ndim() > leat::dimensions::rank_max) {
      throw nb::value_error("from_tensors() takes arrays of 1 to 8 axes, of which the first counts samples");
    }
    leat::dimensions shape;
    for (std::size_t axis = 0; axis < array.ndim(); ++axis)
      shape.push_back(static_cast<std::int64_t>(array.shape(axis)));
    // leat only reads.
    void* const data = const_cast<void*>(static_cast<const void*>(array.data()));
    tensors.push_back({nb::cast<std::string>(name),
                       {.type = to_dtype(array.dtype()),
                        .shape = shape,
                        .strides = leat::dense_strides(shape),
                        .data = data,
                        .where = leat::host}});
    owner->push_back(std::move(array));
  }
  return leat::from_tensors(std::move(tensors), std::move(owner), std::move(classes), described_as);
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
  std::vector<std::string> names;
  const bool is_dict = nb::isinstance<nb::dict>(given);
  const bool is_set = PyAnySet_Check(given.ptr());
  const bool is_file = nb::hasattr(given, "readline");
  if (nb::isinstance<nb::str>(given) || nb::isinstance<nb::bytes>(given) || nb::hasattr(given, "__fspath__")) {
    names.push_back(to_path(given));
  } else if (nb::hasattr(given, "__iter__") && !is_dict && !is_set && !is_file) {
    for (const nb::handle each : given) names.push_back(to_path(each));
  } else {
    const char* const remedy = is_dict   ? " (of a dict of arrays, from_tensors() makes one)"
                               : is_set  ? " (a set has another order in each process; give sorted() of it)"
                               : is_file ? " (of an open file, give its name)"
                                         : "";
    throw nb::type_error((std::string("a source is a path, a pattern, an address, a list of them or a Dataset") +
                          remedy + ", and not " + nb::repr(given).c_str())
                             .c_str());
  }
  return leat::source_names(names);
}

leat::dataset to_dataset(nb::handle given) {
  if (nb::isinstance<leat::dataset>(given)) return nb::cast<leat::dataset>(given);
  const leat::source_names names = to_sources(given);
  return unlocked([&] { return leat::open(names); });
}

void add_dataset(nb::module_& to) {
  using leat::dataset;
  nb::class_<dataset>(to, "Dataset", "A list of samples with named fields. Cheap to copy; any thread may use it.")
      .def(nb::init<const dataset&>())
      .def("__len__", &dataset::size)
      .def_prop_ro("size", &dataset::size)
      .def(
          "fields",
          [](const dataset& of) {
            nb::typed<nb::list, nb::typed<nb::dict, nb::str, nb::object>> all;
            for (const leat::field_info& each : of.fields()) all.append(describe(each));
            return all;
          },
          "Every field: name, kind, samples, bytes; of tensors and tokens dtype and shape.")
      .def_prop_ro("classes", [](const dataset& of) { return names_of(of.classes()); })
      .def_prop_ro("notes", [](const dataset& of) { return names_of(of.notes()); })
      .def("label", &dataset::label, nb::arg("sample"))
      .def(
          "number",
          [](const dataset& of, std::uint64_t sample, const std::string& name) { return of.number(sample, name); },
          nb::arg("sample"), nb::arg("name"), "A number of a column; None if this sample has none.")
      .def(
          "name",
          [](const dataset& of, std::uint64_t sample) { return name_of(unlocked([&] { return of.name(sample); })); },
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
      .def(
          "where",
          [](const dataset& of, const std::string& condition) { return unlocked([&] { return of.where(condition); }); },
          nb::arg("condition"), "The samples that it holds of: \"width >= 224 and cls != 7\".")
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

  to.def("open", &open, nb::arg("source").none(), nb::arg("options"),
         nb::sig("def open(source: object, **options: object) -> Dataset"),
         "Opens any source: a path, a pattern, an address, or a list of them. Options are leat::open_options'.");
  to.def("from_tensors", &from_tensors, nb::arg("tensors"), nb::kw_only(),
         nb::arg("classes") = std::vector<std::string>(), nb::arg("described_as") = "",
         "Rows of arrays of one length, by name; they are not copied. Anything with __dlpack__, on the CPU.");
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
