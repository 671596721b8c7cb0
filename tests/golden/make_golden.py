#!/usr/bin/env python3
"""Makes the reference files of this folder, or checks a grads.h5 that difftape wrote.

  make_golden.py --generate [--out DIR]      writes one <case>.h5 a case
  make_golden.py --check FILE.h5...          recomputes each with the oracle; exits 1 above the gate
"""

import argparse
import dataclasses
import pathlib
import sys

import h5py
import numpy as np
import torch
import yaml

import oracle

GATES = {np.dtype("float64"): 1e-12, np.dtype("float32"): 1e-5}

# Each case departs from the plain model in the ways its variant can be got wrong: groups of
# queries, an odd number of heads, a head_dim that is not d_model / num_heads, a norm_eps that the
# per-head norm must not use, a third layer for lambda_init.
CASES = {
    "softmax_mha": dict(kind="softmax", seq_len=9, d_model=24, num_heads=4, vocab_size=31),
    "softmax_gqa": dict(kind="softmax", seq_len=17, d_model=32, num_heads=4, num_kv_heads=2,
                        vocab_size=37, rope_theta=100.0),
    "softmax_tied": dict(kind="softmax", seq_len=11, d_model=24, num_heads=3, vocab_size=64,
                         d_ff=37, tie_embeddings=True),
    "diff_v1_mha": dict(kind="diff_v1", seq_len=13, d_model=24, num_layers=3, num_heads=4,
                        vocab_size=31, norm_eps=1e-3),
    "diff_v1_gqa": dict(kind="diff_v1", seq_len=16, d_model=32, num_heads=8, num_kv_heads=4,
                        vocab_size=33),
    "diff_v2_mha": dict(kind="diff_v2", seq_len=15, d_model=24, num_heads=3, vocab_size=41),
    "diff_v2_gqa": dict(kind="diff_v2", seq_len=17, d_model=28, num_heads=4, num_kv_heads=2,
                        head_dim=6, vocab_size=37, rope_theta=100.0),
    "diff_v2_mqa": dict(kind="diff_v2", seq_len=10, d_model=24, num_layers=3, num_heads=4,
                        num_kv_heads=1, vocab_size=31),
}
BATCH_SIZE = 2
SEED = 2026


def case_config(name: str) -> dict:
    """The nested config of one case, every size explicit."""
    case = {"num_layers": 2, "d_ff": 40, "rope_theta": 10000.0, "norm_eps": 1e-5,
            "tie_embeddings": False} | CASES[name]
    kind, seq_len = case.pop("kind"), case.pop("seq_len")
    case.setdefault("num_kv_heads", case["num_heads"])
    case.setdefault("head_dim", case["d_model"] // case["num_heads"])
    model = case | {"max_seq_len": seq_len, "attention": {"kind": kind}}
    return {"run": {"name": name}, "model": model,
            "data": {"seq_len": seq_len, "batch_size": BATCH_SIZE}}


def draw(spec: oracle.ModelSpec, rng: np.random.Generator) -> dict:
    """Weights large enough that every gradient is far from zero, and small enough that float32
    reaches its gate: at 0.3 for the matrices, rounding alone costs diff_v1 2e-5. Each is a float32
    value, so that both precisions of difftape start from the same numbers."""
    weights = {}
    for name, shape in oracle.parameter_shapes(spec).items():
        value = rng.standard_normal(shape)
        if name.endswith(("norm.weight", "subln.weight")):
            value = 1 + 0.2 * value
        else:
            value *= 0.3 if len(shape) == 1 else 0.2  # lambda vectors; matrices
        weights[name] = value.astype(np.float32).astype(np.float64)
    return weights


def tensors(arrays: dict) -> dict:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def generate(name: str, out: pathlib.Path) -> None:
    config = yaml.safe_dump(case_config(name), sort_keys=False, default_flow_style=None)
    spec = oracle.ModelSpec.from_yaml(config)
    rng = np.random.default_rng([SEED, list(CASES).index(name)])
    weights = draw(spec, rng)
    seq_len = CASES[name]["seq_len"]
    tokens = rng.integers(0, spec.vocab_size, (BATCH_SIZE, seq_len + 1), dtype=np.int32)
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


def read_weights(file: h5py.File, spec: oracle.ModelSpec) -> dict:
    """The weights as float64. They must be exactly those the config asks for."""
    weights = {name: data[()].astype(np.float64) for name, data in file["model"].items()}
    for name, weight in weights.items():
        if name.endswith("gate_proj.weight"):  # model.match may have shrunk d_ff
            spec = dataclasses.replace(spec, d_ff=len(weight))
    expected = oracle.parameter_shapes(spec)
    for name in sorted(expected.keys() | weights.keys()):
        have = weights[name].shape if name in weights else "absent"
        want = expected.get(name, "absent")
        if have != want:
            raise SystemExit(f"{file.filename}: /model/{name} is {have}; the config wants {want}")
    return weights


def check(path: pathlib.Path) -> bool:
    """Prints the worst relative error of each quantity; false if one is above the gate."""
    with h5py.File(path, "r") as file:
        config = file.attrs["config_yaml"]
        spec = oracle.ModelSpec.from_yaml(config if isinstance(config, str) else config.decode())
        weights = read_weights(file, spec)
        result = oracle.evaluate(spec, tensors(weights), torch.from_numpy(file["tokens"][()]))
        gate = GATES[file["logits"].dtype]
        if file["grad"].keys() != weights.keys():
            raise SystemExit(f"{path}: /grad and /model differ in their names")
        errors = {
            "loss": relative_error(file["loss"][()].reshape(()), result.loss.numpy()),
            "logits": relative_error(file["logits"][()], result.logits.numpy()),
        }
        for name in weights:
            grad = relative_error(file["grad"][name][()], result.grads[name].numpy())
            errors[f"grad/{name}"] = grad
    print(f"{path}: {spec.kind}, gate {gate:.0e}")
    for name, error in errors.items():
        print(f"  {error:8.1e}  {name}{'' if error <= gate else '   <-- above the gate'}")
    worst = max(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    print(f"  worst {errors[worst]:.1e} in {worst}")
    return all(error <= gate for error in errors.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--generate", action="store_true")
    mode.add_argument("--check", nargs="+", type=pathlib.Path, metavar="FILE.h5")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    args = parser.parse_args()
    if args.generate:
        for name in CASES:
            generate(name, args.out)
        return 0
    return 0 if all([check(path) for path in args.check]) else 1


if __name__ == "__main__":
    sys.exit(main())
