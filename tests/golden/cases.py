"""The golden cases: a config each, and its drawn weights and tokens.

Each departs from the plain model in the ways its variant can be got wrong: groups of queries, an
odd number of heads, a head_dim that is not d_model / num_heads, a norm_eps that the per-head norm
must not use, a third layer for lambda_init. New cases come last: a place in the list is a seed."""

import numpy as np
import yaml

import oracle
from spec import ModelSpec

CASES = {
    "softmax_mha": dict(kind="softmax", seq_len=9, d_model=24, num_heads=4, vocab_size=31),
    "softmax_gqa": dict(kind="softmax", seq_len=17, d_model=32, num_heads=4, num_kv_heads=2,
                        vocab_size=37, rope_theta=100.0),
    "softmax_tied": dict(kind="softmax", seq_len=11, d_model=24, num_heads=3, vocab_size=64,
                         d_ff=37, tie_word_embeddings=True),
    "diff_v1_mha": dict(kind="diff_v1", seq_len=13, d_model=24, num_layers=3, num_heads=4,
                        vocab_size=31, norm_eps=1e-3),
    "diff_v1_gqa": dict(kind="diff_v1", seq_len=16, d_model=32, num_heads=8, num_kv_heads=4,
                        vocab_size=33),
    "diff_v2_mha": dict(kind="diff_v2", seq_len=15, d_model=24, num_heads=3, vocab_size=41),
    "diff_v2_gqa": dict(kind="diff_v2", seq_len=17, d_model=28, num_heads=4, num_kv_heads=2,
                        head_dim=6, vocab_size=37, rope_theta=100.0),
    "diff_v2_mqa": dict(kind="diff_v2", seq_len=10, d_model=24, num_layers=3, num_heads=4,
                        num_kv_heads=1, vocab_size=31),
    "softmax_2h_gqa": dict(kind="softmax_2h", batch_size=3, seq_len=13, d_model=14, num_heads=6,
                           num_kv_heads=2, head_dim=2, vocab_size=15, d_ff=7),
    "softmax1_mha": dict(kind="softmax1", batch_size=1, seq_len=19, d_model=15, num_heads=3,
                           head_dim=4, vocab_size=13, d_ff=9),
    "sink_gqa": dict(kind="sink", batch_size=3, seq_len=11, d_model=14, num_heads=4,
                     num_kv_heads=2, head_dim=4, vocab_size=13, d_ff=7),
    "gated_mha": dict(kind="gated", batch_size=3, seq_len=10, d_model=12, num_heads=2, head_dim=6,
                      vocab_size=14, d_ff=8),
    "gated_head_mqa": dict(kind="gated", attention={"gate": "head"}, batch_size=1, seq_len=23,
                           d_model=14, num_heads=5, num_kv_heads=1, head_dim=4, vocab_size=12,
                           d_ff=7),
    "v2_split_half_gqa": dict(kind="diff_v2", attention={"pairing": "split_half"}, batch_size=3,
                              seq_len=15, d_model=12, num_heads=6, num_kv_heads=3, head_dim=2,
                              vocab_size=11, d_ff=10),
    "v2_lambda_raw": dict(kind="diff_v2", attention={"lambda": "raw"}, batch_size=5, seq_len=7,
                          d_model=12, num_heads=3, vocab_size=13, d_ff=9),
    "v2_lambda_none": dict(kind="diff_v2", attention={"lambda": "none"}, batch_size=1, seq_len=21,
                           d_model=16, num_heads=4, num_kv_heads=1, vocab_size=13, d_ff=7),
    "v1_no_subln": dict(kind="diff_v1", attention={"subln": False}, batch_size=3, seq_len=14,
                        d_model=12, num_heads=6, head_dim=2, vocab_size=13, d_ff=9),
    "v1_lambda_init_constant": dict(
        kind="diff_v1", attention={"lambda_init": "constant", "lambda_init_value": 0.35},
        batch_size=3, seq_len=9, d_model=9, num_heads=4, num_kv_heads=2, head_dim=6,
        vocab_size=12, d_ff=5),
    "v1_lambda_sigmoid_gqa": dict(kind="diff_v1", attention={"lambda": "sigmoid"}, batch_size=1,
                                  seq_len=18, d_model=13, num_heads=12, num_kv_heads=4, head_dim=2,
                                  vocab_size=11, d_ff=5, norm_eps=1e-3),
    "v2_sink_gqa": dict(kind="diff_v2", attention={"softmax_denominator": "sink"}, batch_size=3,
                        seq_len=12, d_model=11, num_heads=4, num_kv_heads=2, head_dim=4,
                        vocab_size=9, d_ff=8),
    "v2_exponential_subln": dict(
        kind="diff_v2", attention={"lambda": "exponential", "subln": True, "gate": "head",
                                   "softmax_denominator": "softmax1"},
        batch_size=3, seq_len=13, d_model=10, num_heads=3, head_dim=4, vocab_size=8, d_ff=6),
    "v2_qk_norm_no_rope": dict(kind="diff_v2", attention={"qk_norm": True}, batch_size=1,
                               seq_len=22, d_model=10, num_heads=2, head_dim=8, vocab_size=12,
                               d_ff=9, rope=False, norm_eps=1e-2),
    "v2_window_gqa": dict(kind="diff_v2", attention={"sliding_window": 19}, batch_size=1,
                          seq_len=71, d_model=12, num_heads=4, num_kv_heads=2, vocab_size=10,
                          d_ff=7, head_dim=4),
    "v1_packed_gqa": dict(kind="diff_v1", batch_size=3, seq_len=67, d_model=10, num_heads=4,
                          num_kv_heads=2, head_dim=2, vocab_size=8, d_ff=8,
                          data={"eos_token_id": 4}),
    "v1_sink_gate_qk_norm_packed_window": dict(
        kind="diff_v1", attention={"softmax_denominator": "sink", "gate": "elementwise",
                                   "qk_norm": True, "sliding_window": 5},
        batch_size=1, seq_len=37, d_model=8, num_heads=4, head_dim=4, vocab_size=8, d_ff=5,
        data={"eos_token_id": 0}),
    "softmax_window_packed": dict(kind="softmax", attention={"sliding_window": 7}, batch_size=3,
                                  seq_len=69, d_model=10, num_heads=3, head_dim=4, vocab_size=8,
                                  d_ff=7, data={"eos_token_id": 2}),
    "v2_split_half_sink_packed": dict(
        kind="diff_v2", attention={"pairing": "split_half", "softmax_denominator": "sink"},
        batch_size=1, seq_len=66, d_model=9, num_heads=4, num_kv_heads=2, head_dim=4, vocab_size=9,
        d_ff=5, data={"eos_token_id": 8}),
    "softmax_softcaps_gqa": dict(
        kind="softmax", attention={"attn_logit_softcap": 0.75}, batch_size=3, seq_len=14,
        d_model=12, num_heads=4, num_kv_heads=2, head_dim=4, vocab_size=11, d_ff=7, final_logit_softcap=1.5),
    "v1_embedding_norm_z_loss": dict(
        kind="diff_v1", attention={"attn_logit_softcap": 1.25}, batch_size=1, seq_len=17,
        d_model=13, num_heads=4, num_kv_heads=2, head_dim=4, vocab_size=12, d_ff=9, norm_eps=1e-2,
        tie_word_embeddings=True, embedding_norm=True, z_loss_weight=0.1),
    "v2_all_remedies_sink_packed": dict(
        kind="diff_v2", attention={"softmax_denominator": "sink", "qk_norm": True,
                                   "attn_logit_softcap": 1.0},
        batch_size=1, seq_len=66, d_model=9, num_heads=4, num_kv_heads=2, head_dim=4, vocab_size=9,
        d_ff=5, embedding_norm=True, z_loss_weight=0.25, final_logit_softcap=1.25,
        data={"eos_token_id": 6}),
    "v2_yarn_mqa": dict(
        kind="diff_v2", rope_scaling={"rope_type": "yarn", "factor": 3.0, "original_seq_len": 40},
        batch_size=1, seq_len=61, d_model=9, num_heads=2, num_kv_heads=1, head_dim=8,
        vocab_size=11, d_ff=7, rope_theta=300.0),
    "v1_ntk": dict(kind="diff_v1", rope_scaling={"rope_type": "ntk", "factor": 2.5,
                                                 "attention_factor": 0.75},
                   batch_size=3, seq_len=13, d_model=8, num_heads=4, num_kv_heads=2, head_dim=4, vocab_size=9,
                   d_ff=6, rope_theta=100.0),
    "softmax_linear": dict(kind="softmax", rope_scaling={"rope_type": "linear", "factor": 4.0},
                           batch_size=3, seq_len=12, d_model=9, num_heads=3, head_dim=4,
                           vocab_size=8, d_ff=7, rope_theta=10.0),
    "moe_mixtral": dict(kind="softmax", batch_size=2, seq_len=11, d_model=7, num_heads=2,
                        num_kv_heads=1, head_dim=2, vocab_size=8,
                        moe={"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 5,
                             "router_aux_loss_coef": 0.2}),
    "moe_qwen_v1": dict(kind="diff_v1", batch_size=3, seq_len=7, d_model=9, num_layers=1, num_heads=4,
                        head_dim=2, vocab_size=9,
                        moe={"num_experts": 5, "num_experts_per_tok": 3, "num_shared_experts": 2,
                             "moe_intermediate_size": 3, "norm_topk_prob": False,
                             "router_z_loss_coef": 0.1}),
    "moe_deepseek_v2": dict(kind="diff_v2", batch_size=3, seq_len=16, d_model=10, num_layers=1,
                            num_heads=2, head_dim=4, vocab_size=10,
                            moe={"num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 1,
                                 "moe_intermediate_size": 4, "scoring_func": "sigmoid",
                                 "router_aux_loss_coef": 0.1, "router_z_loss_coef": 0.05,
                                 "router_bias_update_rate": 0.01}),
    "softmax_blocks_gqa": dict(
        kind="softmax", attention={"block_size": 16, "num_selected_blocks": 3}, batch_size=1,
        seq_len=101, d_model=9, num_heads=4, num_kv_heads=2, head_dim=4, vocab_size=11, d_ff=6),
    "v1_blocks_separately": dict(
        kind="diff_v1", attention={"block_size": 16, "num_selected_blocks": 2,
                                   "block_selection": "separately"},
        batch_size=2, seq_len=70, d_model=8, num_heads=4, num_kv_heads=2, head_dim=4, vocab_size=9,
        d_ff=6),
    "v2_blocks_gqa_packed": dict(
        kind="diff_v2", attention={"block_size": 16, "num_selected_blocks": 2}, batch_size=2,
        seq_len=85, d_model=9, num_heads=4, num_kv_heads=2, head_dim=4, vocab_size=40, d_ff=5,
        data={"eos_token_id": 3}),
    "v2_split_half_sink_blocks_separately": dict(
        kind="diff_v2", attention={"pairing": "split_half", "softmax_denominator": "sink",
                                   "block_size": 32, "num_selected_blocks": 2,
                                   "block_selection": "separately"},
        batch_size=1, seq_len=130, d_model=8, num_heads=2, head_dim=4, vocab_size=9, d_ff=6),
    "yoco_v1_qk_norm_packed": dict(
        kind="diff_v1", attention={"lambda": "sigmoid", "qk_norm": True, "sliding_window": 4},
        batch_size=1, seq_len=37, d_model=6, num_layers=3, num_heads=2, head_dim=4, vocab_size=7, d_ff=4,
        norm_eps=1e-2, yoco_self_layers=1, data={"eos_token_id": 3}),
    "yoco_v2_sink_gate_mqa": dict(
        kind="diff_v2", attention={"softmax_denominator": "sink", "gate": "elementwise",
                                   "sliding_window": 3},
        batch_size=2, seq_len=13, d_model=6, num_layers=3, num_heads=2, num_kv_heads=1, head_dim=4,
        vocab_size=7, d_ff=4, rope_theta=100.0, yoco_self_layers=2),
}
SEED = 2026


