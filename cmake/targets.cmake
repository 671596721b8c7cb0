# The libraries and programs. The same sources are built in two precisions: real is float in f32 and
# double in f64. difftape_kernel_<precision> is core, autograd, layers and optim without the
# gradient checks, which are difftape_gradcheck_<precision>. difftape_<precision> has the sources of
# train that its program needs.

function(difftape_flags target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -fno-math-errno
    -ffp-contract=off)  # sums and products are fused where the source says so (core/simd.h)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 reports its own AVX-512 intrinsics (bug 105593), fmt and std::string (bug 105329).
    target_compile_options(${target} PRIVATE
      -Wno-uninitialized -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-restrict)
  endif()
  if(DIFFTAPE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(DIFFTAPE_NATIVE)
    target_compile_options(${target} PRIVATE -march=native)
  elseif(DIFFTAPE_LEVEL)
    target_compile_options(${target} PRIVATE -march=${DIFFTAPE_LEVEL} -ftls-model=initial-exec)
  endif()
  if(DIFFTAPE_SANITIZE)
    target_compile_options(${target} PUBLIC
      -fsanitize=${DIFFTAPE_SANITIZE} -fno-omit-frame-pointer -UNDEBUG)
    target_link_options(${target} PUBLIC -fsanitize=${DIFFTAPE_SANITIZE})
  endif()
endfunction()

# The f64 build, which checks gradients, keeps assertions.
set(difftape_assertions_f64 -UNDEBUG)

# difftape_headers(NAME HEADER... LIBRARIES LIBRARY... [OPTIONS OPTION...]): compiles headers once
# per precision for all targets that call difftape_use_headers(TARGET NAME PRECISION) and have the
# same flags.
function(difftape_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES;OPTIONS")
  foreach(precision f32 f64)
    set(target ${name}_${precision})
    set(source ${PROJECT_BINARY_DIR}/generated/${target}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${source})
    difftape_flags(${target})
    target_compile_options(${target} PRIVATE ${arg_OPTIONS} ${difftape_assertions_${precision}})
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX ${arg_LIBRARIES})
    target_precompile_headers(${target} PRIVATE ${arg_UNPARSED_ARGUMENTS})
    set_target_properties(${target} PROPERTIES DIFFTAPE_OPTIONS "${arg_OPTIONS}")
  endforeach()
endfunction()

function(difftape_use_headers target name precision)
  get_target_property(options ${name}_${precision} DIFFTAPE_OPTIONS)
  target_compile_options(${target} PRIVATE ${options})
  target_precompile_headers(${target} REUSE_FROM ${name}_${precision})
endfunction()

set(common_headers <algorithm> <cmath> <cstdint> <functional> <map> <memory> <optional> <span>
  <string> <string_view> <vector> <fmt/format.h>)
difftape_headers(difftape_headers_kernel ${common_headers} <Eigen/Core>
  LIBRARIES Eigen3::Eigen fmt::fmt)
# Only numeric code is worth the compile time of full optimization.
set(little $<$<NOT:$<CONFIG:Debug>>:-O1>)
set(difftape_less_optimised)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # which then reports the moves of std::string (bug 105651)
  set(difftape_less_optimised -Wno-array-bounds -Wno-stringop-overread)
endif()
difftape_headers(difftape_headers_train ${common_headers}
  <filesystem> <fstream> <sstream> <fmt/ranges.h> <nlohmann/json.hpp>
  LIBRARIES fmt::fmt nlohmann_json::nlohmann_json OPTIONS ${little} ${difftape_less_optimised})

# difftape_sources(VARIABLE FOLDER...): the sources below the folders, without those of main().
function(difftape_sources variable)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE globs)
  list(TRANSFORM globs APPEND /*.cpp)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${globs})
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# Compiles the sources of each folder as one unit, so headers are read once. Names that are local to
# a file must therefore be unique within its folder.
function(difftape_by_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# The compile options of all libraries of a precision.
function(difftape_precision library precision)
  difftape_flags(${library})
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    PRIVATE ${PROJECT_BINARY_DIR})
  target_compile_features(${library} PUBLIC cxx_std_20)
  if(precision STREQUAL "f64")
    target_compile_definitions(${library} PUBLIC DIFFTAPE_F64=1)
    set_target_properties(${library} PROPERTIES CXX_CLANG_TIDY "")  # reads each source once
  endif()
  target_compile_options(${library} PUBLIC ${difftape_assertions_${precision}})
endfunction()

# difftape_library(NAME PRECISION SOURCE...): a static library in a precision.
function(difftape_library library precision)
  add_library(${library} STATIC ${ARGN})
  difftape_precision(${library} ${precision})
  # Programs include <difftape/core/tensor.h>; the headers themselves include "core/tensor.h".
  target_include_directories(${library} INTERFACE
    $<INSTALL_INTERFACE:include> $<INSTALL_INTERFACE:include/difftape>)
  # Programs must compile the headers with the library's flags: Eigen aligns memory by -march, and
  # the linker keeps one copy of an inline function, from either side.
  target_compile_options(${library} INTERFACE $<INSTALL_INTERFACE:-ffp-contract=off>)
  if(DIFFTAPE_NATIVE)
    target_compile_options(${library} INTERFACE $<INSTALL_INTERFACE:-march=native>)
  endif()
endfunction()

# The kernel does not depend on files, configurations or processes.
add_custom_target(difftape_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DBINARY_DIR=${PROJECT_BINARY_DIR}
    -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake
  BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/commit.h)
set_source_files_properties(core/platform.cpp PROPERTIES COMPILE_DEFINITIONS
  "DIFFTAPE_VERSION=\"${PROJECT_VERSION}\";DIFFTAPE_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\";DIFFTAPE_LEVEL=\"${DIFFTAPE_LEVEL}\"")
# A program for AVX-512 has code for units of bfloat16 in one file, and runs it where they exist.
if(DIFFTAPE_LEVEL STREQUAL "x86-64-v4")
  set_source_files_properties(core/tile_avx512_bf16.cpp PROPERTIES
    COMPILE_OPTIONS -mavx512bf16 SKIP_PRECOMPILE_HEADERS ON)
endif()
difftape_sources(kernel_sources core autograd layers optim)
set(gradcheck_sources ${kernel_sources})
list(FILTER kernel_sources EXCLUDE REGEX "/gradcheck")
list(FILTER gradcheck_sources INCLUDE REGEX "/gradcheck")
foreach(precision f32 f64)
  set(kernel difftape_kernel_${precision})
  difftape_library(${kernel} ${precision} ${kernel_sources})
  add_dependencies(${kernel} difftape_commit)
  target_include_directories(${kernel} SYSTEM PRIVATE ${RANDOM123_INCLUDE})
  target_link_libraries(${kernel} PUBLIC
    Eigen3::Eigen OpenMP::OpenMP_CXX difftape_xsmm fmt::fmt PkgConfig::XXHASH
    ${MPI_LINK_LIBRARIES})
  difftape_use_headers(${kernel} difftape_headers_kernel ${precision})

  set(gradcheck difftape_gradcheck_${precision})
  difftape_library(${gradcheck} ${precision} ${gradcheck_sources})
  target_link_libraries(${gradcheck} PUBLIC ${kernel})
  difftape_use_headers(${gradcheck} difftape_headers_kernel ${precision})
endforeach()

# The public headers: all headers of the kernel except its insides, which no public header includes,
# and train/app/program.h. `./dev docs` renders them.
file(GLOB_RECURSE public CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/*.h
  ${PROJECT_SOURCE_DIR}/autograd/*.h ${PROJECT_SOURCE_DIR}/layers/*.h ${PROJECT_SOURCE_DIR}/optim/*.h)
set(insides core/bf16 core/digest core/few_rows core/pack core/simd core/simd_functions core/softcap
  core/tile core/tile_registers core/attention/blocks core/attention/lanes core/attention/products
  autograd/gradcheck/op_cases autograd/gradcheck/compositions autograd/gradcheck/rounding)
list(TRANSFORM insides REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/\\1.h")
list(REMOVE_ITEM public ${insides})
list(APPEND public ${PROJECT_SOURCE_DIR}/train/app/program.h)
target_sources(difftape_kernel_f32 PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
  FILES ${public})
list(JOIN public " " headers)
add_custom_target(docs COMMAND ${CMAKE_COMMAND} -E env "HEADERS=${headers}" doxygen cmake/Doxyfile
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)

# Numeric sources of train, which are optimized like the kernel.
set(numeric run/data/near_duplicates run/data/sources run/data/windows run/data/tasks/backcopy
  run/inference/generate run/inference/validation
  run/loop/train_state study/compare/measures)
list(TRANSFORM numeric REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/train/\\1.cpp")
difftape_sources(numeric_modules train/run/diagnostics train/stats train/study/figures)
list(APPEND numeric ${numeric_modules})
foreach(source IN LISTS numeric)  # a wrong name would lose its flags silently
  if(NOT EXISTS ${source})
    message(FATAL_ERROR "cmake/targets.cmake: ${source} is not a file")
  endif()
endforeach()

# difftape_program(NAME PRECISION MAIN SOURCE...): the library difftape_<precision> of the sources,
# with numeric ones as separate objects, and the program.
function(difftape_program program precision main)
  set(library difftape_${precision})
  set(numbers difftape_numbers_${precision})
  set(plain ${ARGN})
  list(REMOVE_ITEM plain ${numeric})
  set(computing ${ARGN})
  list(REMOVE_ITEM computing ${plain})
  set(libraries difftape_kernel_${precision}
    yaml-cpp PkgConfig::HDF5 PkgConfig::SENTENCEPIECE $<LINK_ONLY:PkgConfig::SIMDJSON>
    $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:CLI11::CLI11>)
  add_library(${numbers} OBJECT ${computing})
  difftape_precision(${numbers} ${precision})
  difftape_use_headers(${numbers} difftape_headers_kernel ${precision})
  target_link_libraries(${numbers} PRIVATE ${libraries})
  difftape_library(${library} ${precision} ${plain})
  difftape_use_headers(${library} difftape_headers_train ${precision})
  difftape_by_folder(${library})
  target_sources(${library} PRIVATE $<TARGET_OBJECTS:${numbers}>)
  target_link_libraries(${library} PUBLIC ${libraries})
  if(DIFFTAPE_LEVEL)
    difftape_load_library(${program} ${library} ${main})
    return()
  endif()
  add_executable(${program} ${main})
  difftape_flags(${program})
  target_link_libraries(${program} PRIVATE ${library})
endfunction()

# The assembler embeds the HTML page of the report and the libraries inlined into it.
set(page ${PROJECT_SOURCE_DIR}/train/study/page)
file(GLOB page_files CONFIGURE_DEPENDS ${page}/page.html ${page}/css/*.css ${page}/js/*.js)
set_source_files_properties(train/study/page/frame.cpp PROPERTIES
  COMPILE_DEFINITIONS "DIFFTAPE_DYGRAPHS_DIR=\"${DYGRAPHS_DIR}\";DIFFTAPE_PAGE_DIR=\"${page}\""
  OBJECT_DEPENDS "${page_files}")
set(exchange ${PROJECT_SOURCE_DIR}/train/run/exchange)
set_source_files_properties(train/run/exchange/export.cpp PROPERTIES
  COMPILE_DEFINITIONS "DIFFTAPE_EXCHANGE_DIR=\"${exchange}\""
  OBJECT_DEPENDS
  "${exchange}/modeling_difftape.py;${exchange}/exported_readme.md;${exchange}/exported_documents.md")
set_source_files_properties(train/run/data/sources.cpp PROPERTIES
  COMPILE_DEFINITIONS "DIFFTAPE_EIGEN_HEADERS=\"${EIGEN_HEADERS}\"")

difftape_sources(train_sources train)
set(many_models ${train_sources})
list(FILTER many_models EXCLUDE REGEX "/train/app/(gradcheck/|commands_f64\\.)")  # difftape-f64 proves
difftape_program(difftape f32 train/app/main.cpp ${many_models})
# difftape-f64 trains, verifies and checks one model; only difftape compares many.
set(one_model ${train_sources})
list(FILTER one_model EXCLUDE REGEX
  "/train/study/|/(study|report|runs|config|data)_command|/app/(plan|commands_f32)\\.")
difftape_program(difftape-f64 f64 train/app/main.cpp ${one_model})
target_link_libraries(difftape_f64 PUBLIC difftape_gradcheck_f64)
if(CMAKE_CXX_CLANG_TIDY)
  # For the sources that only f64 has.
  list(REMOVE_ITEM one_model ${many_models})
  add_library(difftape_lint_f64 OBJECT EXCLUDE_FROM_ALL ${one_model})
  target_link_libraries(difftape_lint_f64 PRIVATE difftape_f64)
endif()
