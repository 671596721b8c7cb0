# One test program a precision. Kernels are tested in both, proofs in double, what a user touches in float.
find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)
include(GoogleTest)

# add_difftape_tests(NAME PRECISION LIBRARY FOLDER...): the program difftape_tests_NAME.
function(add_difftape_tests name precision library)
  set(globs ${ARGN})
  list(TRANSFORM globs PREPEND ${PROJECT_SOURCE_DIR}/tests/)
  list(TRANSFORM globs APPEND /*.cpp)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${globs})
  if("train" IN_LIST ARGN)  # derivatives need double
    list(FILTER sources EXCLUDE REGEX "/tests/train/app/gradcheck/")
  endif()
  set(target difftape_tests_${name})
  add_executable(${target} ${sources})
  difftape_flags(${target})
  target_compile_options(${target} PRIVATE -O1)  # the library is what is optimised
  target_link_libraries(${target} PRIVATE ${library} GTest::gmock GTest::gtest_main rapidcheck)
  target_precompile_headers(${target} PRIVATE <gtest/gtest.h> <gmock/gmock.h> <string> <vector> <cmath>)
  target_compile_definitions(${target} PRIVATE DIFFTAPE_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if("train" IN_LIST ARGN)  # these run both programs
    target_compile_definitions(${target} PRIVATE
      DIFFTAPE_TEST_PROGRAM="$<TARGET_FILE:difftape>"
      DIFFTAPE_TEST_PROGRAM_F64="$<TARGET_FILE:difftape-f64>")
    add_dependencies(${target} difftape difftape-f64)
  endif()
  gtest_discover_tests(${target} TEST_PREFIX ${precision}. DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT 300 ENVIRONMENT "OMP_NUM_THREADS=1;GOMP_SPINCOUNT=10000")  # tests of threads set their own
endfunction()

add_difftape_tests(f32 f32 difftape_f32 support core layers/step train golden structure)
add_difftape_tests(f64 f64 difftape_kernel_f64 support core autograd layers optim)
add_difftape_tests(proofs_f64 f64 difftape_f64 support golden train/app/gradcheck)

# The races of bench/, with contestants written in the shell.
file(GLOB bench_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/bench/*.cpp)
set(bench_sources race.cpp process.cpp standings.cpp measure.cpp)
list(TRANSFORM bench_sources PREPEND ${PROJECT_SOURCE_DIR}/bench/)
add_executable(difftape_tests_bench ${bench_tests} ${bench_sources})
difftape_flags(difftape_tests_bench)
target_compile_options(difftape_tests_bench PRIVATE -O1)
target_compile_definitions(difftape_tests_bench PRIVATE DIFFTAPE_BENCH_FLAGS="")
target_link_libraries(difftape_tests_bench PRIVATE difftape_f32 GTest::gmock GTest::gtest_main)
target_precompile_headers(difftape_tests_bench PRIVATE <gtest/gtest.h> <gmock/gmock.h> <string> <vector>)
gtest_discover_tests(difftape_tests_bench TEST_PREFIX bench. DISCOVERY_MODE PRE_TEST
  PROPERTIES TIMEOUT 300 ENVIRONMENT "OMP_NUM_THREADS=1;GOMP_SPINCOUNT=10000")

# The mutants of tests/mutants, not run: only that each still fits the sources.
add_test(NAME mutants.match_the_source COMMAND ${PROJECT_SOURCE_DIR}/tests/mutants/run.sh --check)
