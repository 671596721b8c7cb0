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
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  test::cut_after(4, project / "whole", project / "cut");
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
  put(project / "run/lock", "");
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

  RunStatus ended = read_status(project / "run");
  ended.state = RunState::running;
  write_status(project / "run", ended);
  EXPECT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_EQ(read_status(project / "run").state, RunState::finished) << "it was killed at its end";
}

/// Returns the steps of the checkpoints of a run.
std::vector<Index> kept(const fs::path& run) {
  std::vector<Index> steps;
  for (const auto& [step, file] : checkpoints_in(run / "checkpoints")) steps.push_back(step);
  return steps;
}

TEST_F(Resume, keeps_the_configured_checkpoints) {
  project.config.train.keep_last = 2;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_THAT(kept(project / "run"), testing::ElementsAre(150, 140));
}

TEST_F(Resume, replaces_checkpoints_between_the_intervals) {
  project.config.train.steps = 12;
  project.config.train.checkpoint_interval = 5;
  project.checkpoint_after = std::chrono::seconds(0);
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_THAT(kept(project / "run"), testing::ElementsAre(12, 10, 5));
  project.config = test::explosive(project.config);
  project.config.train.checkpoint_interval = 0;
  ASSERT_EQ(project.train("ended"), system::Exit::diverged);
  const Index last = test::metrics_lines(project / "ended").back()["step"];
  EXPECT_THAT(kept(project / "ended"), testing::ElementsAre(last - 1))
      << "an unexpected end loses one step";
}

TEST_F(Resume, removes_the_checkpoint_that_a_killed_run_should_have_removed) {
  project.config.train.steps = 20;
  project.config.train.checkpoint_interval = 0;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const fs::path checkpoints = project / "run/checkpoints";
  fs::copy_file(checkpoints / step_file_name(20), checkpoints / step_file_name(3));
  RunStatus killed = read_status(project / "run");
  killed.state = RunState::running;
  write_status(project / "run", killed);
  const std::string before = measured(project / "run");
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_THAT(kept(project / "run"), testing::ElementsAre(20));
  EXPECT_EQ(measured(project / "run"), before);
}

TEST_F(Resume, continues_from_the_largest_step_in_the_names_of_checkpoints) {
  project.config.train.steps = 40;
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  test::cut_after(20, project / "whole", project / "cut");
  put(project / "cut/checkpoints/latest", "step-00000010.h5\n");  // as earlier versions wrote
  EXPECT_EQ(newest_step(project / "cut"), 20);
  ASSERT_EQ(project.train("cut", true), system::Exit::ok);
  test::expect_the_same_run(project / "cut", project / "whole");
}

TEST_F(Resume, needs_the_metrics_of_all_steps_before_the_checkpoint) {
  project.config.train.steps = 20;
  project.config.train.checkpoint_interval = 10;
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  test::cut_after(10, project / "whole", project / "cut");
  put(project / "cut/metrics.jsonl", "{\"step\":1}\n{\"step\":2}\n");
  EXPECT_THAT(test::error(65, project.difftape({"train", "cut", "--resume"})),
              HasSubstr("cut/metrics.jsonl: line 10 is not that of step 10, after which the run "
                        "continues; restore the file, or begin a new run with --init-from"));
  EXPECT_EQ(contents(project / "cut/metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
  fs::remove(project / "cut/metrics.jsonl");
  EXPECT_EQ(project.difftape({"train", "cut", "--resume"}).exit, 66);
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
                                        contents(project / "whole/attention_maps.h5").size());
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
      "run: has a different configuration: optim.lr is 0.01, not "
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
