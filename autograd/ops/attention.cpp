// Causal attention with one map, or the difference of two (core/attention). With P1, P2 the maps
// softmax(scale q_m k_m^T), W = P1 - lambda P2 and scale = 1/sqrt(D), each output head:
//   forward   y = W v
//   backward  dP = dy v^T;  r_m = rowsum(P_m o dP)
//             dv += W^T dy
//             dS1 = P1 o (dP - r1);  dS2 = -lambda P2 o (dP - r2)
//             dq_m += scale dS_m k_m;  dk_m += scale dS_m^T q_m
//             dlambda += -r2          (one lambda: minus the sum of r2 over tokens and heads)
//   saves     q, k, v, lambda, maximum and reciprocal sum of each softmax row (B, heads, maps, T,
//   2) fails     heads or shapes do not fit the layout; two maps without lambda, or one map with it
#include "core/attention/attention.h"
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

namespace {

AttentionInputs inputs(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* lambda) {
  return {q, k, v, lambda, 1 / std::sqrt(static_cast<double>(q.shape().last()))};
}

/// dq, dk, dv of any number of maps; returns dlambda (B, T, output heads), or nothing.
struct Saved {
  HeadLayout layout;
  Tensor q, k, v, row_stats;
};

Tensor attention_pullback(const Saved& saved, const Tensor* lambda, const Tensor& dy,
                          const Gradient& dq, const Gradient& dk, const Gradient& dv) {
  const auto slot = [](const Gradient& gradient, const Tensor& like) {
    return gradient.wanted() ? gradient.slot()
                             : Gradient::Slot{Tensor::like(like), Into::overwrite};
  };
  const Gradient::Slot to_q = slot(dq, saved.q), to_k = slot(dk, saved.k), to_v = slot(dv, saved.v);
  AttentionGradients gradients{to_q.out, to_k.out, to_v.out, to_q.into, to_k.into, to_v.into, {}};
  if (lambda)
    gradients.dlambda = Tensor::empty(dy.shape().with(3, 1))
                            .reshaped({dy.shape()[0], dy.shape()[1], dy.shape()[2]});
  attention_backward(saved.layout, inputs(saved.q, saved.k, saved.v, lambda), saved.row_stats, dy,
                     gradients);
  return gradients.dlambda;
}

}  // namespace

Var attention(const Var& q, const Var& k, const Var& v, const HeadLayout& layout) {
  AttentionOutputs result =
      attention_forward(layout, inputs(q.value(), k.value(), v.value(), nullptr));
  const Saved saved{layout, q.value(), k.value(), v.value(), result.row_stats};
  return record("attention", result.out, {q, k, v},
                [saved, dq = q.gradient(), dk = k.gradient(), dv = v.gradient()](const Tensor& dy) {
                  attention_pullback(saved, nullptr, dy, dq, dk, dv);
                });
}

Var attention(const Var& q, const Var& k, const Var& v, const Var& lambda,
              const HeadLayout& layout) {
  AttentionOutputs result =
      attention_forward(layout, inputs(q.value(), k.value(), v.value(), &lambda.value()));
  const Saved saved{layout, q.value(), k.value(), v.value(), result.row_stats};
  return record("diff_attention", result.out, {q, k, v, lambda},
                [saved, lambda = lambda.value(), dq = q.gradient(), dk = k.gradient(),
                 dv = v.gradient(), dlambda = lambda.gradient()](const Tensor& dy) {
                  const Tensor each = attention_pullback(saved, &lambda, dy, dq, dk, dv);
                  if (!dlambda.wanted()) return;
                  if (lambda.size() == each.size()) {
                    dlambda.add(each);
                    return;
                  }
                  const double total =
                      parallel_sum(each.size(), kElementGrain, [&](Index i, Index n) {
                        return ConstRow(each.data() + i, n).cast<double>().sum();
                      });
                  dlambda.sum().data()[0] += static_cast<real>(total);
                });
}

}  // namespace difftape
