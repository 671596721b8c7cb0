#pragma once
// The extents of a row-major tensor.

#include <array>
#include <initializer_list>
#include <span>
#include <string>

#include "core/real.h"

namespace difftape {

/// Up to 5 axes, outermost first. `shape[-1]` is the last axis. An empty shape is a scalar.
class Shape {
 public:
  static constexpr int kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<Index> extents);
  explicit Shape(std::span<const Index> extents);

  int rank() const { return rank_; }
  /// Extent of one axis; negative positions count from the end.
  Index operator[](int axis) const { return extents_[static_cast<size_t>(position(axis))]; }
  /// Number of elements; 1 for a scalar.
  Index size() const;
  /// Product of all axes but the last: how many rows a row-wise op sees. Rank 0 is one row.
  Index rows() const { return rank_ == 0 ? 1 : (last() == 0 ? 0 : size() / last()); }
  Index last() const { return rank_ == 0 ? 1 : (*this)[-1]; }

  /// The same shape with one axis changed.
  Shape with(int axis, Index extent) const;

  /// "(8, 64, 128)"
  std::string str() const;
  friend bool operator==(const Shape&, const Shape&) = default;

  const Index* begin() const { return extents_.data(); }
  const Index* end() const { return extents_.data() + rank_; }

 private:
  int position(int axis) const { return axis < 0 ? axis + rank_ : axis; }

  std::array<Index, kMaxRank> extents_{};
  int rank_ = 0;
};

}  // namespace difftape
