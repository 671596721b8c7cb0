// Claims about several sizes: the mean of the differences and their slope.
#include "tests/train/study/compare/claims/two_arms.h"
#include "train/stats/interval.h"
#include "train/study/compare/claims/output.h"

namespace difftape::study {
namespace {

const std::string kOfLoss = "    metric: val_loss\n";
const std::string kSlope = kOfLoss + "    slope_over: parameters\n";
const std::string kMean = kOfLoss + "    mean_over: parameters\n";

/// Difference of a and b: -0.04 at 32, rising by 0.01 per doubling, with a spread over seeds.
double gap(Index d_model, int seed) {
  const double noise = 0.002 * ((seed * 7 + static_cast<int>(d_model)) % 5 - 2);
  return -0.04 + 0.01 * std::log2(static_cast<double>(d_model) / 32) + noise;
}

/// Returns both arms at these sizes with seeds from 1.
std::vector<Row> at_sizes(const std::vector<std::pair<Index, int>>& seeds_of_sizes) {
  std::vector<Row> runs;
  for (const auto& [size, seeds] : seeds_of_sizes) {
    for (int seed = 1; seed <= seeds; ++seed) {
      const double loss = 2 + 0.1 * seed;
      runs.push_back(sized_record({"a", size, seed, loss + gap(size, seed)}));
      runs.push_back(sized_record({"b", size, seed, loss}));
    }
  }
  return runs;
}

TEST(ClaimsOverSizes, estimate_the_slope_or_the_mean_of_the_gaps) {
  const auto runs = at_sizes({{32, 6}, {64, 5}, {128, 4}});
  std::vector<stats::SizeGaps> gaps;
  for (const auto& [size, seeds] : {std::pair<Index, int>(32, 6), {64, 5}, {128, 4}}) {
    stats::SizeGaps& each =
        gaps.emplace_back(stats::SizeGaps{1000.0 * static_cast<double>(size), {}, {}});
    for (int seed = 1; seed <= seeds; ++seed) {
      each.seeds.push_back(static_cast<std::uint64_t>(seed));
      each.gaps.push_back(gap(size, seed));
    }
  }
  for (const auto& [lines, trend] :
       {std::pair(kSlope, stats::Trend::slope), {kMean, stats::Trend::mean}}) {
    const Measured found = measured(claims(lines), runs);
    const stats::PairedDifference expected = stats::size_trend(gaps, trend);
    EXPECT_EQ(found.reason + found.failed_control, "");
    EXPECT_NEAR(found.paired.difference.mean, expected.difference.mean, 1e-12);
    EXPECT_NEAR(found.paired.error, expected.error, 1e-12);
    EXPECT_NEAR(found.paired.p, expected.p, 1e-9);
    ASSERT_EQ(found.sizes.size(), 3u);
    EXPECT_EQ(found.sizes[2].d_model, 128);
    EXPECT_EQ(found.sizes[2].parameters, 128000);
    EXPECT_EQ(found.sizes[2].seeds, 4);
    EXPECT_EQ(found.seeds.size(), 15u);
    EXPECT_TRUE(std::isnan(found.arm_mean));
  }
}

TEST(ClaimsOverSizes, name_the_sizes_and_the_difference) {
  const auto runs = at_sizes({{32, 4}, {64, 4}});
  const JudgedClaims slope(claims(kSlope), pointers(runs));
  EXPECT_THAT(numbers_text(slope.results[0]),
              AllOf(HasSubstr("validation loss: a against b, slope per decade of parameters of "
                              "differences +0.0"),
                    HasSubstr(", 8 pairs of 4 seeds at 2 sizes (-0.0"),
                    HasSubstr(" at 64,000 parameters (n 4)); 95 % interval ")));
  const JudgedClaims mean(claims(kMean), pointers(runs));
  EXPECT_THAT(numbers_text(mean.results[0]), HasSubstr("a against b, mean of differences -0.0"));
  EXPECT_THAT(verdicts_csv(mean.results), HasSubstr("\nc,exploratory,val_loss,a,b,-0.0"));
  EXPECT_EQ(mean.results[0].verdict.words(), "exploratory: supported");
}

TEST(ClaimsOverSizes, use_the_sizes_and_seeds_that_they_name) {
  const auto runs = at_sizes({{32, 6}, {64, 5}, {128, 2}});
  const Measured found =
      measured(claims(kSlope + "    seeds: {32: [1..4], 64: [2, 3, 5, 9]}\n"), runs);
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.seeds, (Seeds{1, 2, 3, 4, 2, 3, 5}));
  EXPECT_EQ(found.missing, 1);
}

TEST(ClaimsOverSizes, explain_missing_runs) {
  const auto why = [](const std::vector<Row>& runs, const std::string& more = "") {
    return measured(claims(kSlope + more), runs).reason;
  };
  EXPECT_EQ(why(at_sizes({{32, 6}, {64, 2}})), "model.d_model 64: 2 seeds; need 3");
  EXPECT_EQ(why(at_sizes({{32, 6}})),
            "a and b have runs at one value of model.d_model, but need two or more");
  EXPECT_EQ(why(at_sizes({{32, 3}, {64, 3}}), "    seeds: {32: [1..3], 128: [1..3]}\n"),
            "model.d_model 128: no run matches 'where'");
  auto runs = at_sizes({{32, 3}, {64, 3}});
  for (const int seed : {1, 2, 3}) runs.push_back(sized_record({"b", 128, seed}));
  EXPECT_EQ(why(runs),
            "a has runs at model.d_model 32, 64, b at 32, 64, 128; select sizes with 'where'");
  EXPECT_EQ(why(runs, "    where: {model.d_model: [32, 64]}\n"), "");
  EXPECT_EQ(why(two_arms()),
            "a and b have runs at one value of model.d_model, but need two or more");
  std::vector<Row> alike = at_sizes({{32, 3}, {64, 3}});
  for (Row& run : alike) run.status.parameters = 5;
  EXPECT_EQ(why(alike), "all sizes have 5 parameters");
}

TEST(ClaimsOverSizes, are_preregistered_if_every_size_is) {
  const ClaimsFile file = claims(kMean);
  const auto without = [&](Index size) {
    auto runs = at_sizes({{32, 3}, {64, 3}});
    for (Row& run : runs)
      run.facts["claims"] =
          run.value("model.d_model") == fmt::to_string(size) ? "another" : file.digest;
    return measured(file, runs).stated_before;
  };
  EXPECT_TRUE(without(0));
  EXPECT_FALSE(without(32));
  EXPECT_FALSE(without(64));
}

TEST(ClaimsOverSizes, without_a_spread_are_not_testable) {
  std::vector<Row> runs;
  for (const Index size : {32, 64}) {
    for (const int seed : {1, 2, 3}) {
      runs.push_back(sized_record({"a", size, seed, 2 + (size == 32 ? 0.25 : 0.5)}));
      runs.push_back(sized_record({"b", size, seed, 2}));
    }
  }
  EXPECT_EQ(measured(claims(kMean), runs).failed_control,
            "all differences at each size are equal, so the spread is unknown");
  auto of_one = at_sizes({{32, 3}, {64, 3}});
  for (Row& run : of_one) {
    if (run.value("model.d_model") == "32") run.numbers = of_one.front().numbers;
  }
  EXPECT_EQ(measured(claims(kMean), of_one).failed_control, "") << "the other size has a spread";
  for (Row& run : runs) run.numbers = runs.front().numbers;
  EXPECT_EQ(measured(claims(kMean), runs).failed_control,
            "validation loss: both runs of every pair have the same value");
}

}  // namespace
}  // namespace difftape::study
