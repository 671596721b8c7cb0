#pragma once

#include <initializer_list>

#include "autograd/parameter.h"
#include "core/random.h"
#include "tests/support/test.h"

namespace difftape {

inline void set_gradient(Parameter& p, std::initializer_list<real> values) {
  p.grad.copy_from(Tensor::from(p.shape, values));
  p.has_gradient = true;
}

/// Gradients N(0, 1).
inline void draw_gradients(ParameterSet& set) {
  for (Parameter& p : set) {
    fill_normal(p.grad, RandomStream(2, p.name), 1);
    p.has_gradient = true;
  }
}

/// A set of one parameter, every element of which has the value.
struct Single {
  ParameterSet set;
  Parameter& p;
  explicit Single(real value, Role role = Role::projection, const Shape& shape = {1})
      : p(set.declare("w", shape, role, Init::constant(value))) {
    set.initialize(1);
  }
};

}  // namespace difftape
