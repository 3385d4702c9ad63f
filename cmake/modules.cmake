# How a directory says what it builds.
#
#   leat_module(io SOURCES ring.cpp arena.cpp LINKS Liburing::Liburing HEADERS leat_xxhash)
#       The object library leat_io. PRECOMPILED library takes cmake/precompiled_library.hpp. LINKS end up in who links leat; HEADERS are
#       header-only libraries, seen by nobody else. Without SOURCES it is header-only.
#       Several sources are compiled as one unit, but for those under ALONE (LEAT_UNITY). OUTSIDE_LIBRARY keeps it out of libleat (the
#       command, test fakes); TOGETHER 6 is then how many they are.
#   leat_module(io_remote PART_OF io COMPONENT remote SOURCES ...)
#       More of io, which leat::remote has (cmake/library.cmake). Who links io has both.
#   leat_test(io MODULES io async SOURCES ring_test.cpp LINKS ... LABELS ... ENVIRONMENT A=1)
#       The executable io_tests of just these modules, so that io can be built and tested while another module is in
#       pieces. MODULES ALL links every module of the library. Generator expressions are fine in ENVIRONMENT. TOGETHER and
#       ALONE as above. WITH_THREADS 'a.*:b.c' names the tests that have threads (as --gtest_filter), where most have none: only
#       they run under ThreadSanitizer. SANITIZED names likewise what sanitizers look at, where they need not look at all. scripts/soak
#       runs what these two leave out. THREADED names the sources whose tests have threads, or NONE: for ThreadSanitizer the others are not
#       compiled. All tests of a program run in one process, as one test of ctest (scripts/in_one_process), which takes
#       two thirds of the time. SERIAL names tests, in full, that measure time: they are tests of ctest, beside which nothing
#       runs. EACH_ALONE:
#       each test needs a process of its own. LONG 90: what takes many seconds begins first. OWN_COPY: with LEAT_EXPORT_INTERNALS it has its modules in itself all the same, as what stands before functions
#       that the library calls (--wrap), or in place of some of it, has to.
#   leat_benchmark(ring_benchmark ARGS <toy size>)
#       A program of that name from <name>.cpp, and one test that runs it with ARGS.

include(GoogleTest)

# Most of a unit's compile time is Asio's headers, and GoogleTest's or the command line's: they are compiled once for the library, for
# tests and for the command. For clang only: what forgets an include still fails with GCC. Nothing of ours is in them.
#
# A release build optimises what users get, and that for ThreadSanitizer the library a little, since its tests then take half of the time.
# The tests themselves are not optimised, which would take half of the build's time again.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(LEAT_PRECOMPILE ON CACHE BOOL "Precompiled headers for leat's own targets")
else()
  set(LEAT_PRECOMPILE OFF)
endif()
mark_as_advanced(LEAT_PRECOMPILE)

# Most of a unit's time is headers, and templates that each instantiates anew. So neighbours in the lists of sources are compiled as one
# unit, in about half of the CPU time (0.46 to 0.78, by target). A change of one file then takes some seconds more; the library of
# developer builds is compiled file by file, and scripts/alone so compiles what changed: no file's call may mean a function of its
# neighbour. Unnamed namespaces of such files are one, so a name that two of them use is an error
# ("redefinition"): rename one, or list a file under ALONE. For clang only, as above: GCC compiles each file by itself.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(LEAT_UNITY ON CACHE BOOL "Several sources of leat's own targets are compiled as one unit")
else()
  set(LEAT_UNITY OFF)
endif()
mark_as_advanced(LEAT_UNITY)

