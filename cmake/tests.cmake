# One test program per precision. Kernels are tested in both, gradients in double, and everything
# that a user touches in float.
find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)

# Most of the cost of tests is their compilation.
set(least $<$<NOT:$<CONFIG:Debug>>:-Og> ${difftape_less_optimised})
difftape_headers(difftape_headers_tests ${common_headers} <filesystem> <fstream> <sstream>
  <gtest/gtest.h> <gmock/gmock.h> <nlohmann/json.hpp>
  LIBRARIES fmt::fmt GTest::gmock nlohmann_json::nlohmann_json OPTIONS ${least})

set(timeout 900)
if(DIFFTAPE_SANITIZE)
  set(timeout 3600)
endif()

# The tests that `./dev test` leaves out.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/slow.txt)
file(STRINGS ${PROJECT_SOURCE_DIR}/tests/slow.txt slow REGEX "^[^#]")
list(JOIN slow ":" slow)

# add_difftape_tests(NAME PRECISION LIBRARY SOURCE... [SHARDS N] [SLOW N] [AFTER FIXTURE]): the
# program difftape_tests_NAME, whose tests run in N processes, the slow ones in N further ones, and
# those that set the number of threads in one, alone: threads wait long for one that has no core.
function(add_difftape_tests name precision library)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "SHARDS;SLOW;AFTER" "")
  set(target difftape_tests_${name})
  add_executable(${target} ${arg_UNPARSED_ARGUMENTS})
  difftape_flags(${target})
  target_link_libraries(${target} PRIVATE ${library} GTest::gmock GTest::gtest_main rapidcheck)
  difftape_use_headers(${target} difftape_headers_tests ${precision})
  difftape_by_folder(${target})
  target_compile_definitions(${target} PRIVATE DIFFTAPE_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  difftape_test_shards(${name} ${arg_SHARDS} fast 1 "-*threads*:${slow}" "${arg_AFTER}")
  difftape_test_shards(${name} 1 threads 2 "*threads*" "${arg_AFTER}")
  if(arg_SLOW)
    difftape_test_shards(${name} ${arg_SLOW} slow 1 "${slow}:-*threads*" "${arg_AFTER}")
  endif()
endfunction()

# difftape_test_shards(NAME N LABEL CORES FILTER AFTER): the tests NAME.LABEL.1 to NAME.LABEL.N.
function(difftape_test_shards name count label cores filter after)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    math(EXPR number "${i} + 1")
    set(test ${name}.${label}.${number})
    add_test(NAME ${test} COMMAND difftape_tests_${name})
    set_tests_properties(${test} PROPERTIES LABELS ${label} TIMEOUT ${timeout} PROCESSORS ${cores}
      ENVIRONMENT "OMP_NUM_THREADS=1;GOMP_SPINCOUNT=10000;GTEST_FILTER=${filter};GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${i}")
    if(after)
      set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED ${after} LABELS slow)
    endif()
  endforeach()
endfunction()

difftape_sources(sources tests/support tests/core tests/autograd/rounding tests/layers/step
  tests/train tests/golden tests/structure tests/configs)
list(FILTER sources EXCLUDE REGEX "/tests/train/(app/gradcheck|stats)/")  # which need double
add_difftape_tests(f32 f32 difftape_f32 ${sources} SHARDS 16 SLOW 16)
target_link_libraries(difftape_tests_f32 PRIVATE difftape_gradcheck_f32)
target_compile_definitions(difftape_tests_f32 PRIVATE
  DIFFTAPE_TEST_PROGRAM="$<TARGET_FILE:difftape>"
  DIFFTAPE_TEST_PROGRAM_F64="$<TARGET_FILE:difftape-f64>")
add_dependencies(difftape_tests_f32 difftape difftape-f64)
difftape_sources(sources tests/support tests/core tests/autograd tests/layers tests/optim)
add_difftape_tests(f64 f64 difftape_gradcheck_f64 ${sources} SHARDS 8)
difftape_sources(sources tests/support tests/golden tests/train/app/gradcheck tests/train/stats)
add_difftape_tests(proofs_f64 f64 difftape_f64 ${sources} SHARDS 4 SLOW 2)

# Results that are equal on all processors are tested by a separate program, which ./dev portable
# builds for several processors.
add_difftape_tests(portable_f32 f32 difftape_f32 tests/portable/portable_test.cpp)
add_difftape_tests(portable_f64 f64 difftape_f64 tests/portable/portable_test.cpp)

