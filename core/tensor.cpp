#include "core/tensor.h"

#include <fmt/format.h>
#include <Eigen/Core>
#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "core/rows.h"

namespace difftape {

Shape::Shape(std::initializer_list<Index> extents)
    : Shape(std::span<const Index>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const Index> extents) : rank_(static_cast<int>(extents.size())) {
  require_shape(rank_ <= kMaxRank, "shape", "{} axes given, at most {} are supported", rank_,
                kMaxRank);
  for (size_t i = 0; i < extents.size(); ++i) {
    require_shape(extents[i] >= 0, "shape", "axis {} has the negative extent {}", i, extents[i]);
    extents_[i] = extents[i];
  }
  Index product = 1;
  bool fits = true;
  for (Index extent : *this) fits &= !__builtin_mul_overflow(product, extent, &product);
  require_shape(fits && product <= std::numeric_limits<Index>::max() / Index{sizeof(real)}, "shape",
                "{} has more elements than memory can have; need fewer", str());
}

Index Shape::size() const {
  Index product = 1;
  for (Index extent : *this) product *= extent;
  return product;
}

Shape Shape::with(int axis, Index extent) const {
  std::array<Index, kMaxRank> changed = extents_;
  changed[position(axis)] = extent;
  return Shape(std::span<const Index>(changed).first(rank_));
}

// Ops format their shapes before they know whether an error needs them. With fmt::join this took a
// third of the time of an op on a few elements.
std::string Shape::str() const {
  std::string text = "(";
  for (Index extent : *this) {
    if (text.size() > 1) text += ", ";
    const fmt::format_int number(extent);
    text.append(number.data(), number.size());
  }
  return text += ')';
}

Tensor Tensor::empty(const Shape& shape) {
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.memory_ = pool::allocate(shape.size() * sizeof(real));
  tensor.data_ = static_cast<real*>(tensor.memory_.get());
  return tensor;
}

Tensor Tensor::full(const Shape& shape, real value) {
  Tensor tensor = empty(shape);
  if (shape.size() == 1) {
    tensor.data_[0] = value;  // also in a dry run, whose cotangents must be correct
  } else {
    tensor.fill(value);
  }
  return tensor;
}

Tensor Tensor::from(const Shape& shape, std::span<const real> values) {
  require_shape(shape.size() == std::ssize(values), "tensor", "{} values do not fill the shape {}",
                values.size(), shape.str());
  Tensor tensor = empty(shape);
  parallel_ranges(tensor.size(), kElementGrain,
                  [&](Index i, Index n) { std::copy_n(values.data() + i, n, tensor.data_ + i); });
  return tensor;
}

real Tensor::item() const {
  require_shape(size() == 1, "item", "the tensor is {}; need exactly one element", shape_.str());
  return data_[0];
}

Tensor Tensor::reshaped(const Shape& shape) const {
  require_shape(shape.size() == size(), "reshape",
                "{} has {} elements, {} has {}; need equal numbers", shape_.str(), size(),
                shape.str(), shape.size());
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::slice(Index begin, Index count) const {
  require_shape(0 <= begin && 0 <= count && begin + count <= size(), "slice",
                "{} has {} elements; need at least {} + {}", shape_.str(), size(), begin, count);
  Tensor view = *this;
  view.shape_ = {count};
  view.data_ += begin;
  return view;
}

Tensor Tensor::clone() const {
  Tensor copy = empty(shape_);
  copy.copy_from(*this);
  return copy;
}

void Tensor::fill(real value) {
  parallel_ranges(size(), kElementGrain,
                  [this, value](Index i, Index n) { std::fill_n(data_ + i, n, value); });
}

void Tensor::add(const Tensor& other) {
  require_shape(size() == other.size(), "add", "this is {}, other is {}; need equal sizes",
                shape_.str(), other.shape().str());
  parallel_ranges(size(), kElementGrain, [this, &other](Index i, Index n) {
    Row(data_ + i, n) += ConstRow(other.data_ + i, n);
  });
}

void Tensor::copy_from(const Tensor& other) {
  require_shape(size() == other.size(), "copy", "this is {}, other is {}; need equal sizes",
                shape_.str(), other.shape().str());
  parallel_ranges(size(), kElementGrain,
                  [this, &other](Index i, Index n) { std::copy_n(other.data_ + i, n, data_ + i); });
}

bool Tensor::all_finite() const {
  return parallel_sum(size(), kElementGrain, [this](Index i, Index n) {
           return ConstRow(data_ + i, n).isFinite().all() ? 0.0 : 1.0;
         }) == 0.0;
}

}  // namespace difftape
