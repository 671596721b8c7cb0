"""Compares event files, read with TensorBoard, with metrics.jsonl: every number once, rounded to float.
Reads them with the Python library of TensorBoard and through its server.

    difftape train configs/variants/diff_v2.yaml --set log.tensorboard=true --set train.steps=60 --out runs/events
    python tests/train/run/records/read_with_tensorboard.py runs/events    # needs tensorboard 2.21.0
"""
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

EVERYTHING = {"scalars": 0}


def logged(run):
    """Returns {name: [(step, float)]} of metrics.jsonl."""
    numbers = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        for name, value in row.items():
            if name != "step":
                numbers.setdefault(name, []).append((row["step"], numpy.float32(value)))
    return numbers


def same(found, expected):
    return numpy.array_equal(numpy.array(found, float), numpy.array(expected, float), equal_nan=True)


def check_accumulator(run, numbers):
    events = EventAccumulator(str(run), EVERYTHING).Reload()
    assert set(events.Tags()["scalars"]) == set(numbers), set(events.Tags()["scalars"]) ^ set(numbers)
    for name, expected in numbers.items():
        found = [(each.step, each.value) for each in events.Scalars(name)]
        assert same(found, expected), (name, found, expected)


def check_server(run, numbers):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(run), "--port", str(port),
               "--samples_per_plugin", "scalars=100000", "--load_fast", "true"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        def ask(plugin, what, **arguments):
            url = f"http://localhost:{port}/data/plugin/{plugin}/{what}?{urllib.parse.urlencode(arguments)}"
            with urllib.request.urlopen(url) as answer:
                return json.load(answer)

        try:
            for _ in range(60):
                time.sleep(0.5)
                try:
                    if set(ask("scalars", "tags").get(".", {})) == set(numbers):
                        break
                except OSError:
                    pass
            for name, expected in numbers.items():
                found = [(step, value) for _, step, value in ask("scalars", "scalars", run=".", tag=name)]
                assert same(found, expected), (name, found, expected)
        finally:
            server.terminate()


for argument in sys.argv[1:]:
    directory = pathlib.Path(argument)
    metrics = logged(directory)
    check_accumulator(directory, metrics)
    check_server(directory, metrics)
    files = len(list(directory.glob("events.out.tfevents.*")))
    print(f"{directory}: {files} files, {len(metrics)} metrics, {sum(map(len, metrics.values()))} numbers: as in "
          "metrics.jsonl")
