#include "core/saved_tensor.h"

#include "core/bf16.h"
#include "core/parallel.h"

namespace difftape {

SavedTensor::SavedTensor(const Tensor& x, Precision precision) : shape_(x.shape()) {
  if (precision == Precision::full) {
    values_ = x;
    return;
  }
  bf16_ = pool::allocate(x.size() * sizeof(std::uint16_t));
  auto* bits = static_cast<std::uint16_t*>(bf16_.get());
  parallel_ranges(x.size(), kElementGrain, [&](Index begin, Index n) {
    for (Index i = begin; i < begin + n; ++i) bits[i] = bf16_bits(x.data()[i]);
  });
}

Operand SavedTensor::matrix() const {
  return {values_.data(), shape_.rows(), shape_.last(),
          shape_.last(),  false,         static_cast<const std::uint16_t*>(bf16_.get())};
}

}  // namespace difftape
