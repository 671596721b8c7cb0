#pragma once
// Coarse ops from primitives, formula by formula: slow, obvious, and independent of the kernels.
// V is Var, or BoundedVar for the bounds of rounding errors.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "autograd/gradcheck/rounding.h"
#include "autograd/ops.h"
#include "core/attention/selection.h"

namespace difftape::composition {

namespace detail {

/// Returns (rows, vocab) with a one at each token.
inline Tensor one_hot(std::span<const std::int32_t> tokens, Index vocab) {
  Tensor hot = Tensor::zeros({std::ssize(tokens), vocab});
  for (size_t i = 0; i < tokens.size(); ++i) hot.row(i)[tokens[i]] = 1;
  return hot;
}

template <class V>
V as_matrix(const V& x) {
  return reshape(x, {x.shape().rows(), x.shape().last()});
}

/// Returns cap tanh(x / cap), by tanh(y) = 2 sigmoid(2 y) - 1, whose errors are not those of tanh.
template <class V>
V capped(const V& x, double cap) {
  if constexpr (std::is_same_v<V, BoundedVar>) return softcap(x, cap);
  return affine(sigmoid(affine(x, 2 / cap, 0)), 2 * cap, -cap);
}

/// Returns 1 / x of positive elements.
template <class V>
V reciprocal(const V& x) {
  return exp(affine(log(x), -1, 0));
}

template <class V>
V scores_of(const V& logits, RouterScore score) {
  return score == RouterScore::softmax ? softmax(logits) : sigmoid(logits);
}

/// Returns one head of (B, T, H, D) as (B, T, D).
template <class V>
V head_of(const V& x, Index head) {
  const Shape& s = x.shape();
  return reshape(slice(x, 2, head, 1), {s[0], s[1], s[3]});
}

/// Prepends the scalar `logit` as a column to x (B, T, S).
template <class V>
V with_column(const V& x, const V& logit) {
  const Shape& s = x.shape();
  Tensor shift = Tensor::zeros({s[2], s[2] + 1}), first = Tensor::zeros({1, 1, s[2] + 1});
  for (Index i = 0; i < s[2]; ++i) shift.row(i)[i + 1] = 1;
  first.data()[0] = 1;
  auto& tape = x.tape();
  const V moved = reshape(matmul(as_matrix(x), tape.constant(shift)), {s[0], s[1], s[2] + 1});
  return add(moved, mul(logit, tape.constant(first)));
}

/// Returns the mask (B, T, T) of one map of an output head.
inline Tensor mask_of(const AttentionInputs& in, Index head, Index map) {
  const Index batch = in.q.shape()[0], seq = in.q.shape()[1];
  Tensor mask = attention_mask(batch, seq, in.visible);
  const auto group = in.mapping.groups()[groups_of_heads(in.mapping)[head]];
  for (Index b = 0; b < batch; ++b) {
    const KeySelection selection(in, b, group);
    for (Index t = 0; t < seq; ++t) {
      for (Index s = 0; s < t; ++s) {
        if (!selection.reads(map, t, s))
          mask.row(b * seq + t)[s] = -std::numeric_limits<real>::infinity();
      }
    }
  }
  return mask;
}

/// Returns the probabilities (B, T, T) of one map of an output head; `sink` is a scalar or
/// undefined. The mask is added after the column of the sink, because 0 times -inf is NaN.
template <class V>
V softmax_map(const BasicAttentionInputs<V>& in, Index head, Index map, const V& sink) {
  const OutputHead& output = in.mapping.outputs[head];
  const V q = head_of(in.q, output.query[map]), k = head_of(in.k, output.key[map]);
  V scores = affine(matmul(q, transpose(k, 1, 2)), in.scale, 0);
  if (in.logit_softcap > 0) scores = capped(scores, in.logit_softcap);
  const Index batch = q.shape()[0], seq = q.shape()[1];
  const V mask = q.tape().constant(mask_of(values_of(in), head, map));
  if (!sink.defined()) return softmax(add(scores, mask));
  Tensor wide = Tensor::zeros({batch, seq, seq + 1});
  for (Index row = 0; row < batch * seq; ++row) {
    std::copy_n(mask.value().data() + row * seq, seq, wide.data() + row * (seq + 1) + 1);
  }
  const V all = softmax(add(with_column(scores, sink), q.tape().constant(wide)));
  return slice(all, 2, 1, seq);
}

/// Places (B, T, E) at `head` of zeros (B, T, heads, E), so that a sum over heads concatenates.
template <class V>
V place_head(const V& x, Index head, Index heads) {
  const Shape& s = x.shape();
  Tensor selector = Tensor::zeros({1, 1, heads, 1});
  selector.data()[head] = 1;
  return mul(reshape(x, {s[0], s[1], 1, s[2]}), x.tape().constant(selector));
}

}  // namespace detail

template <class V>
V embedding(std::span<const std::int32_t> tokens, const Shape& shape, const V& table) {
  const V rows = matmul(table.tape().constant(detail::one_hot(tokens, table.shape()[0])), table);
  std::vector<Index> extents(shape.begin(), shape.end());
  extents.push_back(table.shape()[1]);
  return reshape(rows, Shape(std::span<const Index>(extents)));
}

template <class V>
V linear(const V& x, const V& weight, const V& residual = {}) {
  const V y = reshape(matmul(detail::as_matrix(x), transpose(weight, 0, 1)),
                      x.shape().with(-1, weight.shape()[0]));
  return residual.defined() ? add(y, residual) : y;
}

template <class V>
V rms_norm(const V& x, const V& weight, double eps) {
  const double n = static_cast<double>(x.shape().last());
  const V r = rsqrt(affine(sum_last(mul(x, x)), 1 / n, eps));
  return mul(mul(x, r), weight);
}

template <class V>
V rope(const V& x, const RopeRule& rule, Index first = 0) {
  const Index seq = x.shape()[1], width = x.shape()[3];
  Tensor cosine = Tensor::zeros({seq, 1, width}), sine = Tensor::like(cosine);
  Tensor turn = Tensor::zeros({width, width});  // (a, b) -> (-b, a) in every plane
  const std::vector<double> frequencies = rope_frequencies(rule, width);
  const double factor = attention_factor_of(rule.scaling);
  for (Index c = 0; c < width; ++c) {
    turn.row(c)[c ^ 1] = c % 2 == 0 ? 1 : -1;
    for (Index t = 0; t < seq; ++t) {
      const double angle = static_cast<double>(first + t) * frequencies[c / 2];
      cosine.row(t)[c] = static_cast<real>(factor * std::cos(angle));
      sine.row(t)[c] = static_cast<real>(factor * std::sin(angle));
    }
  }
  auto& tape = x.tape();
  const V turned = reshape(matmul(detail::as_matrix(x), tape.constant(turn)), x.shape());
  return add(mul(x, tape.constant(cosine)), mul(turned, tape.constant(sine)));
}

template <class V>
V swiglu_linear(const V& gate, const V& up, const V& weight, const V& residual = {}) {
  return composition::linear(mul(mul(gate, sigmoid(gate)), up), weight, residual);
}

template <class V>
V attention(const BasicAttentionInputs<V>& in) {
  const Index heads = in.mapping.heads_out();
  V out;
  for (Index i = 0; i < heads; ++i) {
    const OutputHead& output = in.mapping.outputs[i];
    const auto attend = [&](Index map) {
      const Index query = output.query[map];
      const V sink = in.sinks.defined() ? reshape(slice(in.sinks, 0, query, 1), {}) : V();
      return matmul(detail::softmax_map(in, i, map, sink),
                    detail::head_of(in.v, output.value[map]));
    };
    V y = attend(0);
    if (in.mapping.maps == 2) {
      const V factor = in.lambda.value().size() == 1 ? in.lambda : slice(in.lambda, 2, i, 1);
      y = sub(y, mul(factor, attend(1)));
    }
    const V placed = detail::place_head(y, i, heads);
    out = i == 0 ? placed : add(out, placed);
  }
  return out;
}

template <class V>
V cross_entropy(const V& hidden, const V& weight, std::span<const std::int32_t> targets,
                const LossOptions& options = {}) {
  std::vector<std::int32_t> rows, scored;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == kIgnoreIndex) continue;
    rows.push_back(i);
    scored.push_back(targets[i]);
  }
  const Index count = std::ssize(rows);
  const V x = composition::embedding(rows, {count}, detail::as_matrix(hidden));
  V logits = composition::linear(x, weight);
  if (options.softcap > 0) logits = detail::capped(logits, options.softcap);
  const V probabilities = softmax(logits);
  const V hot = hidden.tape().constant(detail::one_hot(scored, weight.shape()[0]));
  const V of_target = sum_last(mul(probabilities, hot));
  V mean = affine(sum(log(of_target)), -1 / static_cast<double>(count), 0);
  if (options.z_loss == 0) return mean;
  const V log_z = log(sum_last(exp(logits)));
  return add(mean, affine(sum(mul(log_z, log_z)), options.z_loss / static_cast<double>(count), 0));
}

