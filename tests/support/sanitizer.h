#pragma once
// Properties of programs built with sanitizers.

#if defined(__has_feature)  // Clang
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1  // as GCC says it
#endif
#endif

namespace difftape::test {

/// True if freed memory is kept for a while to detect reads after its end.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kKeepsFreedMemory = true;
#else
inline constexpr bool kKeepsFreedMemory = false;
#endif

}  // namespace difftape::test
