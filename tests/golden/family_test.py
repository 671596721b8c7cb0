#!/usr/bin/env python3
"""The fields of the attention family: all their combinations against PyTorch's own attention, and
identities between models that differ in a field."""

import dataclasses
import itertools
import math
import unittest

import torch

import attention
import oracle
import vectorised
from samples import adapt, assert_same, causal, model, random
from spec import CHOICES, PRESETS, ModelSpec


def combinations():
    """Every meaningful choice of the text fields, for each mapping of heads."""
    for kind in ("softmax", "softmax_2h", "diff_v1", "diff_v2"):
        open_fields = {field: words for field, words in CHOICES.items()
                       if getattr(PRESETS[kind], field) is not None}
        for words in itertools.product(*open_fields.values()):
            fields = dict(zip(open_fields, words), kind=kind)
            if fields.get("lambda_rule", "exponential") != "exponential":
                if fields.pop("lambda_init") == "constant":
                    continue
            yield fields


class Family(unittest.TestCase):
    def test_every_combination_of_fields_agrees_with_pytorchs_own_attention(self):
        shape = dict(d_model=7, num_heads=4, num_kv_heads=2, head_dim=2, lambda_init_value=0.35)
        others = (dict(), dict(qk_norm=True, rope=False, norm_eps=1e-2),
                  dict(qk_norm=True, rope_theta=9.0, sliding_window=3, eos_token_id=1),
                  dict(attn_logit_softcap=1.5, sliding_window=3, eos_token_id=1),
                  dict(block_size=2, num_selected_blocks=2, eos_token_id=1),
                  dict(block_size=2, num_selected_blocks=2, block_selection="separately"))
        tokens, x = torch.tensor([[0, 0, 1, 0, 0, 0, 0, 1, 1], [0] * 9]), random(2, 9, 7)
        checked = 0
        for fields, other in itertools.product(combinations(), others):
            if fields["kind"].startswith("softmax") and "block_selection" in other:
                continue  # of one map
            spec = ModelSpec(**shape, **fields, **other)
            shapes = attention.parameter_shapes(spec)
            weights = {name: random(*shapes[name], seed=i) for i, name in enumerate(shapes)}
            visible = attention.visibility(tokens, spec.sliding_window, spec.eos_token_id)
            for layer in (0, 1):
                args = (spec, layer, weights.__getitem__, x, visible)
                assert_same(attention.attention(*args), vectorised.layer_output(*args), 1e-12)
            checked += 1
        self.assertEqual(checked, 5 * 18 * (1 + 1 + 5 + 10) + 18 * (5 + 10))

    def test_a_kind_is_its_preset(self):
        presets = {
            "softmax": dict(kind="softmax1", softmax_denominator="softmax"),
            "softmax1": dict(kind="softmax", softmax_denominator="softmax1", gate="none"),
            "sink": dict(kind="gated", softmax_denominator="sink", gate="none"),
            "gated": dict(kind="softmax", gate="elementwise", subln="false"),
            "diff_v1": dict(kind="diff_v1", lambda_rule="exponential", lambda_init="schedule",
                            softmax_denominator="softmax", subln="true", gate="none"),
            "diff_v2": dict(kind="diff_v2", pairing="interleaved", lambda_rule="sigmoid",
                            softmax_denominator="softmax", subln="false", gate="none"),
        }
        for kind, fields in presets.items():
            by_kind, by_fields = oracle.logits(*model(kind=kind)), oracle.logits(*model(**fields))
            self.assertTrue(torch.equal(by_kind, by_fields), kind)

    def test_what_would_be_ignored_is_refused(self):
        for fields in (dict(pairing="split_half"), dict(kind="diff_v1", pairing="interleaved"),
                       dict(kind="gated", lambda_rule="none"), dict(lambda_init="constant"),
                       dict(kind="diff_v2", lambda_init="schedule"), dict(gate="heads"),
                       dict(kind="diff_v1", lambda_rule="sigmoid", lambda_init="constant"),
                       dict(attn_logit_softcap=-1.0), dict(final_logit_softcap=-1.0),
                       dict(z_loss_weight=-1.0)):
            with self.assertRaises(ValueError, msg=fields):
                ModelSpec(**fields)
        for text, said in (("model: {attention: {kind: diff_v2, windows: 3}}", "windows"),
                           ("model: {attention: {d_model: 8}}", "d_model"),
                           ("model: {logit_softcap: 2}", "logit_softcap"),
                           ("model: {embedding_scale: 3}", "embedding_scale"),
                           ('model: {embedding_norm: "false"}', "boolean")):
            with self.assertRaisesRegex(ValueError, said):
                ModelSpec.from_yaml(text)

    def test_keys_that_change_nothing_for_given_weights_are_left_out(self):
        text = ("model: {max_seq_len: 9, match_params: true, init: {preset: torch}, "
                "attention: {qk_clip_threshold: 100}}")
        self.assertEqual(ModelSpec.from_yaml(text), ModelSpec())

    def test_the_soft_caps_of_model_and_attention_are_two(self):
        text = "model: {final_logit_softcap: 30, attention: {attn_logit_softcap: 50}}"
        self.assertEqual(ModelSpec.from_yaml(text),
                         ModelSpec(final_logit_softcap=30.0, attn_logit_softcap=50.0))

    def test_words_that_yaml_takes_for_booleans_are_words(self):
        text = "model: {rope: false, attention: {kind: diff_v2, lambda: none, subln: %s}}"
        expected = ModelSpec(kind="diff_v2", lambda_rule="none", subln="true", rope=False)
        for written in ("true", '"true"'):
            self.assertEqual(ModelSpec.from_yaml(text % written), expected)
        packed = ModelSpec.from_yaml("model: {d_model: 8}\ndata: {eos_token_id: 10}")
        self.assertEqual(packed, ModelSpec(d_model=8, eos_token_id=10))


