#pragma once
// Random tensors, and comparison bit for bit.

#include <cstring>
#include <string_view>

#include "core/random.h"

namespace difftape::test {

/// Returns N(0, std^2); equal names give equal elements.
inline Tensor random(const Shape& shape, std::string_view name, double std = 1) {
  Tensor x = Tensor::empty(shape);
  fill_normal(x, RandomStream(1, name), std);
  return x;
}

inline bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size() * sizeof(real)) == 0);
}

}  // namespace difftape::test
