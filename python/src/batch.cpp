// Batches, and their outputs as DLPack.
#include "module.hpp"

#include <leat/dlpack.h>
#include <leat/error.hpp>
#include <leat/picture_geometry.hpp>
#include <leat/stream.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>

namespace pyleat {
namespace {

// A consumer renames the capsule and calls the deleter itself. Neither touches an object of Python: it may run on any thread.
template <class Managed>
void drop(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* const given = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  given->deleter(given);
}
constexpr const char* versioned = "dltensor_versioned";
constexpr const char* unversioned = "dltensor";

[[noreturn]] void refuse(const std::string& why) {
  PyErr_SetString(PyExc_BufferError, why.c_str());
  throw nb::python_error();
}

std::pair<int, int> dlpack_device(const held_tensor& of) {
  const bool on_host = of.view.where.type == leat::device::kind::host;
  return {on_host ? kDLCPU : kDLCUDA, of.view.where.index};
}

// The array API's: None and 1 are the legacy default stream, 2 is the thread's own, -1 lets nobody wait; else an address.
std::optional<leat::stream> to_stream(nb::handle given) {
  if (given.is_none()) return leat::stream();
  const auto number = nb::cast<std::int64_t>(given);
  if (number == -1) return std::nullopt;
  if (number == 0) refuse("stream=0 is ambiguous: 1 is the legacy default stream, 2 that of the thread");
  return leat::stream(number == 1 ? nullptr : reinterpret_cast<CUstream_st*>(number));
}

nb::any to_dlpack(const held_tensor& of, nb::handle stream, nb::handle max_version, nb::handle device,
                  nb::handle copy) {
  if (!device.is_none() && nb::cast<std::pair<int, int>>(device) != dlpack_device(of)) {
    refuse("the tensor lies on another device; copy it there when you have it");
  }
  if (!copy.is_none() && nb::cast<bool>(copy)) refuse("leat gives its memory away without a copy; copy what you get");
  const std::optional<leat::stream> consumer = to_stream(stream);
  const bool knows_versions = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  PyObject* capsule = nullptr;
  if (knows_versions) {
    auto* const given = of.view.dlpack(consumer);
    capsule = PyCapsule_New(given, versioned, [](PyObject* at) { drop<DLManagedTensorVersioned>(at, versioned); });
    if (capsule == nullptr) given->deleter(given);
  } else {
    auto* const given = of.view.dlpack_unversioned(consumer);
    capsule = PyCapsule_New(given, unversioned, [](PyObject* at) { drop<DLManagedTensor>(at, unversioned); });
    if (capsule == nullptr) given->deleter(given);
  }
  if (capsule == nullptr) throw nb::python_error();
  return nb::steal<nb::any>(capsule);
}

std::string described(const held_tensor& of) {
  return std::string(leat::name(of.view.type)) + " " + leat::to_string(of.view.shape);
}

nb::any to_numpy(nb::handle self) {
  const auto& of = nb::cast<const held_tensor&>(self);
  if (of.view.type == leat::dtype::bf16) {
    throw nb::type_error("NumPy has no bf16; ask the field for .as_('f32'), or take torch.from_dlpack()");
  }
  return nb::borrow<nb::any>(nb::module_::import_("numpy").attr("from_dlpack")(self));
}

nb::any to_array(nb::handle self, nb::handle dtype, nb::handle copy) {
  const nb::any made = to_numpy(self);
  const bool is_other = !dtype.is_none() && !made.attr("dtype").equal(dtype);
  const bool may_copy = copy.is_none() || nb::cast<bool>(copy);
  if (is_other && !may_copy) throw nb::value_error("another dtype needs a copy, which copy=False forbids");
  if (is_other) return nb::borrow<nb::any>(made.attr("astype")(dtype));
  return !copy.is_none() && may_copy ? nb::borrow<nb::any>(made.attr("copy")()) : made;
}

nb::tuple shape_of(const leat::dimensions& shape) {
  nb::list axes;
  for (const std::int64_t each : shape) axes.append(each);
  return nb::tuple(axes);
}

using held = std::shared_ptr<leat::batch>;

// A name that a batch does not have is a KeyError.
template <class Call>
auto by_name(const Call& call) {
  try {
    return call();
  } catch (const leat::error& wrong) {
    if (wrong.code() == leat::errc::not_found) throw nb::key_error(wrong.what());
    throw;
  }
}

held_tensor output_of(const held& of, const std::string& name) {
  return by_name([&] { return held_tensor{of, (*of)[name]}; });
}

nb::tuple matrix_of(const leat::picture_geometry& of) {
  const auto row = [&](std::size_t first) {
    return nb::make_tuple(of.matrix[first], of.matrix[first + 1], of.matrix[first + 2]);
  };
  return nb::make_tuple(row(0), row(3), row(6));
}

}  // namespace

void add_batch(nb::module_& to) {
  nb::class_<held_tensor>(
      to, "Tensor",
      "One output of a batch, for numpy.from_dlpack(), torch.from_dlpack() and others, without a copy. "
      "It keeps the memory of its batch.")
      .def_prop_ro("shape", [](const held_tensor& of) { return shape_of(of.view.shape); })
      .def_prop_ro("dtype", [](const held_tensor& of) { return std::string(leat::name(of.view.type)); })
      .def_prop_ro("device",
                   [](const held_tensor& of) {
                     return of.view.where.type == leat::device::kind::host
                                ? std::string("cpu")
                                : "cuda:" + std::to_string(of.view.where.index);
                   })
      .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
           nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__", &dlpack_device)
      .def("__array__", &to_array, nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("copy") = nb::none(),
           "What numpy.asarray() calls: without a copy, unless another dtype or copy=True is asked for.")
      .def("numpy", &to_numpy, "numpy.from_dlpack() of it. TypeError for bf16, which NumPy lacks.")
      .def("__repr__", [](const held_tensor& of) { return "pyleat.Tensor(" + described(of) + ")"; });

  using leat::picture_geometry;
  nb::class_<picture_geometry>(to, "PictureGeometry",
                               "Where the picture of a row lies, in pixels; the middle of the first one is (0.5, 0.5).")
      .def_ro("picture_width", &picture_geometry::picture_width, "Of the picture as it is stored.")
      .def_ro("picture_height", &picture_geometry::picture_height)
      .def_ro("row_width", &picture_geometry::row_width)
      .def_ro("row_height", &picture_geometry::row_height)
      .def_ro("turned", &picture_geometry::turned, "The EXIF orientation by which it was turned, 1 to 8.")
      .def_ro("mirrored", &picture_geometry::mirrored, "An odd number of times.")
      .def_prop_ro("matrix", &matrix_of,
                   "3 x 3, from a place in the row to one in the stored picture: (x, y, 1) becomes (X, Y, W), and the "
                   "place is (X / W, Y / W).");

  nb::class_<leat::batch>(to, "Batch", "A batch: a mapping of the names of outputs to tensors.")
      .def("__getitem__", &output_of)
      .def("__len__", [](const held& of) { return of->outputs().size(); })
      .def("__contains__",
           [](const held& of, nb::handle name) {
             std::string text;
             if (!nb::try_cast(name, text)) return false;
             for (const std::string& each : of->outputs()) {
               if (each == text) return true;
             }
             return false;
           })
      .def("keys",
           [](const held& of) {
             const auto names = of->outputs();
             return std::vector<std::string>(names.begin(), names.end());
           })
      .def("__iter__", [](nb::handle self) { return nb::iter(self.attr("keys")()); })
      .def("items",
           [](const held& of) {
             std::vector<std::pair<std::string, held_tensor>> all;
             for (const std::string& each : of->outputs()) all.emplace_back(each, output_of(of, each));
             return all;
           })
      .def("values",
           [](const held& of) {
             std::vector<held_tensor> all;
             for (const std::string& each : of->outputs()) all.push_back(output_of(of, each));
             return all;
           })
      .def("__repr__",
           [](const held& of) {
             std::string all;
             for (const std::string& each : of->outputs()) {
               all += (all.empty() ? "" : ", ") + each + ": " + described(output_of(of, each));
             }
             return "pyleat.Batch(" + all + ")";
           })
      .def_prop_ro("epoch", [](const held& of) { return of->epoch(); })
      .def_prop_ro("index", [](const held& of) { return of->index(); })
      .def_prop_ro("valid_rows", [](const held& of) { return of->valid_rows(); })
      .def_prop_ro("padded_rows", [](const held& of) { return of->padded_rows(); })
      .def_prop_ro("ids",
                   [](const held& of) {
                     const auto ids = of->ids();
                     return std::vector<std::uint64_t>(ids.begin(), ids.end());
                   })
      .def_prop_ro("names", [](const held& of) { return names_of(of->names()); })
      .def_prop_ro("digest",
                   [](const held& of) -> std::optional<std::string> {
                     const auto sum = of->content_digest();
                     return sum ? std::optional(sum->hex()) : std::nullopt;
                   })
      .def_prop_ro("row_digests",
                   [](const held& of) {
                     std::vector<std::string> all;
                     for (const leat::digest& each : of->row_digests()) all.push_back(each.hex());
                     return all;
                   })
      .def(
          "bytes",
          [](const held& of, const std::string& name, std::size_t row) {
            const auto bytes = of->bytes(name, row);
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("name"), nb::arg("row"), "One row of an output, copied.")
      .def(
          "placement",
          [](const held& of, const std::string& name, std::size_t row) {
            return by_name([&] { return of->placement(name, row); });
          },
          nb::arg("name"), nb::arg("row"),
          "Where the picture of a row lies: its crop, flips and warps. Of an Image field; of views() 'name' is the "
          "first, "
          "'name[1]' the second.");
}

}  // namespace pyleat