class SoftmaxDenominators(unittest.TestCase):
    def test_an_extra_logit_adds_its_exponential_to_the_denominator(self):
        q, k, extra = 2 * random(2, 5, 3), random(2, 5, 3, seed=1), torch.tensor(-0.4)
        e = torch.exp(q @ k.transpose(1, 2) / math.sqrt(3)).tril()
        for name, sink, added in (("softmax", None, 0), ("softmax1", None, 1),
                                  ("sink", extra, math.exp(-0.4))):
            p = attention.probabilities(q, k, causal(5), attention.DENOMINATORS[name], sink)
            assert_same(p, e / (e.sum(-1, keepdim=True) + added), 1e-15)

    def test_softmax1_is_a_sink_at_zero_and_softmax_a_sink_at_minus_infinity(self):
        for kind in PRESETS:
            spec, weights, tokens = model(kind=kind, softmax_denominator="sink", num_kv_heads=2)
            for denominator, value in (("softmax1", 0.0), ("softmax", -1e4)):
                other = dataclasses.replace(spec, softmax_denominator=denominator)
                set_sinks = adapt(weights, spec, sinks=lambda w: torch.full_like(w("sinks"), value))
                assert_same(oracle.logits(other, adapt(weights, other), tokens),
                            oracle.logits(spec, set_sinks, tokens), 0)

    def test_each_query_head_has_a_sink_of_its_own(self):
        for kind, count in (("softmax", 4), ("softmax_2h", 8), ("diff_v1", 4), ("diff_v2", 8)):
            spec, weights, tokens = model(kind=kind, softmax_denominator="sink")
            grads = oracle.evaluate(spec, weights, tokens).grads
            self.assertEqual(grads["model.layers.0.self_attn.sinks"].shape, (count,))
            self.assertGreater(grads["model.layers.0.self_attn.sinks"].abs().min(), 1e-6)


