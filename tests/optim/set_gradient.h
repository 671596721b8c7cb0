#pragma once

#include <initializer_list>

#include "autograd/parameter.h"

namespace difftape {

inline void set_gradient(Parameter& p, std::initializer_list<real> values) {
  p.grad.copy_from(Tensor::from(p.shape, values));
  p.has_gradient = true;
}

}  // namespace difftape
