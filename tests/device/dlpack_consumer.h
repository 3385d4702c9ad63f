/* A consumer that knows nothing of leat but DLPack's structs: what any array library does with a capsule. */
#ifndef LEAT_TESTS_DLPACK_CONSUMER_H
#define LEAT_TESTS_DLPACK_CONSUMER_H

#include <leat/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dlpack_seen {
  int32_t device_type, device_id;
  int32_t ndim;
  int64_t shape[8];
  uint8_t code, bits;
  uint64_t flags;
  uint64_t hash; /* FNV-1a of the elements in their order, found by shape and strides */
};

/* Each returns NULL, or why it refuses the tensor. Neither calls the deleter. */
const char* dlpack_look(const DLManagedTensorVersioned* from, struct dlpack_seen* seen);
const char* dlpack_look_unversioned(const DLManagedTensor* from, struct dlpack_seen* seen);

/* On a thread of its own. 0, or an errno. */
int dlpack_delete_elsewhere(DLManagedTensorVersioned* from);

uint64_t dlpack_hash(const void* bytes, size_t count, uint64_t so_far);
#define DLPACK_HASH_START 14695981039346656037ULL

#ifdef __cplusplus
}
#endif
#endif
