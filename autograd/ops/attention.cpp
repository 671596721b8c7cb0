// Causal attention with one map, or the difference of two (core/attention). The maps A1, A2 are
// softmax(scale q_m k_m^T) over the visible keys and, with sinks, one more logit, whose probability
// p_m is discarded. With W = A1 - lambda A2, each output head:
//   forward   y = W v
//   backward  dA = dy v^T;  r_m = rowsum(A_m o dA)
//             dv += W^T dy
//             dS1 = A1 o (dA - r1);  dS2 = -lambda A2 o (dA - r2)
//             dq_m += scale dS_m k_m;  dk_m += scale dS_m^T q_m
//             dlambda += -r2          (one lambda: minus the sum of r2 over tokens and heads)
//             dsink1 += -p1 r1;  dsink2 += lambda p2 r2         (sums over tokens)
//   saves     q, k, v, lambda, sinks, and maximum and reciprocal sum of each softmax row; q, k and
//             v in the precision of the products
//   fails     heads or shapes do not fit the mapping; two maps without lambda, or one map with it
// Block-sparse attention reads chosen keys only; the choice has no gradient.
// A soft cap c turns scores s into c tanh(s / c) and multiplies dS_m by 1 - tanh^2(s / c).
// In bfloat16, q, k, v, dy, W and dS are rounded where they enter a product.
#include "core/attention/attention.h"

#include <utility>

#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

namespace {

/// Memory for one of dq, dk and dv: the gradient itself, or a buffer if the gradient is not needed
/// or two operands share a tensor (x attending to x).
class Target {
 public:
  Target(const Gradient& gradient, const Shape& shape, bool own_memory)
      : gradient_(gradient),
        own_(own_memory || !gradient.requires_grad()),
        buffer_(own_ ? Gradient::Buffer{Tensor::empty(shape), Accumulate::no} : gradient.buffer()) {
  }
  const Gradient::Buffer& buffer() const { return buffer_; }
  /// Adds a buffer to its gradient after the kernel has run.
  void finish() const {
    if (own_ && gradient_.requires_grad()) gradient_.add(buffer_.grad);
  }

 private:
  Gradient gradient_;
  bool own_;
  Gradient::Buffer buffer_;
};

/// Adds the sum of each column of x (rows, n) to n elements, in a fixed order.
void add_column_sums(const Tensor& x, Tensor& to) {
  const Index n = to.size(), rows = x.size() / n;
  for (Index column = 0; column < n; ++column) {
    const double total = parallel_sum(rows, kElementGrain, [&](Index begin, Index count) {
      double part = 0;
      for (Index i = begin; i < begin + count; ++i) {
        part += static_cast<double>(x.data()[i * n + column]);
      }
      return part;
    });
    serial([&] { to.data()[column] += static_cast<real>(total); });
  }
}

/// Adds gradients per token and head to an operand with one element per token and head, one per
/// head, or one in all.
void add_sums(const Gradient& gradient, const Tensor& each, const Tensor& operand) {
  if (operand.size() == each.size()) {
    gradient.add(each.reshaped(operand.shape()));
    return;
  }
  Tensor total = gradient.grad();
  add_column_sums(each, total);
}

}  // namespace

Var attention(const AttentionOperands& in, Tensor* softmax_stats) {
  AttentionInputs given = values_of(in);
  const std::array<const real*, 3> at{given.q.data(), given.k.data(), given.v.data()};
  const bool aliased = at[0] == at[1] || at[0] == at[2] || at[1] == at[2];
  const std::array<Shape, 3> shapes{given.q.shape(), given.k.shape(), given.v.shape()};
  given.precision = in.q.tape().precision();
  AttentionOutputs result = attention_forward(given);
  const Tensor out = std::exchange(result.out, {});
  if (given.precision != Precision::full) given.q = given.k = given.v = {};
  if (softmax_stats) *softmax_stats = result.softmax_stats;
  return record("attention", out, {in.q, in.k, in.v, in.lambda, in.sinks},
                [given, result, shapes, aliased, to_q = in.q.gradient(), to_k = in.k.gradient(),
                 to_v = in.v.gradient(), to_lambda = in.lambda.gradient(),
                 to_sinks = in.sinks.gradient()](const Tensor& dy) {
                  const Target q(to_q, shapes[0], aliased), k(to_k, shapes[1], aliased),
                      v(to_v, shapes[2], aliased);
                  AttentionGradients gradients{.dq = q.buffer().grad,
                                               .dk = k.buffer().grad,
                                               .dv = v.buffer().grad,
                                               .accumulate_q = q.buffer().accumulate,
                                               .accumulate_k = k.buffer().accumulate,
                                               .accumulate_v = v.buffer().accumulate};
                  const Index batch = dy.shape()[0], seq = dy.shape()[1];
                  if (to_lambda.requires_grad())
                    gradients.dlambda = Tensor::empty({batch, seq, dy.shape()[2]});
                  if (to_sinks.requires_grad())
                    gradients.dsinks = Tensor::empty({batch, seq, given.mapping.query_heads});
                  attention_backward(given, result, dy, gradients);
                  for (const Target* target : {&q, &k, &v}) target->finish();
                  if (to_lambda.requires_grad())
                    add_sums(to_lambda, gradients.dlambda, given.lambda);
                  if (to_sinks.requires_grad()) add_sums(to_sinks, gradients.dsinks, given.sinks);
                });
}

}  // namespace difftape
