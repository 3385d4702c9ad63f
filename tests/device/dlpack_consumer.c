#include "dlpack_consumer.h"

#include <pthread.h>

uint64_t dlpack_hash(const void* bytes, size_t count, uint64_t so_far) {
  const uint8_t* each = bytes;
  for (size_t i = 0; i < count; ++i) so_far = (so_far ^ each[i]) * 1099511628211ULL;
  return so_far;
}

static uint64_t hash_axis(const DLTensor* of, int32_t axis, const uint8_t* at, uint64_t so_far) {
  const size_t bytes = (size_t)of->dtype.bits * of->dtype.lanes / 8;
  if (axis == of->ndim) return dlpack_hash(at, bytes, so_far);
  for (int64_t i = 0; i < of->shape[axis]; ++i) {
    so_far = hash_axis(of, axis + 1, at + i * of->strides[axis] * (int64_t)bytes, so_far);
  }
  return so_far;
}

static const char* look(const DLTensor* of, struct dlpack_seen* seen) {
  int64_t elements = 1;
  if (of->ndim < 0 || of->ndim > 8) return "more axes than this consumer has";
  if (of->ndim != 0 && (of->shape == NULL || of->strides == NULL)) return "no shape or no strides";
  seen->ndim = of->ndim;
  for (int32_t axis = 0; axis < of->ndim; ++axis) {
    seen->shape[axis] = of->shape[axis];
    elements *= of->shape[axis];
  }
  if (elements == 0 && of->data != NULL) return "no elements, and data is not null";
  if (elements != 0 && (uintptr_t)of->data % 256 != 0) return "data is not aligned to 256 bytes";
  if (of->dtype.lanes != 1 || of->byte_offset != 0) return "lanes or an offset, which this consumer has not heard of";
  seen->code = of->dtype.code;
  seen->bits = of->dtype.bits;
  seen->device_type = (int32_t)of->device.device_type;
  seen->device_id = of->device.device_id;
  seen->hash = DLPACK_HASH_START;
  if (of->device.device_type == kDLCPU) seen->hash = hash_axis(of, 0, of->data, DLPACK_HASH_START);
  return NULL;
}

const char* dlpack_look(const DLManagedTensorVersioned* from, struct dlpack_seen* seen) {
  if (from->version.major != DLPACK_MAJOR_VERSION) return "another major version";
  if (from->deleter == NULL) return "no deleter";
  seen->flags = from->flags;
  return look(&from->dl_tensor, seen);
}

const char* dlpack_look_unversioned(const DLManagedTensor* from, struct dlpack_seen* seen) {
  if (from->deleter == NULL) return "no deleter";
  seen->flags = 0;
  return look(&from->dl_tensor, seen);
}

static void* run_deleter(void* argument) {
  DLManagedTensorVersioned* from = argument;
  from->deleter(from);
  return NULL;
}

int dlpack_delete_elsewhere(DLManagedTensorVersioned* from) {
  pthread_t thread;
  const int failed = pthread_create(&thread, NULL, run_deleter, from);
  return failed != 0 ? failed : pthread_join(thread, NULL);
}
