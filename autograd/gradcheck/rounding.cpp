#include "autograd/gradcheck/rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/bf16.h"
#include "core/error.h"

namespace difftape {

namespace {

using Edge = BoundedTape::Edge;

/// Errors of functions in units of the last result, relative to it (core/simd_functions.h).
constexpr double kExpUnits = 4, kLogUnits = 2, kRsqrtUnits = 3, kSigmoidUnits = 8, kTanhUnits = 8;

bool is_zero(const Bounded& x) { return x.value == 0 && x.error == 0; }

/// Returns true for 0, 1 and -1, by which products are exact.
bool multiplies_exactly(const Bounded& x) {
  return x.error == 0 && (x.value == 0 || std::abs(x.value) == 1);
}

/// Returns a result that inherits an error from its operands and is rounded itself.
Bounded rounded(double value, double inherited, const Roundoff& roundoff, double units = 1) {
  if (!std::isfinite(value)) return {value, 0};  // a mask
  return {value, inherited + units * roundoff.unit * (std::abs(value) + inherited)};
}

Bounded sum_of(const Bounded& a, const Bounded& b, const Roundoff& roundoff) {
  if (is_zero(a)) return b;
  if (is_zero(b)) return a;
  return rounded(a.value + b.value, a.error + b.error, roundoff);
}

Bounded product(const Bounded& a, const Bounded& b, const Roundoff& roundoff) {
  const double value = a.value * b.value;
  const double inherited =
      std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
  if (multiplies_exactly(a) || multiplies_exactly(b)) return {value, inherited};
  return rounded(value, inherited, roundoff);
}

Bounded reciprocal(const Bounded& x, const Roundoff& roundoff) {
  const double value = 1 / x.value;
  return rounded(value, std::abs(value) * x.error / (std::abs(x.value) - x.error), roundoff);
}

Bounded negative(const Bounded& x) { return {-x.value, x.error}; }

/// Returns a number of a configuration, which the program rounds to real.
Bounded setting(double x) { return {x, std::abs(x - static_cast<double>(static_cast<real>(x)))}; }

/// Returns an operand of a matrix product.
Bounded operand(const Bounded& x, const Roundoff& roundoff) {
  if (roundoff.operand == 0) return x;
  if (x.error == 0 && x.value == round_bf16(static_cast<real>(x.value))) return x;
  return {x.value, x.error + roundoff.operand * (std::abs(x.value) + x.error)};
}

/// The value of a function and its derivative.
struct Evaluated {
  Bounded value, slope;
};

template <class F>
BoundedVar map(const BoundedVar& x, F f) {
  BoundedTape& tape = x.tape();
  std::vector<Index> nodes;
  for (const Index node : x.nodes()) {
    const Evaluated y = f(tape[node], tape.roundoff());
    nodes.push_back(tape.record(y.value, std::array{Edge{node, y.slope}}));
  }
  return {tape, x.shape(), std::move(nodes)};
}

/// Returns the extent of an axis counted from the last one, 1 if there is none.
Index extent_from_end(const Shape& shape, int from_end) {
  return from_end < shape.rank() ? shape[shape.rank() - 1 - from_end] : 1;
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape out = a.rank() >= b.rank() ? a : b;
  for (int axis = 0; axis < out.rank(); ++axis)
    out = out.with(-1 - axis, std::max(extent_from_end(a, axis), extent_from_end(b, axis)));
  return out;
}

Index broadcast_position(Index position, const Shape& out, const Shape& in) {
  Index index = 0, stride = 1;
  for (int axis = 0; axis < out.rank(); ++axis) {
    const Index extent = extent_from_end(in, axis);
    if (extent > 1) index += position % extent_from_end(out, axis) * stride;
    position /= extent_from_end(out, axis);
    stride *= extent;
  }
  return index;
}

/// Combines elements with NumPy's broadcasting. f returns the value and both slopes.
template <class F>
BoundedVar broadcast(const BoundedVar& a, const BoundedVar& b, F f) {
  BoundedTape& tape = a.tape();
  const Shape shape = broadcast_shape(a.shape(), b.shape());
  std::vector<Index> nodes;
  for (Index i = 0; i < shape.size(); ++i) {
    const Index in_a = a.nodes()[broadcast_position(i, shape, a.shape())];
    const Index in_b = b.nodes()[broadcast_position(i, shape, b.shape())];
    const auto [value, slope_a, slope_b] = f(tape[in_a], tape[in_b], tape.roundoff());
    nodes.push_back(tape.record(value, std::array{Edge{in_a, slope_a}, Edge{in_b, slope_b}}));
  }
  return {tape, shape, std::move(nodes)};
}

/// Adds nodes.
Index total(BoundedTape& tape, std::span<const Index> nodes) {
  BoundedSum sum;
  std::vector<Edge> edges;
  for (const Index node : nodes) {
    sum.add(tape[node]);
    edges.push_back({node, {1, 0}});
  }
  return tape.record(sum.total(tape.roundoff()), edges);
}

/// Returns the node x y, or with reciprocal_of the node 1 / x.
Index product_of(BoundedTape& tape, Index x, Index y) {
  return tape.record(product(tape[x], tape[y], tape.roundoff()),
                     std::array{Edge{x, tape[y]}, Edge{y, tape[x]}});
}
Index reciprocal_of(BoundedTape& tape, Index x) {
  const Bounded y = reciprocal(tape[x], tape.roundoff());
  return tape.record(y, std::array{Edge{x, negative(product(y, y, tape.roundoff()))}});
}

/// Appends the nodes of the softmax of a row. A masked element is a constant 0.
void softmax_row(BoundedTape& tape, std::span<const Index> row, std::vector<Index>& out) {
  double top = tape[row[0]].value;
  for (const Index node : row) top = std::max(top, tape[node].value);
  std::vector<Index> exponentials;
  for (const Index node : row) {
    const Bounded& x = tape[node];
    if (!std::isfinite(x.value)) {
      exponentials.push_back(tape.record({0, 0}, {}));
      continue;
    }
    const double error = rounded(x.value - top, x.error, tape.roundoff()).error;
    const double y = std::exp(x.value - top);
    const Bounded value = rounded(y, y * std::expm1(error), tape.roundoff(), kExpUnits);
    exponentials.push_back(tape.record(value, std::array{Edge{node, value}}));
  }
  const Index factor = reciprocal_of(tape, total(tape, exponentials));
  for (const Index node : exponentials) out.push_back(product_of(tape, node, factor));
}

}  // namespace

void BoundedSum::add(const Bounded& term) {
  if (is_zero(term)) return;
  value_ += term.value;
  error_ += term.error;
  magnitude_ += std::abs(term.value);
  ++terms_;
}

Bounded BoundedSum::total(const Roundoff& roundoff) const {
  if (terms_ == 0) return {};
  const double units = static_cast<double>(terms_ - 1) * roundoff.unit;
  return {value_, error_ + units / (1 - units) * (magnitude_ + error_)};
}

Tensor BoundedVar::value() const {
  if (!defined()) return {};
  Tensor values = Tensor::empty(shape_);
  for (size_t i = 0; i < nodes_.size(); ++i)
    values.data()[i] = static_cast<real>((*tape_)[nodes_[i]].value);
  return values;
}

BoundedVar BoundedTape::constant(const Tensor& values) {
  std::vector<Index> nodes;
  for (const real x : values.values()) nodes.push_back(record({static_cast<double>(x), 0}, {}));
  return {*this, values.shape(), std::move(nodes)};
}

Index BoundedTape::record(const Bounded& value, std::span<const Edge> edges,
                          bool is_matrix_product) {
  const Index begin = std::ssize(edges_);
  for (const Edge& edge : edges)
    if (!is_zero(edge.slope)) edges_.push_back(edge);
  nodes_.push_back({value, begin, std::ssize(edges_), is_matrix_product});
  return std::ssize(nodes_) - 1;
}

void BoundedTape::backward(const BoundedVar& from, const Tensor& cotangent) {
  gradients_.assign(nodes_.size(), {});
  for (Index i = 0; i < cotangent.size(); ++i)
    gradients_[from.nodes()[i]].add({static_cast<double>(cotangent.data()[i]), 0});
  for (Index i = std::ssize(nodes_) - 1; i >= 0; --i) {
    const Node& node = nodes_[i];
    Bounded dy = gradients_[i].total(roundoff_);
    if (is_zero(dy)) continue;
    if (node.is_matrix_product) dy = operand(dy, roundoff_);
    for (Index e = node.edges_begin; e < node.edges_end; ++e)
      gradients_[edges_[e].operand].add(product(dy, edges_[e].slope, roundoff_));
  }
}

std::vector<Bounded> BoundedTape::values_of(const BoundedVar& x) const {
  std::vector<Bounded> values;
  for (const Index node : x.nodes()) values.push_back(nodes_[node].value);
  return values;
}

std::vector<Bounded> BoundedTape::gradients_of(const BoundedVar& x) const {
  std::vector<Bounded> gradients;
  for (const Index node : x.nodes()) gradients.push_back(gradients_[node].total(roundoff_));
  return gradients;
}

BoundedVar add(const BoundedVar& a, const BoundedVar& b) {
  return broadcast(a, b, [](const Bounded& ai, const Bounded& bi, const Roundoff& roundoff) {
    return std::array<Bounded, 3>{sum_of(ai, bi, roundoff), {1, 0}, {1, 0}};
  });
}

BoundedVar sub(const BoundedVar& a, const BoundedVar& b) {
  return broadcast(a, b, [](const Bounded& ai, const Bounded& bi, const Roundoff& roundoff) {
    return std::array<Bounded, 3>{sum_of(ai, negative(bi), roundoff), {1, 0}, {-1, 0}};
  });
}

BoundedVar mul(const BoundedVar& a, const BoundedVar& b) {
  return broadcast(a, b, [](const Bounded& ai, const Bounded& bi, const Roundoff& roundoff) {
    return std::array<Bounded, 3>{product(ai, bi, roundoff), bi, ai};
  });
}

BoundedVar affine(const BoundedVar& x, double scale, double shift) {
  return map(x, [s = setting(scale), c = setting(shift)](const Bounded& xi, const Roundoff& r) {
    return Evaluated{sum_of(product(xi, s, r), c, r), s};
  });
}

BoundedVar exp(const BoundedVar& x) {
  return map(x, [](const Bounded& xi, const Roundoff& roundoff) {
    const double y = std::exp(xi.value);
    const Bounded value = rounded(y, y * std::expm1(xi.error), roundoff, kExpUnits);
    return Evaluated{value, value};
  });
}

BoundedVar log(const BoundedVar& x) {
  return map(x, [](const Bounded& xi, const Roundoff& roundoff) {
    const double inherited = -std::log1p(-xi.error / xi.value);
    return Evaluated{rounded(std::log(xi.value), inherited, roundoff, kLogUnits),
                     reciprocal(xi, roundoff)};
  });
}

BoundedVar sigmoid(const BoundedVar& x) {
  return map(x, [](const Bounded& xi, const Roundoff& roundoff) {
    const double y = 1 / (1 + std::exp(-xi.value));
    const double inherited = y * (1 - y) * std::expm1(xi.error);  // slope(x + e) <= slope(x) exp(e)
    const Bounded value = rounded(y, inherited, roundoff, kSigmoidUnits);
    return Evaluated{value, product(value, sum_of({1, 0}, negative(value), roundoff), roundoff)};
  });
}

BoundedVar rsqrt(const BoundedVar& x) {
  return map(x, [](const Bounded& xi, const Roundoff& roundoff) {
    const double y = 1 / std::sqrt(xi.value);
    const double inherited = 1 / std::sqrt(xi.value - xi.error) - y;
    const Bounded value = rounded(y, inherited, roundoff, kRsqrtUnits);
    const Bounded cube = product(product(value, value, roundoff), value, roundoff);
    return Evaluated{value, {-0.5 * cube.value, 0.5 * cube.error}};
  });
}

BoundedVar softcap(const BoundedVar& x, double cap) {
  return map(x, [c = setting(cap)](const Bounded& xi, const Roundoff& roundoff) {
    const Bounded z = product(xi, reciprocal(c, roundoff), roundoff);
    const double t = std::tanh(z.value);
    const double inherited = (1 - t * t) * std::expm1(2 * z.error) / 2;  // as for sigmoid(2 z)
    const Bounded value = rounded(t, inherited, roundoff, kTanhUnits);
    const Bounded square = product(value, value, roundoff);
    return Evaluated{product(value, c, roundoff), sum_of({1, 0}, negative(square), roundoff)};
  });
}

BoundedVar softmax(const BoundedVar& x) {
  std::vector<Index> nodes;
  const size_t width = x.shape().last();
  for (size_t begin = 0; begin < x.nodes().size(); begin += width)
    softmax_row(x.tape(), std::span(x.nodes()).subspan(begin, width), nodes);
  return {x.tape(), x.shape(), std::move(nodes)};
}

BoundedVar sum(const BoundedVar& x) { return {x.tape(), Shape{}, {total(x.tape(), x.nodes())}}; }

BoundedVar sum_last(const BoundedVar& x) {
  std::vector<Index> nodes;
  const size_t width = x.shape().last();
  for (size_t begin = 0; begin < x.nodes().size(); begin += width)
    nodes.push_back(total(x.tape(), std::span(x.nodes()).subspan(begin, width)));
  return {x.tape(), x.shape().with(-1, 1), std::move(nodes)};
}

BoundedVar matmul(const BoundedVar& a, const BoundedVar& b) {
  BoundedTape& tape = a.tape();
  const Roundoff& roundoff = tape.roundoff();
  const Index rows = a.shape()[-2], inner = a.shape()[-1], cols = b.shape()[-1];
  std::vector<Index> nodes;
  std::vector<Edge> edges;
  for (Index i = 0; i < a.shape().rows(); ++i) {
    for (Index j = 0; j < cols; ++j) {
      BoundedSum sum;
      edges.clear();
      for (Index k = 0; k < inner; ++k) {
        const Index in_a = a.nodes()[i * inner + k];
        const Index in_b = b.nodes()[(i / rows * inner + k) * cols + j];
        const Bounded left = operand(tape[in_a], roundoff), right = operand(tape[in_b], roundoff);
        sum.add(product(left, right, roundoff));
        edges.push_back({in_a, right});
        edges.push_back({in_b, left});
      }
      nodes.push_back(tape.record(sum.total(roundoff), edges, true));
    }
  }
  return {tape, a.shape().with(-1, cols), std::move(nodes)};
}

BoundedVar transpose(const BoundedVar& x, int axis_a, int axis_b) {
  const Shape& in = x.shape();
  const Shape shape = in.with(axis_a, in[axis_b]).with(axis_b, in[axis_a]);
  std::array<Index, Shape::kMaxRank> strides{};
  Index stride = 1;
  for (int axis = in.rank() - 1; axis >= 0; stride *= in[axis--]) strides[axis] = stride;
  const auto place = [&in](int axis) { return axis < 0 ? axis + in.rank() : axis; };
  std::swap(strides[place(axis_a)], strides[place(axis_b)]);
  std::vector<Index> nodes;
  for (Index i = 0; i < shape.size(); ++i) {
    Index from = 0, rest = i;
    for (int axis = shape.rank() - 1; axis >= 0; rest /= shape[axis--])
      from += rest % shape[axis] * strides[axis];
    nodes.push_back(x.nodes()[from]);
  }
  return {x.tape(), shape, std::move(nodes)};
}

BoundedVar slice(const BoundedVar& x, int axis, Index begin, Index count) {
  const Shape& in = x.shape();
  Index inner = 1;
  for (int later = axis + 1; later < in.rank(); ++later) inner *= in[later];
  std::vector<Index> nodes;
  for (Index i = 0; i < in.size(); ++i) {
    const Index at = i / inner % in[axis];
    if (at >= begin && at < begin + count) nodes.push_back(x.nodes()[i]);
  }
  return {x.tape(), in.with(axis, count), std::move(nodes)};
}

BoundedVar reshape(const BoundedVar& x, const Shape& shape) { return {x.tape(), shape, x.nodes()}; }

}  // namespace difftape
