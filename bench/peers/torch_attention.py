#!/usr/bin/env python3
"""Causal softmax attention in PyTorch, forward and backward, as a candidate of bench_peers.

It calls scaled_dot_product_attention. Queries, keys and values are contiguous [B, heads, T, d], the
fastest layout of the CPU flash kernel. Gradients are returned, not accumulated.
"""

import argparse
import os

import torch
import torch.nn.functional as F

import serve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in dict(heads=6, head_dim=64, batch=1, seq=256,
                              threads=os.cpu_count()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--compile", action="store_true", help="torch.compile (needs g++)")
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    idle = serve.memory("VmRSS")
    dtype = torch.bfloat16 if args.precision == "bf16" else torch.float32
    shape = (args.batch, args.heads, args.seq, args.head_dim)
    q, k, v = (torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3))
    dout = torch.randn(shape, dtype=dtype)

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    forward = torch.compile(attend) if args.compile else attend

    def both() -> None:
        torch.autograd.grad(forward(q, k, v), (q, k, v), dout)

    version = f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, " \
              f"{torch.get_num_threads()} threads"
    serve.serve(version, idle, lambda: serve.seconds_of(both))


if __name__ == "__main__":
    main()
