// Committed results: index.csv gives the same verdicts and saves the same training as its runs.
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
  /// Copies the files of a sweep that are committed.
  void commit(const std::string& sweep, const std::string& folder) {
    fs::create_directories(project / folder);
    for (const char* file : {"index.csv", "config.csv"})
      fs::copy_file(project / sweep / file, project / folder / file);
  }
  /// Returns a column of an index.
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
  const auto states = column("a/index.csv", "state");
  EXPECT_THAT(states, AllOf(testing::Contains("finished"), testing::Contains("diverged")));
  commit("a", "results/a");
  commit("b", "results/b");
  for (const char* file : {"results/a/index.csv", "results/a/config.csv"})
    EXPECT_THAT(contents(project / file), Not(HasSubstr(project.path().string())));
  const auto report = [&](std::vector<std::string> inputs, const std::string& name) {
    inputs.insert(inputs.begin(), "report");
    inputs.insert(inputs.end(), {"--claims", "claims.yaml", "--out", name});
    std::string text = difftape(inputs).out;
    return text.substr(0, text.find("\nreport: "));
  };
  const std::string text = report({"a", "b"}, "dirs");
  EXPECT_EQ(report({"results/a/index.csv", "results/b/index.csv"}, "files"), text);
  EXPECT_EQ(contents(project / "files/verdicts.csv"), contents(project / "dirs/verdicts.csv"));
  EXPECT_EQ(contents(project / "files/lr_curve.svg"), contents(project / "dirs/lr_curve.svg"));
  EXPECT_EQ(report({"results/a", "results/b"}, "folders"), text);
  EXPECT_THAT(text, AllOf(HasSubstr("5 seeds"), HasSubstr("no run of softmax logged attn/output_"),
                          HasSubstr("5 seeds at own and 2 x own lr (diff_v2 0.01, softmax 0.01)")));
  EXPECT_THAT(contents(project / "folders/report.html"),
              AllOf(HasSubstr("30 of 30 runs come from index.csv, which has no curves"),
                    Not(HasSubstr("id=\"curves\"")), Not(HasSubstr("id=\"commands\""))));
}

TEST_F(Results, are_not_trained_again_and_count_in_tables_and_verdicts) {
  difftape({"sweep", "s.yaml", "--out", "a", "--set", "sweep.seeds=[1, 2]"});
  commit("a", "results/a");
  write("s.yaml", "seeds: [1, 2, 3]", "  results: results/a\n");
  const Outcome outcome = difftape({"sweep", "s.yaml", "--out", "b"});
  EXPECT_THAT(outcome.out, StartsWith("12 of 18 runs are already trained, 12 of them in "
                                      "results/a/index.csv\n"));
  EXPECT_FALSE(fs::exists(project / "b/softmax-lr1e-02-seed1"));
  EXPECT_TRUE(fs::exists(project / "b/softmax-lr1e-02-seed3"));
  const auto from = column("b/index.csv", "from"), states = column("b/index.csv", "state");
  EXPECT_EQ(std::ranges::count(from, "results/a"), 12);
  EXPECT_EQ(std::ranges::count(states, "queued"), 0);
  put(project / "whole.yaml", contents(project / "s.yaml"));
  difftape({"sweep", "whole.yaml", "--out", "c", "--set", "sweep.results="});
  EXPECT_EQ(contents(project / "b/verdicts.csv"), contents(project / "c/verdicts.csv"));
  EXPECT_EQ(column("b/index.csv", "val_loss"), column("c/index.csv", "val_loss"));
  difftape({"report", "b", "--claims", "claims.yaml", "--out", "again"});
  EXPECT_EQ(contents(project / "again/verdicts.csv"), contents(project / "c/verdicts.csv"))
      << "the directory of the sweep has the taken runs too";
  EXPECT_THAT(difftape({"sweep", "s.yaml", "--out", "b"}).out,
              StartsWith("18 of 18 runs are already trained, 12 of them in "));
  EXPECT_THAT(difftape({"sweep", "s.yaml", "--out", "b", "--run", "softmax-lr1e-02-seed1"}).out,
              HasSubstr("results/a/index.csv: softmax-lr1e-02-seed1 is finished\n"));
  commit("b", "results/b");
  fs::remove(project / "text.txt");
  write("all.yaml", "seeds: [1, 2, 3]", "  results: results/b\n");
  difftape({"sweep", "all.yaml", "--out", "d"});
  EXPECT_EQ(contents(project / "d/verdicts.csv"), contents(project / "c/verdicts.csv"))
      << "judged again without data and without training";
}

