"""The difftape language model once more, in PyTorch: naive, explicit, one head at a time.

Shares nothing with the C++ sources, so that agreement means something. Derivatives come from
autograd. Runs in the precision of the weights it is given.

Letters: B batch, T sequence, C d_model, H baseline query heads, d head_dim, V vocabulary.
"""

import math
from dataclasses import dataclass
from typing import Callable, NamedTuple

import torch
import yaml
from torch import Tensor

SUBLN_EPS = 1e-5  # of diff_v1's per-head norm, whatever model.norm_eps says


@dataclass(frozen=True)
class ModelSpec:
    """The keys of `model:` that change the function; 0 means the documented default."""

    kind: str = "softmax"
    d_model: int = 128
    num_layers: int = 4
    num_heads: int = 4
    num_kv_heads: int = 0
    head_dim: int = 0
    d_ff: int = 344
    vocab_size: int = 256
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    tie_embeddings: bool = False

    @property
    def kv_heads(self) -> int:
        return self.num_kv_heads or self.num_heads

    @property
    def width(self) -> int:
        """d: the length of one query or key head."""
        return self.head_dim or self.d_model // self.num_heads

    @staticmethod
    def from_yaml(text: str) -> "ModelSpec":
        """Reads `model:` of a config.yaml. PyYAML reads 1e-05 as a string, hence the conversion."""
        model = yaml.safe_load(text)["model"]
        types = {name: field.type for name, field in ModelSpec.__dataclass_fields__.items()}
        values = {name: types[name](model[name]) for name in types if name in model}
        return ModelSpec(**values, kind=model.get("attention", {}).get("kind", "softmax"))


# Building blocks.


def rms_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * gain


def rope(x: Tensor, theta: float) -> Tensor:
    """Rotates each pair (2i, 2i+1) of x [B, T, heads, d] by t * theta^(-2i/d)."""
    tokens, d = x.shape[1], x.shape[3]
    frequency = theta ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angle = torch.arange(tokens, dtype=x.dtype)[:, None, None] * frequency  # [T, 1, d/2]
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


def causal_map(q: Tensor, k: Tensor) -> Tensor:
    """One head: softmax over keys j <= t of q_t . k_j / sqrt(d); q and k are [B, T, d]."""
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)


# Attention. Heads are [B, T, heads, d]; results are [B, T, output heads, value width].


def softmax_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    group = q.shape[2] // k.shape[2]
    heads = []
    for h in range(q.shape[2]):
        kv = h // group
        heads.append(causal_map(q[:, :, h], k[:, :, kv]) @ v[:, :, kv])
    return torch.stack(heads, dim=2)


