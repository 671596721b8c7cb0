#!/usr/bin/env python3
"""The oracle against formulas it does not use: finite differences, the dense matrices of Appendix G
of the Differential Transformer paper, complex rotations, and heads that are repeated by hand."""

import dataclasses
import math
import pathlib
import unittest

import torch

import make_golden
import oracle

torch.set_default_dtype(torch.float64)


def random(*shape, seed=0, scale=1.0):
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def model(seq_len=7, **fields):
    """A small model, its weights and a batch of tokens."""
    spec = oracle.ModelSpec(**dict(d_model=16, num_layers=2, num_heads=4, d_ff=12, vocab_size=11)
                            | fields)
    rng = make_golden.np.random.default_rng(5)
    weights = make_golden.tensors(make_golden.draw(spec, rng))
    return spec, weights, torch.from_numpy(rng.integers(0, spec.vocab_size, (2, seq_len + 1)))


class Attention(unittest.TestCase):
    def gradcheck(self, function, *inputs):
        inputs = [x.requires_grad_() for x in inputs]
        self.assertTrue(torch.autograd.gradcheck(function, inputs, eps=1e-6, atol=1e-8))

    def test_softmax_gradients_match_finite_differences(self):
        q, kv = random(2, 5, 4, 2), random(2, 2, 5, 2, 2, seed=1)
        self.gradcheck(oracle.softmax_heads, q, kv[0], kv[1])

    def test_diff_v1_gradients_match_finite_differences(self):
        q, k, v = random(2, 5, 8, 2), random(2, 5, 4, 2, seed=1), random(2, 5, 2, 4, seed=2)
        self.gradcheck(oracle.diff_v1_heads, q, k, v, torch.tensor(0.7))

    def test_diff_v2_gradients_match_finite_differences(self):
        q, kv, lam = random(2, 5, 8, 2), random(2, 2, 5, 2, 2, seed=1), random(2, 5, 4, seed=2)
        self.gradcheck(oracle.diff_v2_heads, q, kv[0], kv[1], torch.sigmoid(lam))

    def test_rope_is_a_rotation_of_complex_pairs(self):
        x, theta = random(2, 9, 3, 6), 100.0
        pairs = torch.view_as_complex(x.reshape(2, 9, 3, 3, 2))
        turn = torch.tensor([[t * theta ** (-2 * i / 6) for i in range(3)] for t in range(9)])
        turned = pairs * torch.exp(1j * turn)[:, None, :]
        expected = torch.view_as_real(turned).reshape(2, 9, 3, 6)
        torch.testing.assert_close(oracle.rope(x, theta), expected, rtol=0, atol=1e-14)

    def test_lambda_init_of_the_first_layer_is_one_fifth(self):
        self.assertAlmostEqual(oracle.lambda_init(0), 0.2, places=15)
        self.assertAlmostEqual(oracle.lambda_init(2), 0.8 - 0.6 * math.exp(-0.6), places=15)


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

    def autograd_of(self, heads):
        (heads @ self.W["o"]).backward(self.dO)

    def expect(self, name, gradient):
        torch.testing.assert_close(self.W[name].grad, gradient, rtol=0, atol=1e-13)

    def test_equation_7_gives_the_gradients_of_differential_attention(self):
        q1, q2, k1, k2, v = self.projections()
        q, k = torch.stack((q1, q2), 1)[None], torch.stack((k1, k2), 1)[None]  # [1, N, 2, d]
        self.autograd_of(oracle.diff_v1_heads(q, k, v[None, :, None], self.lam)[0, :, 0])
        with torch.no_grad():
            X, J, lam, s = self.X, self.J, self.lam, 1 / math.sqrt(self.d)
            A1, A2 = (oracle.causal_map(q[None], k[None])[0] for q, k in ((q1, k1), (q2, k2)))
            G = self.dO @ self.W["o"].T @ v.T
            S1, S2 = A1 * (G - (A1 * G) @ J), A2 * (G - (A2 * G) @ J)
            self.expect("o", ((A1 - lam * A2) @ v).T @ self.dO)
            self.expect("v", X.T @ (A1 - lam * A2).T @ self.dO @ self.W["o"].T)
            self.expect("q1", s * X.T @ S1 @ k1)
            self.expect("q2", -lam * s * X.T @ S2 @ k2)
            self.expect("k1", s * X.T @ S1.T @ q1)
            self.expect("k2", -lam * s * X.T @ S2.T @ q2)
            torch.testing.assert_close(self.lam.grad, -(A2 * G).sum(), rtol=0, atol=1e-13)

    def test_equation_9_gives_the_gradients_of_softmax_attention_split_in_halves(self):
        q1, q2, k1, k2, v = self.projections()
        q, k = torch.cat((q1, q2), 1), torch.cat((k1, k2), 1)  # [N, 2d]
        heads = oracle.softmax_heads(*(x[None, :, None] for x in (q, k, v)))
        self.autograd_of(heads[0, :, 0])
        with torch.no_grad():
            X, s = self.X, 1 / math.sqrt(2 * self.d)
            A = oracle.causal_map(q[None], k[None])[0]
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
        heads = oracle.diff_v2_heads(q, k1[None, :, None], v[None, :, None], lam)
        dO = random(self.N, self.d, seed=13)
        heads[0, :, 0].backward(dO)
        A2 = oracle.causal_map(q2[None], k1[None])[0]
        r2 = (A2 * (dO @ v.T)).sum(1)
        torch.testing.assert_close(lam.grad[0, :, 0], -r2, rtol=0, atol=1e-14)


