# The libraries we stand on (docs/dependencies.md). All that is missing is named at once, with its apt package. What is linked
# says its pkg-config module, leat_pc_module_of_<package>, which an installed leat.pc names.

set(leat_missing "")
macro(leat_need found what apt_package)
  if(NOT ${found})
    string(APPEND leat_missing "  ${what}: apt-get install ${apt_package}\n")
  endif()
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

find_package(Boost 1.81 QUIET)
leat_need(Boost_FOUND "Boost >= 1.81, headers (Asio)" "libboost1.81-dev (Debian 12) or libboost-dev")

find_package(Liburing QUIET)
set(leat_pc_module_of_Liburing liburing)
leat_need(Liburing_FOUND "liburing (2.3 or newer)" liburing-dev)

find_package(JPEG QUIET)
set(leat_pc_module_of_JPEG libjpeg)
if(JPEG_FOUND)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES JPEG::JPEG)
  check_cxx_source_compiles("
    #include <cstdio>
    #include <jpeglib.h>
    #if LIBJPEG_TURBO_VERSION_NUMBER < 2000000
    #error too old
    #endif
    int main() { return jpeg_skip_scanlines != nullptr && jpeg_crop_scanline != nullptr ? 0 : 1; }"
    LEAT_HAVE_LIBJPEG_TURBO)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
leat_need(LEAT_HAVE_LIBJPEG_TURBO "libjpeg-turbo >= 2.0 (partial decoding; another libjpeg will not do)" libjpeg-dev)

find_package(PNG QUIET)
set(leat_pc_module_of_PNG libpng)
set(leat_pc_module_of_ZLIB zlib)
leat_need(PNG_FOUND "libpng" libpng-dev)

find_package(WebP QUIET)
set(leat_pc_module_of_WebP libwebp)
leat_need(WebP_FOUND "libwebp" libwebp-dev)

find_package(Libdeflate QUIET)
set(leat_pc_module_of_Libdeflate libdeflate)
leat_need(Libdeflate_FOUND "libdeflate" libdeflate-dev)

find_package(Zstd QUIET)
set(leat_pc_module_of_Zstd libzstd)
leat_need(Zstd_FOUND "Zstandard" libzstd-dev)

find_package(LZ4 QUIET)
set(leat_pc_module_of_LZ4 liblz4)
leat_need(LZ4_FOUND "LZ4" liblz4-dev)

find_package(Snappy QUIET)
set(leat_pc_module_of_Snappy snappy)
leat_need(Snappy_FOUND "Snappy" libsnappy-dev)

find_package(Blosc QUIET)
set(leat_pc_module_of_Blosc blosc)
leat_need(Blosc_FOUND "Blosc 1" libblosc-dev)

find_package(PCRE2 QUIET)
set(leat_pc_module_of_PCRE2 libpcre2-8)
leat_need(PCRE2_FOUND "PCRE2, 8-bit" libpcre2-dev)

find_package(Utf8proc QUIET)
set(leat_pc_module_of_Utf8proc libutf8proc)
leat_need(Utf8proc_FOUND "utf8proc" libutf8proc-dev)

find_package(hwy 1.0.3 QUIET)
set(leat_pc_module_of_hwy libhwy)
leat_need(hwy_FOUND "Highway >= 1.0.3" libhwy-dev)
# On x86 its headers are enough (stages/pixels/vectors/instruction_sets.hpp).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64|i.86)$")
  set(LEAT_HWY_LINKS "")
  set(LEAT_HWY_HEADERS hwy::hwy)
else()
  set(LEAT_HWY_LINKS hwy::hwy)
  set(LEAT_HWY_HEADERS "")
endif()

find_package(absl QUIET)
leat_need(absl_FOUND "Abseil" libabsl-dev)

find_path(LEAT_XXHASH_INCLUDE_DIR xxhash.h)
mark_as_advanced(LEAT_XXHASH_INCLUDE_DIR)
leat_need(LEAT_XXHASH_INCLUDE_DIR "xxHash" libxxhash-dev)

find_path(LEAT_RANDOM123_INCLUDE_DIR Random123/philox.h)
mark_as_advanced(LEAT_RANDOM123_INCLUDE_DIR)
leat_need(LEAT_RANDOM123_INCLUDE_DIR "Random123" librandom123-dev)

