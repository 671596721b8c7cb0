// Committed results: runs.csv gives the same verdicts as its runs.
#include <regex>
#include <set>

#include "tests/train/run/loop/tiny.h"
#include "tests/train/study/sweep/sweep_project.h"
#include "train/study/sweep/sweep.h"
#include "train/system/text_table.h"

namespace difftape::study {
namespace {

using testing::ContainsRegex;

constexpr const char* kClaims = R"(learning_rates: lr_star.csv
margins: {val_loss: {margin: 0.01, reason: r}, lr_sensitivity: {margin: 0.5, reason: r}}
claims:
  loss: {statement: a, arm: diff_v2, reference: softmax, metric: val_loss, where: {optim.lr: [0.01]}, expect: lower}
  final: {statement: b, arm: diff_v2, reference: softmax, metric: final_loss, expect: lower}
  sensitivity: {statement: c, arm: diff_v2, reference: softmax, metric: lr_sensitivity, expect: lower}
  spikes: {statement: d, arm: diff_v2, reference: softmax, metric: grad_norm_spike_fraction, expect: higher}
  growth: {statement: e, arm: diff_v2, reference: softmax, metric: grad_norm_growth_before_decay, expect: lower}
  logit: {statement: f, arm: diff_v2, reference: softmax, metric: attention_logit, where: {optim.lr: 0.01}, expect: lower}
  cosine: {statement: g, arm: softmax, reference: diff_v2, metric: output_cosine, expect: lower}
  penalty: {statement: i, arm: diff_v2, reference: softmax, metric: lr_penalty, lr: [own, 2 x own], expect: lower}
  nobody: {statement: h, arm: diff_v2, reference: softmax, metric: val_loss, where: {model.d_model: 32}, expect: lower}
)";

struct Results : testing::Test {
  Results() {
    project.config.data.seq_len = 16;
    project.config.train.steps = 60;
    project.save();
    put(project / "claims.yaml", kClaims);
    put(project / "lr_star.csv",
        "arm,model.d_model,parameters,lr_star,low,high,loss,seeds,reason\n"
        "softmax,16,5000,0.01,,,,9,\ndiff_v2,16,5000,0.01,,,,9,\n");
    write("s.yaml", "seeds: [1, 2, 3]");
  }

  /// Two arms; one of them diverges at the largest learning rate.
  void write(const std::string& name, const std::string& seeds, const std::string& more = "") {
    put(project / name, "base: tiny.yaml\ndata.path: [text.txt]\nsweep:\n  " + seeds +
                            "\n  lr: [1.0e-2, 2.0e-2, 1.0e+9]\n  claims: claims.yaml\n" + more +
                            "  arms: {softmax: , diff_v2: {model.attention.kind: diff_v2}}\n");
  }
  Outcome difftape(const std::vector<std::string>& arguments) {
    const Outcome outcome = project.difftape(arguments);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return outcome;
  }
  /// Copies the file of a sweep that is committed.
  void commit(const std::string& sweep, const std::string& folder) {
    fs::create_directories(project / folder);
    fs::copy_file(project / sweep / "runs.csv", project / folder / "runs.csv");
  }
  /// Returns a column of a file.
  std::vector<std::string> column(const std::string& index, const std::string& name) {
    const auto lines = system::read_csv(contents(project / index));
    const auto at = std::ranges::find(lines[0], name) - lines[0].begin();
    std::vector<std::string> values;
    for (std::size_t i = 1; i < lines.size(); ++i)
      values.push_back(lines[i].at(static_cast<std::size_t>(at)));
    return values;
  }

  TinyProject project;
};

TEST_F(Results, give_the_verdicts_and_tables_of_the_run_directories_even_if_pooled) {
  write("more.yaml", "seeds: [4, 5]");
  difftape({"sweep", "s.yaml", "--out", "a"});
  difftape({"sweep", "more.yaml", "--out", "b"});
  const auto states = column("a/runs.csv", "state");
  EXPECT_THAT(states, AllOf(testing::Contains("finished"), testing::Contains("diverged")));
  commit("a", "results/a");
  commit("b", "results/b");
  EXPECT_THAT(contents(project / "results/a/runs.csv"), Not(HasSubstr(project.path().string())));
  const auto report = [&](std::vector<std::string> inputs, const std::string& name) {
    inputs.insert(inputs.begin(), "report");
    inputs.insert(inputs.end(), {"--claims", "claims.yaml", "--out", name});
    std::string text = difftape(inputs).out;
    return text.substr(0, text.find("\nreport: "));
  };
  const std::string text = report({"a", "b"}, "dirs");
  EXPECT_EQ(report({"results/a/runs.csv", "results/b/runs.csv"}, "files"), text);
  EXPECT_EQ(contents(project / "files/verdicts.csv"), contents(project / "dirs/verdicts.csv"));
  EXPECT_EQ(contents(project / "files/lr_curve.svg"), contents(project / "dirs/lr_curve.svg"));
  EXPECT_EQ(report({"results/a", "results/b"}, "folders"), text);
  EXPECT_THAT(text, AllOf(HasSubstr("5 seeds"), HasSubstr("no run of softmax logged attn/output_"),
                          HasSubstr("5 seeds at own and 2 x own lr (diff_v2 0.01, softmax 0.01)")));
  EXPECT_THAT(contents(project / "folders/report.html"),
              AllOf(HasSubstr("30 of 30 runs come from runs.csv, which has no curves"),
                    Not(HasSubstr("id=\"curves\""))));
}

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

TEST_F(DryRun, lists_the_runs_to_train_and_trains_nothing) {
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
  EXPECT_THAT(outcome.out, EndsWith("\n2 runs, 2 to train, 0.0000 PFLOP\n"))
      << "no run has told how fast they are";
}

TEST_F(DryRun, shows_finished_runs_and_the_step_at_which_others_resume) {
  ASSERT_EQ(sweep({"--arms", "softmax"}).exit, 0);
  fs::create_directories(project / "out/diff_v1");
  fs::copy(project / "out/softmax", project / "out/diff_v1", fs::copy_options::recursive);
  std::string config = contents(project / "out/softmax/config.yaml");
  for (const std::string what : {"name: softmax", "arm: softmax", "kind: softmax"}) {
    const std::string other = what.substr(0, what.find(' ')) + " diff_v1";
    const size_t at = config.find(what);
    ASSERT_NE(at, std::string::npos) << what << config;
    config.replace(at, what.size(), other);
  }
  put(project / "out/diff_v1/config.yaml", config);
  std::string status = contents(project / "out/diff_v1/status.json");
  status.replace(status.find("\"finished\""), 10, "\"stopped\"");
  status.replace(status.find("\"step\": 12"), 10, "\"step\": 7");
  put(project / "out/diff_v1/status.json", status);  // as a run that failed after its checkpoint
  fs::rename(project / "out/diff_v1/checkpoints/step-00000012.h5",
             project / "out/diff_v1/checkpoints/step-00000005.h5");
  const Outcome outcome = dry_run();
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(ContainsRegex("softmax .* finished *\n"),
                                 ContainsRegex("diff_v1 .* [0-9]+s +resumes at step 5 *\n"),
                                 ContainsRegex("\n2 runs, 1 to train, 0.0000 PFLOP; about [0-9]+s "
                                               "with --jobs 1, at the speed of 1 finished run\n")));
}

