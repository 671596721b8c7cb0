#include "train/study/compare/run_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace difftape::study {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;

RunRecord logged(run::MetricsTable metrics, nlohmann::ordered_json env = {}) {
  env.update({{"command", {"difftape"}}});
  env["config"].update({{"optim.lr", "0.01"}, {"run.seed", "1"}});
  return make_record("run", {}, std::move(env), std::move(metrics));
}

TEST(RunDifference, of_configurations_and_environments_has_both_values_or_that_there_is_none) {
  const RunDifference found = difference(
      logged({}, {{"build", {{"commit", "x"}, {"version", "1"}}},
                  {"machine", {{"threads", 2}}},
                  {"config", {{"train.steps", "5"}, {"model.d_model", "8"}, {"gone", "1"}}}}),
      logged({}, {{"build", {{"commit", "y"}, {"version", "1"}}},
                  {"machine", {{"threads", 4}, {"cpu", "z"}}},
                  {"config", {{"train.steps", "6"}, {"model.d_model", "8"}}}}));
  EXPECT_THAT(found.config, ElementsAre(FieldsAre("train.steps", "5", "6"),
                                        FieldsAre("gone", "1", std::nullopt)));
  EXPECT_THAT(found.environment, ElementsAre(FieldsAre("build/commit", "x", "y"),
                                             FieldsAre("machine/threads", "2", "4"),
                                             FieldsAre("machine/cpu", std::nullopt, "z")));
  EXPECT_TRUE(found.same_numbers());
}

}  // namespace
}  // namespace difftape::study
