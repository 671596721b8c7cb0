#pragma once
// Running error analysis (Wilkinson 1963; Higham 2002, section 3.3): evaluates a composition of
// primitives and its gradients in double, and bounds the rounding errors of another arithmetic.
// DERIVATIONS.md, section 15, derives the rules.

#include <span>
#include <vector>

#include "core/tensor.h"

namespace difftape {

/// The unit roundoffs of an arithmetic: half of the distance from 1 to the next number.
struct Roundoff {
  double unit;         ///< of results: 2^-24 in f32, 2^-53 in f64
  double operand = 0;  ///< of operands of matrix products: 2^-8 in bfloat16; 0: not rounded
};

/// A value, and a bound of the error with which the arithmetic computes it.
struct Bounded {
  double value = 0, error = 0;
};

/// A sum of bounded terms in any order.
class BoundedSum {
 public:
  void add(const Bounded& term);
  Bounded total(const Roundoff& roundoff) const;

 private:
  double value_ = 0, error_ = 0, magnitude_ = 0;
  Index terms_ = 0;  // that are not exactly 0
};

class BoundedTape;

/// An array on a BoundedTape, with the interface of Var.
class BoundedVar {
 public:
  BoundedVar() = default;
  BoundedVar(BoundedTape& tape, const Shape& shape, std::vector<Index> nodes)
      : tape_(&tape), shape_(shape), nodes_(std::move(nodes)) {}
  bool defined() const { return tape_ != nullptr; }
  const Shape& shape() const { return shape_; }
  BoundedTape& tape() const { return *tape_; }
  /// Returns the elements as nodes of the tape, in order.
  const std::vector<Index>& nodes() const { return nodes_; }
  /// Returns the values without their errors; no memory if undefined.
  Tensor value() const;

 private:
  BoundedTape* tape_ = nullptr;
  Shape shape_{};
  std::vector<Index> nodes_;
};

/// A tape of scalars. Backward bounds the errors of gradients by the same rules.
class BoundedTape {
 public:
  explicit BoundedTape(const Roundoff& roundoff) : roundoff_(roundoff) {}

  /// Returns exact values.
  BoundedVar constant(const Tensor& values);
  BoundedVar input(const Tensor& values) { return constant(values); }
  /// A derivative of a node by one of its operands.
  struct Edge {
    Index operand;
    Bounded slope;
  };
  /// Adds a scalar. The gradient of a matrix product is rounded before it is multiplied.
  Index record(const Bounded& value, std::span<const Edge> edges, bool is_matrix_product = false);

  const Bounded& operator[](Index node) const { return nodes_[node].value; }
  const Roundoff& roundoff() const { return roundoff_; }

  /// Computes the gradients of <cotangent, from>; the cotangent is exact.
  void backward(const BoundedVar& from, const Tensor& cotangent);
  std::vector<Bounded> values_of(const BoundedVar& x) const;
  /// Returns the gradients of an input after backward.
  std::vector<Bounded> gradients_of(const BoundedVar& x) const;

 private:
  struct Node {
    Bounded value;
    Index edges_begin, edges_end;
    bool is_matrix_product;
  };
  Roundoff roundoff_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<BoundedSum> gradients_;
};

// The primitives of autograd/ops.h.
BoundedVar add(const BoundedVar& a, const BoundedVar& b);
BoundedVar sub(const BoundedVar& a, const BoundedVar& b);
BoundedVar mul(const BoundedVar& a, const BoundedVar& b);
BoundedVar affine(const BoundedVar& x, double scale, double shift);
BoundedVar exp(const BoundedVar& x);
BoundedVar log(const BoundedVar& x);
BoundedVar sigmoid(const BoundedVar& x);
BoundedVar rsqrt(const BoundedVar& x);
BoundedVar softcap(const BoundedVar& x, double cap);
BoundedVar softmax(const BoundedVar& x);
BoundedVar sum(const BoundedVar& x);
BoundedVar sum_last(const BoundedVar& x);
BoundedVar matmul(const BoundedVar& a, const BoundedVar& b);
BoundedVar transpose(const BoundedVar& x, int axis_a, int axis_b);
BoundedVar slice(const BoundedVar& x, int axis, Index begin, Index count);
BoundedVar reshape(const BoundedVar& x, const Shape& shape);

}  // namespace difftape
