/* DLPack's C interface, version 1: what batch_tensor::dlpack() gives and what a consumer in C or C++ reads. From its
 * specification (dmlc.github.io/dlpack), as far as leat uses it.
 *
 * Whoever has <dlpack/dlpack.h> or <ATen/dlpack.h> may include it too. Before this one, its declarations are the ones in use,
 * and what they lack (before 1.0 there is no DLManagedTensorVersioned) is added. Behind this one it adds nothing: types of
 * 8 bits and less and DLPackExchangeAPI are then not declared. Either way each offset and size is checked below. */
#ifndef LEAT_DLPACK_H
#define LEAT_DLPACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_ /* the specification's own header, included later, adds nothing */

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
  kDLTrn = 18
} DLDeviceType;

/* device_id: 0 for memory of the host. */
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U
} DLDataTypeCode;

/* code: a DLDataTypeCode; bits of one element; lanes of a vector type, 1 for others. */
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

/* data: null where there are no elements. strides: in elements. Both arrays hold ndim numbers. */
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;

/* Whoever is done with it calls deleter(self), once, on any thread. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

#endif /* DLPACK_DLPACK_H_ */

#ifndef DLPACK_MAJOR_VERSION
/* A header from before 1.0 was included first: those before 0.8 have no name for this type. A macro does not get in the way of
 * those that have one. */
#ifdef DLPACK_VERSION
#define kDLBool 6U
#endif

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 2 /* from here on strides are never null */

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

/* Of another major version nothing may be touched but the deleter, to be called. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif /* DLPACK_MAJOR_VERSION */

#ifdef __cplusplus
} /* extern "C" */
#define LEAT_DLPACK_CHECK(condition) static_assert(condition, "DLPack's layout, version 1, 64 bits")
#else
#define LEAT_DLPACK_CHECK(condition) _Static_assert(condition, "DLPack's layout, version 1, 64 bits")
#endif

LEAT_DLPACK_CHECK(sizeof(void*) == 8);
LEAT_DLPACK_CHECK(kDLCPU == 1 && kDLCUDA == 2 && kDLCUDAHost == 3 && kDLCUDAManaged == 13);
LEAT_DLPACK_CHECK(kDLInt == 0 && kDLUInt == 1 && kDLFloat == 2 && kDLBfloat == 4 && kDLComplex == 5 && kDLBool == 6);
LEAT_DLPACK_CHECK(sizeof(DLDeviceType) == 4);
LEAT_DLPACK_CHECK(sizeof(DLDevice) == 8);
LEAT_DLPACK_CHECK(offsetof(DLDevice, device_type) == 0);
LEAT_DLPACK_CHECK(offsetof(DLDevice, device_id) == 4);
LEAT_DLPACK_CHECK(sizeof(DLDataType) == 4);
LEAT_DLPACK_CHECK(offsetof(DLDataType, code) == 0);
LEAT_DLPACK_CHECK(offsetof(DLDataType, bits) == 1);
LEAT_DLPACK_CHECK(offsetof(DLDataType, lanes) == 2);
LEAT_DLPACK_CHECK(sizeof(DLTensor) == 48);
LEAT_DLPACK_CHECK(offsetof(DLTensor, data) == 0);
LEAT_DLPACK_CHECK(offsetof(DLTensor, device) == 8);
LEAT_DLPACK_CHECK(offsetof(DLTensor, ndim) == 16);
LEAT_DLPACK_CHECK(offsetof(DLTensor, dtype) == 20);
LEAT_DLPACK_CHECK(offsetof(DLTensor, shape) == 24);
LEAT_DLPACK_CHECK(offsetof(DLTensor, strides) == 32);
LEAT_DLPACK_CHECK(offsetof(DLTensor, byte_offset) == 40);
LEAT_DLPACK_CHECK(sizeof(DLManagedTensor) == 64);
LEAT_DLPACK_CHECK(offsetof(DLManagedTensor, dl_tensor) == 0);
LEAT_DLPACK_CHECK(offsetof(DLManagedTensor, manager_ctx) == 48);
LEAT_DLPACK_CHECK(offsetof(DLManagedTensor, deleter) == 56);
LEAT_DLPACK_CHECK(sizeof(DLPackVersion) == 8);
LEAT_DLPACK_CHECK(offsetof(DLPackVersion, major) == 0);
LEAT_DLPACK_CHECK(offsetof(DLPackVersion, minor) == 4);
LEAT_DLPACK_CHECK(sizeof(DLManagedTensorVersioned) == 80);
LEAT_DLPACK_CHECK(offsetof(DLManagedTensorVersioned, version) == 0);
LEAT_DLPACK_CHECK(offsetof(DLManagedTensorVersioned, manager_ctx) == 8);
LEAT_DLPACK_CHECK(offsetof(DLManagedTensorVersioned, deleter) == 16);
LEAT_DLPACK_CHECK(offsetof(DLManagedTensorVersioned, flags) == 24);
LEAT_DLPACK_CHECK(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
LEAT_DLPACK_CHECK(DLPACK_MAJOR_VERSION == 1);
#undef LEAT_DLPACK_CHECK

#endif /* LEAT_DLPACK_H */
