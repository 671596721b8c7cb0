// SwiGLU experts (Shazeer 2020) of a mixture, on rows r sorted by expert. With i(r) the token and
// w_r the weight of a row, g = x_i Wg^T, u = x_i Wu^T, s = 1 / (1 + exp(-g)) and h = g s u,
//   forward   y_i = sum over the rows of i of (w_r h_r) Wd^T, plus the residual if defined
//   backward  t = dy_i Wd
//             dw_r += sum(t h)
//             dg = w t u s (1 + g (1 - s)),  du = w t g s
//             dWd += dy^T (w h),  dWg += dg^T x,  dWu += du^T x   over the rows of the expert
//             dx_i += sum over the rows of i of dg Wg + du Wu
//             dresidual += dy
//   saves     x, w, g, u, the weights of the experts
//   fails     the sizes of x, the routing, its weights and the experts do not fit; the residual's
//             shape differs from x's
// The weight multiplies h, not the output, so that no output of an expert is saved.
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"
#include "core/simd_functions.h"

namespace difftape {

namespace {

using Matrices = std::vector<Tensor>;
using Gradients = std::vector<Gradient>;

Matrices values_of(const std::vector<Var>& weights) {
  Matrices values;
  for (const Var& w : weights) values.push_back(w.value());
  return values;
}

Gradients gradients_of(const std::vector<Var>& weights) {
  Gradients gradients;
  for (const Var& w : weights) gradients.push_back(w.gradient());
  return gradients;
}

/// The rows of an expert in a matrix of sorted rows.
Operand rows_of(const Tensor& x, const Routing& routing, Index expert) {
  return matrix(x.row(routing.starts[expert]), routing.load(expert), x.shape().last());
}

/// Returns the row of each choice, (N k, C).
Tensor gathered(const Tensor& x, const Routing& routing) {
  const Index width = x.shape().last();
  Tensor out = Tensor::empty({std::ssize(routing.rows), width});
  for_each_token(routing, routing.rows, width, [&](Index i, std::span<const std::int32_t> rows) {
    for (const std::int32_t row : rows) std::copy_n(x.row(i), width, out.row(row));
  });
  return out;
}

/// out_i = start_i + the rows of token i, in order of choice; `start` may be `out`, null means 0.
void sum_rows(const Tensor& rows_in, const Routing& routing, const real* start, Tensor& out) {
  const Index width = rows_in.shape().last();
  for_each_token(routing, routing.rows, width, [&](Index i, std::span<const std::int32_t> rows) {
    Row to(out.row(i), width);
    const auto of = [&](size_t j) { return ConstRow(rows_in.row(rows[j]), width); };
    if (start != nullptr) {
      to = ConstRow(start + i * width, width) + of(0);
    } else {
      to = of(0);
    }
    for (size_t j = 1; j < rows.size(); ++j) to += of(j);
  });
}

/// Returns the weight of each sorted row, (N k).
Tensor row_weights(const Tensor& weights, const Routing& routing) {
  Tensor out = Tensor::empty({std::ssize(routing.rows)});
  for_each_token(routing, routing.rows, 1, [&](Index i, std::span<const std::int32_t> rows) {
    for (size_t j = 0; j < rows.size(); ++j) out.data()[rows[j]] = weights.row(i)[j];
  });
  return out;
}

/// Products over the rows of each expert, computed as one group.
class RowProducts {
 public:
  RowProducts(const Routing& routing, Precision precision)
      : routing_(routing), precision_(precision) {}

  /// y = or += x W^T of the rows of each expert, or x W if `plain`.
  RowProducts& multiply(const Tensor& x, const Matrices& weights, bool plain, Tensor& y,
                        Accumulate accumulate = Accumulate::no) {
    for (Index e = 0; e < routing_.experts; ++e) {
      const Operand w = matrix(weights[e]);
      products_.push_back({rows_of(x, routing_, e), plain ? w : transpose(w),
                           y.row(routing_.starts[e]), y.shape().last(), accumulate});
    }
    return *this;
  }
  /// dW += dy^T x over the rows of each expert; zeros for an expert without rows.
  RowProducts& add_to(const Gradients& gradients, const Tensor& dy, const Tensor& x) {
    for (Index e = 0; e < routing_.experts; ++e) {
      if (!gradients[e].requires_grad()) continue;
      Gradient::Buffer to = gradients[e].buffer();
      products_.push_back({transpose(rows_of(dy, routing_, e)), rows_of(x, routing_, e),
                           to.grad.data(), x.shape().last(), to.accumulate});
    }
    return *this;
  }
  void run() const { gemm_group(products_, precision_); }

