// Appendix G of the Differential Transformer (Ye et al. 2024): equations 7 and 9 written out as
// dense matrices, with the all-ones J, against the tape. The maps are causal; the equations hold
// for any softmax by rows.
#include <Eigen/Core>
#include <initializer_list>

#include "autograd/gradcheck/gradcheck.h"
#include "autograd/ops.h"
#include "tests/support/tensors.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Sizes {
  Index tokens, d_model, d;
};
void PrintTo(const Sizes& s, std::ostream* out) {
  *out << "N=" << s.tokens << " d_model=" << s.d_model << " d=" << s.d;
}

Tensor drawn(const Shape& shape, const char* name, double std = 0.7) {
  return test::random(shape, name, std);
}

Matrix dense(const Tensor& x, Index columns) {
  return Eigen::Map<const Matrix>(x.data(), x.size() / columns, columns);
}

void expect_equal(const Tensor& tape, const Matrix& equation, const char* what) {
  const Eigen::Map<const Matrix> ours(tape.data(), equation.rows(), equation.cols());
  const real top = equation.cwiseAbs().maxCoeff();
  EXPECT_GT(top, real(1e-3)) << what;
  EXPECT_LE((ours - equation).cwiseAbs().maxCoeff(), real(1e-12) * top) << what;
}

/// The product of matrices, from the left. One expression: each costs the compiler seconds.
Matrix times(std::initializer_list<Matrix> factors) {
  Matrix product = *factors.begin();
  for (auto next = factors.begin() + 1; next != factors.end(); ++next) product = product * *next;
  return product;
}

Matrix causal_softmax(const Matrix& scores) {
  Matrix a = Matrix::Zero(scores.rows(), scores.cols());
  for (Index t = 0; t < scores.rows(); ++t) {
    const auto row = scores.row(t).head(t + 1).array();
    const auto e = (row - row.maxCoeff()).exp().eval();
    a.row(t).head(t + 1) = e / e.sum();
  }
  return a;
}

/// A o (G - (A o G) J)
Matrix through_softmax(const Matrix& a, const Matrix& g) {
  const Matrix j = Matrix::Ones(a.cols(), a.cols());
  return a.cwiseProduct(g - times({a.cwiseProduct(g), j}));
}

/// X and the weights of one head: W^Q = [W^Q1 W^Q2], W^K likewise, W^V of width 2d, W^O, lambda.
struct Head {
  Sizes s;
  Tensor x, wq, wk, wv, wo, lambda, dout;

  explicit Head(const Sizes& sizes)
      : s(sizes),
        x(drawn({s.tokens, s.d_model}, "x", 1)),
        wq(drawn({s.d_model, 2 * s.d}, "wq")),
        wk(drawn({s.d_model, 2 * s.d}, "wk")),
        wv(drawn({s.d_model, 2 * s.d}, "wv")),
        wo(drawn({2 * s.d, s.d_model}, "wo")),
        lambda(Tensor::scalar(real(0.37))),
        dout(drawn({s.tokens, s.d_model}, "dout", 1)) {}

  Matrix dense_x() const { return dense(x, s.d_model); }
  Matrix product(const Tensor& w) const { return times({dense_x(), dense(w, 2 * s.d)}); }
};

/// The weights on a tape, and the output's way back to them.
struct OnTape {
  Tape tape;
  Var wq, wk, wv, wo, lambda;

  explicit OnTape(const Head& h)
      : wq(tape.input(h.wq)),
        wk(tape.input(h.wk)),
        wv(tape.input(h.wv)),
        wo(tape.input(h.wo)),
        lambda(tape.input(h.lambda)) {}

  /// (1, N, 1, 2d) of the head: queries and keys cut into `heads` heads.
  Var context(const Head& h, const HeadMapping& mapping, Index heads) {
    const Var x = tape.constant(h.x);
    const auto split = [&](const Var& w, Index count) {
      return reshape(matmul(x, w), {1, h.s.tokens, count, 2 * h.s.d / count});
    };
    return attention({.mapping = mapping,
                      .q = split(wq, heads),
                      .k = split(wk, heads),
                      .v = split(wv, 1),
                      .lambda = mapping.maps == 2 ? lambda : Var(),
                      .scale = attention_scale(2 * h.s.d / heads)});
  }
  void backward(const Head& h, const Var& context) {
    const Var out = matmul(reshape(context, {h.s.tokens, 2 * h.s.d}), wo);
    tape.backward(out, h.dout);
  }
};

/// Equation 7 from G = (gradient of the context) V^T, without W^O and W^V.
void expect_equation_7(const Head& h, const OnTape& on, const Matrix& a1, const Matrix& a2,
                       const Matrix& g) {
  const Index d = h.s.d;
  const real scale = 1 / std::sqrt(static_cast<real>(d)), lambda = h.lambda.item();
  const Matrix q = h.product(h.wq), k = h.product(h.wk), xt = h.dense_x().transpose();
  const Matrix s1 = through_softmax(a1, g), s2 = through_softmax(a2, g);
  Matrix dwq(h.s.d_model, 2 * d), dwk(h.s.d_model, 2 * d);
  dwq << scale * times({xt, s1, k.leftCols(d)}), -lambda * scale * times({xt, s2, k.rightCols(d)});
  dwk << scale * times({xt, s1.transpose(), q.leftCols(d)}),
      -lambda * scale * times({xt, s2.transpose(), q.rightCols(d)});
  expect_equal(on.tape.gradient_of(on.wq), dwq, "W^Q");
  expect_equal(on.tape.gradient_of(on.wk), dwk, "W^K");
}

