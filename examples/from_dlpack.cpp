// The smallest C interface through which another language can have leat's batches: open, next, a tensor as DLPack, close.
// examples/from_dlpack.py calls it with ctypes and hands the tensors to NumPy and PyTorch.
#include <leat/dlpack.h>
#include <leat/loader.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace {

thread_local std::string last_error;  // NOLINT: as errno

struct reading {
  leat::loader photos;
  std::optional<leat::batch> current;
};

// The stream as Python's __dlpack__ has it: 0 is "not said", -1 "wait for nobody"; what remains is CUDA's own, in which 1 is
// the legacy default stream and 2 the thread's.
std::optional<leat::stream> stream_of(std::intptr_t python) {
  if (python == -1) return std::nullopt;
  return leat::stream(reinterpret_cast<CUstream_st*>(python));
}

/// What `call` returns; where it throws, null or -1, and the reason in leat_error().
template <class Call>
auto guarded(Call&& call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& problem) {
    last_error = problem.what();
  }
  if constexpr (std::is_pointer_v<decltype(call())>) {
    return nullptr;
  } else {
    return -1;
  }
}

}  // namespace

extern "C" {

const char* leat_error() { return last_error.c_str(); }

/// A folder of class folders, or tar shards; cuda: the GPU's number, or -1 for host memory.
reading* leat_open(const char* source, std::uint32_t batch_size, int cuda) {
  return guarded([&] {
    leat::loader_options options{.batch_size = batch_size, .seed = 7, .epochs = 1};
    if (cuda >= 0) options.device = leat::cuda(cuda);
    return new reading{leat::loader(leat::open(source), options,
                                    leat::image("jpg").random_resized_crop(64).random_flip().normalize(leat::imagenet),
                                    leat::label("cls")),
                       std::nullopt};
  });
}

/// 1: there is a batch, and the one before has ended; 0: the epoch has.
int leat_next(reading* from) {
  return guarded([&] {
    from->current.reset();
    from->current = from->photos.next_blocking();
    return from->current ? 1 : 0;
  });
}

/// Where it lies and on which device, for __dlpack_device__: DLPack's type and number.
void* leat_where(reading* from, const char* name, std::int32_t* type, std::int32_t* number) {
  return guarded([&] {
    const leat::tensor view = (*from->current)[name];
    *type = view.where == leat::host ? kDLCPU : kDLCUDA;
    *number = view.where.index;
    return view.data;
  });
}

DLManagedTensorVersioned* leat_dlpack(reading* from, const char* name, std::intptr_t stream) {
  return guarded([&] { return (*from->current)[name].dlpack(stream_of(stream)); });
}

DLManagedTensor* leat_dlpack_unversioned(reading* from, const char* name, std::intptr_t stream) {
  return guarded([&] { return (*from->current)[name].dlpack_unversioned(stream_of(stream)); });
}

/// Batches whose memory has not gone home: the current one, and those of which a tensor is somewhere.
int leat_held(reading* from) { return static_cast<int>(from->photos.stats().batches_out); }

void leat_close(reading* from) { delete from; }
}