def config(name: str) -> str:
    """The config of one case as YAML, every size explicit."""
    model = {"num_layers": 2, "d_ff": 40, "rope_theta": 10000.0, "norm_eps": 1e-5,
             "tie_word_embeddings": False} | CASES[name]
    attention = {"kind": model.pop("kind")} | model.pop("attention", {})
    data = {"seq_len": model.pop("seq_len"), "batch_size": model.pop("batch_size", 2)}
    data |= model.pop("data", {})
    model.setdefault("num_kv_heads", model["num_heads"])
    model.setdefault("head_dim", model["d_model"] // model["num_heads"])
    model |= {"max_seq_len": data["seq_len"], "attention": attention}
    return yaml.safe_dump({"run": {"name": name}, "model": model, "data": data}, sort_keys=False,
                          default_flow_style=None)


def draw_weights(spec: ModelSpec, rng: np.random.Generator) -> dict:
    """Weights large enough that every gradient is far from zero, and small enough that float32
    reaches its tolerance: at 0.3 for the matrices, rounding alone costs diff_v1 2e-5. Each is a
    float32 value, so that both precisions of difftape start from the same numbers."""
    weights = {}
    for name, shape in oracle.parameter_shapes(spec).items():
        value = rng.standard_normal(shape)
        if name.endswith(("norm.weight", "subln.weight")):
            value = 1 + 0.2 * value
        elif name.endswith("e_score_correction_bias"):
            value *= 0.1
        elif not name.endswith("sinks"):
            value *= 0.3 if len(shape) == 1 else 0.2  # lambda vectors; matrices
        weights[name] = value.astype(np.float32).astype(np.float64)
    return weights


def draw_tokens(spec: ModelSpec, batch: int, seq_len: int, rng: np.random.Generator) -> np.ndarray:
    """int32 [B, T+1]. In packed rows one token in six ends a document."""
    tokens = rng.integers(0, spec.vocab_size, (batch, seq_len + 1), dtype=np.int32)
    if spec.eos_token_id >= 0:
        others = spec.eos_token_id + rng.integers(1, spec.vocab_size, tokens.shape)
        ends = rng.random(tokens.shape) < 1 / 6
        tokens = np.where(ends, spec.eos_token_id, others % spec.vocab_size)
    return tokens.astype(np.int32)
