// Refuses, in words, a compiler that would miscompile what includes leat, or fail in the middle of it.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "leat needs C++20 or later: add -std=c++20, or target_compile_features(<target> PRIVATE cxx_std_20)"
#endif

#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && __GNUC__ < 13
#error "leat needs GCC 13 or later, or clang: GCC before 13 miscompiles coroutines without a warning"
#endif

#if !defined(__cpp_exceptions)
#error "leat reports errors by exceptions: compile what includes it without -fno-exceptions"
#endif

#include <version>
#ifdef _LIBCPP_VERSION
#error "leat is built with libstdc++: compile what includes it without -stdlib=libc++"
#endif
