"""One attention layer as the authors write it: few calls of PyTorch's own attention, then slices of
what it returns. Another way to every combination of the fields, for the tests."""

import math

import torch
import torch.nn.functional as F

from attention import frequencies, lambda_init, rope_length


def complex_rope(x, frequency, length=1.0):
    """x is [B, heads, T, d]."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turn = torch.arange(x.shape[2])[:, None] * frequency
    return torch.view_as_real(pairs * torch.polar(length * torch.ones_like(turn), turn)).flatten(-2)


def attend(q, k, v, visible, sinks, cap):
    """PyTorch's attention on [B, heads, T, width]; an extra logit is a key and a value of zeros,
    with the logit as its bias, and the bias of another key is what a soft cap changes of its
    score."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    bias = torch.zeros(visible.shape).masked_fill(~visible, -math.inf)
    bias = bias.expand(-1, q.shape[1], -1, -1)
    if cap:
        scores = torch.einsum("bhtd,bhjd->bhtj", q, k) * q.shape[-1] ** -0.5
        bias = bias + cap * (2 * F.sigmoid(2 * scores / cap) - 1) - scores
    if sinks is not None:
        k, v = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1))
        bias = torch.cat((bias, sinks[:, None, None].expand(*bias.shape[:3], 1)), dim=-1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def keys_read(spec, q, k, visible):
    """[B, 1 or heads, T, T]: visible keys in the blocks that each query head reads."""
    visible = visible[:, None]
    if not spec.block_size:
        return visible
    heads, length, size = q.shape[1], q.shape[2], spec.block_size
    blocks = -(-length // size)
    k = k.repeat_interleave(heads // k.shape[1], 1) if spec.kind != "diff_v1" else torch.stack(
        [k[:, i::2].repeat_interleave(heads // k.shape[1], 1) for i in (0, 1)], 2).flatten(1, 2)
    seen = F.pad(visible[:, :, ::size].double(), (0, blocks * size - length))  # by first queries
    products = F.pad(q[:, :, ::size] @ k.transpose(2, 3), (0, blocks * size - length)) * seen
    count = seen.unflatten(-1, (blocks, size)).sum(-1)
    scores = products.unflatten(-1, (blocks, size)).sum(-1) / count.clamp(min=1)
    # Heads in the order (part, group, head): parts choose for themselves.
    first = torch.arange(heads)
    group = first * spec.kv_heads // heads // (2 if spec.kind == "diff_v1" else 1)
    halves = spec.kind == "diff_v2" and spec.chosen("pairing") == "split_half"
    if halves and spec.kv_heads > 1:
        group = group % (spec.kv_heads // 2)
    part = (first * 2 // heads if halves else first % 2) * (spec.block_selection == "separately")
    together = (group[:, None] == group) & (part[:, None] == part)
    scores = torch.einsum("hg,bgij->bhij", together.double(), scores)
    earlier = torch.ones(blocks, blocks).tril(-1).bool() & (count > 0)
    scores = scores.masked_fill(~earlier, -math.inf)
    rank = (scores[..., None, :] > scores[..., None]).sum(-1)  # blocks that are better
    read = (earlier & (rank < spec.num_selected_blocks - 1)) | torch.eye(blocks).bool()
    read = read.repeat_interleave(size, 2).repeat_interleave(size, 3)[..., :length, :length]
    return visible & read


def lambda_of(spec, layer, w, x):
    """Broadcasts with [B, heads, T, width]."""
    rule = spec.chosen("lambda_rule")
    if rule == "exponential":
        return (w("lambda_q1").dot(w("lambda_k1")).exp() - w("lambda_q2").dot(w("lambda_k2")).exp()
                + lambda_init(spec, layer))
    if rule == "none":
        return 1
    logit = F.linear(x, w("lambda_proj.weight")).transpose(1, 2)[..., None]
    return F.sigmoid(logit) if rule == "sigmoid" else logit


def layer_output(spec, layer, w, x, visible):
    """What attention.attention returns."""

    def heads(name, width):
        return F.linear(x, w(name)).unflatten(-1, (-1, width)).transpose(1, 2)

    d = spec.width
    q, k = heads("q_proj.weight", d), heads("k_proj.weight", d)
    if spec.qk_norm:
        q = F.rms_norm(q, (d,), w("q_norm.weight"), spec.norm_eps)
        k = F.rms_norm(k, (d,), w("k_norm.weight"), spec.norm_eps)
    if spec.rope:
        q, k = (complex_rope(x, frequencies(spec), rope_length(spec)) for x in (q, k))
    visible = keys_read(spec, q, k, visible)
    sinks = None
    denominator = spec.chosen("softmax_denominator")
    if denominator != "softmax":
        sinks = w("sinks") if denominator == "sink" else torch.zeros(q.shape[1])
    if spec.kind == "diff_v1":
        v = heads("v_proj.weight", 2 * d)
        first, second = (attend(q[:, i::2], k[:, i::2], v,
                                visible[:, i::2] if spec.block_size else visible,
                                None if sinks is None else sinks[i::2], spec.attn_logit_softcap)
                         for i in (0, 1))
    else:
        context = attend(q, k, heads("v_proj.weight", d), visible, sinks, spec.attn_logit_softcap)
    if spec.kind == "diff_v2":
        halves = spec.chosen("pairing") == "split_half"
        first, second = context.chunk(2, 1) if halves else (context[:, ::2], context[:, 1::2])
    if spec.kind in ("diff_v1", "diff_v2"):
        context = first - lambda_of(spec, layer, w, x) * second
    if spec.chosen("subln") == "true":
        context = F.rms_norm(context, context.shape[-1:], w("subln.weight"), 1e-5)
        if spec.chosen("lambda_rule") == "exponential":
            context = context * (1 - lambda_init(spec, layer))
    context = context.transpose(1, 2)  # [B, T, heads, width]
    if spec.chosen("gate") != "none":
        gate = F.sigmoid(F.linear(x, w("gate_proj.weight")))
        width = context.shape[-1] if spec.chosen("gate") == "elementwise" else 1
        context = context * gate.unflatten(-1, (-1, width))
    return F.linear(context.flatten(2), w("o_proj.weight"))
