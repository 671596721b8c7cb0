// Several worker processes: their results, how they end, and their rows in the index.
#include <csignal>

#include "core/parallel.h"
#include "tests/train/study/sweep/sweep_project.h"
#include "train/study/compare/quantities.h"
#include "train/study/compare/row.h"
#include "train/study/sweep/worker.h"
#include "train/system/text_table.h"

namespace difftape::study {
namespace {

/// Two arms, two learning rates, two seeds.
class Workers : public test::SweepProject {
 protected:
  static constexpr const char* kSweep =
      "base: tiny.yaml\n"
      "data.path: [text.txt]\n"
      "sweep:\n"
      "  seeds: [1, 2]\n"
      "  lr: [1.0e-2, 2.0e-2]\n"
      "  arms: {softmax: , diff_v2: {model.attention.kind: diff_v2}}\n";
  static constexpr std::array kRuns{"softmax-lr1e-02-seed1", "diff_v2-lr1e-02-seed1",
                                    "softmax-lr2e-02-seed1", "diff_v2-lr2e-02-seed1",
                                    "softmax-lr1e-02-seed2", "diff_v2-lr1e-02-seed2",
                                    "softmax-lr2e-02-seed2", "diff_v2-lr2e-02-seed2"};

  Workers() : SweepProject(kSweep) {}

