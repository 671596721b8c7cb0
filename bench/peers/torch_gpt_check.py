#!/usr/bin/env python3
"""Compares loss and gradients of torch_gpt.py in float64 with the files of tests/golden.

It covers the files whose fields torch_gpt.py has, so none with experts. Exits with 1 if an error,
relative to the largest magnitude of its tensor, is above 1e-12.
"""

import pathlib
import sys

import h5py
import torch
import yaml

import torch_gpt

GATE = 1e-12
KEYS = dict(d_model="d_model", layers="num_layers", heads="num_heads", kv_heads="num_kv_heads",
            head_dim="head_dim", d_ff="d_ff", vocab="vocab_size", seq_len="max_seq_len",
            rope_theta="rope_theta", norm_eps="norm_eps", tied="tie_word_embeddings")


def is_covered(path: pathlib.Path) -> bool:
    with h5py.File(path, "r") as file:
        config = yaml.safe_load(file.attrs["config_yaml"])
    model, attention = config["model"], config["model"]["attention"]
    return (model.keys() <= {*KEYS.values(), "attention"} and attention.keys() == {"kind"}
            and attention["kind"] in torch_gpt.KINDS and "eos_token_id" not in config["data"])


def worst_error(path: pathlib.Path, v1_calls: int) -> float:
    with h5py.File(path, "r") as file:
        config = yaml.safe_load(file.attrs["config_yaml"])["model"]
        data = {name: torch.from_numpy(values[()]) for name, values in file["model"].items()}
        grads = {name: torch.from_numpy(values[()]) for name, values in file["grad"].items()}
        tokens, expected = torch.from_numpy(file["tokens"][()]).long(), float(file["loss"][()])
    args = torch_gpt.arguments().parse_args([])
    args.kind, args.v1_calls = config["attention"]["kind"], v1_calls
    for name, key in KEYS.items():
        setattr(args, name, config[key])
    model = torch_gpt.LanguageModel(args)
    if args.tied:
        data["lm_head.weight"] = data["model.embed_tokens.weight"]
    model.load_state_dict(data)
    loss = model(tokens)
    loss.backward()
    errors = [abs(loss.item() / expected - 1)]
    for name, parameter in model.named_parameters():
        errors.append(((parameter.grad - grads[name]).abs().max() / grads[name].abs().max()).item())
    return max(errors)


def main() -> int:
    torch.set_default_dtype(torch.float64)
    files = sorted((pathlib.Path(__file__).parents[2] / "tests/golden").glob("*.h5"))
    errors = []
    for path in filter(is_covered, files):
        for v1_calls in (2, 4):
            errors.append(worst_error(path, v1_calls))
            print(f"{path.stem} (v1_calls {v1_calls}): {errors[-1]:.1e}")
    return 0 if errors and all(error <= GATE for error in errors) else 1


if __name__ == "__main__":
    sys.exit(main())
