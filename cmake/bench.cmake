# The benchmarks, in float: bench_kernels (Google Benchmark) and bench_step (whole training steps).
find_package(benchmark REQUIRED)

add_executable(bench_kernels ${PROJECT_SOURCE_DIR}/bench/kernels.cpp)
difftape_flags(bench_kernels)
target_link_libraries(bench_kernels PRIVATE difftape_f32 benchmark::benchmark)

add_executable(bench_step ${PROJECT_SOURCE_DIR}/bench/step.cpp)
difftape_flags(bench_step)
target_link_libraries(bench_step PRIVATE difftape_f32)
