# The benchmarks, in float: bench_kernels (Google Benchmark), bench_attention (fused kernels in
# turns) and bench_step (whole training steps).
find_package(benchmark REQUIRED)

foreach(name kernels attention step)
  add_executable(bench_${name}
    ${PROJECT_SOURCE_DIR}/bench/${name}.cpp ${PROJECT_SOURCE_DIR}/bench/measure.cpp)
  difftape_flags(bench_${name})
  target_link_libraries(bench_${name} PRIVATE difftape_f32)
endforeach()
target_link_libraries(bench_kernels PRIVATE benchmark::benchmark)
