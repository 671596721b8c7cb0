"""The protocol of a candidate in bench_peers (bench/README.md). A candidate describes itself once.
Then it reads requests "step N", runs N training steps and prints their times."""

import json
import pathlib
import sys
import time


def memory(key: str, process: int | str = "self") -> int:
    """Returns the memory of a process (default: this one) in bytes; 0 if unknown.

    `key` is VmRSS for the current memory or VmHWM for its peak.
    """
    status = pathlib.Path(f"/proc/{process}/status")
    for line in status.read_text().splitlines() if status.exists() else []:
        if line.startswith(key + ":"):
            return 1024 * int(line.split()[1])
    return 0


def seconds_of(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def serve(version: str, idle_bytes: int, step, parameters: int | None = None,
          peak_bytes=lambda: memory("VmHWM")) -> None:
    """Answers requests on standard input until it ends.

    `step()` runs one step and returns its seconds; `idle_bytes` is the memory before the model.
    """
    ready = {"version": version, "idle_bytes": idle_bytes}
    if parameters is not None:
        ready["parameters"] = parameters
    print(json.dumps(ready), flush=True)
    for line in sys.stdin:
        word, count = line.split()
        if word != "step" or int(count) < 1:
            sys.exit(f"standard input: {line.strip()!r} is not a request; write 'step N', N >= 1")
        seconds = [step() for _ in range(int(count))]
        print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes()}), flush=True)
