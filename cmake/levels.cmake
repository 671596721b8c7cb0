# Programs that run on every x86-64 processor, each at its full speed. With DIFFTAPE_LEVELS, all code
# of a program, main() included, is in a library, lib/difftape/libdifftape.so. The loader prefers the
# file in lib/difftape/glibc-hwcaps/LEVEL of the highest level that the processor supports. The first
# level is the one of this build. Each other level is a separate build of the library, so code for
# two levels never meets in one process.
set(DIFFTAPE_LEVELS "" CACHE STRING "levels of x86-64 to build for, x86-64;x86-64-v3;x86-64-v4")
if(NOT DIFFTAPE_LEVELS OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  return()
endif()
if(DIFFTAPE_NATIVE)
  message(FATAL_ERROR "DIFFTAPE_LEVELS: DIFFTAPE_NATIVE is ON, but must be OFF")
endif()
list(GET DIFFTAPE_LEVELS 0 DIFFTAPE_LEVEL)
set(DIFFTAPE_LIBRARIES ${PROJECT_BINARY_DIR}/lib/difftape)
if(NOT CMAKE_LIBRARY_OUTPUT_DIRECTORY)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${DIFFTAPE_LIBRARIES})
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# difftape_load_library(PROGRAM LIBRARY MAIN): makes PROGRAM load a library of MAIN and LIBRARY.
function(difftape_load_library program library main)
  set(shared ${library}_shared)
  add_library(${shared} SHARED ${main})
  difftape_flags(${shared})
  set_target_properties(${shared} PROPERTIES OUTPUT_NAME ${program} CXX_VISIBILITY_PRESET default)
  target_link_libraries(${shared} PRIVATE ${library})
  target_link_options(${shared} PRIVATE -s -Wl,-z,defs,--exclude-libs,ALL)  # exports main()
  set(empty ${PROJECT_BINARY_DIR}/generated/program.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "")
  add_executable(${program} ${empty})
  target_link_libraries(${program} PRIVATE ${shared})
  set_target_properties(${program} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib/difftape")
endfunction()

# Builds and installs the libraries of all levels.
function(difftape_install_levels)
  include(ExternalProject)
  foreach(name CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER CMAKE_CXX_FLAGS DIFFTAPE_NATIVE DIFFTAPE_LIBXSMM
      DIFFTAPE_MPI DIFFTAPE_WERROR)
    list(APPEND settings -D ${name}=${${name}})
  endforeach()
  set(others ${DIFFTAPE_LEVELS})
  list(REMOVE_AT others 0)
  foreach(level IN LISTS others)
    ExternalProject_Add(difftape_${level} SOURCE_DIR ${PROJECT_SOURCE_DIR}
      BINARY_DIR ${PROJECT_BINARY_DIR}/${level}
      CMAKE_ARGS ${settings} -D DIFFTAPE_TESTS=OFF -D DIFFTAPE_LEVELS=${level}
        -D CMAKE_LIBRARY_OUTPUT_DIRECTORY=${DIFFTAPE_LIBRARIES}/glibc-hwcaps/${level}
      BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR>
        --target difftape_f32_shared difftape_f64_shared
      INSTALL_COMMAND "" BUILD_ALWAYS ON USES_TERMINAL_BUILD ON DEPENDS difftape difftape-f64)
  endforeach()
  install(DIRECTORY ${DIFFTAPE_LIBRARIES} DESTINATION lib COMPONENT program)
endfunction()
