#include "stages/pixels/jpeg_memory.hpp"

#include <jerror.h>

#include <algorithm>
#include <cstring>

// libjpeg only passes these back to us; their content is the memory manager's.
struct jvirt_sarray_control {
  JSAMPARRAY rows;
  JDIMENSION samples_per_row;
  JDIMENSION row_count;
  boolean zeroed;
  jvirt_sarray_control* next;
};

// `rows` are all rows, or with packing the few that libjpeg has asked for last, from `first_row` on; the others are in `packed`.
struct jvirt_barray_control {
  JBLOCKARRAY rows;
  JDIMENSION blocks_per_row;
  JDIMENSION row_count;
  JDIMENSION rows_at_a_time;
  boolean zeroed;
  jvirt_barray_control* next;

  leat::pixels::block_pages::page** packed;
  JDIMENSION first_row;
  JDIMENSION rows_here;
  bool written;
};

namespace leat::pixels {
namespace {

// libjpeg-turbo's vector code reads and writes whole vectors at the end of a line, twice as many when it upsamples.
constexpr std::size_t line_alignment = 128;

jpeg_memory& memory_of(j_common_ptr cinfo) noexcept { return *reinterpret_cast<jpeg_memory*>(cinfo->mem); }

std::size_t padded(std::size_t samples) noexcept {
  return (samples + line_alignment - 1) / line_alignment * line_alignment;
}

void* alloc(j_common_ptr cinfo, int /*pool*/, std::size_t bytes) {
  void* const memory = memory_of(cinfo).arena->take(bytes);
  if (memory == nullptr) {
    cinfo->err->msg_code = JERR_OUT_OF_MEMORY;
    cinfo->err->msg_parm.i[0] = 0;
    cinfo->err->error_exit(cinfo);
  }
  return memory;
}

JSAMPARRAY alloc_sarray(j_common_ptr cinfo, int pool, JDIMENSION samples_per_row, JDIMENSION row_count) {
  auto* const rows = static_cast<JSAMPARRAY>(alloc(cinfo, pool, row_count * sizeof(JSAMPROW)));
  const std::size_t stride = padded(samples_per_row);
  auto* memory = static_cast<JSAMPROW>(alloc(cinfo, pool, stride * row_count));
  for (JDIMENSION i = 0; i < row_count; ++i, memory += stride) rows[i] = memory;
  return rows;
}

JBLOCKARRAY alloc_barray(j_common_ptr cinfo, int pool, JDIMENSION blocks_per_row, JDIMENSION row_count) {
  auto* const rows = static_cast<JBLOCKARRAY>(alloc(cinfo, pool, row_count * sizeof(JBLOCKROW)));
  auto* memory = static_cast<JBLOCKROW>(alloc(cinfo, pool, std::size_t{blocks_per_row} * row_count * sizeof(JBLOCK)));
  for (JDIMENSION i = 0; i < row_count; ++i, memory += blocks_per_row) rows[i] = memory;
  return rows;
}

jvirt_sarray_ptr request_virt_sarray(j_common_ptr cinfo, int pool, boolean zeroed, JDIMENSION samples_per_row,
                                     JDIMENSION row_count, JDIMENSION /*rows at a time*/) {
  auto* const control = static_cast<jvirt_sarray_ptr>(alloc(cinfo, pool, sizeof(jvirt_sarray_control)));
  jpeg_memory& memory = memory_of(cinfo);
  *control = {nullptr, samples_per_row, row_count, zeroed, memory.sample_arrays};
  memory.sample_arrays = control;
  return control;
}

jvirt_barray_ptr request_virt_barray(j_common_ptr cinfo, int pool, boolean zeroed, JDIMENSION blocks_per_row,
                                     JDIMENSION row_count, JDIMENSION rows_at_a_time) {
  auto* const control = static_cast<jvirt_barray_ptr>(alloc(cinfo, pool, sizeof(jvirt_barray_control)));
  jpeg_memory& memory = memory_of(cinfo);
  *control = {};
  control->blocks_per_row = blocks_per_row;
  control->row_count = row_count;
  control->rows_at_a_time = std::min(rows_at_a_time, row_count);
  control->zeroed = zeroed;
  control->next = memory.block_arrays;
  memory.block_arrays = control;
  return control;
}

// Allocates at once: the reader has reserved the memory, whole or packed, or has refused the picture.
void realize_virt_arrays(j_common_ptr cinfo) {
  jpeg_memory& memory = memory_of(cinfo);
  for (jvirt_sarray_ptr a = memory.sample_arrays; a != nullptr; a = a->next) {
    if (a->rows != nullptr) continue;
    a->rows = alloc_sarray(cinfo, JPOOL_IMAGE, a->samples_per_row, a->row_count);
    if (a->zeroed == FALSE) continue;
    for (JDIMENSION i = 0; i < a->row_count; ++i) std::memset(a->rows[i], 0, a->samples_per_row);
  }
  for (jvirt_barray_ptr a = memory.block_arrays; a != nullptr; a = a->next) {
    if (a->rows != nullptr) continue;
    if (memory.packs) {  // All rows are zero: libjpeg asks for no others.
      const std::size_t bytes = a->row_count * sizeof(block_pages::page*);
      a->packed = static_cast<block_pages::page**>(alloc(cinfo, JPOOL_IMAGE, bytes));
      std::memset(a->packed, 0, bytes);
      a->rows = alloc_barray(cinfo, JPOOL_IMAGE, a->blocks_per_row, a->rows_at_a_time);
      continue;
    }
    a->rows = alloc_barray(cinfo, JPOOL_IMAGE, a->blocks_per_row, a->row_count);
    if (a->zeroed == FALSE) continue;
    std::memset(a->rows[0], 0, std::size_t{a->blocks_per_row} * a->row_count * sizeof(JBLOCK));
  }
}

[[noreturn]] void bad_access(j_common_ptr cinfo) {
  cinfo->err->msg_code = JERR_BAD_VIRTUAL_ACCESS;
  cinfo->err->error_exit(cinfo);
  __builtin_unreachable();
}

JSAMPARRAY access_virt_sarray(j_common_ptr cinfo, jvirt_sarray_ptr array, JDIMENSION row, JDIMENSION row_count,
                              boolean /*writable*/) {
  if (array->rows == nullptr || row > array->row_count || row_count > array->row_count - row) bad_access(cinfo);
  return array->rows + row;
}

// libjpeg keeps no rows from one call to the next (jmemmgr.c: they may be swapped out).
void swap_rows(j_common_ptr cinfo, jvirt_barray_control& array, JDIMENSION row, JDIMENSION row_count) {
  jpeg_memory& memory = memory_of(cinfo);
  for (JDIMENSION i = 0; array.written && i < array.rows_here; ++i) {
    if (memory.pages.pack(array.rows[i], array.blocks_per_row, array.packed[array.first_row + i])) continue;
    memory.has_room = false;
    cinfo->err->msg_code = JERR_OUT_OF_MEMORY;
    cinfo->err->msg_parm.i[0] = 0;
    cinfo->err->error_exit(cinfo);
  }
  for (JDIMENSION i = 0; i < row_count; ++i) {
    block_pages::unpack(array.packed[row + i], array.rows[i], array.blocks_per_row);
  }
  array.first_row = row;
  array.rows_here = row_count;
  array.written = false;
}

JBLOCKARRAY access_virt_barray(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION row, JDIMENSION row_count,
                               boolean writable) {
  if (array->rows == nullptr || row > array->row_count || row_count > array->row_count - row) bad_access(cinfo);
  if (array->packed == nullptr) return array->rows + row;
  if (row_count > array->rows_at_a_time) bad_access(cinfo);
  if (row < array->first_row || row + row_count > array->first_row + array->rows_here) {
    swap_rows(cinfo, *array, row, row_count);
  }
  if (writable != FALSE) array->written = true;
  return array->rows + (row - array->first_row);
}

// The arena forgets everything at the end of the sample.
void free_pool(j_common_ptr /*cinfo*/, int /*pool*/) {}
void self_destruct(j_common_ptr /*cinfo*/) {}

}  // namespace

void jpeg_memory::begin(scratch_arena& from) noexcept {
  methods = {.alloc_small = alloc,
             .alloc_large = alloc,
             .alloc_sarray = alloc_sarray,
             .alloc_barray = alloc_barray,
             .request_virt_sarray = request_virt_sarray,
             .request_virt_barray = request_virt_barray,
             .realize_virt_arrays = realize_virt_arrays,
             .access_virt_sarray = access_virt_sarray,
             .access_virt_barray = access_virt_barray,
             .free_pool = free_pool,
             .self_destruct = self_destruct,
             .max_memory_to_use = 0,
             .max_alloc_chunk = 1'000'000'000};
  arena = &from;
  sample_arrays = nullptr;
  block_arrays = nullptr;
  packs = false;
  has_room = true;
}

void jpeg_memory::pack(std::size_t bytes_max) noexcept {
  packs = true;
  pages.begin(*arena, bytes_max);
}

std::size_t jpeg_samples_bytes(std::size_t samples_per_row, std::size_t rows) noexcept {
  return scratch_arena::rounded(rows * sizeof(JSAMPROW)) + scratch_arena::rounded(padded(samples_per_row) * rows);
}

std::size_t jpeg_blocks_bytes(std::size_t blocks_per_row, std::size_t rows) noexcept {
  return scratch_arena::rounded(rows * sizeof(JBLOCKROW)) +
         scratch_arena::rounded(blocks_per_row * rows * sizeof(JBLOCK));
}

std::size_t jpeg_packed_bytes(std::size_t blocks_per_row, std::size_t rows, std::size_t rows_at_a_time) noexcept {
  return scratch_arena::rounded(rows * sizeof(block_pages::page*)) +
         jpeg_blocks_bytes(blocks_per_row, std::min(rows, rows_at_a_time));
}

}  // namespace leat::pixels
