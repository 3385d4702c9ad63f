// Batches as at::Tensor, without a copy. Includes headers of libtorch, so loader.hpp does not include it.
//
//     find_package(Torch REQUIRED)
//     target_link_libraries(trainer PRIVATE leat::leat torch)
#pragma once

#include <leat/batch.hpp>
#include <leat/dlpack.h>
#include <leat/error.hpp>
#include <leat/stream.hpp>
#include <leat/tensor.hpp>

#include <ATen/ops/from_blob.h>
#include <torch/version.h>

#include <memory>
#include <optional>
#include <string>

namespace leat {

/// libtorch's type of these elements.
///   throws   error{errc::unsupported}: u16, u32 or u64, which libtorch has since 2.3
[[nodiscard]] inline at::ScalarType torch_type(dtype type) {
  switch (type) {
    case dtype::u8:
      return at::kByte;
    case dtype::i8:
      return at::kChar;
    case dtype::i16:
      return at::kShort;
    case dtype::i32:
      return at::kInt;
    case dtype::i64:
      return at::kLong;
    case dtype::f16:
      return at::kHalf;
    case dtype::bf16:
      return at::kBFloat16;
    case dtype::f32:
      return at::kFloat;
    case dtype::f64:
      return at::kDouble;
    case dtype::boolean:
      return at::kBool;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    case dtype::u16:
      return at::kUInt16;
    case dtype::u32:
      return at::kUInt32;
    case dtype::u64:
      return at::kUInt64;
#else
    case dtype::u16:
    case dtype::u32:
    case dtype::u64:
      break;
#endif
  }
  throw error(errc::unsupported, "libtorch " TORCH_VERSION " has no type for " + std::string(name(type)) +
                                     "; take a libtorch from 2.3 on, or a field of a signed type");
}

/// libtorch's name of where a batch lies.
[[nodiscard]] inline at::Device torch_device(device where) {
  if (where.type == device::kind::host) return at::Device(at::kCPU);
  return {at::kCUDA, static_cast<at::DeviceIndex>(where.index)};
}

/// One output of a batch, `to_torch(batch["jpg"])`, on the batch's device. It may be changed in place. It keeps the memory
/// of the whole batch: also after the batch and the loader have ended, until the last of its views has. So it counts as
/// a batch that you hold: `.clone()` what you keep long.
///   consumer   as of batch_tensor::dlpack(): the stream in which libtorch will read it, which waits for the bytes:
///              `to_torch(batch["jpg"], c10::cuda::getCurrentCUDAStream())`. Ignored on the host
///   throws     as torch_type() and batch_tensor::dlpack(). Then nothing was given away
[[nodiscard]] inline at::Tensor to_torch(const batch_tensor& view, std::optional<stream> consumer = stream()) {
  const at::Device where = torch_device(view.where);
  const at::TensorOptions options = at::TensorOptions().dtype(torch_type(view.type)).device(where);
  const auto rank = static_cast<std::size_t>(view.shape.size());
  // Given back with libtorch's last copy of the function, whether it calls it or not.
  const std::shared_ptr<DLManagedTensor> held(view.dlpack_unversioned(consumer),
                                              [](DLManagedTensor* given) { given->deleter(given); });
  return at::from_blob(
      view.data, at::IntArrayRef(view.shape.begin(), rank), at::IntArrayRef(view.strides.begin(), rank),
      [held](void*) {}, options, where);
}

}  // namespace leat
