#include "train/run/data/task_accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace difftape::run {
namespace {

using testing::ElementsAre;
using testing::Pair;

/// Two rows of three targets over four tokens; the first target of a row is not scored.
Batch batch_of_six() {
  Batch batch{2, 3, {0, 9, 1, 2, 0, 9, 3, 0}};
  batch.scored = {0, 1, 1, 0, 1, 1};
  batch.answers = {{0, {1, 3}, 0, 0}, {1, {0, 2}, 0, 1}, {1, {2, 3}, 1, 1}};
  return batch;
}

/// Logits whose largest is that of the target, plus what a test changes.
Tensor right_logits() {
  Tensor logits = Tensor::zeros({2, 3, 4});
  const Index targets[] = {0, 1, 2, 0, 3, 0};
  for (Index i = 0; i < 6; ++i) logits.row(i)[targets[i]] = 1;
  return logits;
}

const AccuracyGrid kGrid{{"a", "b"}, {"x", "y"}, true};

TEST(TaskAccuracy, counts_scored_targets_answers_and_cells) {
  TaskAccuracy score(kGrid);
  Tensor logits = right_logits();
  logits.row(4)[0] = 2;
  score.add(batch_of_six(), logits);
  EXPECT_THAT(score.metrics(),
              ElementsAre(Pair("val/accuracy", 0.75), Pair("task/exact_match", 2.0 / 3),
                          Pair("task/accuracy/a/x", 1), Pair("task/accuracy/a/y", 0),
                          Pair("task/accuracy/b/y", 1)));
  score.add(batch_of_six(), right_logits());
  EXPECT_EQ(score.metrics()[0].second, 7.0 / 8);
}

TEST(TaskAccuracy, an_answer_is_right_only_if_all_its_scored_targets_are) {
  TaskAccuracy score(kGrid);
  Tensor logits = right_logits();
  logits.row(2)[3] = 2;
  score.add(batch_of_six(), logits);
  EXPECT_THAT(score.metrics(), testing::Contains(Pair("task/accuracy/a/x", 0)));
}

TEST(TaskAccuracy, ties_and_numbers_that_are_none_are_misses) {
  for (const real other : {real(1), std::numeric_limits<real>::quiet_NaN()}) {
    TaskAccuracy score(kGrid);
    Tensor logits = right_logits();
    logits.row(1)[0] = other;
    score.add(batch_of_six(), logits);
    EXPECT_EQ(score.metrics()[0].second, 0.75);
  }
}

TEST(TaskAccuracy, without_a_grid_is_the_accuracy_alone) {
  TaskAccuracy score(AccuracyGrid{});
  Batch batch = batch_of_six();
  batch.answers.clear();
  score.add(batch, right_logits());
  EXPECT_THAT(score.metrics(), ElementsAre(Pair("val/accuracy", 1)));
}

}  // namespace
}  // namespace difftape::run
