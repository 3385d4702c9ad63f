// A batch's outputs as DLPack: one small block that holds the tensor, its shape and strides, and a share in the batch's memory.
#include "stages/batch/batch_state.hpp"

#include <leat/batch.hpp>
#include <leat/dlpack.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace leat {
namespace {

DLDataType dlpack_type(dtype type) noexcept {
  const auto bits = static_cast<std::uint8_t>(8 * size_bytes(type));
  switch (type) {
    case dtype::u8:
    case dtype::u16:
    case dtype::u32:
    case dtype::u64:
      return {kDLUInt, bits, 1};
    case dtype::i8:
    case dtype::i16:
    case dtype::i32:
    case dtype::i64:
      return {kDLInt, bits, 1};
    case dtype::f16:
    case dtype::f32:
    case dtype::f64:
      return {kDLFloat, bits, 1};
    case dtype::bf16:
      return {kDLBfloat, bits, 1};
    case dtype::boolean:
      return {kDLBool, bits, 1};
  }
  return {};
}

/// What a deleter deletes. Managed is one of DLPack's two structs.
template <class Managed>
struct exported {
  exported(const tensor& view, std::shared_ptr<batch_hold> from) : hold(std::move(from)) {
    std::copy(view.shape.begin(), view.shape.end(), shape.begin());
    std::copy(view.strides.begin(), view.strides.end(), strides.begin());
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { delete static_cast<exported*>(self->manager_ctx); };
    DLTensor& to = managed.dl_tensor;
    to.data = view.shape.elements() != 0 ? view.data : nullptr;
    // Pinned memory too is kDLCPU: PyTorch (2.15), and JAX before May 2026, refuse kDLCUDAHost, and is_pinned() asks the driver.
    to.device = view.where.type == device::kind::cuda ? DLDevice{kDLCUDA, view.where.index} : DLDevice{kDLCPU, 0};
    to.ndim = static_cast<std::int32_t>(view.shape.size());
    to.dtype = dlpack_type(view.type);
    to.shape = shape.data();
    to.strides = strides.data();
  }

  Managed managed{};
  std::array<std::int64_t, dimensions::rank_max> shape{};
  std::array<std::int64_t, dimensions::rank_max> strides{};
  std::shared_ptr<batch_hold> hold;  // with the batch and its other exports: whoever is the last gives the memory back
};

// The consumer's stream waits before anything is given away: where that fails nothing is.
template <class Managed>
std::unique_ptr<exported<Managed>> export_tensor(const tensor& view, batch::state& of, std::optional<stream> consumer) {
  of.check_held();
  auto made = std::make_unique<exported<Managed>>(view, of.share());
  if (consumer && of.held().on_device != nullptr) of.held().on_device->wait_on(*consumer);
  return made;
}

}  // namespace

DLManagedTensorVersioned* batch_tensor::dlpack(std::optional<stream> consumer) const {
  auto made = export_tensor<DLManagedTensorVersioned>(*this, *of_, consumer);
  made->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  return &made.release()->managed;
}

DLManagedTensor* batch_tensor::dlpack_unversioned(std::optional<stream> consumer) const {
  return &export_tensor<DLManagedTensor>(*this, *of_, consumer).release()->managed;
}

}  // namespace leat
