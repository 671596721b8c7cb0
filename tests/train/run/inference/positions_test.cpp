// What a model makes of more context than that of its training, place by place.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/train/run/loop/tiny.h"
#include "train/run/inference/validation.h"
#include "train/system/json.h"

namespace difftape::run {
namespace {

using test::Outcome;
using testing::HasSubstr;

TEST(PositionLosses, are_means_over_the_sequences_in_which_a_place_is_scored) {
  Batch batch{.batch = 2, .seq = 2, .tokens = {0, 1, 0, 1, 1, 1}, .scored = {1, 1, 0, 1}};
  // Rows (b, t): targets are 1 and 0, then 1 and 1, the first of which is not scored.
  const real two = static_cast<real>(std::log(2.0));
  const Tensor logits = Tensor::from({2, 2, 2}, std::vector<real>{0, two, 0, 0, 9, 9, two, 0});
  PositionLosses losses;
  losses.add(batch, logits);
  const std::vector<double> means = losses.means();
  ASSERT_EQ(means.size(), 2u);
  EXPECT_NEAR(means[0], std::log(3.0 / 2), 1e-7);
  EXPECT_NEAR(means[1], (std::log(2.0) + std::log(3.0)) / 2, 1e-7);
  batch.scored = {0, 1, 0, 1};
  PositionLosses none;
  none.add(batch, logits);
  EXPECT_TRUE(std::isnan(none.means()[0]));
}

TEST(Eval, says_the_loss_at_each_place_of_longer_sequences_with_scaled_positions) {
  const test::TinyProject project;
  const Outcome trained = project.difftape({"train", "tiny.yaml", "--out", "run"});
  ASSERT_EQ(trained.exit, 0) << trained.err;
  const auto eval = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"eval", "run", "--positions", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = project.difftape(words);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return system::parse_json(outcome.out);
  };
  const auto plain = eval({}),
             longer = eval({"--set", "data.seq_len=64", "--set", "model.max_seq_len=64"});
  const std::vector<double> losses = plain["loss_by_position"];
  double sum = 0;
  for (const double loss : losses) sum += loss;
  EXPECT_NEAR(sum / static_cast<double>(losses.size()), plain["loss"].get<double>(), 1e-5);
  EXPECT_EQ(longer["loss_by_position"].size(), 64u);
  const auto yarn = eval({"--set", "data.seq_len=64", "--set", "model.max_seq_len=64", "--set",
                          "model.rope_scaling={rope_type: yarn, factor: 4}"});
  EXPECT_NE(yarn["loss"], longer["loss"]);
  const Outcome table = project.difftape({"eval", "run", "--positions"});
  EXPECT_THAT(table.out, HasSubstr("\npositions    loss\n0 "));
  EXPECT_THAT(table.out, HasSubstr("\n2 to 3 "));
}

}  // namespace
}  // namespace difftape::run
