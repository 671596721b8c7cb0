"""Compares event files, read with TensorBoard, with metrics.jsonl: every number once, rounded to float;
the configuration of the last start; one histogram of lambda per layer. Reads them with the Python
library of TensorBoard and through its server.

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

EVERYTHING = {"scalars": 0, "histograms": 0, "tensors": 0}


def logged(run):
    """Returns {name: [(step, float)]} of metrics.jsonl, and the names of lists."""
    numbers, lists = {}, set()
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        for name, value in row.items():
            if isinstance(value, list):
                lists.add(name)
            elif name != "step":
                numbers.setdefault(name, []).append((row["step"], numpy.float32(value)))
    return numbers, lists


def same(found, expected):
    return numpy.array_equal(numpy.array(found, float), numpy.array(expected, float), equal_nan=True)


def check_accumulator(run, numbers, layers):
    events = EventAccumulator(str(run), EVERYTHING).Reload()
    assert set(events.Tags()["scalars"]) == set(numbers), set(events.Tags()["scalars"]) ^ set(numbers)
    for name, expected in numbers.items():
        found = [(each.step, each.value) for each in events.Scalars(name)]
        assert same(found, expected), (name, found, expected)
    assert set(events.Tags()["histograms"]) == {f"{name}/histogram" for name in layers}
    for name in layers:
        histograms = events.Histograms(f"{name}/histogram")
        assert [(each.step, numpy.float32(each.histogram_value.sum / each.histogram_value.num)) for each in histograms] \
            == numbers[name], name
    shown = events.Tensors("config")[-1].tensor_proto.string_val[0].decode()
    assert "".join(line[4:] + "\n" for line in shown.splitlines()) == (run / "config.yaml").read_text()


def check_server(run, numbers, layers):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(run), "--port", str(port),
               "--samples_per_plugin", "scalars=100000,histograms=100000", "--load_fast", "true"]
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
            for name in layers:
                found = ask("histograms", "histograms", run=".", tag=f"{name}/histogram")
                steps = [step for _, step, _ in found]  # it keeps some steps, including the last
                assert steps == sorted(set(steps)) and steps[-1] == numbers[name][-1][0], (name, steps)
                assert set(steps) <= {step for step, _ in numbers[name]}, (name, steps)
            assert "num_layers" in ask("text", "text", run=".", tag="config")[-1]["text"]
        finally:
            server.terminate()


for argument in sys.argv[1:]:
    directory = pathlib.Path(argument)
    metrics, _ = logged(directory)
    lambdas = [name for name in metrics if name.startswith("attn/lambda/")]
    check_accumulator(directory, metrics, lambdas)
    check_server(directory, metrics, lambdas)
    files = len(list(directory.glob("events.out.tfevents.*")))
    print(f"{directory}: {files} files, {len(metrics)} metrics, {sum(map(len, metrics.values()))} numbers, "
          f"{len(lambdas)} histograms: as in metrics.jsonl")
