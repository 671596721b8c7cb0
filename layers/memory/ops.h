#pragma once
// What each op holds: its result, what its pullback keeps, what it needs while it runs. One
// function an op, in the order of autograd/ops/<op>.cpp; a change of what an op saves changes the
// function of that name and nothing else. Sizes are numbers; `rows` are those of a matrix whose
// last axis is given. Gradients of parameters exist before the step and are not counted here.

#include "core/attention/heads.h"
#include "layers/memory/tape.h"

namespace difftape::memory {

Value add(const Value& a, const Value& b);
Value affine(const Value& x);
Value sigmoid(const Value& x);
/// b is repeated to the size of a.
Value mul(const Value& a, const Value& b);
Value reshape(const Value& x);
Value embedding(Tape& tape, Index rows, Index width);
/// `residual` is empty if there is none.
Value linear(const Value& x, Index in, Index out, const Value& residual = {});
Value rms_norm(const Value& x, Index width);
Value rope(Value x);
Value swiglu_linear(const Value& gate, const Value& up, Index in, Index out, const Value& residual);

/// Sizes of one attention call.
struct AttentionSizes {
  const HeadMapping& mapping;
  Index batch, seq, head_dim, value_dim;
  Index window;          ///< 0: all
  bool lambda_gradient;  ///< lambda is learned
  bool sinks_gradient;   ///< sinks are
};
/// `lambda` is empty if it is not one number a token and head.
Value attention(const Value& q, const Value& k, const Value& v, const Value& lambda,
                const AttentionSizes& sizes);
/// The mean loss of rows (rows, width) over `vocab` classes. `scaled`: its gradient is not 1.
Value cross_entropy(const Value& hidden, Index width, Index vocab, bool scaled);
Value recomputed(const Value& x, const std::function<Value(const Value&)>& body);

}  // namespace difftape::memory
