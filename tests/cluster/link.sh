#!/usr/bin/env bash
# link.sh BIN_DIR [MBIT...]: takes steps of configs/bench/d128.yaml on two processes with one thread
# each. They are in two network namespaces, whose link tc limits to each rate. Compares the median
# with the prediction of `difftape plan`. Needs root, iproute2 and Open MPI.
set -euo pipefail
bin=$(readlink -f "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
shift
[ $# -gt 0 ] || set -- 25 50 100 200 400 1600
export OMP_NUM_THREADS=1
config=configs/bench/d128.yaml
spaces=(difftape_a difftape_b)
scratch=$(mktemp -d)
clean() { rm -rf "$scratch"; for space in "${spaces[@]}"; do ip netns del "$space" 2>/dev/null || true; done; }
trap clean EXIT
for space in "${spaces[@]}"; do ip netns add "$space"; done
ip link add veth netns "${spaces[0]}" type veth peer name veth netns "${spaces[1]}"
for i in 0 1; do
  ip -n "${spaces[i]}" addr add "10.77.0.$((i + 1))/24" dev veth
  ip -n "${spaces[i]}" link set veth up
  ip -n "${spaces[i]}" link set lo up
done
# mpirun in the first namespace starts its daemon in the second one as on another host.
printf '#!/bin/sh\nshift\nexec ip netns exec %s sh -c "$*"\n' "${spaces[1]}" >"$scratch/agent"
chmod +x "$scratch/agent"

# median COMMAND...: seconds per step of a candidate of bench_peers
median() {
  printf 'step 3\nstep 11\n' | "$@" | tail -n 1 |
    sed 's/.*"seconds":\[\([^]]*\)\].*/\1/' | tr , '\n' | sort -g | sed -n 6p
}

step=("$bin/bench_serve" step "$config")
one=$(median "${step[@]}")
rate=$("$bin/difftape" plan "$config" --processes 1 | sed -n 's/.*computes \([0-9.]*\) GFLOP.*/\1/p')
echo "one process: $one s per step; plan measures $rate GFLOP/s"
printf '%8s %12s %12s\n' Mbit/s measured predicted
for mbit in "$@"; do
  for space in "${spaces[@]}"; do
    tc -n "$space" qdisc replace dev veth root tbf rate "${mbit}mbit" burst 256kb limit 16mb
  done
  measured=$(median ip netns exec "${spaces[0]}" mpirun --allow-run-as-root -n 2 \
    --host 10.77.0.1,10.77.0.2 --map-by node --bind-to none --mca plm_rsh_agent "$scratch/agent" \
    --mca btl tcp,self --mca btl_tcp_if_include veth --mca oob_tcp_if_include veth "${step[@]}")
  # A packet of 1514 bytes carries 1448 bytes, 0.956 of them.
  predicted=$("$bin/difftape" plan "$config" --processes 2 --rate "$rate" \
    --bandwidth "$(awk "BEGIN {print 0.956 * $mbit / 8000}")" | awk '$1 == "2" {print $2}')
  printf '%8s %12.3f %12.3f\n' "$mbit" "$measured" "$predicted"
done
