"""A model as plain values: the keys of a config that change the function, and the presets."""

from dataclasses import dataclass
from typing import NamedTuple, Optional

import yaml

CHOICES = {
    "pairing": ("interleaved", "split_half"),
    "lambda_rule": ("exponential", "sigmoid", "raw", "none"),
    "lambda_init": ("schedule", "constant"),
    "softmax_denominator": ("softmax", "softmax1", "sink"),
    "subln": ("true", "false"),
    "gate": ("none", "elementwise", "head"),
}
ROPE_SCALINGS = ("none", "linear", "ntk", "yarn")

# Key of a config -> field of ModelSpec. None: the key changes nothing for given weights.
ATTENTION_KEYS = {name: name for name in (
    "kind", "pairing", "lambda_init", "lambda_init_value", "softmax_denominator", "subln", "gate",
    "qk_norm", "attn_logit_softcap", "sliding_window", "block_size", "num_selected_blocks",
    "block_selection")}
ATTENTION_KEYS |= {"lambda": "lambda_rule", "qk_clip_threshold": None}
MODEL_KEYS = {name: name for name in (
    "d_model", "num_layers", "num_heads", "num_kv_heads", "head_dim", "d_ff", "vocab_size", "rope",
    "rope_theta", "norm_eps", "tie_word_embeddings", "embedding_norm", "yoco_self_layers",
    "z_loss_weight", "final_logit_softcap")}
MODEL_KEYS |= {"max_seq_len": None, "match_params": None, "init": None}
MOE_KEYS = {name: name for name in (
    "num_experts", "num_experts_per_tok", "num_shared_experts", "moe_intermediate_size",
    "scoring_func", "norm_topk_prob", "router_aux_loss_coef", "router_z_loss_coef",
    "router_bias_update_rate")}
ROPE_KEYS = {"rope_type": "rope_scaling", "factor": "rope_factor",
             "original_seq_len": "rope_original", "attention_factor": "rope_attention_factor"}


class Preset(NamedTuple):
    """What `kind` says of a field that is left at "preset". None: the kind has no such thing."""

    head_mapping: str  # of attention.HEAD_MAPPINGS
    pairing: Optional[str] = None
    lambda_rule: Optional[str] = None
    lambda_init: Optional[str] = None
    softmax_denominator: str = "softmax"
    subln: str = "false"
    gate: str = "none"


PRESETS = {
    "softmax": Preset("single"),
    "softmax_2h": Preset("single_2h"),
    "diff_v1": Preset("pairs", lambda_rule="exponential", lambda_init="schedule", subln="true"),
    "diff_v2": Preset("doubled", pairing="interleaved", lambda_rule="sigmoid",
                      lambda_init="schedule"),
    "softmax1": Preset("single", softmax_denominator="softmax1"),
    "sink": Preset("single", softmax_denominator="sink"),
    "gated": Preset("single", gate="elementwise"),
}


