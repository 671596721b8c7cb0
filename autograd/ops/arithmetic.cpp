// Element-wise arithmetic with NumPy's broadcasting, and sums over all elements or the last axis.
// Shapes are aligned at the last axis and axes of extent 1 are repeated; gradients are summed over
// repeated axes.
//              forward      backward                        saves
//   add        y = a + b    da += dy       db += dy         nothing
//   sub        y = a - b    da += dy       db -= dy         nothing
//   mul        y = a * b    da += dy * b   db += dy * a     a, b
//   sum        y = sum(x)   dx += dy, repeated              nothing
//   sum_last   y = sum(x)   dx += dy, repeated in each row  nothing
//   fails      shapes that do not broadcast; sums never
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

namespace {

/// Returns the extent of an axis counted from the last one, 1 if there is none.
Index extent_from_end(const Shape& shape, int from_end) {
  return from_end < shape.rank() ? shape[shape.rank() - 1 - from_end] : 1;
}

/// Returns the shape of the result. Throws ShapeError naming the op and both shapes.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
  Shape out = a.rank() >= b.rank() ? a : b;
  for (int axis = 0; axis < out.rank(); ++axis) {
    const Index in_a = extent_from_end(a, axis), in_b = extent_from_end(b, axis);
    require_shape(in_a == in_b || in_a == 1 || in_b == 1, op,
                  "shapes do not broadcast: a is {}, b is {}; need equal extents or 1 at axis -{}",
                  a.str(), b.str(), axis + 1);
    out = out.with(-1 - axis, in_a == 1 ? in_b : in_a);
  }
  return out;
}

/// Maps an index of shape `out` to the index in an operand of shape `in`.
class BroadcastIndex {
 public:
  BroadcastIndex(const Shape& out, const Shape& in)
      : identity_(out.size() == in.size()), rank_(out.rank()) {
    Index stride = 1;
    for (int axis = 0; axis < rank_; ++axis) {  // from the last axis to the first
      const Index extent = extent_from_end(in, axis);
      extents_[axis] = extent_from_end(out, axis);
      strides_[axis] = extent == 1 ? 0 : stride;
      stride *= extent;
    }
  }
  Index operator()(Index position) const {
    if (identity_) return position;
    Index index = 0;
    for (int axis = 0; axis < rank_; ++axis) {
      index += position % extents_[axis] * strides_[axis];
      position /= extents_[axis];
    }
    return index;
  }

 private:
  bool identity_;
  int rank_;
  std::array<Index, Shape::kMaxRank> extents_{}, strides_{};
};

/// Computes f(a, b) element by element over the broadcast shape.
template <class F>
Tensor broadcast_map(const char* op, const Tensor& a, const Tensor& b, F&& f) {
  Tensor y = Tensor::empty(broadcast_shape(op, a.shape(), b.shape()));
  const BroadcastIndex at_a(y.shape(), a.shape()), at_b(y.shape(), b.shape());
  parallel_ranges(y.size(), kElementGrain, [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      y.data()[i] = f(a.data()[at_a(i)], b.data()[at_b(i)]);
    }
  });
  return y;
}

/// Adds dy, summed over repeated axes, to `target`.
void add_reduced(const Tensor& dy, Tensor target) {
  if (dy.size() == target.size()) {
    target.add(dy);
    return;
  }
  const BroadcastIndex at(dy.shape(), target.shape());
  serial([&] {
    for (Index i = 0; i < dy.size(); ++i) target.data()[at(i)] += dy.data()[i];
  });
}

void add_gradient(const Gradient& to, const Shape& shape, const Tensor& dy) {
  if (!to.requires_grad()) return;
  if (shape.size() == dy.size()) {
    to.add(dy);
  } else {
    add_reduced(dy, to.grad());
  }
}

/// Returns the pullback of both sums.
Tape::Pullback repeat(const Gradient& dx) {
  return [dx](const Tensor& dy) {
    Tensor out = dx.grad();
    const Index width = out.size() / std::max<Index>(1, dy.size());
    parallel_ranges(dy.size(), row_grain(width), [&](Index begin, Index count) {
      for (Index i = begin; i < begin + count; ++i) {
        Row(out.data() + i * width, width) += dy.data()[i];
      }
    });
  };
}

}  // namespace

Var add(const Var& a, const Var& b) {
  Tensor y;
  if (a.shape() == b.shape()) {
    y = Tensor::like(a.value());
    for_each_row(a.value(), b.value(), y, [](ConstRow ai, ConstRow bi, Row yi) { yi = ai + bi; });
  } else {
    y = broadcast_map("add", a.value(), b.value(), [](real ai, real bi) { return ai + bi; });
  }
  return record(
      "add", y, {a, b},
      [da = a.gradient(), db = b.gradient(), sa = a.shape(), sb = b.shape()](const Tensor& dy) {
        add_gradient(da, sa, dy);
        add_gradient(db, sb, dy);
      });
}

Var sub(const Var& a, const Var& b) {
  Tensor y = broadcast_map("sub", a.value(), b.value(), [](real ai, real bi) { return ai - bi; });
  return record("sub", y, {a, b}, [da = a.gradient(), db = b.gradient()](const Tensor& dy) {
    if (da.requires_grad()) add_reduced(dy, da.grad());
    if (!db.requires_grad()) return;
    Tensor negative = Tensor::like(dy);
    for_each_row(dy, negative, [](ConstRow in, Row out) { out = -in; });
    add_reduced(negative, db.grad());
  });
}

Var mul(const Var& a, const Var& b) {
  const auto product = [](real ai, real bi) { return ai * bi; };
  Tensor y = broadcast_map("mul", a.value(), b.value(), product);
  return record("mul", y, {a, b},
                [a = a.value(), b = b.value(), da = a.gradient(), db = b.gradient(),
                 product](const Tensor& dy) {
                  if (da.requires_grad())
                    add_reduced(broadcast_map("mul", dy, b, product), da.grad());
                  if (db.requires_grad())
                    add_reduced(broadcast_map("mul", dy, a, product), db.grad());
                });
}

Var sum(const Var& x) {
  const double total = parallel_sum(x.value().size(), kElementGrain, [&](Index i, Index n) {
    return sum_of(ConstRow(x.value().data() + i, n).cast<double>());
  });
  return record("sum", Tensor::scalar(static_cast<real>(total)), {x}, repeat(x.gradient()));
}

Var sum_last(const Var& x) {
  Tensor y = Tensor::empty(x.shape().rank() == 0 ? Shape{} : x.shape().with(-1, 1));
  for_each_row(x.value(), y, [](ConstRow xi, Row yi) { yi[0] = sum_of(xi); });
  return record("sum_last", y, {x}, repeat(x.gradient()));
}

}  // namespace difftape
