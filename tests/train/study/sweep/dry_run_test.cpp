// What a sweep says it would do.
#include "tests/train/study/sweep/sweep_project.h"
#include "train/study/sweep/sweep.h"
#include "train/system/text_table.h"

namespace difftape::study {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::put;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class DryRun : public test::SweepProject {
 protected:
  DryRun()
      : SweepProject(
            "base: tiny.yaml\n"
            "sweep.arms: {softmax: , diff_v1: {model.attention.kind: diff_v1}}\n") {}
  Outcome dry_run(std::vector<std::string> more = {}) {
    more.emplace_back("--dry-run");
    return sweep(more);
  }
};

TEST_F(DryRun, says_what_would_be_trained_and_trains_nothing) {
  const Outcome outcome = dry_run();
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_FALSE(fs::exists(project / "out"));
  for (const std::string arm : {"softmax", "diff_v1"}) {
    ModelConfig model = project.config.model;
    model.attention.kind = arm;
    EXPECT_THAT(outcome.out, ContainsRegex(fmt::format(
                                 "\n{} +{} +384 +12 +0\\.0000 +new *\n", arm,
                                 system::grouped(LanguageModel(model).parameters().count()))));
  }
  EXPECT_THAT(outcome.out, testing::EndsWith("\n2 runs, 2 to train, 0.0000 PFLOP\n"))
      << "no run has told how fast they are";
}

TEST_F(DryRun, knows_what_is_finished_and_where_the_rest_continues) {
  ASSERT_EQ(sweep({"--arms", "softmax"}).exit, 0);
  fs::create_directories(project / "out/diff_v1");
  fs::copy(project / "out/softmax", project / "out/diff_v1", fs::copy_options::recursive);
  std::string config = test::contents(project / "out/softmax/config.yaml");
  for (const std::string what : {"name: softmax", "arm: softmax", "kind: softmax"}) {
    const std::string other = what.substr(0, what.find(' ')) + " diff_v1";
    const size_t at = config.find(what);
    ASSERT_NE(at, std::string::npos) << what << config;
    config.replace(at, what.size(), other);
  }
  put(project / "out/diff_v1/config.yaml", config);
  std::string status = test::contents(project / "out/diff_v1/status.json");
  status.replace(status.find("\"finished\""), 10, "\"stopped\"");
  status.replace(status.find("\"step\": 12"), 10, "\"step\": 7");
  put(project / "out/diff_v1/status.json", status);  // what a failed run did after its checkpoint
  fs::rename(project / "out/diff_v1/checkpoints/step-00000012.h5",
             project / "out/diff_v1/checkpoints/step-00000005.h5");
  put(project / "out/diff_v1/checkpoints/latest", "step-00000005.h5\n");
  const Outcome outcome = dry_run();
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(ContainsRegex("softmax .* finished *\n"),
                                 ContainsRegex("diff_v1 .* [0-9]+s +continues at step 5 *\n"),
                                 ContainsRegex("\n2 runs, 1 to train, 0.0000 PFLOP; about [0-9]+s "
                                               "with --jobs 1, as fast as 1 finished run\n")));
}

TEST_F(DryRun, refuses_a_directory_that_holds_something_else) {
  fs::create_directories(project / "out/softmax");
  put(project / "out/softmax/thesis.tex", "precious");
  const Outcome outcome = dry_run();
  EXPECT_EQ(outcome.exit, 74);
  EXPECT_THAT(outcome.err, HasSubstr("out/softmax exists and holds something else"));
}

TEST_F(DryRun, jobs_and_arms_that_cannot_be_meant_are_usage_errors) {
  for (const std::string jobs : {"0", "-1", "many", "1025"}) {
    const Outcome outcome = dry_run({"--jobs", jobs});
    EXPECT_EQ(outcome.exit, 64) << jobs;
    EXPECT_THAT(outcome.err, HasSubstr("--jobs"));
  }
  const Outcome outcome = dry_run({"--arms", "softmax,diff_v3"});
  EXPECT_EQ(outcome.exit, 64);
  EXPECT_EQ(outcome.err,
            "difftape: --arms: 'diff_v3' is not an arm of this sweep (softmax, diff_v1); did you "
            "mean 'diff_v1'?\n");
}

}  // namespace
}  // namespace difftape::study
