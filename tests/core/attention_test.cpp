// The fused attention kernel: structure, gradients however the work is cut, independence of
// threads.
#include "core/attention/products.h"
#include "core/bf16.h"
#include "core/gemm_backend.h"
#include "core/tile.h"
#include "tests/core/attention_problem.h"
#include "tests/support/threads.h"

namespace difftape {
namespace {

using namespace test;
using namespace attention;

TEST(Attention, the_future_has_no_influence) {
  for (const HeadMapping& mapping : {HeadMapping::standard(2, 1), HeadMapping::doubled(2, 1)}) {
    Problem problem(mapping, 1, 130, 8, 8);
    const Tensor before = problem.forward().out;
    for (Index t = 100; t < 130; ++t) {
      problem.in.k.row(t * mapping.key_heads)[0] += 1;
      problem.in.v.row(t * mapping.value_heads)[0] += 1;
    }
    const Tensor after = problem.forward().out;
    const Index width = before.size() / 130;
    for (Index i = 0; i < 100 * width; ++i) ASSERT_EQ(before.data()[i], after.data()[i]);
    EXPECT_NE(before.data()[100 * width], after.data()[100 * width]);
  }
}

TEST(Attention, lambda_zero_leaves_the_first_map) {
  Problem two(HeadMapping::doubled(1, 1), 1, 20, 4, 4);
  two.in.lambda.fill(0);
  Problem one(HeadMapping::standard(1, 1), 1, 20, 4, 4);
  one.in.k = two.in.k;
  one.in.v = two.in.v;
  for (Index t = 0; t < 20; ++t) std::copy_n(two.in.q.row(2 * t), 4, one.in.q.row(t));
  EXPECT_TRUE(same(two.forward().out, one.forward().out));
}

TEST(Attention, equal_maps_with_lambda_one_give_zero) {
  Problem problem(HeadMapping::doubled(2, 2), 2, 70, 4, 6);
  problem.in.lambda.fill(1);
  for (Index t = 0; t < 2 * 70 * 2; ++t) {
    std::copy_n(problem.in.q.row(2 * t), 4, problem.in.q.row(2 * t + 1));
  }
  for (real x : problem.forward().out.values()) EXPECT_EQ(x, 0);
}

TEST(Attention, rows_sum_to_one_minus_lambda) {
  Problem problem(HeadMapping::paired(2, 2), 1, 33, 4, 2);
  problem.in.v.fill(1);
  const Tensor out = problem.forward().out;
  for (Index t = 0; t < 33; ++t) {
    const real sum = out.row(t)[0];
    EXPECT_NEAR(sum, 1 - problem.in.lambda.data()[t], 2e-6 * (1 + std::abs(sum)));
  }
}

TEST(Attention, gradients_of_a_batch_equal_gradients_of_its_sequences) {
  constexpr Index kBatch = 16, kSeq = 150;
  for (const HeadMapping& mapping :
       {HeadMapping::standard(4, 2), HeadMapping::paired(4, 4), HeadMapping::doubled(4, 2, true),
        HeadMapping::doubled(2, 1)}) {
    for (const View& view : kViews) {
      SCOPED_TRACE(view.name);
      ASSERT_EQ(attention_backward_parts(mapping, kBatch, kSeq), 1);
      ASSERT_GT(attention_backward_parts(mapping, 1, kSeq), 1);
      Problem batch(mapping, kBatch, kSeq, 8, 6);
      view.apply(batch);
      const Tensor dout = random(batch.forward().out.shape(), "dout");
      const AttentionGradients all = batch.backward(dout);
      for (Index b = 0; b < kBatch; b += 5) {
        const AttentionGradients one = batch.alone(b).backward(sequence(dout, b));
        for (const auto which : gradients_of(batch)) {
          EXPECT_GT(largest(one.*which), 1e-3);
          expect_near(one.*which, sequence(all.*which, b));
        }
      }
    }
  }
}

TEST(Attention, gradients_are_added_to_previous_ones_on_request) {
  const std::pair<HeadMapping, BlockSparsity> cases[] = {
      {HeadMapping::standard(4, 2), {}},
      {HeadMapping::doubled(2, 1), {}},
      {HeadMapping::doubled(2, 1), {16, 2, true}}};  // one map alone reads some first tiles
  for (const auto& [mapping, blocks] : cases) {
    for (const Index batch : {2, 16}) {  // work in parts, work in one part
      Problem problem(mapping, batch, 150, 8, 6);
      problem.in.blocks = blocks;
      const Tensor dout = random(problem.forward().out.shape(), "dout");
      const AttentionGradients alone = problem.backward(dout);  // replaces NaN
      const AttentionGradients added = problem.backward(dout, Accumulate::yes, real(0.5));
      for (const auto which :
           {&AttentionGradients::dq, &AttentionGradients::dk, &AttentionGradients::dv}) {
        Tensor expected = (alone.*which).clone();
        for (real& x : expected.values()) x += real(0.5);
        expect_near(added.*which, expected);
      }
      EXPECT_TRUE(same(added.dlambda, alone.dlambda));
    }
  }
}

/// Heads of x (B, T, heads, D) in the order given.
Tensor reordered(const Tensor& x, const std::vector<Index>& order) {
  const Shape& shape = x.shape();
  Tensor y = Tensor::like(x);
  for (Index token = 0; token < shape[0] * shape[1]; ++token) {
    for (size_t i = 0; i < order.size(); ++i) {
      const Index to = token * shape[2] + i, from = token * shape[2] + order[i];
      std::copy_n(x.data() + from * shape[3], shape[3], y.data() + to * shape[3]);
    }
  }
  return y;
}

TEST(Attention, permuting_heads_permutes_results) {
  Problem problem(HeadMapping::doubled(3, 3), 2, 37, 4, 5);
  const Tensor before = problem.forward().out;
  problem.in.q = reordered(problem.in.q, {4, 5, 0, 1, 2, 3});
  problem.in.k = reordered(problem.in.k, {2, 0, 1});
  problem.in.v = reordered(problem.in.v, {2, 0, 1});
  problem.in.lambda =
      reordered(problem.in.lambda.reshaped({2, 37, 3, 1}), {2, 0, 1}).reshaped({2, 37, 3});
  EXPECT_TRUE(same(problem.forward().out, reordered(before, {2, 0, 1})));
}

/// The context of one query by the definition, in double.
std::vector<double> context_of(const AttentionInputs& in, Index b, Index t, Index head) {
  const Index width = in.q.shape()[3], seq = in.q.shape()[1], token = b * seq + t;
  const OutputHead& output = in.mapping.outputs[head];
  const Index first = in.visible.document_offsets ? (*in.visible.document_offsets)[token] : 0;
  std::vector<double> context(in.v.shape()[3], 0);
  for (Index map = 0; map < in.mapping.maps; ++map) {
    std::vector<double> weights;
    double sum = in.sinks.allocated() ? std::exp(in.sinks.data()[output.query[map]]) : 0;
    for (Index s = first; s <= t; ++s) {
      double dot = 0;
      for (Index i = 0; i < width; ++i) {
        dot += in.q.row(token * in.mapping.query_heads + output.query[map])[i] *
               in.k.row((b * seq + s) * in.mapping.key_heads + output.key[map])[i];
      }
      const double score = dot * in.scale, cap = in.logit_softcap;
      weights.push_back(std::exp(cap > 0 ? cap * std::tanh(score / cap) : score));
      sum += weights.back();
    }
    const double factor = map == 0 ? 1 : -in.lambda.row(token)[head];
    for (Index s = first; s <= t; ++s) {
      const real* v = in.v.row((b * seq + s) * in.mapping.value_heads + output.value[map]);
      for (size_t i = 0; i < context.size(); ++i)
        context[i] += factor * weights[s - first] / sum * v[i];
    }
  }
  return context;
}

TEST(Attention, soft_capped_scores_match_their_definition) {
  for (const HeadMapping& mapping :
       {HeadMapping::standard(4, 2), HeadMapping::paired(4, 4), HeadMapping::doubled(4, 2, true),
        HeadMapping::doubled(2, 1)}) {
    for (const View& view : kViews) {
      if (view.softcap == 0 || view.window > 0) continue;
      Problem problem(mapping, 2, 70, 8, 6);
      const Tensor uncapped = problem.forward().out;
      view.apply(problem);
      const Tensor out = problem.forward().out;
      const Index heads = mapping.heads_out();
      double difference = 0;
      for (Index row = 0; row < 2 * 70 * heads; ++row) {
        const Index token = row / heads;
        const std::vector<double> expected =
            context_of(problem.in, token / 70, token % 70, row % heads);
        for (size_t i = 0; i < expected.size(); ++i) {
          ASSERT_NEAR(out.row(row)[i], expected[i], sizeof(real) == 4 ? 1e-5 : 1e-13);
          difference = std::max(difference, std::abs(uncapped.row(row)[i] - expected[i]));
        }
      }
      EXPECT_GT(difference, 0.01) << "the cap is not noticed";
    }
  }
}

TEST(Attention, is_bitwise_equal_for_any_number_of_threads) {
  constexpr Index kSeq = 150;
  for (const HeadMapping& mapping :
       {HeadMapping::standard(4, 2), HeadMapping::paired(4, 2), HeadMapping::doubled(2, 2)}) {
    ASSERT_GT(attention_backward_parts(mapping, 2, kSeq), 1);
    ASSERT_EQ(attention_backward_parts(mapping, 16, kSeq), 1);
    for (const auto& [batch, precision] : {std::pair<Index, Precision>{2, Precision::full},
                                           {16, Precision::full},
                                           {2, Precision::bf16_emulated},
                                           {16, Precision::bf16_emulated}}) {
      for (const View& view : kViews) {
        SCOPED_TRACE(view.name);
        Problem problem(mapping, batch, kSeq, 8, 16);
        problem.in.precision = precision;
        view.apply(problem);
        const auto run = [&](int threads) {
          const test::Threads scope(threads);
          return std::pair(problem.forward().out, problem.backward());
        };
        const auto [out, gradients] = run(1);
        for (int threads : {2, 16}) {
          const auto [other_out, other_gradients] = run(threads);
          EXPECT_TRUE(same(other_out, out));
          for (const auto which : gradients_of(problem)) {
            EXPECT_TRUE(same(other_gradients.*which, gradients.*which));
          }
        }
      }
    }
  }
}

/// Head mappings, views and widths for rounded operands, with an odd last query.
template <class F>
void for_each_rounded_problem(F&& f) {
  for (const HeadMapping& mapping :
       {HeadMapping::standard(4, 2), HeadMapping::paired(4, 4), HeadMapping::doubled(4, 2, true),
        HeadMapping::doubled(2, 1)}) {
    for (const auto& [width, value_width] : {std::pair<Index, Index>{16, 16}, {7, 5}, {64, 128}}) {
      for (const View& view : kViews) {
        SCOPED_TRACE(testing::Message() << view.name << ", " << width << " and " << value_width);
        Problem problem(mapping, 2, 151, width, value_width);
        view.apply(problem);
        f(problem);
      }
    }
  }
}

/// The output and all gradients of a problem in a precision.
std::vector<Tensor> results_of(Problem problem, Precision precision) {
  problem.in.precision = precision;
  std::vector<Tensor> results{problem.forward().out};
  const AttentionGradients gradients = problem.backward();
  for (const auto which : gradients_of(problem)) results.push_back(gradients.*which);
  return results;
}

TEST(Attention, with_rounded_operands_differs_by_the_size_of_a_rounding_error) {
  for_each_rounded_problem([](const Problem& problem) {
    const auto full = results_of(problem, Precision::full),
               rounded = results_of(problem, Precision::bf16_emulated);
    for (size_t i = 0; i < full.size(); ++i) {
      double error = 0, size = 0;
      for (Index j = 0; j < full[i].size(); ++j) {
        const auto x = static_cast<double>(full[i].data()[j]);
        error += std::pow(static_cast<double>(rounded[i].data()[j]) - x, 2);
        size += x * x;
      }
      EXPECT_LT(std::sqrt(error / size), 0.02) << i;
      EXPECT_GT(std::sqrt(error / size), 0.0005) << i;
    }
  });
}

TEST(Attention, by_units_of_the_processor_has_the_bits_of_loops) {
  const std::string unsupported = unsupported_reason(Precision::bf16);
  if (!unsupported.empty()) GTEST_SKIP() << test::kOtherHardware << unsupported;
  for_each_rounded_problem([](const Problem& problem) {
    const auto units = results_of(problem, Precision::bf16),
               loops = results_of(problem, Precision::bf16_emulated);
    for (size_t i = 0; i < units.size(); ++i) EXPECT_TRUE(same(units[i], loops[i])) << i;
  });
}

TEST(Attention, pads_an_odd_number_of_tokens_or_keys_with_zeros) {
  const Tensor x = random({1, 3, 2, 4}, "x");
  const HeadOperand operand = HeadOperand({}, RoundedHeads(x)).transposable();
  for (Index i = 0; i < 4; ++i) {
    EXPECT_EQ(operand.rows_of(0, 0).pairs[i], bf16_pair(x.row(0)[i], x.row(2)[i])) << i;
    EXPECT_EQ(operand.rows_of(0, 0).pairs[4 + i], bf16_pair(x.row(4)[i], 0)) << i;
  }
  const Tensor weights = random({4, kBlockRows}, "weights");  // the last is not of the tile
  const Block block{0, 0, 0, kSimdWidth, kSimdWidth, {}};
  RoundedTile memory;
  const Weights rounded = weights_of(tile::portable_pairs(), block, {0, 3, 0, 0, false, true},
                                     weights.data(), For::weights, memory);
  for (Index i = 0; i < kSimdWidth; ++i)
    EXPECT_EQ(rounded.pairs[kBlockRows + i], bf16_pair(weights.row(2)[i], 0)) << i;
}

TEST(Attention, backward_needs_the_precision_of_forward) {
  Problem problem(HeadMapping::standard(1, 1), 1, 4, 4, 4);
  const AttentionOutputs result = problem.forward();
  problem.in.precision = Precision::bf16_emulated;
  AttentionGradients to{Tensor::like(problem.in.q), Tensor::like(problem.in.k),
                        Tensor::like(problem.in.v)};
  EXPECT_EQ(message_of<ShapeError>([&] { attention_backward(problem.in, result, result.out, to); }),
            "attention: forward was in another precision; need the same");
}

TEST(Attention, rounded_operands_take_two_bytes_per_element) {
  for (const Index width : {6, 7}) {
    const Tensor x = random({2, 3, 4, width}, "x");
    const auto before = static_cast<Index>(pool::stats().bytes_in_use);
    const RoundedHeads rounded(x);
    const Index elements = 2 * 3 * 4 * round_up(width, 2);
    EXPECT_EQ(static_cast<Index>(pool::stats().bytes_in_use) - before, round_up(2 * elements, 64))
        << "whole cache lines";
    Tensor expected = x.clone();
    for (real& y : expected.values()) y = round_bf16(y);
    EXPECT_TRUE(same(rounded.values(), expected));
    EXPECT_EQ(rounded.row(1, 2, 1) - rounded.row(1, 2, 0), rounded.row_size()) << "neighbors";
    if (rounded.row_size() > width) {
      EXPECT_EQ(rounded.row(1, 3, 2)[width], 0);
    }
  }
}

TEST(Attention, errors_name_wrong_shapes_and_the_required_heads) {
  Problem problem(HeadMapping::standard(2, 1), 1, 4, 4, 4);
  problem.in.k = random({1, 4, 2, 4}, "k");
  EXPECT_EQ(message_of<ShapeError>([&] { problem.forward(); }),
            "attention: q is (1, 4, 2, 4), k is (1, 4, 2, 4), v is (1, 4, 1, 4); need 2 query, "
            "1 key and 1 value heads");
  Problem unknown(HeadMapping::standard(2, 2), 1, 4, 4, 4);
  unknown.in.mapping.outputs[1].key[0] = 2;
  EXPECT_EQ(
      message_of<ShapeError>([&] { unknown.forward(); }),
      "attention: map 0 of output head 1 reads query head 1 of 2, key head 2 of 2, value head "
      "1 of 2; need heads that exist");
}

TEST(Attention, computes_inside_an_openmp_region_that_is_not_ours) {
  const Problem problem(HeadMapping::doubled(2, 1), 2, 150, 8, 6);
  const AttentionGradients expected = problem.backward();
  std::vector<AttentionGradients> found(4);
#pragma omp parallel for num_threads(4)
  for (size_t i = 0; i < found.size(); ++i) found[i] = problem.backward();
  for (const AttentionGradients& each : found) {
    EXPECT_TRUE(same(each.dq, expected.dq));
    EXPECT_TRUE(same(each.dk, expected.dk));
  }
}

TEST(Attention, gives_query_heads_that_nothing_reads_a_gradient_of_zero) {
  for (const Index batch : {2, 16}) {  // work in parts, work in one part
    Problem problem(HeadMapping::standard(3, 3), batch, 20, 4, 4);
    problem.in.mapping.outputs.pop_back();
    const AttentionGradients found = problem.backward();  // over NaN
    for (const auto which :
         {&AttentionGradients::dq, &AttentionGradients::dk, &AttentionGradients::dv}) {
      const Tensor& x = found.*which;
      for (Index i = 0; i < x.size(); ++i) {
        if (i / 4 % 3 == 2) {
          EXPECT_EQ(x.data()[i], 0) << i;
        } else {
          EXPECT_TRUE(std::isfinite(x.data()[i])) << i;
        }
      }
    }
  }
}

TEST(Attention, of_no_tokens_is_empty) {
  for (const BlockSparsity& blocks : {BlockSparsity{}, {16, 2}}) {
    Problem problem(HeadMapping::standard(2, 1), 2, 0, 4, 4);
    problem.in.blocks = blocks;
    EXPECT_EQ(problem.forward().out.size(), 0);
  }
}

}  // namespace
}  // namespace difftape
