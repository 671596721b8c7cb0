# add_difftape(f32 difftape): the libraries difftape_kernel_f32 (core, autograd, layers, optim) and
# difftape_f32 (train), and the program difftape.
add_custom_target(difftape_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DBINARY_DIR=${PROJECT_BINARY_DIR}
    -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake
  BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/commit.h)

function(difftape_flags target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -fno-math-errno
    # GCC 12 reports its own AVX-512 intrinsics (bug 105593), fmt and std::string (bug 105329).
    -Wno-uninitialized -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-restrict)
  if(DIFFTAPE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(DIFFTAPE_NATIVE)
    target_compile_options(${target} PRIVATE -march=native)
  endif()
  if(DIFFTAPE_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${DIFFTAPE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${DIFFTAPE_SANITIZE})
  endif()
endfunction()

# difftape_library(NAME PRECISION FOLDER...): a static library of the sources below the folders.
function(difftape_library library precision)
  set(globs ${ARGN})
  list(TRANSFORM globs PREPEND ${PROJECT_SOURCE_DIR}/)
  list(TRANSFORM globs APPEND /*.cpp)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${globs})
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(${library} STATIC ${sources})
  difftape_flags(${library})
  target_include_directories(${library} PUBLIC ${PROJECT_SOURCE_DIR} PRIVATE ${PROJECT_BINARY_DIR})
  if(precision STREQUAL "f64")
    target_compile_definitions(${library} PUBLIC DIFFTAPE_F64=1)
  endif()
endfunction()

function(add_difftape precision program)
  # What computes: nothing here knows of files, configurations or processes.
  set(kernel difftape_kernel_${precision})
  difftape_library(${kernel} ${precision} core autograd layers optim)
  add_dependencies(${kernel} difftape_commit)
  target_include_directories(${kernel} SYSTEM PRIVATE ${RANDOM123_INCLUDE})
  set_source_files_properties(${PROJECT_SOURCE_DIR}/core/build_info.cpp PROPERTIES
    COMPILE_DEFINITIONS
      "DIFFTAPE_VERSION=\"${PROJECT_VERSION}\";DIFFTAPE_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\"")
  target_link_libraries(${kernel} PUBLIC
    Eigen3::Eigen OpenMP::OpenMP_CXX difftape_xsmm difftape_onednn fmt::fmt PkgConfig::XXHASH)
  target_precompile_headers(${kernel} PRIVATE
    <algorithm> <cmath> <cstdint> <functional> <memory> <span> <string> <string_view> <vector>
    <Eigen/Core> <fmt/format.h>)

  set(library difftape_${precision})
  difftape_library(${library} ${precision} train)
  target_compile_options(${library} PRIVATE -O1 -Wno-array-bounds -Wno-stringop-overread)  # what is optimised is where the numbers are
  file(GLOB numeric ${PROJECT_SOURCE_DIR}/train/run/diagnostics/*.cpp
    ${PROJECT_SOURCE_DIR}/train/stats/*.cpp)
  set_source_files_properties(${numeric} PROPERTIES
    COMPILE_OPTIONS -O3 SKIP_PRECOMPILE_HEADERS ON)
  # The HTML page of the report and the libraries inlined into it are read by the assembler.
  set(page ${PROJECT_SOURCE_DIR}/train/study/page)
  file(GLOB page_files CONFIGURE_DEPENDS ${page}/page.html ${page}/css/*.css ${page}/js/*.js)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/train/study/page/assets.cpp PROPERTIES
    COMPILE_DEFINITIONS "DIFFTAPE_DYGRAPHS_DIR=\"${DYGRAPHS_DIR}\";DIFFTAPE_PAGE_DIR=\"${page}\""
    OBJECT_DEPENDS "${page_files}")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/train/run/data/default_text.cpp PROPERTIES
    COMPILE_DEFINITIONS "DIFFTAPE_EIGEN_HEADERS=\"${EIGEN_HEADERS}\"")
  target_link_libraries(${library} PUBLIC
    ${kernel} yaml-cpp nlohmann_json::nlohmann_json CLI11::CLI11 PkgConfig::HDF5 PNG::PNG)
  target_precompile_headers(${library} PRIVATE
    <algorithm> <cmath> <cstdint> <functional> <memory> <span> <string> <string_view> <vector>
    <fmt/format.h> <nlohmann/json.hpp>)

  add_executable(${program} ${PROJECT_SOURCE_DIR}/train/app/main.cpp)
  difftape_flags(${program})
  target_link_libraries(${program} PRIVATE ${library})
endfunction()
