// Sizes at which the kernels change their blocks, against the compositions from primitives.
#include "autograd/gradcheck/compositions.h"
#include "autograd/gradcheck/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

using test::random;

/// Value and all gradients of two functions of the same inputs agree.
void expect_equal(const std::vector<Tensor>& inputs, const OpFunction& ours,
                  const OpFunction& composed) {
  std::vector<Tensor> results[2];
  for (size_t side = 0; side < 2; ++side) {
    Tape tape;
    std::vector<Var> vars;
    for (const Tensor& input : inputs) vars.push_back(tape.input(input));
    const Var y = side == 0 ? ours(vars) : composed(vars);
    results[side].push_back(y.value());
    tape.backward(y, random(y.shape(), "cotangent"));
    for (const Var& var : vars) results[side].push_back(tape.gradient_of(var));
  }
  for (size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_LE(relative_error(results[0][i], results[1][i]), 1e-12) << "result " << i;
  }
}

/// The kernel against its composition.
void expect_attention(const HeadMapping& mapping, const std::vector<Tensor>& inputs,
                      const Visibility& visible = {}) {
  const auto operands = [&](std::vector<Var>& v) {
    return AttentionOperands{.mapping = mapping,
                             .q = v[0],
                             .k = v[1],
                             .v = v[2],
                             .lambda = v[3],
                             .sinks = v.size() > 4 ? v[4] : Var(),
                             .scale = attention_scale(v[0].shape().last()),
                             .visible = visible};
  };
  expect_equal(
      inputs, [&](std::vector<Var>& v) { return attention(operands(v)); },
      [&](std::vector<Var>& v) { return composition::attention(operands(v)); });
}

TEST(LargeSizes, attention_with_long_rows_equals_its_composition) {
  constexpr Index kSeq = 801;
  expect_attention(HeadMapping::doubled(1, 1),
                   {random({1, kSeq, 2, 3}, "q"), random({1, kSeq, 1, 3}, "k"),
                    random({1, kSeq, 1, 2}, "v"), random({1, kSeq, 1}, "lambda")});
}

TEST(LargeSizes, attention_with_a_long_window_and_documents_equals_its_composition) {
  constexpr Index kSeq = 1500;
  std::vector<std::int32_t> starts(kSeq, 0);
  for (size_t t = 333; t < kSeq; ++t) starts[t] = t < 1401 ? 333 : 1401;
  const Visibility visible{800, std::make_shared<const std::vector<std::int32_t>>(starts)};
  expect_attention(HeadMapping::doubled(1, 1),
                   {random({1, kSeq, 2, 3}, "q"), random({1, kSeq, 1, 3}, "k"),
                    random({1, kSeq, 1, 2}, "v"), random({1, kSeq, 1}, "lambda")},
                   visible);
}

TEST(LargeSizes, embedding_of_several_column_ranges_equals_its_composition) {
  const std::vector<std::int32_t> tokens{2, 0, 2, 1};
  expect_equal(
      {random({3, 150}, "table")},
      [&](std::vector<Var>& v) { return embedding(tokens, {4}, v[0]); },
      [&](std::vector<Var>& v) { return composition::embedding(tokens, {4}, v[0]); });
}

TEST(LargeSizes, rms_norm_of_several_blocks_of_rows_equals_its_composition) {
  expect_equal(
      {random({150, 5}, "x"), random({5}, "weight")},
      [](std::vector<Var>& v) { return rms_norm(v[0], v[1], 1e-5); },
      [](std::vector<Var>& v) { return composition::rms_norm(v[0], v[1], 1e-5); });
}

TEST(LargeSizes, swiglu_linear_of_several_ranges_equals_its_composition) {
  expect_equal(
      {random({3, 6000}, "gate"), random({3, 6000}, "up"), random({2, 6000}, "weight")},
      [](std::vector<Var>& v) { return swiglu_linear(v[0], v[1], v[2]); },
      [](std::vector<Var>& v) { return composition::swiglu_linear(v[0], v[1], v[2]); });
}

TEST(LargeSizes, sums_over_many_tokens_in_attention_equal_their_composition) {
  constexpr Index kBatch = 4200, kSeq = 4;
  expect_attention(HeadMapping::paired(2, 2),
                   {random({kBatch, kSeq, 2, 1}, "q"), random({kBatch, kSeq, 2, 1}, "k"),
                    random({kBatch, kSeq, 1, 1}, "v"), random({}, "lambda"), random({2}, "sinks")});
}