struct AppendixG : testing::TestWithParam<Sizes> {
  AppendixG() : h(GetParam()), q(h.product(h.wq)), k(h.product(h.wk)), v(h.product(h.wv)) {
    const Index d = h.s.d;
    const real scale = 1 / std::sqrt(static_cast<real>(d));
    a1 = causal_softmax(scale * times({q.leftCols(d), k.leftCols(d).transpose()}));
    a2 = causal_softmax(scale * times({q.rightCols(d), k.rightCols(d).transpose()}));
  }
  Matrix dout() const { return dense(h.dout, h.s.d_model); }
  Matrix wo() const { return dense(h.wo, h.s.d_model); }

  Head h;
  Matrix q, k, v, a1, a2;
};

TEST_P(AppendixG, equation_7_with_the_norm_as_identity) {
  OnTape on(h);
  on.backward(h, on.context(h, HeadMapping::paired(2, 2), 2));
  const Matrix w = a1 - h.lambda.item() * a2;
  const Matrix dcontext = times({dout(), wo().transpose()}), g = times({dcontext, v.transpose()});
  expect_equal(on.tape.gradient_of(on.wo), times({times({w, v}).transpose(), dout()}), "W^O");
  expect_equal(on.tape.gradient_of(on.wv),
               times({h.dense_x().transpose(), w.transpose(), dcontext}), "W^V");
  expect_equation_7(h, on, a1, a2, g);
  Matrix dlambda(1, 1);
  dlambda << -a2.cwiseProduct(g).sum();
  expect_equal(on.tape.gradient_of(on.lambda), dlambda, "lambda");
}

TEST_P(AppendixG, equation_7_with_the_norm_and_its_factor_in_place) {
  constexpr double kEps = 1e-5, kFactor = 1 - 0.2;
  const Index width = 2 * h.s.d;
  const Tensor norm_weight = drawn({width}, "gain");
  OnTape on(h);
  const Var context = on.context(h, HeadMapping::paired(2, 2), 2);
  on.backward(h, affine(rms_norm(context, on.tape.constant(norm_weight), kEps), kFactor, 0));

  const Matrix w = a1 - h.lambda.item() * a2, c = times({w, v});
  const Matrix weights = dense(norm_weight, width).replicate(h.s.tokens, 1);
  const Eigen::Array<real, Eigen::Dynamic, 1> root =
      (c.rowwise().squaredNorm().array() / static_cast<real>(width) + real(kEps)).sqrt();
  const Matrix normed = c.array().colwise() / root;
  const Matrix dnormed = real(kFactor) * weights.cwiseProduct(times({dout(), wo().transpose()}));
  // d(c / rms): (g - n (n . g) / width) / rms, n being c / rms.
  const Matrix along =
      normed.array().colwise() *
      (normed.cwiseProduct(dnormed).rowwise().sum().array() / static_cast<real>(width));
  const Matrix dcontext = (dnormed - along).array().colwise() / root;
  expect_equal(on.tape.gradient_of(on.wo),
               times({(real(kFactor) * weights.cwiseProduct(normed)).transpose(), dout()}), "W^O");
  if (h.s.tokens > 1) expect_equation_7(h, on, a1, a2, times({dcontext, v.transpose()}));
  expect_equal(on.tape.gradient_of(on.wv),
               times({h.dense_x().transpose(), w.transpose(), dcontext}), "W^V");
}

TEST_P(AppendixG, equation_9_of_softmax_attention_split_in_halves) {
  OnTape on(h);
  on.backward(h, on.context(h, HeadMapping::standard(1, 1), 1));
  const Index d = h.s.d;
  const real scale = 1 / std::sqrt(static_cast<real>(2 * d));
  const Matrix xt = h.dense_x().transpose();
  const Matrix a = causal_softmax(scale * (times({q.leftCols(d), k.leftCols(d).transpose()}) +
                                           times({q.rightCols(d), k.rightCols(d).transpose()})));
  const Matrix dcontext = times({dout(), wo().transpose()});
  const Matrix s = through_softmax(a, times({dcontext, v.transpose()}));
  Matrix dwq(h.s.d_model, 2 * d), dwk(h.s.d_model, 2 * d);
  dwq << scale * times({xt, s, k.leftCols(d)}), scale * times({xt, s, k.rightCols(d)});
  dwk << scale * times({xt, s.transpose(), q.leftCols(d)}),
      scale * times({xt, s.transpose(), q.rightCols(d)});
  expect_equal(on.tape.gradient_of(on.wo), times({times({a, v}).transpose(), dout()}), "W^O");
  expect_equal(on.tape.gradient_of(on.wv), times({xt, a.transpose(), dcontext}), "W^V");
  expect_equal(on.tape.gradient_of(on.wq), dwq, "W^Q");
  expect_equal(on.tape.gradient_of(on.wk), dwk, "W^K");
}

INSTANTIATE_TEST_SUITE_P(Shapes, AppendixG,
                         testing::Values(Sizes{2, 3, 1}, Sizes{5, 4, 2}, Sizes{17, 6, 3},
                                         Sizes{70, 8, 4}, Sizes{130, 5, 7}));

}  // namespace
}  // namespace difftape
