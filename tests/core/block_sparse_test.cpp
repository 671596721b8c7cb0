// Block-sparse attention: the definition of the choice, dense attention as a special case, threads,
// cached decoding.

#include "core/attention/decode.h"
#include "core/attention/selection.h"
#include "tests/core/attention_problem.h"
#include "tests/support/threads.h"

namespace difftape::test {
namespace {

const HeadMapping kMappings[] = {HeadMapping::standard(4, 2), HeadMapping::paired(4, 2),
                                 HeadMapping::doubled(4, 2), HeadMapping::doubled(2, 2, true)};

bool sees(const Problem& problem, Index b, Index t, Index s) {
  const Index seq = problem.in.q.shape()[1];
  return problem.in.visible.first_visible(t, b * seq + t) <= s && s <= t;
}

double product(const Problem& problem, Index b, Index query, Index t, Index key, Index s) {
  const Tensor &q = problem.in.q, &k = problem.in.k;
  double sum = 0;
  for (Index d = 0; d < q.shape()[3]; ++d) {
    sum += static_cast<double>(q.row((b * q.shape()[1] + t) * q.shape()[2] + query)[d]) *
           static_cast<double>(k.row((b * k.shape()[1] + s) * k.shape()[2] + key)[d]);
  }
  return sum;
}

/// The earlier blocks that query t reads in one map of an output head, written as the definition.
std::set<Index> chosen(const Problem& problem, Index b, Index t, Index head, Index map) {
  const AttentionInputs& in = problem.in;
  const Index size = in.blocks.block_size, own = t / size, chooser = own * size;
  std::vector<Index> group;
  for (const auto& each : in.mapping.groups())
    if (std::ranges::count(each, head) > 0) group = each;
  std::vector<std::pair<double, Index>> scores;
  for (Index j = 0; j < own; ++j) {
    double score = 0;
    bool visible = false;
    for (const Index member : group) {
      for (Index other = 0; other < in.mapping.maps; ++other) {
        if (in.blocks.separately && other != map) continue;
        const OutputHead& output = in.mapping.outputs[member];
        double sum = 0;
        int count = 0;
        for (Index s = j * size; s < (j + 1) * size; ++s) {
          if (!sees(problem, b, chooser, s)) continue;
          sum += product(problem, b, output.query[other], chooser, output.key[other], s);
          ++count;
        }
        if (count > 0) score += sum / count;
        visible |= count > 0;
      }
    }
    if (visible) scores.emplace_back(score, j);
  }
  std::ranges::sort(scores, std::greater<>());
  std::set<Index> best;
  for (Index i = 0; i < std::min(in.blocks.num_selected - 1, std::ssize(scores)); ++i)
    best.insert(scores[i].second);
  return best;
}

/// The context of one query by the definition, in double.
std::vector<double> context_of(const Problem& problem, Index b, Index t, Index head) {
  const AttentionInputs& in = problem.in;
  const Index seq = in.q.shape()[1], size = in.blocks.block_size;
  const OutputHead& output = in.mapping.outputs[head];
  std::vector<double> context(in.v.shape()[3]);
  for (Index map = 0; map < in.mapping.maps; ++map) {
    const std::set<Index> blocks = chosen(problem, b, t, head, map);
    std::vector<double> weights(t + 1);
    double sum = in.sinks.allocated() ? std::exp(in.sinks.data()[output.query[map]]) : 0;
    for (Index s = 0; s <= t; ++s) {
      if (!sees(problem, b, t, s) || (s / size != t / size && !blocks.contains(s / size))) continue;
      const double score = in.scale * product(problem, b, output.query[map], t, output.key[map], s);
      const double cap = in.logit_softcap;
      weights[s] = std::exp(cap > 0 ? cap * std::tanh(score / cap) : score);
      sum += weights[s];
    }
    const double factor = map == 0 ? 1 : -static_cast<double>(in.lambda.row(b * seq + t)[head]);
    for (Index s = 0; s <= t; ++s) {
      const real* v = in.v.row((b * seq + s) * in.mapping.value_heads + output.value[map]);
      for (size_t i = 0; i < context.size(); ++i) context[i] += factor * weights[s] / sum * v[i];
    }
  }
  return context;
}

TEST(BlockSparse, matches_its_definition) {
  constexpr Index kTokens = 150;
  for (const HeadMapping& mapping : kMappings) {
    for (const View& view : kViews) {
      for (const BlockSparsity& blocks :
           {BlockSparsity{16, 3, false}, {16, 2, true}, {48, 2, false}, {64, 1, false}}) {
        if (blocks.separately && mapping.maps == 1) continue;
        SCOPED_TRACE(
            fmt::format("{}, {} blocks of {}", view.name, blocks.num_selected, blocks.block_size));
        Problem problem(mapping, 2, kTokens, 8, 6);
        view.apply(problem);
        const Tensor dense = problem.forward().out;
        problem.in.blocks = blocks;
        const Tensor out = problem.forward().out;
        const Index heads = mapping.heads_out();
        double difference = 0;
        for (Index row = 0; row < 2 * kTokens * heads; row += 7) {  // meets every head
          const Index token = row / heads;
          const std::vector<double> expected =
              context_of(problem, token / kTokens, token % kTokens, row % heads);
          for (size_t i = 0; i < expected.size(); ++i) {
            ASSERT_NEAR(out.row(row)[i], expected[i], sizeof(real) == 4 ? 1e-4 : 1e-12) << row;
            difference = std::max(difference, std::abs(dense.row(row)[i] - expected[i]));
          }
        }
        const bool longer = blocks.block_size == 48 && (view.window > 0 || view.documents);
        EXPECT_TRUE(difference > 0.01 || longer) << "nothing is left out";
      }
    }
  }
}

TEST(BlockSparse, is_bitwise_dense_attention_if_all_blocks_are_chosen) {
  constexpr Index kTokens = 150;
  for (const HeadMapping& mapping : kMappings) {
    for (const View& view : {kViews[0], kViews[4], kViews[6]}) {
      for (const Index batch : {1, 16}) {  // work in parts, work in one part
        Problem problem(mapping, batch, kTokens, 8, 16);
        view.apply(problem);
        const AttentionOutputs dense = problem.forward();
        const AttentionGradients gradients = problem.backward();
        for (const Index size : {16, 64, 96}) {
          for (const bool separately : {false, true}) {
            if (separately && mapping.maps == 1) continue;
            SCOPED_TRACE(fmt::format("{}, blocks of {}, {}", view.name, size, separately));
            problem.in.blocks = {size, (kTokens + size - 1) / size, separately};
            const AttentionOutputs all = problem.forward();
            EXPECT_TRUE(same(all.out, dense.out));
            EXPECT_TRUE(same(all.softmax_stats, dense.softmax_stats));
            const AttentionGradients found = problem.backward();
            for (const auto which : gradients_of(problem))
              EXPECT_TRUE(same(found.*which, gradients.*which));
          }
        }
        problem.in.blocks = {16, 2};
        EXPECT_FALSE(same(problem.forward().out, dense.out));
      }
    }
  }
}

TEST(BlockSparse, is_bitwise_equal_for_any_number_of_threads) {
  for (const HeadMapping& mapping : kMappings) {
    for (const bool separately : {false, true}) {
      if (separately && mapping.maps == 1) continue;
      Problem problem(mapping, 2, 260, 8, 16);
      problem.in.blocks = {32, 3, separately};
      const auto run = [&](int threads) {
        const Threads scope(threads);
        return std::pair(problem.forward().out, problem.backward());
      };
      const auto [out, gradients] = run(1);
      for (const int threads : {2, 16}) {
        const auto [other_out, other_gradients] = run(threads);
        EXPECT_TRUE(same(other_out, out));
        for (const auto which : gradients_of(problem))
          EXPECT_TRUE(same(other_gradients.*which, gradients.*which));
      }
    }
  }
}

TEST(BlockSparse, gradients_reach_the_chosen_blocks_alone) {
  Problem problem(HeadMapping::doubled(1, 1), 1, 128, 4, 4);
  problem.in.blocks = {32, 2};
  problem.in.q.fill(1);
  problem.in.k.fill(0);
  for (Index t = 0; t < 32; ++t)
    problem.in.k.row(t)[0] = 1;  // so the last block of queries reads 0
  Tensor dout = Tensor::zeros({1, 128, 1, 4});
  std::fill(dout.row(96), dout.row(128), real(1));
  const AttentionGradients to = problem.backward(dout);
  for (Index t = 0; t < 128; ++t) EXPECT_EQ(to.dv.row(t)[0] != 0, t < 32 || t >= 96) << t;
  const KeySelection selection(problem.in, 0, std::vector<Index>{0});
  EXPECT_TRUE(selection.reads(1, 127, 31));
  EXPECT_FALSE(selection.reads(1, 127, 32));
  EXPECT_TRUE(selection.reads(1, 127, 96));
  EXPECT_TRUE(selection.before(31).empty());
  problem.in.k.fill(0);
  const KeySelection equal(problem.in, 0, std::vector<Index>{0});
  ASSERT_EQ(equal.before(127).size(), 1u);
  EXPECT_EQ(equal.before(127)[0].first, 64) << "of equal scores the later block wins";
}

TEST(BlockSparse, a_choice_depends_on_no_later_token_and_survives_nan) {
  Problem problem(HeadMapping::doubled(2, 1), 1, 128, 4, 4);
  problem.in.blocks = {16, 3};
  const Tensor before = problem.forward().out;
  const Index width = before.size() / 128;
  for (Index t = 70; t < 128; ++t) {
    for (real& x : std::span(problem.in.q.row(t * 4), 4 * 4)) x = -x;
    problem.in.k.row(t)[0] = std::numeric_limits<real>::quiet_NaN();
  }
  const Tensor after = problem.forward().out;
  for (Index i = 0; i < 70 * width; ++i) ASSERT_EQ(before.data()[i], after.data()[i]);
  EXPECT_TRUE(std::isnan(after.data()[127 * width]));
}

TEST(BlockSparse, attention_to_a_cache_reads_the_same_blocks) {
  constexpr Index kTokens = 150, kPrompt = 37;
  for (const HeadMapping& mapping : kMappings) {
    for (const View& view : kViews) {
      for (const bool separately : {false, true}) {
        if (separately && mapping.maps == 1) continue;
        SCOPED_TRACE(view.name);
        Problem problem(mapping, 2, kTokens, 10, 7);
        view.apply(problem);
        problem.in.blocks = {16, 3, separately};
        const Tensor whole = problem.forward().out;
        KvCache cache(mapping, 2, kTokens, 10, 7);
        for (Index begin = 0, n = kPrompt; begin < kTokens; begin += n, n = begin < 90 ? 1 : 20) {
          const AttentionInputs part = problem.tokens(begin, n);
          cache.append(part.k, part.v);
          if (begin == 0) {
            keep_selection(part, cache);
            continue;
          }
          const Tensor found = attention_cached(part, cache);
          expect_near(found, tokens_of(whole, begin, found.shape()[1]));
        }
      }
    }
  }
}

TEST(BlockSparse, errors_name_what_is_needed) {
  Problem problem(HeadMapping::standard(1, 1), 1, 40, 4, 4);
  const auto error = [&](const BlockSparsity& blocks) {
    problem.in.blocks = blocks;
    return message_of<ShapeError>([&] { problem.forward(); });
  };
  EXPECT_EQ(error({20, 1}), "attention: the block size is 20; need 0 (dense) or a multiple of 16");
  EXPECT_EQ(error({16, 0}),
            "attention: 0 blocks are to be read; need 1, the block of the query, or more");
  EXPECT_EQ(error({16, 2, true}),
            "attention: one map cannot choose blocks separately from another; need two maps");
  problem.in.blocks = {16, 2};
  KvCache cache(problem.in.mapping, 1, 40, 4, 4);
  cache.append(problem.in.k, problem.in.v);
  EXPECT_THROW(attention_cached(problem.tokens(39, 1), cache), ShapeError);
}

}  // namespace
}  // namespace difftape::test
