#include <Eigen/Core>

#include "core/tile.h"

namespace difftape::tile {

namespace {

using RowMajor = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ColMajor = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
using Stride = Eigen::OuterStride<>;

template <class MatrixA>
void multiply_as(const Product& p, const real* a, const real* b, real* c) {
  const Eigen::Map<const MatrixA, 0, Stride> left(a, p.m, p.k, Stride(p.a_stride));
  const Eigen::Map<const RowMajor, 0, Stride> right(b, p.k, p.n, Stride(p.b_stride));
  Eigen::Map<RowMajor, 0, Stride> out(c, p.m, p.n, Stride(p.c_stride));
  if (p.add) {
    out.noalias() += left * right;
  } else {
    out.noalias() = left * right;
  }
}

void multiply(const Kernel& kernel, const void* a, const void* b, real* c) {
  const Product& p = kernel.shape;
  const auto *left = static_cast<const real*>(a), *right = static_cast<const real*>(b);
  p.a_transposed ? multiply_as<ColMajor>(p, left, right, c)
                 : multiply_as<RowMajor>(p, left, right, c);
}

}  // namespace

const Backend* eigen_backend() {
  static const Backend backend{"Eigen", [](const Product& p) { return Kernel{p, multiply}; }};
  return &backend;
}

}  // namespace difftape::tile
