#!/usr/bin/env python3
"""GPT-2 in llm.c (train_gpt2.c on the CPU) as a candidate of bench_peers.

The architecture differs from difftape's: LayerNorm, biases, learned positions, GELU with
d_ff = 4 d_model and a tied head. A layer has as many weights as one with SwiGLU and
d_ff = 8/3 d_model. Layers, heads, d_model, sequence length, batch and vocabulary are options.

llm.c fixes batch and length in its source and trains to the end once started. This script edits a
copy of the source: it sets batch and length, disables validation and sampling, and makes every step
wait for a byte on standard input. It builds the copy with the Makefile of the checkout.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import serve

CHECKPOINT, TOKENS = (20240326, 3), (20240520, 1)  # magic number and version of the two headers
DATA = "dev/data/tinyshakespeare"


def edited(source: str, args) -> str:
    """Returns the source with these lines replaced; exits unless each occurs exactly once."""
    places = [
        (r"int B = 4;", f"int B = {args.batch};"),
        (r"int T = 64;", f"int T = {args.seq_len};"),
        (r"for \(int step = 0; step <= 40; step\+\+\)",
         "for (int step = 0; fflush(stdout), getchar() != EOF; step++)"),
        (r"if \(step % 10 == 0\)", "if (0)"),
        (r"if \(step > 0 && step % 20 == 0\)", "if (0)"),
    ]
    for pattern, replacement in places:
        source, found = re.subn(pattern, replacement, source)
        if found != 1:
            sys.exit(f"--llmc: train_gpt2.c contains '{pattern}' {found} times, but must contain "
                     "it once; check out another version of llm.c")
    return source


def write(path: pathlib.Path, fields: tuple, body: np.ndarray) -> None:
    header = np.zeros(256, dtype=np.int32)
    header[:len(fields)] = fields
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header.tobytes() + body.tobytes())


def random_model(args) -> np.ndarray:
    """Returns all parameters in checkpoint order: matrices N(0, 0.02), norm weights 1, biases 0."""
    rng, c, layers = np.random.default_rng(1), args.d_model, args.layers

    def matrix(rows: int) -> np.ndarray:
        return rng.normal(0, 0.02, rows * c).astype(np.float32)

    def norm(count: int) -> list:
        return [np.ones(count * c, np.float32), np.zeros(count * c, np.float32)]

    def linear(times: int) -> list:
        return [matrix(layers * times * c)]

    def bias(width: int) -> list:
        return [np.zeros(layers * width, np.float32)]

    parts = [matrix(args.vocab), matrix(args.seq_len), *norm(layers), *linear(3), *bias(3 * c),
             *linear(1), *bias(c), *norm(layers), *linear(4), *bias(4 * c), *linear(4), *bias(c),
             *norm(1)]
    return np.concatenate(parts)


def build(args, work: pathlib.Path) -> int:
    """Writes source, program, checkpoint and tokens to `work`. Returns the number of parameters."""
    checkout = pathlib.Path(args.llmc)
    if not (checkout / "train_gpt2.c").exists():
        sys.exit(f"--llmc: {checkout} has no train_gpt2.c; give a checkout of llm.c")
    shutil.copytree(checkout / "llmc", work / "llmc")
    shutil.copy(checkout / "Makefile", work)
    (work / "train_gpt2.c").write_text(edited((checkout / "train_gpt2.c").read_text(), args))
    subprocess.run(["make", "train_gpt2"], cwd=work, stdout=subprocess.DEVNULL, check=True)
    model = random_model(args)
    sizes = (args.seq_len, args.vocab, args.layers, args.heads, args.d_model, args.vocab)
    write(work / "gpt2_124M.bin", (*CHECKPOINT, *sizes), model)
    tokens = np.random.default_rng(2).integers(args.vocab, size=64 * args.batch * args.seq_len + 1)
    for part in ("train", "val"):
        write(work / DATA / f"tiny_shakespeare_{part}.bin", (*TOKENS, tokens.size),
              tokens.astype(np.uint16))
    return model.size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmc", required=True, help="a checkout of llm.c")
    sizes = dict(d_model=384, layers=6, heads=6, seq_len=256, batch=8, vocab=512,
                 threads=os.cpu_count())
    for name, default in sizes.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    args, _ = parser.parse_known_args()  # ignores options of the other peers
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        parameters = build(args, work)
        environment = dict(os.environ, OMP_NUM_THREADS=str(args.threads))
        program = subprocess.Popen(["./train_gpt2"], cwd=work, env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def step() -> float:
            program.stdin.write("\n")
            program.stdin.flush()
            for line in program.stdout:
                if found := re.search(r"\(took ([0-9.]+) ms\)", line):
                    return float(found[1]) / 1e3
            sys.exit(f"llmc_gpt: train_gpt2 ended with exit code {program.wait()}")

        serve.serve("llm.c, GPT-2 of the same sizes", 0, step, parameters,
                    lambda: serve.memory("VmHWM", program.pid))
        program.stdin.close()
        program.wait()


if __name__ == "__main__":
    main()
