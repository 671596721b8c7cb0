// Spikes of a run: what it counts, and what it writes of them.
#include "train/stats/spikes.h"

#include "tests/train/run/loop/tiny.h"
#include "train/run/records/metrics.h"
#include "train/run/records/spike_records.h"

namespace difftape::run {
namespace {

using test::contents;
using test::metrics_lines;
using test::TinyProject;

TEST(SpikesOfARun, of_loss_and_gradient_norm_are_counted_at_every_step) {
  TinyProject project;
  project.config.train.steps = 40;
  project.config.train.eval_interval = 0;
  project.config.log.spike_rule = stats::SpikeDefinition::olmo2;
  project.config.log.spike_min_history = 4;
  project.config.log.spike_threshold = 2.5;
  ASSERT_EQ(project.train("all"), system::Exit::ok);
  stats::SpikeDetector loss_spikes({1000, 2.5, 4}), grad_spikes({1000, 2.5, 4});
  std::vector<Index> expected;
  for (const auto& line : metrics_lines(project / "all")) {
    const bool loss = loss_spikes.add(line["train/loss"]);
    const bool grad = grad_spikes.add(line["optim/grad_norm"]);
    EXPECT_EQ(line["spike_score/loss"], loss_spikes.score());
    EXPECT_EQ(line["spike_score/grad_norm"], grad_spikes.score());
    if (loss || grad) expected.push_back(line["step"]);
  }
  EXPECT_GT(expected.size(), 0u) << "the text should give at least one spike";
  EXPECT_LT(expected.size(), 20u);
}

TEST(SpikesOfARun, are_written_each_with_a_line_about_them) {
  TinyProject project;
  project.config.train.steps = 40;
  project.config.log.spike_rule = stats::SpikeDefinition::olmo2;
  project.config.log.spike_min_history = 4;
  project.config.log.spike_threshold = 2.5;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto records = spike_records(read_metrics(project / "run/metrics.jsonl"), {1000, 2.5, 4});
  ASSERT_FALSE(records.empty());
  write_spikes_csv(project / "expected.csv", records);
  EXPECT_EQ(contents(project / "run/spikes.csv"), contents(project / "expected.csv"));
  EXPECT_THAT(project.console.str(), testing::HasSubstr("\n" + spike_summary(records) + "\n"));
}

}  // namespace
}  // namespace difftape::run
