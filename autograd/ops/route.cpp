// The router of a mixture of experts. With logits z (N, E), scores s = softmax(z) or sigmoid(z),
// the chosen experts c (N, k) and S = sum_j s[c_j] + tiny,
//   route
//     forward   w_j = s[c_j], or s[c_j] / S if normalized
//     backward  ds[c_j] = dw_j, or (dw_j - sum_i dw_i w_i) / S; 0 for experts that are not chosen
//               dz += s (ds - sum(ds s))      softmax
//               dz += ds s (1 - s)            sigmoid
//     saves     s, c
//     fails     logits are not (N, E); k is not in [1, E]; the bias is not (E)
//   router_loss, with q = s / sum(s), m = sum(f q), l = log(sum exp(z)), f = load / N
//     forward   y = balancing E mean(m) + z_loss mean(l^2)
//     backward  dz += dy (balancing E / N q (f - m) (1 - s) + z_loss 2 l / N softmax(z))
//               without the factor 1 - s for softmax; computed during forward
//     saves     the gradient (N, E)
//     fails     the sizes of the routing do not fit the logits
// The choice is piecewise constant, and so is f: neither has a gradient.
#include <cmath>

#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"
#include "core/simd_functions.h"

namespace difftape {

namespace {

/// DeepSeek-V3 adds this to the sum of the chosen scores, which can underflow for sigmoid.
constexpr real kTiny = real(1e-20);

void sigmoid_row(ConstRow z, Row s) {
  for_each_vector(z.size(), [&](Index i, Index count) {
    store(sigmoid_simd(load(z.data() + i, count)), s.data() + i, count);
  });
}

/// Returns log(sum exp(z)) and stores softmax(z).
real softmax_row(ConstRow z, Row s) {
  const real top = z.maxCoeff();
  s = z;
  const real total = exp_of_differences(s.data(), s.size(), top);
  s /= total;
  return top + std::log(total);
}

Tensor scores_of(const Tensor& logits, RouterScore score) {
  Tensor scores = Tensor::like(logits);
  for_each_row(logits, scores, [score](ConstRow z, Row s) {
    if (score == RouterScore::sigmoid) {
      sigmoid_row(z, s);
    } else {
      softmax_row(z, s);
    }
  });
  return scores;
}

real sum_of_chosen(const real* scores, std::span<const std::int32_t> chosen) {
  real total = kTiny;
  for (const std::int32_t expert : chosen) total += scores[expert];
  return total;
}

/// Adds the gradient of one row to dz.
void route_backward(const RouterRule& rule, ConstRow s, std::span<const std::int32_t> chosen,
                    const real* dw, Row dz) {
  const real total = rule.normalize ? sum_of_chosen(s.data(), chosen) : 1;
  real mean = 0;  // sum of dw w
  for (size_t j = 0; rule.normalize && j < chosen.size(); ++j) mean += dw[j] * s[chosen[j]] / total;
  real dot = 0;  // sum of ds s
  for (size_t j = 0; j < chosen.size(); ++j) {
    const Index e = chosen[j];
    const real ds = (dw[j] - mean) / total;
    dz[e] += ds * s[e] * (rule.score == RouterScore::sigmoid ? 1 - s[e] : 1);
    dot += ds * s[e];
  }
  if (rule.score == RouterScore::softmax) dz -= dot * s;
}

/// The settings of router_loss for one row.
struct RowLoss {
  RouterScore score;
  real balancing, z_loss;    ///< factors on m and l^2
  std::vector<real> load{};  ///< f

