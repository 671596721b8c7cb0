#!/usr/bin/env python3
"""The oracle against formulas it does not use: finite differences, the dense matrices of Appendix G
of the Differential Transformer paper, complex rotations, and heads that are repeated by hand. Then
the committed files."""

import dataclasses
import math
import pathlib
import unittest
import unittest.mock
from typing import NamedTuple

import torch

import attention
import cases
import make_golden
import oracle
import vectorised
from samples import adapt, assert_same, causal, model, random
from spec import PRESETS, ModelSpec


class Attention(unittest.TestCase):
    def gradcheck(self, wires, q, k, v, lam=None, denominator="softmax", sinks=None,
                  visible=None, cap=0.0):
        given = {"q": q, "k": k, "v": v, "lam": lam, "sinks": sinks}
        given = {name: x.requires_grad_() for name, x in given.items() if x is not None}
        visible = causal(5) if visible is None else visible

        def contexts(*inputs):
            return attention.contexts(wires, **dict(zip(given, inputs)), visible=visible,
                                      normalise=attention.DENOMINATORS[denominator], cap=cap)

        self.assertTrue(torch.autograd.gradcheck(contexts, tuple(given.values()), eps=1e-6,
                                                 atol=1e-8))

    def test_gradients_of_one_map_match_finite_differences(self):
        q, kv = random(2, 5, 4, 2), random(2, 2, 5, 2, 2, seed=1)
        for denominator in attention.DENOMINATORS:
            sinks = random(4, seed=2) if denominator == "sink" else None
            self.gradcheck(attention.one_map(4, 2), q, kv[0], kv[1], None, denominator, sinks)

    def test_gradients_of_the_pairs_of_v1_match_finite_differences(self):
        q, k, v = random(2, 5, 8, 2), random(2, 5, 4, 2, seed=1), random(2, 5, 2, 4, seed=2)
        lam = random(4, seed=3)
        self.gradcheck(attention.pairs(8, 4), q, k, v, lam)
        self.gradcheck(attention.pairs(8, 4), q, k, v, lam, "sink", random(8, seed=4))

    def test_gradients_of_the_doubled_heads_of_v2_match_finite_differences(self):
        q, kv, lam = random(2, 5, 8, 2), random(2, 2, 5, 2, 2, seed=1), random(2, 5, 4, seed=2)
        packed = attention.visibility(torch.tensor([[0, 0, 1, 0, 0], [1, 0, 0, 0, 1]]), 2, 1)
        for pairing, visible in (("interleaved", None), ("split_half", packed)):
            wires = attention.doubled(4, 2, pairing)
            for cap in (0.0, 0.8):
                self.gradcheck(wires, q, kv[0], kv[1], lam, "sink", random(8, seed=4), visible,
                               cap)

    def test_rope_is_a_rotation_of_complex_pairs(self):
        x = random(2, 9, 3, 6)
        frequency = torch.tensor([1.0, 0.3, 0.01], dtype=x.dtype)
        expected = vectorised.complex_rope(x.transpose(1, 2), frequency, 1.25).transpose(1, 2)
        assert_same(attention.rope(x, frequency, 1.25), expected, 1e-14)

    def test_yarn_scales_slow_planes_alone(self):
        plain = ModelSpec(head_dim=16)
        yarn = ModelSpec(head_dim=16, rope_scaling="yarn", rope_factor=4.0, rope_original=256)
        ratio = attention.frequencies(plain) / attention.frequencies(yarn)
        assert_same(ratio[:1], torch.ones(1), 1e-15)
        assert_same(ratio[4:], 4 * torch.ones(4), 1e-15)
        self.assertTrue((ratio.diff() >= 0).all())
        self.assertAlmostEqual(attention.rope_length(yarn), 1.138629436111989, 15)

    def test_lambda_init_of_the_first_layer_is_one_fifth(self):
        spec = ModelSpec(kind="diff_v1")
        self.assertAlmostEqual(attention.lambda_init(spec, 0), 0.2, places=15)
        self.assertAlmostEqual(attention.lambda_init(spec, 2), 0.8 - 0.6 * math.exp(-0.6),
                               places=15)


