// The sampling error of the held-out text in the intervals of claims.
#include "tests/train/study/compare/claims/two_arms.h"
#include "train/stats/interval.h"
#include "train/study/compare/claims/output.h"

namespace difftape::study {
namespace {

const std::string kOneRate = "    where: {optim.lr: 0.01}\n";
const std::string kLoss = "    metric: val_loss\n" + kOneRate;

/// Deviation of the difference of a and b in a group from its mean over four groups.
constexpr double kDeviations[] = {0.03, -0.01, -0.04, 0.02};

/// two_arms whose runs stored their losses in four groups.
std::vector<RunRecord> with_groups() {
  auto runs = two_arms();
  for (RunRecord& run : runs) {
    std::vector<double> groups(4, run.number("val_loss"));
    for (std::size_t g = 0; g < 4; ++g) {
      groups[g] += 0.5 * static_cast<double>(g) - 0.75;  // of both arms
      if (run.arm == "a") groups[g] += kDeviations[g];
    }
    set_groups(run, groups);
  }
  return runs;
}

TEST(HeldOutText, adds_the_spread_over_its_groups_to_the_spread_over_seeds) {
  const Measured seeds = measured(claims(kLoss), two_arms());
  const Measured both = measured(claims(kLoss), with_groups());
  EXPECT_EQ(seeds.group_count, 0);
  EXPECT_EQ(both.group_count, 4);
  EXPECT_NEAR(both.paired.difference.mean, seeds.paired.difference.mean, 1e-12);
  double squares = 0;
  for (const double each : kDeviations) squares += each * each;
  const double of_seeds = seeds.paired.error * seeds.paired.error, of_text = squares / 3 / 4;
  EXPECT_NEAR(both.paired.error, std::sqrt(of_seeds + of_text), 1e-12);
  EXPECT_GT(both.paired.degrees, 2);
  EXPECT_NEAR(both.paired.difference.half_width, seeds.paired.difference.half_width, 1e-9)
      << "more degrees would narrow the interval of three seeds";
  EXPECT_NEAR(both.paired.p,
              stats::student_t_two_sided(both.paired.difference.mean / both.paired.error,
                                         both.paired.degrees),
              1e-12);
}

TEST(HeldOutText, counts_in_differences_of_differences_and_against_numbers) {
  auto runs = with_groups();
  for (const RunRecord& run : with_groups()) {  // c as a, d as b, but for one group
    runs.push_back(run);
    runs.back().arm = run.arm == "a" ? "c" : "d";
    runs.back().dir = "runs/" + runs.back().arm + run.dir.string();
    if (run.arm == "b") continue;
    std::vector<double> groups = run.group_losses().loss;
    groups[0] += 0.02 * static_cast<double>(run.seed);
    set_groups(runs.back(), groups);
    for (const char* loss : {"val_loss", "final_loss"}) {
      runs.back().numbers[static_cast<std::size_t>(&quantity(loss) - quantities().data())] +=
          0.01 * static_cast<double>(run.seed * run.seed);
    }
  }
  const Measured found =
      measured(claims(kLoss + "    compared_with: {arm: c, reference: d}\n"), runs);
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.group_count, 4);
  const ClaimsFile number = claims_from_text(
      "claims:\n  c:\n    statement: s\n    arm: a\n    value: 2.5\n" + kLoss, "c.yaml");
  EXPECT_EQ(measured(number, runs).group_count, 4);
}

TEST(HeldOutText, of_a_pair_without_groups_is_estimated_from_the_others) {
  auto runs = with_groups();
  for (RunRecord& run : runs) {
    if (run.arm == "b" && run.seed == 2) run.metrics.lists.clear();
  }
  const Measured all = measured(claims(kLoss), with_groups()), most = measured(claims(kLoss), runs);
  EXPECT_EQ(most.group_count, 4);
  EXPECT_NEAR(most.paired.error, all.paired.error, 1e-12) << "all pairs have the same deviations";
}

TEST(HeldOutText, does_not_affect_the_interval_if_no_pair_stored_groups) {
  auto runs = with_groups();
  for (RunRecord& run : runs) {
    if (run.arm == "b") run.metrics.lists.clear();
  }
  EXPECT_EQ(measured(claims(kLoss), runs).group_count, 0);
  EXPECT_EQ(measured(claims("    metric: train_loss\n" + kOneRate), with_groups()).group_count, 0);
  auto empty = with_groups();
  for (RunRecord& run : empty) {
    std::vector<double> groups = run.group_losses().loss;
    groups[3] = kNaN;
    set_groups(run, groups);
  }
  EXPECT_EQ(measured(claims(kLoss), empty).group_count, 3) << "nothing was scored in one of them";
}

TEST(HeldOutText, with_other_groups_or_a_capped_loss_does_not_count) {
  auto other = with_groups(), capped = with_groups();
  for (RunRecord& run : other) {
    if (run.seed == 2) set_groups(run, {2, 2, 2});
  }
  EXPECT_EQ(measured(claims(kLoss), other).group_count, 0);
  const auto final_loss = static_cast<std::size_t>(&quantity("final_loss") - quantities().data());
  for (RunRecord& run : capped) {
    if (run.arm == "b") run.numbers[final_loss] -= 0.1;
  }
  const ClaimsFile file = claims("    metric: final_loss\n" + kOneRate);
  EXPECT_EQ(measured(file, with_groups()).group_count, 4);
  EXPECT_EQ(measured(file, capped).group_count, 0);
}

TEST(HeldOutText, is_mentioned_if_the_interval_includes_its_error) {
  const auto runs = with_groups();
  const JudgedClaims judged(claims(kLoss), pointers(runs));
  EXPECT_THAT(claims_notes(judged.file, judged.results).back(),
              HasSubstr("they include the sampling error of the held-out text"));
  EXPECT_THAT(verdicts_csv(judged.results), HasSubstr(",seeds and held-out text,"));
  const auto without = two_arms();
  const JudgedClaims seeds(claims(kLoss), pointers(without));
  EXPECT_EQ(claims_notes(seeds.file, seeds.results).back(),
            "Intervals are 95 % intervals over pairs of runs with the same seed.");
}

TEST(HeldOutText, of_several_sizes_is_weighted_like_the_seeds) {
  std::vector<RunRecord> runs, plain;
  for (const Index size : {32, 64}) {
    for (const int seed : {1, 2, 3}) {
      for (const char* arm : {"a", "b"}) {
        const double loss = 2 + (arm[0] == 'a' ? 0.01 * seed * (size == 32 ? 1 : 2) : 0);
        plain.push_back(sized_record({arm, size, seed, loss}));
        runs.push_back(plain.back());
        std::vector<double> groups(4, loss);
        // The difference in a group is the same at both sizes: a slope has none of it.
        for (std::size_t g = 0; g < 4; ++g) groups[g] += arm[0] == 'a' ? kDeviations[g] : 0;
        set_groups(runs.back(), groups);
      }
    }
  }
  const std::string loss = "    metric: val_loss\n";
  const auto error = [&](const std::string& over, const std::vector<RunRecord>& of) {
    return measured(claims(loss + over), of).paired.error;
  };
  const std::string mean = "    mean_over: parameters\n", slope = "    slope_over: parameters\n";
  double squares = 0;
  for (const double each : kDeviations) squares += each * each;
  EXPECT_NEAR(error(mean, runs), std::sqrt(std::pow(error(mean, plain), 2) + squares / 12), 1e-12);
  EXPECT_NEAR(error(slope, runs), error(slope, plain), 1e-12);
}

}  // namespace
}  // namespace difftape::study