class Remedies(unittest.TestCase):
    def test_a_soft_cap_is_of_the_scaled_visible_scores_and_not_of_an_extra_logit(self):
        q, k, extra, cap = 3 * random(2, 5, 3), random(2, 5, 3, seed=1), torch.tensor(2.5), 0.75
        scores = q @ k.transpose(1, 2) / math.sqrt(3)
        self.assertGreater(scores.abs().max(), 2 * cap)
        e = torch.exp((2 * torch.sigmoid(2 * scores / cap) - 1) * cap).tril()
        for name, sink, added in (("softmax", None, 0), ("softmax1", None, 1),
                                  ("sink", extra, math.exp(2.5))):
            p = attention.probabilities(q, k, causal(5), attention.DENOMINATORS[name], sink, cap)
            assert_same(p, e / (e.sum(-1, keepdim=True) + added), 1e-15)

    def test_a_soft_cap_far_above_all_scores_changes_nothing_and_a_small_one_does(self):
        for kind, field in itertools.product(PRESETS,
                                             ("attn_logit_softcap", "final_logit_softcap")):
            spec, weights, tokens = model(kind=kind)
            plain = oracle.logits(spec, weights, tokens)
            for cap, same in ((1e6, True), (0.3, False)):
                capped = oracle.logits(dataclasses.replace(spec, **{field: cap}), weights, tokens)
                self.assertEqual((capped - plain).abs().max() < 1e-10, same, f"{kind} {field}")

    def test_capped_output_logits_are_those_of_the_model_without_the_cap(self):
        for tied in (False, True):
            spec, weights, tokens = model(tie_word_embeddings=tied, final_logit_softcap=2.0)
            capped = oracle.logits(spec, weights, tokens)
            plain = dataclasses.replace(spec, final_logit_softcap=0.0)
            self.assertLess(capped.abs().max(), 2)
            assert_same(2 * torch.atanh(capped / 2), oracle.logits(plain, weights, tokens), 1e-12)

    def test_the_embedding_norm_is_a_normed_table_that_the_output_does_not_share(self):
        spec, weights, tokens = model(embedding_norm=True)
        plain = dataclasses.replace(spec, embedding_norm=False)
        tied = dataclasses.replace(spec, tie_word_embeddings=True)
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
        table = torch.nn.functional.rms_norm(weights["model.embed_tokens.weight"], (16,),
                                             weights["model.embedding_norm.weight"], spec.norm_eps)
        normed = weights | {"model.embed_tokens.weight": table}
        expected = oracle.logits(spec, weights, tokens)
        assert_same(expected, oracle.logits(plain, normed, tokens))
        assert_same(expected, oracle.logits(tied, weights, tokens))
        self.assertGreater((expected - oracle.logits(plain, weights, tokens)).abs().max(), 1e-2)

    def test_the_z_loss_multiplies_the_probabilities_in_the_gradient_of_the_logits(self):
        scores, targets = random(2, 5, 7).requires_grad_(), torch.tensor([[0, 3, 3, 6, 1]] * 2)
        total = oracle.loss(ModelSpec(z_loss_weight=0.2), scores, targets)
        total.backward()
        with torch.no_grad():
            log_z = scores.exp().sum(-1, keepdim=True).log()
            one_hot = torch.nn.functional.one_hot(targets, 7)
            plain = oracle.loss(ModelSpec(), scores, targets)
            assert_same(plain, oracle.cross_entropy(scores, targets), 0)
            assert_same(total, plain + 0.2 * log_z.square().mean(), 1e-14)
            p = (scores - log_z).exp()
            assert_same(scores.grad, ((1 + 2 * 0.2 * log_z) * p - one_hot) / 10, 1e-15)

    def test_the_z_loss_leaves_the_logits_as_they_are_and_reads_them_capped(self):
        spec, weights, tokens = model(final_logit_softcap=0.5)
        with_z = dataclasses.replace(spec, z_loss_weight=0.3)
        plain, other = (oracle.evaluate(s, weights, tokens) for s in (spec, with_z))
        assert_same(plain.logits, other.logits, 0)
        log_z = plain.logits.exp().sum(-1).log()
        assert_same(other.loss, plain.loss + 0.3 * log_z.square().mean(), 1e-14)


