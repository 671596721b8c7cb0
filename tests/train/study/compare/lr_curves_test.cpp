// Ladders of learning rates: their optimum, the gap there, and the file that fixes them.
#include "train/study/compare/lr_curves.h"

#include "tests/train/study/compare/synthetic_study.h"

namespace difftape::study {
namespace {

/// Returns softmax and v2 at a size with four rungs and `seeds` seeds; best rates 2e-3 and 4e-3.
void add_ladders(std::vector<Result>& results, const std::string& d_model, int seeds = 4) {
  for (const char* arm : {"softmax", "v2"}) {
    const bool v2 = arm == std::string("v2");
    for (int rung = 0; rung < 4; ++rung) {
      for (int seed = 1; seed <= seeds; ++seed) {
        const double away = rung - (v2 ? 2 : 1);
        results.push_back({.arm = arm,
                           .lr = 1e-3 * std::pow(2, rung),
                           .seed = seed,
                           .loss = (v2 ? 1.95 : 2) + 0.1 * away * away + 0.01 * seed,
                           .config = {{"model.d_model", d_model}, {"train.steps", d_model}}});
      }
    }
  }
}

TEST(LrCurves, have_one_optimum_per_size_and_a_gap_of_the_ladder) {
  std::vector<Result> results;
  add_ladders(results, "32");
  add_ladders(results, "64");
  const std::vector<Row> runs = records(results);
  const std::vector<LrCurve> curves = lr_curves(make_studies(runs, "softmax"));
  ASSERT_EQ(curves.size(), 4u);
  for (const LrCurve& curve : curves) {
    const bool base = curve.arm == "softmax";
    EXPECT_NEAR(curve.optimum.lr, base ? 2e-3 : 4e-3, 1e-12) << curve.arm;
    EXPECT_NEAR(curve.optimum.loss, base ? 2.025 : 1.975, 1e-12);
    EXPECT_THAT(curve.seeds, ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(curve.is_baseline, base);
    EXPECT_EQ(curve.gap.difference.pairs, base ? 0 : 4);
    EXPECT_FALSE(curve.gap.fresh);
    if (!base) {
      EXPECT_NEAR(curve.gap.difference.difference.mean, -0.05, 1e-12);
    }
  }
  EXPECT_EQ(curves[0].d_model, "32");
  EXPECT_EQ(curves[3].d_model, "64");
}

TEST(LrCurves, keep_all_seeds_of_the_ladder_while_an_extension_has_only_some) {
  std::vector<Result> results;
  add_ladders(results, "32");
  Result more{.arm = "v2", .lr = 1.6e-2, .seed = 1, .loss = 1.9};
  more.config = {{"model.d_model", "32"}, {"train.steps", "32"}};
  results.push_back(more);
  for (const int seed : {5, 6, 7}) {  // an incomplete block with two rates
    for (const double lr : {1e-3, 2e-3}) {
      more.lr = lr;
      more.seed = seed;
      results.push_back(more);
    }
  }
  const std::vector<Row> partial = records(results);
  const std::vector<LrCurve> curves = lr_curves(make_study(partial, "softmax"));
  EXPECT_THAT(curves[1].seeds, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(curves[1].ladder.size(), 4u);
  EXPECT_NEAR(curves[1].optimum.lr, 4e-3, 1e-12);
  for (const int seed : {2, 3, 4}) {
    more.lr = 1.6e-2;
    more.seed = seed;
    results.push_back(more);
  }
  const std::vector<Row> extended = records(results);
  const LrCurve whole = lr_curves(make_study(extended, "softmax"))[1];
  EXPECT_THAT(whole.seeds, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(whole.ladder.size(), 5u);
  EXPECT_NE(whole.optimum.reason, "") << "the lowest rung is the last one";
}

TEST(LrCurves, take_the_gap_from_fresh_seeds_at_each_arms_own_rate_if_possible) {
  std::vector<Result> results;
  add_ladders(results, "32");
  for (const int seed : {11, 12, 13}) {
    results.push_back({.arm = "softmax",
                       .lr = 2e-3,
                       .seed = seed,
                       .loss = 2.0 + 0.01 * seed,
                       .config = {{"model.d_model", "32"}, {"train.steps", "32"}}});
    results.push_back({.arm = "v2",
                       .lr = 4.002e-3,
                       .seed = seed,
                       .loss = 1.97 + 0.01 * seed,
                       .config = {{"model.d_model", "32"}, {"train.steps", "32"}}});
  }
  const std::vector<Row> runs = records(results);
  const std::vector<LrCurve> curves = lr_curves(make_study(runs));
  EXPECT_EQ(curves[1].gap.difference.pairs, 3);
  EXPECT_TRUE(curves[1].gap.fresh);
  EXPECT_NEAR(curves[1].gap.difference.difference.mean, -0.03, 1e-12);
  EXPECT_THAT(curves[1].seeds, ElementsAre(1, 2, 3, 4)) << "the others are not seeds of the ladder";
  EXPECT_EQ(curves[1].ladder.size(), 4u);
  EXPECT_NEAR(curves[1].sensitivity.mean, (0.4 + 0.1 + 0 + 0.1) / 4, 1e-12) << "of the ladder";
}

TEST(LrCurves, take_the_gap_from_arms_that_ran_at_one_rate_each) {
  const auto gap_at = [](double lr) {
    std::vector<Result> results;
    for (const int seed : {1, 2}) {
      results.push_back({.lr = 2e-3, .seed = seed, .loss = 2.0 + 0.01 * seed});
      results.push_back({.arm = "v2", .lr = lr, .seed = seed, .loss = 1.97 + 0.01 * seed});
    }
    const std::vector<Row> runs = records(results);
    return lr_curves(make_study(runs))[1].gap;
  };
  EXPECT_EQ(gap_at(4e-3).difference.pairs, 2);
  EXPECT_TRUE(gap_at(4e-3).fresh);
  EXPECT_NEAR(gap_at(4e-3).difference.difference.mean, -0.03, 1e-12);
  EXPECT_EQ(gap_at(2e-3).difference.pairs, 2) << "the same rate for both";
}

TEST(LrCurves, count_a_diverged_run_with_the_loss_of_a_uniform_guess) {
  std::vector<Result> results;
  add_ladders(results, "32");
  for (Result& each : results) {
    if (each.arm == "v2" && each.lr > 7e-3) each.state = run::RunState::diverged;
  }
  const std::vector<Row> runs = records(results);
  const LrCurve v2 = lr_curves(make_study(runs))[1];
  EXPECT_EQ(v2.ladder[3].diverged, 4);
  EXPECT_DOUBLE_EQ(v2.ladder[3].loss.mean, std::log(256.0));
  EXPECT_LT(v2.optimum.lr, 4e-3) << "the wall to the right moves the vertex to the left";
  EXPECT_TRUE(v2.optimum.reason.empty());
}

TEST(LrOptima, are_written_and_read_with_their_seeds_or_a_reason) {
  std::vector<Result> results;
  add_ladders(results, "32");
  add_ladders(results, "64", 1);
  std::erase_if(results, [](const Result& each) {
    return each.config.at("model.d_model") == "64" && each.arm == "softmax" && each.lr < 1.5e-3;
  });
  const std::vector<Row> runs = records(results);
  const std::string csv = lr_optima_csv(lr_curves(make_studies(runs)));
  EXPECT_THAT(csv, StartsWith("arm,model.d_model,parameters,lr_star,low,high,loss,seeds,"
                              "reason\nsoftmax,32,820224,0.002,0.002,0.002,2.0250,1 2 3 4,\n"));
  EXPECT_THAT(csv,
              HasSubstr("softmax,64,820224,,,,,1,\"the lowest mean loss is at the lower end of "
                        "the ladder, 0.002; extend the ladder downward\"\n"));
  EXPECT_THAT(csv, HasSubstr("v2,64,820224,0.004,,,1.9600,1,\n"));
  const ScratchDir dir;
  put(dir / "lr.csv", csv);
  const OwnRates own = read_own_rates(dir / "lr.csv");
  EXPECT_EQ(own.of("v2", "32").lr, 0.004);
  EXPECT_THAT(own.of("v2", "32").seeds, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT([&] { own.of("softmax", "64"); },
              ThrowsMessage<DataError>((dir / "lr.csv").string() +
                                       ": arm softmax at model.d_model 64 has no learning rate of "
                                       "its own: the lowest mean loss is at the lower end of the "
                                       "ladder, 0.002; extend the ladder downward"));
  EXPECT_THAT([&] { own.of("v3", "32"); },
              ThrowsMessage<DataError>(HasSubstr("has no learning rate of arm v3")));
}

TEST(LrOptima, are_missing_for_two_ladders_of_one_arm_and_size) {
  std::vector<Result> results;
  add_ladders(results, "32");
  add_ladders(results, "32");
  for (std::size_t i = results.size() / 2; i < results.size(); ++i)
    results[i].config["train.steps"] = "64";
  const std::vector<Row> runs = records(results);
  EXPECT_THAT(lr_optima_csv(lr_curves(make_studies(runs))),
              HasSubstr("softmax,32,820224,,,,,1 2 3 4,\"the runs have two ladders of this arm and "
                        "size, 32 steps and 64 steps; report them separately\"\n"));
}

TEST(OwnRates, from_other_or_damaged_files_are_rejected) {
  const ScratchDir dir;
  const std::string head = "arm,model.d_model,parameters,lr_star,low,high,loss,seeds,reason\n";
  const auto why = [&](const std::string& text) {
    put(dir / "lr.csv", text);
    return message_of<DataError>([&] { read_own_rates(dir / "lr.csv"); });
  };
  EXPECT_EQ(why(head + "a,32,1,0.01,,,2,1 2,\n"), "");
  EXPECT_THAT(why("arm,lr\n"), HasSubstr("is not an lr_optimum.csv"));
  EXPECT_THAT(why(""), HasSubstr("is not an lr_optimum.csv"));
  EXPECT_THAT(why(head + "a,32,1\n"), HasSubstr("lr.csv:2: has 3 fields, but must have 9"));
  EXPECT_THAT(why(head + "a,32,1,,,,2,1,\n"), HasSubstr("lr.csv:2: lr_star is \"\", but must be"));
  EXPECT_THAT(why(head + "a,32,1,-1,,,2,1,\n"), HasSubstr("lr_star is \"-1\""));
  EXPECT_THAT(why(head + "a,32,1,0.1,,,2,1 x,\n"), HasSubstr("a seed is \"x\""));
  EXPECT_THAT(why(head + "a,32,1,0.1,,,2,1,\na,32,1,0.2,,,2,1,\n"), HasSubstr("has two lines"));
  EXPECT_THROW(read_own_rates(dir / "none.csv"), MissingInput);
}

}  // namespace
}  // namespace difftape::study
