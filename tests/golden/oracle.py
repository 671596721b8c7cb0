"""The difftape language model once more, in PyTorch: naive, explicit, one head at a time.

Shares nothing with the C++ sources, so that agreement means something. Derivatives come from
autograd. Runs in the precision of the weights it is given. attention.py holds the attention family.

Letters: B batch, T sequence, C d_model, V vocabulary.
"""

from typing import Callable, NamedTuple

import torch
from torch import Tensor

import attention
from attention import rms_norm, softcap
from spec import ModelSpec


def parameter_shapes(spec: ModelSpec) -> dict:
    """Name -> shape of every weight; matrices are [out, in]."""
    c, f = spec.d_model, spec.d_ff
    shapes = {"model.embed_tokens.weight": (spec.vocab_size, c)}
    if spec.embedding_norm:
        shapes["model.embedding_norm.weight"] = (c,)
    for i in range(spec.num_layers):
        layer = f"model.layers.{i}."
        shapes[layer + "input_layernorm.weight"] = (c,)
        shapes |= {f"{layer}self_attn.{name}": shape
                   for name, shape in attention.parameter_shapes(spec).items()}
        shapes[layer + "post_attention_layernorm.weight"] = (c,)
        shapes[layer + "mlp.gate_proj.weight"] = (f, c)
        shapes[layer + "mlp.up_proj.weight"] = (f, c)
        shapes[layer + "mlp.down_proj.weight"] = (c, f)
    shapes["model.norm.weight"] = (c,)
    if not spec.tie_word_embeddings:
        shapes["lm_head.weight"] = (spec.vocab_size, c)
    return shapes


def swiglu(w: Callable[[str], Tensor], x: Tensor) -> Tensor:
    gate, up = x @ w("gate_proj.weight").T, x @ w("up_proj.weight").T
    return (gate * torch.sigmoid(gate) * up) @ w("down_proj.weight").T


def logits(spec: ModelSpec, weights: dict, tokens: Tensor) -> Tensor:
    """[B, T, V] for tokens [B, T]."""
    visible = attention.visibility(tokens, spec.sliding_window, spec.eos_token_id)
    x = weights["model.embed_tokens.weight"][tokens]
    if spec.embedding_norm:
        x = rms_norm(x, weights["model.embedding_norm.weight"], spec.norm_eps)
    for i in range(spec.num_layers):

        def w(name, layer=f"model.layers.{i}."):
            return weights[layer + name]

        normed = rms_norm(x, w("input_layernorm.weight"), spec.norm_eps)
        x = x + attention.attention(spec, i, lambda name: w("self_attn." + name), normed, visible)
        normed = rms_norm(x, w("post_attention_layernorm.weight"), spec.norm_eps)
        x = x + swiglu(lambda name: w("mlp." + name), normed)
    x = rms_norm(x, weights["model.norm.weight"], spec.norm_eps)
    head = "model.embed_tokens.weight" if spec.tie_word_embeddings else "lm_head.weight"
    return softcap(x @ weights[head].T, spec.final_logit_softcap)


def cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean over all B * T positions, in nats; the first token of a next document counts too."""
    log_p = scores - torch.logsumexp(scores, dim=-1, keepdim=True)
    return -log_p.gather(-1, targets[..., None]).mean()


def loss(spec: ModelSpec, scores: Tensor, targets: Tensor) -> Tensor:
    """What is trained on: the cross-entropy and the z-loss, a mean over the same positions."""
    log_z = torch.logsumexp(scores, dim=-1)
    return cross_entropy(scores, targets) + spec.z_loss_weight * (log_z * log_z).mean()


class Result(NamedTuple):
    loss: Tensor
    logits: Tensor
    grads: dict


def evaluate(spec: ModelSpec, weights: dict, tokens: Tensor) -> Result:
    """Loss, logits and every gradient. tokens is [B, T+1]: inputs and, one later, targets."""
    leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
    tokens = tokens.long()
    scores = logits(spec, leaves, tokens[:, :-1])
    total = loss(spec, scores, tokens[:, 1:])
    total.backward()
    return Result(total.detach(), scores.detach(), {name: w.grad for name, w in leaves.items()})