class Pairing(unittest.TestCase):
    fields = dict(kind="diff_v2", softmax_denominator="sink")

    def reordered(self, kv_heads):
        """The interleaved model, and split_half with its query heads put where that reads them."""
        spec, weights, tokens = model(**self.fields, num_kv_heads=kv_heads)
        split = dataclasses.replace(spec, pairing="split_half")

        def halves(name):
            def reorder(w):
                heads = w(name).unflatten(0, (4, 2, -1))  # heads 2i, 2i+1
                return torch.cat((heads[:, 0], heads[:, 1])).flatten(0, 1)

            return reorder

        moved = adapt(weights, split, q_proj=halves("q_proj.weight"), sinks=halves("sinks"))
        return oracle.logits(spec, weights, tokens), oracle.logits(split, moved, tokens)

    def test_split_half_with_reordered_queries_is_interleaved_where_keys_are_shared(self):
        assert_same(*self.reordered(kv_heads=1))

    def test_split_half_reads_other_keys_and_values_in_each_map(self):
        interleaved, split = self.reordered(kv_heads=2)
        self.assertGreater((interleaved - split).abs().max(), 1e-2)
        spec = ModelSpec(kind="diff_v2", pairing="split_half", num_heads=4, num_kv_heads=2)
        read = [[(m.query, m.key, m.value) for m in maps] for maps in attention.head_mapping(spec)]
        self.assertEqual(read, [[(i, 0, 0), (i + 4, 1, 1)] for i in range(4)])

    def test_pairs_of_v1_read_two_key_heads_and_their_wide_value(self):
        spec = ModelSpec(kind="diff_v1", num_heads=8, num_kv_heads=4)
        read = [[(m.query, m.key, m.value) for m in maps] for maps in attention.head_mapping(spec)]
        self.assertEqual(read, [[(0, 0, 0), (1, 1, 0)], [(2, 0, 0), (3, 1, 0)],
                                [(4, 2, 1), (5, 3, 1)], [(6, 2, 1), (7, 3, 1)]])


class Lambda(unittest.TestCase):
    def test_the_plain_difference_is_softmax_2h_with_every_second_output_negated(self):
        for pairing, signs in (("interleaved", [1, -1] * 4), ("split_half", [1] * 4 + [-1] * 4)):
            spec, weights, tokens = model(kind="diff_v2", pairing=pairing, lambda_rule="none",
                                          num_kv_heads=2)
            wide = dataclasses.replace(spec, kind="softmax_2h", pairing="preset",
                                       lambda_rule="preset")

            def negated(w, pairing=pairing, signs=torch.tensor(signs)):
                o = w("o_proj.weight").reshape(16, 4, 4)
                o = o.repeat(1, 2, 1) if pairing == "split_half" else o.repeat_interleave(2, 1)
                return (o * signs[:, None]).flatten(1)

            assert_same(oracle.logits(spec, weights, tokens),
                        oracle.logits(wide, adapt(weights, wide, o_proj=negated), tokens))

    def test_a_raw_lambda_of_zero_leaves_softmax_of_the_even_query_heads(self):
        spec, weights, tokens = model(kind="diff_v2", lambda_rule="raw", num_kv_heads=2)
        off = adapt(weights, spec, lambda_proj=lambda w: torch.zeros(4, 16))
        plain = dataclasses.replace(spec, kind="softmax", lambda_rule="preset")
        even = adapt(weights, plain,
                     q_proj=lambda w: w("q_proj.weight").reshape(8, 4, 16)[::2].reshape(16, 16))
        assert_same(oracle.logits(spec, off, tokens), oracle.logits(plain, even, tokens))

    def test_sigmoid_is_the_sigmoid_of_raw_with_one_value_a_token_and_output_head(self):
        x, weight = random(2, 5, 6), random(3, 6, seed=1)
        raw, squashed = (attention.LAMBDAS[rule](None, 0, lambda name: weight, x, 3)
                         for rule in ("raw", "sigmoid"))
        assert_same(raw, torch.einsum("btc,hc->bth", x, weight))
        assert_same(squashed, 1 / (1 + torch.exp(-raw)))

    def test_an_exponential_lambda_without_vectors_is_its_initial_value(self):
        for kind in ("diff_v1", "diff_v2"):
            spec, weights, tokens = model(kind=kind, lambda_rule="exponential", subln="false",
                                          lambda_init="constant", lambda_init_value=1.0)
            zero = {f"lambda_{name}": lambda w: torch.zeros(4) for name in ("q1", "k1", "q2", "k2")}
            one = dataclasses.replace(spec, lambda_rule="none", lambda_init="preset")
            assert_same(oracle.logits(spec, adapt(weights, spec, **zero), tokens),
                        oracle.logits(one, adapt(weights, one), tokens))

    def test_the_schedule_starts_at_a_constant_of_one_fifth_and_leaves_it_in_layer_1(self):
        for layers, same in ((1, True), (2, False)):
            spec, weights, tokens = model(kind="diff_v1", num_layers=layers)
            constant = dataclasses.replace(spec, lambda_init="constant", lambda_init_value=0.2)
            apart = (oracle.logits(spec, weights, tokens)
                     - oracle.logits(constant, weights, tokens)).abs().max()
            self.assertEqual(apart < 1e-13, same)


