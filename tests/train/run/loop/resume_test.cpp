// Tests that a run that was stopped or killed and then resumed equals an uninterrupted run.
#include <csignal>

#include "tests/train/run/loop/tiny.h"
#include "train/run/inference/model.h"
#include "train/run/loop/continuation.h"
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"

namespace difftape::run {
namespace {

using test::last_checkpoint;

/// A run that blocks on its console output, a full pipe, until the test reads it.
struct Resume : testing::Test {
  Resume() {
    project.config.train.steps = 150;
    project.config.train.eval_interval = 1;
    project.config.train.eval_batches = 1;
    project.config.train.checkpoint_interval = 20;
    project.save();
  }

  /// Starts the run, ends it by a signal after step 25, resumes it, and compares it.
  void interrupt_and_resume(int signal, int expected_exit) {
    {
      Process process({"train", "tiny.yaml", "--out", "cut"}, project.here());
      ASSERT_TRUE(process.read_until("step  25/150"));
      process.signal(signal);
      const Outcome outcome = process.wait();
      ASSERT_EQ(outcome.exit, expected_exit) << outcome.err;
      stopped = outcome.out;
    }
    status = read_status(project / "cut");
    test::output(project.difftape({"train", "tiny.yaml", "--out", "cut", "--resume"}));
    ASSERT_EQ(project.train("whole"), system::Exit::ok);
    test::expect_the_same_run(project / "cut", project / "whole");
    EXPECT_EQ(read_status(project / "cut").state, RunState::finished);
    EXPECT_EQ(read_status(project / "cut").started, status.started);
  }

