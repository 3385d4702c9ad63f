// How the sanitizers run in every test program. Compiled in rather than set by ctest, so that a program run by hand, in
// a debugger or by scripts/soak behaves as it does in CI. The environment (ASAN_OPTIONS ...) still has the last word.

extern "C" {

// Declared here, as no header of theirs does so in every compiler that we build with.
const char* __asan_default_options();
const char* __ubsan_default_options();
const char* __tsan_default_options();
const char* __tsan_default_suppressions();

const char* __asan_default_options() {
  return "detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1";
}

const char* __ubsan_default_options() { return "print_stacktrace=1"; }

// A race is a failure at once, not a line in a log that passes.
const char* __tsan_default_options() { return "halt_on_error=1:second_deadlock_stack=1"; }

// An exception's reference count is counted down inside libstdc++.so, which is not instrumented: an exception that
// was caught on one thread and is freed on another, as with every std::future, looks like a race. So does its text, by its destructor.
// liburing maps and unmaps its rings by system calls of its own: memory of a ring that one thread has given back and the kernel gives to
// another thread's ring looks like a race, too. (That one ring has two threads the kernel itself refuses: IORING_SETUP_SINGLE_ISSUER.)
const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n"
         "race:std::runtime_error::~runtime_error\n"
         "race:anon_inode:[io_uring]\n";
}

}  // extern "C"
