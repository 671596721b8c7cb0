// Attention to a cache equals attention over the whole sequence for its last tokens.
#include "core/attention/decode.h"
#include "core/pool.h"
#include "tests/core/attention_problem.h"

namespace difftape::test {
namespace {

constexpr Index kSeq = 300, kLast = 5;  // several chunks of keys

Tensor last_tokens(const Tensor& x) { return tokens_of(x, kSeq - kLast, kLast); }

/// The largest difference from the whole, of one sequence.
double difference(Problem& problem) {
  const Tensor whole = last_tokens(problem.forward().out);
  KvCache cache(problem.in.mapping, 1, kSeq, problem.in.k.shape()[3], problem.in.v.shape()[3]);
  cache.append(problem.in.k, problem.in.v);
  const Tensor found = attention_cached(problem.tokens(kSeq - kLast, kLast), cache);
  EXPECT_EQ(found.shape(), whole.shape());
  double largest = 0;
  for (Index i = 0; i < found.size(); ++i) {
    const auto error = static_cast<double>(found.data()[i] - whole.data()[i]);
    EXPECT_FALSE(std::isnan(error));
    largest = std::max(largest, std::abs(error));
  }
  return largest;
}

constexpr double kTolerance = sizeof(real) == 4 ? 1e-5 : 1e-13;

TEST(AttentionCache, equals_attention_over_a_long_sequence) {
  for (const auto& mapping : {HeadMapping::doubled(2, 2), HeadMapping::paired(2, 2)}) {
    Problem problem(mapping, 1, kSeq, 10, 7);
    EXPECT_LT(difference(problem), kTolerance);
    problem.in.visible.sliding_window = 200;
    EXPECT_LT(difference(problem), kTolerance) << "which begins within a register of keys";
    problem.in.logit_softcap = 0.5;
    EXPECT_LT(difference(problem), kTolerance);
  }
}

TEST(AttentionCache, handles_sinks_of_any_size) {
  for (const double sink : {-1e4, -1.0, 3.0, 1e4}) {
    Problem problem(HeadMapping::doubled(2, 2), 1, kSeq, 10, 7);
    problem.in.sinks = Tensor::full({problem.in.mapping.query_heads}, static_cast<real>(sink));
    EXPECT_LT(difference(problem), kTolerance) << sink;
  }
}

TEST(AttentionCache, takes_memory_that_does_not_grow_with_its_length) {
  constexpr Index kTokens = 600;
  const Problem problem(HeadMapping::standard(2, 1), 1, kTokens, 8, 8);
  KvCache cache(problem.in.mapping, 1, kTokens, 8, 8);
  const auto step = [&](Index token) {
    const AttentionInputs in = problem.tokens(token, 1);
    cache.append(in.k, in.v);
    attention_cached(in, cache);
    return pool::stats().bytes_reserved;
  };
  pool::trim();
  size_t early = 0, late = 0;
  for (Index token = 0; token < kTokens; ++token) (token < 50 ? early : late) = step(token);
  EXPECT_LT(static_cast<double>(late), 1.2 * static_cast<double>(early));
}

}  // namespace
}  // namespace difftape::test
