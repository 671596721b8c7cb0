#include "train/study/page/sections.h"

#include <rapidcheck/gtest.h>

#include "tests/train/study/compare/synthetic_run.h"
#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/measures.h"

namespace difftape::study::page {
namespace {

using test::write_run;
using test::write_sweep;

Row run_with(const std::vector<double>& losses, LoadedRun run = {}) {
  for (std::size_t i = 0; i < losses.size(); ++i) run.metrics.step.push_back(double(i + 1));
  run.metrics.columns["train/loss"] = losses;
  return row_of(run);
}

TEST(SeedCurve, is_the_mean_of_the_remaining_seeds_with_their_extremes) {
  const Row a = run_with({4, 3, 2}), b = run_with({6, NAN, NAN}), c = run_with({5, 7});
  const SeedCurve curve = seed_curve({1e-3, {&a, &b, &c}}, "train/loss");
  EXPECT_EQ(curve.step, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(curve.mean, (std::vector<double>{5, 5, 2}));
  EXPECT_EQ(curve.low, (std::vector<double>{4, 3, 2}));
  EXPECT_EQ(curve.high, (std::vector<double>{6, 7, 2}));
  EXPECT_TRUE(curve.banded);
}

TEST(SeedCurve, keeps_the_peak_of_one_seed_when_it_is_thinned) {
  std::vector<double> flat(5000, 2.0), peak = flat, dip = flat;
  peak[3456] = 9;
  dip[1234] = 0.5;
  const Row a = run_with(peak), b = run_with(dip);
  const SeedCurve all = seed_curve({1e-3, {&a, &b}}, "train/loss"), thin = decimate(all, 100);
  EXPECT_LE(thin.step.size(), 102u);
  EXPECT_EQ(*std::max_element(thin.high.begin(), thin.high.end()), 9);
  EXPECT_EQ(*std::min_element(thin.low.begin(), thin.low.end()), 0.5);
  EXPECT_EQ(thin.step.front(), 1);
  EXPECT_EQ(thin.step.back(), 5000);
  EXPECT_EQ(decimate(all, 5000).step.size(), 5000u);
}

TEST(SeedCurve, marks_spikes_of_every_seed_at_their_own_values) {
  std::vector<double> noisy;
  for (int i = 0; i < 400; ++i) noisy.push_back(2 + 0.01 * (i % 7));
  std::vector<double> early = noisy, late = noisy;
  early[200] = 8;
  late[300] = 9;
  const Row a = run_with(late), b = run_with(early);
  const Series marks = seed_spikes({1e-3, {&a, &b}}, "train/loss");
  EXPECT_EQ(marks.step, (std::vector<double>{201, 301}));
  EXPECT_EQ(marks.value, (std::vector<double>{8, 9}));
}

TEST(SeedCurve, marks_counted_spikes_only) {
  std::vector<double> losses;
  for (int i = 0; i < 1000; ++i) losses.push_back(2 + 0.01 * (i % 7));
  losses[89] = losses[299] = 8;
  losses[399] = std::numeric_limits<double>::infinity();
  LoadedRun thousand;
  thousand.status.steps = 1000;
  const Row run = run_with(losses, thousand);
  const Series marks = seed_spikes({1e-3, {&run}}, "train/loss");
  EXPECT_EQ(marks.step, (std::vector<double>{300}))
      << "not in the first tenth, and no infinity, which has no place in a chart";
  EXPECT_EQ(run.number("loss_spikes"), 2) << "with the infinity";
}

TEST(Selection, shows_the_learning_rate_where_the_baseline_is_best) {
  const ScratchDir dir;
  const std::vector<Row> runs = collect_runs(write_sweep(dir.path(), 7, 2, 100)).runs;
  const Study study = make_study(runs);
  EXPECT_EQ(best_lr(study, lr_curves(study)), 0.003);
  EXPECT_EQ(study.lrs().size(), 7u);
  const std::vector<LrCurve> curves = lr_curves(study);
  EXPECT_EQ(shown_condition({study, curves, 0.003, {}}, study.arms[1])->runs.size(), 2u);
  EXPECT_EQ(shown_condition({study, curves, 0.004, {}}, study.arms[1]), nullptr);
  ASSERT_EQ(levels_of({.bound = run::Bound::loss}, study).size(), 1u);
}

TEST(Selection, shows_the_learning_rate_where_the_fewest_runs_diverged) {
  const std::vector<Row> runs =
      records({{.lr = 1e-3, .loss = 5.4},
               {.lr = 1e-3, .seed = 2, .loss = 5.4},
               {.lr = 1e-2, .loss = 2.3},
               {.lr = 1e-2, .seed = 2, .state = run::RunState::diverged}});
  const Study study = make_study(runs);
  EXPECT_EQ(best_lr(study, lr_curves(study)), 1e-3);
}

TEST(Selection, shows_arms_together_at_their_own_rates_if_they_share_none) {
  std::vector<Result> results;
  for (const double times : {1.0, 4.0}) {
    for (const int seed : {1, 2}) {
      results.push_back({.arm = "softmax", .lr = times * 1e-3, .seed = seed, .loss = 2 + times});
      results.push_back({.arm = "v2", .lr = times * 3e-3, .seed = seed, .loss = 1 + times});
    }
  }
  const std::vector<Row> runs = records(results);
  const Study study = make_study(runs);
  const std::vector<LrCurve> curves = lr_curves(study);
  const Input input{study, curves, best_lr(study, curves), {}};
  EXPECT_EQ(shown_condition(input, study.arms[0])->lr, 1e-3);
  EXPECT_EQ(shown_condition(input, study.arms[1])->lr, 3e-3);
  EXPECT_EQ(at_lr(input), " at each arm's own learning rate");
}

TEST(Selection, an_arm_of_one_learning_rate_is_shown_at_every_other) {
  const std::vector<Row> runs = records({{}});
  const Study study = make_study(runs);
  const std::vector<LrCurve> curves = lr_curves(study);
  EXPECT_EQ(shown_condition({study, curves, 0.5, {}}, study.arms[0]), &study.arms[0].conditions[0]);
}

TEST(Levels, are_shown_if_equal_in_every_run) {
  const ScratchDir dir;
  const auto path = dir / "a";
  std::vector<Row> runs = {
      load_run(write_run(path, {.steps = 20, .best_loss = 1.5})),
      load_run(write_run(dir / "b", {.name = "b", .steps = 20, .best_loss = 1.6}))};
  const CurveChart loss{.bound = run::Bound::loss}, other{};
  const std::vector<Level> one = levels_of(loss, make_study(std::span(runs).first(1)));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].name, "best achievable");
  EXPECT_EQ(one[0].y, 1.5);
  EXPECT_TRUE(levels_of(other, make_study(std::span(runs).first(1))).empty());
  EXPECT_TRUE(levels_of(loss, make_study(runs)).empty());
}

TEST(TrainingClock, adds_up_the_time_of_every_step_of_the_longest_run) {
  LoadedRun of_two, of_four;
  of_two.status.tokens_per_step = of_four.status.tokens_per_step = 100;
  of_two.metrics.columns["throughput/tokens_per_sec"] = {1, 1};
  of_four.metrics.columns["throughput/tokens_per_sec"] = {50, 100, NAN, 200};
  const Row early = run_with({1, 1}, of_two), run = run_with({1, 1, 1, 1}, of_four);
  const Series clock = training_clock({1e-3, {&early, &run}});
  EXPECT_EQ(clock.step, (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(clock.value, (std::vector<double>{2, 3, 4})) << "two steps of 100 tokens at the end";
  const Row silent = run_with({1});
  EXPECT_TRUE(training_clock({1e-3, {&silent}}).step.empty());
}

RC_GTEST_PROP(Decimate, keeps_ends_and_extremes_and_stays_within_the_budget,
              (int first, std::vector<int> values)) {
  values.push_back(first);  // never empty
  const auto budget = *rc::gen::inRange<std::size_t>(2, 60);
  Series whole;
  for (const int value : values) {
    whole.step.push_back(static_cast<double>(whole.step.size()));
    whole.value.push_back(value);
  }
  const Series kept = decimate(whole, budget);
  RC_ASSERT(kept.step.size() <= budget + 2);
  RC_ASSERT(kept.step.front() == whole.step.front() && kept.step.back() == whole.step.back());
  RC_ASSERT(std::ranges::max(kept.value) == std::ranges::max(whole.value));
  RC_ASSERT(std::ranges::min(kept.value) == std::ranges::min(whole.value));
  RC_ASSERT(std::ranges::adjacent_find(kept.step, std::greater_equal<>()) == kept.step.end());
  for (std::size_t i = 0; i < kept.step.size(); ++i) {
    RC_ASSERT(whole.value[static_cast<std::size_t>(kept.step[i])] == kept.value[i]);
  }
}

TEST(Decimate, leaves_a_short_curve_alone) {
  const Series whole{{1, 2, 3}, {3, 1, 2}};
  EXPECT_EQ(decimate(whole, 3).step, whole.step);
}

/// A run that also logged metrics of layers, experts and parameters.
Row logging() {
  LoadedRun run = loaded_run({});
  const std::size_t rows = run.metrics.step.size();
  for (const char* name : {"attn/entropy/0", "attn/entropy/2", "attn/entropy/10",
                           "optim/update_ratio/lm_head.weight", "val/old_name"}) {
    run.metrics.columns[name] = std::vector<double>(rows, 0.5);
  }
  for (const char* name : {"moe/load/0/10", "moe/load/0/9", "moe/load/1/2"})
    run.metrics.columns[name] = std::vector<double>(rows, 0.5);
  return row_of(run);
}

template <class T>
std::vector<std::string> names_of(const std::vector<T>& all) {
  std::vector<std::string> names;
  for (const T& each : all) names.push_back(each.name);
  return names;
}

TEST(Charts, are_the_logged_metrics_with_a_picture) {
  const std::vector<Row> runs{logging()};
  const Charts found = select_charts(make_study(runs));
  EXPECT_THAT(names_of(found.curves), ElementsAre("train/loss", "val/loss", "optim/grad_norm"));
  EXPECT_EQ(found.curves[0].title, "Training loss");
  EXPECT_EQ(found.curves[0].caption, "nats per byte");
  EXPECT_THAT(names_of(found.maps), testing::Contains("attn/logit_max"));
}

TEST(MapRows, are_layers_or_experts_in_the_order_of_their_numbers) {
  const run::MetricsTable metrics = logging().curves().metrics;
  EXPECT_THAT(names_of(map_rows(metrics, "attn/entropy")), ElementsAre("0", "2", "10"));
  EXPECT_THAT(names_of(map_rows(metrics, "moe/load")), ElementsAre("0/9", "0/10", "1/2"));
  EXPECT_TRUE(map_rows(metrics, "attn/lambda").empty());
}

}  // namespace
}  // namespace difftape::study::page