class AppendixG(unittest.TestCase):
    """One causal head on X [N, C], its parameter gradients written as dense matrices, the
    all-ones matrix J included; the norm taken as the identity."""

    N, C, d = 6, 5, 2

    def setUp(self):
        n, c, d = self.N, self.C, self.d
        shapes = dict(q1=(c, d), q2=(c, d), k1=(c, d), k2=(c, d), v=(c, 2 * d), o=(2 * d, c))
        self.W = {name: random(*shape, seed=i).requires_grad_()
                  for i, (name, shape) in enumerate(shapes.items())}
        self.X, self.dO, self.J = random(n, c, seed=10), random(n, c, seed=11), torch.ones(n, n)
        self.lam = torch.tensor(0.6, requires_grad=True)

    def projections(self):
        return (self.X @ self.W[name] for name in ("q1", "q2", "k1", "k2", "v"))

    def map(self, q, k):
        return attention.probabilities(q[None], k[None], causal(self.N))[0]

    def autograd_of(self, heads):
        (heads @ self.W["o"]).backward(self.dO)

    def expect(self, name, gradient):
        assert_same(self.W[name].grad, gradient)

    def test_equation_7_gives_the_gradients_of_differential_attention(self):
        q1, q2, k1, k2, v = self.projections()
        q, k = torch.stack((q1, q2), 1)[None], torch.stack((k1, k2), 1)[None]  # [1, N, 2, d]
        heads = attention.contexts(attention.pairs(2, 2), q, k, v[None, :, None], causal(self.N),
                                   self.lam[None])
        self.autograd_of(heads[0, :, 0])
        with torch.no_grad():
            X, J, lam, s = self.X, self.J, self.lam, 1 / math.sqrt(self.d)
            A1, A2 = self.map(q1, k1), self.map(q2, k2)
            G = self.dO @ self.W["o"].T @ v.T
            S1, S2 = A1 * (G - (A1 * G) @ J), A2 * (G - (A2 * G) @ J)
            self.expect("o", ((A1 - lam * A2) @ v).T @ self.dO)
            self.expect("v", X.T @ (A1 - lam * A2).T @ self.dO @ self.W["o"].T)
            self.expect("q1", s * X.T @ S1 @ k1)
            self.expect("q2", -lam * s * X.T @ S2 @ k2)
            self.expect("k1", s * X.T @ S1.T @ q1)
            self.expect("k2", -lam * s * X.T @ S2.T @ q2)
            assert_same(self.lam.grad, -(A2 * G).sum())

    def test_equation_9_gives_the_gradients_of_softmax_attention_split_in_halves(self):
        q1, q2, k1, k2, v = self.projections()
        q, k = torch.cat((q1, q2), 1), torch.cat((k1, k2), 1)  # [N, 2d]
        heads = attention.contexts(attention.one_map(1, 1), *(x[None, :, None] for x in (q, k, v)),
                                   causal(self.N))
        self.autograd_of(heads[0, :, 0])
        with torch.no_grad():
            X, s = self.X, 1 / math.sqrt(2 * self.d)
            A = self.map(q, k)
            G = self.dO @ self.W["o"].T @ v.T
            S = A * (G - (A * G) @ self.J)
            self.expect("o", (A @ v).T @ self.dO)
            self.expect("v", X.T @ A.T @ self.dO @ self.W["o"].T)
            self.expect("q1", s * X.T @ S @ k1)
            self.expect("q2", s * X.T @ S @ k2)
            self.expect("k1", s * X.T @ S.T @ q1)
            self.expect("k2", s * X.T @ S.T @ q2)

    def test_lambda_of_diff_v2_gets_minus_the_row_sums_of_map_2(self):
        q1, q2, k1, _, v = self.projections()
        v = v[:, : self.d]
        q = torch.stack((q1, q2), 1)[None]
        lam = torch.sigmoid(random(1, self.N, 1, seed=12)).requires_grad_()
        heads = attention.contexts(attention.doubled(1, 1, "interleaved"), q, k1[None, :, None],
                                   v[None, :, None], causal(self.N), lam)
        dO = random(self.N, self.d, seed=13)
        heads[0, :, 0].backward(dO)
        r2 = (self.map(q2, k1) * (dO @ v.T)).sum(1)
        assert_same(lam.grad[0, :, 0], -r2, 1e-14)