  TinyProject project{"diff_v2"};
  RunStatus status;  ///< status between interruption and resumption
  std::string stopped;
};

TEST_F(Resume, after_a_termination_request_gives_the_bits_of_an_uninterrupted_run) {
  interrupt_and_resume(SIGTERM, 143);
  EXPECT_EQ(status.state, RunState::stopped);
  EXPECT_EQ(status.exit_code, 143);
  EXPECT_GE(status.step, 25);
  EXPECT_LT(status.step, 150);
  EXPECT_THAT(stopped, HasSubstr(fmt::format(
                           "stopped at step {}; continue with: difftape train cut --resume\n",
                           status.step)));
}

TEST_F(Resume, after_an_interrupt_gives_the_bits_of_an_uninterrupted_run) {
  interrupt_and_resume(SIGINT, 130);
  EXPECT_EQ(status.state, RunState::stopped);
  EXPECT_EQ(status.exit_code, 130);
}

TEST_F(Resume, after_a_closed_terminal_gives_the_bits_of_an_uninterrupted_run) {
  interrupt_and_resume(SIGHUP, 143);
  EXPECT_EQ(status.state, RunState::stopped);
}

TEST_F(Resume, after_a_kill_gives_the_bits_of_an_uninterrupted_run) {
  interrupt_and_resume(SIGKILL, -SIGKILL);
  EXPECT_EQ(status.state, RunState::killed);
  EXPECT_GE(status.step, 25) << "as of the last line of metrics.jsonl";
}

TEST(ResumeOfExperts, restores_the_bias_that_balances_them) {
  TinyProject project("diff_v2");
  project.config.model.moe = test::every_part_of_moe();
  project.config.train.checkpoint_interval = 4;
  project.config.train.gradient_accumulation_steps = 2;
  for (const char* run : {"whole", "cut"}) ASSERT_EQ(project.train(run), system::Exit::ok);
  put(project / "cut/checkpoints/latest", "step-00000004.h5\n");
  ASSERT_EQ(project.train("cut", true), system::Exit::ok);
  test::expect_the_same_run(project / "cut", project / "whole");
  const NamedModel named = open_model(project / "whole");
  for (const char* layer : {"0", "1"}) {
    const Parameter* bias = named.model->parameters().find(
        fmt::format("model.layers.{}.mlp.gate.e_score_correction_bias", layer));
    EXPECT_THAT(bias->value.values(), testing::Contains(testing::Ne(real{0}))) << layer;
  }
}

TEST_F(Resume, after_a_kill_before_the_first_checkpoint_starts_over) {
  project.config.train.checkpoint_interval = 0;
  project.save();
  interrupt_and_resume(SIGKILL, -SIGKILL);
  EXPECT_EQ(status.state, RunState::killed);
  EXPECT_GE(status.step, 25) << "as of the last line of metrics.jsonl";
}

TEST_F(Resume, with_auto_starts_resumes_or_does_nothing) {
  const std::vector<std::string> command{"train", "tiny.yaml", "--out", "run", "--resume=auto"};
  fs::create_directory(project / "run");
  put(project / "run/config.yaml", "what a process left that was killed at its start\n");
  {
    Process process(command, project.here());
    ASSERT_TRUE(
        process.read_until("starting at step 1 of 150, since there is no run to resume in run\n"));
    ASSERT_TRUE(process.read_until("step  25/150"));
    process.signal(SIGTERM);
    ASSERT_EQ(process.wait().exit, 143);
  }
  EXPECT_THAT(test::output(project.difftape(command)), HasSubstr("resuming after step "));
  const std::string third = test::output(project.difftape(command));
  const std::string nothing =
      "run is finished: nothing to do; --init-from run begins a longer run\n";
  EXPECT_THAT(third, EndsWith(nothing));
  const Outcome directory = project.difftape({"train", "run", "--resume"});
  EXPECT_THAT(directory.out, EndsWith(nothing)) << "its own configuration";
  EXPECT_EQ(project.difftape({"train", "run"}).exit, 74);
  EXPECT_THAT(test::error(64, project.difftape({"train", "run", "--resume=soon"})),
              HasSubstr("--resume=soon: expected --resume or --resume=auto"));
}

TEST_F(Resume, of_a_finished_run_changes_none_of_its_files) {
  project.config.log.tensorboard = true;
  project.config.train.steps = 20;
  project.config.train.keep_best = true;
  project.config.train.keep_last = 1;
  project.save();
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto files = [&] {
    std::map<std::string, std::pair<std::string, fs::file_time_type>> found;
    for (const auto& entry : fs::recursive_directory_iterator(project / "run")) {
      if (!entry.is_regular_file()) continue;
      found[entry.path().string()] = {contents(entry.path()), entry.last_write_time()};
    }
    return found;
  };
  const auto before = files();
  EXPECT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_THAT(project.console.str(), EndsWith("begins a longer run\n"));
  EXPECT_TRUE(files() == before);

  const fs::path checkpoints = project / "run/checkpoints";
  fs::copy_file(checkpoints / "step-00000020.h5", checkpoints / "step-00000003.h5");
  EXPECT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_TRUE(files() == before) << "but a checkpoint that was to be removed";

  fs::remove(project / "run/metrics.h5");
  RunStatus ended = read_status(project / "run");
  ended.state = RunState::running;
  write_status(project / "run", ended);
  EXPECT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_TRUE(fs::exists(project / "run/metrics.h5")) << "it was killed at its end";
  EXPECT_EQ(read_status(project / "run").state, RunState::finished);
}

TEST_F(Resume, keeps_the_configured_checkpoints) {
  project.config.train.keep_last = 2;
  project.config.train.keep_interval = 60;
  project.save();
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(project / "run/checkpoints"))
    kept.push_back(entry.path().filename().string());
  EXPECT_THAT(kept, testing::UnorderedElementsAre("latest", "step-00000060.h5", "step-00000120.h5",
                                                  "step-00000140.h5", "step-00000150.h5"));
}

TEST_F(Resume, replaces_checkpoints_that_only_the_clock_asked_for) {
  const auto checkpoints = [&](const std::string& run) {
    std::vector<Index> steps;
    for (const auto& entry : std::filesystem::directory_iterator(project / run / "checkpoints"))
      if (const auto step = step_of_file(entry.path())) steps.push_back(*step);
    std::ranges::sort(steps);
    return steps;
  };
  project.config.train.steps = 12;
  project.config.train.checkpoint_interval = 5;
  project.config.train.checkpoint_minutes = 1e-9;
  project.save();
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_EQ(checkpoints("run"), (std::vector<Index>{5, 10, 12}));
  project.config = test::explosive(project.config);
  project.config.train.checkpoint_interval = 0;
  ASSERT_EQ(project.train("ended"), system::Exit::diverged);
  const Index last = test::metrics_lines(project / "ended").back()["step"];
  EXPECT_EQ(checkpoints("ended"), std::vector<Index>{last - 1}) << "an unexpected end loses a step";
}

TEST_F(Resume, replaces_the_checkpoint_by_the_clock_of_a_killed_run) {
  project.config.train.steps = 12;
  project.config.train.checkpoint_interval = 1;
  project.save();
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  test::cut_after(7, project / "run", project / "cut");
  const auto cut = project / "cut";
  for (Index step = 1; step <= 12; ++step)
    if (step != 5 && step != 7) fs::remove(cut / "checkpoints" / step_file_name(step));
  project.config.train.checkpoint_interval = 5;
  put(cut / "config.yaml", to_yaml(project.config));
  RunStatus killed = read_status(cut);
  killed.state = RunState::running;
  write_status(cut, killed);
  ASSERT_EQ(project.train("cut", true), system::Exit::ok);
  EXPECT_FALSE(fs::exists(cut / "checkpoints" / step_file_name(7)));
  for (const Index step : {5, 10, 12})
    EXPECT_TRUE(fs::exists(cut / "checkpoints" / step_file_name(step))) << step;
  EXPECT_EQ(measured(cut), measured(project / "run"));
}

TEST_F(Resume, keeps_the_checkpoint_of_the_lowest_validation_loss) {
  project.config.train.keep_best = true;
  project.config.train.keep_last = 1;
  project.config.train.checkpoint_interval = 0;
  project.config.optim.lr = 0.3;  // the loss goes up and down
  project.config.optim.min_lr = 0.3;
  project.save();
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  Index lowest = 0;
  double loss = INFINITY;
  for (const auto& line : metrics_lines(project / "run")) {
    if (!line.contains("val/loss") || !(line["val/loss"] < loss)) continue;
    loss = line["val/loss"];
    lowest = line["step"];
  }
  ASSERT_LT(lowest, 150) << "another learning rate is needed here";
  const auto best = find_checkpoint(project / "run/checkpoints/best");
  EXPECT_EQ(best.filename(), step_file_name(lowest));
  EXPECT_EQ(find_checkpoint(project / "run").filename(), step_file_name(150));
  const auto extra = Checkpoint(find_checkpoint(project / "run")).meta().extra_state;
  EXPECT_EQ(extra.at("best").at("loss"), loss);
  EXPECT_EQ(extra.at("best").at("step"), lowest);

  test::cut_after(lowest, project / "run", project / "cut");
  fs::remove(project / "cut/checkpoints/best");
  ASSERT_EQ(project.train("cut", true), system::Exit::ok);
  EXPECT_EQ(find_checkpoint(project / "cut/checkpoints/best").filename(), best.filename());
  EXPECT_EQ(measured(project / "cut"), measured(project / "run"));
}

TEST_F(Resume, works_without_its_best_checkpoint) {
  project.config.train.keep_best = true;
  project.config.train.steps = 60;
  project.save();
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto checkpoints = project / "run/checkpoints";
  fs::remove(find_checkpoint(checkpoints / "best"));
  put(checkpoints / "best", step_file_name(39) + "\n");
  put(checkpoints / "latest", step_file_name(40) + "\n");
  EXPECT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_GT(step_of_file(find_checkpoint(checkpoints / "best")), 40);
}

TEST_F(Resume, without_latest_uses_the_newest_checkpoint) {
  project.config.train.keep_last = 3;
  project.save();
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto metrics = contents(project / "run/metrics.jsonl");
  const auto last = find_checkpoint(project / "run");
  fs::remove(project / "run/checkpoints/latest");
  EXPECT_EQ(find_checkpoint(project / "run"), last);
  test::output(project.difftape({"train", "run", "--resume"}));
  EXPECT_EQ(contents(project / "run/metrics.jsonl"), metrics);
}

TEST_F(Resume, of_a_moved_project_works) {
  project.config.train.steps = 20;
  project.config.optim.schedule = ScheduleKind::constant;
  project.save();
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  fs::rename(project / "text.txt", project / "elsewhere.txt");
  const std::vector<std::string> resume{"train", "run", "--resume", "--set", "train.steps=30"};
  EXPECT_EQ(project.difftape(resume).exit, 66);
  std::vector<std::string> found = resume;
  found.insert(found.end(), {"--set", "data.path=elsewhere.txt"});
  test::output(project.difftape(found));
  EXPECT_EQ(config_of_run(project / "run").data.path.front(), (project / "elsewhere.txt").string());
  put(project / "elsewhere.txt", "other text " + test::tiny_text());
  found[4] = "train.steps=40";
  EXPECT_THAT(test::error(65, project.difftape(found)), HasSubstr("was made with other data"));
}

TEST_F(Resume, of_a_run_that_another_process_trains_is_rejected) {
  Process process({"train", "tiny.yaml", "--out", "run"}, project.here());
  ASSERT_TRUE(process.read_until("step   1/150"));
  EXPECT_EQ(test::error(74, project.difftape({"train", "tiny.yaml", "--out", "run", "--resume"})),
            "difftape: run: another process is training here; wait for it, or choose another "
            "directory with --out\n");
  EXPECT_EQ(process.wait().exit, 0) << "the first goes on";
  EXPECT_EQ(metrics_lines(project / "run").size(), 150u);
}

TEST_F(Resume, of_a_run_that_failed_on_a_full_disk_gives_the_bits_of_an_uninterrupted_run) {
  project.config.log.param_grad_norms_interval = 1;
  project.save();
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  const std::uint64_t others = std::max(last_checkpoint(project / "whole").size(),
                                        contents(project / "whole/metrics.h5").size());
  const std::uint64_t room = others + 4096;
  ASSERT_LT(room, contents(project / "whole/metrics.jsonl").size());
  const Outcome failed =
      project.difftape({"train", "tiny.yaml", "--out", "cut"}, {.largest_file = room});
  ASSERT_EQ(failed.exit, 74) << failed.err;
  EXPECT_EQ(failed.err, "difftape: cannot write cut/metrics.jsonl: File too large\n");
  const RunStatus at_failure = read_status(project / "cut");
  EXPECT_EQ(at_failure.state, RunState::failed);
  EXPECT_GT(at_failure.step, 20);
  const auto logged = read_metrics(project / "cut/metrics.jsonl").step;
  EXPECT_EQ(logged.back(), static_cast<double>(at_failure.step - 1)) << "all lines but the cut one";
  ASSERT_EQ(project.difftape({"train", "tiny.yaml", "--out", "cut", "--resume"}).exit, 0);
  test::expect_the_same_run(project / "cut", project / "whole");
}

TEST_F(Resume, counts_the_spikes_of_the_logged_steps) {
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  test::cut_after(140, project / "run", project / "cut");
  std::string lines;
  for (auto line : metrics_lines(project / "cut")) {
    if (line["step"] == 130 || line["step"] == 135) line["train/loss"] = 1000;
    lines += line.dump() + "\n";
  }
  put(project / "cut/metrics.jsonl", lines);
  ASSERT_EQ(project.train("cut", true), system::Exit::ok);
  const std::string log = contents(project / "cut/stdout.log");
  EXPECT_THAT(log, testing::ContainsRegex("\nstep 150/150 .* 2 spikes"));
  // After one loss of 1000 in 134 steps their deviation is 86, so the second is 11 deviations off.
  EXPECT_THAT(log, testing::ContainsRegex("\nspikes: 2 of the loss, last at step 135.*; spike "
                                          "score \\(OLMo 2\\): loss 1\\.33 %"));
}

/// A finished run that must refuse to resume under changed conditions, and stay unchanged.
struct ResumeWithAnother : testing::Test {
  ResumeWithAnother() { EXPECT_EQ(project.train("run"), system::Exit::ok); }

