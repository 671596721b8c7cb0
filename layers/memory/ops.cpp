#include "layers/memory/ops.h"

#include <algorithm>

#include "core/attention/blocks.h"
#include "core/gemm.h"
#include "core/parallel.h"

namespace difftape::memory {

namespace {

Held result(Tape& tape, Index size) { return tape.meter().hold(Use::activation, size); }
Held scratch(Tape& tape, Index size) { return tape.meter().hold(Use::scratch, size); }

/// What a product needs (core/gemm).
void gemm(Tape& tape, const Operand& a, const Operand& b) {
  tape.meter().hold_bytes(Use::scratch, gemm_scratch_bytes(a, b, tape.precision()));
}
/// A matrix without memory.
Operand sizes(Index rows, Index cols) { return matrix(nullptr, rows, cols); }

/// An op of the size of x whose pullback keeps the given memory and writes to dx directly.
Value element_wise(const Value& x, const Held& y, const Held& kept) {
  return x.tape->record(y, x.size, [kept, dx = x.gradient](const Held&) { dx.buffer(); });
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
      x.gradient.buffer();
    }
  });
}

Value reshape(const Value& x) {
  return x.tape->record(x.held, x.size, [dx = x.gradient](const Held& dy) { dx.add(dy); });
}

Value embedding(Tape& tape, Index rows, Index width) {
  return tape.record(result(tape, rows * width), rows * width, [](const Held&) {});
}

Value linear(const Value& x, Index in, Index out, const Value& residual) {
  Tape& tape = *x.tape;
  const Index rows = x.size / in;
  const Held y = result(tape, rows * out);
  gemm(tape, sizes(rows, in), transpose(sizes(out, in)));
  return tape.record(y, rows * out,
                     [&tape, x = x.held, dx = x.gradient, dresidual = residual.gradient, rows, in,
                      out](const Held& dy) {
                       dresidual.add(dy);
                       dx.buffer();
                       gemm(tape, sizes(rows, out), sizes(out, in));
                       gemm(tape, transpose(sizes(rows, out)), sizes(rows, in));
                     });
}

Value rms_norm(const Value& x, Index width) {
  constexpr Index kRowsPerBlock = 64;
  Tape& tape = *x.tape;
  const Index rows = x.size / width;
  const Held y = result(tape, x.size), reciprocal = result(tape, rows);
  return tape.record(y, x.size,
                     [&tape, reciprocal, x = x.held, dx = x.gradient, rows, width](const Held&) {
                       dx.buffer();
                       scratch(tape, (rows + kRowsPerBlock - 1) / kRowsPerBlock * width);
                     });
}

Value rope(Value x) {
  Tape& tape = *x.tape;
  return tape.record(x.held.use_count() == 1 ? x.held : result(tape, x.size), x.size,
                     [&tape, dx = x.gradient, size = x.size](const Held&) {
                       dx.add(tape.meter().hold(Use::gradient, size));
                     });
}

Value swiglu_linear(const Value& gate, const Value& up, Index in, Index out,
                    const Value& residual) {
  Tape& tape = *up.tape;
  const Index rows = up.size / in;
  const Held y = result(tape, rows * out);
  {
    const Held h = scratch(tape, up.size);
    gemm(tape, sizes(rows, in), transpose(sizes(out, in)));
  }
  return tape.record(
      y, rows * out,
      [&tape, g = gate.held, u = up.held, dgate = gate.gradient, dup = up.gradient,
       dresidual = residual.gradient, size = up.size, rows, in, out](const Held& dy) {
        dresidual.add(dy);
        const Held h = scratch(tape, size);
        gemm(tape, sizes(rows, out), sizes(out, in));
        dgate.buffer();
        dup.buffer();
        gemm(tape, transpose(sizes(rows, out)), sizes(rows, in));
      });
}

namespace {

/// Scores of one map of a block of queries (core/attention/blocks.cpp).
Index score_block(const AttentionSizes& s) {
  return attention::block_rows(s.seq, s.window) * attention::score_stride(s.seq, s.window);
}

Index transposed_heads(const AttentionSizes& s, Index heads, Index width) {
  return s.batch * heads * packed_size(width, s.seq);
}

}  // namespace

Value attention(const Value& q, const Value& k, const Value& v, const Value& lambda,
                const AttentionSizes& s) {
  Tape& tape = *q.tape;
  const auto heads_out = static_cast<Index>(s.mapping.outputs.size());
  const Index tokens = s.batch * s.seq, size = tokens * heads_out * s.value_dim;
  const Index maps = s.mapping.maps, scores = num_threads() * score_block(s);
  const Index keys = transposed_heads(s, s.mapping.key_heads, s.head_dim);
  const Index values = transposed_heads(s, s.mapping.value_heads, s.value_dim);
  const bool round = tape.precision() != Precision::full;
  std::vector<Held> kept;  // the operands, or their rounded copies
  for (const Value& operand : {q, k, v}) {
    kept.push_back(round ? result(tape, operand.size) : operand.held);
  }
  const Held y = result(tape, size), softmax_stats = result(tape, tokens * heads_out * maps * 2);
  scratch(tape, keys + maps * scores);
  const Index dlambda = s.lambda_gradient ? tokens * heads_out : 0;
  // Backward in parts has keys' and values' gradients for each.
  const Index parts_count = attention_backward_parts(s.mapping, s.batch, s.seq, s.window);
  const Index parts = parts_count == 1 ? 0 : parts_count * (k.size + v.size);
  const Index rounded = round ? size : 0;
  const Index dsinks = s.sinks_gradient ? tokens * s.mapping.query_heads : 0;
  return tape.record(
      y, size,
      [&tape, to = std::array{q.gradient, k.gradient, v.gradient}, kept, lambda, softmax_stats,
       keys, values, scores, dlambda, dsinks, parts, rounded](const Held&) {
        for (const Gradient& gradient : to) gradient.buffer();
        const Held of_lambda = tape.meter().hold(Use::gradient, dlambda);
        scratch(tape, keys + values + 4 * scores + dsinks + parts + rounded);
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
    gemm(tape, sizes(chunk, width), transpose(sizes(vocab, width)));
    gemm(tape, sizes(chunk, vocab), sizes(vocab, width));
    gemm(tape, transpose(sizes(chunk, vocab)), sizes(chunk, width));
  }
  return tape.record(result(tape, 1), 1,
                     [dhidden, dweight, to_hidden = hidden.gradient, scaled](const Held&) {
                       scaled ? to_hidden.buffer() : to_hidden.add(dhidden);
                     });
}

Value recomputed(const Value& x, const std::function<Value(const Value&)>& body) {
  Tape& tape = *x.tape;
  Tape forward(tape.meter(), false, tape.precision());
  const Held y = body(forward.constant(x.held, x.size)).held;
  return tape.record(y, x.size,
                     [&tape, x = x.held, size = x.size, dx = x.gradient, body](const Held& dy) {
                       Tape again(tape.meter(), true, tape.precision());
                       const Value from = again.input(x, size);
                       again.backward(body(from), dy);
                       dx.add(from.gradient.held());
                     });
}

}  // namespace difftape::memory