class Model(unittest.TestCase):
    def test_no_logit_depends_on_a_later_token(self):
        for kind in PRESETS:
            spec, weights, tokens = model(kind=kind)
            before = oracle.logits(spec, weights, tokens)
            tokens[:, 4] = (tokens[:, 4] + 1) % spec.vocab_size
            after = oracle.logits(spec, weights, tokens)
            self.assertTrue(torch.equal(before[:, :4], after[:, :4]), kind)
            self.assertFalse(torch.equal(before[:, 4], after[:, 4]), kind)

    def test_grouped_queries_equal_key_value_heads_repeated_by_hand(self):
        """In diff_v1 the repeated unit is a pair of key heads with its wide value."""
        for kind, pairing, unit in (("softmax", "preset", 1), ("softmax_2h", "preset", 1),
                                    ("diff_v1", "preset", 2), ("diff_v2", "interleaved", 1),
                                    ("diff_v2", "split_half", 1)):
            spec, weights, tokens = model(kind=kind, pairing=pairing, num_heads=8, num_kv_heads=4)

            def repeated(name, rows=unit * spec.width):
                return lambda w: w(name).unflatten(0, (-1, rows)).repeat_interleave(2, 0).flatten(
                    0, 1)

            full = dataclasses.replace(spec, num_kv_heads=8)
            by_hand = adapt(weights, full, k_proj=repeated("k_proj.weight"),
                            v_proj=repeated("v_proj.weight"))
            assert_same(oracle.logits(spec, weights, tokens), oracle.logits(full, by_hand, tokens))

    def test_diff_v2_with_equal_maps_and_zero_lambda_weights_is_half_of_softmax(self):
        spec, weights, tokens = model(kind="softmax", num_kv_heads=2)
        as_v2 = dataclasses.replace(spec, kind="diff_v2")
        v2 = adapt(weights, as_v2, o_proj=lambda w: 2 * w("o_proj.weight"),
                   q_proj=lambda w: w("q_proj.weight").unflatten(0, (4, 4)).repeat_interleave(
                       2, 0).flatten(0, 1),
                   lambda_proj=lambda w: torch.zeros(4, 16))
        assert_same(oracle.logits(spec, weights, tokens), oracle.logits(as_v2, v2, tokens))

    def test_a_config_may_leave_keys_out_and_write_numbers_without_a_dot(self):
        spec = ModelSpec.from_yaml("model: {norm_eps: 1e-05, attention: {kind: diff_v2}}")
        self.assertEqual(spec, ModelSpec(kind="diff_v2", norm_eps=1e-5))


class Golden(NamedTuple):
    spec: ModelSpec
    weights: dict
    tokens: torch.Tensor
    config: str


def path_of(name):
    return pathlib.Path(__file__).with_name(f"{name}.h5")


def read(name):
    with make_golden.h5py.File(path_of(name)) as file:
        config = file.attrs["config_yaml"]
        spec = ModelSpec.from_yaml(config)
        weights = make_golden.tensors(make_golden.read_weights(file, spec))
        return Golden(spec, weights, torch.from_numpy(file["tokens"][()]).long(), config)


def largest_scores(spec, weights, tokens):
    """The largest |score| of the visible keys in each layer, scaled and before the soft cap."""
    largest = [0.0] * spec.num_layers

    def watched(q, k, visible, *args):
        watched.calls += 1
        scores = q @ k.transpose(1, 2) / math.sqrt(spec.width)
        layer = (watched.calls - 1) // maps
        largest[layer] = max(largest[layer], scores[visible].abs().max().item())
        return probabilities(q, k, visible, *args)

    watched.calls, probabilities = 0, attention.probabilities
    maps = sum(map(len, attention.head_mapping(spec)))
    with unittest.mock.patch.object(attention, "probabilities", watched):
        oracle.logits(spec, weights, tokens)
    return largest