TEST(LargeSizes, sums_of_several_ranges_equal_products_with_ones) {
  const auto product = [](const Var& x, Index rows, Index width, const Shape& shape) {
    const Var ones = x.tape().constant(Tensor::full({width, 1}, 1));
    return reshape(matmul(reshape(x, {rows, width}), ones), shape);
  };
  const std::vector<Tensor> x{random({7000, 3}, "x")};
  expect_equal(
      x, [](std::vector<Var>& v) { return sum(v[0]); },
      [&](std::vector<Var>& v) { return product(v[0], 1, 21000, {}); });
  expect_equal(
      x, [](std::vector<Var>& v) { return sum_last(v[0]); },
      [&](std::vector<Var>& v) {
        return product(v[0], 7000, 3, {7000, 1});
      });
}

TEST(LargeSizes, transposing_several_ranges_twice_changes_nothing) {
  expect_equal(
      {random({7000, 3}, "x")},
      [](std::vector<Var>& v) { return transpose(transpose(v[0], 0, 1), 0, 1); },
      [](std::vector<Var>& v) {
        return reshape(v[0], {7000, 3});
      });
}

TEST(LargeSizes, cross_entropy_over_several_chunks_or_ranges_equals_its_composition) {
  const auto expect = [](Index rows, Index width, double scale, auto&& target_of) {
    std::vector<std::int32_t> targets;
    for (int i = 0; i < rows; ++i) targets.push_back(target_of(i));
    expect_equal(
        {random({rows, width}, "hidden"), random({7, width}, "weight")},
        [&](std::vector<Var>& v) { return affine(cross_entropy(v[0], v[1], targets), scale, 0); },
        [&](std::vector<Var>& v) {
          return affine(composition::cross_entropy(v[0], v[1], targets), scale, 0);
        });
  };
  expect(1300, 5, 1, [](int i) { return i % 7; });
  expect(600, 30, 0.5, [](int) { return 2; });
  expect(2600, 5, 1, [](int i) { return i % 2 == 0 ? kIgnoreIndex : i % 7; });  // scattered rows
}

TEST(LargeSizes, cross_entropy_takes_no_more_memory_for_every_new_number_of_scored_rows) {
  const Index rows = 1024;
  const Tensor hidden = test::random({rows, 128}, "hidden"), w = test::random({512, 128}, "w");
  const RandomStream stream(1, "ignored");
  const auto step = [&](std::uint64_t i) {
    std::vector<std::int32_t> targets(rows, 3);
    std::fill_n(targets.begin(), stream.below(i, rows), kIgnoreIndex);
    Tape tape;
    tape.backward(cross_entropy(tape.input(hidden), tape.input(w), targets));
    return pool::stats().bytes_reserved;
  };
  pool::trim();
  size_t early = 0, late = 0;
  for (std::uint64_t i = 0; i < 200; ++i) (i < 50 ? early : late) = step(i);
  EXPECT_LT(static_cast<double>(late), 1.2 * static_cast<double>(early));
}

TEST(LargeSizes, cross_entropy_returns_the_loss_of_each_scored_row) {
  for (const int every : {1, 3}) {
    std::vector<std::int32_t> targets;
    for (int i = 0; i < 1200; ++i) targets.push_back(i % every == 0 ? i % 7 : kIgnoreIndex);
    const Tensor hidden = random({1200, 5}, "hidden"), weight = random({7, 5}, "weight");
    Tape tape;
    LossTerms terms;
    cross_entropy(tape.input(hidden), tape.input(weight), targets, {}, &terms);
    ASSERT_EQ(terms.row_losses.size(), 1200u);
    double sum = 0;
    for (Index row = 0; row < 1200; ++row) {
      const double loss = terms.row_losses[row];
      sum += loss;
      const std::int32_t target = targets[row];
      if (target == kIgnoreIndex) {
        EXPECT_EQ(loss, 0);
        continue;
      }
      double exponentials = 0, of_target = 0;
      for (Index v = 0; v < 7; ++v) {
        double z = 0;
        for (Index c = 0; c < 5; ++c) z += hidden.row(row)[c] * weight.row(v)[c];
        exponentials += std::exp(z);
        if (v == target) of_target = z;
      }
      EXPECT_NEAR(loss, std::log(exponentials) - of_target, 1e-12) << row;
    }
    EXPECT_NEAR(sum / (1200 / every), terms.cross_entropy, 1e-12);
  }
}

}  // namespace
}  // namespace difftape
