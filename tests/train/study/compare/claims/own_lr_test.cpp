// Claims that compare each arm at its own learning rate.
#include "tests/train/study/compare/claims/two_arms.h"
#include "train/study/compare/claims/output.h"

namespace difftape::study {
namespace {

constexpr const char* kOwnRates =
    "arm,model.d_model,parameters,lr_star,low,high,loss,seeds,reason\n"
    "a,64,64000,0.0123,,,2.0,1 2,\n"
    "b,64,64000,0.008,,,2.1,1 2,\n"
    "a,32,32000,,,,,1 2,the lowest mean loss is at the highest rate\n";

/// Returns claims with these lines and kOwnRates.
ClaimsFile claims_with_rates(const std::string& lines) {
  const ScratchDir dir;
  put(dir / "lr_star.csv", kOwnRates);
  put(dir / "claims.yaml",
      "learning_rates: lr_star.csv\nclaims:\n  c:\n    statement: s\n    arm: a\n"
      "    reference: b\n" +
          lines);
  return load_claims((dir / "claims.yaml").string());
}

const std::string kFinalLoss = "    metric: val_loss\n";

/// Returns seeds 1 to 5 of both arms on a ladder, at their own rates, and at four times these. a is
/// lower by 0.1 at its own rate; the penalties are 0.3 (a) and 0.5 (b).
std::vector<Row> ladder_and_own() {
  std::vector<Row> runs;
  for (const int seed : {1, 2, 3, 4, 5}) {
    const double noise = 0.01 * seed * seed;
    for (const bool a : {true, false}) {
      const double own = a ? 0.0123 : 0.008, loss = 2 + noise + (a ? -0.1 - 0.01 * seed : 0);
      SizedResult run{.arm = a ? "a" : "b", .seed = seed};
      for (const auto& [lr, over] : {std::pair(own, 0.0),
                                     {4 * own, a ? 0.3 : 0.5 + 0.001 * seed},
                                     {0.01, 9.0},
                                     {0.02, 9.0}}) {
        run.lr = lr;
        run.loss = loss + over;
        runs.push_back(sized_record(run));
      }
    }
  }
  return runs;
}

TEST(OwnLearningRates, of_each_arm_count_without_the_seeds_that_chose_them) {
  const ClaimsFile file = claims_with_rates(kFinalLoss + "    lr: own\n");
  const Measured found = measured(file, ladder_and_own());
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.seeds, (Seeds{3, 4, 5}));
  EXPECT_NEAR(found.paired.difference.mean, -0.14, 1e-12);
  EXPECT_EQ(found.where, "own lr (a 0.0123, b 0.008)");
  const auto runs = ladder_and_own();
  const JudgedClaims judged(claims_with_rates(kFinalLoss + "    lr: own\n"), pointers(runs));
  EXPECT_THAT(claims_notes(judged.file, judged.results)[1],
              AllOf(HasSubstr("lr_star.csv (xxh3 "), HasSubstr(judged.file.rates_digest)));
}

TEST(OwnLearningRates, can_be_multiplied) {
  const Measured four =
      measured(claims_with_rates(kFinalLoss + "    lr: 4 x own\n"), ladder_and_own());
  EXPECT_EQ(four.reason, "");
  EXPECT_NEAR(four.paired.difference.mean, -0.14 - 0.204, 1e-12);
  EXPECT_EQ(four.where, "4 x own lr (a 0.0123, b 0.008)");
}

TEST(OwnLearningRates, exclude_runs_at_rates_nearby) {
  auto runs = ladder_and_own();
  for (const double own : {0.0123, 0.008})
    runs.push_back(sized_record({.arm = own > 0.01 ? "a" : "b", .seed = 6, .lr = 1.004 * own}));
  EXPECT_EQ(measured(claims_with_rates(kFinalLoss + "    lr: own\n"), runs).seeds,
            (Seeds{3, 4, 5}));
}

TEST(OwnLearningRates, and_their_multiples_give_a_penalty) {
  const Measured found = measured(
      claims_with_rates("    metric: lr_penalty\n    lr: [own, 4 x own]\n"), ladder_and_own());
  EXPECT_EQ(found.reason, "");
  EXPECT_NEAR(found.arm_mean, 0.3, 1e-12);
  EXPECT_NEAR(found.reference_mean, 0.504, 1e-12);
  EXPECT_EQ(found.where, "own and 4 x own lr (a 0.0123, b 0.008)");
}

TEST(OwnLearningRates, give_a_run_that_diverged_at_the_higher_rate_the_loss_of_a_uniform_guess) {
  auto runs = ladder_and_own();
  std::erase_if(runs, [](const Row& run) { return run.seed == 4 && run.lr > 0.04; });
  runs.push_back(
      sized_record({.arm = "a", .seed = 4, .lr = 4 * 0.0123, .state = run::RunState::diverged}));
  const Measured found =
      measured(claims_with_rates("    metric: lr_penalty\n    lr: [own, 4 x own]\n"), runs);
  EXPECT_EQ(found.reason, "");
  ASSERT_EQ(found.seeds, (Seeds{3, 4, 5}));
  EXPECT_NEAR(found.a[1], std::log(256.0) - (2 + 0.16 - 0.14), 1e-12);
}

TEST(OwnLearningRates, without_runs_give_a_reason) {
  const auto why = [](const ClaimsFile& file, std::vector<Row> runs) {
    return measured(file, runs).reason;
  };
  auto runs = ladder_and_own();
  EXPECT_EQ(why(claims_with_rates(kFinalLoss + "    lr: 3 x own\n"), runs),
            "no run of a has lr 0.0369, 3 times its own, and a seed that did not choose it");
  std::erase_if(runs, [](const Row& run) { return run.seed > 2; });
  EXPECT_EQ(why(claims_with_rates(kFinalLoss + "    lr: own\n"), runs),
            "no run of a has lr 0.0123, 1 times its own, and a seed that did not choose it");
  ClaimsFile early = claims_with_rates(kFinalLoss + "    lr: own\n");
  early.own_rates.reset();
  EXPECT_EQ(why(early, ladder_and_own()),
            "lr_star.csv does not exist yet, so no arm has its own learning rate");
  const ClaimsFile file = claims_with_rates(kFinalLoss + "    lr: own\n");
  std::vector<Row> small, large;
  for (const char* arm : {"a", "b"}) {
    small.push_back(sized_record({.arm = arm, .d_model = 32}));
    large.push_back(sized_record({.arm = arm, .d_model = 128}));
  }
  EXPECT_THAT(why(file, small), HasSubstr("arm a at model.d_model 32 has no learning rate of its "
                                          "own: the lowest mean loss is at the highest rate"));
  EXPECT_THAT(why(file, large), HasSubstr("has no learning rate of arm a at model.d_model 128"));
}

TEST(OwnLearningRates, do_not_affect_the_digest_of_the_claims) {
  const ClaimsFile file = claims_with_rates(kFinalLoss + "    lr: own\n");
  ASSERT_TRUE(file.own_rates);
  EXPECT_EQ(file.own_rates->rates.size(), 3u);
  EXPECT_EQ(file.digest, claims_from_text(file.text, "c.yaml").digest);
  EXPECT_FALSE(file.rates_digest.empty());
  const ScratchDir dir;
  put(dir / "claims.yaml", file.text);
  EXPECT_FALSE(load_claims((dir / "claims.yaml").string()).own_rates) << "not fixed yet";
  put(dir / "lr_star.csv", "arm,lr\n");
  EXPECT_THROW(load_claims((dir / "claims.yaml").string()), DataError);
}

}  // namespace
}  // namespace difftape::study
