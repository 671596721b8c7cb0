#include "train/run/records/metrics_difference.h"

#include "tests/support/test.h"

namespace difftape::run {
namespace {

using testing::FieldsAre;
using testing::IsNan;
using Table = MetricsTable;

TEST(MetricsDifference, finds_the_first_step_at_which_one_bit_differs) {
  const double next = std::nextafter(2.5, 3.0);
  const MetricsDifference found =
      difference(Table({{1, 2, 3}, {{"train/loss", {3, 2.5, 1}}, {"optim/lr", {1, 1, 1}}}}),
                 Table({{1, 2, 3}, {{"train/loss", {3, next, 2}}, {"optim/lr", {1, 1, 1}}}}));
  EXPECT_THAT(found.metrics, ElementsAre(FieldsAre("train/loss", 2, 2.5, next)));
  EXPECT_FALSE(found.same_numbers());
  EXPECT_EQ(found.common_steps, 3);
}

TEST(MetricsDifference, distinguishes_minus_zero_and_equates_nan) {
  EXPECT_THAT(difference(Table({{1}, {{"train/loss", {0.0}}, {"optim/grad_norm", {kNaN}}}}),
                         Table({{1}, {{"train/loss", {-0.0}}, {"optim/grad_norm", {kNaN}}}}))
                  .metrics,
              ElementsAre(FieldsAre("train/loss", 1, 0.0, -0.0)));
}

TEST(MetricsDifference, is_sorted_by_step_then_by_the_registry) {
  const MetricsDifference found = difference(Table({{5, 6},
                                                    {{"z", {1, 2}},
                                                     {"b", {1, 2}},
                                                     {"train/loss", {1, 2}},
                                                     {"act/max/0", {1, 2}},
                                                     {"moe/load/0/3", {1, 2}}}}),
                                             Table({{5, 6},
                                                    {{"z", {1, 3}},
                                                     {"b", {1, 3}},
                                                     {"train/loss", {1, 3}},
                                                     {"act/max/0", {0, 3}},
                                                     {"moe/load/0/3", {1, 7}}}}));
  EXPECT_THAT(found.metrics,
              ElementsAre(FieldsAre("act/max/0", 5, 1, 0), FieldsAre("train/loss", 6, 2, 3),
                          FieldsAre("moe/load/0/3", 6, 2, 7), FieldsAre("b", 6, 2, 3),
                          FieldsAre("z", 6, 2, 3)));
}

TEST(MetricsDifference, compares_the_steps_that_both_logged) {
  const MetricsDifference found = difference(Table({{1, 2, 4, 5}, {{"train/loss", {1, 2, 4, 5}}}}),
                                             Table({{2, 3, 4}, {{"train/loss", {2, 9, 4}}}}));
  EXPECT_THAT(found.metrics, IsEmpty());
  EXPECT_EQ(found.common_steps, 2);
  EXPECT_EQ(found.only_in_a, 2);
  EXPECT_EQ(found.only_in_b, 1);
  EXPECT_FALSE(found.same_numbers());
}

TEST(MetricsDifference, distinguishes_nan_from_unlogged_metrics) {
  const MetricsDifference found =
      difference(Table({{1, 2}, {{"train/loss", {2, kNaN}}, {"val/loss", {kNaN, 3}}}}),
                 Table({{1, 2}, {{"train/loss", {2, 3}}, {"val/loss", {2, kNaN}}}}));
  EXPECT_THAT(found.metrics, ElementsAre(FieldsAre("train/loss", 2, IsNan(), 3)));
}

TEST(MetricsDifference, names_metrics_of_one_run_and_leaves_out_speeds) {
  const MetricsDifference found =
      difference(Table({{1}, {{"throughput/mfu", {1}}, {"train/z_loss", {1}}}}),
                 Table({{1}, {{"throughput/mfu", {2}}, {"attn/lambda/0", {1}}}}));
  EXPECT_THAT(found.metrics, IsEmpty());
  EXPECT_THAT(found.metrics_of_a, ElementsAre("train/z_loss"));
  EXPECT_THAT(found.metrics_of_b, ElementsAre("attn/lambda/0"));
}

TEST(MetricsDifference, does_not_depend_on_the_order_of_the_runs) {
  const Table full = Table({{1}, {{"throughput/mfu", {1}}, {"train/loss", {2}}}}),
              other = Table({{1}, {{"train/loss", {2}}}});
  EXPECT_TRUE(difference(full, other).same_numbers());
  EXPECT_TRUE(difference(other, full).same_numbers());
}

TEST(MetricsDifference, groups_logged_names) {
  for (const auto& [name, family] :
       std::map<std::string, std::string>{{"train/loss", "train/loss"},
                                          {"optim/grad_norm", "optim/grad_norm"},
                                          {"optim/grad_norm/lm_head.weight", "optim/grad_norm/..."},
                                          {"attn/lambda/3", "attn/lambda/..."},
                                          {"moe/load/3/1", "moe/load/..."},
                                          {"val/loss/code", "val/loss/..."},
                                          {"other/metric", "other/metric"},
                                          {"unknown/3", "unknown/3"}})
    EXPECT_EQ(family_of(name), family);
}

}  // namespace
}  // namespace difftape::run