class Model(unittest.TestCase):
    def test_no_logit_depends_on_a_later_token(self):
        for kind in oracle.VARIANTS:
            spec, weights, tokens = model(kind=kind)
            before = oracle.logits(spec, weights, tokens)
            tokens[:, 4] = (tokens[:, 4] + 1) % spec.vocab_size
            after = oracle.logits(spec, weights, tokens)
            self.assertTrue(torch.equal(before[:, :4], after[:, :4]), kind)
            self.assertFalse(torch.equal(before[:, 4], after[:, 4]), kind)

    def test_grouped_queries_equal_key_value_heads_repeated_by_hand(self):
        """In diff_v1 the repeated unit is a pair of key heads with its wide value."""
        for kind, unit in (("softmax", 1), ("diff_v1", 2), ("diff_v2", 1)):
            spec, weights, tokens = model(kind=kind, num_heads=8, num_kv_heads=4)
            repeated = dict(weights)
            for name, w in weights.items():
                if "k_proj" in name or "v_proj" in name:
                    units = w.reshape(-1, unit * spec.width, spec.d_model)
                    repeated[name] = units.repeat_interleave(2, 0).reshape(-1, spec.d_model)
            full = dataclasses.replace(spec, num_kv_heads=8)
            torch.testing.assert_close(oracle.logits(spec, weights, tokens),
                                       oracle.logits(full, repeated, tokens), rtol=0, atol=1e-13)

    def test_diff_v2_with_equal_maps_and_zero_lambda_weights_is_half_of_softmax(self):
        spec, weights, tokens = model(kind="softmax", num_kv_heads=2)
        v2 = dict(weights)
        for name, w in weights.items():
            if "q_proj" in name:
                heads = w.reshape(spec.num_heads, spec.width, spec.d_model)
                v2[name] = heads.repeat_interleave(2, 0).reshape(-1, spec.d_model)
                lambda_proj = name.replace("q_proj", "lambda_proj")
                v2[lambda_proj] = torch.zeros(spec.num_heads, spec.d_model)
            if "o_proj" in name:
                v2[name] = 2 * w
        as_v2 = dataclasses.replace(spec, kind="diff_v2")
        torch.testing.assert_close(oracle.logits(spec, weights, tokens),
                                   oracle.logits(as_v2, v2, tokens), rtol=0, atol=1e-13)

    def test_a_config_may_leave_keys_out_and_write_numbers_without_a_dot(self):
        spec = oracle.ModelSpec.from_yaml("model: {norm_eps: 1e-05, attention: {kind: diff_v2}}")
        self.assertEqual(spec, oracle.ModelSpec(kind="diff_v2", norm_eps=1e-5))


class GoldenFiles(unittest.TestCase):
    def test_float32_rounding_leaves_room_below_its_gate(self):
        for name in make_golden.CASES:
            with make_golden.h5py.File(pathlib.Path(__file__).with_name(f"{name}.h5")) as file:
                spec = oracle.ModelSpec.from_yaml(file.attrs["config_yaml"])
                weights = make_golden.tensors(make_golden.read_weights(file, spec))
                tokens = torch.from_numpy(file["tokens"][()])
            exact = oracle.evaluate(spec, weights, tokens).grads
            single = {parameter: weight.float() for parameter, weight in weights.items()}
            rounded = oracle.evaluate(spec, single, tokens).grads
            for parameter in weights:
                error = make_golden.relative_error(rounded[parameter].double().numpy(),
                                                   exact[parameter].numpy())
                self.assertLess(error, 5e-6, f"{name}: {parameter}")

    def test_every_case_is_committed_and_the_oracle_repeats_it(self):
        for name in make_golden.CASES:
            self.assertTrue(make_golden.check(pathlib.Path(__file__).with_name(f"{name}.h5")), name)


if __name__ == "__main__":
    unittest.main()
