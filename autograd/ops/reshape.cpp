// The same elements in another shape.
//   forward   y = x             sharing the memory
//   backward  dx += dy
//   saves     nothing
//   fails     the sizes differ
#include "autograd/ops.h"

namespace difftape {

Var reshape(const Var& x, const Shape& shape) {
  return record("reshape", x.value().reshaped(shape), {x},
                [dx = x.gradient()](const Tensor& dy) { dx.add(dy); });
}

}  // namespace difftape
