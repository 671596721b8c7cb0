#!/usr/bin/env python3
"""The difftape model in PyTorch, as a candidate of bench_peers (serve.py).

A step is forward, backward, clipping and AdamW on the CPU, in float32 or in bfloat16 with
torch.autocast. Differential attention is composed of scaled_dot_product_attention calls, as the
authors' reference code composes it of flash attention calls. Parameters have difftape's names, so
that torch_gpt_check.py can compare loss and gradients with the files of tests/golden.
"""

import argparse
import math
import os

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import serve


def rope_tables(tokens: int, d: int, theta: float) -> Tensor:
    """Returns cos and sin of t * theta^(-2i/d): [2, T, d/2]."""
    frequency = theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = torch.arange(tokens, dtype=torch.float64)[:, None] * frequency
    return torch.stack((angle.cos(), angle.sin())).to(torch.get_default_dtype())


def rope(x: Tensor, tables: Tensor) -> Tensor:
    """Rotates the pairs (2i, 2i+1) of x [B, heads, T, d]."""
    cos, sin = tables[0], tables[1]
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Returns causal attention; a single query is the last token and attends to all keys."""
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1, enable_gqa=grouped)


class Attention(nn.Module):
    """Softmax attention, and the base class of the differential variants."""

    queries = 1  # query heads per baseline head

    def __init__(self, args, layer: int):
        super().__init__()
        self.d = d = args.head_dim or args.d_model // args.heads
        kv_heads = args.kv_heads or args.heads
        self.q_proj = nn.Linear(args.d_model, self.queries * args.heads * d, bias=False)
        self.k_proj = nn.Linear(args.d_model, kv_heads * d, bias=False)
        self.v_proj = nn.Linear(args.d_model, kv_heads * d, bias=False)
        self.o_proj = nn.Linear(args.heads * d, args.d_model, bias=False)

    def heads(self, x: Tensor, width: int) -> Tensor:
        return x.unflatten(-1, (-1, width)).transpose(1, 2)  # [B, heads, T, width]

    def context(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, self.heads(v, self.d))

    def forward(self, x: Tensor, tables: Tensor, cache=None) -> Tensor:
        q = rope(self.heads(self.q_proj(x), self.d), tables)
        k = rope(self.heads(self.k_proj(x), self.d), tables)
        v = self.v_proj(x)
        if cache is not None:
            k, v = cache.append(k, v)
        context = self.context(x, q, k, v)
        return self.o_proj(context.transpose(1, 2).flatten(2))


class DiffV1(Attention):
    def __init__(self, args, layer: int):
        super().__init__(args, layer)
        self.lambda_init = 0.8 - 0.6 * math.exp(-0.3 * layer)
        for name in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"):
            self.register_parameter(name, nn.Parameter(0.1 * torch.randn(self.d)))
        self.subln = nn.RMSNorm(2 * self.d, eps=1e-5)
        self.split_values = args.v1_calls == 4

    def attend_wide(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attends to values twice as wide as keys; the flash kernel accepts only their halves."""
        if not self.split_values:
            return attend(q, k, v)
        return torch.cat([attend(q, k, half) for half in v.split(self.d, dim=-1)], dim=-1)

    def context(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        v = self.heads(v, 2 * self.d)
        lam1 = torch.exp(torch.sum(self.lambda_q1 * self.lambda_k1))
        lam2 = torch.exp(torch.sum(self.lambda_q2 * self.lambda_k2))
        first = self.attend_wide(q[:, 0::2], k[:, 0::2], v)
        second = self.attend_wide(q[:, 1::2], k[:, 1::2], v)
        difference = first - (lam1 - lam2 + self.lambda_init) * second
        return self.subln(difference) * (1 - self.lambda_init)


class DiffV2(Attention):
    queries = 2

    def __init__(self, args, layer: int):
        super().__init__(args, layer)
        self.lambda_proj = nn.Linear(args.d_model, args.heads, bias=False)

    def context(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        lam = torch.sigmoid(self.lambda_proj(x)).transpose(1, 2)[..., None]  # [B, H, T, 1]
        both = attend(q, k, self.heads(v, self.d))
        return both[:, 0::2] - lam * both[:, 1::2]


KINDS = {"softmax": Attention, "diff_v1": DiffV1, "diff_v2": DiffV2}


class SwiGLU(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.gate_proj = nn.Linear(args.d_model, args.d_ff, bias=False)
        self.up_proj = nn.Linear(args.d_model, args.d_ff, bias=False)
        self.down_proj = nn.Linear(args.d_ff, args.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, args, layer: int):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(args.d_model, eps=args.norm_eps)
        self.self_attn = KINDS[args.kind](args, layer)
        self.post_attention_layernorm = nn.RMSNorm(args.d_model, eps=args.norm_eps)
        self.mlp = SwiGLU(args)

    def forward(self, x: Tensor, tables: Tensor, cache=None) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), tables, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class LanguageModel(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.model = nn.ModuleDict({
            "embed_tokens": nn.Embedding(args.vocab, args.d_model),
            "layers": nn.ModuleList(Block(args, i) for i in range(args.layers)),
            "norm": nn.RMSNorm(args.d_model, eps=args.norm_eps),
        })
        self.lm_head = nn.Linear(args.d_model, args.vocab, bias=False)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)
        if args.tied:
            self.lm_head.weight = self.model["embed_tokens"].weight
        head_dim = args.head_dim or args.d_model // args.heads
        tables = rope_tables(args.seq_len, head_dim, args.rope_theta)
        self.register_buffer("tables", tables, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Returns the mean cross-entropy of tokens [B, T+1]."""
        x = self.model["embed_tokens"](tokens[:, :-1])
        for block in self.model["layers"]:
            x = block(x, self.tables)
        logits = self.lm_head(self.model["norm"](x))
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def adamw(model: nn.Module) -> torch.optim.Optimizer:
    """Returns AdamW with the fused kernel and weight decay on matrices only."""
    matrices = [p for p in model.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=True)


def train(args) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    idle = serve.memory("VmRSS")
    model = LanguageModel(args)
    parameters = list(model.parameters())
    optimizer = adamw(model)
    forward = torch.compile(model) if args.compile else model

    def step(tokens: Tensor) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bf16"):
            loss = forward(tokens)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()

    def seconds() -> float:
        tokens = torch.randint(args.vocab, (args.batch, args.seq_len + 1))
        return serve.seconds_of(lambda: step(tokens))

    version = f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, " \
              f"{torch.get_num_threads()} threads"
    serve.serve(version, idle, seconds, sum(p.numel() for p in parameters))


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="softmax")
    parser.add_argument("--compile", action="store_true", help="torch.compile (needs g++)")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32",
                        help="bf16: torch.autocast; parameters stay float32")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    sizes = dict(d_model=384, layers=6, heads=6, kv_heads=0, head_dim=0, d_ff=1024, seq_len=256,
                 batch=8, vocab=512, seed=1)
    for name, default in sizes.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    parser.add_argument("--rope-theta", type=float, default=10000.0)
    parser.add_argument("--norm-eps", type=float, default=1e-5)
    parser.add_argument("--tied", action="store_true", help="share the embedding with the head")
    parser.add_argument("--v1-calls", type=int, choices=(2, 4), default=2,
                        help="diff_v1: 2 calls with wide values, or 4 with halves, as flash needs")
    return parser


if __name__ == "__main__":
    train(arguments().parse_args())
