// Selects the runs of a claim and measures it.
#include "train/study/compare/claims/measure.h"

#include "tests/train/study/compare/claims/two_arms.h"
#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/study.h"

namespace difftape::study {
namespace {

TEST(Measure, pairs_the_runs_of_a_seed_and_averages_its_learning_rates) {
  const Measured all = measured(claims("    metric: val_loss\n"), two_arms());
  EXPECT_EQ(all.reason, "");
  EXPECT_EQ(all.seeds, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_NEAR(all.paired.difference.mean, -0.1, 1e-12);
  EXPECT_NEAR(all.reference_mean, 2.2 + (0.01 + 0.1) / 2, 1e-12);
  EXPECT_EQ(all.where, "lr 0.001, 0.01");
  const Measured one =
      measured(claims("    metric: val_loss\n    where: {optim.lr: 1.0e-2}\n"), two_arms());
  EXPECT_NEAR(one.reference_mean, 2.3, 1e-12);
  EXPECT_EQ(one.where, "lr 0.01");
}

TEST(Measure, compares_ratios_by_their_logarithms) {
  const auto runs = two_arms([](Result& result) {
    result.last = {{"attn/logit_max/0", result.arm == "a" ? 2.0 * result.seed : 1.0 * result.seed}};
  });
  const Measured found = measured(claims("    metric: attention_logit\n"), runs);
  EXPECT_NEAR(found.paired.difference.mean, std::log(2), 1e-12);
  EXPECT_NEAR(found.reference_mean, std::cbrt(6), 1e-12) << "the geometric mean";
}

TEST(Measure, takes_the_seeds_of_the_file_in_their_order) {
  const std::string metric = "    metric: val_loss\n";
  const Measured some = measured(claims(metric, "seeds: [3, 1]\n"), two_arms());
  EXPECT_EQ(some.seeds, (Seeds{3, 1}));
  EXPECT_EQ(some.missing, 0);
  const Measured missing = measured(claims(metric, "seeds: [3, 9, 1]\n"), two_arms());
  EXPECT_EQ(missing.seeds, (Seeds{3, 1}));
  EXPECT_EQ(missing.missing, 1);
  const Measured own =
      measured(claims(metric + "    seeds: [2, 3]\n", "seeds: [1, 2]\n"), two_arms());
  EXPECT_EQ(own.seeds, (Seeds{2, 3})) << "the claim's own instead";
  EXPECT_EQ(measured(claims(metric + "    seeds: [8, 9]\n"), two_arms()).reason,
            "no run of a has one of the seeds 8, 9");
}

TEST(Measure, skips_a_seed_without_a_run_at_one_of_the_learning_rates) {
  auto runs = two_arms();
  std::erase_if(runs,
                [](const Row& run) { return run.arm == "a" && run.seed == 2 && run.lr > 5e-3; });
  EXPECT_EQ(measured(claims("    metric: val_loss\n"), runs).seeds, (Seeds{1, 3}));
}

TEST(Measure, skips_other_seeds_at_other_learning_rates) {
  auto runs = two_arms();
  for (const char* arm : {"a", "b"}) runs.push_back(record({.arm = arm, .lr = 0.5, .seed = 7}));
  const Measured found = measured(claims("    metric: val_loss\n    seeds: [1..3]\n"), runs);
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.where, "lr 0.001, 0.01");
}

TEST(Measure, gives_a_reason_if_a_run_has_no_value_and_drops_no_run) {
  const auto runs = two_arms([](Result& result) {
    if (result.arm == "a" && result.seed == 2 && result.lr > 5e-3)
      result.state = run::RunState::diverged;
  });
  EXPECT_EQ(measured(claims("    metric: val_loss\n"), runs).reason,
            "a with seed 2 at lr 0.01 diverged at step 12 (train/loss) and has no value of "
            "validation loss; select learning rates at which no run diverges with 'where'");
  EXPECT_EQ(measured(claims("    metric: val_loss\n    where: {optim.lr: 0.001}\n"), runs).reason,
            "");
  const Measured capped = measured(claims("    metric: final_loss\n"), runs);
  EXPECT_EQ(capped.reason, "");
  EXPECT_EQ(capped.seeds.size(), 3u);
  EXPECT_THAT(measured(claims("    metric: grad_norm_median\n"), runs).reason,
              HasSubstr("a with seed 2 at lr 0.01 diverged at step 12"))
      << "its median gradient norm ends at the divergence";
}

TEST(Measure, of_runs_that_all_diverged_has_no_contrast) {
  const auto diverged = two_arms([](Result& result) { result.state = run::RunState::diverged; });
  EXPECT_EQ(measured(claims("    metric: final_loss\n"), diverged).failed_control,
            "all runs of a and b diverged");
  const auto of_a = two_arms([](Result& result) {
    if (result.arm == "a") result.state = run::RunState::diverged;
  });
  EXPECT_EQ(measured(claims("    metric: final_loss\n"), of_a).failed_control, "");
}

TEST(Measure, explains_missing_runs) {
  const auto why = [](const std::string& lines, const std::vector<Row>& runs) {
    return measured(claims(lines), runs).reason;
  };
  const std::string loss = "    metric: val_loss\n";
  EXPECT_EQ(why(loss, records({{.arm = "a"}, {.arm = "other"}})),
            "no arm is named b; did you mean 'a'?; the arms are a, other");
  EXPECT_EQ(why("    metric: sink_rate\n", two_arms()), "no run of a logged attn/sink_rate");
  EXPECT_EQ(why(loss + "    where: {optim.lr: 0.5}\n", two_arms()), "no run matches 'where'");
  EXPECT_EQ(why(loss + "    where: {optim.lr: 0.01, train.steps: 5}\n", two_arms()),
            "no run matches 'where'");
  EXPECT_EQ(why(loss, records({{.arm = "a", .lr = 1e-3}, {.arm = "b", .lr = 1e-2}})),
            "a and b have no common learning rate (0.001 and 0.01)");
  EXPECT_EQ(why(loss, records({{.arm = "a", .seed = 1}, {.arm = "b", .seed = 2}})),
            "a and b have no common seed");
  EXPECT_EQ(why(loss, records({{.arm = "a", .state = run::RunState::running}, {.arm = "b"}})),
            "no run of a has ended");
  EXPECT_EQ(why("    metric: lr_sensitivity\n", records({{.arm = "a"}, {.arm = "b"}})),
            "lr sensitivity needs at least two learning rates, but there is only 0.001");
  EXPECT_EQ(why(loss, records({{.arm = "a", .config = {{"data.seq_len", "128"}}}, {.arm = "b"}})),
            "a and b cannot be compared: data.seq_len is 128 and 256");
  EXPECT_THAT(why(loss, records({{.arm = "a"}, {.arm = "a"}, {.arm = "b"}})),
              HasSubstr("a has two runs of seed 1 at lr 0.001"));
}

TEST(Measure, rejects_arms_whose_runs_differ_in_more_than_the_seed) {
  const std::string loss = "    metric: val_loss\n";
  const auto clipped = records({{.arm = "a", .config = {{"optim.max_grad_norm", "1"}}},
                                {.arm = "a", .seed = 2, .config = {{"optim.max_grad_norm", "0"}}},
                                {.arm = "b"}});
  EXPECT_THAT(measured(claims(loss), clipped).reason,
              HasSubstr("runs of a differ in optim.max_grad_norm: "));
  EXPECT_EQ(measured(claims(loss + "    where: {optim.max_grad_norm: 1}\n"), clipped).reason, "");
  auto runs = two_arms();
  for (Row& run : runs) run.facts["data"] = "one";
  EXPECT_EQ(measured(claims(loss), runs).reason, "");
  runs[1].facts["data"] = "another";
  EXPECT_THAT(measured(claims(loss), runs).reason, HasSubstr("runs of a differ in their data: "));
}

TEST(Measure, without_a_value_of_the_control_compares_nothing) {
  const auto why = [](const std::string& control) {
    return measured(claims("    metric: val_loss\n    controls: [{" + control + "}]\n"), two_arms())
        .reason;
  };
  EXPECT_EQ(why("arm: a, metric: sink_rate, from: 0"),
            "control: a run of a has no value of sink rate");
  EXPECT_THAT(why("arm: c, metric: val_loss, from: 0"), HasSubstr("no arm is named c"));
}

TEST(Measure, detects_whether_the_claims_were_preregistered) {
  const ClaimsFile file = claims("    metric: val_loss\n");
  const auto with = [&](const std::string& first, const std::string& second) {
    return measured(file, records({{.arm = "a", .config = {{"run.claims", first}}},
                                   {.arm = "b", .config = {{"run.claims", second}}}}))
        .stated_before;
  };
  EXPECT_TRUE(with(file.digest, file.digest));
  EXPECT_FALSE(with(file.digest, "another"));
  EXPECT_FALSE(measured(file, two_arms()).stated_before);
}

TEST(Measure, checks_the_controls) {
  const auto failed = [](const std::string& control) {
    return measured(claims("    metric: val_loss\n    controls: [{arm: b, metric: val_loss, " +
                           control + "}]\n"),
                    two_arms())
        .failed_control;
  };
  EXPECT_EQ(failed("from: 2, to: 3"), "");
  EXPECT_EQ(failed("from: 3"), "validation loss: b has 2.26 on average; need 3 or more");
  EXPECT_EQ(failed("to: 2"), "validation loss: b has 2.26 on average; need 2 or less");
  const std::string of_seeds = "    metric: val_loss\n    seeds: [2, 3]\n    controls: ";
  EXPECT_EQ(measured(claims(of_seeds + "[{arm: b, metric: val_loss, from: 2.3}]\n"), two_arms())
                .failed_control,
            "")
      << "without the first seed";
  const auto same = two_arms([](Result& result) { result.loss = 2.3; });
  EXPECT_EQ(measured(claims("    metric: val_loss\n"), same).failed_control,
            "validation loss: both runs of every pair have the same value");
}

}  // namespace
}  // namespace difftape::study