class NormAndGate(unittest.TestCase):
    def test_subln_makes_each_head_as_large_as_its_weight_and_the_fixed_factor(self):
        context, weight = random(2, 5, 3, 8), torch.full((8,), 1.5)
        for rule, factor in (("sigmoid", 1), ("exponential", 1 - 0.2), ("none", 1)):
            spec = ModelSpec(kind="diff_v1", lambda_rule=rule)
            normed = attention.normed(spec, 0, lambda name: weight, context)
            rms = normed.square().mean(-1).sqrt()
            assert_same(rms, torch.full((2, 5, 3), 1.5 * factor), 1e-4)
            off = dataclasses.replace(spec, subln="false")
            self.assertIs(attention.normed(off, 0, lambda name: weight, context), context)

    def test_a_gate_without_weights_halves_the_context(self):
        for kind, gate in itertools.product(PRESETS, ("elementwise", "head")):
            spec, weights, tokens = model(kind=kind, gate=gate)
            plain = dataclasses.replace(spec, gate="none")
            closed = adapt(weights, spec, gate_proj=lambda w: 0 * w("gate_proj.weight"),
                           o_proj=lambda w: 2 * w("o_proj.weight"))
            assert_same(oracle.logits(plain, adapt(weights, plain), tokens),
                        oracle.logits(spec, closed, tokens))

    def test_a_gate_a_head_is_an_elementwise_gate_with_equal_rows(self):
        for kind, width in (("gated", 4), ("diff_v1", 8), ("diff_v2", 4)):
            spec, weights, tokens = model(kind=kind, gate="head")
            wide = dataclasses.replace(spec, gate="elementwise")
            rows = adapt(weights, wide, gate_proj=lambda w, n=width:
                         w("gate_proj.weight").repeat_interleave(n, 0))
            assert_same(oracle.logits(spec, weights, tokens), oracle.logits(wide, rows, tokens))

    def test_qk_norm_makes_the_size_of_queries_and_keys_irrelevant(self):
        for kind, qk_norm in itertools.product(PRESETS, (True, False)):
            spec, weights, tokens = model(kind=kind, qk_norm=qk_norm, norm_eps=1e-12)
            larger = adapt(weights, spec, q_proj=lambda w: 3 * w("q_proj.weight"),
                           k_proj=lambda w: 2 * w("k_proj.weight"))
            apart = (oracle.logits(spec, weights, tokens)
                     - oracle.logits(spec, larger, tokens)).abs().max()
            self.assertEqual(apart < 1e-9, qk_norm, kind)


