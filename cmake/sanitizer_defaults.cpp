// Options of the address sanitizer that programs have unless ASAN_OPTIONS says otherwise.

// LLVM's library is not instrumented. Its bump allocators, whose headers we compile with instrumentation, would poison
// memory here that the library then hands out without lifting the poison.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }
