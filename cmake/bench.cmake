# The target `benchmarks`, built in float and only on request: bench_kernels (Google Benchmark),
# bench_attention (fused kernels, interleaved), bench_decode (generation token by token),
# bench_prefill (reading a prompt), bench_peers (interleaved training steps of processes) and
# bench_serve (the difftape process among them).
find_package(benchmark REQUIRED)

get_target_property(flags difftape_kernel_f32 COMPILE_OPTIONS)
list(FILTER flags EXCLUDE REGEX "^-W")
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
list(PREPEND flags ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}})
list(JOIN flags " " flags)

add_library(bench_common STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/measure.cpp)
difftape_flags(bench_common)
target_compile_definitions(bench_common PRIVATE DIFFTAPE_BENCH_FLAGS="${flags}")
target_link_libraries(bench_common PUBLIC difftape_f32)

add_custom_target(benchmarks)
function(add_bench name)
  set(sources ${ARGN})
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/bench/)
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${sources})
  add_dependencies(benchmarks bench_${name})
  difftape_flags(bench_${name})
  target_link_libraries(bench_${name} PRIVATE bench_common)
endfunction()

add_bench(kernels kernels.cpp attention_call.cpp)
target_link_libraries(bench_kernels PRIVATE benchmark::benchmark)
add_bench(attention attention.cpp attention_call.cpp)
add_bench(decode decode.cpp attention_call.cpp)
add_bench(prefill prefill.cpp)
add_bench(serve serve.cpp attention_call.cpp)
add_bench(peers peers.cpp candidates.cpp interleaved.cpp results_table.cpp)
target_compile_definitions(bench_peers PRIVATE
  DIFFTAPE_PEERS_DIR="${PROJECT_SOURCE_DIR}/bench/peers")
