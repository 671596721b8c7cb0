#pragma once
// All ops. Each computes a value and records its pullback; its file in autograd/ops begins with its
// formulas. Wrong shapes throw ShapeError with op, shapes and rule.
//
// Letters: B batch, T sequence, C d_model, H heads, D head_dim, F d_ff, V vocabulary; N tokens, E
// experts, k experts of a token.

#include <cstdint>
#include <memory>
#include <span>

#include "autograd/tape.h"
#include "core/attention/attention.h"
#include "core/rope.h"
#include "core/routing.h"

namespace difftape {

// Primitives, from which the coarse ops below can be composed.

Var add(const Var& a, const Var& b);  ///< a + b with NumPy's broadcasting
Var sub(const Var& a, const Var& b);  ///< a - b with NumPy's broadcasting
Var mul(const Var& a, const Var& b);  ///< element-wise a b with NumPy's broadcasting
Var affine(const Var& x, double scale, double shift);  ///< scale x + shift
Var exp(const Var& x);
Var log(const Var& x);                   ///< of positive elements; log(0) is -inf
Var sigmoid(const Var& x);               ///< 1 / (1 + exp(-x))
Var rsqrt(const Var& x);                 ///< 1 / sqrt(x) of positive elements
Var softcap(const Var& x, double cap);   ///< cap tanh(x / cap), cap > 0 (Gemma Team 2024)
Var softmax(const Var& x);               ///< over the last axis
Var sum(const Var& x);                   ///< of all elements, a scalar
Var sum_last(const Var& x);              ///< over the last axis, kept with extent 1
Var matmul(const Var& a, const Var& b);  ///< (..., M, K) (..., K, N) -> (..., M, N)
Var transpose(const Var& x, int axis_a, int axis_b);          ///< exchanges two axes
Var slice(const Var& x, int axis, Index begin, Index count);  ///< [begin, begin + count) of an axis
Var reshape(const Var& x, const Shape& shape);                ///< the same elements in order

// Coarse ops, which take most of the time.

/// Looks up rows of table (V, C): shape -> shape + (C). Throws DataError for a token outside [0,
/// V).
Var embedding(std::span<const std::int32_t> tokens, const Shape& shape, const Var& table);
/// x (..., K) times weight (N, K) transposed, plus `residual` (..., N) if defined: (..., N).
Var linear(const Var& x, const Var& weight, const Var& residual = {});
/// x / sqrt(mean(x^2) + eps) * weight (C) over the last axis (Zhang & Sennrich 2019).
Var rms_norm(const Var& x, const Var& weight, double eps);
/// Rotates each head of x (B, T, H, D) by its position, counted from `first`. In place if no other
/// handle shares x.
Var rope(Var x, std::shared_ptr<const RopeTable> table, Index first = 0);
/// silu(gate) up, both (..., K), times weight (N, K) transposed, plus `residual` (..., N) if
/// defined: (..., N) (Shazeer 2020).
Var swiglu_linear(const Var& gate, const Var& up, const Var& weight, const Var& residual = {});
/// The inputs of attention on a tape; Var() is absent.
using AttentionOperands = BasicAttentionInputs<Var>;
/// Returns the inputs without the tape.
template <class V>
AttentionInputs values_of(const BasicAttentionInputs<V>& in) {
  return {.mapping = in.mapping,
          .q = in.q.value(),
          .k = in.k.value(),
          .v = in.v.value(),
          .lambda = in.lambda.value(),
          .sinks = in.sinks.value(),
          .scale = in.scale,
          .visible = in.visible,
          .blocks = in.blocks,
          .logit_softcap = in.logit_softcap,
          .precision = in.precision};
}
/// Causal attention with one map or the difference of two: (B, T, output heads, E). Stores the row
/// statistics of the kernel in `softmax_stats` if given. Multiplies in the precision of the tape.
Var attention(const AttentionOperands& in, Tensor* softmax_stats = nullptr);
/// A target that is not scored, as in PyTorch.
constexpr std::int32_t kIgnoreIndex = -100;
/// Changes to plain cross-entropy.
struct LossOptions {
  /// Weight of the mean of log(sum exp(logits))^2, which limits the drift of logits (Chowdhery et
  /// al. 2022, PaLM, section 5; Wortsman et al. 2023); 0: none.
  double z_loss = 0;
  /// c: logits become c tanh(logits / c) first (Gemma Team 2024); 0: no cap.
  double softcap = 0;
};
/// The parts of a loss: means over the scored rows, and the loss of each row.
struct LossTerms {
  real cross_entropy = 0;               ///< nats, without z-loss
  double squared_log_z = 0;             ///< log(sum exp(logits))^2
  std::vector<double> row_losses = {};  ///< N cross-entropies, 0 if not scored
  /// Weighted losses of the routers of all layers, which LanguageModel adds.
  double router_loss = 0;
};
/// Mean of -log softmax(hidden weight^T)[target] over the scored rows, in nats, plus the z-loss.
/// hidden (..., C) has N rows, weight is (V, C). Rows with target kIgnoreIndex are left out and
/// have gradient 0. Throws DataError for other targets outside [0, V), and if no row is scored.
/// Logits exist for one chunk of rows at a time. Fills `terms` if given.
Var cross_entropy(const Var& hidden, const Var& weight, std::span<const std::int32_t> targets,
                  const LossOptions& options = {}, LossTerms* terms = nullptr);
/// The experts of N tokens and their weights (N, k).
struct Routed {
  Var weights;
  std::shared_ptr<const Routing> routing;
};
/// Chooses the k experts of each row of logits (N, E) with the highest score + bias. The weights
/// are the scores of the chosen, without the bias, divided by their sum if rule.normalize.
Routed route(const Var& logits, const RouterRule& rule, std::span<const real> bias = {});
/// Weights of the losses of a router.
struct RouterLosses {
  /// E sum(f P), with f the number of choices of an expert per token and P its mean score. Sigmoid
  /// scores of a token are first divided by their sum (Fedus et al. 2021, Switch; Jiang et al.
  /// 2024, Mixtral).
  double load_balancing = 0;
  /// Mean of log(sum exp(logits))^2 (Zoph et al. 2022, ST-MoE).
  double z_loss = 0;
};
/// The weighted sum of both losses, a scalar; f is a constant.
Var router_loss(const Var& logits, RouterScore score, const Routing& routing,
                const RouterLosses& weights);
/// The weights of E experts: gate and up (F, C), down (C, F).
struct Experts {
  std::vector<Var> gate, up, down;
};
/// Sums weight * down(silu(gate(x)) up(x)) over the experts of each row of x (..., C), plus
/// `residual` if defined: (..., C). Rows are sorted by expert, so each meets its own experts only,
/// and none is dropped (Gale et al. 2022, MegaBlocks).
Var experts(const Var& x, const Routed& routed, const Experts& weights, const Var& residual = {});
/// Computes body(inputs) without keeping its activations: backward runs body again. Values and
/// gradients equal body(inputs) bitwise. body must be deterministic and read no Var except
/// its arguments; it takes parameters from the tape of the first. Absent inputs stay absent. If no
/// input needs a gradient, body runs once, on its tape. Backward must reach the first result;
/// others may have no gradient.
std::vector<Var> checkpointed(const std::vector<Var>& inputs,
                              const std::function<std::vector<Var>(const std::vector<Var>&)>& body);

}  // namespace difftape
