// Causal attention with one map, or the difference of two (core/attention). With A1, A2 the maps
// softmax(scale q_m k_m^T), over the keys a query sees and, with sinks, one more logit whose
// probability p_m goes nowhere; W = A1 - lambda A2 and scale = 1/sqrt(D); each output head:
//   forward   y = W v
//   backward  dA = dy v^T;  r_m = rowsum(A_m o dA)
//             dv += W^T dy
//             dS1 = A1 o (dA - r1);  dS2 = -lambda A2 o (dA - r2)
//             dq_m += scale dS_m k_m;  dk_m += scale dS_m^T q_m
//             dlambda += -r2          (one lambda: minus the sum of r2 over tokens and heads)
//             dsink1 += -p1 r1;  dsink2 += lambda p2 r2         (sums over tokens)
//   With a soft cap c, scores s are c tanh(s / c), and dS_m is times 1 - tanh^2(s / c).
//   saves     q, k, v, lambda, sinks, and maximum and reciprocal sum of each softmax row
// In bfloat16, q, k, v, dy, W and dS are rounded where they enter a product.
//   fails     heads or shapes do not fit the mapping; two maps without lambda, or one map with it
#include "core/attention/attention.h"
#include "autograd/ops.h"
#include "core/bf16.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

namespace {

/// What the pullback reads. Lambda and sinks are not allocated if there are none.
struct Saved {
  HeadMapping mapping;
  Tensor q, k, v, lambda, sinks;
  Visibility visible;
  bool round = false;
  double logit_softcap = 0;
  bool operands_alias = false;
  Tensor softmax_stats{};

  AttentionInputs inputs() const {
    return {q,
            k,
            v,
            lambda.allocated() ? &lambda : nullptr,
            1 / std::sqrt(static_cast<double>(q.shape().last())),
            sinks.allocated() ? &sinks : nullptr,
            visible,
            round,
            logit_softcap};
  }
};

/// x, or its elements rounded to bfloat16 in memory of their own.
Tensor rounded_if(bool round, const Tensor& x) {
  if (!round) return x;
  Tensor y = Tensor::like(x);
  parallel_ranges(x.size(), kElementGrain, [&](Index i, Index n) {
    std::copy_n(x.data() + i, n, y.data() + i);
    round_bf16(y.data() + i, n);
  });
  return y;
}

/// Where the kernel writes one of dq, dk and dv: the gradient itself or, if it is not required or
/// two operands are one tensor (x attending to x), memory of its own.
class Target {
 public:
  Target(const Gradient& gradient, const Tensor& operand, bool own_memory)
      : gradient_(gradient),
        own_(own_memory || !gradient.requires_grad()),
        buffer_(own_ ? Gradient::Buffer{Tensor::like(operand), Accumulate::no}
                     : gradient.buffer()) {}
  const Gradient::Buffer& buffer() const { return buffer_; }
  /// After the kernel ran.
  void finish() const {
    if (own_ && gradient_.requires_grad()) gradient_.add(buffer_.grad);
  }

 private:
  Gradient gradient_;
  bool own_;
  Gradient::Buffer buffer_;
};

/// Sums of each column of (rows, n) added to n numbers, each in a fixed order.
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

/// Adds what the kernel found for each token to a gradient that is one number a token and head, one
/// a head, or one alone.
void add_sums(const Gradient& gradient, const Tensor& each, const Tensor& operand) {
  if (operand.size() == each.size()) {
    gradient.add(each.reshaped(operand.shape()));
    return;
  }
  Tensor total = gradient.grad();
  add_column_sums(each, total);
}

}  // namespace

Var attention(const Var& q, const Var& k, const Var& v, const Var& lambda, const Var& sinks,
              const HeadMapping& mapping, const Visibility& visible, double logit_softcap,
              Tensor* softmax_stats) {
  const bool round = q.tape().precision() != Precision::full;
  const std::array<const real*, 3> operands{q.value().data(), k.value().data(), v.value().data()};
  Saved saved{
      mapping,
      rounded_if(round, q.value()),
      rounded_if(round, k.value()),
      rounded_if(round, v.value()),
      lambda.value(),
      sinks.value(),
      visible,
      round,
      logit_softcap,
      operands[0] == operands[1] || operands[0] == operands[2] || operands[1] == operands[2]};
  AttentionOutputs result = attention_forward(mapping, saved.inputs());
  saved.softmax_stats = result.softmax_stats;
  if (softmax_stats) *softmax_stats = result.softmax_stats;
  return record("attention", result.out, {q, k, v, lambda, sinks},
                [saved, to_q = q.gradient(), to_k = k.gradient(), to_v = v.gradient(),
                 to_lambda = lambda.gradient(), to_sinks = sinks.gradient()](const Tensor& dy) {
                  const bool alias = saved.operands_alias;
                  const Target q_target(to_q, saved.q, alias), k_target(to_k, saved.k, alias),
                      v_target(to_v, saved.v, alias);
                  const Gradient::Buffer &dq = q_target.buffer(), &dk = k_target.buffer(),
                                         &dv = v_target.buffer();
                  AttentionGradients gradients{dq.grad,       dk.grad,       dv.grad, dq.accumulate,
                                               dk.accumulate, dv.accumulate, {},      {}};
                  const Index batch = dy.shape()[0], seq = dy.shape()[1];
                  if (to_lambda.requires_grad())
                    gradients.dlambda = Tensor::empty({batch, seq, dy.shape()[2]});
                  if (to_sinks.requires_grad()) {
                    gradients.dsinks = Tensor::empty({batch, seq, saved.mapping.query_heads});
                  }
                  attention_backward(saved.mapping, saved.inputs(), saved.softmax_stats,
                                     rounded_if(saved.round, dy), gradients);
                  for (const Target* target : {&q_target, &k_target, &v_target}) target->finish();
                  if (to_lambda.requires_grad())
                    add_sums(to_lambda, gradients.dlambda, saved.lambda);
                  if (to_sinks.requires_grad()) add_sums(to_sinks, gradients.dsinks, saved.sinks);
                });
}

}  // namespace difftape
