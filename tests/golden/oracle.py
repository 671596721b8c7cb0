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


def mlps(spec: ModelSpec) -> dict:
    """Name -> hidden width of every MLP of a layer."""
    if not spec.num_experts:
        return {"mlp": spec.d_ff}
    f = spec.moe_intermediate_size
    widths = {f"mlp.experts.{e}": f for e in range(spec.num_experts)}
    if spec.num_shared_experts:
        widths["mlp.shared_experts"] = spec.num_shared_experts * f
    return widths


OF_KEYS_AND_VALUES = ("k_proj.weight", "v_proj.weight", "k_norm.weight")


def in_cross_decoder(spec: ModelSpec, layer: int) -> bool:
    return 0 < spec.yoco_self_layers <= layer


def parameter_shapes(spec: ModelSpec) -> dict:
    """Name -> shape of every weight; matrices are [out, in]."""
    c = spec.d_model
    shapes = {"model.embed_tokens.weight": (spec.vocab_size, c)}
    if spec.embedding_norm:
        shapes["model.embedding_norm.weight"] = (c,)
    for i in range(spec.num_layers):
        layer = f"model.layers.{i}."
        shapes[layer + "input_layernorm.weight"] = (c,)
        shapes |= {f"{layer}self_attn.{name}": shape
                   for name, shape in attention.parameter_shapes(spec).items()
                   if not (in_cross_decoder(spec, i) and name in OF_KEYS_AND_VALUES)}
        shapes[layer + "post_attention_layernorm.weight"] = (c,)
        for mlp, width in mlps(spec).items():
            shapes[f"{layer}{mlp}.gate_proj.weight"] = (width, c)
            shapes[f"{layer}{mlp}.up_proj.weight"] = (width, c)
            shapes[f"{layer}{mlp}.down_proj.weight"] = (c, width)
        if spec.num_experts:
            shapes[layer + "mlp.gate.weight"] = (spec.num_experts, c)
        if spec.router_bias_update_rate:
            shapes[layer + "mlp.gate.e_score_correction_bias"] = (spec.num_experts,)
    if spec.yoco_self_layers:
        shapes["model.shared_kv.norm.weight"] = (c,)
        shapes |= {f"model.shared_kv.{name}": shape
                   for name, shape in attention.parameter_shapes(spec).items()
                   if name in OF_KEYS_AND_VALUES}
    shapes["model.norm.weight"] = (c,)
    if not spec.tie_word_embeddings:
        shapes["lm_head.weight"] = (spec.vocab_size, c)
    return shapes


def swiglu(w: Callable[[str], Tensor], x: Tensor) -> Tensor:
    gate, up = x @ w("gate_proj.weight").T, x @ w("up_proj.weight").T
    return (gate * torch.sigmoid(gate) * up) @ w("down_proj.weight").T


def mixture(spec: ModelSpec, w: Callable[[str], Tensor], x: Tensor):
    """The output of a mixture of experts, token by token, and the loss of its router."""
    out, chosen_by, scores_of, log_z = torch.zeros_like(x), [], [], []
    for place in torch.cartesian_prod(*(torch.arange(n) for n in x.shape[:-1])).tolist():
        token = x[tuple(place)]
        router = w("gate.weight") @ token
        if spec.scoring_func == "softmax":
            scores = torch.softmax(router, 0)
        else:
            scores = 1 / (1 + torch.exp(-router))
        wanted = scores.detach()
        if spec.router_bias_update_rate:
            wanted = wanted + w("gate.e_score_correction_bias").detach()
        chosen = sorted(range(spec.num_experts), key=lambda e: -wanted[e])[:spec.num_experts_per_tok]
        total = sum(scores[e] for e in chosen) if spec.norm_topk_prob else 1
        for e in chosen:
            expert = swiglu(lambda name, e=e: w(f"experts.{e}.{name}"), token)
            out[tuple(place)] = out[tuple(place)] + scores[e] / total * expert
        chosen_by += chosen
        scores_of.append(scores / scores.sum())
        log_z.append(torch.logsumexp(router, 0))
    if spec.num_shared_experts:
        out = out + swiglu(lambda name: w("shared_experts." + name), x)
    tokens = len(log_z)
    balance = spec.num_experts * sum(
        chosen_by.count(e) / tokens * torch.stack(scores_of)[:, e].mean()
        for e in range(spec.num_experts))
    z_loss = torch.stack(log_z).square().mean()
    return out, spec.router_aux_loss_coef * balance + spec.router_z_loss_coef * z_loss


