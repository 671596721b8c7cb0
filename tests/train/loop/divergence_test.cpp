// Divergence is a result, not a crash.
#include "tests/train/loop/tiny.h"
#include "train/log/metrics.h"
#include "train/log/run_files.h"
#include "train/report/report.h"
#include "train/report/summary.h"
#include "train/report/table.h"

namespace difftape {
namespace {

using test::contents;
using test::metrics_lines;
using test::TinyProject;
using testing::HasSubstr;

/// A learning rate that blows up every parameter in the first step.
TinyProject& explosive(TinyProject& project) {
  project.config.optim.lr = 1e30;
  project.config.optim.clip_norm = 0;
  project.config.optim.warmup_steps = 0;
  project.config.train.eval_every = 0;
  project.save();
  return project;
}

TEST(Divergence, of_every_attention_kind_is_recorded_with_step_quantity_and_parameter) {
  for (const std::string& kind : attention_kinds()) {
    TinyProject project(kind);
    EXPECT_EQ(explosive(project).train("run"), Exit::diverged);
    const RunStatus status = read_status(project / "run");
    EXPECT_EQ(status.state, RunState::diverged);
    EXPECT_EQ(status.exit_code, 86);
    EXPECT_EQ(status.steps, 12);
    ASSERT_TRUE(status.diverged.has_value());
    EXPECT_EQ(status.diverged->step, status.step);
    EXPECT_EQ(status.diverged->step, 2) << kind;
    EXPECT_EQ(status.diverged->quantity, "train/loss");
    EXPECT_EQ(status.diverged->parameter, "lm_head.weight");
    EXPECT_THAT(project.console.str(),
                testing::EndsWith("diverged at step 2: train/loss is not finite, first in "
                                  "lm_head.weight\n"));
  }
}

TEST(Divergence, leaves_a_last_line_that_says_what_was_not_finite) {
  TinyProject project;
  EXPECT_EQ(explosive(project).train("run"), Exit::diverged);
  const auto lines = metrics_lines(project / "run");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0]["train/loss"].is_number());
  for (const char* name : {"train/loss", "optim/grad_norm", "optim/grad_norm/lm_head.weight"}) {
    const auto& value = lines[1].at(name);
    EXPECT_TRUE(value == "NaN" || value == "Infinity") << name << " is " << value;
  }
  EXPECT_EQ(lines[1]["spike/score_loss"], 50);
  const MetricsTable table = read_metrics(project / "run/metrics.jsonl");
  EXPECT_FALSE(std::isfinite(table.columns.at("train/loss").back()));
  EXPECT_TRUE(std::filesystem::exists(project / "run/metrics.h5"));
}

TEST(Divergence, of_the_validation_loss_alone_is_seen_too) {
  TinyProject project;
  explosive(project).config.train.eval_every = 1;
  EXPECT_EQ(project.train("run"), Exit::diverged);
  const RunStatus status = read_status(project / "run");
  ASSERT_TRUE(status.diverged.has_value());
  EXPECT_EQ(status.diverged->step, 1);
  EXPECT_EQ(status.diverged->quantity, "val/loss");
  const auto lines = metrics_lines(project / "run");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0]["train/loss"].is_number());
  EXPECT_TRUE(lines[0]["val/loss"].is_string());
}

TEST(Divergence, is_exit_code_86_and_can_be_reported_beside_a_run_that_finished) {
  TinyProject project;
  ASSERT_EQ(project.train("fine"), Exit::ok);
  explosive(project);
  const auto outcome = project.difftape({"train", "tiny.yaml", "--out", "run"});
  EXPECT_EQ(outcome.exit, 86);
  EXPECT_EQ(outcome.err, "") << "it is a result, not an error";
  const auto report = project.difftape({"report", "fine", "run"});
  EXPECT_EQ(report.exit, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("diverged at step 2 (train/loss)"));
  EXPECT_THAT(report.out, HasSubstr("report: report.html"));
  EXPECT_THAT(contents(project / "report.html"), HasSubstr("diverged at step 2 (train/loss)"));
}

}  // namespace
}  // namespace difftape