  /// Returns the cells of runs.csv by rows.
  std::vector<std::map<std::string, std::string>> index() {
    const auto lines = system::read_csv(contents(project / "out/runs.csv"));
    std::vector<std::map<std::string, std::string>> rows(lines.size() - 1);
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(lines[i + 1].size(), lines[0].size());
      for (size_t c = 0; c < lines[0].size(); ++c) rows[i][lines[0][c]] = lines[i + 1].at(c);
    }
    return rows;
  }
};

TEST_F(Workers, in_parallel_train_bitwise_the_same_as_in_sequence) {
  ASSERT_EQ(sweep({"--jobs", "1"}).exit, 0);
  fs::rename(project / "out", project / "one");
  const Outcome outcome = sweep({"--jobs", "2"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  for (const std::string run : kRuns) {
    EXPECT_EQ(measured(project / ("out/" + run)), measured(project / ("one/" + run))) << run;
    EXPECT_EQ(test::last_checkpoint(project / ("out/" + run)),
              test::last_checkpoint(project / ("one/" + run)))
        << run;
  }
  EXPECT_NE(measured(project / "out" / kRuns[0]), measured(project / "out" / kRuns[4]));
}

TEST_F(Workers, pass_on_a_warning_of_their_runs_once) {
  put(project / "copy.txt", test::tiny_text());
  const Outcome outcome = sweep({"--set", "sweep.seeds=[1]", "--set", "data.val_path=copy.txt"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const std::size_t first = outcome.out.find("\nwarning: ");
  ASSERT_NE(first, std::string::npos) << outcome.out;
  EXPECT_THAT(outcome.out.substr(first), HasSubstr("are in files that data.path also contains"));
  EXPECT_EQ(outcome.out.find("warning: ", first + 10), std::string::npos) << outcome.out;
}

TEST_F(Workers, env_json_names_the_arm_and_the_command_of_the_sweep) {
  ASSERT_EQ(sweep({"--jobs", "8", "--set", "sweep.seeds=[1]"}).exit, 0);
  const auto env = run::read_env(project / "out/diff_v2-lr2e-02");
  const run::Config config = run::config_of_run(project / "out/diff_v2-lr2e-02");
  EXPECT_EQ(config.run.arm, "diff_v2");
  EXPECT_EQ(config.run.name, "diff_v2-lr2e-02");
  EXPECT_EQ(env["command"][1], "sweep");
  EXPECT_EQ(env["machine"]["threads"], 1);
}

TEST_F(Workers, fill_the_index_with_one_exact_row_per_run_in_the_order_of_the_sweep) {
  const Outcome outcome = sweep({"--jobs", "2"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const auto rows = index();
  ASSERT_EQ(rows.size(), kRuns.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    auto row = rows[i];
    EXPECT_EQ(row["name"], kRuns[i]);
    EXPECT_EQ(row["dir"], kRuns[i]);
    EXPECT_EQ(row["arm"], i % 2 == 0 ? "softmax" : "diff_v2");
    EXPECT_EQ(row["seed"], i < 4 ? "1" : "2");
    EXPECT_EQ(row["lr"], i % 4 < 2 ? "0.01" : "0.02");
    EXPECT_EQ(row["optim.lr"], row["lr"]);
    EXPECT_EQ(row["state"], "finished");
    EXPECT_EQ(row["step"] + "/" + row["steps"], "12/12");
    EXPECT_EQ(row["diverged_step"], "");
    const Row record = load_run(project / "out" / kRuns[i]);
    EXPECT_EQ(std::stod(row["parameters"]), double(record.status.parameters));
    EXPECT_GT(std::stod(row["val_loss"]), 0);
    for (const Quantity& each : quantities()) {
      EXPECT_EQ(row.contains(each.name), each.of_run != nullptr) << each.name;
      if (!row.contains(each.name)) continue;
      const std::string number = fmt::to_string(record.number(each));
      EXPECT_EQ(row[each.name], record.logged(each) ? number : "") << each.name;
    }
    double seconds = 0;
    for (const auto& line : metrics_lines(project / "out" / kRuns[i])) {
      seconds += 32 / line["throughput/tokens_per_sec"].get<double>();
    }
    EXPECT_NEAR(std::stod(row["train_seconds"]), seconds, 1e-9);
  }
}

TEST_F(Workers, of_a_partial_sweep_keep_the_rows_of_all_runs) {
  ASSERT_EQ(sweep({"--arms", "diff_v2", "--jobs", "2"}).exit, 0);
  for (auto row : index()) {
    const bool trained = row["arm"] == "diff_v2";
    EXPECT_EQ(row["state"], trained ? "finished" : "queued");
    EXPECT_EQ(row["val_loss"].empty(), !trained);
    EXPECT_EQ(fs::exists(project / ("out/" + row["name"])), trained);
  }
  EXPECT_TRUE(fs::exists(project / "out/report.html"));
  const Outcome rest = sweep({});
  EXPECT_EQ(rest.exit, 0) << rest.err;
  EXPECT_THAT(rest.out, StartsWith("4 of 8 runs are already trained\n"));
  for (auto row : index()) EXPECT_EQ(row["state"], "finished");
}

TEST_F(Workers, a_killed_one_is_reported_and_its_run_resumes_next_time) {
  make_long();
  std::string killed;
  {
    Process process({"sweep", "s.yaml", "--out", "out", "--jobs", "2", "--set", "sweep.seeds=[1]"},
                    project.here());
    wait_for("softmax-lr1e-02");
    wait_for("diff_v2-lr1e-02");
    const std::string id = std::to_string(process.id());
    std::ifstream children("/proc/" + id + "/task/" + id + "/children");
    pid_t worker = 0;
    ASSERT_TRUE(children >> worker);
    kill(worker, SIGKILL);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit, 75) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("failed: killed by signal 9\n"));
    const size_t named = outcome.out.find("to retry:\n  ") + 12;
    killed = outcome.out.substr(named, outcome.out.find(':', named) - named);
  }
  int failed = 0;
  for (auto row : index()) {
    EXPECT_EQ(row["state"], row["name"] == killed ? "failed" : "finished") << row["name"];
    failed += row["state"] == "failed";
  }
  EXPECT_EQ(failed, 1);
  const Outcome again = sweep({"--jobs", "1", "--set", "sweep.seeds=[1]"});
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(StartsWith("3 of 4 runs are already trained\n" + killed +
                                          ": resumes at step 0\n")));
  for (auto row : index()) EXPECT_EQ(row["state"], "finished");
}

TEST_F(Workers, when_stopped_save_their_state_and_resume_bitwise) {
  make_long();
  {
    Process process({"sweep", "s.yaml", "--out", "out", "--jobs", "2"}, project.here());
    wait_for(kRuns[0]);
    wait_for(kRuns[1]);
    process.signal(SIGINT);
    EXPECT_EQ(process.wait().exit, 130);
  }
  auto rows = index();
  for (const size_t i : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(rows[i]["state"], "stopped");
    EXPECT_TRUE(fs::exists(project / "out" / kRuns[i] / "checkpoints"));
  }
  EXPECT_EQ(rows[7]["state"], "queued");
  ASSERT_EQ(sweep({"--jobs", "2", "--set", "sweep.seeds=[1, 2]", "--arms", "softmax"}).exit, 0);
  fs::rename(project / "out", project / "parts");
  ASSERT_EQ(sweep({"--jobs", "1", "--arms", "softmax"}).exit, 0);
  EXPECT_EQ(measured(project / "parts" / kRuns[0]), measured(project / "out" / kRuns[0]));
}

TEST_F(Workers, a_full_disk_for_one_arm_does_not_stop_the_others) {
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  test::Conditions conditions;
  conditions.largest_file = test::last_checkpoint(project / "whole").size() + 20000;
  put(project / "s.yaml",
      "base: tiny.yaml\nsweep.arms: {wide: {model.d_ff: 4096}, narrow: , late: }\n");
  const Outcome outcome =
      project.difftape({"sweep", "s.yaml", "--out", "out", "--jobs", "2"}, conditions);
  EXPECT_EQ(outcome.exit, 74);
  EXPECT_THAT(outcome.out, HasSubstr("wide: failed: cannot write out/wide/checkpoints/step-"));
  auto rows = index();
  EXPECT_EQ(rows[0]["state"], "failed");
  EXPECT_EQ(rows[1]["state"], "finished");
  EXPECT_EQ(rows[2]["state"], "finished");
}

TEST_F(Workers, do_not_replace_an_index_that_no_sweep_wrote) {
  fs::create_directories(project / "out");
  put(project / "out/runs.csv", "my,notes\n");
  EXPECT_THAT(test::error(74, sweep({})),
              HasSubstr("out/runs.csv already exists and does not contain the runs of a sweep"));
  EXPECT_EQ(contents(project / "out/runs.csv"), "my,notes\n");
}

TEST_F(Workers, reject_input_that_is_not_a_job) {
  EXPECT_THAT(test::error(65, project.difftape({"worker"})),
              HasSubstr("standard input is not a job of a sweep"));
}

TEST(Layout, splits_the_cores_among_workers_as_evenly_as_possible) {
  const Layout two = make_layout(2, {0, 2, 4, 6, 8}, 64);
  EXPECT_EQ(two.cores, (std::vector<std::vector<int>>{{0, 2}, {4, 6, 8}}));
  EXPECT_EQ(two.threads, (std::vector<int>{2, 3}));
  const Layout crowded = make_layout(3, {5, 7}, 64);
  EXPECT_EQ(crowded.jobs(), 3);
  for (const auto& cores : crowded.cores) EXPECT_EQ(cores.size(), 1u);
  EXPECT_EQ(make_layout(1, {0, 1, 2, 3}, 2).threads, std::vector<int>{2});
}

TEST(Layout, has_one_worker_per_core_or_run_by_default) {
  const run::Config config;
  const std::vector<const run::Config*> three(3, &config);
  const auto jobs = [&](std::size_t left, int wanted) {
    return choose_layout(std::span(three).first(left), wanted).jobs();
  };
  EXPECT_EQ(jobs(1, 0), 1);
  EXPECT_LE(jobs(3, 0), std::min(3, num_threads()));
  EXPECT_GE(jobs(3, 0), 1);
  EXPECT_EQ(jobs(3, 2), 2);
  EXPECT_EQ(jobs(1, 2), 1);
}

}  // namespace
}  // namespace difftape::study