class Visibility(unittest.TestCase):
    def test_windows_and_documents_as_literal_matrices(self):
        tokens = torch.tensor([[5, 9, 9, 5, 5, 5]])
        packed = [[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0],
                  [0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1]]
        both = [row[:] for row in packed]
        both[5][3] = 0
        self.assertEqual(attention.visibility(tokens, 0, 9)[0].int().tolist(), packed)
        self.assertEqual(attention.visibility(tokens, 2, 9)[0].int().tolist(), both)
        band = attention.visibility(tokens, 2)[0].int().tolist()
        self.assertEqual(band, [[int(0 <= t - j < 2) for j in range(6)] for t in range(6)])

    def test_a_window_of_the_whole_row_changes_nothing(self):
        for kind, window in itertools.product(PRESETS, (7, 8, 100)):
            spec, weights, tokens = model(kind=kind)
            wide = dataclasses.replace(spec, sliding_window=window)
            self.assertTrue(torch.equal(oracle.logits(spec, weights, tokens[:, :7]),
                                        oracle.logits(wide, weights, tokens[:, :7])), kind)

    def test_one_cross_decoder_layer_is_an_ordinary_one_with_the_shared_weights(self):
        """The input norm of the ordinary layer is that of the shared keys and values too."""
        for kind in PRESETS:
            spec, weights, tokens = model(kind=kind, qk_norm=True, sliding_window=8, yoco_self_layers=1)
            weights["model.layers.1.input_layernorm.weight"] = weights["model.shared_kv.norm.weight"]
            plain = dataclasses.replace(spec, yoco_self_layers=0)
            ordinary = {name: weights[name.replace("layers.1.self_attn", "shared_kv")]
                        if name not in weights else weights[name]
                        for name in oracle.parameter_shapes(plain)}
            assert_same(oracle.logits(spec, weights, tokens),
                        oracle.logits(plain, ordinary, tokens))

    def test_a_layer_with_a_window_sees_a_row_that_begins_there(self):
        """Scores depend on distances alone, so the row may be moved to the front."""
        for kind in PRESETS:
            spec, weights, tokens = model(kind=kind, sliding_window=3, num_layers=1)
            full = dataclasses.replace(spec, sliding_window=0)
            windowed = oracle.logits(spec, weights, tokens)
            for t in range(2, 8):
                alone = oracle.logits(full, weights, tokens[:, t - 2 : t + 1])
                assert_same(windowed[:, t], alone[:, -1])

    def test_packed_documents_are_separate_rows(self):
        for kind, rope in itertools.product(PRESETS, (False, True)):
            spec, weights, tokens = model(kind=kind, rope=rope, eos_token_id=10, seq_len=11)
            tokens = tokens[:1].clamp(max=9)
            tokens[0, [0, 4, 5, 9]] = 10
            packed = oracle.logits(spec, weights, tokens)
            for begin, end in ((0, 1), (1, 5), (5, 6), (6, 10), (10, 12)):
                assert_same(packed[:, begin:end],
                            oracle.logits(spec, weights, tokens[:, begin:end]))

    def test_without_rope_the_order_of_earlier_tokens_does_not_matter_to_one_layer(self):
        for kind, rope in itertools.product(PRESETS, (False, True)):
            spec, weights, tokens = model(kind=kind, rope=rope, num_layers=1)
            before = oracle.logits(spec, weights, tokens)[:, -1]
            tokens[:, :-1] = tokens[:, :-1].flip(1)
            apart = (oracle.logits(spec, weights, tokens)[:, -1] - before).abs().max()
            self.assertEqual(apart < 1e-13, not rope, kind)


if __name__ == "__main__":
    unittest.main()