# The interleaved benchmarks of bench/, with candidates written in the shell.
difftape_sources(sources tests/bench)
list(APPEND sources bench/candidates.cpp bench/interleaved.cpp bench/results_table.cpp bench/measure.cpp)
add_difftape_tests(bench f32 difftape_f32 ${sources})
target_compile_definitions(difftape_tests_bench PRIVATE DIFFTAPE_BENCH_FLAGS=""
  DIFFTAPE_PEERS_DIR="${PROJECT_SOURCE_DIR}/bench/peers")

# The installed program, and the programs of examples/, built against the installed libraries.
set(prefix ${PROJECT_BINARY_DIR}/installed)
set(examples ${PROJECT_BINARY_DIR}/examples)
add_test(NAME installed.cmake_install COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR}
  -DPREFIX=${prefix} -P ${PROJECT_SOURCE_DIR}/tests/examples/install.cmake)
add_test(NAME installed.find_package COMMAND ${CMAKE_CTEST_COMMAND}
  --build-and-test ${PROJECT_SOURCE_DIR}/examples ${examples} --build-generator ${CMAKE_GENERATOR}
  --build-options -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE})
set_tests_properties(installed.cmake_install PROPERTIES FIXTURES_SETUP prefix)
set_tests_properties(installed.find_package PROPERTIES FIXTURES_SETUP examples
  FIXTURES_REQUIRED prefix TIMEOUT ${timeout})
# If a library that it needs is missing, difftape is not found; with QUIET this is not an error.
set(consumer ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR}/tests/examples/optional
  -DCMAKE_PREFIX_PATH=${prefix} -B ${PROJECT_BINARY_DIR}/optional -G ${CMAKE_GENERATOR} --fresh)
add_test(NAME installed.is_found COMMAND ${consumer})
add_test(NAME installed.is_not_found_without_yaml COMMAND ${consumer}
  -DCMAKE_DISABLE_FIND_PACKAGE_yaml-cpp=TRUE)
add_test(NAME installed.is_not_found_without_hdf5
  COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_LIBDIR=none ${consumer})
set_tests_properties(installed.is_found PROPERTIES 
  PASS_REGULAR_EXPRESSION "found difftape ${PROJECT_VERSION}")
set_tests_properties(installed.is_not_found_without_yaml PROPERTIES
  PASS_REGULAR_EXPRESSION "no difftape: .*yaml-cpp")
set_tests_properties(installed.is_not_found_without_hdf5 PROPERTIES
  PASS_REGULAR_EXPRESSION "no difftape: .*hdf5")
set_tests_properties(installed.is_found installed.is_not_found_without_yaml
  installed.is_not_found_without_hdf5 PROPERTIES FIXTURES_REQUIRED prefix RESOURCE_LOCK optional)
set_tests_properties(installed.cmake_install installed.find_package installed.is_found
  installed.is_not_found_without_yaml installed.is_not_found_without_hdf5 PROPERTIES LABELS slow)
difftape_sources(sources tests/examples)
add_difftape_tests(installed f32 difftape_f32 ${sources} tests/train/app/program.cpp
  AFTER examples)
target_compile_definitions(difftape_tests_installed PRIVATE
  DIFFTAPE_TEST_PROGRAM="${prefix}/bin/difftape" DIFFTAPE_TEST_EXAMPLES="${examples}")

# Fault injection: a shim that is preloaded into the program kills runs or makes calls fail. A
# sanitizer must be preloaded before the shim.
if(NOT DIFFTAPE_SANITIZE)
  add_library(difftape_faults_shim MODULE ${PROJECT_SOURCE_DIR}/tests/faults/shim.cpp)
  difftape_flags(difftape_faults_shim)
  target_link_libraries(difftape_faults_shim PRIVATE ${CMAKE_DL_LIBS})
  difftape_sources(sources tests/faults)
  list(FILTER sources EXCLUDE REGEX "/shim\\.cpp$")
  add_difftape_tests(faults f32 difftape_f32 ${sources} tests/train/app/program.cpp SHARDS 3 SLOW 4)
  target_compile_definitions(difftape_tests_faults PRIVATE
    DIFFTAPE_TEST_PROGRAM="$<TARGET_FILE:difftape>"
    DIFFTAPE_TEST_PROGRAM_F64="$<TARGET_FILE:difftape-f64>"
    DIFFTAPE_FAULTS_SHIM="$<TARGET_FILE:difftape_faults_shim>")
  add_dependencies(difftape_tests_faults difftape difftape-f64 difftape_faults_shim)
endif()
