#!/usr/bin/env bash
# bench/run.sh BIN_DIR [SUITE...]: runs the named suites (default: all) and writes their output to
# bench/results/SUITE.txt. DIFFTAPE_PEER_PYTHON names a Python with PyTorch, DIFFTAPE_LLMC a
# checkout of llm.c; without them these peers are left out. BENCH_ROUNDS sets the rounds of every
# benchmark.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=$1
shift
suites=(step attention kernels decode prefill generate peers small sweep processes bf16 long start
  checkpoint)
[ $# -gt 0 ] || set -- "${suites[@]}"

# rounds N: the default of a benchmark, unless BENCH_ROUNDS is set
rounds() { echo --rounds "${BENCH_ROUNDS:-$1}"; }

run() {
  case "$1" in
    step)
      local three=softmax,diff_v1,diff_v2
      "$bin/bench_peers" step configs/bench/d384.yaml --candidates ours --kinds $three \
        --set model.match_params=true --seq 256,2048 --tokens 2048 $(rounds 10)
      echo
      "$bin/bench_peers" step configs/bench/d128.yaml --candidates ours --kinds $three \
        --set model.match_params=true $(rounds 10)
      echo
      "$bin/bench_peers" step configs/bench/d768.yaml --candidates ours $(rounds 5)
      ;;
    attention)
      "$bin/bench_attention" $(rounds 15)
      echo
      "$bin/bench_peers" attention --seq 256,512,1024,2048,4096 $(rounds 10)
      ;;
    kernels)
      "$bin/bench_kernels" --benchmark_repetitions="${BENCH_ROUNDS:-5}" --benchmark_min_time=0.1 \
        --benchmark_enable_random_interleaving=true
      ;;
    decode)
      "$bin/bench_decode" configs/bench/d384.yaml --set model.match_params=true $(rounds 7)
      ;;
    prefill) "$bin/bench_prefill" configs/bench/d384.yaml --seq 2048,8192 $(rounds 5) ;;
    generate)
      "$bin/bench_peers" generate configs/base/text_0.9m.yaml --kinds softmax,diff_v2 --tokens 200 \
        --set model.match_params=true --steps 1 --warmup 1 $(rounds 7)
      ;;
    peers)
      "$bin/bench_peers" step configs/bench/d384.yaml $(rounds 7)
      ;;
    small) "$bin/bench_peers" step configs/bench/d128.yaml --steps 10 $(rounds 10) ;;
    sweep)
      "$bin/difftape" doctor
      "${DIFFTAPE_PEER_PYTHON:-python3}" bench/peers/sweep.py "$bin/difftape" $(rounds 1)
      ;;
    bf16)
      for config in configs/bench/d384.yaml configs/bench/d768.yaml; do
        "$bin/bench_peers" step "$config" --candidates ours,ours-bf16 $(rounds 7)
        echo
      done
      ;;
    long)
      "$bin/bench_peers" step configs/bench/d384.yaml --candidates ours --kinds softmax,diff_v1,diff_v2 \
        --seq 512,1024,2048,4096,8192 --tokens 8192 --steps 1 --warmup 1 $(rounds 7)
      ;;
    processes)
      "$bin/bench_peers" step configs/bench/d384.yaml --candidates ours --processes 2 $(rounds 10)
      echo
      OMP_NUM_THREADS=1 "$bin/bench_peers" step configs/bench/d384.yaml --candidates ours $(rounds 5)
      ;;
    start)
      "$bin/bench_peers" start configs/base/text_0.9m.yaml --candidates ours,torch,torch-compile $(rounds 5)
      ;;
    checkpoint) bench/checkpoint.sh "$bin" "${BENCH_ROUNDS:-7}" ;;
    *)
      echo "bench: no suite '$1'; there are ${suites[*]}" >&2
      exit 64
      ;;
  esac
}

trap 'rm -f bench/results/.*.txt' EXIT  # what a failed suite printed is no result
for name in "$@"; do
  run "$name" | tee "bench/results/.$name.txt"
  mv "bench/results/.$name.txt" "bench/results/$name.txt"
done