def diff_v1_heads(q: Tensor, k: Tensor, v: Tensor, lam: Tensor) -> Tensor:
    """v is [B, T, H_kv/2, 2d]; lam is a scalar. The per-head norm is not part of this."""
    group = q.shape[2] // k.shape[2]
    heads = []
    for pair in range(q.shape[2] // 2):
        kv = pair // group
        map1 = causal_map(q[:, :, 2 * pair], k[:, :, 2 * kv])
        map2 = causal_map(q[:, :, 2 * pair + 1], k[:, :, 2 * kv + 1])
        heads.append((map1 - lam * map2) @ v[:, :, kv])
    return torch.stack(heads, dim=2)


def diff_v2_heads(q: Tensor, k: Tensor, v: Tensor, lam: Tensor) -> Tensor:
    """q is [B, T, 2H, d]; lam is [B, T, H], already between 0 and 1."""
    group = q.shape[2] // k.shape[2]
    heads = []
    for h in range(q.shape[2] // 2):
        map1 = causal_map(q[:, :, 2 * h], k[:, :, (2 * h) // group])
        map2 = causal_map(q[:, :, 2 * h + 1], k[:, :, (2 * h + 1) // group])
        lam_h = lam[:, :, h, None]
        heads.append(map1 @ v[:, :, (2 * h) // group] - lam_h * (map2 @ v[:, :, (2 * h) // group]))
    return torch.stack(heads, dim=2)


def lambda_init(layer: int) -> float:
    """Layers count from 0."""
    return 0.8 - 0.6 * math.exp(-0.3 * layer)


# A variant turns projected heads into contexts. `w(name)` is a weight of this layer's self_attn,
# `x` its normed input [B, T, C].


def softmax_context(spec, layer, w, x, q, k, v):
    return softmax_heads(q, k, v)


def diff_v1_context(spec, layer, w, x, q, k, v):
    lam1 = torch.exp((w("lambda_q1") * w("lambda_k1")).sum())
    lam2 = torch.exp((w("lambda_q2") * w("lambda_k2")).sum())
    lam = lam1 - lam2 + lambda_init(layer)
    wide_v = v.reshape(*v.shape[:2], spec.kv_heads // 2, 2 * spec.width)
    context = diff_v1_heads(q, k, wide_v, lam)
    return rms_norm(context, w("subln.weight"), SUBLN_EPS) * (1 - lambda_init(layer))


def diff_v2_context(spec, layer, w, x, q, k, v):
    return diff_v2_heads(q, k, v, torch.sigmoid(x @ w("lambda_proj.weight").T))


class Variant(NamedTuple):
    context: Callable[..., Tensor]
    queries: int = 1  # query heads for one baseline head
    extra: Callable[[ModelSpec], dict] = lambda spec: {}  # shapes of its own weights


def diff_v1_extra(spec: ModelSpec) -> dict:
    vectors = ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")
    return {name: (spec.width,) for name in vectors} | {"subln.weight": (2 * spec.width,)}


def diff_v2_extra(spec: ModelSpec) -> dict:
    return {"lambda_proj.weight": (spec.num_heads, spec.d_model)}


VARIANTS = {
    "softmax": Variant(softmax_context),
    "diff_v1": Variant(diff_v1_context, extra=diff_v1_extra),
    "diff_v2": Variant(diff_v2_context, queries=2, extra=diff_v2_extra),
}


# The model.


def parameter_shapes(spec: ModelSpec) -> dict:
    """Name -> shape of every weight; matrices are [out, in]."""
    variant = VARIANTS[spec.kind]
    c, d, f = spec.d_model, spec.width, spec.d_ff
    attention = {
        "q_proj.weight": (variant.queries * spec.num_heads * d, c),
        "k_proj.weight": (spec.kv_heads * d, c),
        "v_proj.weight": (spec.kv_heads * d, c),
        "o_proj.weight": (c, spec.num_heads * d),
    } | variant.extra(spec)
    shapes = {"model.embed_tokens.weight": (spec.vocab_size, c)}
    for i in range(spec.num_layers):
        layer = f"model.layers.{i}."
        shapes[layer + "input_layernorm.weight"] = (c,)
        shapes |= {f"{layer}self_attn.{name}": shape for name, shape in attention.items()}
        shapes[layer + "post_attention_layernorm.weight"] = (c,)
        shapes[layer + "mlp.gate_proj.weight"] = (f, c)
        shapes[layer + "mlp.up_proj.weight"] = (f, c)
        shapes[layer + "mlp.down_proj.weight"] = (c, f)
    shapes["model.norm.weight"] = (c,)
    if not spec.tie_embeddings:
        shapes["lm_head.weight"] = (spec.vocab_size, c)
    return shapes


def attention(spec: ModelSpec, layer: int, w: Callable[[str], Tensor], x: Tensor) -> Tensor:
    def heads(name):
        y = x @ w(name).T
        return y.reshape(*y.shape[:2], -1, spec.width)

    q = rope(heads("q_proj.weight"), spec.rope_theta)
    k = rope(heads("k_proj.weight"), spec.rope_theta)
    v = heads("v_proj.weight")
    context = VARIANTS[spec.kind].context(spec, layer, w, x, q, k, v)  # [B, T, heads, width]
    return context.flatten(2) @ w("o_proj.weight").T


def swiglu(w: Callable[[str], Tensor], x: Tensor) -> Tensor:
    gate, up = x @ w("gate_proj.weight").T, x @ w("up_proj.weight").T
    return (gate * torch.sigmoid(gate) * up) @ w("down_proj.weight").T


def logits(spec: ModelSpec, weights: dict, tokens: Tensor) -> Tensor:
    """[B, T, V] for tokens [B, T]."""
    x = weights["model.embed_tokens.weight"][tokens]
    for i in range(spec.num_layers):

        def w(name, layer=f"model.layers.{i}."):
            return weights[layer + name]

        normed = rms_norm(x, w("input_layernorm.weight"), spec.norm_eps)
        x = x + attention(spec, i, lambda name: w("self_attn." + name), normed)
        normed = rms_norm(x, w("post_attention_layernorm.weight"), spec.norm_eps)
        x = x + swiglu(lambda name: w("mlp." + name), normed)
    x = rms_norm(x, weights["model.norm.weight"], spec.norm_eps)
    head = "model.embed_tokens.weight" if spec.tie_embeddings else "lm_head.weight"
    return x @ weights[head].T


def cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean over all B * T positions, in nats."""
    log_p = scores - torch.logsumexp(scores, dim=-1, keepdim=True)
    return -log_p.gather(-1, targets[..., None]).mean()


class Result(NamedTuple):
    loss: Tensor
    logits: Tensor
    grads: dict


def evaluate(spec: ModelSpec, weights: dict, tokens: Tensor) -> Result:
    """Loss, logits and every gradient. tokens is [B, T+1]: inputs and, one later, targets."""
    leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
    tokens = tokens.long()
    scores = logits(spec, leaves, tokens[:, :-1])
    loss = cross_entropy(scores, tokens[:, 1:])
    loss.backward()
    return Result(loss.detach(), scores.detach(), {name: w.grad for name, w in leaves.items()})