TEST_F(Results, from_another_configuration_or_other_data_stop_the_sweep) {
  difftape({"sweep", "s.yaml", "--out", "a", "--set", "sweep.seeds=[1]"});
  commit("a", "results/a");
  write("s.yaml", "seeds: [1, 2]", "  results: results/a\n");
  const auto refused = [&](std::vector<std::string> more, int exit) {
    more.insert(more.begin(), {"sweep", "s.yaml", "--out", "b"});
    const Outcome outcome = project.difftape(more);
    EXPECT_EQ(outcome.exit, exit);
    EXPECT_FALSE(fs::exists(project / "b/index.csv"));
    return outcome.err;
  };
  EXPECT_EQ(
      refused({"--set", "optim.weight_decay=0.5", "--set", "train.steps=61"}, 78),
      "s.yaml:7:12: error: sweep.results: results/a/index.csv contains softmax-lr1e-02 of seed 1 "
      "with another configuration: optim.weight_decay is 0.1 there, not 0.5; train.steps is "
      "60 there, not 61; remove sweep.results, or use that configuration in the sweep\n");
  const auto digests = column("results/a/index.csv", "config");
  std::string index = contents(project / "results/a/index.csv");
  put(project / "results/a/index.csv", index.replace(index.find(digests[0]), 2, "zz"));
  EXPECT_THAT(refused({}, 78), HasSubstr("another configuration: its digest is zz" +
                                         digests[0].substr(2) + ", not " + digests[0]));
  fs::copy_file(project / "a/index.csv", project / "results/a/index.csv",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(difftape({"sweep", "s.yaml", "--out", "c", "--set", "log.tensorboard=true", "--arms",
                        "softmax"})
                  .out,
              StartsWith("6 of 12 runs are already trained, 6 of them in "))
      << "what only logs makes no other configuration";
  put(project / "val.txt", test::tiny_text());
  difftape({"sweep", "s.yaml", "--out", "d", "--set", "sweep.seeds=[1]", "--set",
            "data.val_path=[val.txt]", "--set", "sweep.results="});
  commit("d", "results/d");
  put(project / "val.txt", test::tiny_text() + "more");
  EXPECT_THAT(
      refused({"--set", "sweep.results=results/d", "--set", "data.val_path=[val.txt]"}, 65),
      HasSubstr("results/d/index.csv: softmax-lr1e-02 was trained on data with the digest "))
      << "other validation data";
  put(project / "text.txt", test::tiny_text() + "more");
  EXPECT_THAT(refused({}, 65), AllOf(HasSubstr("results/a/index.csv: softmax-lr1e-02 was trained "
                                               "on data with the digest "),
                                     HasSubstr(", but the local data has the digest ")));
  EXPECT_THAT(refused({"--set", "sweep.seeds=[1]"}, 65), HasSubstr("was trained on data with"))
      << "although nothing is left to train";
  EXPECT_THAT(
      refused({"--set", "sweep.results=nowhere"}, 78),
      HasSubstr("sweep.results: nowhere does not exist; the path is relative to the working "));
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

/// A file of verdicts, the indexes that it judges, and the claims.
struct CommittedVerdicts {
  std::string file, indexes, claims;
};

/// Returns the index.csv of each folder of results/size_ladder that the pattern matches.
std::vector<std::string> parts(const fs::path& study, const std::string& pattern) {
  std::set<std::string> found;
  for (const auto& part : fs::directory_iterator(study))
    if (std::regex_match(part.path().filename().string(), std::regex(pattern)))
      found.insert((part.path() / "index.csv").string());
  return {found.begin(), found.end()};
}

TEST(CommittedResults, reproduce_their_committed_verdicts) {
  const fs::path root = DIFFTAPE_TEST_SOURCE_DIR, results = root / "results";
  const CommittedVerdicts all[] = {
      {"experts/verdicts.csv", "experts", "experts/claims.yaml"},
      {"precision/verdicts.csv", "precision", "precision/claims.yaml"},
      {"retrieval/mqar/verdicts.csv", "mqar", "retrieval/claims_mqar.yaml"},
      {"retrieval/needles/verdicts.csv", "needles", "retrieval/claims_needles.yaml"},
      {"size_ladder/verdicts.csv", "a._.|b_.*|c_[12]", "size_ladder/claims.yaml"},
      {"size_ladder/verdicts_steps.csv", "d_.", "size_ladder/claims.yaml"},
      {"size_ladder/verdicts_init.csv", "e_[12]", "size_ladder/claims_conditions.yaml"},
      {"size_ladder/verdicts_norm.csv", "g_3", "size_ladder/claims_conditions.yaml"}};
  std::set<fs::path> committed, judged;
  for (const auto& file : fs::recursive_directory_iterator(results))
    if (file.path().filename().string().starts_with("verdicts")) committed.insert(file.path());
  for (const auto& [file, indexes, claims] : all) {
    SCOPED_TRACE(file);
    judged.insert(results / file);
    const ScratchDir dir;
    std::vector<std::string> words{"report"};
    for (const std::string& index : parts((results / file).parent_path(), indexes))
      words.push_back(index);
    if (words.size() == 1) words.push_back((results / file).parent_path() / "index.csv");
    words.insert(words.end(), {"--baseline", "softmax", "--claims",
                               root / "configs/studies" / claims, "--out", dir / "out"});
    const Outcome outcome = test::run(words, {.directory = dir.path()});
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(contents(dir / "out/verdicts.csv"), contents(results / file));
  }
  EXPECT_EQ(judged, committed) << "every committed file of verdicts is checked";
}

TEST(CommittedResults, reproduce_their_committed_learning_rates) {
  std::size_t checked = 0;
  for (const auto& file :
       fs::recursive_directory_iterator(fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "results")) {
    if (file.path().filename() != "lr_optimum.csv") continue;
    SCOPED_TRACE(file.path());
    const ScratchDir dir;
    const Outcome outcome =
        test::run({"report", file.path().parent_path() / "index.csv", "--out", dir / "out"},
                  {.directory = dir.path()});
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(contents(dir / "out/lr_optimum.csv"), contents(file.path()));
    ++checked;
  }
  EXPECT_GE(checked, 4u);
}

}  // namespace
}  // namespace difftape::study
