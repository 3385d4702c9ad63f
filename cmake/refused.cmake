# What leat cannot be built with, nor used with, since its coroutines are compiled by who includes them: included by leat's own
# build and, installed, by leat-config.cmake. Sets leat_refused to the reason, with what to do; empty where there is none.

set(leat_refused "")
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(leat_refused "leat reads through io_uring and builds on Linux only; this is ${CMAKE_SYSTEM_NAME}.")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  string(CONCAT leat_refused "leat: GCC ${CMAKE_CXX_COMPILER_VERSION} miscompiles coroutines silently (double frees, coroutines "
    "that never resume: GCC bugs 99576, 100611, 102217, 106188, fixed in 13). Install clang-19 or g++-13 "
    "(`apt-get install clang-19`) and configure in an empty build directory with -DCMAKE_CXX_COMPILER=clang++-19.")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
  string(CONCAT leat_refused "leat: clang ${CMAKE_CXX_COMPILER_VERSION} is older than 17, the oldest that leat is written for. "
    "Install clang-19 (`apt-get install clang-19`) and configure in an empty build directory with "
    "-DCMAKE_CXX_COMPILER=clang++-19.")
endif()
