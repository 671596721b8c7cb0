#include "autograd/broadcast.h"

#include "core/error.h"

namespace difftape {

namespace {
/// Extent of an axis counted from the last one, 1 where the shape has no such axis.
Index extent_from_end(const Shape& shape, int from_end) {
  return from_end < shape.rank() ? shape[shape.rank() - 1 - from_end] : 1;
}
}  // namespace

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

BroadcastIndex::BroadcastIndex(const Shape& out, const Shape& in)
    : identity_(out.size() == in.size()), rank_(out.rank()) {
  Index stride = 1;
  for (int axis = 0; axis < rank_; ++axis) {  // from the last axis to the first
    const Index extent = extent_from_end(in, axis);
    const auto at = static_cast<size_t>(axis);
    extents_[at] = extent_from_end(out, axis);
    strides_[at] = extent == 1 ? 0 : stride;
    stride *= extent;
  }
}

Index BroadcastIndex::operator()(Index position) const {
  if (identity_) return position;
  Index index = 0;
  for (size_t axis = 0; axis < static_cast<size_t>(rank_); ++axis) {
    index += position % extents_[axis] * strides_[axis];
    position /= extents_[axis];
  }
  return index;
}

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

}  // namespace difftape
