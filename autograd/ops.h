#pragma once
// Every op: a function that computes a value and records its pullback. The file in autograd/ops
// that defines it begins with its formulas. Wrong shapes throw ShapeError with op, shapes and rule.
//
// Letters: B batch, T sequence, C d_model, H heads, D head_dim, F d_ff, V vocabulary.

#include <cstdint>
#include <memory>
#include <span>

#include "autograd/tape.h"
#include "core/attention/attention.h"
#include "core/rope.h"

namespace difftape {

// Primitives: small, general, composing the same mathematics as the coarse ops below.

Var add(const Var& a, const Var& b);  ///< a + b with NumPy's broadcasting
Var sub(const Var& a, const Var& b);  ///< a - b with NumPy's broadcasting
Var mul(const Var& a, const Var& b);  ///< element-wise a b with NumPy's broadcasting
Var affine(const Var& x, double scale, double shift);  ///< scale x + shift
Var exp(const Var& x);
Var log(const Var& x);                   ///< of positive elements; log(0) is -inf, as IEEE has it
Var sigmoid(const Var& x);               ///< 1 / (1 + exp(-x))
Var rsqrt(const Var& x);                 ///< 1 / sqrt(x) of positive elements
Var softcap(const Var& x, double cap);   ///< cap tanh(x / cap), cap > 0 (Gemma Team 2024)
Var softmax(const Var& x);               ///< over the last axis
Var sum(const Var& x);                   ///< of all elements, a scalar
Var sum_last(const Var& x);              ///< over the last axis, which stays with extent 1
Var matmul(const Var& a, const Var& b);  ///< (..., M, K) (..., K, N) -> (..., M, N)
Var transpose(const Var& x, int axis_a, int axis_b);          ///< exchanges two axes
Var slice(const Var& x, int axis, Index begin, Index count);  ///< [begin, begin + count) of an axis
Var reshape(const Var& x, const Shape& shape);                ///< the same elements in order

// Coarse ops: where the time goes.

/// Rows of table (V, C) for tokens of any shape: shape + (C). Tokens must lie in [0, V)
/// (DataError).
Var embedding(std::span<const std::int32_t> tokens, const Shape& shape, const Var& table);
/// x (..., K) times weight (N, K) transposed: (..., N); plus `residual` (..., N) if there is one.
Var linear(const Var& x, const Var& weight, const Var& residual = {});
/// x / sqrt(mean(x^2) + eps) * weight over the last axis (Zhang & Sennrich 2019). weight (C).
Var rms_norm(const Var& x, const Var& weight, double eps);
/// Rotates each head of x (B, T, H, D) by its position, that of the first token being `first`; in
/// place if no other handle shares x.
Var rope(Var x, std::shared_ptr<const RopeTable> table, Index first = 0);
/// (silu(gate) up) times weight (N, K) transposed: (..., N), gate and up (..., K) (Shazeer 2020);
/// plus `residual` (..., N) if there is one.
Var swiglu_linear(const Var& gate, const Var& up, const Var& weight, const Var& residual = {});
/// The operands of attention (core/attention/attention.h) as values on a tape; Var() is absent.
using AttentionOperands = BasicAttentionInputs<Var>;
/// The same without the tape.
AttentionInputs values_of(const AttentionOperands& in);
/// Causal attention with one map, or the difference of two: q, k, v -> (B, T, output heads, E).
/// `softmax_stats`, if given, becomes the statistics that the kernel keeps of each row. The tape's
/// precision decides whether maps are rounded.
Var attention(const AttentionOperands& in, Tensor* softmax_stats = nullptr);
/// A target that the loss mask leaves out, as in PyTorch.
constexpr std::int32_t kIgnoreIndex = -100;
/// What the loss makes of the logits besides their cross-entropy.
struct LossOptions {
  /// Weight of the mean of log(sum exp(logits))^2, which keeps logits from drifting (Chowdhery et
  /// al. 2022, PaLM, section 5; Wortsman et al. 2023); 0: none.
  double z_loss = 0;
  /// c: logits become c tanh(logits / c) first (Gemma Team 2024); 0: they stay.
  double softcap = 0;
};
/// Means over the scored rows, and what those are of.
struct LossTerms {
  real cross_entropy = 0;               ///< nats: the loss without its z-loss
  double squared_log_z = 0;             ///< log(sum exp(logits))^2
  std::vector<double> row_losses = {};  ///< N cross-entropies, 0 where a row is not scored
};
/// Mean over the scored ones of N rows of -log softmax(hidden weight^T)[target], in nats. hidden
/// (..., C) with N rows, weight (V, C), N targets in [0, V) or kIgnoreIndex: such a row is
/// left out, whatever it holds, and its gradient is 0. DataError for another target, and if none is
/// scored. Logits exist for a chunk of rows at a time. With a z-loss the value has it; `terms`, if
/// given, is what the value is made of.
Var cross_entropy(const Var& hidden, const Var& weight, std::span<const std::int32_t> targets,
                  const LossOptions& options = {}, LossTerms* terms = nullptr);
/// body(x) without keeping what its pullbacks would: backward runs body once more. Values and
/// gradients are bitwise those of body(x). body must return the same each time, and read no Var but
/// its argument; parameters it gets from the tape of that. If x needs no gradient, body runs
/// once, on that tape.
Var checkpointed(const Var& x, const std::function<Var(const Var&)>& body);

}  // namespace difftape