template <class V>
V route(const V& logits, const RouterRule& rule, std::span<const real> bias = {}) {
  const V scores = detail::scores_of(logits, rule.score);
  const Index tokens = logits.shape()[0], experts = logits.shape()[1];
  Tensor hot = Tensor::zeros({tokens, rule.top_k, experts});
  for (Index i = 0; i < tokens; ++i) {
    std::vector<Index> order(experts);
    std::iota(order.begin(), order.end(), Index{0});
    const auto rank = [&](Index e) {
      return scores.value().row(i)[e] + (bias.empty() ? 0 : bias[e]);
    };
    std::ranges::stable_sort(order, std::ranges::greater(), rank);
    for (Index j = 0; j < rule.top_k; ++j) hot.row(i * rule.top_k + j)[order[j]] = 1;
  }
  const V chosen = mul(reshape(scores, {tokens, 1, experts}), logits.tape().constant(hot));
  const V weights = reshape(sum_last(chosen), {tokens, rule.top_k});
  return rule.normalize ? mul(weights, detail::reciprocal(sum_last(weights))) : weights;
}

template <class V>
V router_loss(const V& logits, RouterScore score, const Routing& routing,
              const RouterLosses& weights) {
  const auto tokens = static_cast<double>(routing.tokens());
  Tensor load = Tensor::zeros({routing.experts});
  for (const std::int32_t expert : routing.chosen) load.data()[expert] += 1;
  V mean = detail::scores_of(logits, score);
  if (score == RouterScore::sigmoid) mean = mul(mean, detail::reciprocal(sum_last(mean)));
  const V balancing = sum(mul(mean, logits.tape().constant(load)));
  const V log_z = log(sum_last(exp(logits)));
  const double factor =
      weights.load_balancing * static_cast<double>(routing.experts) / (tokens * tokens);
  return add(affine(balancing, factor, 0),
             affine(sum(mul(log_z, log_z)), weights.z_loss / tokens, 0));
}

/// Every expert computes every token; a mask keeps the chosen.
template <class V>
V experts(const V& x, const V& weights, const Routing& routing, const std::vector<V>& gate,
          const std::vector<V>& up, const std::vector<V>& down, const V& residual = {}) {
  V y = residual.defined() ? detail::as_matrix(residual) : affine(detail::as_matrix(x), 0, 0);
  for (Index e = 0; e < routing.experts; ++e) {
    Tensor mask = Tensor::zeros({routing.tokens(), routing.top_k});
    for (Index i = 0; i < mask.size(); ++i) mask.data()[i] = routing.chosen[i] == e ? 1 : 0;
    const V weight = sum_last(mul(weights, x.tape().constant(mask)));
    const V g = composition::linear(detail::as_matrix(x), gate[e]);
    const V u = composition::linear(detail::as_matrix(x), up[e]);
    y = add(y, mul(weight, composition::swiglu_linear(g, u, down[e])));
  }
  return reshape(y, x.shape());
}

}  // namespace difftape::composition
