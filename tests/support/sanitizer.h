#pragma once
// What tests cannot ask for in a program that is built with sanitizers.

#if defined(__has_feature)  // Clang
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1  // as GCC says it
#endif
#endif

namespace difftape::test {

/// Whether freed memory is kept for a while, to find what is read after its end.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kKeepsFreedMemory = true;
#else
inline constexpr bool kKeepsFreedMemory = false;
#endif

}  // namespace difftape::test
