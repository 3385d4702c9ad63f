# The GPU's half: LEAT_CUDA is OFF, ON or AUTO (where nvcc is found). Sets LEAT_HAVE_CUDA, LEAT_CUDA_ARCHITECTURES where nobody
# has said them, and the targets leat_cudart (the runtime, linked statically, so that one binary runs with and without a GPU)
# and leat_cuda_flags.

# nvcc is run for nobody who has not asked for it.
set(LEAT_CUDA OFF CACHE STRING "Build the GPU's half: OFF, ON or AUTO (where nvcc is found)")
set_property(CACHE LEAT_CUDA PROPERTY STRINGS OFF ON AUTO)
set(LEAT_HAVE_CUDA OFF)
if(NOT LEAT_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "LEAT_CUDA is '${LEAT_CUDA}'; it may be AUTO, ON or OFF.")
endif()
if(LEAT_CUDA STREQUAL "OFF")
  return()
endif()

# Where NVIDIA's own packages put it, which is not on the path, and where scripts/setup --cuda does.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(LEAT_NVCC nvcc)
  mark_as_advanced(LEAT_NVCC)
  if(NOT LEAT_NVCC)
    foreach(candidate IN ITEMS /usr/local/cuda/bin/nvcc ${PROJECT_SOURCE_DIR}/.cache/cuda/nvidia/cu13/bin/nvcc)
      if(NOT CMAKE_CUDA_COMPILER AND EXISTS ${candidate})
        set(CMAKE_CUDA_COMPILER ${candidate})
      endif()
    endforeach()
  endif()
endif()
set(CMAKE_CUDA_ARCHITECTURES OFF)  # each target says what it is compiled for
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(LEAT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "leat: LEAT_CUDA=ON and no nvcc that works was found. Put it on the path or say "
      "-DCMAKE_CUDA_COMPILER=/usr/local/cuda/bin/nvcc; it needs a C++ compiler that it knows, of which "
      "-DCMAKE_CUDA_HOST_COMPILER=g++-12 may be one. LEAT_CUDA=OFF builds without the GPU's half.")
  endif()
  message(STATUS "leat: no nvcc was found: without the GPU's half")
  return()
endif()
enable_language(CUDA)

# The runtime that came with this nvcc, not one that happens to lie about.
find_path(LEAT_CUDART_INCLUDE_DIR cuda_runtime_api.h
  HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} NO_DEFAULT_PATH)
cmake_path(GET CMAKE_CUDA_COMPILER PARENT_PATH leat_nvcc_bin)
find_library(LEAT_CUDART_LIBRARY libcudart_static.a
  HINTS ${leat_nvcc_bin}/../lib64 ${leat_nvcc_bin}/../lib ${CMAKE_CUDA_HOST_IMPLICIT_LINK_DIRECTORIES}
        ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES} NO_DEFAULT_PATH)
mark_as_advanced(LEAT_CUDART_INCLUDE_DIR LEAT_CUDART_LIBRARY)
if(NOT LEAT_CUDART_INCLUDE_DIR OR NOT LEAT_CUDART_LIBRARY)
  set(leat_reason "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is at ${CMAKE_CUDA_COMPILER}, and its cuda_runtime_api.h or libcudart_static.a is not")
  if(LEAT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "leat: ${leat_reason}; install the CUDA toolkit's cudart development files.")
  endif()
  message(STATUS "leat: ${leat_reason}: without the GPU's half")
  return()
endif()
set(LEAT_HAVE_CUDA ON)

add_library(leat_cudart INTERFACE)
target_include_directories(leat_cudart SYSTEM INTERFACE ${LEAT_CUDART_INCLUDE_DIR})

# What nvcc has of the architectures that we know: the first of each major number, whose code the others of that number run, too (86, 89:
# CUDA C++ Programming Guide, Binary Compatibility). The newest of them as PTX for what comes, and the oldest for what is newer than that
# and not among them (11.0): PTX for one runs on all later ones. Not CMAKE_CUDA_ARCHITECTURES, which CMake fills in by itself with what is
# too old for us.
set(LEAT_CUDA_ARCHITECTURES "" CACHE STRING
  "What kernels are compiled for, as CMake's CUDA_ARCHITECTURES (90-real, native); empty is every one that leat runs on")
# Kernels of tests, examples and benchmarks. Where nobody says for what, PTX of the oldest does: the driver compiles it for its GPU.
set(leat_program_architectures ${LEAT_CUDA_ARCHITECTURES})
if(LEAT_CUDA_ARCHITECTURES STREQUAL "")
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-arch OUTPUT_VARIABLE leat_nvcc_architectures)
  set(leat_known "")
  foreach(architecture IN ITEMS 80 90 100 120)
    if(leat_nvcc_architectures MATCHES "compute_${architecture}[\r\n]")
      list(APPEND leat_known ${architecture})
    endif()
  endforeach()
  list(GET leat_known 0 leat_oldest)
  list(GET leat_known -1 leat_newest)
  list(TRANSFORM leat_known APPEND -real OUTPUT_VARIABLE LEAT_CUDA_ARCHITECTURES)
  list(APPEND LEAT_CUDA_ARCHITECTURES ${leat_oldest}-virtual ${leat_newest}-virtual)
  set(leat_program_architectures ${leat_oldest}-virtual)
endif()
message(STATUS "leat: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, for ${LEAT_CUDA_ARCHITECTURES}")

add_library(leat_cuda_flags INTERFACE)
target_include_directories(leat_cuda_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(leat_cuda_flags INTERFACE
  --std=c++20  # CMake 3.25 does not know of newer compilers that they can: no target_compile_features()
  # Products and sums are written as intrinsics that round once; this says it again for whatever is added.
  --fmad=false
  -Xcompiler=-Wall,-Wextra,-Wshadow
  $<$<BOOL:${LEAT_WARNINGS_AS_ERRORS}>:-Werror=all-warnings>
  # Registers and spills of each kernel, in the build's log.
  -Xptxas=-v)
