#!/usr/bin/env python3
"""Compares greedy decoding by torch_generate.py and `difftape generate` with equal weights.

Usage: torch_generate_check.py DIFFTAPE. Exits with 1 if a token differs.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch

import torch_generate
import torch_gpt

SIZES = dict(d_model=128, layers=4, heads=4, d_ff=344, vocab=256, seq_len=256)
KEYS = dict(d_model="d_model", layers="num_layers", heads="num_heads", d_ff="d_ff",
            vocab="vocab_size", seq_len="max_seq_len")
TOKENS = 200


def weights(path: pathlib.Path) -> dict[str, torch.Tensor]:
    """Returns the float32 tensors of a safetensors file: header size, JSON header, data."""
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in entry["data_offsets"])
        found[name] = torch.frombuffer(data[begin:end], dtype=torch.float32).view(entry["shape"])
    return found


def is_same(difftape: str, kind: str, folder: pathlib.Path) -> bool:
    config, exported = folder / f"{kind}.yaml", folder / f"{kind}.safetensors"
    sizes = {KEYS[name]: value for name, value in SIZES.items()}
    # Large weights make one token clearly the most likely.
    config.write_text(json.dumps({"model": {**sizes, "attention": {"kind": kind},
                                            "init": {"embedding_std": 1.0, "projection_std": 0.15}}}))
    subprocess.run([difftape, "export", config, "--format", "safetensors", "--out", exported],
                   check=True, stdout=subprocess.DEVNULL)
    prompt = list(range(torch_generate.PROMPT))
    told = subprocess.run([difftape, "generate", config, "--tokens", ",".join(map(str, prompt)),
                           "--max-tokens", str(TOKENS), "--temperature", "0", "--json"],
                          check=True, capture_output=True, text=True)
    ours = json.loads(told.stdout)["tokens"]
    args = torch_gpt.arguments().parse_args([])
    for name, value in SIZES.items():
        setattr(args, name, value)
    args.kind = kind
    model = torch_gpt.LanguageModel(args)
    model.load_state_dict(weights(exported))
    theirs = torch_generate.generate(model, prompt, TOKENS)
    print(f"{kind}: {sum(a == b for a, b in zip(ours, theirs))} of {TOKENS} tokens are the same, "
          f"{len(set(ours))} different ones")
    return ours == theirs and len(ours) == TOKENS


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        return 0 if all([is_same(sys.argv[1], kind, pathlib.Path(folder))
                         for kind in torch_gpt.KINDS]) else 1


if __name__ == "__main__":
    sys.exit(main())
