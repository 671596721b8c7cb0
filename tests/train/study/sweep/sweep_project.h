#pragma once
// A tiny project with a sweep file s.yaml that writes to out/.

#include "tests/train/run/loop/tiny.h"
#include "train/run/records/run_files.h"

namespace difftape::test {

struct SweepProject : testing::Test {
  explicit SweepProject(const std::string& sweep_yaml) { put(project / "s.yaml", sweep_yaml); }

  /// Makes the runs long enough to be interrupted.
  void make_long() {
    project.config.train.steps = 600;
    project.config.train.eval_interval = 1;
    project.save();
  }
  /// Waits until a run has logged a step.
  void wait_for(const std::string& run) {
    const auto metrics = project / ("out/" + run + "/metrics.jsonl");
    ASSERT_TRUE(becomes_true([&] { return fs::exists(metrics) && fs::file_size(metrics) > 0; }));
  }
  Outcome sweep(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"sweep", "s.yaml", "--out", "out"});
    return project.difftape(more);
  }
  run::RunState state(const std::string& run) {
    return run::read_status(project / ("out/" + run)).state;
  }
  bool exists(const std::string& path) { return fs::exists(project / path); }

  TinyProject project;
};

}  // namespace difftape::test
