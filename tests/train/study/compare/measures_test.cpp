// Measures of runs that need more than one metric.
#include "train/study/compare/measures.h"

#include "core/random.h"
#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/cells.h"
#include "train/study/compare/quantities.h"

namespace difftape::study {
namespace {

/// Returns the sensitivity for final losses of one seed at 1e-3, 1e-2, ...; NaN: diverged.
double sensitivity(const std::vector<double>& losses) {
  std::vector<Row> runs;
  double lr = 1e-4;
  for (const double loss : losses) {
    Result result{.lr = lr *= 10, .loss = loss};
    if (std::isnan(loss)) result.state = run::RunState::diverged;
    runs.push_back(record(result));
  }
  return value_of(pointers(runs), quantity("lr_sensitivity"));
}

TEST(LrSensitivity, counts_runs_that_diverged_or_got_worse_with_the_loss_of_a_uniform_guess) {
  EXPECT_NEAR(sensitivity({2.2, 2.0, 2.5}), (0.2 + 0 + 0.5) / 3, 1e-12);
  EXPECT_NEAR(sensitivity({2.2, 2.0, std::nan("")}), (0.2 + 0 + std::log(256.0) - 2.0) / 3, 1e-12);
  EXPECT_NEAR(sensitivity({2.2, 2.0, 9}), (0.2 + 0 + std::log(256.0) - 2.0) / 3, 1e-12);
  EXPECT_THROW(sensitivity({std::nan(""), std::nan("")}), NoNumbers);
}

TEST(FinalLoss, is_capped_at_the_loss_of_a_uniform_guess_which_diverged_runs_get) {
  EXPECT_EQ(record({.loss = 3}).number("final_loss"), 3);
  EXPECT_EQ(record({.loss = 9}).number("final_loss"), std::log(256.0));
  EXPECT_EQ(record({.state = run::RunState::diverged}).number("final_loss"), std::log(256.0));
}

/// Returns a run whose gradient norm is 1 with a little noise, and with spikes at these steps.
LoadedRun with_spikes(Index steps, const std::vector<Index>& at, Index done = 0) {
  const RandomStream noise(1, "noise");
  LoadedRun run = loaded_run({.config = {{"train.steps", std::to_string(steps)}}});
  run.metrics = {};
  run.status.steps = steps;
  run.status.step = done > 0 ? done : steps;
  for (Index step = 1; step <= run.status.step; ++step) {
    const bool spike = std::ranges::count(at, step) > 0;
    run.metrics.step.push_back(static_cast<double>(step));
    run.metrics.columns["optim/grad_norm"].set(
        run.metrics.step.size() - 1,
        1 + 0.01 * noise.normal(static_cast<std::uint64_t>(step)) + (spike ? 10 : 0));
  }
  return run;
}

TEST(SpikeCount, skips_the_first_tenth_of_the_steps) {
  EXPECT_EQ(measures::spike_count(with_spikes(1000, {90, 100, 101, 500}), "optim/grad_norm"), 2);
}

TEST(SpikeCount, is_scaled_to_the_whole_length_of_a_diverged_run) {
  const LoadedRun run = with_spikes(1000, {200, 400}, 550);
  EXPECT_DOUBLE_EQ(measures::spike_count(run, "optim/grad_norm"), 2 * 900 / 450.0);
  EXPECT_TRUE(std::isnan(measures::spike_count(with_spikes(1000, {}, 100), "optim/grad_norm")));
}

TEST(SpikeFraction, counts_scored_steps_only) {
  const auto fraction = [](Index steps, Index done) {
    return measures::spike_fraction(with_spikes(steps, {50, 200, 400}, done), "optim/grad_norm");
  };
  EXPECT_DOUBLE_EQ(fraction(1000, 1000), 2 / 900.0);
  EXPECT_DOUBLE_EQ(fraction(1000, 550), 2 / 450.0) << "of a diverged run up to there";
  EXPECT_DOUBLE_EQ(fraction(500, 500), 2 / 436.0) << "the first verdict is on step 65";
  EXPECT_TRUE(std::isnan(fraction(1000, 100)));
  EXPECT_TRUE(std::isnan(fraction(60, 60)));
}

TEST(SpikeScore, is_the_percentage_of_all_steps) {
  // Noise of 0.01 and spikes of 10: after two of them in 600 steps, the third is 17 deviations off.
  EXPECT_DOUBLE_EQ(measures::spike_score(with_spikes(1000, {200, 400, 600}), "optim/grad_norm"),
                   0.3);
}

TEST(Tail, is_the_99th_percentile_over_the_median_after_the_first_tenth) {
  std::vector<Index> at(100);
  std::iota(at.begin(), at.end(), 1);
  EXPECT_NEAR(measures::tail(with_spikes(1000, at), "optim/grad_norm"), 1.023, 0.005);
  for (Index& step : at) step += 500;
  EXPECT_NEAR(measures::tail(with_spikes(1000, at), "optim/grad_norm"), 11, 0.1);
}

/// Returns a run with gradient norm step^power and these learning rates.
LoadedRun growing(Index steps, double power, const std::function<double(Index)>& lr) {
  LoadedRun run = with_spikes(steps, {});
  for (Index step = 1; step <= steps; ++step) {
    const auto row = static_cast<std::size_t>(step - 1);
    run.metrics.columns["optim/lr"].set(row, lr(step));
    run.metrics.columns["optim/grad_norm"].set(row, std::pow(static_cast<double>(step), power));
  }
  return run;
}

TEST(LateGrowth, uses_the_steps_before_the_learning_rate_falls) {
  const auto falls_at_800 = [](Index step) { return step <= 800 ? 0.01 : 0.001; };
  LoadedRun run = growing(1000, 1.5, falls_at_800);
  for (std::size_t i = 800; i < 1000; ++i) run.metrics.columns["optim/grad_norm"].set(i, 1e9);
  EXPECT_NEAR(measures::late_growth(run, "optim/grad_norm"), 1.5, 1e-9);
  EXPECT_LT(measures::late_variation(run, "optim/grad_norm"), 1);
  const auto falls_at_once = [](Index step) { return 1.0 / static_cast<double>(step); };
  EXPECT_TRUE(
      std::isnan(measures::late_growth(growing(1000, 1.5, falls_at_once), "optim/grad_norm")));
  EXPECT_TRUE(
      std::isnan(measures::late_variation(growing(1000, 1.5, falls_at_once), "optim/grad_norm")));
}

TEST(LayerNumbers, come_from_the_last_step_and_only_from_layers) {
  const Row run = record({.last = {{"attn/logit_max/0", 3},
                                   {"attn/logit_max/11", 7},
                                   {"attn/logit_max/x", 99},
                                   {"attn/logit_maximum/0", 99},
                                   {"act/kurtosis/0", 1},
                                   {"act/kurtosis/1", 2}},
                          .first = {{"attn/logit_max/0", 50}}});
  EXPECT_EQ(run.number("attention_logit"), 7);
  EXPECT_EQ(run.number("kurtosis"), 1.5);
  EXPECT_TRUE(std::isnan(run.number("hidden_state")));
}

const std::string kReadme = DIFFTAPE_TEST_SOURCE_DIR "/docs/quantities.md";

/// Returns the tables of a quantity: "runs, study, index".
std::string places(const Quantity& quantity) {
  std::string text;
  const auto add = [&](bool there, const char* name) {
    if (there) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(quantity.column.tables & kRunTable, "runs");
  add(quantity.column.tables & kStudyTable, "study");
  return text;
}

TEST(Quantities, match_the_generated_table) {
  std::string table =
      "| quantity | of | unit | what | compared by | in |\n|---|---|---|---|---|---|\n";
  for (const Quantity& each : quantities()) {
    table += fmt::format("| `{}` | `{}` | {} | {} | {} | {} |\n", each.name, each.metric, each.unit,
                         each.what, what_differs(each.scale), places(each));
  }
  EXPECT_NE(contents(kReadme).find("\n\n" + table), std::string::npos)
      << kReadme << " must contain, after an empty line:\n"
      << table;
}

TEST(Quantities, have_unique_names_and_labels_a_unit_and_a_sentence) {
  std::set<std::string> names, labels;
  for (const Quantity& each : quantities()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_FALSE(std::string(each.unit).empty() || std::string(each.what).empty()) << each.name;
    EXPECT_EQ(each.of_run == nullptr, each.is_of_seed()) << each.name;
    EXPECT_TRUE(labels.insert(each.label).second) << each.label;
    EXPECT_TRUE(each.of_run != nullptr || each.column.tables == kNoTable) << each.name;
  }
  EXPECT_THROW(quantity("val loss"), std::logic_error);
  EXPECT_EQ(find_quantity("val loss"), nullptr);
}

TEST(Quantities, are_compared_on_an_invertible_axis) {
  EXPECT_EQ(on_scale(4, Scale::difference), 4);
  EXPECT_DOUBLE_EQ(on_scale(4, Scale::ratio), std::log(4));
  EXPECT_EQ(on_scale(4, Scale::root), 2);
  for (const Scale scale : {Scale::difference, Scale::ratio, Scale::root}) {
    EXPECT_DOUBLE_EQ(from_scale(on_scale(4, scale), scale), 4);
  }
}

TEST(Quantities, are_averaged_as_readers_expect) {
  const auto mean = [](Scale scale) {
    return mean_from_scale(std::vector{on_scale(4, scale), on_scale(16, scale)}, scale);
  };
  EXPECT_DOUBLE_EQ(mean(Scale::difference), 10);
  EXPECT_DOUBLE_EQ(mean(Scale::ratio), 8) << "the geometric mean";
  EXPECT_DOUBLE_EQ(mean(Scale::root), 10) << "of the counts, not of their roots (9)";
}

}  // namespace
}  // namespace difftape::study
