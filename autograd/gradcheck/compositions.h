#pragma once
// The coarse ops written with primitives, formula by formula: slow, obvious, and independent of
// the kernels they are compared with.

#include "autograd/ops.h"

namespace difftape::composition {

Var embedding(std::span<const std::int32_t> tokens, const Shape& shape, const Var& table);
Var linear(const Var& x, const Var& weight);
Var rms_norm(const Var& x, const Var& weight, double eps);
Var rope(const Var& x, double theta);
Var swiglu_linear(const Var& gate, const Var& up, const Var& weight);
Var attention(const Var& q, const Var& k, const Var& v, const Var& lambda, const Var& sinks,
              const HeadMapping& mapping, const Visibility& visible = {}, double logit_softcap = 0);
Var cross_entropy(const Var& hidden, const Var& weight, std::span<const std::int32_t> targets,
                  const LossOptions& options = {});

}  // namespace difftape::composition