@dataclass(frozen=True)
class ModelSpec:
    """Flat. The fields are called as in the config, save `lambda`, a word of Python's. 0 in
    num_kv_heads and head_dim means the documented default; a soft cap of 0 is none."""

    kind: str = "softmax"
    pairing: str = "preset"
    lambda_rule: str = "preset"
    lambda_init: str = "preset"
    lambda_init_value: float = 0.8
    softmax_denominator: str = "preset"
    subln: str = "preset"
    gate: str = "preset"
    qk_norm: bool = False
    attn_logit_softcap: float = 0.0
    sliding_window: int = 0
    block_size: int = 0
    num_selected_blocks: int = 0
    block_selection: str = "averaged"
    d_model: int = 128
    num_layers: int = 4
    num_heads: int = 4
    num_kv_heads: int = 0
    head_dim: int = 0
    d_ff: int = 344
    vocab_size: int = 256
    rope: bool = True
    rope_theta: float = 10000.0
    rope_scaling: str = "none"
    rope_factor: float = 1.0
    rope_original: int = 0  # needed by yarn
    rope_attention_factor: float = 0.0
    norm_eps: float = 1e-5
    tie_word_embeddings: bool = False
    embedding_norm: bool = False
    yoco_self_layers: int = 0
    z_loss_weight: float = 0.0
    final_logit_softcap: float = 0.0
    num_experts: int = 0  # 0: the dense MLP
    num_experts_per_tok: int = 2
    num_shared_experts: int = 0
    moe_intermediate_size: int = 0
    scoring_func: str = "softmax"
    norm_topk_prob: bool = True
    router_aux_loss_coef: float = 0.0
    router_z_loss_coef: float = 0.0
    router_bias_update_rate: float = 0.0  # above 0: there is a bias
    eos_token_id: int = -1

    def __post_init__(self):
        """Refuses what would otherwise be ignored."""
        for field, words in CHOICES.items():
            value = getattr(self, field)
            if value == "preset":
                continue
            if value not in words:
                raise ValueError(f"{field} is {value!r}; need preset or one of {words}")
            if getattr(PRESETS[self.kind], field) is None:
                raise ValueError(f"{self.kind} has no {field}")
        if self.scoring_func not in ("softmax", "sigmoid"):
            raise ValueError(f"scoring_func is {self.scoring_func!r}; need softmax or sigmoid")
        if self.rope_scaling not in ROPE_SCALINGS:
            raise ValueError(f"rope_scaling is {self.rope_scaling!r}; need one of {ROPE_SCALINGS}")
        if self.rope_scaling == "yarn" and not self.rope_original:
            raise ValueError("yarn needs the original length")
        if self.yoco_self_layers >= self.num_layers:
            raise ValueError("no layer is left to the cross-decoder")
        if self.lambda_init != "preset" and self.chosen("lambda_rule") != "exponential":
            raise ValueError("lambda_init needs the exponential lambda")
        if self.block_selection not in ("averaged", "separately"):
            raise ValueError(f"block_selection is {self.block_selection!r}")
        if self.block_size and self.num_selected_blocks < 1:
            raise ValueError("a query reads its own block at least")
        for field in ("attn_logit_softcap", "final_logit_softcap", "z_loss_weight"):
            if getattr(self, field) < 0:
                raise ValueError(f"{field} is {getattr(self, field)}; need 0 or more")

    def chosen(self, field: str) -> str:
        """The value of one of CHOICES, with "preset" resolved."""
        value = getattr(self, field)
        return getattr(PRESETS[self.kind], field) if value == "preset" else value

    @property
    def kv_heads(self) -> int:
        return self.num_kv_heads or self.num_heads

    @property
    def width(self) -> int:
        """d: the length of one query or key head."""
        return self.head_dim or self.d_model // self.num_heads

    @staticmethod
    def from_yaml(text: str) -> "ModelSpec":
        """Reads a config.yaml. A model key that is not known here is an error."""
        config = yaml.safe_load(text)
        model = dict(config["model"])
        attention = model.pop("attention", {})
        scaling, moe = model.pop("rope_scaling", {}), model.pop("moe", {})
        values = values_of("model", model, MODEL_KEYS)
        values |= values_of("model.rope_scaling", scaling, ROPE_KEYS)
        values |= values_of("model.moe", moe, MOE_KEYS)
        values |= values_of("model.attention", attention, ATTENTION_KEYS)
        if "eos_token_id" in config.get("data", {}):
            values["eos_token_id"] = config["data"]["eos_token_id"]
        types = {name: field.type for name, field in ModelSpec.__dataclass_fields__.items()}
        return ModelSpec(**{name: convert(types[name], value) for name, value in values.items()})


def values_of(section: str, given: dict, fields: dict) -> dict:
    """Field of ModelSpec -> value, of one section of a config."""
    unknown = given.keys() - fields.keys()
    if unknown:
        raise ValueError(f"{section} has keys the oracle does not know: {sorted(unknown)}")
    return {fields[key]: value for key, value in given.items() if fields[key]}


def convert(to: type, value):
    """PyYAML reads 1e-05 as a string, and `subln: true`, which is a word here, as a boolean."""
    if to is str and isinstance(value, bool):
        return str(value).lower()
    if to is bool and not isinstance(value, bool):
        raise ValueError(f"{value!r} is no boolean")
    return to(value)
