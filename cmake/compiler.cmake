# Which compilers are refused, and the flags that every target of ours is built with: the interface target leat_flags.

if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "leat reads through io_uring and builds on Linux only; this is ${CMAKE_SYSTEM_NAME}.")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR "leat: GCC ${CMAKE_CXX_COMPILER_VERSION} miscompiles coroutines silently (double frees, coroutines that "
    "never resume: GCC bugs 99576, 100611, 102217, 106188, fixed in 13). Install clang-19 or g++-13 "
    "(`apt-get install clang-19`) and configure in an empty build directory with a preset, or with "
    "-DCMAKE_CXX_COMPILER=clang++-19.")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
  message(FATAL_ERROR "leat: clang ${CMAKE_CXX_COMPILER_VERSION} is older than 17, the oldest that leat is written for. "
    "Install clang-19 (`apt-get install clang-19`) and configure with -DCMAKE_CXX_COMPILER=clang++-19.")
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(LEAT_CCACHE ccache)
  mark_as_advanced(LEAT_CCACHE)
  if(LEAT_CCACHE)
    # It knows a unit with a precompiled header again only where it is told that times do not matter.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${LEAT_CCACHE})
  endif()
endif()

add_library(leat_flags INTERFACE)
target_compile_features(leat_flags INTERFACE cxx_std_20)
target_compile_options(leat_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${LEAT_WARNINGS_AS_ERRORS}>:-Werror>
  # A fused multiply-add rounds once where the pixel rule says twice; a digest must not depend on the compiler's mood.
  -ffp-contract=off)
target_compile_definitions(leat_flags INTERFACE BOOST_ASIO_NO_DEPRECATED
  $<$<NOT:$<BOOL:${LEAT_NVTX}>>:LEAT_NO_NVTX>)
target_include_directories(leat_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
# Sanitizers go on everything below this directory but what nvcc compiles: a library half instrumented reports what is
# not there.
if(LEAT_SANITIZE STREQUAL "address")
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=address,undefined)
  # GCC's flow analysis sees uninitialised reads in Asio's templates once AddressSanitizer has taken them apart.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
elseif(LEAT_SANITIZE STREQUAL "thread")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread;-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=thread)
  # Asio's fences are not understood by ThreadSanitizer; GCC warns of each, clang of none.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-tsan>)
elseif(LEAT_SANITIZE)
  message(FATAL_ERROR "LEAT_SANITIZE is '${LEAT_SANITIZE}'; it may be empty, address or thread.")
endif()
