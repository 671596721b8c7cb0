// The choice of experts and the order of their rows.
#include "core/routing.h"

#include "tests/support/tensors.h"
#include "tests/support/test.h"
#include "tests/support/threads.h"

namespace difftape {
namespace {

Tensor scores_of(Index tokens, Index experts, std::vector<real> values) {
  return Tensor::from({tokens, experts}, values);
}

TEST(Routing, chooses_the_highest_scores_and_the_lower_index_of_a_tie) {
  const Tensor scores =
      scores_of(3, 4, {0.1, 0.4, 0.2, 0.3, 0.25, 0.25, 0.25, 0.25, 0.1, 0.3, 0.3, 0.3});
  EXPECT_THAT(choose_experts(scores, {}, 2).chosen, ElementsAre(1, 3, 0, 1, 1, 2));
}

TEST(Routing, adds_the_bias_for_the_choice) {
  const Tensor scores = scores_of(2, 3, {0.5, 0.3, 0.2, 0.1, 0.1, 0.8});
  const std::vector<real> bias{-0.4, 0, 0.2};
  EXPECT_THAT(choose_experts(scores, bias, 2).chosen, ElementsAre(2, 1, 2, 1));
}

TEST(Routing, sorts_rows_by_expert_and_keeps_the_order_of_tokens) {
  const Tensor scores = scores_of(4, 3, {0, 2, 1, 3, 2, 0, 0, 1, 2, 5, 0, 1});
  const Routing routing = choose_experts(scores, {}, 2);
  EXPECT_THAT(routing.chosen, ElementsAre(1, 2, 0, 1, 2, 1, 0, 2));
  EXPECT_THAT(routing.starts, ElementsAre(0, 2, 5, 8));
  EXPECT_THAT(routing.rows, ElementsAre(2, 5, 0, 3, 6, 4, 1, 7));
  EXPECT_EQ(routing.tokens(), 4);
  EXPECT_EQ(routing.load(1), 3);
}

TEST(Routing, of_nan_is_valid) {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  const Routing routing = choose_experts(scores_of(2, 3, {nan, nan, nan, 1, nan, 2}), {}, 2);
  EXPECT_THAT(routing.chosen, ElementsAre(0, 1, 2, 0));
  EXPECT_EQ(routing.starts.back(), 4);
}

TEST(Routing, is_equal_for_any_number_of_threads) {
  const Tensor scores = test::random({5000, 16}, "scores");
  const auto routing = [&](int threads) {
    const test::Threads scope(threads);
    return choose_experts(scores, {}, 4);
  };
  const Routing one = routing(1), three = routing(3);
  EXPECT_EQ(one.chosen, three.chosen);
  EXPECT_EQ(one.rows, three.rows);
  EXPECT_EQ(one.starts, three.starts);
}

}  // namespace
}  // namespace difftape
