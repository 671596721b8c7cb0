#pragma once
// A dense row-major array of `real`, 64-byte aligned, whose memory comes from the pool.

#include <array>
#include <cassert>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "core/real.h"

namespace difftape {

/// Replaces the previous contents of an output (no) or adds to them (yes).
enum class Accumulate { no, yes };

/// Up to 5 axes, outermost first. `shape[-1]` is the last axis. An empty shape is a scalar.
class Shape {
 public:
  static constexpr int kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<Index> extents);
  explicit Shape(std::span<const Index> extents);

  int rank() const { return rank_; }
  /// Returns the extent of an axis; negative positions count from the end. The axis must exist.
  Index operator[](int axis) const { return extents_[position(axis)]; }
  Index size() const;
  /// Returns the product of all axes but the last, the rows of a row-wise op; 1 for a scalar.
  Index rows() const { return rank_ == 0 ? 1 : (last() == 0 ? 0 : size() / last()); }
  Index last() const { return rank_ == 0 ? 1 : (*this)[-1]; }

  /// Returns the same shape with one axis changed.
  Shape with(int axis, Index extent) const;

  /// "(8, 64, 128)"
  std::string str() const;
  friend bool operator==(const Shape&, const Shape&) = default;

  const Index* begin() const { return extents_.data(); }
  const Index* end() const { return extents_.data() + rank_; }

 private:
  int position(int axis) const {
    const int from_start = axis < 0 ? axis + rank_ : axis;
    assert(0 <= from_start && from_start < rank_);
    return from_start;
  }

  std::array<Index, kMaxRank> extents_{};
  int rank_ = 0;
};

/// A handle: copies share the memory; `clone` copies it.
class Tensor {
 public:
  /// No memory, shape (0).
  Tensor() : shape_{0} {}

  static Tensor empty(const Shape& shape);  ///< contents undefined
  static Tensor zeros(const Shape& shape) { return full(shape, 0); }
  static Tensor full(const Shape& shape, real value);
  static Tensor from(const Shape& shape, std::span<const real> values);
  static Tensor scalar(real value) { return full({}, value); }
  static Tensor like(const Tensor& other) { return empty(other.shape()); }

  const Shape& shape() const { return shape_; }
  Index size() const { return shape_.size(); }
  bool allocated() const { return memory_ != nullptr; }
  /// Returns true if no other handle shares the memory.
  bool unique() const { return memory_.use_count() == 1; }

  real* data() { return data_; }
  const real* data() const { return data_; }
  std::span<real> values() { return std::span(data_, size()); }
  std::span<const real> values() const { return std::span(data_, size()); }
  real* row(Index i) { return data_ + i * shape_.last(); }
  const real* row(Index i) const { return data_ + i * shape_.last(); }
  /// Returns the only element. Throws ShapeError if there is not exactly one.
  real item() const;

  /// Returns the same memory in another shape of the same size. Throws ShapeError if sizes differ.
  Tensor reshaped(const Shape& shape) const;
  /// Returns the elements [begin, begin + count) of the same memory in shape (count).
  Tensor slice(Index begin, Index count) const;
  Tensor clone() const;

  void fill(real value);
  /// Adds another tensor of the same size, in parallel.
  void add(const Tensor& other);
  /// Copies the elements of another tensor of the same size.
  void copy_from(const Tensor& other);
  /// Returns true if no element is NaN or infinite.
  bool all_finite() const;

 private:
  Shape shape_;
  std::shared_ptr<void> memory_;
  real* data_ = nullptr;
};

}  // namespace difftape
