// Statements about V2 that need no seeds but a trained model or its diagnostics: asserted as
// measured.
#include <gtest/gtest.h>

#include "tests/train/run/diagnostics/view.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/diagnostics/attention_measures.h"

namespace difftape::run {
namespace {

/// Rounding error of attention over eight sequences whose queries and keys have this standard
/// deviation.
double error_of(const HeadMapping& mapping, double std, double lambda = 0.5) {
  constexpr Index kRows = 8, kTokens = 64;
  return rounding_error(test::view_of(mapping, kRows, kTokens, lambda, std));
}

// V2 article: "less attention rounding error". Not of the difference itself, which loses digits as
// any difference does: what can gain is a model whose logits became smaller.
TEST(V2Article, a_difference_of_maps_rounds_no_better_at_the_same_logits) {
  const HeadMapping one = HeadMapping::standard(2, 1), two = HeadMapping::doubled(2, 1);
  for (const double std : {0.5, 1.5, 3.0}) {
    EXPECT_GT(error_of(two, std), error_of(one, std)) << "queries of " << std;
    EXPECT_GT(error_of(two, std, 0.9), error_of(two, std, 0.1)) << "the more is taken away";
  }
  EXPECT_LT(error_of(two, 0.5), error_of(two, 3.0)) << "smaller logits, smaller error";
}

// V2 article: a Transformer of twice the heads could learn W_O(2i) = -W_O(2i+1), and does not.
TEST(V2Article, twice_the_heads_do_not_learn_opposite_output_projections) {
  test::TinyProject project("softmax_2h");
  project.config.model.num_heads = 2;
  project.config.model.num_kv_heads = 1;
  project.config.train.steps = 300;
  project.config.train.eval_interval = 0;
  project.save();
  ASSERT_EQ(project.train("out"), system::Exit::ok);
  const auto lines = test::metrics_lines(project / "out");
  const auto loss = [](const auto& line) { return line.at("train/loss").template get<double>(); };
  EXPECT_LT(loss(lines.back()), loss(lines.front()) - 0.5) << "it has learnt something";
  for (const char* layer : {"attn/output_cosine/0", "attn/output_cosine/1"}) {
    EXPECT_GT(lines.back().at(layer).get<double>(), -0.5);  // opposite ones have -1
  }
}

}  // namespace
}  // namespace difftape::run
