// Sweeps with claims, which are preregistered before the runs and judged after them.
#include "tests/train/run/loop/tiny.h"
#include "train/run/records/run_files.h"
#include "train/study/compare/claims/claims_file.h"

namespace difftape::study {
namespace {

constexpr const char* kPrimary = R"(margins: {val_loss: {margin: 0.01, reason: r}}
claims:
  v2_loss:
    statement: V2's loss is lower than the baseline's
    endpoint: primary
    arm: diff_v2
    reference: softmax
    metric: val_loss
    expect: lower
    planned_sd: 0.01
)";

struct SweepWithClaims : testing::Test {
  SweepWithClaims() {
    sweep_softmax_and("{model.attention.kind: diff_v2}");
    put(project / "mine.yaml", kPrimary);
  }

  /// Writes s.yaml: softmax and diff_v2 with these keys, three seeds, claims of mine.yaml.
  void sweep_softmax_and(const std::string& diff_v2) const {
    put(project / "s.yaml",
        "base: tiny.yaml\n"
        "sweep:\n"
        "  seeds: [1, 2, 3]\n"
        "  claims: mine.yaml\n"
        "  arms:\n"
        "    softmax: {}\n"
        "    diff_v2: " +
            diff_v2 + "\n");
  }

  Outcome difftape(const std::vector<std::string>& arguments) {
    return project.difftape(arguments);
  }