# leat_unity(<target> <sources in a unit> <sources that are compiled alone>...)
function(leat_unity target together)
  if(LEAT_UNITY AND together)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${together})
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# leat_precompiled(<name> <links>...): cmake/precompiled_<name>.hpp, for leat_precompile(<target> <name>).
function(leat_precompiled name)
  if(LEAT_PRECOMPILE)
    add_library(leat_precompiled_${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
    target_link_libraries(leat_precompiled_${name} PRIVATE ${ARGN} Boost::headers Threads::Threads leat_flags)
    leat_precompile_options(leat_precompiled_${name} ${name})
    if(name STREQUAL "library")
      leat_hidden(leat_precompiled_${name})
    endif()
    # Its own path is in it: that of another clone, which a compiler cache may have, would not do here. cmake/cached takes none from there.
    if(NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES "/cmake/cached;")
      set_target_properties(leat_precompiled_${name} PROPERTIES CXX_COMPILER_LAUNCHER "")
    endif()
    target_precompile_headers(leat_precompiled_${name} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/precompiled_${name}.hpp>)
  endif()
endfunction()

function(leat_precompile target name)
  if(LEAT_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM leat_precompiled_${name})
    leat_precompile_options(${target} ${name})
  endif()
endfunction()

# Those of the header and of whoever uses it have to be the same.
function(leat_precompile_options target name)
  # Of an executable CMake would make it -fPIE, and clang does not take one for the other.
  target_compile_options(${target} PRIVATE -fPIC)
  # A time in it would keep ccache from knowing it again.
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  if(name STREQUAL "tests")
    target_compile_options(${target} PRIVATE $<$<OR:$<CONFIG:Release>,$<STREQUAL:${LEAT_SANITIZE},thread>>:-O0>)
  elseif(name STREQUAL "tools")
    target_compile_options(${target} PRIVATE $<$<STREQUAL:${LEAT_SANITIZE},thread>:-O0>)
  endif()
endfunction()

function(leat_existing_sources out)
  set(existing "")
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(EXISTS ${path})
      list(APPEND existing ${path})
    else()
      message(FATAL_ERROR "${path} is listed and does not exist")
    endif()
  endforeach()
  set(${out} ${existing} PARENT_SCOPE)
endfunction()

function(leat_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OUTSIDE_LIBRARY" "PRECOMPILED;TOGETHER;PART_OF;COMPONENT" "SOURCES;ALONE;LINKS;HEADERS")
  leat_existing_sources(sources ${arg_SOURCES} ${arg_ALONE})
  if(sources)
    add_library(leat_${name} OBJECT ${sources})
    if(NOT arg_OUTSIDE_LIBRARY AND NOT LEAT_EXPORT_INTERNALS)
      set(arg_TOGETHER 8)
    endif()
    leat_unity(leat_${name} "${arg_TOGETHER}" ${arg_ALONE})
    set_target_properties(leat_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(NOT arg_OUTSIDE_LIBRARY)
      leat_hidden(leat_${name})
    endif()
    target_link_libraries(leat_${name} PUBLIC ${arg_LINKS} ${arg_HEADERS} Boost::headers Threads::Threads
      PRIVATE leat_flags)
    if(arg_PART_OF)
      target_link_libraries(leat_${name} PUBLIC leat_${arg_PART_OF})
      set_property(GLOBAL APPEND PROPERTY leat_parts_of_${arg_PART_OF} ${name})
    endif()
    if(arg_PRECOMPILED)
      leat_precompile(leat_${name} ${arg_PRECOMPILED})
    endif()
  else()
    add_library(leat_${name} INTERFACE)
    target_link_libraries(leat_${name} INTERFACE ${arg_LINKS} ${arg_HEADERS} Boost::headers Threads::Threads)
  endif()
  if(NOT arg_OUTSIDE_LIBRARY)
    set_property(GLOBAL APPEND PROPERTY leat_modules ${name})
    set_property(GLOBAL APPEND PROPERTY leat_links ${arg_LINKS})
    set_property(GLOBAL APPEND PROPERTY leat_headers ${arg_HEADERS})
    if(sources)
      if(NOT arg_COMPONENT)
        set(arg_COMPONENT core)
      endif()
      set_property(GLOBAL APPEND PROPERTY leat_objects_of_${arg_COMPONENT} $<TARGET_OBJECTS:leat_${name}>)
    endif()
  endif()
endfunction()

function(leat_program target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OWN_COPY" "PRECOMPILED" "MODULES;SOURCES;LINKS")
  add_executable(${target} ${arg_SOURCES})
  get_property(modules GLOBAL PROPERTY leat_modules)
  if("ALL" IN_LIST arg_MODULES)
    list(REMOVE_ITEM arg_MODULES ALL)
    list(APPEND arg_MODULES ${modules})
  endif()
  if(BUILD_SHARED_LIBS AND LEAT_EXPORT_INTERNALS AND NOT arg_OWN_COPY)
    # All of the library at once, which is linked once for all programs.
    list(REMOVE_ITEM arg_MODULES ${modules})
    get_property(headers GLOBAL PROPERTY leat_headers)
    get_property(links GLOBAL PROPERTY leat_links)
    list(REMOVE_DUPLICATES headers)
    list(REMOVE_DUPLICATES links)
    list(APPEND arg_LINKS leat ${links} ${headers})
  elseif("stages" IN_LIST arg_MODULES AND TARGET leat_kernels)
    list(APPEND arg_MODULES kernels core_kernels)
  endif()
  foreach(module IN LISTS arg_MODULES)
    get_property(parts GLOBAL PROPERTY leat_parts_of_${module})
    list(APPEND arg_MODULES ${parts})
  endforeach()
  list(REMOVE_DUPLICATES arg_MODULES)
  list(TRANSFORM arg_MODULES PREPEND leat_)
  target_link_libraries(${target} PRIVATE ${arg_MODULES} ${arg_LINKS} Boost::headers Threads::Threads leat_flags)
  if(arg_PRECOMPILED)
    leat_precompile(${target} ${arg_PRECOMPILED})
  endif()
endfunction()

function(leat_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "EACH_ALONE;OWN_COPY" "LONG;TOGETHER;SANITIZED;WITH_THREADS"
    "MODULES;SOURCES;ALONE;LINKS;LABELS;ENVIRONMENT;SERIAL;THREADED")
  leat_existing_sources(sources ${arg_SOURCES} ${arg_ALONE})
  if(arg_THREADED AND LEAT_SANITIZE STREQUAL "thread")
    list(REMOVE_ITEM arg_THREADED NONE)
    set(arg_SERIAL "")
    set(sources "")
    if(arg_THREADED)
      leat_existing_sources(sources ${arg_THREADED})
    endif()
  endif()
  if(NOT sources)
    return()
  endif()
  set(filter "")
  if(arg_WITH_THREADS AND LEAT_SANITIZE STREQUAL "thread")
    set(filter TEST_FILTER "${arg_WITH_THREADS}")
  elseif(arg_SANITIZED AND LEAT_SANITIZE)
    set(filter TEST_FILTER "${arg_SANITIZED}")
  endif()
  set(own_copy "")
  if(arg_OWN_COPY)
    set(own_copy OWN_COPY)
  endif()
  leat_program(${name}_tests ${own_copy} MODULES ${arg_MODULES}
    SOURCES ${sources} ${PROJECT_SOURCE_DIR}/tests/support/sanitizer_options.cpp
    LINKS ${arg_LINKS} GTest::gmock_main PRECOMPILED tests)
  leat_unity(${name}_tests "${arg_TOGETHER}" ${arg_ALONE})
  if(filter)
    add_test(NAME ${name}.all COMMAND ${name}_tests --gtest_brief=1 CONFIGURATIONS soak)
    set_tests_properties(${name}.all PROPERTIES LABELS "${name};${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}")
  endif()
  if(NOT arg_EACH_ALONE)
    set(chosen *)
    if(filter)
      list(GET filter 1 chosen)
    endif()
    foreach(serial ${arg_SERIAL})
      add_test(NAME ${name}.${serial} COMMAND ${name}_tests --gtest_filter=${serial})
      set_tests_properties(${name}.${serial} PROPERTIES LABELS "${name};${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}" RUN_SERIAL ON)
      if(chosen MATCHES -)
        string(APPEND chosen :${serial})
      else()
        string(APPEND chosen -${serial})
      endif()
    endforeach()
    # One test for ctest, which names those that fail; skipped where none was run. The silence is that of one test.
    add_test(NAME ${name}.in_one_process COMMAND ${PROJECT_SOURCE_DIR}/scripts/in_one_process 120
      ${CMAKE_CURRENT_BINARY_DIR}/${name}_tests.log $<TARGET_FILE:${name}_tests> --gtest_filter=${chosen})
    set_tests_properties(${name}.in_one_process PROPERTIES LABELS "${name};${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}"
      TIMEOUT 1500 SKIP_REGULAR_EXPRESSION "_tests: 0 passed, 0 failed")
    if(arg_LONG)
      set_tests_properties(${name}.in_one_process PROPERTIES COST ${arg_LONG})
    endif()
    return()
  endif()
  # PRE_TEST: the list of tests is asked for by ctest, so that a build never runs what it has just built.
  # A parameter's value has no place in a name: of a struct GoogleTest prints its bytes, with pointers that differ each time.
  gtest_discover_tests(${name}_tests DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 TEST_PREFIX "${name}." NO_PRETTY_VALUES
    ${filter})
  # Not by gtest_discover_tests(PROPERTIES): it takes a list apart and keeps the first value only.
  set(properties ${CMAKE_CURRENT_BINARY_DIR}/${name}_tests_properties.cmake)
  file(GENERATE OUTPUT ${properties} CONTENT
    "if(${name}_tests_TESTS)
  set_tests_properties(\${${name}_tests_TESTS} PROPERTIES LABELS [==[${name};${arg_LABELS}]==] ENVIRONMENT [==[${arg_ENVIRONMENT}]==])
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${properties})
endfunction()

function(leat_run_as_test target label)
  add_test(NAME ${label}.${target} COMMAND ${target} ${ARGN})
  set_tests_properties(${label}.${target} PROPERTIES LABELS ${label})
endfunction()

function(leat_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;ARGS;LINKS")
  leat_existing_sources(sources ${name}.cpp ${arg_SOURCES})
  if(sources)
    leat_program(${name} MODULES ALL SOURCES ${sources} LINKS ${arg_LINKS} benchmark::benchmark PRECOMPILED library)
    leat_run_as_test(${name} benchmarks ${arg_ARGS})
  endif()
endfunction()