find_package(nlohmann_json 3.10 QUIET)
leat_need(nlohmann_json_FOUND "nlohmann-json" nlohmann-json3-dev)

if(LEAT_BUILD_TOOLS)
  find_package(CLI11 QUIET)
  leat_need(CLI11_FOUND "CLI11" libcli11-dev)
endif()
if(LEAT_BUILD_TESTS)
  find_package(GTest QUIET)
  leat_need(GTest_FOUND "GoogleTest and GoogleMock" "libgtest-dev libgmock-dev")
  find_package(LMDB QUIET)
  if(NOT LMDB_FOUND)
    message(STATUS "leat: no liblmdb was found (liblmdb-dev): without the test of a database that is written meanwhile")
  endif()
endif()
if(LEAT_BUILD_BENCHMARKS)
  find_package(benchmark QUIET)
  leat_need(benchmark_FOUND "Google Benchmark" libbenchmark-dev)
endif()

set(LEAT_HAVE_TIFF FALSE)
set(LEAT_TIFF_LINKS "")
set(leat_pc_module_of_TIFF libtiff-4)
if(NOT LEAT_TIFF STREQUAL "OFF")
  find_package(TIFF 4.5 QUIET)
  if(TIFF_FOUND)
    set(LEAT_HAVE_TIFF TRUE)
    set(LEAT_TIFF_LINKS TIFF::TIFF)
  elseif(LEAT_TIFF STREQUAL "ON")
    leat_need(TIFF_FOUND "libtiff >= 4.5, for LEAT_TIFF=ON" libtiff-dev)
  else()
    message(STATUS "leat: no libtiff >= 4.5 was found: without TIFF")
  endif()
endif()

set(LEAT_HAVE_REMOTE FALSE)
set(LEAT_REMOTE_LINKS "")
set(leat_pc_module_of_OpenSSL openssl)
if(NOT LEAT_REMOTE STREQUAL "OFF")
  find_package(OpenSSL 3.0 QUIET)
  if(OPENSSL_FOUND)
    set(LEAT_HAVE_REMOTE TRUE)
    set(LEAT_REMOTE_LINKS OpenSSL::SSL OpenSSL::Crypto)
  elseif(LEAT_REMOTE STREQUAL "ON")
    leat_need(OPENSSL_FOUND "OpenSSL 3, for LEAT_REMOTE=ON" libssl-dev)
  else()
    message(STATUS "leat: no OpenSSL 3 was found: without objects at addresses")
  endif()
endif()

set(LEAT_HAVE_MPI FALSE)
if(NOT LEAT_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(LEAT_HAVE_MPI TRUE)
  elseif(LEAT_MPI STREQUAL "ON")
    leat_need(MPI_CXX_FOUND "MPI, for LEAT_MPI=ON" libopenmpi-dev)
  endif()
endif()

# With AUTO the source asks by itself (stages/observe/probes.hpp), so that a build knows at once when the header comes.
if(LEAT_PROBES STREQUAL "ON")
  include(CheckIncludeFileCXX)
  unset(LEAT_HAVE_SDT CACHE)
  check_include_file_cxx(sys/sdt.h LEAT_HAVE_SDT)
  leat_need(LEAT_HAVE_SDT "<sys/sdt.h>, for LEAT_PROBES=ON" systemtap-sdt-dev)
endif()

if(leat_missing)
  message(FATAL_ERROR "leat: these libraries were not found:\n${leat_missing}`scripts/setup` installs all of them.")
endif()

# Header-only ones without a CMake package of their own. XXH_INLINE_ALL: hashing is inlined and libxxhash is not linked.
add_library(leat_xxhash INTERFACE)
target_include_directories(leat_xxhash SYSTEM INTERFACE ${LEAT_XXHASH_INCLUDE_DIR})
target_compile_definitions(leat_xxhash INTERFACE XXH_INLINE_ALL)
add_library(leat_random123 INTERFACE)
target_include_directories(leat_random123 SYSTEM INTERFACE ${LEAT_RANDOM123_INCLUDE_DIR})
