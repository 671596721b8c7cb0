#!/usr/bin/env bash
# bench/run.sh BIN_DIR [NAME...]: runs the named benchmarks (default: step attention kernels) and
# keeps what they print under bench/results. With DIFFTAPE_PEER_PYTHON, a Python that has PyTorch, `peers` runs
# the same model there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=$1
shift
[ $# -gt 0 ] || set -- step attention kernels ${DIFFTAPE_PEER_PYTHON:+peers}

run() {
  case "$1" in
    step)
      "$bin/bench_step" configs/bench_384.yaml
      echo
      "$bin/bench_step" configs/bench_384.yaml --set model.match=parameters
      echo
      "$bin/bench_step" configs/base/tiny.yaml
      ;;
    attention) "$bin/bench_attention" ;;
    kernels) "$bin/bench_kernels" --benchmark_counters_tabular=true ;;
    peers)
      "$bin/bench_step" configs/bench_384.yaml --kinds softmax
      "${DIFFTAPE_PEER_PYTHON:?set it to a Python with PyTorch}" bench/peers/torch_gpt.py
      "$DIFFTAPE_PEER_PYTHON" bench/peers/torch_gpt.py --compile
      "$bin/bench_step" configs/bench_384.yaml --kinds softmax
      ;;
    *)
      echo "bench: no benchmark '$1'; there are step, attention, kernels, peers" >&2
      exit 64
      ;;
  esac
}

for name in "$@"; do
  run "$name" | tee "bench/results/$name.txt"
done
