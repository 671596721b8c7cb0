#!/usr/bin/env python3
"""Runs per hour of a sweep of short runs: `difftape sweep` against one PyTorch process per run.

Both train the six runs of configs/bench/sweep.yaml from start to end, with one run per core and
with one run at a time on all cores. Candidates take turns. A difftape run also reads text,
validates, logs and writes checkpoints; a PyTorch run only takes steps on random batches.
"""

import argparse
import importlib.util
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

KINDS, SEEDS, STEPS = ("softmax", "diff_v1", "diff_v2"), (1, 2), 300
SIZES = dict(d_model=64, layers=4, heads=4, d_ff=176, seq_len=256, batch=8, vocab=256)
HERE = pathlib.Path(__file__).resolve().parent
CORES = len(os.sched_getaffinity(0))


def finish(process: subprocess.Popen) -> None:
    if process.wait() != 0:
        sys.exit(f"exit code {process.returncode}: {' '.join(process.args)}")


def start(command: list, threads: int) -> subprocess.Popen:
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    return subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.DEVNULL)


def difftape(program: str, jobs: int) -> None:
    runs = tempfile.mkdtemp(prefix="difftape_bench_sweep_")
    config = HERE.parent.parent / "configs/bench/sweep.yaml"
    command = [program, "sweep", str(config), "--out", f"{runs}/sweep", "--jobs", str(jobs)]
    finish(start(command, CORES // jobs))
    shutil.rmtree(runs)


def torch(flags: list, jobs: int) -> None:
    sizes = [text for name, value in SIZES.items()
             for text in (f"--{name.replace('_', '-')}", str(value))]
    runs = [(kind, seed) for seed in SEEDS for kind in KINDS]
    active = []
    while runs or active:
        while runs and len(active) < jobs:
            kind, seed = runs.pop(0)
            threads = CORES // jobs
            command = [sys.executable, str(HERE / "torch_gpt.py"), "--kind", kind, "--seed",
                       str(seed), "--threads", str(threads), *sizes, *flags]
            process = start(command, threads)
            process.stdin.write(f"step {STEPS}\n")
            process.stdin.close()
            active.append(process)
        for process in [p for p in active if p.poll() is not None]:
            finish(process)
            active.remove(process)
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the difftape program")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    has_torch = importlib.util.find_spec("torch") is not None
    if not has_torch:
        print("PyTorch is left out: set DIFFTAPE_PEER_PYTHON to a Python that has it")
    candidates = {}
    for jobs in sorted({CORES, 1}, reverse=True):
        layout = f"{jobs} at a time, {CORES // jobs} thread{'s' if jobs < CORES else ''} each"
        candidates[f"difftape, {layout}"] = lambda jobs=jobs: difftape(arguments.program, jobs)
        for name, flags in (("eager", []), ("compiled", ["--compile"])) if has_torch else ():
            candidates[f"PyTorch {name}, {layout}"] = \
                lambda jobs=jobs, flags=flags: torch(flags, jobs)
    seconds = {name: [] for name in candidates}
    runs = len(KINDS) * len(SEEDS)
    for round_number in range(1, arguments.rounds + 1):
        for name, run in candidates.items():
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
            print(f"round {round_number}: {name}: {seconds[name][-1]:.1f} s", flush=True)
    first = seconds[next(iter(seconds))]
    print(f"\n{runs} runs of {STEPS} steps, {CORES} cores\n")
    print(f"{'candidate':<44}{'seconds':>9}{'runs/hour':>11}{'speed, first = 1':>18}")
    for name, times in seconds.items():
        ratio = statistics.median(mine / other for mine, other in zip(first, times))
        median = statistics.median(times)
        print(f"{name:<44}{median:>9.1f}{3600 * runs / median:>11.0f}{ratio:>18.3f}")


if __name__ == "__main__":
    main()
