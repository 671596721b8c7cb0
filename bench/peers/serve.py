"""The protocol of a candidate in bench_peers (bench/README.md): says once what it is, then takes
training steps when a line asks for them and answers with how long each took."""

import json
import pathlib
import sys
import time


def memory(key: str, process: int | str = "self") -> int:
    """Bytes of a process, by default this one: VmRSS now, VmHWM at most. 0 if not known."""
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
    """`step()` takes a step and returns its seconds; `idle_bytes`: memory before the model."""
    ready = {"version": version, "idle_bytes": idle_bytes}
    if parameters is not None:
        ready["parameters"] = parameters
    print(json.dumps(ready), flush=True)
    for line in sys.stdin:
        word, count = line.split()
        if word != "step" or int(count) < 1:
            sys.exit(f"serve: {line.strip()!r} is no request; need 'step N'")
        seconds = [step() for _ in range(int(count))]
        print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes()}), flush=True)