class GoldenFiles(unittest.TestCase):
    def test_every_case_is_committed_and_the_oracle_repeats_it(self):
        for name in cases.CASES:
            self.assertEqual(read(name).config, cases.config(name))
            self.assertTrue(make_golden.check(path_of(name)), name)

    def test_float32_rounding_leaves_room_below_its_tolerance(self):
        for name in cases.CASES:
            spec, weights, tokens, _ = read(name)
            exact = oracle.evaluate(spec, weights, tokens).grads
            single = {parameter: weight.float() for parameter, weight in weights.items()}
            rounded = oracle.evaluate(spec, single, tokens).grads
            for parameter in weights:
                error = make_golden.relative_error(rounded[parameter].double().numpy(),
                                                   exact[parameter].numpy())
                self.assertLess(error, 5e-6, f"{name}: {parameter}")

    def test_gradients_of_each_case_match_finite_differences_in_a_random_direction(self):
        for name in cases.CASES:
            spec, weights, tokens, _ = read(name)
            leaves = {parameter: w.requires_grad_() for parameter, w in weights.items()}

            def loss(*values):
                return oracle.loss(spec, dict(zip(leaves, values)), tokens)[0]

            self.assertTrue(torch.autograd.gradcheck(loss, tuple(leaves.values()), eps=1e-5,
                                                     atol=1e-8, rtol=1e-6, fast_mode=True), name)

    def test_no_case_would_agree_if_a_field_were_ignored(self):
        """Each field at another value that needs no other weights."""
        others = {"sliding_window": 0, "eos_token_id": -1, "rope": True, "pairing": "interleaved",
                  "lambda_init": "schedule", "attn_logit_softcap": 0.0, "final_logit_softcap": 0.0,
                  "embedding_norm": False, "z_loss_weight": 0.0, "router_aux_loss_coef": 0.0,
                  "router_z_loss_coef": 0.0, "norm_topk_prob": True, "scoring_func": "softmax"}
        tried = set()

        def results(spec, weights, tokens):
            loss, scores = oracle.loss(spec, weights, tokens)
            return torch.cat((scores.flatten(), loss[None]))

        for name in cases.CASES:
            spec, weights, tokens, _ = read(name)
            rule = {"raw": "sigmoid", "sigmoid": "raw"}.get(spec.chosen("lambda_rule"))
            for field, other in (others | ({"lambda_rule": rule} if rule else {})).items():
                default = ModelSpec.__dataclass_fields__[field].default
                if getattr(spec, field) == default:
                    continue
                changed = dataclasses.replace(spec, **{field: other})
                apart = (results(spec, weights, tokens)
                         - results(changed, weights, tokens)).abs().max()
                self.assertGreater(apart, 1e-2, f"{name}: {field}")
                tried.add(field)
        self.assertEqual(tried, others.keys() | {"lambda_rule"})

    def test_packed_rows_hold_several_documents_and_some_of_a_single_token(self):
        alone = {}
        for name in cases.CASES:
            spec, _, tokens, _ = read(name)
            if spec.eos_token_id < 0:
                continue
            ends = tokens[:, :-1] == spec.eos_token_id
            self.assertGreater(ends.sum(1).min(), 3, name)
            alone[name] = (ends[:, 1:] & ends[:, :-1]).sum().item()
        self.assertEqual(len(alone), 7)
        self.assertGreater(sum(count > 0 for count in alone.values()), 2)

    def test_soft_caps_bend_the_logits_of_their_cases(self):
        """Some logit without its cap is above it, in every layer that has one."""
        capped = {"attn_logit_softcap": 0, "final_logit_softcap": 0}
        for name in cases.CASES:
            spec, weights, tokens, _ = read(name)
            if spec.attn_logit_softcap:
                largest = largest_scores(spec, weights, tokens[:, :-1])
                self.assertGreater(min(largest), spec.attn_logit_softcap, name)
            if spec.final_logit_softcap:
                largest = oracle.logits(spec, weights, tokens[:, :-1]).abs().max()
                self.assertGreater(largest, math.tanh(1) * spec.final_logit_softcap, name)
            for field in capped:
                capped[field] += getattr(spec, field) > 0
        self.assertEqual(capped, {"attn_logit_softcap": 3, "final_logit_softcap": 2})

    def test_files_of_the_family_stay_small(self):
        for name in list(cases.CASES)[8:]:
            self.assertLess(path_of(name).stat().st_size, 60000, name)


if __name__ == "__main__":
    unittest.main()
