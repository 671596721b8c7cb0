#pragma once
// A tensor that is kept as an operand of later matrix products.

#include <memory>

#include "core/gemm.h"

namespace difftape {

/// Shares a tensor or, if products round their operands, keeps its elements rounded to bfloat16 in
/// two bytes each. Products have the same bits as with the tensor itself.
class SavedTensor {
 public:
  SavedTensor() = default;
  SavedTensor(const Tensor& x, Precision precision);

  const Shape& shape() const { return shape_; }
  /// Returns all rows of the last axis.
  Operand matrix() const;

 private:
  Shape shape_{0};
  Tensor values_;               // if nothing is rounded
  std::shared_ptr<void> bf16_;  // else
};

}  // namespace difftape
