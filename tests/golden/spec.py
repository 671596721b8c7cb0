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
    """Flat. The attention fields are called as in the config, save `lambda`, a word of Python's.
    0 in num_kv_heads and head_dim means the documented default."""

    kind: str = "softmax"
    pairing: str = "preset"
    lambda_rule: str = "preset"
    lambda_init: str = "preset"
    lambda_init_value: float = 0.8
    softmax_denominator: str = "preset"
    subln: str = "preset"
    gate: str = "preset"
    qk_norm: bool = False
    sliding_window: int = 0
    d_model: int = 128
    num_layers: int = 4
    num_heads: int = 4
    num_kv_heads: int = 0
    head_dim: int = 0
    d_ff: int = 344
    vocab_size: int = 256
    rope: bool = True
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    tie_embeddings: bool = False
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
        if self.lambda_init != "preset" and self.chosen("lambda_rule") != "exponential":
            raise ValueError("lambda_init needs the exponential lambda")

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
        """Reads a config.yaml. An attention key that is not known here is an error."""
        config = yaml.safe_load(text)
        model = dict(config["model"])
        attention = dict(model.pop("attention", {}))
        if "lambda" in attention:
            attention["lambda_rule"] = attention.pop("lambda")
        types = {name: field.type for name, field in ModelSpec.__dataclass_fields__.items()}
        unknown = attention.keys() - types.keys()
        if unknown:
            raise ValueError(f"model.attention has keys the oracle does not know: {unknown}")
        values = {name: value for name, value in model.items() if name in types} | attention
        if "eos_token_id" in config.get("data", {}):
            values["eos_token_id"] = config["data"]["eos_token_id"]
        return ModelSpec(**{name: convert(types[name], value) for name, value in values.items()})


def convert(to: type, value):
    """PyYAML reads 1e-05 as a string, and `subln: true`, which is a word here, as a boolean."""
    if to is str and isinstance(value, bool):
        return str(value).lower()
    return to(value)
