#!/usr/bin/env python3
"""Greedy decoding of the difftape model in eager PyTorch, as a candidate of bench_peers.

A step generates one text, token by token, over a KV cache that is allocated once. Decoding is
greedy so that torch_generate_check.py can compare texts.
"""

import torch
from torch import Tensor

import serve
import torch_gpt

PROMPT = 16  # tokens


class Cache:
    """Keys [B, heads, T, d] and values [B, T, width] of one layer."""

    def __init__(self, capacity: int):
        self.capacity, self.length, self.keys, self.values = capacity, 0, None, None

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if self.keys is None:
            self.keys = k.new_empty(*k.shape[:2], self.capacity, k.shape[3])
            self.values = v.new_empty(v.shape[0], self.capacity, v.shape[2])
        begin, self.length = self.length, self.length + k.shape[2]
        self.keys[:, :, begin:self.length] = k
        self.values[:, begin:self.length] = v
        return self.keys[:, :, :self.length], self.values[:, :self.length]


def next_token(model: torch_gpt.LanguageModel, tokens: Tensor, caches: list[Cache]) -> Tensor:
    """Returns the most likely token [1, 1] after the cached tokens and `tokens` [1, n]."""
    begin = caches[0].length
    tables = model.tables[:, begin:begin + tokens.shape[1]]
    x = model.model["embed_tokens"](tokens)
    for block, cache in zip(model.model["layers"], caches):
        x = block(x, tables, cache)
    return model.lm_head(model.model["norm"](x[:, -1:])).argmax(-1)


@torch.inference_mode()
def generate(model: torch_gpt.LanguageModel, prompt: list[int], count: int) -> list[int]:
    caches = [Cache(len(prompt) + count) for _ in model.model["layers"]]
    token, text = torch.tensor([prompt]), []
    for _ in range(count):
        token = next_token(model, token, caches)
        text.append(token.item())
    return text


def main() -> None:
    parser = torch_gpt.arguments()
    parser.add_argument("--tokens", type=int, default=200, help="number of tokens to generate")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    idle = serve.memory("VmRSS")
    model = torch_gpt.LanguageModel(args)
    prompt = list(range(PROMPT))
    version = f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, " \
              f"{torch.get_num_threads()} threads"
    serve.serve(version, idle, lambda: serve.seconds_of(lambda: generate(model, prompt, args.tokens)),
                sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main()
