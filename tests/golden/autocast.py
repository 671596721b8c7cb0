#!/usr/bin/env python3
"""Measures how far PyTorch's autocast to bfloat16 is from double precision in the cases of this
folder, and writes autocast.csv, the bound of golden_test.cpp.

The naive model of oracle.py runs within autocast; the losses are computed in float32 outside, as
users do. Errors are relative: |x - reference| / |reference| in the Euclidean norm, over all logits,
or over the gradients of all parameters."""

import csv
import pathlib

import h5py
import torch

import oracle
from spec import ModelSpec

HERE = pathlib.Path(__file__).parent


def relative_error(values: list, references: list) -> float:
    squares = sum(((x.double() - y) ** 2).sum() for x, y in zip(values, references))
    return float((squares / sum((y ** 2).sum() for y in references)).sqrt())


def errors_of(path: pathlib.Path) -> dict:
    with h5py.File(path, "r") as file:
        spec = ModelSpec.from_yaml(file.attrs["config_yaml"])
        read = {group: {name: torch.from_numpy(data[()]) for name, data in file[group].items()}
                for group in ("model", "grad")}
        tokens = torch.from_numpy(file["tokens"][()])
        logits = torch.from_numpy(file["logits"][()])
    leaves = {name: w.float().requires_grad_() for name, w in read["model"].items()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores, router_loss = oracle.forward(spec, leaves, tokens[:, :-1].long())
    log_z = torch.logsumexp(scores.float(), dim=-1)
    loss = oracle.cross_entropy(scores.float(), tokens[:, 1:].long()) + router_loss.float()
    (loss + spec.z_loss_weight * log_z.square().mean()).backward()
    grads = {name: torch.zeros_like(w) if w.grad is None else w.grad for name, w in leaves.items()}
    names = list(read["grad"])
    return {"case": path.stem,
            "logits": relative_error([scores.detach()], [logits]),
            "gradients": relative_error([grads[name] for name in names],
                                        [read["grad"][name] for name in names])}


def main() -> None:
    rows = [errors_of(path) for path in sorted(HERE.glob("*.h5"))]
    with open(HERE / "autocast.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow([row["case"]] + [f"{row[key]:.3e}" for key in list(row)[1:]])


if __name__ == "__main__":
    main()