  TinyProject project;
};

TEST_F(SweepWithClaims, seeds_that_claims_count_but_no_run_has_are_a_warning) {
  EXPECT_THAT(difftape({"sweep", "s.yaml", "--dry-run"}).err, Not(HasSubstr("warning")));
  put(project / "mine.yaml", std::string("seeds: [2..5]\n") + kPrimary);
  for (const char* option : {"--dry-run", "--power"}) {
    EXPECT_THAT(difftape({"sweep", "s.yaml", option}).err,
                HasSubstr("mine.yaml counts seeds that this sweep does not train: 4, 5; train them "
                          "to decide its claims\n"));
  }
}

TEST_F(SweepWithClaims, records_them_in_every_run_and_judges_them_at_its_end) {
  const Outcome outcome = difftape({"sweep", "s.yaml", "--out", "out"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const std::string digest = claims_from_text(kPrimary, "mine.yaml").digest;
  for (const char* run : {"softmax-seed1", "diff_v2-seed3"}) {
    EXPECT_EQ(run::config_of_run(project / ("out/" + std::string(run))).run.claims, digest);
  }
  EXPECT_EQ(contents(project / "out/claims.yaml"), kPrimary);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("V2's loss is lower than the baseline's"),
                    HasSubstr("(xxh3 " + digest + ")"), Not(HasSubstr("exploratory"))));
  EXPECT_THAT(contents(project / "out/verdicts.csv"), HasSubstr("\nv2_loss,"));
  EXPECT_THAT(contents(project / "out/forest.svg"), HasSubstr("V2"));
}

TEST_F(SweepWithClaims, changed_after_the_runs_are_exploratory) {
  ASSERT_EQ(difftape({"sweep", "s.yaml", "--out", "out"}).exit, 0);
  put(project / "mine.yaml", std::string(kPrimary) + "# changed\n");
  const Outcome report = difftape({"report", "out", "--claims", "mine.yaml"});
  EXPECT_EQ(report.exit, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("1 claim was not preregistered"));
  ASSERT_EQ(difftape({"sweep", "s.yaml", "--out", "out"}).exit, 0);
  const std::string digest = claims_from_text(kPrimary, "mine.yaml").digest;
  EXPECT_EQ(contents(project / ("out/claims-" + digest + ".yaml")), kPrimary);
}

TEST_F(SweepWithClaims, prints_their_power_before_training) {
  const Outcome power = difftape({"sweep", "s.yaml", "--power"});
  EXPECT_EQ(power.exit, 0) << power.err;
  EXPECT_THAT(power.out, AllOf(HasSubstr("\nv2_loss  primary"), HasSubstr("nats per byte\n")));
  EXPECT_THAT(
      test::error(64, difftape({"sweep", "s.yaml", "--power", "--set", "sweep.seeds=[1, 2]"})),
      HasSubstr("the number of seeds is 2, but a verdict needs 3"));
  EXPECT_THAT(test::error(64, difftape({"sweep", "s.yaml", "--power", "--set", "sweep.seeds=[1]"})),
              HasSubstr("the number of seeds is 1, but"));
  EXPECT_FALSE(fs::exists(project / "runs"));
}

TEST_F(SweepWithClaims, rejects_claims_about_unknown_arms_and_quantities) {
  std::string text = kPrimary;
  text.replace(text.find("softmax"), 7, "sofmax");
  put(project / "mine.yaml", text);
  EXPECT_THAT(test::error(78, difftape({"sweep", "s.yaml", "--out", "out"})),
              AllOf(HasSubstr("mine.yaml:"), HasSubstr("'sofmax' is not an arm of this "
                                                       "sweep (softmax, diff_v2)")));
  text = kPrimary;
  text.replace(text.find("val_loss"), 8, "val_los");
  put(project / "mine.yaml", text);
  EXPECT_THAT(test::error(78, difftape({"sweep", "s.yaml", "--out", "out"})),
              HasSubstr("val_loss"));
  EXPECT_FALSE(fs::exists(project / "out"));
}

TEST_F(SweepWithClaims, rejects_claims_of_other_seeds_and_missing_files) {
  put(project / "mine.yaml", "seeds: [11, 12, 13]\n" + std::string(kPrimary));
  EXPECT_THAT(test::error(78, difftape({"sweep", "s.yaml", "--out", "out"})),
              HasSubstr("s.yaml:4:11: error: sweep.claims: the claims of mine.yaml "
                        "count none of the seeds that this sweep trains"));
  fs::remove(project / "mine.yaml");
  EXPECT_THAT(test::error(78, difftape({"sweep", "s.yaml", "--out", "out"})),
              HasSubstr("s.yaml:4:11: error: sweep.claims: mine.yaml does not exist"));
  EXPECT_FALSE(fs::exists(project / "out"));
}

TEST_F(SweepWithClaims, accepts_arms_of_a_grid_and_of_controls) {
  put(project / "s.yaml",
      "base: tiny.yaml\n"
      "sweep:\n"
      "  seeds: [1, 2]\n"
      "  claims: mine.yaml\n"
      "  grid: {model.d_ff: [24, 32]}\n"
      "  arms: {softmax: {}, diff_v2: {model.attention.kind: diff_v2}}\n");
  EXPECT_THAT(test::error(78, difftape({"sweep", "s.yaml", "--dry-run"})),
              AllOf(HasSubstr("'softmax' is not an arm of this sweep (softmax-d_ff24, "),
                    HasSubstr("names of arms include swept values")));
  std::string text = kPrimary;
  text.replace(text.find("diff_v2"), 7, "diff_v2-d_ff24");
  text.replace(text.find("softmax"), 7, "softmax-d_ff32");
  put(project / "mine.yaml", text + "    controls: [{arm: sofmax, metric: val_loss, from: 1}]\n");
  EXPECT_THAT(test::error(78, difftape({"sweep", "s.yaml", "--dry-run"})),
              AllOf(HasSubstr("'sofmax' is not an arm"), Not(HasSubstr("'diff"))));
  put(project / "mine.yaml", text);
  EXPECT_EQ(difftape({"sweep", "s.yaml", "--dry-run"}).exit, 0);
}

TEST_F(SweepWithClaims, skips_claims_about_other_sweeps) {
  put(project / "mine.yaml", std::string(kPrimary) + "    where: {optim.lr: 0.5}\n");
  EXPECT_THAT(test::error(78, difftape({"sweep", "s.yaml", "--power"})),
              HasSubstr("s.yaml:4:11: error: sweep.claims: no run of this sweep matches "
                        "'where' of any claim of mine.yaml"));
  std::string other = kPrimary;
  other.replace(0, other.find("  v2_loss"), "");
  other.replace(other.find("v2_loss"), 7, "v2_fast");
  put(project / "mine.yaml", std::string(kPrimary) + other + "    where: {optim.lr: 0.5}\n");
  const Outcome one = difftape({"sweep", "s.yaml", "--power"});
  EXPECT_EQ(one.exit, 0) << one.err;
  EXPECT_THAT(
      one.out,
      AllOf(HasSubstr("\nv2_loss "), Not(HasSubstr("\nv2_fast ")),
            HasSubstr(
                "Claims about other sweeps, since no run here matches their 'where': v2_fast.")));
}

TEST_F(SweepWithClaims, computes_power_for_the_planned_seeds) {
  put(project / "mine.yaml", "seeds: [2, 3, 4, 5, 6]\n" + std::string(kPrimary));
  const Outcome power = difftape({"sweep", "s.yaml", "--power"});
  EXPECT_EQ(power.exit, 0) << power.err;
  EXPECT_THAT(power.out, HasSubstr("\nv2_loss  primary       5  0.01"));
}

TEST_F(SweepWithClaims, rejects_claims_about_arms_of_different_tasks) {
  sweep_softmax_and("{model.attention.kind: diff_v2, train.steps: 7}");
  EXPECT_THAT(test::error(78, difftape({"sweep", "s.yaml", "--power"})),
              HasSubstr("claims.v2_loss: diff_v2 and softmax cannot be compared: "
                        "train.steps is 7 and "));
}

TEST_F(SweepWithClaims, checks_the_arms_of_both_differences) {
  put(project / "mine.yaml",
      std::string(kPrimary) + "    compared_with: {arm: diff_v2, reference: sofmax}\n");
  EXPECT_THAT(test::error(78, difftape({"sweep", "s.yaml", "--dry-run"})),
              HasSubstr("'sofmax' is not an arm of this sweep (softmax, diff_v2)"));
}

TEST_F(SweepWithClaims, writes_their_digest) {
  put(project / "s.yaml",
      "base: tiny.yaml\nrun: {claims: abc}\nsweep: {arms: {softmax: {}, diff_v2: {}}}\n");
  EXPECT_THAT(test::error(78, difftape({"sweep", "s.yaml", "--dry-run"})),
              HasSubstr("s.yaml:2:7: error: run.claims: a sweep sets this key; use "
                        "sweep.claims instead"));
}

}  // namespace
}  // namespace difftape::study