TEST_F(DryRun, invalid_jobs_and_unknown_arms_are_usage_errors) {
  for (const std::string jobs : {"0", "-1", "many", "1025"}) {
    const Outcome outcome = dry_run({"--jobs", jobs});
    EXPECT_EQ(outcome.exit, 64) << jobs;
    EXPECT_THAT(outcome.err, HasSubstr("--jobs"));
  }
  EXPECT_EQ(test::error(64, dry_run({"--arms", "softmax,diff_v3"})),
            "difftape: --arms: 'diff_v3' is not an arm of this sweep (softmax, diff_v1); did you "
            "mean 'diff_v1'?\n");
}

TEST_F(DryRun, rejects_a_directory_with_other_contents) {
  fs::create_directories(project / "out/softmax");
  put(project / "out/softmax/thesis.tex", "precious");
  EXPECT_THAT(test::error(74, dry_run()),
              HasSubstr("out/softmax already exists and does not contain this run"));
}

const fs::path kResults = fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "results";

/// Claims below configs/studies by study.
const std::map<std::string, std::string> kClaimsOf{
    {"experts", "experts/claims.yaml"},
    {"precision", "precision/claims.yaml"},
    {"recall", "retrieval/claims_mqar.yaml"},
    {"needles", "retrieval/claims_needles.yaml"},
    {"size_ladder", "size_ladder/claims.yaml"},
    {"training_length", "size_ladder/claims.yaml"},
    {"conditions", "size_ladder/claims_conditions.yaml"}};

TEST(CommittedResults, reproduce_their_committed_verdicts) {
  std::size_t judged = 0;
  for (const auto& file : fs::recursive_directory_iterator(kResults)) {
    if (file.path().filename() != "verdicts.csv") continue;
    const fs::path study = file.path().parent_path();
    SCOPED_TRACE(study);
    const ScratchDir dir;
    const Outcome outcome = test::run(
        {"report", study, "--claims",
         kResults / "../configs/studies" / kClaimsOf.at(study.filename()), "--out", dir / "out"},
        {.directory = dir.path()});
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(contents(dir / "out/verdicts.csv"), contents(file.path()));
    ++judged;
  }
  EXPECT_EQ(judged, kClaimsOf.size());
}

TEST(CommittedResults, have_the_primary_verdicts_that_scipy_computes) {
  if (std::system("python3 -c 'import scipy, yaml' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3 with scipy and PyYAML is not installed";
  for (const auto& [study, claims] : kClaimsOf) {
    if (study == "training_length") continue;  // its claim is exploratory
    const std::string command =
        fmt::format("python3 {0}/recompute.py {0}/{1} {0}/../configs/studies/{2} >/dev/null",
                    kResults.string(), study, claims);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

TEST(CommittedResults, reproduce_their_committed_learning_rates_and_figure) {
  std::size_t checked = 0;
  for (const auto& file : fs::recursive_directory_iterator(kResults)) {
    const fs::path name = file.path().filename();
    if (name != "lr_optimum.csv" && name != "lr_curve.svg") continue;
    SCOPED_TRACE(file.path());
    const ScratchDir dir;
    const Outcome outcome = test::run({"report", file.path().parent_path(), "--out", dir / "out"},
                                      {.directory = dir.path()});
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(contents(dir / "out" / name), contents(file.path()));
    ++checked;
  }
  EXPECT_EQ(checked, 3u);
  EXPECT_THAT(contents(kResults / "../configs/studies/size_ladder/lr_star.csv"),
              StartsWith(contents(kResults / "size_ladder/lr_optimum.csv")))
      << "the rates that the study fixed before block B";
}

}  // namespace
}  // namespace difftape::study
