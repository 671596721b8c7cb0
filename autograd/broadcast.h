#pragma once
// NumPy's broadcasting for the element-wise primitives: shapes are aligned at the last axis, and
// an axis of extent 1 is repeated.

#include "core/parallel.h"
#include "core/tensor.h"

namespace difftape {

/// Shape of the result. Throws ShapeError naming the op and both shapes.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b);

/// For each element of an array of shape `out`, where the operand of shape `in` has its partner.
class BroadcastIndex {
 public:
  BroadcastIndex(const Shape& out, const Shape& in);
  Index operator()(Index position) const;

 private:
  bool identity_;
  int rank_;
  std::array<Index, Shape::kMaxRank> extents_{}, strides_{};
};

/// target += dy summed over the axes along which `target` was repeated to the shape of dy.
void add_reduced(const Tensor& dy, Tensor target);

/// y[i] = f(a[i'], b[i'']) over the broadcast shape.
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

}  // namespace difftape
