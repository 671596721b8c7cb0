#pragma once
// One call of the attention kernel with random operands and a choice of visibility.

#include "core/attention/attention.h"
#include "tests/support/tensors.h"
#include "tests/support/test.h"

namespace difftape::test {

/// Sequence b of x (B, ...).
inline Tensor sequence(const Tensor& x, Index b) {
  const Index size = x.size() / x.shape()[0];
  Tensor y = Tensor::empty(x.shape().with(0, 1));
  std::copy_n(x.data() + b * size, size, y.data());
  return y;
}

/// Tokens [begin, begin + n) of x (B, T, ...).
inline Tensor tokens_of(const Tensor& x, Index begin, Index n) {
  const Shape& s = x.shape();
  const Index width = x.size() / (s[0] * s[1]);
  Tensor y = Tensor::empty(s.with(1, n));
  for (Index b = 0; b < s[0]; ++b)
    std::copy_n(x.data() + (b * s[1] + begin) * width, n * width, y.data() + b * n * width);
  return y;
}

/// Documents that are longer in later sequences.
inline DocumentOffsets packed_documents(Index batch, Index seq) {
  auto starts = std::make_shared<std::vector<std::int32_t>>();
  for (Index i = 0; i < batch * seq; ++i) {
    const Index length = 30 + 7 * (i / seq);
    starts->push_back(static_cast<std::int32_t>(i % seq / length * length));
  }
  return starts;
}

struct Problem {
  AttentionInputs in;

  Problem(const HeadMapping& mapping, Index batch, Index seq, Index width, Index value_width)
      : in{.mapping = mapping,
           .q = random({batch, seq, mapping.query_heads, width}, "q"),
           .k = random({batch, seq, mapping.key_heads, width}, "k"),
           .v = random({batch, seq, mapping.value_heads, value_width}, "v"),
           .scale = attention_scale(width)} {
    if (mapping.maps == 2) in.lambda = random({batch, seq, mapping.heads_out()}, "lambda");
  }
  void add_sinks() { in.sinks = random({in.mapping.query_heads}, "sinks"); }
  /// The same with sequence b alone.
  Problem alone(Index b) const {
    Problem one = *this;
    for (Tensor* x : {&one.in.q, &one.in.k, &one.in.v, &one.in.lambda})
      if (x->allocated()) *x = sequence(*x, b);
    if (in.visible.document_offsets) {
      const Index seq = in.q.shape()[1];
      const auto first = in.visible.document_offsets->begin() + b * seq;
      one.in.visible.document_offsets =
          std::make_shared<const std::vector<std::int32_t>>(first, first + seq);
    }
    return one;
  }
  /// The call of tokens [begin, begin + n), for a cache; fewer at the end of the sequence.
  AttentionInputs tokens(Index begin, Index n) const {
    const Index batch = in.q.shape()[0], seq = in.q.shape()[1];
    n = std::min(n, seq - begin);
    AttentionInputs part = in;
    for (Tensor* x : {&part.q, &part.k, &part.v, &part.lambda})
      if (x->allocated()) *x = tokens_of(*x, begin, n);
    if (in.visible.document_offsets) {
      std::vector<std::int32_t> starts;
      for (Index b = 0; b < batch; ++b) {
        const auto from = in.visible.document_offsets->begin() + b * seq + begin;
        starts.insert(starts.end(), from, from + n);
      }
      part.visible.document_offsets =
          std::make_shared<const std::vector<std::int32_t>>(std::move(starts));
    }
    return part;
  }
  AttentionOutputs forward() const { return attention_forward(in); }
  AttentionGradients backward() const { return backward(random(forward().out.shape(), "dout")); }
  /// `before` fills the gradients, which are overwritten unless they are added to.
  AttentionGradients backward(const Tensor& dout, Accumulate accumulate = Accumulate::no,
                              real before = std::numeric_limits<real>::quiet_NaN()) const {
    const AttentionOutputs result = forward();
    const Shape& s = in.q.shape();
    AttentionGradients to{.dq = Tensor::like(in.q),
                          .dk = Tensor::like(in.k),
                          .dv = Tensor::like(in.v),
                          .accumulate_q = accumulate,
                          .accumulate_k = accumulate,
                          .accumulate_v = accumulate};
    if (in.lambda.allocated()) to.dlambda = Tensor::like(in.lambda);
    if (in.sinks.allocated()) to.dsinks = Tensor::empty({s[0], s[1], s[2]});
    for (Tensor* each : {&to.dq, &to.dk, &to.dv, &to.dlambda, &to.dsinks}) each->fill(before);
    attention_backward(in, result, dout, to);
    return to;
  }
};

inline void expect_near(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (Index i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a.data()[i], b.data()[i], sizeof(real) == 4 ? 1e-4 : 1e-13) << i;
  }
}

inline double largest(const Tensor& x) {
  double size = 0;
  for (real each : x.values()) size = std::max(size, std::abs(static_cast<double>(each)));
  return size;
}

/// The gradients that a problem has: dlambda of two maps, dsinks of sinks.
inline std::vector<Tensor AttentionGradients::*> gradients_of(const Problem& problem) {
  std::vector<Tensor AttentionGradients::*> which{&AttentionGradients::dq, &AttentionGradients::dk,
                                                  &AttentionGradients::dv};
  if (problem.in.lambda.allocated()) which.push_back(&AttentionGradients::dlambda);
  if (problem.in.sinks.allocated()) which.push_back(&AttentionGradients::dsinks);
  return which;
}

/// The keys that the queries of a problem see.
struct View {
  const char* name;
  Index window;
  bool documents, sinks;
  double softcap = 0;
  void apply(Problem& problem) const {
    const Shape& q = problem.in.q.shape();
    problem.in.visible.sliding_window = window;
    problem.in.logit_softcap = softcap;
    if (documents) problem.in.visible.document_offsets = packed_documents(q[0], q[1]);
    if (sinks) problem.add_sinks();
  }
};
inline const View kViews[] = {{"everything", 0, false, false},
                              {"window", 40, false, false},
                              {"documents", 0, true, false},
                              {"sinks", 0, false, true},
                              {"window, documents, sinks", 40, true, true},
                              {"soft cap", 0, false, false, 0.8},
                              {"documents, sinks, soft cap", 0, true, true, 0.8},
                              {"window, documents, sinks, soft cap", 40, true, true, 0.8}};

}  // namespace difftape::test
