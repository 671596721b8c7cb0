"""The attention family, naive: explicit matrices, one output head at a time.

Each field of the config chooses one of a few functions that know nothing of one another: mapping of
heads, visibility, denominator of the softmax, rule for lambda, norm of a head, gate. `w(name)` is a
weight of the layer's self_attn, x its normed input.

Letters: B batch, T sequence, C d_model, H baseline query heads, d head_dim. Heads are
[B, T, heads, width].
"""

import itertools
import math
from typing import Callable, NamedTuple, Optional

import torch
from torch import Tensor

from spec import PRESETS, ModelSpec

SUBLN_EPS = 1e-5  # of the per-head norm, whatever model.norm_eps says


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def softcap(x: Tensor, cap: float) -> Tensor:
    """c tanh(x / c); a cap of 0 is none."""
    return cap * torch.tanh(x / cap) if cap else x


def slow_share(spec: ModelSpec) -> Tensor:
    """[d/2]: 1 for planes that turn less than once within the original length, 0 for those that
    turn 32 times or more, with a ramp over whole planes between them."""

    def plane(turns):
        return spec.width * math.log(spec.rope_original / (turns * 2 * math.pi)) / (
            2 * math.log(spec.rope_theta))

    low = max(math.floor(plane(32)), 0)
    high = min(math.ceil(plane(1)), spec.width - 1)
    planes = torch.arange(spec.width // 2, dtype=torch.float64)
    return ((planes - low) / (high - low if high != low else 0.001)).clamp(0, 1)


def frequencies(spec: ModelSpec) -> Tensor:
    """[d/2], radians a token."""
    theta, d = spec.rope_theta, spec.width
    if spec.rope_scaling == "ntk":
        theta *= spec.rope_factor ** (d / (d - 2))
    plain = theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    if spec.rope_scaling == "linear":
        return plain / spec.rope_factor
    if spec.rope_scaling == "yarn":
        slow = slow_share(spec)
        return plain * (slow / spec.rope_factor + 1 - slow)
    return plain


def rope_length(spec: ModelSpec) -> float:
    """What queries and keys are multiplied by."""
    if spec.rope_attention_factor:
        return spec.rope_attention_factor
    return 0.1 * math.log(spec.rope_factor) + 1 if spec.rope_scaling == "yarn" else 1.0


def rope(x: Tensor, frequency: Tensor, length: float = 1.0) -> Tensor:
    """Rotates each pair (2i, 2i+1) of x [B, T, heads, d] by t times its frequency."""
    angle = torch.arange(x.shape[1])[:, None, None] * frequency  # [T, 1, d/2]
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = ((length * part).to(x.dtype) for part in (angle.cos(), angle.sin()))
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


# Head mapping: which heads an output head reads, as a list of one or two maps for each output head.


class Map(NamedTuple):
    query: int
    key: int
    value: int


def one_map(queries: int, kv_heads: int) -> list:
    group = queries // kv_heads
    return [[Map(h, h // group, h // group)] for h in range(queries)]


def pairs(heads: int, kv_heads: int) -> list:
    """V1: a group of pairs of query heads shares one pair of key heads and its wide value."""
    group = heads // kv_heads
    return [[Map(2 * i, 2 * (i // group), i // group),
             Map(2 * i + 1, 2 * (i // group) + 1, i // group)] for i in range(heads // 2)]


def doubled(heads: int, kv_heads: int, pairing: str) -> list:
    """V2: two of the 2H single maps, each with the key-value head of its own group."""
    single = one_map(2 * heads, kv_heads)
    if pairing == "split_half":
        return [single[i] + single[i + heads] for i in range(heads)]
    return [single[2 * i] + single[2 * i + 1] for i in range(heads)]


HEAD_MAPPINGS = {
    "single": lambda spec: one_map(spec.num_heads, spec.kv_heads),
    "single_2h": lambda spec: one_map(2 * spec.num_heads, spec.kv_heads),
    "pairs": lambda spec: pairs(spec.num_heads, spec.kv_heads),
    "doubled": lambda spec: doubled(spec.num_heads, spec.kv_heads, spec.chosen("pairing")),
}


def head_mapping(spec: ModelSpec) -> list:
    return HEAD_MAPPINGS[PRESETS[spec.kind].head_mapping](spec)


def value_width(spec: ModelSpec) -> int:
    return 2 * spec.width if PRESETS[spec.kind].head_mapping == "pairs" else spec.width


def visibility(tokens: Tensor, window: int = 0, eos_token_id: int = -1) -> Tensor:
    """[B, T, T]: may query t see key j? An EOS token is the last of its document."""
    t = torch.arange(tokens.shape[1])
    distance = t[:, None] - t
    visible = (distance >= 0).expand(len(tokens), -1, -1)
    if window:
        visible = visible & (distance < window)
    if eos_token_id >= 0:
        ends = (tokens == eos_token_id).long()
        document = ends.cumsum(1) - ends
        visible = visible & (document[:, :, None] == document[:, None, :])
    return visible


# Block-sparse attention: the queries of block i read their own block and the n - 1 earlier ones with
# the highest score, the mean of q . k over the keys of the block that the first query of block i
# sees. Scores are added up over the heads of a group, or over its first and its second maps.


def groups(heads_read: list) -> list:
    """Output heads that share key or value heads, directly or through others."""
    sets = []
    for i, maps in enumerate(heads_read):
        mine = [{i}, {("k", m.key) for m in maps} | {("v", m.value) for m in maps}]
        for other in [s for s in sets if s[1] & mine[1]]:
            mine = [mine[0] | other[0], mine[1] | other[1]]
            sets.remove(other)
        sets.append(mine)
    return [sorted(heads) for heads, _ in sets]


def block_scores(spec: ModelSpec, maps: list, q, k, visible, b: int, i: int) -> dict:
    """Score of each block before block i of sequence b of which its first query sees a key."""
    t, size, scores = i * spec.block_size, spec.block_size, {}
    for j in range(i):
        seen = [s for s in range(j * size, (j + 1) * size) if visible[b, t, s]]
        if seen:
            scores[j] = sum(sum(q[b, t, m.query] @ k[b, s, m.key] for s in seen) / len(seen)
                            for m in maps).item()
    return scores


def chosen(spec: ModelSpec, maps: list, q, k, visible) -> Tensor:
    """[B, T, T]: may a query of these maps read a key?"""
    read = torch.zeros_like(visible)
    size, length = spec.block_size, visible.shape[1]
    for b, i in itertools.product(range(len(visible)), range(math.ceil(length / size))):
        scores = block_scores(spec, maps, q, k, visible, b, i)
        best = sorted(scores, key=lambda j: (scores[j], j))[::-1][:spec.num_selected_blocks - 1]
        for j in best + [i]:
            read[b, i * size:(i + 1) * size, j * size:(j + 1) * size] = True
    return read & visible


def keys_read(spec: ModelSpec, heads_read: list, q, k, visible) -> list:
    """For each output head and map [B, T, T]: does query t read key j?"""
    if not spec.block_size:
        return [[visible] * len(maps) for maps in heads_read]
    read = [[None] * len(maps) for maps in heads_read]
    for group in groups(heads_read):
        every = range(len(heads_read[group[0]]))
        for choosing in ([[m] for m in every] if spec.block_selection == "separately" else [every]):
            mask = chosen(spec, [heads_read[i][m] for i in group for m in choosing], q, k, visible)
            for i, m in itertools.product(group, choosing):
                read[i][m] = mask
    return read


# Softmax denominators: scores [B, T, T], with -inf where a key is not visible, to probabilities. The
# extra logit takes its share of a row and has no value.


def softmax(scores: Tensor, sink=None) -> Tensor:
    return torch.softmax(scores, dim=-1)


def with_extra_logit(scores: Tensor, extra: Tensor) -> Tensor:
    column = extra.expand(*scores.shape[:-1], 1)
    return torch.softmax(torch.cat((scores, column), dim=-1), dim=-1)[..., :-1]


DENOMINATORS = {
    "softmax": softmax,
    "softmax1": lambda scores, sink=None: with_extra_logit(scores, scores.new_zeros(1)),
    "sink": with_extra_logit,
}


def probabilities(q, k, visible, normalise=softmax, sink=None, cap=0.0) -> Tensor:
    """One map, [B, T, T], of one query and one key head [B, T, d]. The cap is of the scaled scores
    alone: a key that is not visible stays so, and an extra logit stays as it is."""
    scores = softcap(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]), cap)
    return normalise(scores.masked_fill(~visible, -math.inf), sink)


def contexts(heads_read, q, k, v, visible, lam=None, normalise=softmax, sinks=None,
             cap=0.0) -> Tensor:
    """First map minus lambda times the second, if there is one: [B, T, output heads, width].
    lam is [output heads] or [B, T, output heads]; visible is one mask, or one of each head and
    map."""

    def read(m: Map, seen: Tensor) -> Tensor:
        sink = None if sinks is None else sinks[m.query]
        return probabilities(q[:, :, m.query], k[:, :, m.key], seen, normalise, sink,
                             cap) @ v[:, :, m.value]

    heads = []
    for i, maps in enumerate(heads_read):
        seen = [visible] * 2 if isinstance(visible, Tensor) else visible[i]
        context = read(maps[0], seen[0])
        if len(maps) == 2:
            context = context - lam[..., i, None] * read(maps[1], seen[1])
        heads.append(context)
    return torch.stack(heads, dim=2)


# Lambda: the weight of the second map.


def lambda_init(spec: ModelSpec, layer: int) -> float:
    """Layers count from 0."""
    if spec.chosen("lambda_init") == "constant":
        return spec.lambda_init_value
    return 0.8 - 0.6 * math.exp(-0.3 * layer)


def exponential(spec, layer, w, x, heads):
    lam1 = torch.exp((w("lambda_q1") * w("lambda_k1")).sum())
    lam2 = torch.exp((w("lambda_q2") * w("lambda_k2")).sum())
    return (lam1 - lam2 + lambda_init(spec, layer)).expand(heads)


def raw(spec, layer, w, x, heads):
    return x @ w("lambda_proj.weight").T


def sigmoid(spec, layer, w, x, heads):
    return torch.sigmoid(raw(spec, layer, w, x, heads))


def one(spec, layer, w, x, heads):
    return x.new_ones(heads)


LAMBDAS = {"exponential": exponential, "sigmoid": sigmoid, "raw": raw, "none": one}


def normed(spec: ModelSpec, layer: int, w, context: Tensor) -> Tensor:
    """The per-head norm. Its fixed factor belongs to V1's lambda alone."""
    if spec.chosen("subln") == "false":
        return context
    factor = 1 - lambda_init(spec, layer) if spec.chosen("lambda_rule") == "exponential" else 1
    return rms_norm(context, w("subln.weight"), SUBLN_EPS) * factor


def gated(spec: ModelSpec, w, x: Tensor, context: Tensor) -> Tensor:
    if spec.chosen("gate") == "none":
        return context
    gate = torch.sigmoid(x @ w("gate_proj.weight").T)
    return context * gate.reshape(*context.shape[:3], -1)  # [B, T, heads, width or 1]


def parameter_shapes(spec: ModelSpec) -> dict:
    """Name -> shape of the weights of one self_attn; matrices are [out, in]."""
    heads_read, c, d, wide = head_mapping(spec), spec.d_model, spec.width, value_width(spec)
    queries, heads = sum(map(len, heads_read)), len(heads_read)
    shapes = {"q_proj.weight": (queries * d, c), "k_proj.weight": (spec.kv_heads * d, c),
              "v_proj.weight": (spec.kv_heads * d, c), "o_proj.weight": (c, heads * wide)}
    if spec.chosen("softmax_denominator") == "sink":
        shapes["sinks"] = (queries,)
    if spec.chosen("lambda_rule") == "exponential":
        shapes |= {f"lambda_{name}": (d,) for name in ("q1", "k1", "q2", "k2")}
    if spec.chosen("lambda_rule") in ("sigmoid", "raw"):
        shapes["lambda_proj.weight"] = (heads, c)
    if spec.chosen("subln") == "true":
        shapes["subln.weight"] = (wide,)
    if spec.chosen("gate") != "none":
        shapes["gate_proj.weight"] = (heads * (wide if spec.chosen("gate") == "elementwise" else 1),
                                      c)
    if spec.qk_norm:
        shapes |= {"q_norm.weight": (d,), "k_norm.weight": (d,)}
    return shapes


def key_values(spec: ModelSpec, w: Callable[[str], Tensor], x: Tensor) -> tuple:
    """Keys, after norm and rotation, and values: [B, T, heads, width]."""
    k = split(x @ w("k_proj.weight").T, spec.width)
    if spec.qk_norm:
        k = rms_norm(k, w("k_norm.weight"), spec.norm_eps)
    if spec.rope:
        k = rope(k, frequencies(spec), rope_length(spec))
    return k, split(x @ w("v_proj.weight").T, value_width(spec))


def split(y: Tensor, width: int) -> Tensor:
    return y.reshape(*y.shape[:2], -1, width)


def attention(spec: ModelSpec, layer: int, w: Callable[[str], Tensor], x: Tensor,
              visible: Tensor, shared: Optional[tuple] = None) -> Tensor:
    """[B, T, C] of the normed input x [B, T, C]. Keys and values are those of x, or `shared`."""
    q = split(x @ w("q_proj.weight").T, spec.width)
    if spec.qk_norm:
        q = rms_norm(q, w("q_norm.weight"), spec.norm_eps)
    if spec.rope:
        q = rope(q, frequencies(spec), rope_length(spec))
    k, v = shared or key_values(spec, w, x)
    heads_read, rule = head_mapping(spec), spec.chosen("lambda_rule")
    denominator = spec.chosen("softmax_denominator")
    lam = LAMBDAS[rule](spec, layer, w, x, len(heads_read)) if rule else None
    sinks = w("sinks") if denominator == "sink" else None
    context = contexts(heads_read, q, k, v, keys_read(spec, heads_read, q, k, visible), lam,
                       DENOMINATORS[denominator], sinks, spec.attn_logit_softcap)
    context = gated(spec, w, x, normed(spec, layer, w, context))
    return context.flatten(2) @ w("o_proj.weight").T
