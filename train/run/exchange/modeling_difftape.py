"""Differential attention V2 (Ye et al. 2026) in Hugging Face transformers, written by difftape.

Llama with twice the query heads over the same keys and values. Output head i is the difference of
two softmax maps, and lambda follows from the input of the layer, for each token and head:

    out_i = softmax(q_a k^T) v - lambda_i softmax(q_b k^T) v
    pairing      "interleaved": a = 2i, b = 2i + 1; "split_half": a = i, b = i + num_attention_heads
    lambda_rule  "sigmoid": sigmoid(x W^T); "raw": x W^T; "none": 1

Load with AutoModelForCausalLM.from_pretrained(directory, trust_remote_code=True).
"""

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    apply_rotary_pos_emb,
    eager_attention_forward,
)


class DifftapeV2Config(LlamaConfig):
    """num_attention_heads counts output heads."""

    model_type = "difftape_v2"
    pairing: str = "interleaved"
    lambda_rule: str = "sigmoid"


class DifftapeV2Attention(LlamaAttention):
    def __init__(self, config, layer_idx):
        super().__init__(config, layer_idx)
        heads = config.num_attention_heads
        self.q_proj = nn.Linear(config.hidden_size, 2 * heads * self.head_dim, bias=False)
        self.num_key_value_groups = 2 * heads // config.num_key_value_heads
        if config.lambda_rule != "none":
            self.lambda_proj = nn.Linear(config.hidden_size, heads, bias=False)

    def weight_of_second_map(self, x):
        """(B, T, heads, 1), or 1."""
        if self.config.lambda_rule == "none":
            return 1
        raw = self.lambda_proj(x).unsqueeze(-1)
        return torch.sigmoid(raw) if self.config.lambda_rule == "sigmoid" else raw

    def forward(self, hidden_states, position_embeddings=None, attention_mask=None,
                past_key_values=None, cache=None, **kwargs):
        cache = past_key_values if cache is None else cache  # named `cache` since transformers 5.24
        batch, seq, _ = hidden_states.shape
        q, k, v = (projection(hidden_states).view(batch, seq, -1, self.head_dim).transpose(1, 2)
                   for projection in (self.q_proj, self.k_proj, self.v_proj))
        q, k = apply_rotary_pos_emb(q, k, *position_embeddings)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        attention = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention_forward)
        both, maps = attention(self, q, k, v, attention_mask, dropout=0.0, scaling=self.scaling,
                               **kwargs)  # (B, T, 2 heads, D)
        if self.config.pairing == "interleaved":
            first, second = both[:, :, 0::2], both[:, :, 1::2]
        else:
            first, second = both.chunk(2, dim=2)
        out = first - self.weight_of_second_map(hidden_states) * second
        return self.o_proj(out.reshape(batch, seq, -1)), maps


class DifftapeV2ForCausalLM(LlamaForCausalLM):
    config_class = DifftapeV2Config

    def __init__(self, config):
        super().__init__(config)
        for index, layer in enumerate(self.model.layers):
            layer.self_attn = DifftapeV2Attention(config, index)
