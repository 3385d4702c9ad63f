# Picks the compiler for the presets: clang++-19, else GCC >= 13, else another clang++ >= 17.
#
# Deliberately deaf to $CXX: a preset means the same build whoever types it. To choose another compiler, say
# `cmake --preset release -DCMAKE_CXX_COMPILER=g++-14`.
#
# GCC 15 comes after 14 and 13: 15.2 breaks destroying a coroutine inside await_suspend (GCC PR 121961).

if(NOT CMAKE_CXX_COMPILER)
  foreach(candidate clang++-19 g++-14 g++-13 g++-15 g++ clang++-20 clang++-21 clang++-18 clang++-17 clang++)
    find_program(LEAT_CXX_${candidate} ${candidate})
    mark_as_advanced(LEAT_CXX_${candidate})
    if(NOT LEAT_CXX_${candidate})
      continue()
    endif()
    execute_process(COMMAND ${LEAT_CXX_${candidate}} -dumpversion
      OUTPUT_VARIABLE candidate_version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(candidate MATCHES "^clang")
      set(candidate_version_min 17)
    else()
      set(candidate_version_min 13)
    endif()
    if(candidate_version VERSION_GREATER_EQUAL candidate_version_min)
      set(CMAKE_CXX_COMPILER ${LEAT_CXX_${candidate}} CACHE FILEPATH "The C++ compiler")
      break()
    endif()
  endforeach()
  if(NOT CMAKE_CXX_COMPILER)
    message(FATAL_ERROR "leat: no C++ compiler that can build coroutines was found. "
      "Install one: `apt-get install clang-19` (or g++-13 or newer), or run scripts/setup.")
  endif()
endif()
