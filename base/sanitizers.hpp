// Which sanitizer this build has: LEAT_ADDRESS_SANITIZER and LEAT_THREAD_SANITIZER are 0 or 1.
#pragma once

#if defined(__has_feature)  // clang, GCC >= 14
#define LEAT_HAS_FEATURE(name) __has_feature(name)
#else
#define LEAT_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || LEAT_HAS_FEATURE(thread_sanitizer)
#define LEAT_THREAD_SANITIZER 1
#else
#define LEAT_THREAD_SANITIZER 0
#endif

#if defined(__SANITIZE_ADDRESS__) || LEAT_HAS_FEATURE(address_sanitizer)
#define LEAT_ADDRESS_SANITIZER 1
#else
#define LEAT_ADDRESS_SANITIZER 0
#endif

#undef LEAT_HAS_FEATURE
