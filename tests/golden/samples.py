"""Small random models for the tests. Importing this sets PyTorch to one thread and float64."""

import numpy as np
import torch

import cases
import make_golden
import oracle
from attention import visibility
from spec import ModelSpec

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def causal(tokens):
    return visibility(torch.zeros(1, tokens))


def model(seq_len=7, **fields):
    """A small model, its weights and two rows of tokens."""
    spec = ModelSpec(**dict(d_model=16, num_layers=2, num_heads=4, d_ff=12, vocab_size=11) | fields)
    rng = np.random.default_rng(5)
    weights = make_golden.tensors(cases.draw_weights(spec, rng))
    return spec, weights, torch.from_numpy(rng.integers(0, spec.vocab_size, (2, seq_len + 1)))


def adapt(weights, spec, **rules):
    """Weights for another spec: a rule, called by the last word of its weight of self_attn, makes
    that from the layer's old ones, w(name); the others are kept."""
    adapted = {}
    for name, shape in oracle.parameter_shapes(spec).items():
        layer, is_attention, own = name.partition("self_attn.")
        rule = rules.get(own.removesuffix(".weight")) if is_attention else None
        value = rule(lambda n: weights[f"{layer}self_attn.{n}"]) if rule else weights[name]
        assert tuple(value.shape) == shape, name
        adapted[name] = value
    return adapted


def assert_same(a, b, tolerance=1e-13):
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance)