  std::string error(int exit, const std::vector<std::string>& more = {},
                    const test::Conditions& conditions = {}) {
    const auto state = [this] {
      return contents(project / "run/metrics.jsonl") + contents(project / "run/status.json");
    };
    const std::string before = state();
    const std::string outcome = test::error(
        exit, project.difftape(joined({"train", "tiny.yaml", "--out", "run", "--resume"}, more),
                               conditions));
    EXPECT_EQ(state(), before);
    return outcome;
  }

  TinyProject project;
};

TEST_F(ResumeWithAnother, configuration_is_rejected) {
  EXPECT_EQ(
      error(78, {"--set", "optim.lr=0.5"}),
      "run/checkpoints/step-00000012.h5: has a different configuration: optim.lr is 0.01, not "
      "0.5; to keep the configuration of the run: difftape train run --resume; to use another "
      "configuration, start a new run with --out DIR\n");
}

TEST_F(ResumeWithAnother, precision_is_rejected) {
  EXPECT_EQ(
      error(65, {}, {.program = DIFFTAPE_TEST_PROGRAM_F64}),
      "difftape: run/checkpoints/step-00000012.h5: was made in f32, but this program computes "
      "in f64; resume with difftape\n");
}

TEST_F(ResumeWithAnother, text_is_rejected) {
  std::string text = test::tiny_text();
  put(project / "text.txt", text + "more");
  const std::size_t size = text.size();
  EXPECT_THAT(error(65),
              AllOf(StartsWith(fmt::format("difftape: run/checkpoints/step-00000012.h5: was made "
                                           "with other data: bytes is {}, not {}; ",
                                           size, size + 4)),
                    Not(HasSubstr("type")), Not(HasSubstr("xxh3"))));
  text.front() = 'T';
  put(project / "text.txt", text);
  EXPECT_THAT(error(65), HasSubstr("other data: the same amount with other contents; restore"));
}

}  // namespace
}  // namespace difftape::run
