// How the sanitizers run in every test program. Compiled in rather than set by ctest, so that a program run by hand, in
// a debugger or by scripts/soak behaves as it does in CI. The environment (ASAN_OPTIONS ...) still has the last word.

extern "C" {

// Declared here, as no header of theirs does so in every compiler that we build with.
const char* __asan_default_options();
const char* __ubsan_default_options();
const char* __tsan_default_options();

const char* __asan_default_options() {
  return "detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1";
}

const char* __ubsan_default_options() { return "print_stacktrace=1"; }

// A race is a failure at once, not a line in a log that passes.
const char* __tsan_default_options() { return "halt_on_error=1:second_deadlock_stack=1"; }

}  // extern "C"
