#include "layers/memory/ops.h"

#include <algorithm>

#include "core/gemm.h"
#include "core/parallel.h"

namespace difftape::memory {

namespace {

Held result(Tape& tape, Index size) { return tape.meter().hold(Use::activation, size); }
Held scratch(Tape& tape, Index size) { return tape.meter().hold(Use::scratch, size); }

/// What a product with a (k x n) right operand needs (core/gemm).
void gemm(Tape& tape, Index k, Index n) { scratch(tape, packed_size(k, n)); }

/// An op of the size of x whose pullback keeps the given memory and writes to dx directly.
Value element_wise(const Value& x, const Held& y, const Held& kept) {
  return x.tape->record(y, x.size, [kept, dx = x.gradient](const Held&) { dx.slot(); });
}

}  // namespace

Value add(const Value& a, const Value& b) {
  return a.tape->record(result(*a.tape, a.size), a.size,
                        [da = a.gradient, db = b.gradient](const Held& dy) {
                          da.add(dy);
                          db.add(dy);
                        });
}

Value affine(const Value& x) { return element_wise(x, result(*x.tape, x.size), nullptr); }

Value sigmoid(const Value& x) {
  const Held y = result(*x.tape, x.size);
  return element_wise(x, y, y);
}

Value mul(const Value& a, const Value& b) {
  Tape& tape = *a.tape;
  return tape.record(result(tape, a.size), a.size, [&tape, a, b](const Held&) {
    for (const Value& x : {a, b}) {
      const Held product = scratch(tape, a.size);
      x.gradient.slot();
    }
  });
}

Value reshape(const Value& x) {
  return x.tape->record(x.held, x.size, [dx = x.gradient](const Held& dy) { dx.add(dy); });
}

Value embedding(Tape& tape, Index rows, Index width) {
  return tape.record(result(tape, rows * width), rows * width, [](const Held&) {});
}

Value linear(const Value& x, Index in, Index out) {
  Tape& tape = *x.tape;
  const Index rows = x.size / in;
  const Held y = result(tape, rows * out);
  gemm(tape, in, out);
  return tape.record(y, rows * out,
                     [&tape, x = x.held, dx = x.gradient, rows, in, out](const Held&) {
                       dx.slot();
                       gemm(tape, out, in);
                       gemm(tape, rows, in);
                     });
}

Value rms_norm(const Value& x, Index width) {
  constexpr Index kRowsPerBlock = 64;
  Tape& tape = *x.tape;
  const Index rows = x.size / width;
  const Held y = result(tape, x.size), reciprocal = result(tape, rows);
  return tape.record(y, x.size,
                     [&tape, reciprocal, x = x.held, dx = x.gradient, rows, width](const Held&) {
                       dx.slot();
                       scratch(tape, (rows + kRowsPerBlock - 1) / kRowsPerBlock * width);
                     });
}

Value rope(const Value& x) {
  Tape& tape = *x.tape;
  return tape.record(result(tape, x.size), x.size,
                     [&tape, dx = x.gradient, size = x.size](const Held&) {
                       dx.add(tape.meter().hold(Use::gradient, size));
                     });
}

Value swiglu(const Value& gate, const Value& up) {
  return up.tape->record(
      result(*up.tape, up.size), up.size,
      [g = gate.held, u = up.held, dgate = gate.gradient, dup = up.gradient](const Held&) {
        dgate.slot();
        dup.slot();
      });
}

namespace {

/// Scores of one map of a block of queries (core/attention/blocks.cpp).
Index score_block(const AttentionSizes& s) {
  const Index reach = s.window > 0 ? std::min(s.seq, s.window) : s.seq;
  const Index block = reach >= 768 ? 32 : 64;
  const Index span = std::min(s.seq, reach + block + kPanel);
  return block * ((span + kPanel - 1) / kPanel * kPanel);
}

Index transposed_heads(const AttentionSizes& s, Index heads, Index width) {
  return s.batch * heads * packed_size(width, s.seq);
}

}  // namespace

Value attention(const Value& q, const Value& k, const Value& v, const Value& lambda,
                const AttentionSizes& s) {
  Tape& tape = *q.tape;
  const auto heads_out = static_cast<Index>(s.layout.routes.size());
  const Index tokens = s.batch * s.seq, size = tokens * heads_out * s.value_dim;
  const Index maps = s.layout.maps, scores = num_threads() * score_block(s);
  const Index keys = transposed_heads(s, s.layout.key_heads, s.head_dim);
  const Index values = transposed_heads(s, s.layout.value_heads, s.value_dim);
  const Held y = result(tape, size), row_stats = result(tape, tokens * heads_out * maps * 2);
  scratch(tape, keys + maps * scores);
  const Index dlambda = s.lambda_gradient ? tokens * heads_out : 0;
  const Index dsinks = s.sinks_gradient ? tokens * s.layout.query_heads : 0;
  return tape.record(
      y, size,
      [&tape, q, k, v, lambda, row_stats, keys, values, scores, dlambda, dsinks](const Held&) {
        for (const Value& operand : {q, k, v}) operand.gradient.slot();
        const Held of_lambda = tape.meter().hold(Use::gradient, dlambda);
        scratch(tape, keys + values + 4 * scores + dsinks);
        lambda.gradient.add(of_lambda);
      });
}

Value cross_entropy(const Value& hidden, Index width, Index vocab, bool scaled) {
  constexpr Index kChunkRows = 512;
  Tape& tape = *hidden.tape;
  const Index chunk = std::min(kChunkRows, hidden.size / width);
  const Held dhidden = tape.meter().hold(Use::gradient, hidden.size);
  const Held dweight = tape.meter().hold(Use::gradient, vocab * width);
  {
    const Held logits = scratch(tape, chunk * vocab);
    gemm(tape, width, vocab);
    gemm(tape, vocab, width);
    gemm(tape, chunk, width);
  }
  return tape.record(result(tape, 1), 1,
                     [dhidden, dweight, to_hidden = hidden.gradient, scaled](const Held&) {
                       scaled ? to_hidden.slot() : to_hidden.add(dhidden);
                     });
}

Value recomputed(const Value& x, const std::function<Value(const Value&)>& body) {
  Tape& tape = *x.tape;
  Tape forward(tape.meter(), false);
  const Held y = body(forward.constant(x.held, x.size)).held;
  return tape.record(y, x.size,
                     [&tape, x = x.held, size = x.size, dx = x.gradient, body](const Held& dy) {
                       Tape again(tape.meter(), true);
                       const Value from = again.input(x, size);
                       again.backward(body(from), dy);
                       dx.add(from.gradient.held());
                     });
}

}  // namespace difftape::memory