def logits(spec: ModelSpec, weights: dict, tokens: Tensor) -> Tensor:
    """[B, T, V] for tokens [B, T]."""
    return forward(spec, weights, tokens)[0]


def forward(spec: ModelSpec, weights: dict, tokens: Tensor):
    """The logits, and the losses of all routers."""
    router_loss = torch.zeros((), dtype=torch.float64)
    windowed, whole = (attention.visibility(tokens, window, spec.eos_token_id)
                       for window in (spec.sliding_window, 0))
    shared = None
    x = weights["model.embed_tokens.weight"][tokens]
    if spec.embedding_norm:
        x = rms_norm(x, weights["model.embedding_norm.weight"], spec.norm_eps)
    for i in range(spec.num_layers):

        def w(name, layer=f"model.layers.{i}."):
            return weights[layer + name]

        if spec.yoco_self_layers and i == spec.yoco_self_layers:
            normed = rms_norm(x, weights["model.shared_kv.norm.weight"], spec.norm_eps)
            shared = attention.key_values(
                spec, lambda name: weights["model.shared_kv." + name], normed)
        normed = rms_norm(x, w("input_layernorm.weight"), spec.norm_eps)
        x = x + attention.attention(spec, i, lambda name: w("self_attn." + name), normed,
                                    whole if in_cross_decoder(spec, i) else windowed, shared)
        normed = rms_norm(x, w("post_attention_layernorm.weight"), spec.norm_eps)
        mlp = (lambda name: w("mlp." + name))
        if spec.num_experts:
            y, of_router = mixture(spec, mlp, normed)
            x, router_loss = x + y, router_loss + of_router
        else:
            x = x + swiglu(mlp, normed)
    x = rms_norm(x, weights["model.norm.weight"], spec.norm_eps)
    head = "model.embed_tokens.weight" if spec.tie_word_embeddings else "lm_head.weight"
    return softcap(x @ weights[head].T, spec.final_logit_softcap), router_loss


def cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean over all B * T positions, in nats; the first token of a next document counts too."""
    log_p = scores - torch.logsumexp(scores, dim=-1, keepdim=True)
    return -log_p.gather(-1, targets[..., None]).mean()


def loss(spec: ModelSpec, weights: dict, tokens: Tensor):
    """What is trained on, the cross-entropy, the z-loss as a mean over the same positions, and the
    losses of routers; and the logits. tokens is [B, T+1]: inputs and, one later, targets."""
    scores, router_loss = forward(spec, weights, tokens[:, :-1])
    log_z = torch.logsumexp(scores, dim=-1)
    z_loss = spec.z_loss_weight * (log_z * log_z).mean()
    return cross_entropy(scores, tokens[:, 1:]) + z_loss + router_loss, scores


class Result(NamedTuple):
    loss: Tensor
    logits: Tensor
    grads: dict


def evaluate(spec: ModelSpec, weights: dict, tokens: Tensor) -> Result:
    """Loss, logits and every gradient; the bias of a router has none."""
    leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
    tokens = tokens.long()
    total, scores = loss(spec, leaves, tokens)
    total.backward()
    grads = {name: torch.zeros_like(w) if w.grad is None else w.grad for name, w in leaves.items()}
    return Result(total.detach(), scores.detach(), grads)