 private:
  const Routing& routing_;
  Precision precision_;
  std::vector<GemmProduct> products_;
};

/// Returns w h.
Tensor weighted_hidden(const Tensor& gate, const Tensor& up, const Tensor& weights) {
  Tensor h = Tensor::like(up);
  const Index width = h.shape().last();
  parallel_ranges(h.shape().rows(), row_grain(width), [&](Index begin, Index count) {
    for (Index r = begin; r < begin + count; ++r) {
      for_each_vector(width, [&](Index i, Index n) {
        const Simd g = load(gate.row(r) + i, n);
        store(weights.data()[r] * (g * sigmoid_simd(g) * load(up.row(r) + i, n)), h.row(r) + i, n);
      });
    }
  });
  return h;
}

/// dw, dg and du of all rows.
struct HiddenGradients {
  Tensor dweights, dgate, dup;
};
/// Computes the gradients from t (N k, F), and replaces t by w h.
HiddenGradients hidden_backward(const Tensor& gate, const Tensor& up, const Tensor& weights,
                                Tensor& t) {
  HiddenGradients d{Tensor::like(weights), Tensor::like(gate), Tensor::like(up)};
  const Index width = t.shape().last();
  parallel_ranges(t.shape().rows(), row_grain(width), [&](Index begin, Index count) {
    for (Index r = begin; r < begin + count; ++r) {
      const Simd w = weights.data()[r];
      Simd dw{};
      for_each_vector(width, [&](Index i, Index n) {
        const Simd g = load(gate.row(r) + i, n), u = load(up.row(r) + i, n),
                   ti = load(t.row(r) + i, n), s = sigmoid_simd(g), h = g * s * u, dh = w * ti;
        dw += ti * h;
        store(dh * u * s * fma(g, 1 - s, 1), d.dgate.row(r) + i, n);
        store(dh * g * s, d.dup.row(r) + i, n);
        store(w * h, t.row(r) + i, n);
      });
      d.dweights.data()[r] = sum(dw);
    }
  });
  return d;
}

void add_to_weights(const Gradient& gradient, const Tensor& of_rows, const Routing& routing) {
  if (!gradient.requires_grad()) return;
  Tensor out = gradient.grad();
  for_each_token(routing, routing.rows, 1, [&](Index i, std::span<const std::int32_t> rows) {
    for (size_t j = 0; j < rows.size(); ++j) out.row(i)[j] += of_rows.data()[rows[j]];
  });
}

void require_fit(const Var& x, const Routed& routed, const Experts& weights, const Var& residual) {
  const Routing& routing = *routed.routing;
  const Index width = x.shape().last();
  require_shape(x.shape().rows() == routing.tokens() &&
                    routed.weights.shape() == Shape{routing.tokens(), routing.top_k},
                "experts",
                "x is {}, the routing has {} tokens, its weights are {}; need (N, C), N, (N, k)",
                x.shape().str(), routing.tokens(), routed.weights.shape().str());
  require_shape(!residual.defined() || residual.shape() == x.shape(), "experts",
                "the residual is {}; need {}", residual.shape().str(), x.shape().str());
  const auto count = static_cast<size_t>(routing.experts);
  require_shape(
      weights.gate.size() == count && weights.up.size() == count && weights.down.size() == count,
      "experts", "there are {} gates, {} ups, {} downs; need {} of each", weights.gate.size(),
      weights.up.size(), weights.down.size(), count);
  const Index hidden = weights.gate[0].shape()[0];
  for (size_t e = 0; e < count; ++e) {
    const Shape &gate = weights.gate[e].shape(), &up = weights.up[e].shape(),
                &down = weights.down[e].shape();
    require_shape(gate == Shape{hidden, width} && up == gate && down == Shape{width, hidden},
                  "experts", "expert {} is {}, {}, {}; need (F, C), (F, C), (C, F) with C = {}", e,
                  gate.str(), up.str(), down.str(), width);
  }
}

}  // namespace

Var experts(const Var& x, const Routed& routed, const Experts& weights, const Var& residual) {
  require_fit(x, routed, weights, residual);
  const Precision precision = x.tape().precision();
  const std::shared_ptr<const Routing> routing = routed.routing;
  const Matrices wg = values_of(weights.gate), wu = values_of(weights.up),
                 wd = values_of(weights.down);
  const Index rows = std::ssize(routing->rows), width = x.shape().last();
  Tensor gate = Tensor::empty({rows, weights.gate[0].shape()[0]}), up = Tensor::like(gate);
  {
    const Tensor xs = gathered(x.value(), *routing);  // (N k, C)
    RowProducts(*routing, precision)
        .multiply(xs, wg, false, gate)
        .multiply(xs, wu, false, up)
        .run();
  }
  const Tensor w = row_weights(routed.weights.value(), *routing);
  Tensor y = Tensor::like(x.value());
  {
    const Tensor h = weighted_hidden(gate, up, w);
    Tensor out = Tensor::empty({rows, width});
    RowProducts(*routing, precision).multiply(h, wd, false, out).run();
    sum_rows(out, *routing, residual.defined() ? residual.value().data() : nullptr, y);
  }
  std::vector<Var> inputs{x, routed.weights, residual};
  for (const auto* list : {&weights.gate, &weights.up, &weights.down})
    inputs.insert(inputs.end(), list->begin(), list->end());
  return record("experts", y, inputs,
                [x = x.value(), w, gate, up, wg, wu, wd, routing, precision, dx = x.gradient(),
                 dweights = routed.weights.gradient(), dresidual = residual.gradient(),
                 dwg = gradients_of(weights.gate), dwu = gradients_of(weights.up),
                 dwd = gradients_of(weights.down)](const Tensor& dy) {
                  dresidual.add(dy);
                  const auto products = [&] { return RowProducts(*routing, precision); };
                  Tensor t = Tensor::like(gate);
                  HiddenGradients d;
                  {
                    const Tensor dys = gathered(dy, *routing);
                    products().multiply(dys, wd, true, t).run();
                    d = hidden_backward(gate, up, w, t);
                    products().add_to(dwd, dys, t).run();
                  }
                  t = Tensor();
                  add_to_weights(dweights, d.dweights, *routing);
                  Tensor xs = gathered(x, *routing);
                  products().add_to(dwg, d.dgate, xs).add_to(dwu, d.dup, xs).run();
                  if (!dx.requires_grad()) return;
                  products().multiply(d.dgate, wg, true, xs).run();  // the gradient of xs
                  products().multiply(d.dup, wu, true, xs, Accumulate::yes).run();
                  Gradient::Buffer to = dx.buffer();
                  sum_rows(xs, *routing,
                           to.accumulate == Accumulate::yes ? to.grad.data() : nullptr, to.grad);
                });
}

}  // namespace difftape
