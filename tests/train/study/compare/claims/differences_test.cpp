// Claims that compare the difference of two arms with the difference of two others.
#include "tests/train/study/compare/claims/two_arms.h"
#include "train/study/compare/claims/output.h"

namespace difftape::study {
namespace {

/// Four arms: b - a exceeds d - c by 0.1 times the seed.
std::vector<Row> four_arms() {
  std::vector<Result> results;
  for (const int seed : {1, 2, 3}) {
    const double loss = 2 + 0.05 * seed * seed;
    results.push_back({.arm = "b", .seed = seed, .loss = loss});
    results.push_back({.arm = "a", .seed = seed, .loss = loss + 0.2 + 0.1 * seed});
    results.push_back({.arm = "d", .seed = seed, .loss = loss + 1});
    results.push_back({.arm = "c", .seed = seed, .loss = loss + 1 + 0.2});
    for (std::size_t i = results.size() - 4; i < results.size(); ++i) {
      results[i].last = {{"attn/logit_max/0", results[i].arm == "a" ? 6.0 : 2.0}};
    }
  }
  return records(results);
}

TEST(MeasureDifferences, are_compared_seed_by_seed) {
  const ClaimsFile loss =
      claims("    metric: val_loss\n    compared_with: {arm: c, reference: d}\n");
  const Measured found = measured(loss, four_arms());
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.arm, "a less b");
  EXPECT_EQ(found.reference, "c less d");
  EXPECT_NEAR(found.arm_mean, 0.4, 1e-12);
  EXPECT_NEAR(found.reference_mean, 0.2, 1e-12);
  EXPECT_NEAR(found.paired.difference.mean, 0.2, 1e-12);
  EXPECT_NEAR(found.a[2] - found.b[2], 0.3, 1e-12);
  const Measured ratio =
      measured(claims("    metric: attention_logit\n    compared_with: {arm: c, reference: d}\n"),
               four_arms());
  EXPECT_EQ(ratio.arm, "a over b");
  EXPECT_NEAR(ratio.paired.difference.mean, std::log(3), 1e-12) << "a ratio of ratios";
  const auto runs = four_arms();
  const JudgedClaims judged(loss, pointers(runs));
  EXPECT_THAT(numbers_text(judged.results.front()),
              HasSubstr("a less b +0.4000, c less d +0.2000; difference +0.2000"));
}

TEST(MeasureDifferences, need_two_that_differ) {
  const std::string with = "    compared_with: {arm: c, reference: d}\n";
  EXPECT_EQ(measured(claims("    metric: attention_logit\n" + with), four_arms()).failed_control,
            "")
      << "one of the two may be none";
  EXPECT_EQ(measured(claims("    metric: tokens_per_sec\n" + with), four_arms()).failed_control,
            "speed: both differences of every seed are equal");
}

TEST(MeasureDifferences, of_roots_are_not_squared) {
  const std::map<std::string, double> spikes = {{"a", 4}, {"b", 9}, {"c", 16}, {"d", 25}};
  auto runs = four_arms();
  for (Row& run : runs) {
    const auto at = &quantity("loss_spikes") - quantities().data();
    run.numbers[static_cast<std::size_t>(at)] = spikes.at(run.arm);
  }
  const Measured found = measured(
      claims("    metric: loss_spikes\n    compared_with: {arm: c, reference: d}\n"), runs);
  EXPECT_EQ(found.arm_mean, 2 - 3);
  EXPECT_EQ(found.reference_mean, 4 - 5);
  EXPECT_EQ(measured(claims("    metric: loss_spikes\n"), runs).arm_mean, 4);
}

TEST(MeasureDifferences, need_one_that_did_not_diverge_and_claims_before_both) {
  const ClaimsFile file =
      claims("    metric: final_loss\n    compared_with: {arm: c, reference: d}\n");
  const auto with = [&](std::string_view arms, run::RunState state, const std::string& stated) {
    auto runs = records({});
    for (const char* arm : {"a", "b", "c", "d"}) {
      const bool changed = arms.find(*arm) != std::string_view::npos;
      for (const int seed : {1, 2, 3}) {
        runs.push_back(record({.arm = arm,
                               .seed = seed,
                               .loss = 2 + 0.1 * seed * (*arm - 'a'),
                               .state = changed ? state : run::RunState::finished,
                               .config = {{"run.claims", changed ? stated : file.digest}}}));
      }
    }
    return measured(file, runs);
  };
  using enum run::RunState;
  for (const std::string arms : {"ab", "cd"}) {
    EXPECT_EQ(with(arms, diverged, file.digest).failed_control,
              fmt::format("all runs of {} and {} diverged", arms[0], arms[1]));
    EXPECT_FALSE(with(arms, finished, "another").stated_before);
  }
  EXPECT_EQ(with("ac", diverged, file.digest).failed_control, "");
  EXPECT_TRUE(with("", finished, "").stated_before);
}

TEST(MeasureDifferences, count_the_seeds_of_both) {
  const std::string lines = "    metric: val_loss\n    compared_with: {arm: c, reference: d}\n";
  const ClaimsFile file = claims(lines);
  auto results = records({});
  for (const char* arm : {"a", "b", "c", "d"}) {
    for (const int seed : {1, 2, 3, 4}) {
      if (seed == 4 && *arm > 'b') continue;
      const std::string stated = seed == 4 ? "another" : file.digest;
      results.push_back(record({.arm = arm,
                                .seed = seed,
                                .loss = 2 + 0.1 * seed * (*arm - 'a'),
                                .config = {{"run.claims", stated}}}));
    }
  }
  const Measured found = measured(file, results);
  EXPECT_EQ(found.seeds, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_TRUE(found.stated_before) << "the fourth seed has one pair alone";
}

TEST(MeasureDifferences, at_different_learning_rates_are_not_compared) {
  std::vector<Row> runs = two_arms();
  for (const char* arm : {"c", "d"}) {
    for (const int seed : {1, 2, 3}) runs.push_back(record({.arm = arm, .seed = seed}));
  }
  const Measured found =
      measured(claims("    metric: val_loss\n    compared_with: {arm: c, reference: d}\n"), runs);
  EXPECT_EQ(found.reason, "a less b has values at lr 0.001, 0.01, c less d at lr 0.001");
  EXPECT_TRUE(found.seeds.empty() && found.a.empty() && found.b.empty());
}

TEST(MeasureDifferences, in_other_regimes_are_compared_if_the_claim_selects_them) {
  std::vector<Result> results;
  for (const char* arm : {"a", "b"}) {
    for (const int steps : {5, 80}) {
      for (const int seed : {1, 2, 3}) {
        Result result{.arm = arm, .seed = seed, .loss = 2 + 0.01 * seed * seed};
        result.config = {{"train.steps", std::to_string(steps)}};
        if (arm[0] == 'a') result.loss -= steps == 5 ? 0.04 : 0.01;
        results.push_back(result);
      }
    }
  }
  const Measured found =
      measured(claims("    metric: val_loss\n    where: {train.steps: 80}\n"
                      "    compared_with: {arm: a, reference: b, where: {train.steps: 5}}\n"),
               records(results));
  EXPECT_EQ(found.reason, "");
  EXPECT_NEAR(found.arm_mean, -0.01, 1e-12);
  EXPECT_NEAR(found.reference_mean, -0.04, 1e-12);
}

TEST(MeasureDifferences, with_a_missing_arm_are_not_compared) {
  const std::string loss = "    metric: val_loss\n    compared_with: ";
  EXPECT_THAT(measured(claims(loss + "{arm: c, reference: x}\n"), four_arms()).reason,
              HasSubstr("no arm is named x"));
  auto runs = four_arms();
  std::erase_if(runs, [](const Row& run) { return run.arm == "d" && run.seed == 2; });
  EXPECT_EQ(measured(claims(loss + "{arm: c, reference: d}\n"), runs).seeds,
            (std::vector<std::uint64_t>{1, 3}));
}

}  // namespace
}  // namespace difftape::study
