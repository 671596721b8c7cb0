#include "train/study/compare/claims/output.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "tests/train/study/compare/claims/simulated_study.h"

namespace difftape::study {
namespace {

using test::record;
using test::Result;
using testing::HasSubstr;

TEST(Claims, have_names_of_their_own_a_sentence_and_a_source) {
  std::set<std::string> ids;
  for (const Claim& claim : claims()) {
    EXPECT_TRUE(ids.insert(claim.id).second) << claim.id;
    EXPECT_FALSE(std::string(claim.sentence).empty() || std::string(claim.source).empty());
    EXPECT_FALSE(claim.tests.empty());
    for (const ClaimTest& test : claim.tests) {
      EXPECT_TRUE((test.quantity->of_run == nullptr) != (test.quantity->of_seed == nullptr));
    }
  }
}

TEST(Claims, are_supported_where_the_effect_is_large) {
  const std::vector<RunRecord> runs =
      simulate({.loss = {{"v2", -0.3}, {"crossed", 0.2}, {"raw", 0.1}, {"none", 0.05}},
                .at_large_rate = {{"crossed", 2}, {"raw", 1}, {"v1_no_norm", 1}},
                .spikes = {{"v1", -50}, {"v2", -50}},
                .growth = {{"v1", 3}},
                .scale = {{"v1", -3}, {"v2", -3}, {"none", -9}},
                .noise = 1e-4,
                .seeds = 5});
  const std::vector<ClaimResult> evaluated = evaluate(make_study(runs));
  for (const char* id :
       {"v2_loss_best",     "v2_loss_equal",   "v2_loss_spikes", "v2_grad_spikes",
        "v1_loss_spikes",   "v1_grad_spikes",  "v1_late_growth", "v1_top_logit",
        "v1_top_hidden",    "v1_kurtosis",     "v2_top_logit",   "v2_top_hidden",
        "v2_kurtosis",      "v2_sink_rate",    "v2_first_token", "ablation_order_sensitivity",
        "cross_group_loss", "no_sigmoid_loss", "no_lambda_loss", "no_lambda_context_rms"}) {
    EXPECT_EQ(result_of(evaluated, id).verdict, Verdict::supported)
        << id << ": " << measured_words(result_of(evaluated, id));
  }
  EXPECT_EQ(verdict_text(result_of(evaluated, "v1_norm")), "supported: as the V1 paper says");
  EXPECT_EQ(verdict_text(result_of(evaluated, "v2_late_growth")),
            "no difference detected: not contradicted");
}

TEST(Claims, are_not_supported_where_the_opposite_is_significant) {
  const std::vector<RunRecord> runs = simulate({.loss = {{"v2", 0.3}},
                                                .at_large_rate = {{"v1", 1}},
                                                .growth = {{"v2", 3}},
                                                .scale = {{"v2", 3}},
                                                .noise = 1e-4,
                                                .seeds = 5});
  EXPECT_EQ(verdict(runs, "v2_loss_best"), "not supported");
  EXPECT_EQ(verdict(runs, "v2_late_growth"), "not supported");
  EXPECT_EQ(verdict(runs, "v2_sink_rate"), "not supported");
  EXPECT_EQ(verdict(runs, "v1_norm"), "not supported: the opposite holds, as the V2 article says");
}

TEST(Claims, without_an_effect_are_seldom_supported) {
  int studies = 0, wrong = 0, tests = 0, raw = 0;
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    const std::vector<RunRecord> runs = simulate({.seeds = 3, .trial = trial});
    bool any = false;
    for (const ClaimResult& each : evaluate(make_study(runs))) {
      any = any || each.verdict == Verdict::supported || each.verdict == Verdict::not_supported;
      for (const TestResult& test : each.tests) {
        tests += test.reason.empty() ? 1 : 0;
        raw += test.comparison.paired.p < 0.05 ? 1 : 0;
      }
    }
    ++studies;
    wrong += any ? 1 : 0;
  }
  EXPECT_GT(tests, 25 * studies) << "nearly every claim was tested";
  EXPECT_GT(raw, tests / 50) << "single tests are wrong now and then";
  EXPECT_LE(wrong, studies / 20) << "in one study of 20 a verdict may be wrong";
}

TEST(Claims, are_not_tested_with_fewer_than_three_seeds_but_show_their_numbers) {
  const Effects strong{.loss = {{"v2", -0.3}}, .noise = 1e-4};
  for (const auto& [seeds, reason] :
       {std::pair(1, "not tested: one seed: no interval"), {2, "not tested: 2 seeds, need 3"}}) {
    Effects effects = strong;
    effects.seeds = seeds;
    const std::vector<RunRecord> runs = simulate(effects);
    const ClaimResult loss = result_of(evaluate(make_study(runs)), "v2_loss_best");
    EXPECT_EQ(verdict_text(loss), reason);
    EXPECT_THAT(measured_words(loss), HasSubstr("difference -0.2999"));
    EXPECT_TRUE(std::isnan(loss.tests[0].adjusted_p));
  }
}

TEST(Claims, say_which_metric_or_arm_is_missing) {
  const std::vector<RunRecord> silent = simulate({.metrics = false});
  EXPECT_EQ(verdict(silent, "v2_sink_rate"), "not tested: no run logged attn/sink_rate");
  EXPECT_EQ(verdict(silent, "no_lambda_context_rms"), "not tested: no run logged attn/context_rms");
  const std::vector<RunRecord> alone = test::records({{}, {.seed = 2}, {.seed = 3}});
  EXPECT_EQ(verdict(alone, "v2_loss_best"), "not tested: no arm is V2 (kind: diff_v2)");
  EXPECT_EQ(verdict(alone, "v1_norm"), "not tested: no arm is V1 without subln (subln: false)");
  const std::vector<RunRecord> half = test::records(
      {{.last = {{"attn/sink_rate/0", 0.5}}}, {.arm = "v2", .attention = kArms.at("v2")}});
  EXPECT_EQ(verdict(half, "v2_sink_rate"), "not tested: no run of v2 logged attn/sink_rate");
}

TEST(Claims, compare_arms_that_differ_in_attention_alone) {
  const std::vector<RunRecord> runs =
      test::records({{.config = {{"optim.clip_norm", "0.5"}}},
                     {.arm = "v2", .attention = kArms.at("v2")},
                     {.arm = "wide", .loss = 2.9, .config = {{"model.d_ff", "512"}}}});
  const Study study = make_study(runs);
  const ArmPair pair = find_pair(study, ArmRole::v2, ArmRole::softmax);
  ASSERT_NE(pair.arm, nullptr);
  EXPECT_EQ(pair.against->name, "wide") << "the size of the MLP may make up for parameters";
  const Study two = make_study({runs.data(), 2});
  EXPECT_EQ(find_pair(two, ArmRole::v2, ArmRole::softmax).reason,
            "v2 and softmax also differ in optim.clip_norm");
}

TEST(Claims, at_large_rates_start_at_the_best_rate_of_the_baseline_and_count_divergence) {
  std::vector<Result> results;
  for (const char* arm : {"base", "v2"}) {
    for (const double lr : {1e-3, 3e-3, 1e-2, 3e-2}) {
      for (const int seed : {1, 2, 3}) {
        Result run{.arm = arm, .attention = kArms.at(arm), .lr = lr, .seed = seed};
        run.loss = 2.3 + std::abs(std::log(lr / 3e-3));
        run.spike_score = arm == std::string("v2") ? 1 : 2 + 0.1 * seed + (lr < 3e-3 ? 100 : 0);
        if (lr == 3e-2 && (arm == std::string("base") || seed == 1))
          run.state = run::RunState::diverged;
        results.push_back(run);
      }
    }
  }
  const std::vector<RunRecord> runs = test::records(results);
  const std::vector<ClaimResult> evaluated = evaluate(make_study(runs));
  const Comparison spikes = result_of(evaluated, "v2_loss_spikes").tests[0].comparison;
  EXPECT_EQ(spikes.lrs, "at 2 of 3 learning rates");
  EXPECT_NEAR(spikes.against, 2.2, 1e-12);
  EXPECT_EQ(spikes.diverged, "; diverged: v2 1 of 9, base 3 of 9");
  const Comparison stable = result_of(evaluated, "v2_rates").tests[0].comparison;
  EXPECT_NEAR(stable.arm, (3 + 4 + 4) / 3.0, 1e-12);
  EXPECT_EQ(stable.against, 3);
}

TEST(Claims, with_all_runs_diverged_are_not_tested) {
  std::vector<Result> results;
  for (const char* arm : {"base", "v2"}) {
    for (const int seed : {1, 2, 3}) {
      results.push_back(
          {.arm = arm, .attention = kArms.at(arm), .seed = seed, .state = run::RunState::diverged});
    }
  }
  const std::vector<RunRecord> runs = test::records(results);
  const Study study = make_study(runs);
  EXPECT_EQ(verdict_table(evaluate(study)).rows.size(), claims().size());
  for (const ClaimResult& each : evaluate(study)) EXPECT_EQ(each.verdict, Verdict::not_tested);
  EXPECT_THAT(study_text(study, 100), HasSubstr("3 diverged at 12, 12, 12"));
}

TEST(Claims, a_difference_below_the_noise_floor_is_none) {
  std::vector<Result> results;
  for (const char* arm : {"base", "v2"}) {
    for (const int seed : {1, 2, 3, 4}) {
      Result run{.arm = arm, .attention = kArms.at(arm), .seed = seed, .loss = 2.3 + 0.1 * seed};
      if (arm == std::string("v2")) run.loss -= 0.01 + 1e-7 * (seed % 2);
      results.push_back(run);
    }
  }
  const std::vector<RunRecord> runs = test::records(results);
  const ClaimResult loss = result_of(evaluate(make_study(runs)), "v2_loss_best");
  EXPECT_LT(loss.tests[0].adjusted_p, 1e-6);
  EXPECT_EQ(verdict_text(loss), "no difference detected");
  EXPECT_THAT(measured_words(loss), HasSubstr("noise floor 0.1291"));
  EXPECT_THAT(measured_words(loss), HasSubstr("the published -0.02 to -0.03 lies outside"));
}

TEST(Claims, differences_that_only_rounding_spreads_are_not_significant) {
  std::vector<Result> results;
  const int spikes[2][3] = {{3, 4, 3}, {0, 1, 0}};
  for (const int arm : {0, 1}) {
    for (const int seed : {1, 2, 3}) {
      const char* name = arm == 0 ? "base" : "v2";
      results.push_back({.arm = name, .attention = kArms.at(name), .seed = seed});
      results.back().spike_score = 100.0 * spikes[arm][seed - 1] / 1000;
    }
  }
  const std::vector<RunRecord> runs = test::records(results);
  const ClaimResult found = result_of(evaluate(make_study(runs)), "v2_loss_spikes");
  EXPECT_EQ(found.tests[0].comparison.paired.p, 0.25);
  EXPECT_EQ(found.verdict, Verdict::not_significant);
}

TEST(Claims, no_more_than_is_supported_by_lower_and_contradicted_by_higher_alone) {
  const Effects calm{.growth = {{"v2", -3}}, .noise = 1e-4, .seeds = 5};
  EXPECT_EQ(verdict(simulate(calm), "v2_late_growth"), "supported");
  const Effects wild{.growth = {{"v2", 3}}, .noise = 1e-4, .seeds = 5};
  EXPECT_EQ(verdict(simulate(wild), "v2_late_growth"), "not supported");
}

TEST(Claims, of_the_loss_at_one_rate_count_as_one_test) {
  std::vector<Result> results;
  for (const char* arm : {"base", "v2"}) {
    for (const int seed : {1, 2, 3}) {
      results.push_back({.arm = arm, .attention = kArms.at(arm), .seed = seed});
      results.back().loss =
          2.3 + (arm == std::string("v2") ? -0.2 - 0.001 * seed : 0) + 0.01 * seed;
    }
  }
  const std::vector<RunRecord> runs = test::records(results);
  const std::vector<ClaimResult> evaluated = evaluate(make_study(runs));
  EXPECT_EQ(result_of(evaluated, "v2_loss_best").verdict, Verdict::supported);
  const ClaimResult equal = result_of(evaluated, "v2_loss_equal");
  EXPECT_THAT(verdict_text(equal), HasSubstr("one learning rate: the same test"));
  EXPECT_TRUE(std::isnan(equal.tests[0].adjusted_p)) << "it must not count in Holm's correction";
}

TEST(Verdicts, as_csv_have_a_line_a_test_with_all_digits) {
  const std::vector<RunRecord> runs = simulate({});
  const std::vector<ClaimResult> evaluated = evaluate(make_study(runs));
  const std::string csv = verdicts_csv(evaluated);
  EXPECT_TRUE(csv.starts_with(std::string(kVerdictsHeader) + "\n"));
  std::size_t tests = 0;
  for (const Claim& claim : claims()) tests += claim.tests.size();
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')), tests + 1);
  const ClaimResult sinks = result_of(evaluated, "v2_sink_rate");
  EXPECT_THAT(
      csv, HasSubstr(fmt::format("v2_sink_rate,sink rate,linear,v2,base,{},{},{}",
                                 sinks.tests[0].comparison.arm, sinks.tests[0].comparison.against,
                                 sinks.tests[0].comparison.paired.difference.mean)));
}

}  // namespace
}  // namespace difftape::study