  /// Returns the loss of a row and stores its gradient. `q` is scratch.
  double run(ConstRow z, Row dz, Row q) const {
    const real log_z = softmax_row(z, q);
    dz = 2 * z_loss * log_z * q;
    const bool sigmoid = score == RouterScore::sigmoid;
    if (sigmoid) sigmoid_row(z, q);
    const real total = sigmoid ? sum_of(q) + kTiny : 1;
    real mean = 0;
    for (Index e = 0; e < q.size(); ++e) mean += load[e] * q[e] / total;
    for (Index e = 0; e < q.size(); ++e) {
      dz[e] += balancing * q[e] / total * (load[e] - mean) * (sigmoid ? 1 - q[e] : 1);
    }
    return static_cast<double>(balancing) * static_cast<double>(mean) +
           static_cast<double>(z_loss) * static_cast<double>(log_z) * static_cast<double>(log_z);
  }
};

}  // namespace

Routed route(const Var& logits, const RouterRule& rule, std::span<const real> bias) {
  const Shape& sl = logits.shape();
  require_shape(sl.rank() == 2 && rule.top_k >= 1 && rule.top_k <= sl[1] &&
                    (bias.empty() || std::ssize(bias) == sl[1]),
                "route", "logits are {}, k is {}, {} biases; need (N, E), 1 <= k <= E, E or 0",
                sl.str(), rule.top_k, bias.size());
  const Tensor scores = scores_of(logits.value(), rule.score);
  const auto routing = std::make_shared<const Routing>(choose_experts(scores, bias, rule.top_k));
  Tensor weights = Tensor::empty({sl[0], rule.top_k});
  for_each_token(*routing, routing->chosen, sl[1],
                 [&](Index i, std::span<const std::int32_t> chosen) {
                   const real* s = scores.row(i);
                   const real total = rule.normalize ? sum_of_chosen(s, chosen) : 1;
                   for (size_t j = 0; j < chosen.size(); ++j)
                     weights.row(i)[j] = s[chosen[j]] / total;
                 });
  const Var recorded =
      record("route", weights, {logits},
             [scores, routing, rule, dlogits = logits.gradient()](const Tensor& dw) {
               Tensor dz = dlogits.grad();
               const Index width = routing->experts;
               for_each_token(*routing, routing->chosen, width,
                              [&](Index i, std::span<const std::int32_t> chosen) {
                                route_backward(rule, ConstRow(scores.row(i), width), chosen,
                                               dw.row(i), Row(dz.row(i), width));
                              });
             });
  return {recorded, routing};
}

Var router_loss(const Var& logits, RouterScore score, const Routing& routing,
                const RouterLosses& weights) {
  const Shape& sl = logits.shape();
  require_shape(sl.rank() == 2 && sl[0] == routing.tokens() && sl[1] == routing.experts,
                "router_loss",
                "logits are {}, the routing has {} tokens and {} experts; need (N, E), N, E",
                sl.str(), routing.tokens(), routing.experts);
  const auto tokens = static_cast<double>(sl[0]);
  RowLoss loss{score,
               static_cast<real>(weights.load_balancing * static_cast<double>(sl[1]) / tokens),
               static_cast<real>(weights.z_loss / tokens)};
  for (Index e = 0; e < sl[1]; ++e) {
    loss.load.push_back(static_cast<real>(static_cast<double>(routing.load(e)) / tokens));
  }
  Tensor gradient = Tensor::like(logits.value());
  const double total = parallel_sum(sl[0], row_grain(sl[1]), [&](Index begin, Index count) {
    std::vector<real> scratch(sl[1]);
    double of_block = 0;
    for (Index i = begin; i < begin + count; ++i) {
      of_block += loss.run(ConstRow(logits.value().row(i), sl[1]), Row(gradient.row(i), sl[1]),
                           Row(scratch.data(), sl[1]));
    }
    return of_block;
  });
  return record("router_loss", Tensor::scalar(static_cast<real>(total)), {logits},
                [gradient, dlogits = logits.gradient()](const Tensor& dy) {
                  Tensor dz = dlogits.grad();
                  for_each_row(gradient, dz,
                               [factor = dy.item()](ConstRow g, Row out) { out += factor * g; });
                });
}

}  // namespace difftape
