# The flags that every target of ours is built with: the interface target leat_flags.

include(refused)
if(leat_refused)
  message(FATAL_ERROR "${leat_refused}")
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
# A program is linked anew where what it links with has another interface, which its own sources then show.
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(LEAT_CCACHE ccache)
  mark_as_advanced(LEAT_CCACHE)
  if(LEAT_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/cached ${PROJECT_SOURCE_DIR} ${LEAT_CCACHE})
  endif()
endif()

# LLVM's linker, where the compiler's own release of it is there: it takes a fifth of GNU ld's time for a program of the tests.
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-prog-name=ld.lld
    OUTPUT_VARIABLE leat_linker OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX MATCH "^[0-9]+" leat_linker_release "${CMAKE_CXX_COMPILER_VERSION}")
  execute_process(COMMAND ${leat_linker} --version OUTPUT_VARIABLE leat_linker_version ERROR_QUIET)
  if(leat_linker_version MATCHES "LLD ${leat_linker_release}\\.")
    add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=lld>)
  endif()
endif()

# leat_hidden(<target of the library>): only what include/leat declares leaves the library. Asio, JSON and the rest of what is inside
# never meet those of the program, which may be of another version. Each function is a section, so that a program's linker leaves out
# what it does not use.
function(leat_hidden target)
  target_compile_options(${target} PRIVATE
    $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-ffunction-sections> $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-fdata-sections>)
  if(NOT LEAT_EXPORT_INTERNALS)
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
      VISIBILITY_INLINES_HIDDEN ON)
  endif()
endfunction()

add_library(leat_flags INTERFACE)
target_compile_features(leat_flags INTERFACE cxx_std_20)
target_compile_options(leat_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion
  # Where several files are one unit, a local name is no mistake because another file has it, too. GCC's also minds names that members have,
  # and functions.
  $<$<AND:$<CXX_COMPILER_ID:Clang>,$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>>:-Wshadow>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${LEAT_WARNINGS_AS_ERRORS}>:-Werror>
  # A fused multiply-add rounds once where the pixel rule says twice; a digest must not depend on the compiler's mood.
  -ffp-contract=off
  # What is installed does not say where it was built: clang puts the path of a lambda's file into the name of what is made of it.
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
target_compile_definitions(leat_flags INTERFACE BOOST_ASIO_NO_DEPRECATED
  $<$<NOT:$<BOOL:${LEAT_NVTX}>>:LEAT_NO_NVTX>
  $<$<STREQUAL:${LEAT_PROBES},OFF>:LEAT_NO_PROBES>)
target_include_directories(leat_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
# Sanitizers go on everything below this directory but what nvcc compiles: a library half instrumented reports what is
# not there.
if(LEAT_SANITIZE STREQUAL "address")
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=address,undefined)
  # A program of the tests has a million pointers for what the sanitizers say. Where it lies in a fixed place the linker has set them, and
  # not each of its thousands of processes.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
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
