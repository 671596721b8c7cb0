# A toolchain file: programs for 64-bit ARM, with the libraries of a Debian of that architecture in
# DIFFTAPE_SYSROOT (./dev aarch64 makes it). Tests run under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DIFFTAPE_SYSROOT)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT ${DIFFTAPE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(what LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${what} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${DIFFTAPE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${DIFFTAPE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${DIFFTAPE_SYSROOT}/usr/share/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${DIFFTAPE_SYSROOT})
