#!/usr/bin/env python3
"""Makes the reference files of this folder, or checks a grads.h5 that difftape wrote.

  make_golden.py --generate [CASE...] [--out DIR]   writes <case>.h5 for each, or for all cases
  make_golden.py --check FILE.h5...                 recomputes each; exits 1 above the tolerance
"""

import argparse
import dataclasses
import pathlib
import sys

import h5py
import numpy as np
import torch

import cases
import oracle
from spec import ModelSpec

TOLERANCES = {np.dtype("float64"): 1e-12, np.dtype("float32"): 1e-5}


def tensors(arrays: dict) -> dict:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def generate(name: str, out: pathlib.Path) -> None:
    config = cases.config(name)
    spec = ModelSpec.from_yaml(config)
    rng = np.random.default_rng([cases.SEED, list(cases.CASES).index(name)])
    weights = cases.draw_weights(spec, rng)
    case = cases.CASES[name]
    tokens = cases.draw_tokens(spec, case.get("batch_size", 2), case["seq_len"], rng)
    result = oracle.evaluate(spec, tensors(weights), torch.from_numpy(tokens))

    def store(file, path, data):
        file.create_dataset(path, data=data, chunks=data.shape, compression=9, shuffle=True)

    path = out / f"{name}.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as file:  # smaller; HDF5 1.10 reads it
        file.attrs["config_yaml"] = config
        file["loss"] = result.loss.numpy()
        store(file, "tokens", tokens)
        store(file, "logits", result.logits.numpy())
        for parameter, value in weights.items():
            store(file, f"model/{parameter}", value)
            store(file, f"grad/{parameter}", result.grads[parameter].numpy())
    smallest = min(result.grads, key=lambda p: result.grads[p].abs().max())
    print(f"{path}: {path.stat().st_size / 1024:.0f} KB, loss {result.loss:.6f}, "
          f"weakest gradient {result.grads[smallest].abs().max():.1e} at most ({smallest})")


def relative_error(value: np.ndarray, reference: np.ndarray) -> float:
    """Worst element, relative to the largest magnitude of the reference."""
    if value.shape != reference.shape:
        raise SystemExit(f"shape {value.shape}, but the oracle has {reference.shape}")
    scale = np.abs(reference).max()
    return float(np.abs(value - reference).max() / (scale if scale > 0 else 1))


def read_weights(file: h5py.File, spec: ModelSpec) -> dict:
    """The weights as float64. They must be exactly those the config asks for."""
    weights = {name: data[()].astype(np.float64) for name, data in file["model"].items()}
    for name, weight in weights.items():
        if name.endswith("mlp.gate_proj.weight"):  # model.match_params may have shrunk d_ff
            spec = dataclasses.replace(spec, d_ff=len(weight))
    expected = oracle.parameter_shapes(spec)
    for name in sorted(expected.keys() | weights.keys()):
        have = weights[name].shape if name in weights else "absent"
        want = expected.get(name, "absent")
        if have != want:
            raise SystemExit(f"{file.filename}: /model/{name} is {have}; the config wants {want}")
    return weights


def check(path: pathlib.Path) -> bool:
    """Prints the worst relative error of each quantity; false if one is above the tolerance."""
    with h5py.File(path, "r") as file:
        config = file.attrs["config_yaml"]
        spec = ModelSpec.from_yaml(config if isinstance(config, str) else config.decode())
        if "scored" in file:
            raise SystemExit(f"{path}: /scored leaves targets out; the oracle scores all")
        weights = read_weights(file, spec)
        result = oracle.evaluate(spec, tensors(weights), torch.from_numpy(file["tokens"][()]))
        tolerance = TOLERANCES[file["logits"].dtype]
        if file["grad"].keys() != weights.keys():
            raise SystemExit(f"{path}: /grad and /model differ in their names")
        errors = {
            "loss": relative_error(file["loss"][()].reshape(()), result.loss.numpy()),
            "logits": relative_error(file["logits"][()], result.logits.numpy()),
        }
        for name in weights:
            grad = relative_error(file["grad"][name][()], result.grads[name].numpy())
            errors[f"grad/{name}"] = grad
    print(f"{path}: {spec.kind}, tolerance {tolerance:.0e}")
    for name, error in errors.items():
        print(f"  {error:8.1e}  {name}{'' if error <= tolerance else '   <-- above the tolerance'}")
    worst = max(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    print(f"  worst {errors[worst]:.1e} in {worst}")
    return all(error <= tolerance for error in errors.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--generate", nargs="*", choices=cases.CASES, metavar="CASE")
    mode.add_argument("--check", nargs="+", type=pathlib.Path, metavar="FILE.h5")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    args = parser.parse_args()
    if args.generate is not None:
        for name in args.generate or cases.CASES:
            generate(name, args.out)
        return 0
    return 0 if all([check(path) for path in args.check]) else 1


if __name__ == "__main__":
    sys.exit(main())
